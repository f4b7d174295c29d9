/**
 * Alignment of optimized code on x64: loops that jump through a table and the cases of the table begin where
 * engine/codegen/code_alignment.ts says, and a function has the same bytes wherever its image puts it.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { NewEngine } from "../../engine/api/engine.ts";
import { OPTIMIZING_ARM64 as ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 as X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { compileModule, prepareBodyCompiler } from "../../engine/compile/compile.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";

for (const name of ["x64", "arm64"] as const) await prepareBodyCompiler(name);

const VALUES = [
  "(i32.add (local.get $x) (i32.const 3))",
  "(i32.xor (local.get $x) (i32.const 77))",
  "(i32.sub (local.get $x) (local.get $n))",
  "(i32.mul (local.get $x) (i32.const 31))",
  "(i32.rotl (local.get $x) (i32.const 5))",
  "(i32.or (local.get $x) (i32.const 9))",
  "(i32.shl (local.get $x) (i32.const 1))",
];

/** A loop around a switch with a case for each value, and a last one that only goes on. */
const INTERPRETER = `(func (export "run") (param $x i32) (param $n i32) (result i32)
  (loop $again
    (block $next
      ${"(block ".repeat(VALUES.length)} (br_table ${VALUES.map((_, k) => k).join(" ")} ${VALUES.length}
        (i32.rem_u (local.get $x) (i32.const 11)))
      ${VALUES.map((value) => `) (local.set $x ${value}) (br $next)`).join("\n")})
    (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
  (local.get $x))`;

/** A module with the interpreter behind `before` other functions. */
function moduleText(before: number): string {
  const others = Array.from({ length: before }, (_, k) => `(func (result i32) (i32.const ${k + 1}))`);
  return `(module ${others.join(" ")} ${INTERPRETER})`;
}

/** The code of the interpreter behind `before` other functions, and its offset. */
function compiled(before: number, target: typeof X64 | typeof ARM64 = X64): { code: Uint8Array; at: number } {
  const { bytes, tables: { functionStart, functionEnd } } = compileModule(NewEngine().parse(moduleText(before)), {
    target,
    features: featureSet(),
    optimizations: optimizationSet(),
    settings: codeSettings({}),
    cpu: new Set(),
  });
  const at = functionStart[before];
  // With the table, which follows the code at a multiple of four.
  return { code: bytes.slice(at, ((functionEnd[before] + 3) & -4) + 4 * VALUES.length), at };
}

/** Offsets, from the start of the function, to which the jump table leads. */
function caseOffsets(code: Uint8Array): number[] {
  const table = code.length - 4 * VALUES.length;
  const view = new DataView(code.buffer, code.byteOffset);
  return VALUES.map((_, k) => table + view.getInt32(table + 4 * k, true));
}

Deno.test("loops that jump through a table and its cases are aligned, and functions with them", () => {
  const { code, at } = compiled(0);
  equal(at % 64, 0);
  const offsets = caseOffsets(code);
  equal(new Set(offsets).size, VALUES.length);
  for (const offset of offsets) ok(offset > 0 && offset < code.length && offset % 32 === 0, `case at ${offset}`);
});

Deno.test("the bytes of a function do not depend on its place", () => {
  for (const target of [X64, ARM64]) {
    const [first, ...others] = [0, 3, 5, 9, 14].map((before) => compiled(before, target));
    ok(new Set([first, ...others].map(({ at }) => at)).size > 2);
    for (const { code } of others) deepEqual(code, first.code);
  }
});

Deno.test("aligned code computes what the baseline compiler's does", () => {
  const [optimized, baseline] = (["optimizing", "baseline"] as const).map((tier) =>
    NewEngine({ tier }).compile(moduleText(3)).instantiate().exports["run"] as (x: number, n: number) => number
  );
  for (let x = 0; x < 40; x++) equal(optimized(x, 1000 + x), baseline(x, 1000 + x));
});
