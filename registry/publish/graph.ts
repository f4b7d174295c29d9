/**
 * Checks that the requirements of a new release can be met.
 *
 * In: a release that is not in the store yet, and a way to load published releases. Out: no findings, or those that
 * explain the conflict as `waft add` would to the first user. Each plugin of the release is resolved against the
 * published releases and the new one. Runs in the check process: the resolver's work grows with versions times ranges,
 * which authors choose.
 */
import { type Diagnostic, ProjectError } from "../../project/base/diagnostic.ts";
import { CATALOG_FILE } from "../../project/base/constants.ts";
import { type ReleaseProvider, resolve } from "../../project/packages/resolve.ts";
import type { Release } from "../../project/packages/source.ts";
import type { NewPlugin } from "../store/releases.ts";

/** The parts of a new release that resolving needs. */
interface GraphRelease {
  readonly package: string;
  readonly version: string;
  readonly plugins: readonly NewPlugin[];
  readonly artifact: Release["artifact"];
}

/** Gives the published releases of ids; an unknown id is absent. */
export type LoadReleases = (ids: readonly string[]) => Promise<ReadonlyMap<string, readonly Release[]>>;

/** Findings unless every plugin's requirements can be met. */
export async function checkGraph(release: GraphRelease, load: LoadReleases): Promise<readonly Diagnostic[]> {
  if (release.plugins.every(({ definition }) => Object.keys(definition.requires).length === 0)) return [];
  const own = new Map(release.plugins.map((p) => [p.definition.id, newRelease(release, p)]));
  const requirements = Object.fromEntries([...own.keys()].map((id) => [id, release.version]));
  try {
    const { chosen } = await resolve({ requirements, allowYanked: true }, providerOf(own, load));
    const cycle = findCycle(chosen);
    return cycle === undefined ? [] : [conflict(`the plugins require each other in a cycle: ${cycle.join(" -> ")}`)];
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    return [conflict(`the requirements of ${release.package} cannot be met: ${error.message}`), ...error.diagnostics];
  }
}

function conflict(message: string): Diagnostic {
  return { code: "publish.graph", severity: "error", message, file: CATALOG_FILE };
}

/** Published releases with the new ones among them; every id is loaded once. */
function providerOf(own: ReadonlyMap<string, Release>, load: LoadReleases): ReleaseProvider {
  const known = new Map<string, readonly Release[] | undefined>();
  return {
    async load(ids) {
      const missing = ids.filter((id) => !known.has(id));
      const loaded = missing.length === 0 ? new Map() : await load(missing);
      for (const id of missing) known.set(id, withOwn(loaded.get(id) ?? [], own.get(id)));
      return new Map(ids.map((id) => [id, known.get(id)]));
    },
  };
}

function withOwn(published: readonly Release[], own: Release | undefined): readonly Release[] | undefined {
  const releases = own === undefined ? published : [own, ...published.filter((r) => r.version !== own.version)];
  return releases.length === 0 ? undefined : releases;
}

/** A cycle of requirements, without recursion, because authors choose the depth of the graph. */
function findCycle(chosen: ReadonlyMap<string, Release>): string[] | undefined {
  const done = new Set<string>();
  for (const start of chosen.keys()) {
    const path: string[] = [];
    const onPath = new Set<string>();
    const stack: { readonly id: string; readonly leave: boolean }[] = [{ id: start, leave: false }];
    for (let step = stack.pop(); step !== undefined; step = stack.pop()) {
      const { id, leave } = step;
      if (leave) {
        done.add(id);
        onPath.delete(path.pop()!);
        continue;
      }
      if (onPath.has(id)) return [...path.slice(path.indexOf(id)), id];
      if (done.has(id)) continue;
      path.push(id);
      onPath.add(id);
      stack.push({ id, leave: true });
      for (const next of Object.keys(chosen.get(id)?.requires ?? {})) stack.push({ id: next, leave: false });
    }
  }
  return undefined;
}

function newRelease(release: GraphRelease, plugin: NewPlugin): Release {
  const { definition } = plugin;
  return {
    id: definition.id,
    version: release.version,
    package: release.package,
    definitionDigest: plugin.digest as Release["definitionDigest"],
    requires: definition.requires,
    compatibility: definition.compatibility,
    artifact: release.artifact,
  };
}
