/**
 * Can what a release requires be met?
 *
 * In: a new release that is not in the store yet. Out: nothing, or a Problem that explains the conflict as `waft add` would
 * to the first user. Each plugin of the release is resolved with the releases the store has and the new one.
 */
import { ProjectError } from "../../project/diagnostic.ts";
import { type ReleaseProvider, resolve } from "../../project/resolve.ts";
import type { Release } from "../../project/source.ts";
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
  for (const { definition } of release.plugins) {
    if (Object.keys(definition.requires).length === 0) continue;
    try {
      await resolve({ requirements: { [definition.id]: release.version }, allowYanked: true }, provider);
    } catch (error) {
      if (!(error instanceof ProjectError)) throw error;
      throw new Problem("publish.graph", `the requirements of ${definition.id} cannot be met: ${error.message}`, {
        errors: findingsOf(error.diagnostics),
      });
    }
  }
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
