/**
 * jco from npm. In: the pinned version. Out: .cache/jco with the packages installed; files that jco transpiles are
 * written there, too, so that they find the packages.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const JCO_VERSION = "1.35.0";

/** The folder of jco's packages and of files that need them. */
export const JCO_CACHE: string = fileURLToPath(new URL("../.cache/jco", import.meta.url));

/** The package of jco. */
export const JCO: string = join(JCO_CACHE, "node_modules", "@bytecodealliance", "jco");

/** Installs jco with npm unless it is there. Throws an Error if that fails. */
export function fetchJco(): void {
  if (existsSync(JCO)) return;
  mkdirSync(JCO_CACHE, { recursive: true });
  const args = ["install", "--prefix", JCO_CACHE, `@bytecodealliance/jco@${JCO_VERSION}`];
  if (spawnSync("npm", args, { stdio: "inherit" }).status !== 0) throw new Error("npm could not install jco");
}
