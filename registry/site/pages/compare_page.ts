/**
 * The changes between two versions of a package, for reviewers: authorities, contracts, requirements, files.
 */
import { grantWithin } from "../../compare_scopes.ts";
import { contractNamespace, type Definition } from "../../../project/definitions/definition.ts";
import { isCanonicalVersion } from "../../../project/base/version.ts";
import { segmentOfId } from "../../names.ts";
import { Problem } from "../../problem.ts";
import { requirePackage } from "../../routes/packages.ts";
import type { Call } from "../../services.ts";
import { findRelease, type ReleaseState } from "../../store/packages.ts";
import type { ReleaseFile } from "../../store/releases.ts";
import { layout } from "../layout.ts";
import { type Markup, markup } from "../markup.ts";
import { scopeText } from "./plugin_page.ts";

/** One difference. */
interface Difference {
  readonly plugin: string;
  readonly subject: "authority" | "world" | "provides" | "uses" | "requires" | "plugin" | "limit" | "engine";
  readonly change: "added" | "removed" | "widened" | "narrowed" | "changed";
  readonly text: string;
}

/** Renders the comparison. */
export async function comparePage(call: Call): Promise<string> {
  const { id, summary } = await requirePackage(call);
  const [from, to, more] = (call.params.range ?? "").split("...");
  if (from === undefined || to === undefined || more !== undefined || ![from, to].every(isCanonicalVersion)) {
    throw new Problem("request.version", "two versions are compared as 1.0.0...1.1.0");
  }
  const releases: ReleaseState[] = [];
  for (const version of [from, to]) {
    const release = await findRelease(call.services.database, id, version);
    if (release === undefined) throw new Problem("version.unknown", `${id} has no version ${version}`);
    releases.push(release);
  }
  const [before, after] = releases as [ReleaseState, ReleaseState];
  const differences = compareReleases(before, after);
  const grown = differences.filter(isNewAuthority);
  const segment = segmentOfId(id);
  const body = markup`<main id="main"><h1>${summary.displayName}: ${from} to ${to}</h1>
<p><a href="/plugins/${segment}">${id}</a></p>
<p class="${grown.length > 0 ? "banner" : "banner good"}" role="status">${
    grown.length === 0
      ? "The newer version asks for no new authority."
      : `The newer version asks for more: ${grown.map((d) => d.text).join("; ")}. An update needs a review.`
  }</p>
${section("Authorities", differences.filter((d) => d.subject === "authority"))}
${worldSection(differences.filter((d) => d.subject === "world"))}
${section("Contracts", differences.filter((d) => d.subject === "provides" || d.subject === "uses"))}
${section("Requirements", differences.filter((d) => d.subject === "requires" || d.subject === "engine"))}
${section("Plugins and limits", differences.filter((d) => d.subject === "plugin" || d.subject === "limit"))}
${fileSection(before, after)}
</main>`;
  return layout(call.services, {
    title: `${summary.displayName}: ${from} to ${to}`,
    description: `The changes in ${id} between ${from} and ${to}.`,
    section: "plugins",
    hidden: true,
    body,
  });
}

/**
 * An authority that the older version did not have, or had in a narrower scope: the change that a reviewer looks for.
 */
function isNewAuthority(d: Difference): boolean {
  return d.subject === "authority" && (d.change === "added" || d.change === "widened");
}

/** The section about worlds, which only components have. */
function worldSection(differences: readonly Difference[]): Markup | false {
  return differences.length > 0 && section("World", differences);
}

function section(title: string, differences: readonly Difference[]): Markup {
  return markup`<h2>${title}</h2>${
    differences.length === 0
      ? markup`<p>No change.</p>`
      : markup`<ul class="changes">${
        differences.map((d) =>
          markup`<li class="${
            isNewAuthority(d) && "grown"
          }"><strong>${d.change}</strong> <code>${d.plugin}</code> ${d.text}${
            isNewAuthority(d) && markup` <span class="badge warn">new authority</span>`
          }</li>`
        )
      }</ul>`
  }`;
}

function fileSection(before: ReleaseState, after: ReleaseState): Markup {
  const old = new Map(before.files.map((f) => [f.path, f]));
  const now = new Map(after.files.map((f) => [f.path, f]));
  const paths = [...new Set([...old.keys(), ...now.keys()])].sort();
  return markup`
    <h2>Files</h2>
    <div class="wide" tabindex="0" role="region" aria-label="Files">
      <table class="stack">
        <thead>
          <tr>
            <th scope="col">Path</th>
            <th scope="col">Change</th>
            <th scope="col" class="to-right">Bytes in ${before.version}</th>
            <th scope="col" class="to-right">Bytes in ${after.version}</th>
          </tr>
        </thead>
        <tbody>${
    paths.map((p) =>
      markup`
            <tr>
              <th scope="row"><code>${p}</code></th>
              <td data-label="Change">${fileChange(old.get(p), now.get(p))}</td>
              <td class="to-right" data-label="Bytes in ${before.version}">${old.get(p)?.size ?? ""}</td>
              <td class="to-right" data-label="Bytes in ${after.version}">${now.get(p)?.size ?? ""}</td>
            </tr>
          `
    )
  }</tbody>
      </table>
    </div>
  `;
}

