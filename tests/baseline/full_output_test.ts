/**
 * Bodies whose code exceeds the remaining space of the kernel's output buffer, or the whole buffer. Checks: no other
 * kernel memory changes, and the following bodies compile normally.
 */
import assert from "node:assert/strict";
import * as layout from "../../engine/baseline/kernel/layout.ts";
import { withKernel } from "../../engine/baseline/kernel_forms.ts";
import { NewEngine } from "../../engine/api/engine.ts";

/**
 * A function that keeps many locals on the operand stack and then opens a block, which spills them all to the frame at
 * once.
 */
function wideBody(name: string, values: number): string {
  return `(func (export "${name}") (param i32 i64) (result i32)
    ${"local.get 1 ".repeat(values)}
    ${"(loop (br_if 0 (i32.const 0))) ".repeat(2)}
    ${"drop ".repeat(values)}
    local.get 0)`;
}

Deno.test("bodies that do not fit the kernel's output leave its memory alone", () => {
  const functions = Array.from({ length: 260 }, (_, k) => wideBody(`f${k}`, 20_000));
  // The optimizing compiler takes a body whose code exceeds the whole output buffer.
  const module = `(module ${functions.join("\n")} (func (export "last") (result i32) (i32.const 42)))`;
  const before = withKernel("x64", ({ memory }) => memory.view(layout.OPCODES, 4096).slice());
  const instance = NewEngine({ tier: "baseline" }).compile(module).instantiate();
  const after = withKernel("x64", ({ memory }) => memory.view(layout.OPCODES, 4096).slice());
  assert.deepEqual(after, before);
  for (const k of [0, 1, 130, 258, 259]) assert.equal(instance.call({}, `f${k}`, k, 5n), k);
  assert.equal(instance.call({}, "last"), 42);
});
