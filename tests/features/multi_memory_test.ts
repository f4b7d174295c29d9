/**
 * More memories than a byte can number: every access is checked against the length of its own memory. Regression: an
 * index truncated to eight bits was compared with another memory's length, which let the guest escape.
 */
import assert from "node:assert/strict";
import { NewEngine, TrapError } from "../../engine/mod.ts";

const PAGE = 65536;
const COUNT = 300;

/** Memories 0 and 43 are larger than memories 256 and 299, whose low eight bits they share. */
const MODULE = `(module
  ${Array.from({ length: COUNT }, (_, k) => `(memory $m${k} ${k === 0 || k === 43 ? 2 : 1})`).join("\n  ")}
  (func (export "load256") (param i32) (result i32) (i32.load $m256 (local.get 0)))
  (func (export "store299") (param i32) (i32.store $m299 (local.get 0) (i32.const 7)))
  (func (export "load299") (param i32) (result i32) (i32.load $m299 (local.get 0)))
  (func (export "constant") (result i32) (i32.load $m256 (i32.const ${PAGE}))))`;

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`300 memories, ${bounds}: each access is checked against its own memory's length`, () => {
    const instance = NewEngine({ bounds }).compile(MODULE).instantiate({});
    const call = (name: string, ...args: number[]) => instance.call({}, name, ...args);
    call("store299", PAGE - 4);
    assert.equal(call("load299", PAGE - 4), 7);
    assert.equal(call("load256", PAGE - 4), 0);
    for (const at of [PAGE - 3, PAGE, 2 * PAGE - 4]) {
      for (const name of ["load256", "store299", "load299"]) {
        assert.throws(() => call(name, at), (e) => e instanceof TrapError, `${name} ${at}`);
      }
    }
    assert.throws(() => call("constant"), (e) => e instanceof TrapError);
  });
}
