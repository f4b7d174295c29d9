/**
 * The component model's test suite as binaries with commands, as `wasm-tools json-from-wast` writes them. In: the
 * folder of the suite (suites.ts), which may lack the binaries. Out: the commands of its scripts, and the files that
 * they name.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hasSuite, suiteFolder, suiteHint, suiteNamed } from "./suites.ts";

const SUITE = suiteNamed("components");
const BINARIES = join(suiteFolder(SUITE), "json");

/** Whether the suite is present in text form. */
export const HAS_COMPONENT_SUITE: boolean = hasSuite(SUITE);

/** A suffix for the names of tests that need the suite in text form. */
export const NEEDS_COMPONENT_SUITE: string = HAS_COMPONENT_SUITE
  ? ""
  : ` (needs the component model's suite: ${suiteHint(SUITE)})`;

/** Whether the suite is present with its binaries. */
export const HAS_COMPONENT_BINARIES: boolean = HAS_COMPONENT_SUITE && existsSync(BINARIES);

/** A suffix for the names of tests that need the binaries. */
export const NEEDS_COMPONENT_BINARIES: string = HAS_COMPONENT_BINARIES
  ? ""
  : ` (needs the component model's suite with a folder json, which wasm-tools json-from-wast fills)`;

/** A typed value of a script. */
export interface JsonValue {
  readonly type: string;
  readonly value?: unknown;
}

/** A command of a script. */
export interface JsonCommand {
  readonly type: string;
  readonly line: number;
  readonly name?: string;
  readonly filename?: string;
  readonly module_type?: string;
  readonly text?: string;
  readonly instance?: string;
  readonly module?: string;
  readonly action?: { readonly module?: string; readonly field: string; readonly args: readonly JsonValue[] };
  readonly expected?: readonly JsonValue[];
}

/** Names of the scripts, without extension, sorted. */
export function componentScripts(): string[] {
  return readdirSync(BINARIES).filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -5)).sort();
}

/** The commands of a script. */
export function commandsOf(script: string): JsonCommand[] {
  return (JSON.parse(readFileSync(join(BINARIES, `${script}.json`), "utf8")) as { commands: JsonCommand[] }).commands;
}

/** The bytes of a file that a command of `script` names. */
export function commandBytes(script: string, filename: string): Uint8Array {
  return new Uint8Array(readFileSync(join(BINARIES, script, filename)));
}
