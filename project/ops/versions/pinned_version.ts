/**
 * The version of waft that a project pins: `package.engines.waft` of the nearest `waft.json`.
 *
 * In: a directory, the running version, the machine's directories. Out: undefined, another installed version to
 * start instead, or a ProjectError (exit 9) that names the range and the version to install. A manifest that cannot be
 * read, or that other users could have written, is left to the command, which reports it with its position. Nothing
 * heavy is loaded unless the project pins another version.
 */
import { fail, ProjectError, quote } from "../../base/diagnostic.ts";
import type { MachinePaths } from "../../base/paths.ts";
import { askedRange, nearestManifest } from "./asked_range.ts";

/** Commands that are about waft itself, so that they work in every project. */
const OWN = new Set(["version", "self", "init", "help", "registry"]);

/**
 * The installed version to start instead of this one; undefined when this one satisfies the range, or was chosen by the
 * user.
 */
export async function pinnedVersion(
  start: string,
  args: readonly string[],
  running: string,
  paths: MachinePaths,
  env: { readonly [name: string]: string | undefined },
): Promise<{ readonly version: string; readonly range: string; readonly file: string } | undefined> {
  const command = args.find((arg) => !arg.startsWith("-"));
  if (command === undefined || OWN.has(command) || (env.WAFT_RUNTIME ?? "") !== "") return undefined;
  const asked = askedOf(start);
  if (asked === undefined) return undefined;
  const [{ installedVersions }, { explainRange, engineSatisfies }] = await Promise.all([
    import("../../versions/version_store.ts"),
    import("../../base/version.ts"),
  ]);
  if (explainRange(asked.range) !== undefined || engineSatisfies(running, asked.range)) return undefined;
  const fitting = (await installedVersions(paths)).filter((r) => engineSatisfies(r.version, asked.range));
  if (fitting.length > 0) return { version: fitting.at(-1)!.version, ...asked };
  throw fail("incompatible.engine", `this project asks for waft ${quote(asked.range)}; ${running} is running`, {
    file: asked.file,
    help:
      "install a version that fits (`waft version install <version>`), or choose one for this call with `waft +<version>`",
  });
}

/** The range that the project asks for; nothing where the project must not be used, which the command reports. */
function askedOf(start: string): ReturnType<typeof askedRange> {
  try {
    return askedRange(nearestManifest(start));
  } catch (error) {
    if (error instanceof ProjectError) return undefined;
    throw error;
  }
}