/** The change of a file. Files of the same size cannot be compared when an old release has no digests. */
export function fileChange(before: ReleaseFile | undefined, after: ReleaseFile | undefined): string {
  if (before === undefined) return "added";
  if (after === undefined) return "removed";
  if (before.size !== after.size) return "changed";
  if (before.digest === undefined || after.digest === undefined) return "";
  return before.digest === after.digest ? "same" : "changed";
}

/** All differences between two releases, for reviewers. */
export function compareReleases(before: ReleaseState, after: ReleaseState): Difference[] {
  const old = new Map(before.plugins.map((p) => [p.id, p.definition]));
  const now = new Map(after.plugins.map((p) => [p.id, p.definition]));
  const found: Difference[] = [];
  for (const id of [...new Set([...old.keys(), ...now.keys()])].sort()) {
    const a = old.get(id);
    const b = now.get(id);
    if (a === undefined || b === undefined) {
      found.push({
        plugin: id,
        subject: "plugin",
        change: a === undefined ? "added" : "removed",
        text: "the plugin itself",
      });
    }
    compareDefinitions(id, a, b, found);
  }
  return found;
}

function compareDefinitions(
  id: string,
  a: Definition | undefined,
  b: Definition | undefined,
  found: Difference[],
): void {
  const add = (subject: Difference["subject"], change: Difference["change"], text: string): void => {
    found.push({ plugin: id, subject, change, text });
  };
  each(a?.authorities, b?.authorities, (x) => x.name, (name, x, y) => {
    if (x === undefined || y === undefined) {
      const one = (y ?? x)!;
      const scope = scopeText(one.scope);
      return add(
        "authority",
        x === undefined ? "added" : "removed",
        `${name}${scope === "" ? "" : ` for ${scope}`} (${one.mode})`,
      );
    }
    if (x.mode !== y.mode) add("authority", "changed", `${name}: ${x.mode} before, ${y.mode} now`);
    const [was, is] = [scopeText(x.scope), scopeText(y.scope)];
    if (was !== is) {
      add(
        "authority",
        grantWithin(y, x) ? "narrowed" : "widened",
        `${name}: ${was || "no scope"} before, ${is || "no scope"} now`,
      );
    }
  });
  for (const side of ["imports", "exports"] as const) {
    each(a?.world?.[side], b?.world?.[side], (name) => name, (name, x, y) => {
      if ((x === undefined) !== (y === undefined)) {
        add("world", x === undefined ? "added" : "removed", `${side.slice(0, -1)} ${name}`);
      }
    });
  }
  for (const [subject, x, y] of [["provides", a?.provides, b?.provides], ["uses", a?.consumes, b?.consumes]] as const) {
    each<{ readonly id: string; readonly major: number; readonly functions: readonly object[] }>(
      x,
      y,
      contractNamespace,
      (name, x, y) => {
        if (x === undefined || y === undefined) add(subject, x === undefined ? "added" : "removed", name);
        else if (JSON.stringify(x) !== JSON.stringify(y)) {
          add(subject, "changed", `${name}: functions, namespaces or mode`);
        }
      },
    );
  }
  for (
    const [subject, x, y] of [
      ["requires", a?.requires, b?.requires],
      ["engine", a?.compatibility.engines, b?.compatibility.engines],
    ] as const
  ) {
    each(Object.entries(x ?? {}), Object.entries(y ?? {}), ([name]) => name, (name, x, y) => {
      if (x === undefined) add(subject, "added", `${name} ${y![1]}`);
      else if (y === undefined) add(subject, "removed", `${name} ${x[1]}`);
      else if (x[1] !== y[1]) add(subject, "changed", `${name}: ${x[1]} before, ${y[1]} now`);
    });
  }
  const [was, is] = [a?.limits.maxMemoryPages, b?.limits.maxMemoryPages];
  if (a !== undefined && b !== undefined && was !== is) {
    add("limit", "changed", `maxMemoryPages: ${was ?? "default"} before, ${is ?? "default"} now`);
  }
}

function each<T>(
  a: readonly T[] | undefined,
  b: readonly T[] | undefined,
  key: (item: T) => string,
  visit: (key: string, a: T | undefined, b: T | undefined) => void,
): void {
  const old = new Map((a ?? []).map((x) => [key(x), x]));
  const now = new Map((b ?? []).map((x) => [key(x), x]));
  for (const k of [...new Set([...old.keys(), ...now.keys()])].sort()) visit(k, old.get(k), now.get(k));
}
