/**
 * `plugin yank`: withdraws a release from new resolutions, or restores it.
 *
 * In: a package, an exact version, a reason with a severity (none to restore the release). Out: the registry's
 * new state of the version. Projects that have locked the version keep it and are warned.
 */
import { fail } from "../../base/diagnostic.ts";
import { requirePluginId } from "../../definitions/plugin_id.ts";
import type { Yank } from "../../packages/source.ts";
import { canonicalVersion } from "../../base/version.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";

/** The severity of the reason. */
export const SEVERITIES: readonly Yank["severity"][] = ["broken", "security", "other"];

/** The version to yank or restore. */
export interface YankRequest {
  /** `<package>@<version>`. */
  readonly spec: string;
  readonly reason?: string;
  readonly severity?: string;
  readonly undo: boolean;
}

/** The result of a yank. */
export interface YankResult {
  readonly package: string;
  readonly version: string;
  readonly yanked: Pick<Yank, "reason" | "severity"> | null;
  readonly registry: string;
}

/** Yanks a release, or un-yanks it. */
export async function yankRelease(context: OpsContext, root: string, request: YankRequest): Promise<YankResult> {
  const { spec, reason, undo } = request;
  const at = spec.lastIndexOf("@");
  const version = at < 0 ? undefined : canonicalVersion(spec.slice(at + 1));
  if (version === undefined) {
    throw fail("usage.version", "yank takes one exact version: waft plugin yank github.com/acme/kv@1.2.3");
  }
  const id = spec.slice(0, at);
  requirePluginId(id);
  const source = new SourceSet(context, root).forId(id);
  if (undo) {
    await source.yank(id, version);
    return { package: id, version, yanked: null, registry: source.name };
  }
  if (reason === undefined) throw fail("usage.reason", "--reason tells users why", { help: "or --undo" });
  const severity = SEVERITIES.find((s) => s === request.severity);
  if (severity === undefined) throw fail("usage.severity", `--severity is one of ${SEVERITIES.join(", ")}`);
  await source.yank(id, version, { reason, severity });
  return { package: id, version, yanked: { reason, severity }, registry: source.name };
}
