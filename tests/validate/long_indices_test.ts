/**
 * Indices that take more bytes than they need: no validator takes the last of them for an instruction. A second byte of
 * 0 would be `unreachable`, behind which operands have any type.
 */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";
import { parseModule } from "../../engine/text/parse_module.ts";

/** Instructions with index 0, in bodies without a value of the function's result. */
const INSTRUCTIONS = [
  { text: "(local.get 0) (drop)", opcode: 0x20 },
  { text: "(i32.const 1) (local.set 0)", opcode: 0x21 },
  { text: "(i32.const 1) (local.tee 0) (drop)", opcode: 0x22 },
  { text: "(global.get 0) (drop)", opcode: 0x23 },
  { text: "(i32.const 1) (global.set 0)", opcode: 0x24 },
  { text: "(call 0)", opcode: 0x10 },
];
/** So many that validators read the instructions before them in a quick way. */
const REST = 40;

/** A function with an instruction whose index takes two bytes, and no result unless `isValid`. */
function moduleOf({ text, opcode }: (typeof INSTRUCTIONS)[number], isValid: boolean): Uint8Array {
  const { bytes } = parseModule(`(module (func) (global (mut i32) (i32.const 0))
    (func (param i32) (result f64) ${text} ${isValid ? "(f64.const 1)" : ""} ${"(nop)".repeat(REST)}))`);
  const body = bytes.length - REST - 1 - (isValid ? 9 : 0);
  const at = bytes.lastIndexOf(opcode, body);
  assert.deepEqual([bytes[at], bytes[at + 1]], [opcode, 0]);
  const size = bytes.lastIndexOf(0x0b, at) + 1;
  const longer = [...bytes.subarray(0, at + 1), 0x80, 0x00, ...bytes.subarray(at + 2)];
  // The sizes of the body and of the code section, which take a byte each, count the new byte.
  longer[size]++;
  longer[size - 5]++;
  return Uint8Array.from(longer);
}

for (const tier of ["baseline", "optimizing", "auto"] as const) {
  for (const instruction of INSTRUCTIONS) {
    Deno.test(`an index of two bytes is read whole: ${instruction.text}, ${tier}`, () => {
      const engine = NewEngine({ tier });
      const refusal = { name: "InvalidError", message: /type mismatch/ };
      assert.throws(() => engine.validate(moduleOf(instruction, false)), refusal);
      assert.throws(() => engine.compile(moduleOf(instruction, false)), refusal);
      engine.validate(moduleOf(instruction, true));
      engine.compile(moduleOf(instruction, true));
    });
  }
}
