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
  /** A script that is present if the suite is. */
  readonly probe: string;
  /** Candidates for the folder of the scripts, relative to the suite's; absent means the suite's folder itself. */
  readonly scripts?: readonly string[];
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
  {
    name: "components",
    repository: "https://github.com/WebAssembly/component-model",
    commit: "6d281648bd89caf885a7adcc412962dbd2425ab7",
    variable: "COMPONENT_TESTSUITE",
    omitted: [],
    probe: "binary/binary.wast",
    scripts: ["suite", "test"],
    digest: "e3b300c25fa6c82c6e602ffdf4dc17c7b73cda03144239b121a765ab4ef7978c",
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

/** The folder of a suite's scripts below `folder`; it need not exist. */
export function scriptFolder(suite: Suite, folder: string = suiteFolder(suite)): string {
  const candidates = (suite.scripts ?? ["."]).map((name) => join(folder, name));
  return candidates.find((path) => existsSync(path)) ?? candidates[0];
}

/** Whether the suite is present in `folder`. */
export function hasSuite(suite: Suite, folder: string = suiteFolder(suite)): boolean {
  return existsSync(join(scriptFolder(suite, folder), suite.probe));
}

/** Instructions for getting a missing suite, for messages. */
export function suiteHint({ variable }: Suite): string {
  return `fetch it with deno task testsuite, or set ${variable} to its folder`;
}

/** Names of a suite's scripts, relative to {@linkcode scriptFolder}, sorted. */
export function scriptNames(suite: Suite, folder: string = suiteFolder(suite)): string[] {
  return readdirSync(scriptFolder(suite, folder), { recursive: true, encoding: "utf8" })
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
    const content = readFileSync(join(scriptFolder(suite, folder), name));
    hash.update(`${name}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}
