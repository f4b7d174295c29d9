/** The tools on one program of each kind that has no test of its own with all of them; `deno task tools` runs all. */
import assert from "node:assert/strict";
import { MATRIX_PROGRAMS, matrixCell, TOOL_NAMES } from "../tests/support/tool_matrix.ts";

for (const name of ["words.wasm", "AssemblyScript with a source map", "GC", "threads"]) {
  Deno.test({
    name: `tools on ${name}`,
    // Samples need Linux.
    ignore: Deno.build.os !== "linux",
    fn() {
      const program = MATRIX_PROGRAMS.find((each) => each.name === name);
      assert.ok(program !== undefined);
      const cells = TOOL_NAMES.map((tool) => ({ tool, ...matrixCell(program, tool) }));
      assert.deepEqual(cells.filter(({ isRight }) => !isRight), []);
    },
  });
}

Deno.test("a cell with a fault, or with a refusal that is not named, is not right", () => {
  const program = MATRIX_PROGRAMS.find(({ name }) => name === "fib.wat");
  assert.ok(program !== undefined);
  assert.equal(matrixCell({ ...program, stop: "missing" }, "debug").isRight, false);
  assert.equal(matrixCell({ ...program, status: 3 }, "replay").isRight, false);
  assert.equal(matrixCell({ ...program, refused: { inspect: /no/ } }, "inspect").isRight, false);
});
