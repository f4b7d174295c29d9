/**
 * `plugin list`: the locked plugins and the state of each.
 *
 * In: a project and the machine's context. Out: one row per plugin: version, the plugins that require it, grants,
 * and problems, if any. Yanks come from the registry, or offline from its last known answer.
 */
import { ProjectError } from "../../base/diagnostic.ts";
import type { JsonObject } from "../../base/json_read.ts";
import { missingAuthorities } from "../../plugins/plugin_grants.ts";
import { readProject, requireManifest } from "../../project.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";
import type { Yank } from "../../packages/source.ts";

/** The listing of one plugin. */
export interface ListedPlugin {
  readonly id: string;
  readonly version: string;
  readonly kind: string;
  readonly direct: boolean;
  readonly requiredBy: readonly string[];
  readonly grants: { readonly [name: string]: JsonObject };
  readonly denied: readonly string[];
  readonly state: "ok" | "yanked" | "deprecated" | "denied" | "missing blob";
  readonly yanked?: Yank;
}

/** Lists the plugins of a project; throws when the lockfile is not valid. */
export async function listPlugins(
  context: OpsContext,
  root: string,
): Promise<{ readonly plugins: readonly ListedPlugin[] }> {
  const state = await readProject(root, context.files);
  requireManifest(state);
  if (state.lock === undefined) return { plugins: [] };
  const { lockfile } = state.lock;
  if (lockfile === undefined) throw new ProjectError(state.lock.diagnostics);
  const sources = new SourceSet(context, root);
  const plugins = await Promise.all(
    Object.keys(lockfile.plugins).sort().map(async (id): Promise<ListedPlugin> => {
      const plugin = lockfile.plugins[id];
      const pack = lockfile.packages[plugin.package];
      let yanked: Yank | undefined;
      let isDeprecated = plugin.definition.stability === "deprecated";
      if (pack.source.kind === "registry") {
        try {
          const releases = await sources.locked(pack.source).releases(id);
          const release = releases?.find((r) => r.version === pack.version);
          yanked = release?.yanked;
          isDeprecated ||= release?.deprecated !== undefined;
        } catch (error) {
          // Without the network the list is still useful.
          if (!(error instanceof ProjectError)) throw error;
        }
      }
      const blob = pack.source.kind === "path" || await context.cache.has(pack.artifact.digest, pack.artifact.size);
      return {
        id,
        version: pack.version,
        kind: plugin.definition.kind,
        direct: id in lockfile.requirements,
        requiredBy: Object.keys(lockfile.plugins).sort().filter((other) =>
          id in lockfile.plugins[other].definition.requires
        ),
        grants: plugin.grants,
        denied: plugin.denied,
        state: missingAuthorities(plugin, context.machine.policy.deny).length > 0
          ? "denied"
          : yanked !== undefined
          ? "yanked"
          : isDeprecated
          ? "deprecated"
          : blob
          ? "ok"
          : "missing blob",
        ...(yanked === undefined ? {} : { yanked }),
      };
    }),
  );
  return { plugins };
}
