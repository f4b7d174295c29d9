/**
 * The keys that this waft trusts for release indexes.
 *
 * In: `release-keys.json` beside the program (every bundle has one, so trust in a release extends to the keys it
 * names), or the file that WAFT_RELEASE_KEYS names, for mirrors and for running from source. Out: the keys, or a
 * ProjectError if there are none: an index is never used unverified. Keys are rotated by a release that names new keys
 * and is still signed by old ones.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { fail } from "../base/diagnostic.ts";
import { parseReleaseKeys, type ReleaseKeys } from "./release_index.ts";

/** Beside this module in a bundle. */
const OWN = new URL("./release-keys.json", import.meta.url);

/** The trusted keys. */
export function trustedReleaseKeys(env: { readonly [name: string]: string | undefined }): ReleaseKeys {
  const file = env.WAFT_RELEASE_KEYS || fileURLToPath(OWN);
  const none = fail("signature.keys", "this build of waft has no release keys", {
    file,
    help: "it was built from source: use a released waft, or name a key file with WAFT_RELEASE_KEYS",
  });
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file);
  } catch {
    throw none;
  }
  // A bundle that was made of a checkout.
  if (/"keys":\s*\[\s*\]/.test(new TextDecoder().decode(bytes))) throw none;
  return parseReleaseKeys(bytes, file);
}
