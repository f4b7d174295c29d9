/**
 * The baseline tier covers every instruction: no body of a generated module goes to the optimizing compiler, whatever
 * the processor can do. (The build of the opcode table fails for an instruction without a kind.)
 */
import assert from "node:assert/strict";
import { fromBase64 } from "../../engine/base/base64.ts";
import { compileBodies } from "../../engine/baseline/compile_bodies.ts";
import { OPCODE_TABLE } from "../../engine/baseline/generated/opcode_table.ts";
import * as layout from "../../engine/baseline/kernel/layout.ts";
import * as operations from "../../engine/baseline/kernel/operations.ts";
import { withKernel } from "../../engine/baseline/kernel_forms.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { MachineCode } from "../../engine/codegen/machine_code.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { moduleInterface } from "../../engine/translate/module_interface.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { COMPILED_FEATURES } from "../fuzz/compare.ts";
import { generateModules } from "../fuzz/generate_module.ts";
import { hidingFeatures } from "../vector/hiding_features.ts";

const CPU_FEATURES = ["popcnt", "bmi1", "bmi2", "lzcnt"];

/** Compiles a module without any optional processor feature; returns the number of bodies and those not covered. */
function compile(binary: Uint8Array) {
  const features = featureSet();
  const valid = validateModule(decodeModule(binary), features, { bodies: false });
  const { layout, signatures } = moduleInterface(valid);
  const code = new MachineCode(valid.funcs.length, signatures.length);
  const options = {
    ...codeSettings(),
    stackFence: true,
    cpu: new Set<string>(),
    features,
    constants: 0,
  };
  const uncovered = withKernel("x64", (kernel) => compileBodies(kernel, valid, layout, options, code));
  return { bodies: valid.funcs.length, uncovered, features: valid.usedFeatures };
}

Deno.test("the baseline tier covers all bodies of generated modules", () => {
  let bodies = 0;
  const used = new Set<string>();
  for (let seed = 0; seed < 200; seed++) {
    for (const binary of generateModules(seed, COMPILED_FEATURES)) {
      const result = compile(binary);
      assert.deepEqual(result.uncovered, [], `seed ${seed}`);
      bodies += result.bodies;
      for (const name of result.features.keys()) used.add(name);
    }
  }
  assert(bodies > 500, `only ${bodies} bodies`);
  for (const name of ["gc", "simd", "threads", "exception-handling"]) assert(used.has(name), `${name} is not tested`);
});

Deno.test("the scan ahead of a compilation ignores no instruction that it looks for", () => {
  const table = fromBase64(OPCODE_TABLE);
  const names = ["LOCAL_GET", "LOCAL_SET", "LOCAL_TEE", "BLOCK", "LOOP", "IF", "TRY_TABLE", "TRY", "END", "DELEGATE"];
  names.push("RETHROW", "THROW", "THROW_REF", "CALL", "CALL_INDIRECT", "CALL_REF", "RETURN_CALL");
  names.push(
    "RETURN_CALL_INDIRECT",
    "RETURN_CALL_REF",
    "SUSPEND",
    "RESUME",
    "RESUME_THROW",
    "RESUME_THROW_REF",
    "SWITCH",
  );
  const kinds = new Map(names.map((name) => [operations[`KIND_${name}` as keyof typeof operations], name]));
  const found = new Set<string>();
  for (let row = layout.OPCODE_ROWS - layout.OPCODES; row < table.length; row += layout.OPCODE_ROW) {
    const name = kinds.get(table[row + layout.ROW_KIND]);
    if (name === undefined) continue;
    found.add(name);
    assert.equal(table[row + layout.ROW_OPERANDS], layout.SPECIAL, name);
  }
  assert.deepEqual([...found].sort(), names.sort());
});

Deno.test("baseline code counts bits without the instruction for it", () => {
  const text = `(module
    (func (export "i32") (param i32 i32 i32) (result i32)
      (i32.add (i32.popcnt (i32.add (local.get 0) (local.get 1))) (i32.popcnt (local.get 2))))
    (func (export "i64") (param i64 i64 i64) (result i64)
      (i64.add (i64.popcnt (i64.add (local.get 0) (local.get 1))) (i64.popcnt (local.get 2)))))`;
  const count = (x: bigint) => x.toString(2).replaceAll("0", "").length;
  hidingFeatures(CPU_FEATURES, () => {
    const { exports } = NewEngine({ tier: "baseline" }).compile(text).instantiate();
    const [of32, of64] = ["i32", "i64"].map((name) => exports[name] as (...args: unknown[]) => unknown);
    for (const x of [0n, 1n, 0x80000000n, 0xffffffffn, 0x8000000000000000n, 0xffffffffffffffffn, 0x123456789abcdefn]) {
      for (const y of [0n, 0xffn, 0xf0f0f0f0f0f0f0f0n]) {
        const low = (v: bigint) => Number(BigInt.asIntN(32, v));
        assert.equal(of32(low(x), low(y), low(x)), count(BigInt.asUintN(32, x + y)) + count(BigInt.asUintN(32, x)));
        assert.equal(of64(x, y, x), BigInt(count(BigInt.asUintN(64, x + y)) + count(x)));
      }
    }
  });
});
