/**
 * Inspections for a terminal and for a pipe: lines wrap at the terminal's width, and the words stay the same.
 */
import assert from "node:assert/strict";
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { parseModule } from "@waft/engine/internal/text_format";
import { palette } from "../../base/terminal.ts";
import { moduleFacts } from "../../ops/inspection/inspect_module.ts";
import { moduleText } from "./module_facts_text.ts";

/** A module whose import has more parameters than fit into a line. */
const WIDE = `(module
  (import "env" "a_function_with_many_parameters" (func (param ${"i32 i64 f32 f64 ".repeat(8)})))
  (memory (export "memory") 1))`;

Deno.test("inspect: lines wrap at the terminal's width", () => {
  const facts = moduleFacts(decodeModule(parseModule(WIDE).bytes));
  const columns = 60;
  const piped = moduleText(facts, { colors: palette(false) });
  const shown = moduleText(facts, { colors: palette(false), columns });
  const longest = (text: string) => Math.max(...text.split("\n").map((line) => line.length));
  assert.ok(longest(piped) > columns, "the module has no long line");
  assert.ok(longest(shown) <= columns, shown);
  assert.deepEqual(shown.split(/\s+/), piped.split(/\s+/));
});
