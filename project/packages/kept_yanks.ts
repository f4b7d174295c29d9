/**
 * Locked versions that were yanked according to the registry's last answer.
 *
 * In: a lockfile and the indexes that earlier commands cached. Out: a warning per yanked version. Uses no
 * network, and reports nothing for packages that were never looked up.
 */
import { type Diagnostic, ProjectError } from "../base/diagnostic.ts";
import type { Lockfile } from "../lockfile/lock_schema.ts";
import { type OpsContext, SourceSet } from "./context.ts";

/** Warnings for the yanked versions of a lockfile, as far as the cache knows of them. */
export async function keptYanks(context: OpsContext, root: string, lock: Lockfile): Promise<Diagnostic[]> {
  const sources = new SourceSet({ ...context, offline: true }, root);
  const found: Diagnostic[] = [];
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const { version, source } = lock.packages[plugin.package];
    if (source.kind !== "registry") continue;
    try {
      const releases = await sources.locked(source).releases(id);
      const yanked = releases?.find((release) => release.version === version)?.yanked;
      if (yanked === undefined) continue;
      found.push({
        code: "registry.yanked",
        severity: "warning",
        message: `${id} ${version} was yanked (${yanked.severity}): ${yanked.reason}`,
        help: `run \`waft plugin update ${id}\``,
      });
    } catch (error) {
      // Never looked up, or a registry that this machine does not trust: other checks say so.
      if (!(error instanceof ProjectError)) throw error;
    }
  }
  return found;
}
