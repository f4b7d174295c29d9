/**
 * The opcodes that the generator of the fuzzer writes, against the opcode table: an opcode that no generated module has
 * is listed here with the reason.
 */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";
import { OPCODES } from "../../engine/wasm/opcodes.ts";
import { GENERATED_FEATURES, GENERATED_PROPOSALS, generateModules } from "./generate_module.ts";
import { opcodesOf } from "./opcodes.ts";

/** Seeds per forced feature; each opcode occurs in many of them. */
const SEEDS = 60;

/** Opcodes that are not generated, by feature or mnemonic. */
const NOT_GENERATED: Readonly<Record<string, string>> = {
  "custom-descriptors": "V8 lacks the current encoding; tests/features/custom_descriptors_test.ts has a model",
  "stack-switching": "tests/features/stack_switching_random_test.ts has a generator of its own",
};

const engine = NewEngine({ features: Object.fromEntries(GENERATED_PROPOSALS.map((name) => [name, true])) });

/** The number of generated modules that have each opcode. */
function countOpcodes(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const feature of [...GENERATED_FEATURES, ...GENERATED_PROPOSALS]) {
    for (let seed = 0; seed < SEEDS; seed++) {
      const found = new Set(
        generateModules(seed, GENERATED_FEATURES, [feature]).flatMap((bytes) => [...opcodesOf(engine.parse(bytes))]),
      );
      for (const name of found) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return counts;
}

Deno.test("every opcode is generated, or listed with the reason", () => {
  const counts = countOpcodes();
  const missing = OPCODES.filter(({ mnemonic }) => !counts.has(mnemonic));
  const unlisted = missing.filter(({ mnemonic, feature }) => !(mnemonic in NOT_GENERATED || feature in NOT_GENERATED));
  assert.deepEqual(unlisted.map(({ mnemonic }) => mnemonic), []);
  const stale = Object.keys(NOT_GENERATED).filter((name) =>
    !missing.some(({ mnemonic, feature }) => mnemonic === name || feature === name)
  );
  assert.deepEqual(stale, [], "these are generated");
});
