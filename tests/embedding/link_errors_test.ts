/** Errors of linking name the wanted and the given type, with the type of addresses where they differ. */
import assert from "node:assert/strict";
import { LinkError, NewEngine } from "@waft/engine";

const engine = NewEngine();

/** [import, export of the other module, message] */
const ROWS: readonly (readonly [wanted: string, given: string, message: RegExp])[] = [
  ["(memory i64 1)", '(memory (export "x") 1)', /must be a memory of i64 1 pages, got one of i32 1$/],
  ["(memory 1)", '(memory (export "x") i64 1)', /must be a memory of i32 1 pages, got one of i64 1$/],
  ["(memory i64 2)", '(memory (export "x") i64 1)', /must be a memory of i64 2 pages, got one of i64 1$/],
  ["(memory 2)", '(memory (export "x") 1)', /must be a memory of 2 pages, got one of 1$/],
  ["(table i64 1 funcref)", '(table (export "x") 1 funcref)', /must be a table of i64 1 funcref, got one of i32 1/],
  ["(table 1 funcref)", '(table (export "x") i64 1 funcref)', /must be a table of i32 1 funcref, got one of i64 1/],
];

Deno.test("errors of linking name the type of addresses", () => {
  for (const [wanted, given, message] of ROWS) {
    const { exports } = engine.compile(`(module ${given})`).instantiate();
    const module = engine.compile(`(module (import "m" "x" ${wanted}))`);
    assert.throws(() => module.instantiate({}, { m: { x: exports["x"] } }), (error) => {
      assert.ok(error instanceof LinkError);
      assert.match(error.message, message);
      return true;
    }, wanted);
  }
});
