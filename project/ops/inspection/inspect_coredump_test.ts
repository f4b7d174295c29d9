/** Core dumps with many parts: the work is proportional to their number. */
import assert from "node:assert/strict";
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { parseModule } from "@waft/engine/internal/text/parse_module";
import { encodeModule } from "@waft/engine/internal/binary/encode";
import { coredumpFacts } from "./inspect_coredump.ts";

const COUNT = 50;

Deno.test("each data segment of a core dump is read once, however many memories there are", () => {
  const memories = Array.from({ length: COUNT }, (_, k) => `(memory 1) (data (memory ${k}) (i32.const 0) "abc")`);
  const text = `(module (@custom "core" "\\00\\01p") (@custom "corestack" "\\00\\04main\\00") ${memories.join(" ")})`;
  const module = decodeModule(encodeModule(parseModule(text)));
  let reads = 0;
  const datas = module.datas.map((data) =>
    Object.defineProperty({ ...data }, "mode", {
      get() {
        reads++;
        return data.mode;
      },
    })
  );
  const facts = coredumpFacts({ ...module, datas });
  assert.deepEqual(facts?.memories, Array.from({ length: COUNT }, () => ({ pages: "1", bytes: 3 })));
  assert.ok(reads <= 2 * COUNT, `${reads} reads`);
});

Deno.test("a global has the value of its constant, and none if its expression has other instructions", () => {
  const globals = `(global i32 (i32.const -7)) (global i32 (i32.add (i32.const 3) (i32.const 4)))
    (global i64 (i64.const -9)) (global f32 (f32.const 1.5)) (global f64 (f64.const -0.25))
    (global v128 (v128.const i64x2 1 2)) (global i32 (global.get 0)) (global funcref (ref.null func))`;
  const text = `(module (@custom "core" "\\00\\01p") (@custom "corestack" "\\00\\04main\\00") ${globals})`;
  const values = coredumpFacts(decodeModule(encodeModule(parseModule(text))))?.globals.map((global) => global?.value);
  const vector = `0x01${"00".repeat(7)}02${"00".repeat(7)}`;
  assert.deepEqual(values, ["-7", undefined, "-9", "1.5", "-0.25", vector, undefined, undefined]);
});
