/**
 * The component model's suite as a whole, in either form. In: scripts that a filter accepts. Out: the counts of all
 * commands, with the known failures apart. Invariant: passed + failed + left out is the number of commands.
 */
import { type CommandCounts, type ComponentScriptResult, runComponentScript } from "../../component/script/run.ts";
import type { LinkOptions } from "../../component/component.ts";
import type { ScriptCommand } from "../../component/script/commands.ts";
import { binaryCommands, binaryName, textCommands, textScripts } from "./component_commands.ts";
import { componentScripts } from "./component_suite.ts";

/** Commands that fail, with the reason. The list only shrinks: a command of it that passes is reported. */
export const KNOWN_FAILURES: Readonly<Record<string, string>> = {
  "async-sync-streams:208": "the script expects a second task to start while the first holds the instance exclusively",
  "async-trap-on-reenter:65": "the Canonical ABI allows the call that the script traps; another trap follows",
  "async-trap-on-reenter:86":
    "the Canonical ABI allows calls between parent and child, which the script's 2nd part traps",
  "async-trap-on-reenter:110": "the same in its 3rd part",
};

/** A form of the scripts. */
export type SuiteForm = "text" | "binary";

/** The result of a run. Places are `script:line`, with the script's name as that of its binaries. */
export interface SuiteResult {
  readonly scripts: number;
  readonly kinds: Map<string, CommandCounts>;
  /** Failures that {@linkcode KNOWN_FAILURES} does not list, and entries of that list that pass. */
  readonly failures: string[];
  /** Places of known failures. */
  readonly known: string[];
  readonly left: Map<string, number>;
  readonly otherMessages: string[];
}

const FORMS: Readonly<Record<SuiteForm, { scripts(): string[]; commands(script: string): ScriptCommand[] }>> = {
  text: { scripts: textScripts, commands: textCommands },
  binary: { scripts: componentScripts, commands: binaryCommands },
};

/** Runs the scripts that `takes` accepts. */
export async function runComponentSuite(
  form: SuiteForm,
  takes: (script: string) => boolean = () => true,
  link: LinkOptions = {},
): Promise<SuiteResult> {
  const names = FORMS[form].scripts().filter(takes);
  const result: SuiteResult = {
    scripts: names.length,
    kinds: new Map(),
    failures: [],
    known: [],
    left: new Map(),
    otherMessages: [],
  };
  for (const name of names) {
    const script = form === "text" ? binaryName(name) : name;
    addScript(result, script, await runComponentScript(FORMS[form].commands(name), {}, link));
  }
  return result;
}

function addScript(
  result: SuiteResult,
  script: string,
  { kinds, failures, left, otherMessages }: ComponentScriptResult,
) {
  for (const [kind, counts] of kinds) {
    const sum = result.kinds.get(kind) ?? { passed: 0, failed: 0, left: 0 };
    result.kinds.set(kind, {
      passed: sum.passed + counts.passed,
      failed: sum.failed + counts.failed,
      left: sum.left + counts.left,
    });
  }
  for (const [reason, count] of left) result.left.set(reason, (result.left.get(reason) ?? 0) + count);
  for (const { line, message } of otherMessages) result.otherMessages.push(`${script}:${line}: ${message}`);
  const failed = new Map(failures.map(({ line, message }) => [`${script}:${line}`, message]));
  for (const { line, message } of otherMessages) {
    const place = `${script}:${line}`;
    if (Object.hasOwn(KNOWN_FAILURES, place)) failed.set(place, message);
  }
  for (const [place, message] of failed) {
    if (Object.hasOwn(KNOWN_FAILURES, place)) result.known.push(place);
    else result.failures.push(`${place}: ${message}`);
  }
  for (const place of Object.keys(KNOWN_FAILURES)) {
    if (place.startsWith(`${script}:`) && !failed.has(place)) result.failures.push(`${place} passes now: unlist it`);
  }
}

/** The number of commands by outcome. */
export function sumOfKinds(kinds: ReadonlyMap<string, CommandCounts>): CommandCounts {
  const sum = { passed: 0, failed: 0, left: 0 };
  for (const { passed, failed, left } of kinds.values()) {
    sum.passed += passed;
    sum.failed += failed;
    sum.left += left;
  }
  return sum;
}
