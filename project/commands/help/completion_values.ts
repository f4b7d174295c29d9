/**
 * The values that options and arguments of commands can have, for completions. In: a command and an option or argument.
 * Out: words, a kind of file, or the functions of a program.
 */
import { ALL_FEATURE_ROWS } from "@waft/engine/internal/features";
import { OPTIMIZATION_ROWS } from "@waft/engine/internal/optimizations";
import { TEMPLATES } from "../../ops/project/templates.ts";
import { MACHINE_NAMES } from "../../ops/build/machine_name.ts";

/** The completions of a value. */
export type ValueKind =
  | { readonly kind: "words"; readonly words: readonly string[] }
  /** Files whose names end in one of these, or any file if there are none. */
  | { readonly kind: "files"; readonly endings: readonly string[] }
  | { readonly kind: "directories" }
  /** The functions that `--invoke` can call. */
  | { readonly kind: "exports" }
  | { readonly kind: "nothing" };

const FILES: ValueKind = { kind: "files", endings: [] };
const PROGRAMS: ValueKind = { kind: "files", endings: ["wasm", "wat"] };
const DIRECTORIES: ValueKind = { kind: "directories" };
const NOTHING: ValueKind = { kind: "nothing" };

function words(...list: string[]): ValueKind {
  return { kind: "words", words: list };
}

function switches(rows: readonly { readonly name: string }[]): ValueKind {
  return words(...rows.flatMap(({ name }) => [`${name}=on`, `${name}=off`]));
}

/** By option, and by command and option where it differs. */
const OPTION_VALUES: { readonly [option: string]: ValueKind } = {
  "--adapt": FILES,
  "--bounds": words("guard", "explicit"),
  "--color": words("auto", "always", "never"),
  "--coredump": FILES,
  "--data": DIRECTORIES,
  "--dir": DIRECTORIES,
  "--feature": switches(ALL_FEATURE_ROWS),
  "--firefox": FILES,
  "--invoke": { kind: "exports" },
  "init --kind": words("application", "plugin"),
  "init --template": words(...TEMPLATES.map(({ name }) => name)),
  "self install --kind": words("bundle", "source"),
  "--opt": switches(OPTIMIZATION_ROWS),
  "--out": DIRECTORIES,
  "--output": FILES,
  "types --output": DIRECTORIES,
  "--parallel": words("auto"),
  "--plug": PROGRAMS,
  "--project": DIRECTORIES,
  "--record": FILES,
  "--releases": DIRECTORIES,
  "--runtime": FILES,
  "--severity": words("broken", "security", "other"),
  "--sources": DIRECTORIES,
  "--target": words(...MACHINE_NAMES),
  "--tier": words("auto", "baseline", "optimizing"),
  "--tls-cert": FILES,
  "--tls-key": FILES,
  "--unknown-imports": words("trap"),
  "--wasi": words("all", "none"),
  "--wit": FILES,
  "--workers": words("auto"),
};

/** By command: its first argument. */
const ARGUMENT_VALUES: { readonly [command: string]: ValueKind } = {
  "": PROGRAMS,
  "build": PROGRAMS,
  "compile": PROGRAMS,
  "completion": words("bash", "zsh", "fish", "powershell"),
  "component new": PROGRAMS,
  "compose": PROGRAMS,
  "debug": PROGRAMS,
  "explore": PROGRAMS,
  "parse": { kind: "files", endings: ["wat"] },
  "plugin catalog": PROGRAMS,
  "print": PROGRAMS,
  "profile": PROGRAMS,
  "run": PROGRAMS,
  "serve": PROGRAMS,
  "types": { kind: "files", endings: ["wasm", "wat", "wit"] },
  "validate": PROGRAMS,
  "verify": PROGRAMS,
  "wast": { kind: "files", endings: ["wast"] },
};

/** The values of an option of a command, given by one of its words. */
export function optionValues(command: string, option: string): ValueKind {
  return OPTION_VALUES[`${command} ${option}`] ?? OPTION_VALUES[option] ?? NOTHING;
}

/** The values of the first argument of a command; undefined if they are not known. */
export function argumentValues(command: string): ValueKind | undefined {
  return ARGUMENT_VALUES[command];
}

/** The options that {@linkcode optionValues} knows, with the command of those that differ. */
export const KNOWN_OPTIONS: readonly string[] = Object.keys(OPTION_VALUES);
