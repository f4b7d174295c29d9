/**
 * Validity against the host's `WebAssembly.validate`: every module of the suite, and mutants with a few bytes changed
 * by a seeded generator. Answers may differ only where the host has its own limits.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { decodeModule } from "../../engine/binary/decode.ts";
import { WaftError } from "../../engine/base/errors.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { type Command, parseScript } from "../../engine/text/script.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { HAS_TESTSUITE, NEEDS_TESTSUITE, suiteScripts } from "../support/testsuite.ts";

const MUTANTS = 30_000;
/** The host's messages for its own limits, and for proposals that it does not enable. */
const HOST_LIMIT = /implementation limit|mix of legacy and new exception|enable with --experimental-wasm/;
/** V8 accepts any reference as the second operand of `ref.eq` if the first comes from unreachable code. */
const ACCEPTED_BY_HOST = /requires \[eqref eqref\] but stack has \[\.\.\. [^ ]+\] \(ref\.eq /;

interface Sample {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

function samplesOf(path: string): Sample[] {
  const samples: Sample[] = [];
  const collect = (command: Command) => {
    if (command.kind === "thread") command.commands.forEach(collect);
    if (!("module" in command) || typeof command.module !== "object") return;
    try {
      samples.push({ name: `${basename(path)}:${command.line}`, bytes: command.module.encode().slice() });
    } catch (error) {
      if (!(error instanceof WaftError)) throw error;
    }
  };
  parseScript(readFileSync(path)).forEach(collect);
  return samples;
}

/** Our verdict: undefined if valid, else the error's text. Errors other than WaftError are crashes and propagate. */
function verdict(bytes: Uint8Array): string | undefined {
  try {
    validateModule(decodeModule(bytes), featureSet());
    return undefined;
  } catch (error) {
    if (error instanceof WaftError) return `${error.name}: ${error.message} ${error.where}`;
    throw error;
  }
}

function difference(bytes: Uint8Array<ArrayBuffer>): string | undefined {
  const ours = verdict(bytes);
  const isValid = WebAssembly.validate(bytes);
  if (isValid === (ours === undefined)) return undefined;
  if (isValid) return ACCEPTED_BY_HOST.test(ours!) ? undefined : ours;
  try {
    new WebAssembly.Module(bytes);
    return "accepted by waft, not by the host";
  } catch (error) {
    return HOST_LIMIT.test(String(error)) ? undefined : String(error);
  }
}

/** A linear congruential generator: the same numbers on every run. */
function generator(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
}

/**
 * Changes one to three bytes after the header: to a random value, by one bit, by a small difference, or to another
 * byte.
 */
function mutate(bytes: Uint8Array<ArrayBuffer>, random: (below: number) => number): Uint8Array<ArrayBuffer> {
  const mutant = bytes.slice();
  for (let changes = 1 + random(3); changes > 0; changes--) {
    const at = 8 + random(mutant.length - 8);
    const choices = [random(256), mutant[at] ^ (1 << random(8)), mutant[at] + random(5) - 2];
    mutant[at] = choices[random(4)] ?? mutant[8 + random(mutant.length - 8)];
  }
  return mutant;
}

Deno.test({
  name: `validity agrees with the host's for the suite's modules and ${MUTANTS} mutants${NEEDS_TESTSUITE}`,
  ignore: !HAS_TESTSUITE,
  fn() {
    const samples = suiteScripts().flatMap(samplesOf);
    assert.ok(samples.length > 5000, `${samples.length}`);
    const differences: string[] = [];
    const compare = (name: string, bytes: Uint8Array<ArrayBuffer>) => {
      const found = difference(bytes);
      if (found !== undefined) differences.push(`${name}: ${found}`);
    };
    for (const { name, bytes } of samples) compare(name, bytes);
    const small = samples.filter(({ bytes }) => bytes.length > 8 && bytes.length < 4000);
    const random = generator(20);
    for (let i = 0; i < MUTANTS; i++) {
      const { name, bytes } = small[random(small.length)];
      compare(`${name} mutant ${i}`, mutate(bytes, random));
    }
    assert.deepEqual(differences, []);
  },
});
