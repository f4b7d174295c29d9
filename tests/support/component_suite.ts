/**
 * The component model's test suite: its scripts as binaries with commands, as `wasm-tools json-from-wast` writes them. In:
 * the folder of the suite (suites.ts), which may lack the binaries. Out: every command of every script, counted by kind as
 * passed, failed or left out with a reason.
 *
 * Invariant: passed + failed + left out is the number of commands.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeComponent } from "../../component/binary/decode.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import { InvalidError, MalformedError } from "../../engine/errors.ts";
import { hasSuite, suiteFolder, suiteHint, suiteNamed } from "./suites.ts";

const SUITE = suiteNamed("components");
const BINARIES = join(suiteFolder(SUITE), "json");

/** Whether the suite is present with its binaries. */
export const HAS_COMPONENT_BINARIES: boolean = hasSuite(SUITE) && existsSync(BINARIES);

/** A suffix for the names of tests that need the binaries. */
export const NEEDS_COMPONENT_BINARIES: string = HAS_COMPONENT_BINARIES
  ? ""
  : ` (needs the component model's suite with the folder json: ${suiteHint(SUITE)})`;

/** A command of a script. */
interface ScriptCommand {
  readonly type: string;
  readonly line: number;
  readonly filename?: string;
  readonly module_type?: string;
  readonly text?: string;
}

/** The outcome of a command: passed, the reason of its failure, or the reason for which it was left out. */
type Outcome = { readonly failure?: string; readonly left?: string };

/** Counts of the commands of one kind. */
interface CommandCounts {
  passed: number;
  failed: number;
  left: number;
}

/** The counts of a run by kind of command, its failures, and the number of commands left out by reason. */
interface SuiteResult {
  readonly kinds: Map<string, CommandCounts>;
  readonly failures: string[];
  readonly left: Map<string, number>;
  /** Rejections whose message differs from the script's, which names that of another implementation. */
  readonly messages: string[];
}

/** Names of the scripts, without extension, sorted. */
export function componentScripts(): string[] {
  return readdirSync(BINARIES).filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -5)).sort();
}

/** The commands of a script. */
export function commandsOf(script: string): ScriptCommand[] {
  return (JSON.parse(readFileSync(join(BINARIES, `${script}.json`), "utf8")) as { commands: ScriptCommand[] }).commands;
}

/** The bytes of a file that a command of `script` names. */
export function commandBytes(script: string, filename: string): Uint8Array {
  return new Uint8Array(readFileSync(join(BINARIES, script, filename)));
}

/** Runs the scripts that `takes` accepts. */
export function runComponentScripts(takes: (script: string) => boolean = () => true): SuiteResult {
  const result: SuiteResult = { kinds: new Map(), failures: [], left: new Map(), messages: [] };
  for (const script of componentScripts().filter(takes)) {
    for (const command of commandsOf(script)) count(result, script, command);
  }
  return result;
}

function count(result: SuiteResult, script: string, command: ScriptCommand): void {
  const counts = result.kinds.get(command.type) ?? { passed: 0, failed: 0, left: 0 };
  result.kinds.set(command.type, counts);
  const { failure, left } = runCommand(result, script, command);
  if (left !== undefined) {
    counts.left++;
    result.left.set(left, (result.left.get(left) ?? 0) + 1);
  } else if (failure === undefined) counts.passed++;
  else {
    counts.failed++;
    result.failures.push(`${script}:${command.line}: ${command.type}: ${failure}`);
  }
}

function runCommand(result: SuiteResult, script: string, command: ScriptCommand): Outcome {
  const { type, filename, module_type, text = "" } = command;
  if (filename === undefined) return { left: "needs instantiation" };
  const content = commandBytes(script, filename);
  const error = rejectionOf(() => module_type === "text" ? componentToBinary(content) : content);
  switch (type) {
    case "module":
    case "module_definition":
      return error === undefined ? {} : { failure: `${error.name}: ${error.message}` };
    case "assert_invalid":
    case "assert_malformed": {
      const wanted = type === "assert_invalid" ? InvalidError : MalformedError;
      if (error === undefined) return { failure: `accepted, although ${text}` };
      if (!(error instanceof wanted)) return { failure: `${error.name} in place of ${wanted.name}: ${error.message}` };
      if (!error.message.includes(text)) result.messages.push(`${script}:${command.line}: ${text} | ${error.message}`);
      return {};
    }
    case "assert_uninstantiable":
      return error === undefined ? { left: "needs instantiation" } : { failure: `${error.name}: ${error.message}` };
    default:
      return { failure: `unknown command ${type}` };
  }
}

/** The error with which a component is rejected; undefined if it is valid. Any other error propagates. */
function rejectionOf(bytes: () => Uint8Array): Error | undefined {
  try {
    validateComponent(decodeComponent(bytes()));
    return undefined;
  } catch (error) {
    if (error instanceof InvalidError || error instanceof MalformedError) return error;
    throw error;
  }
}
