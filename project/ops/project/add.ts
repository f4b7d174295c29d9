/**
 * `add`: adds requirements, brings the lockfile in line, and writes both files as a pair.
 *
 * In: plugin ids with optional ranges, directories, or nothing (which only updates the lockfile to match the
 * manifest). Out: a ChangeResult. The constraint written is the range as typed, `^<resolved>` when none was typed,
 * or the exact version with `exact`. Short and bare names are never expanded.
 */
import { relative, resolve } from "node:path";
import { fail, quote } from "../../base/diagnostic.ts";
import { requirePluginId } from "../../definitions/plugin_id.ts";
import { projectPath } from "../../packages/source_path.ts";
import { SourceSet } from "../../packages/context.ts";
import { readProject, requireManifest, requirementsOf } from "../../project.ts";
import { canonicalVersion, caretOf, explainRange } from "../../base/version.ts";
import { changeProject, type ChangeRequest, type ChangeResult } from "./change.ts";
import type { OpsContext } from "../../packages/context.ts";

/** The requirements to add, and how to write them. */
export interface AddRequest extends Omit<ChangeRequest, "requirements" | "constraint" | "paths"> {
  /** `<id>`, `<id>@<range>` or a directory that starts with `.` or `/`. */
  readonly specs: readonly string[];
  readonly exact?: boolean;
  /** The base of relative directories. */
  readonly directory: string;
  /** Whether to report installations to registries. */
  readonly report?: boolean;
}

/** The result of adding. */
export interface AddResult extends ChangeResult {
  /** Packages whose installation was counted by their registry. */
  readonly reported: readonly string[];
}

/** Adds requirements. */
export async function addPlugins(context: OpsContext, request: AddRequest): Promise<AddResult> {
  const requirements = new Map<string, string | undefined>();
  const typed = new Set<string>();
  const paths: string[] = [];
  const state = await readProject(request.root, context.files);
  const current = requirementsOf(requireManifest(state).manifest);
  for (const spec of request.specs) {
    if (/^(?:\.{1,2}(?:\/|$)|\/)/.test(spec)) {
      const path = projectPath(request.root, resolve(request.directory, spec));
      const { opened } = await new SourceSet(context, request.root).directory(path).open();
      paths.push(path);
      requirements.set(opened.id, current[opened.id] ?? caretOf(opened.version));
      if (current[opened.id] !== undefined) typed.add(opened.id);
      continue;
    }
    const at = spec.indexOf("@", 1);
    const id = at < 0 ? spec : spec.slice(0, at);
    requirePluginId(id);
    const range = at < 0 ? undefined : spec.slice(at + 1);
    if (range !== undefined) {
      const wrong = explainRange(range);
      if (wrong !== undefined) {
        throw fail(
          "usage.range",
          `${quote(range, 60)} is not a version or range: ${wrong.reason}`,
          wrong.help === undefined ? {} : { help: wrong.help },
        );
      }
      typed.add(id);
    }
    if (requirements.has(id)) throw fail("usage.twice", `${id} is given twice`);
    requirements.set(id, range ?? "*");
  }
  const result = await changeProject(context, {
    ...request,
    requirements,
    paths,
    constraint(id, version) {
      if (request.exact === true) return version.replace(/\+.*$/, "");
      const range = requirements.get(id)!;
      if (!typed.has(id)) return caretOf(version);
      return canonicalVersion(range) === undefined ? range : version.replace(/\+.*$/, "");
    },
  });
  const reported: string[] = [];
  if (request.report === true && result.written.length > 0) reported.push(...await report(context, result));
  return { ...result, reported };
}

/** Tells each registry of new or changed packages, once for each. */
async function report(context: OpsContext, result: ChangeResult): Promise<string[]> {
  const state = await readProject(result.root, context.files);
  const lock = state.lock?.lockfile;
  if (lock === undefined) return [];
  const sources = new SourceSet(context, result.root);
  const packages = new Map<string, string>();
  for (const change of result.changes) {
    if (change.action !== "add" && change.action !== "update") continue;
    const id = lock.plugins[change.id]?.package;
    if (id !== undefined) packages.set(id, lock.packages[id].version);
  }
  const counted = await Promise.all([...packages].map(async ([id, version]) => {
    const { source } = lock.packages[id];
    return source.kind === "registry" && await sources.registry(source.registry).reportInstall(id, version) ? [id] : [];
  }));
  return counted.flat();
}

/** A path as people read it: relative to the working directory when that is shorter. */
export function shortPath(path: string, from: string): string {
  const short = relative(from, path);
  return short !== "" && short.length < path.length ? short : path;
}

/** `rm`: removes requirements; plugins that are no longer required leave the lockfile. */
export async function removePlugins(
  context: OpsContext,
  request: Omit<ChangeRequest, "requirements"> & { readonly ids: readonly string[] },
): Promise<ChangeResult> {
  const state = await readProject(request.root, context.files);
  const current = requirementsOf(requireManifest(state).manifest);
  const requirements = new Map<string, string | undefined>();
  for (const id of request.ids) {
    if (!(id in current)) {
      const by = Object.entries(state.lock?.lockfile?.plugins ?? {}).filter(([, p]) => id in p.definition.requires).map(
        ([other]) => other,
      );
      throw fail("usage.not-required", `${quote(id)} is not a requirement of this project`, {
        help: by.length > 0
          ? `it is installed because ${by.join(", ")} requires it`
          : `requirements: ${Object.keys(current).sort().join(", ") || "none"}`,
      });
    }
    requirements.set(id, undefined);
  }
  return await changeProject(context, { ...request, requirements });
}
