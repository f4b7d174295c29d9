/**
 * `add`: adds requirements, brings the lockfile in line, and writes both files as a pair.
 *
 * In: plugin ids with optional ranges, directories, references to OCI registries, or nothing (which only updates the
 * lockfile to match the manifest). Out: a ChangeResult. The constraint written is the range as typed, `^<resolved>`
 * when none was typed, or the exact version with `exact`. Short and bare names are never expanded.
 */
import { relative, resolve } from "node:path";
import { fail, quote } from "../../base/diagnostic.ts";
import { requirePluginId } from "../../definitions/plugin_id.ts";
import { projectPath } from "../../packages/source_path.ts";
import { SourceSet } from "../../packages/context.ts";
import { withoutTag } from "../../lockfile/lock_schema.ts";
import { OCI_SCHEME } from "../../base/constants.ts";
import { type ProjectState, readProject, requireManifest, requirementsOf } from "../../project.ts";
import { canonicalVersion, caretOf, explainRange, satisfies } from "../../base/version.ts";
import { changeProject, type ChangeRequest, type ChangeResult } from "./change.ts";
import type { OpsContext } from "../../packages/context.ts";
import type { OciRequest } from "../../packages/source_oci.ts";

const MAX_KEY_BYTES = 1 << 16;

/** The requirements to add, and how to write them. */
export interface AddRequest extends Omit<ChangeRequest, "requirements" | "constraint" | "paths" | "oci"> {
  /** `<id>`, `<id>@<range>`, a directory that starts with `.` or `/`, or a reference `oci://HOST/NAME…`. */
  readonly specs: readonly string[];
  readonly exact?: boolean;
  /** The file of a public key (PEM) by which packages in OCI registries must be signed. */
  readonly signedBy?: string;
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
  const oci: OciRequest[] = [];
  const state = await readProject(request.root, context.files);
  const current = requirementsOf(requireManifest(state).manifest);
  const sources = new SourceSet(context, request.root);
  const key = request.signedBy === undefined ? undefined : await keyIn(context, request.signedBy);
  if (key !== undefined && !request.specs.some((spec) => spec.startsWith(OCI_SCHEME))) {
    throw fail("usage.signed-by", "--signed-by is for plugins in OCI registries");
  }
  for (const spec of request.specs) {
    if (/^(?:\.{1,2}(?:\/|$)|\/)/.test(spec)) {
      const path = projectPath(request.root, resolve(request.directory, spec));
      const { opened } = await sources.directory(path).open();
      paths.push(path);
      requirements.set(opened.id, current[opened.id] ?? caretOf(opened.version));
      if (current[opened.id] !== undefined) typed.add(opened.id);
      continue;
    }
    if (spec.startsWith(OCI_SCHEME)) {
      const wanted = ociRequest(spec, key, state);
      const opened = await sources.oci(wanted).open();
      if (requirements.has(opened.id)) throw fail("usage.twice", `${opened.id} is given twice`);
      oci.push(wanted);
      const range = current[opened.id];
      const fits = range !== undefined && satisfies(opened.version, range);
      requirements.set(opened.id, fits ? range : caretOf(opened.version));
      if (fits) typed.add(opened.id);
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
    oci,
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

/**
 * A package in an OCI registry as a request. A repository whose packages the project requires to be signed keeps its
 * key, unless another is given.
 */
function ociRequest(spec: string, key: string | undefined, { lock }: ProjectState): OciRequest {
  const kept = Object.values(lock?.lockfile?.packages ?? {}).flatMap(({ source }) =>
    source.kind === "oci" && withoutTag(source.reference) === withoutTag(spec) ? [source.signedBy] : []
  );
  const signedBy = key ?? kept[0];
  return { reference: spec, ...(signedBy === undefined ? {} : { signedBy }) };
}

/** The public key in a file, in its stored form. */
async function keyIn({ files }: OpsContext, file: string): Promise<string> {
  const { keyText, signatureKey } = await import("../../packages/oci/signature.ts");
  const bytes = await files.read(file, MAX_KEY_BYTES);
  if (bytes === undefined) throw fail("usage.signed-by", "there is no such file", { file });
  try {
    return keyText(signatureKey(new TextDecoder().decode(bytes)));
  } catch (error) {
    throw fail("usage.signed-by", (error as Error).message, { file });
  }
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
