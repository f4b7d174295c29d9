/**
 * Decoding and validation according to the specification suite: every module that a script defines decodes and
 * validates; every assert_malformed and assert_invalid is rejected at the proper stage, with a message that contains
 * the suite's message, as in the reference interpreter.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { InvalidError, MalformedError, type WaftError } from "../../engine/base/errors.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { OTHER_MESSAGES } from "../../engine/script/match.ts";
import { type Command, parseScript, type ScriptModule } from "../../engine/text/script.ts";
import { validateBranchHints } from "../../engine/validate/branch_hints.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { HAS_TESTSUITE, NEEDS_TESTSUITE, suiteScripts, TESTSUITE } from "../support/testsuite.ts";

/**
 * The threads proposal's scripts predate these features and expect errors without them ("multiple memories"). They also
 * predate limits beyond 32 bits, which are well-formed but invalid: there an InvalidError is accepted for a
 * MalformedError.
 */
const THREADS_FEATURES = featureSet({ "multi-memory": false, "reference-types": false });
const FEATURES = featureSet({ "custom-page-sizes": true, "acquire-release-atomics": true });
/** The specification's own scripts expect errors for tags with results. */
const STACK_FEATURES = featureSet({ "stack-switching": true });
/** They also expect errors for casts to types that are no subtypes. */
const DESCRIPTOR_FEATURES = featureSet({ "custom-descriptors": true });

/** The numbers of judged commands, which detect scripts whose commands are all skipped. */
interface Counts {
  accepted: number;
  rejected: number;
}

function featuresFor(name: string): typeof FEATURES {
  if (name.startsWith(join("proposals", "threads"))) return THREADS_FEATURES;
  if (name.includes("custom-descriptors")) return DESCRIPTOR_FEATURES;
  return name.includes("stack-switching") ? STACK_FEATURES : FEATURES;
}

class Judge {
  readonly counts: Counts = { accepted: 0, rejected: 0 };
  readonly complaints: string[] = [];
  readonly #features: typeof FEATURES;

  constructor(features: typeof FEATURES) {
    this.#features = features;
  }

  judge(command: Command): void {
    switch (command.kind) {
      case "module":
      case "definition":
      case "assert_unlinkable":
      case "assert_trap_module":
        return this.#accepts(command.module, command.line);
      case "assert_malformed":
      case "assert_malformed_custom":
        return this.#rejects(command.module, command.line, MalformedError, command.message);
      case "assert_invalid":
      case "assert_invalid_custom":
        return this.#rejects(command.module, command.line, InvalidError, command.message);
      case "thread":
        return command.commands.forEach((inner) => this.judge(inner));
    }
  }

  #validate(module: ScriptModule): void {
    validateBranchHints(validateModule(module.parse(), this.#features));
  }

  #accepts(module: ScriptModule, line: number): void {
    this.counts.accepted++;
    try {
      this.#validate(module);
    } catch (error) {
      this.complaints.push(`${line}: should be valid: ${error}`);
    }
  }

  #rejects(module: ScriptModule, line: number, kind: typeof MalformedError | typeof InvalidError, words: string): void {
    this.counts.rejected++;
    try {
      this.#validate(module);
    } catch (error) {
      const isKind = error instanceof kind || (this.#features === THREADS_FEATURES && error instanceof InvalidError);
      const { message } = error as Error;
      const fits = isKind && (message.includes(words) || message.includes(OTHER_MESSAGES.get(words) ?? words));
      if (!fits) this.complaints.push(`${line}: should be ${kind.name} "${words}": ${error}`);
      if (fits && (error as WaftError).where === "") this.complaints.push(`${line}: has no position: ${error}`);
      return;
    }
    this.complaints.push(`${line}: should be ${kind.name} "${words}", was accepted`);
  }
}

if (!HAS_TESTSUITE) {
  Deno.test({ name: `modules are accepted or rejected as the suite expects${NEEDS_TESTSUITE}`, ignore: true, fn() {} });
} else {
  const total: Counts = { accepted: 0, rejected: 0 };
  for (const path of suiteScripts()) {
    const name = relative(TESTSUITE, path);
    Deno.test(`modules of ${name} are accepted or rejected as the suite expects`, () => {
      const judge = new Judge(featuresFor(name));
      for (const command of parseScript(readFileSync(path))) judge.judge(command);
      total.accepted += judge.counts.accepted;
      total.rejected += judge.counts.rejected;
      assert.deepEqual(judge.complaints, []);
    });
  }
  Deno.test("the suite has thousands of valid and of invalid modules", () => {
    assert.ok(total.accepted > 1500, `${total.accepted} accepted`);
    assert.ok(total.rejected > 3500, `${total.rejected} rejected`);
  });
}
