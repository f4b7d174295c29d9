/**
 * The external test suites: repository, pinned commit, and location on this machine. In: the table below and the
 * environment. Out: folders. `deno task testsuite` fetches the pinned commits; where their forge cannot be reached, an
 * environment variable names a folder with the same files.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** A pinned suite. */
export interface Suite {
  readonly name: string;
  readonly repository: string;
  /** The pinned commit. */
  readonly commit: string;
  /** Environment variable that names a folder with the suite; it takes precedence over the fetched copy. */
  readonly variable: string;
  /** Folders that are not part of the suite: proposals that the engine does not implement, and tools. */
  readonly omitted: readonly string[];
  /** A file that is present if the suite is. */
  readonly probe: string;
  /** SHA-256 over the suite's scripts: see {@linkcode digestOf}. */
  readonly digest: string;
}

export const SUITES: readonly Suite[] = [
  {
    name: "wasm",
    repository: "https://github.com/WebAssembly/testsuite",
    commit: "193e551ff22663995b1ac95dc62344133669e14b",
    variable: "WASM_TESTSUITE",
    omitted: ["proposals/custom-descriptors", "proposals/custom-page-sizes", "proposals/wide-arithmetic"],
    probe: "i32.wast",
    digest: "de221db6b9c8873b24330ab597e21c7c3942f9206766f29422d71cf17c65ad7f",
  },
];

const FETCHED = fileURLToPath(new URL("../../.cache/suites/", import.meta.url));

/** The suite called `name`. */
export function suiteNamed(name: string): Suite {
  const suite = SUITES.find((row) => row.name === name);
  if (suite === undefined) throw new RangeError(`No suite is called ${name}: ${SUITES.map((row) => row.name).join()}`);
  return suite;
}

/** The folder into which `deno task testsuite` fetches a suite. */
export function fetchedFolder({ name }: Suite): string {
  return join(FETCHED, name);
}

/** The expected folder of a suite on this machine; it need not exist. */
export function suiteFolder(suite: Suite): string {
  return process.env[suite.variable] ?? fetchedFolder(suite);
}

/** Whether the suite is present. */
export function hasSuite(suite: Suite): boolean {
  return existsSync(join(suiteFolder(suite), suite.probe));
}

/** Instructions for getting a missing suite, for messages. */
export function suiteHint({ variable }: Suite): string {
  return `fetch it with deno task testsuite, or set ${variable} to its folder`;
}

/** Names of a suite's scripts below `folder`, sorted. */
export function scriptNames(suite: Suite, folder: string = suiteFolder(suite)): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => name.endsWith(".wast") && !suite.omitted.some((prefix) => name.startsWith(`${prefix}/`)))
    .sort((a, b) => a < b ? -1 : 1);
}

/**
 * SHA-256 over name, length and content of all scripts of a suite, in order: the same for the same commit everywhere.
 */
export function digestOf(suite: Suite, folder: string): string {
  const hash = createHash("sha256");
  for (const name of scriptNames(suite, folder)) {
    const content = readFileSync(join(folder, name));
    hash.update(`${name}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}
