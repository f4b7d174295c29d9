/** Results and expectations in messages have one form. */
import { equal } from "node:assert/strict";
import { I32, I64, V128 } from "../wasm/types.ts";
import { cellText, expectedText } from "./match.ts";
import { runScript } from "./run_script.ts";

Deno.test("an expected value has the text of an equal cell", () => {
  const bytes = Uint8Array.from({ length: 16 }, (_, i) => i < 9 ? 0x10 + i : 0);
  const vector = cellText(new Uint32Array(bytes.buffer), 0, V128);
  equal(expectedText({ type: "v128", shape: "i8x16", bytes, nans: [] }), vector);
  equal(expectedText({ type: "i32", bits: -1 }), cellText(Uint32Array.of(-1, 7, 8, 9), 0, I32));
  equal(expectedText({ type: "i64", bits: -2n }), cellText(Uint32Array.of(-2, -1, 8, 9), 0, I64));
  equal(expectedText({ type: "f32", bits: 0, nan: "canonical" }), "nan:canonical");
  const options = [{ type: "ref.null" } as const, { type: "i32", bits: 7 } as const];
  equal(expectedText({ type: "either", options }), "a null reference or 0x7");
  const nans = [undefined, "arithmetic" as const];
  equal(expectedText({ type: "v128", shape: "f64x2", bytes, nans }), `${vector}, nan:arithmetic in lane 1`);
});

Deno.test("another NaN than the one that a script expects points to deterministic code", async () => {
  const run = async (text: string) => {
    const { failures, needsDeterministic } = await runScript(text);
    return [failures.length, needsDeterministic];
  };
  const f32 = (expected: string) =>
    run(`(module (func (export "f") (result f32) (f32.const nan:0x200001)))
      (assert_return (invoke "f") (f32.const ${expected}))`);
  equal((await f32("nan:0x200001")).join(), "0,false");
  equal((await f32("nan")).join(), "1,true");
  equal((await f32("1")).join(), "1,false");
  const v128 = (expected: string) =>
    run(`(module (func (export "v") (result v128) (v128.const i64x2 0x7ff8000000000001 0)))
      (assert_return (invoke "v") (v128.const ${expected}))`);
  equal((await v128("f64x2 nan 0")).join(), "1,true");
  equal((await v128("i64x2 0 0")).join(), "1,false");
});

Deno.test("a failed assertion names both values in hexadecimal", async () => {
  const { failures } = await runScript(
    `(module (func (export "f") (result i32) (i32.const 6)))
     (assert_return (invoke "f") (i32.const 3))`,
  );
  equal(failures.map(({ message }) => message).join(), "f: result 0 is 0x6, expected 0x3");
});
