/**
 * Can what a release requires be met?
 *
 * In: a new release that is not in the store yet. Out: nothing, or a Problem that explains the conflict as `waft add` would
 * to the first user. Each plugin of the release is resolved with the releases the store has and the new one.
 */
import { ProjectError } from "../../project/base/diagnostic.ts";
import { type ReleaseProvider, resolve } from "../../project/packages/resolve.ts";
import type { Release } from "../../project/packages/source.ts";
import { findingsOf, Problem } from "../problem.ts";
import type { Queries } from "../store/database.ts";
import { pluginIndex } from "../store/packages.ts";
import type { NewPlugin } from "../store/releases.ts";

/** What of a new release matters here. */
export interface GraphRelease {
  readonly package: string;
  readonly version: string;
  readonly plugins: readonly NewPlugin[];
  readonly artifact: Release["artifact"];
}

/** Throws unless every plugin's requirements can be met. */
export async function checkGraph(queries: Queries, release: GraphRelease): Promise<void> {
  const own = new Map(release.plugins.map((p) => [p.definition.id, newRelease(release, p)]));
  const known = new Map<string, readonly Release[] | undefined>();
  const provider: ReleaseProvider = {
    async load(ids) {
      for (const id of ids) if (!known.has(id)) known.set(id, await releasesOf(queries, id, own.get(id)));
      return new Map(ids.map((id) => [id, known.get(id)]));
    },
  };
  if (release.plugins.every(({ definition }) => Object.keys(definition.requires).length === 0)) return;
  const requirements = Object.fromEntries([...own.keys()].map((id) => [id, release.version]));
  try {
    const { chosen } = await resolve({ requirements, allowYanked: true }, provider);
    const cycle = findCycle(chosen);
    if (cycle !== undefined) {
      throw new Problem("publish.graph", `the plugins require each other in a cycle: ${cycle.join(" -> ")}`);
    }
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    throw new Problem("publish.graph", `the requirements of ${release.package} cannot be met: ${error.message}`, {
      errors: findingsOf(error.diagnostics),
    });
  }
}

/** A cycle of requirements, without recursion, since the graph is as deep as its authors like. */
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

async function releasesOf(
  queries: Queries,
  id: string,
  own: Release | undefined,
): Promise<readonly Release[] | undefined> {
  const index = await pluginIndex(queries, id);
  const kept = (index?.releases ?? []).filter((r) => r.version !== own?.version).map((r) => (
    { ...r, id, package: index!.package } as Release
  ));
  if (own !== undefined) kept.unshift(own);
  return kept.length === 0 ? undefined : kept;
}
