/**
 * Explains resolution conflicts: requirers and ranges, skipped releases, and the lines of the manifest to change.
 *
 * In: the facts of a failed search. Out: a ProjectError whose details name each requirer and its range. Its help
 * names the smallest set of requirements that, when widened, leads to a solution; it is found by solving again, for up
 * to three lines. A resolution cannot be forced, so no such option is offered.
 */
import { fail, type ProjectError } from "../base/diagnostic.ts";
import type { Conflict, Fact, Resolution, ResolveRequest } from "./resolution.ts";
import { MANIFEST_FILE } from "../base/constants.ts";
import { caretOf, compareVersions, satisfies } from "../base/version.ts";

/** Explains a failed search; `solve` is used to find out which lines to change. */
export async function explainConflict(
  request: ResolveRequest,
  conflict: Conflict,
  solve: (request: ResolveRequest) => Promise<Resolution | Conflict>,
): Promise<ProjectError> {
  const missing = conflict.facts.find((f) => "id" in f && conflict.nodes.get(f.id)?.exists === false);
  const lines = describe(conflict, request);
  const change = await linesToChange(request, solve);
  if (missing !== undefined && "id" in missing && lines.length === 1) {
    return fail("resolve.not-found", `no plugin ${missing.id} in its registry${by(missing)}`, {
      help: "check the spelling; ids name the package's own path, such as github.com/acme/kv",
    });
  }
  const help = change === undefined
    ? undefined
    : `change in ${MANIFEST_FILE}: ${
      change.map(([id, range, version]) => `"${id}": "${range}" -> "${caretOf(version)}"`).join(" and ")
    }`;
  return fail("resolve.conflict", "no set of versions fits", {
    details: lines,
    ...(help === undefined ? {} : { help }),
  });
}

function by(fact: Fact): string {
  return fact.kind === "requires" ? `, required by ${fact.by} ${shortList(fact.versions)}` : "";
}

/** One line per fact, the project's first; then the releases that each id offers. */
function describe(conflict: Conflict, request: ResolveRequest): string[] {
  const rank = (f: Fact): string =>
    f.kind === "project" ? `0${f.id}` : f.kind === "requires" ? `1${f.by} ${f.id}` : `2${f.package}`;
  const sorted = [...conflict.facts].sort((a, b) => rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0);
  const lines: string[] = [];
  for (const fact of sorted) {
    if (fact.kind === "project") {
      lines.push(`the project requires ${fact.id} ${fact.range}${offers(fact.id, fact.range, conflict, request)}`);
    } else if (fact.kind === "requires") {
      lines.push(
        `${fact.by} ${shortList(fact.versions)} requires ${fact.id} ${fact.range}${
          offers(fact.id, fact.range, conflict, request)
        }`,
      );
    } else lines.push(`${fact.ids[0]} and ${fact.ids[1]} belong to ${fact.package} and share its version`);
  }
  return [...new Set(lines)];
}

/** Empty when a candidate is within the range; otherwise the versions that exist. */
function offers(id: string, range: string, conflict: Conflict, _request: ResolveRequest): string {
  const node = conflict.nodes.get(id);
  if (node === undefined) return "";
  if (!node.exists) return ": the plugin does not exist";
  if (node.candidates.some((r) => satisfies(r.version, range))) return "";
  const skipped = node.skipped.filter((s) => satisfies(s.version, range));
  if (skipped.length > 0) {
    return `: ${skipped.slice(0, 3).map((s) => `${s.version} ${s.reason}`).join("; ")}${
      skipped.length > 3 ? ` (and ${skipped.length - 3} more)` : ""
    }`;
  }
  const versions = node.candidates.map((r) => r.version).sort((a, b) => compareVersions(b, a));
  return versions.length === 0 ? ": it has no usable release" : `: it has ${shortList(versions)}`;
}

function shortList(versions: readonly string[]): string {
  const sorted = [...versions].sort((a, b) => compareVersions(b, a));
  return sorted.length <= 3 ? sorted.join(", ") : `${sorted[0]} to ${sorted.at(-1)} (${sorted.length} versions)`;
}

/**
 * The smallest set of direct requirements whose ranges conflict, with the versions that would be chosen without them.
 */
async function linesToChange(
  request: ResolveRequest,
  solve: (request: ResolveRequest) => Promise<Resolution | Conflict>,
): Promise<[string, string, string][] | undefined> {
  const ids = Object.keys(request.requirements).sort();
  // Advice may cost about as much as a few searches, no more.
  let steps = 0;
  for (let size = 1; size <= Math.min(3, ids.length); size++) {
    for (const subset of subsets(ids, size)) {
      if (steps > 200_000) return undefined;
      const requirements = { ...request.requirements };
      for (const id of subset) requirements[id] = "*";
      try {
        const outcome = await solve({ ...request, requirements });
        steps += outcome.steps + 100;
        if ("chosen" in outcome) {
          return subset.map((id) => [id, request.requirements[id], outcome.chosen.get(id)!.version]);
        }
      } catch {
        return undefined; // The limit of steps: no advice is better than slow advice.
      }
    }
  }
  return undefined;
}

function* subsets(items: readonly string[], size: number): Generator<string[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (let i = 0; i + size <= items.length; i++) {
    for (const rest of subsets(items.slice(i + 1), size - 1)) yield [items[i], ...rest];
  }
}
