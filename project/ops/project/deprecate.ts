/**
 * `plugin deprecate`: tells the users of a release, or of a package with all of its releases, to use something else.
 *
 * In: a package, an exact version or none, a message (none to take it back). Out: the registry's new state. Resolution
 * does not change: `waft add`, `plugin update`, `plugin check` and `plugin list` show the message.
 */
import { fail } from "../../base/diagnostic.ts";
import { requirePluginId } from "../../definitions/plugin_id.ts";
import { canonicalVersion } from "../../base/version.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";

/** The release or package to deprecate. */
interface DeprecationRequest {
  /** `<package>` or `<package>@<version>`. */
  readonly spec: string;
  readonly message?: string;
  readonly undo: boolean;
}

/** The result of a deprecation. */
interface DeprecationResult {
  readonly package: string;
  /** Null: the package. */
  readonly version: string | null;
  readonly deprecated: string | null;
  readonly registry: string;
}

/** Deprecates a release or a package, or takes that back. */
export async function deprecateRelease(
  context: OpsContext,
  root: string,
  { spec, message, undo }: DeprecationRequest,
): Promise<DeprecationResult> {
  const at = spec.indexOf("@");
  const id = at < 0 ? spec : spec.slice(0, at);
  requirePluginId(id);
  const version = at < 0 ? undefined : canonicalVersion(spec.slice(at + 1));
  if (at >= 0 && version === undefined) {
    throw fail("usage.version", "deprecate takes a package or one exact version, such as github.com/acme/kv@1.2.3");
  }
  if (undo === (message !== undefined)) {
    throw fail("usage.message", "--message tells users what to use instead, or --undo takes it back: give one of them");
  }
  const source = new SourceSet(context, root).forId(id);
  await source.deprecate(id, version, message);
  return { package: id, version: version ?? null, deprecated: message ?? null, registry: source.name };
}
