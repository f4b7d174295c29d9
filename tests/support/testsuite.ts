/**
 * The specification's test suite for tests: its folder (suites.ts), whether it is present, and its scripts. A test that
 * needs it is ignored, with the reason in its name, when it is absent.
 */
import { hasSuite, specScripts, suiteFolder, suiteHint, suiteNamed } from "./suites.ts";

const SUITE = suiteNamed("wasm");

/** The suite's folder; it need not exist. */
export const TESTSUITE: string = suiteFolder(SUITE);

/** Whether the suite is present. */
export const HAS_TESTSUITE: boolean = hasSuite(SUITE);

/** A suffix for the names of tests that need the suite. */
export const NEEDS_TESTSUITE: string = HAS_TESTSUITE ? "" : ` (needs the specification's suite: ${suiteHint(SUITE)})`;

/** Paths of all scripts of the suite, and of the suites of proposals on this machine. */
export function suiteScripts(): string[] {
  return specScripts().map(({ path }) => path);
}
