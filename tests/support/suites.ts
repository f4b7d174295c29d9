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
  /** The suite's folder in the one that the variable names, which has several suites; absent: that folder itself. */
  readonly within?: string;
  /** True for the tests of a proposal, which `deno task spec` runs after those of the specification. */
  readonly proposal?: true;
  /** Folders that are not part of the suite: proposals, some of which have suites of their own, and tools. */
  readonly omitted: readonly string[];
  /** The scripts of the suite, if the folder has others. */
  readonly only?: readonly string[];
  /** The ending of the scripts' names, if it is not that of the specification's format. */
  readonly form?: ".js";
  /** A script that is present if the suite is. */
  readonly probe: string;
  /** Candidates for the folder of the scripts, relative to the suite's; absent means the suite's folder itself. */
  readonly scripts?: readonly string[];
  /** SHA-256 over the suite's scripts: see {@linkcode digestOf}. */
  readonly digest: string;
}

/** The variable that names the folder with the suites of proposals. */
export const PROPOSALS_VARIABLE = "PROPOSAL_TESTSUITE";

/** The suite of a proposal, in the repository of its name. */
function proposal(row: Pick<Suite, "name" | "commit" | "probe" | "scripts" | "only" | "digest">): Suite {
  const repository = `https://github.com/WebAssembly/${row.name}`;
  return { ...row, repository, variable: PROPOSALS_VARIABLE, within: row.name, proposal: true, omitted: [] };
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
  proposal({
    name: "compact-import-section",
    commit: "baa86dc09c869a4ae7beefa0f2749335502a8668",
    probe: "imports-compact.wast",
    scripts: ["test/core/compact-import-section"],
    digest: "abaf05f1593f04f3e3a30471cfe315b9f15b25f73cc54e26939f501ff73c1b2a",
  }),
  proposal({
    name: "wide-arithmetic",
    commit: "5d5f2c8ec75252569659e373c93a29c57b508b10",
    probe: "wide-arithmetic.wast",
    scripts: ["test/core"],
    only: ["wide-arithmetic.wast"],
    digest: "89d881c59cca9b3a2b8035421179d9e27add492032b27e6c33457cf2430e1246",
  }),
  proposal({
    name: "custom-page-sizes",
    commit: "b0de0e93a1f0af0c290f074195d2aed26cd5234c",
    probe: "custom-page-sizes.wast",
    scripts: ["test/core/custom-page-sizes"],
    digest: "20596e7ae43ae324ffdff10b1c0f443ef17d47b59133214ccada3e63b3ac79e0",
  }),
  proposal({
    name: "stack-switching",
    commit: "c5f2622c776dcd20e36badf6a2fe972f4180e47c",
    probe: "cont.wast",
    scripts: ["test/core/stack-switching"],
    digest: "ce25802f7651250e11be2e4a39285e7f9fccfe5b22adcabd3e86601dccd63b71",
  }),
  proposal({
    name: "custom-descriptors",
    commit: "b7b4a91ed933aa4653a09d09311f9c39f3195112",
    probe: "descriptors.wast",
    scripts: ["test/core/custom-descriptors"],
    digest: "d688980c01e78781b1023019b4075f7c6afe26c115a00146c069445dfb95b08f",
  }),
  {
    ...proposal({
      name: "acquire-release-atomics",
      commit: "2b1d87ef3af1256acdabb28cd43600d90069f219",
      probe: "relaxed-atomics.wast",
      scripts: ["test/core/relaxed-atomics"],
      digest: "1e4ace725a4d4497b5f74041368830a63a2a7124aa50903475ad2045392209a0",
    }),
    repository: "https://github.com/WebAssembly/relaxed-atomics",
    within: "relaxed-atomics",
  },
  {
    ...proposal({
      name: "js-types",
      commit: "6c14e269876a47b24bd99d470ea78f7a0b244b1e",
      probe: "function/constructor.tentative.any.js",
      scripts: ["test/js-api"],
      digest: "4f017a3b9302b25a6ce755cee2efce5451b1f18a0f5b89b2ee0736213c0271f4",
    }),
    form: ".js",
  },
];

/** The suites that are scripts in the specification's format: its own, and those of proposals. */
const SPEC_SUITES = SUITES.filter(({ name, proposal, form }) => form === undefined && (name === "wasm" || proposal));

const FETCHED = fileURLToPath(new URL("../../.cache/suites/", import.meta.url));

/** The suite called `name`. */
export function suiteNamed(name: string): Suite {
  const suite = SUITES.find((row) => row.name === name);
  if (suite === undefined) throw new RangeError(`No suite is called ${name}: ${SUITES.map((row) => row.name).join()}`);
  return suite;
}

/** The folder with the suites of proposals on this machine; it need not exist. */
export function proposalsFolder(): string {
  return process.env[PROPOSALS_VARIABLE] ?? FETCHED;
}

/** The folder into which `deno task testsuite` fetches a suite. */
export function fetchedFolder({ name }: Suite): string {
  return join(FETCHED, name);
}

/** The expected folder of a suite on this machine; it need not exist. */
export function suiteFolder(suite: Suite): string {
  const named = process.env[suite.variable];
  return named === undefined ? fetchedFolder(suite) : join(named, suite.within ?? ".");
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
    .filter((name) => name.endsWith(suite.form ?? ".wast") && (suite.only?.includes(name) ?? true))
    .filter((name) => !suite.omitted.some((prefix) => name.startsWith(`${prefix}/`)))
    .sort((a, b) => a < b ? -1 : 1);
}

/** A script that `deno task spec` runs: its name, that of a proposal's begins with the suite's, and its file. */
export interface SpecScript {
  readonly name: string;
  readonly path: string;
}

/** The scripts of the specification's suite and of the proposals' suites on this machine. */
export function specScripts(): SpecScript[] {
  return SPEC_SUITES.filter((suite) => hasSuite(suite)).flatMap((suite) =>
    scriptNames(suite).map((name) => ({
      name: suite.proposal ? `${suite.name}/${name}` : name,
      path: join(scriptFolder(suite), name),
    }))
  );
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
