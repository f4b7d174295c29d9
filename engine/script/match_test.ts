/** Results and expectations in messages have one form. */
import { equal } from "node:assert/strict";
import { cellText, expectedText } from "./match.ts";
import { runScript } from "./run_script.ts";

Deno.test("an expected value has the text of an equal cell", () => {
  const bytes = Uint8Array.from({ length: 16 }, (_, i) => i < 9 ? 0x10 + i : 0);
  const vector = cellText(new Uint32Array(bytes.buffer), 0);
  equal(expectedText({ type: "v128", shape: "i8x16", bytes, nans: [] }), vector);
  equal(expectedText({ type: "i32", bits: -1 }), cellText(Uint32Array.of(-1, 0, 0, 0), 0));
  equal(expectedText({ type: "i64", bits: -2n }), cellText(Uint32Array.of(-2, -1, 0, 0), 0));
  equal(expectedText({ type: "f32", bits: 0, nan: "canonical" }), "nan:canonical");
  const options = [{ type: "ref.null" } as const, { type: "i32", bits: 7 } as const];
  equal(expectedText({ type: "either", options }), "a null reference or 0x7");
  const nans = [undefined, "arithmetic" as const];
  equal(expectedText({ type: "v128", shape: "f64x2", bytes, nans }), `${vector}, nan:arithmetic in lane 1`);
});

Deno.test("a failed assertion names both values in hexadecimal", async () => {
  const { failures } = await runScript(
    `(module (func (export "f") (result i32) (i32.const 6)))
     (assert_return (invoke "f") (i32.const 3))`,
  );
  equal(failures.map(({ message }) => message).join(), "f: result 0 is 0x6, expected 0x3");
});
