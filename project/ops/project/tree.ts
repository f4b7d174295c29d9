/**
 * `tree` and `outdated`: the locked plugins by the plugins that require them, and newer versions of them.
 *
 * In: a project. Out: rows. `tree` uses no network; `outdated` queries each plugin's registry and changes
 * nothing.
 */
import { ProjectError } from "../../base/diagnostic.ts";
import { compareVersions, satisfies } from "../../base/version.ts";
import type { Lockfile } from "../../lockfile/lock_schema.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";
import { readProject, requireManifest } from "../../project.ts";

/** A plugin and those that it requires. */
export interface TreeNode {
  readonly id: string;
  readonly version: string;
  /** The range by which it is required. */
  readonly range: string;
  /** Set when its requirements are shown at an earlier place. */
  readonly repeated: boolean;
  readonly requires: readonly TreeNode[];
}

/** A plugin of which there is a newer version. */
export interface OutdatedPlugin {
  readonly id: string;
  readonly current: string;
  /** The newest version within all ranges. */
  readonly wanted: string;
  /** The newest version at all. */
  readonly latest: string;
  readonly requiredBy: readonly string[];
  /** The release notes of the newest version, if its registry has some. */
  readonly notes?: string;
}

/** The requirements of a project, as deep as they go. */
export async function pluginTree(context: OpsContext, root: string): Promise<TreeNode[]> {
  const lock = await lockOf(context, root);
  if (lock === undefined) return [];
  const shown = new Set<string>();
  const nodes = (requires: { readonly [id: string]: string }): TreeNode[] =>
    Object.keys(requires).sort().map((id) => {
      const plugin = lock.plugins[id];
      const repeated = shown.has(id);
      shown.add(id);
      return {
        id,
        version: lock.packages[plugin.package].version,
        range: requires[id],
        repeated,
        requires: repeated ? [] : nodes(plugin.definition.requires),
      };
    });
  return nodes(lock.requirements);
}

/** The plugins of a project of which there are newer versions that are not yanked. */
export async function outdatedPlugins(context: OpsContext, root: string): Promise<OutdatedPlugin[]> {
  const lock = await lockOf(context, root);
  if (lock === undefined) return [];
  const sources = new SourceSet(context, root);
  const rows = await Promise.all(
    Object.keys(lock.plugins).sort().map(async (id): Promise<OutdatedPlugin | undefined> => {
      const { version: current, source } = lock.packages[lock.plugins[id].package];
      if (source.kind !== "registry") return undefined;
      const registry = sources.registry(source.registry);
      const releases = await registry.releases(id) ?? [];
      const by = requirersOf(lock, id);
      const newer = releases.filter((release) =>
        release.yanked === undefined && !release.version.includes("-") && compareVersions(release.version, current) > 0
      ).map(({ version }) => version).sort(compareVersions);
      const latest = newer.at(-1);
      if (latest === undefined) return undefined;
      const fitting = newer.filter((version) => by.every(({ range }) => satisfies(version, range)));
      const newest = releases.find(({ version }) => version === latest)!;
      const notes = await registry.notes(newest.package, latest);
      return {
        id,
        current,
        wanted: fitting.at(-1) ?? current,
        latest,
        requiredBy: by.map(({ by }) => by),
        ...(notes === undefined ? {} : { notes }),
      };
    }),
  );
  return rows.filter((row) => row !== undefined);
}

function requirersOf(lock: Lockfile, id: string): { readonly by: string; readonly range: string }[] {
  const own = lock.requirements[id];
  const others = Object.keys(lock.plugins).sort().flatMap((by) => {
    const range = lock.plugins[by].definition.requires[id];
    return range === undefined ? [] : [{ by, range }];
  });
  return [...(own === undefined ? [] : [{ by: "you", range: own }]), ...others];
}

async function lockOf(context: OpsContext, root: string): Promise<Lockfile | undefined> {
  const state = await readProject(root, context.files);
  requireManifest(state);
  if (state.lock !== undefined && state.lock.lockfile === undefined) throw new ProjectError(state.lock.diagnostics);
  return state.lock?.lockfile;
}
