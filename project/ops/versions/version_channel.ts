/**
 * The channel of a version of waft. In: a version's name, the receipt of an installed one, or this program. Output:
 * `canary`, `nightly`, `official`, or `source` for a build from a checkout, which has a version's name but is not a
 * release.
 */
import { join, sep } from "node:path";
import process from "node:process";
import type { MachinePaths } from "../../base/paths.ts";
import { readReceipt, type Receipt } from "../../versions/version_store.ts";
import { VERSION } from "../../base/version_string.ts";

/** A channel of releases, or `source`. */
export type Channel = "canary" | "nightly" | "official" | "source";

/** The channel of a release. */
export function channelOf(version: string): Exclude<Channel, "source"> {
  return /-canary\b/.test(version) ? "canary" : /-nightly\b/.test(version) ? "nightly" : "official";
}

/** The channel of an installed version. A release that was built here has the release's commit, a checkout has none. */
export function channelOfReceipt({ version, kind, commit }: Receipt): Channel {
  return kind === "source" && commit === "" ? "source" : channelOf(version);
}

/** The channel of this program. */
export async function runningChannel(paths: MachinePaths): Promise<Channel> {
  if (/^file:.*\.ts$/.test(import.meta.url)) return "source";
  const receipt = process.execPath.startsWith(join(paths.versions, VERSION) + sep)
    ? await readReceipt(paths, VERSION)
    : undefined;
  return receipt === undefined ? channelOf(VERSION) : channelOfReceipt(receipt);
}
