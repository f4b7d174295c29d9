/**
 * Every optimization key of arm64, on and off: the code differs where the key applies, and its applications are
 * counted.
 */
import { Statistics } from "../base/statistics.ts";
import { equal, notEqual, ok } from "node:assert/strict";
import { compileFor } from "../codegen/testing/compile_ir.ts";
import { ProgramMaker } from "../optimize/testing/random_functions.ts";
import { OPTIMIZATION_ROWS, type OptimizationRow } from "../settings/optimizations.ts";
import { disassemble } from "./disassemble.ts";
import { OPTIMIZING_ARM64 as ARM64 } from "./optimizing_target.ts";

/** A loop that adds up `count` values of type `ty`, which live around it; it comes after a call when `calls`. */
function manyValues(count: number, ty: "i32" | "f64", calls: boolean): string {
  const add = ty === "i32" ? "ADD" : "FADD";
  const lines = [`func 0 (i32) -> (${ty})`, "sig 0 (i32) -> (i32)", "b0(v1:i32):"];
  let value = 2;
  let n = 1;
  if (calls) {
    n = value++;
    lines.push(`  v${n}:i32 = CALL f0(v1) sig0`);
  }
  const first = value;
  for (; value < first + count; value++) lines.push(`  v${value}:${ty} = LOAD memory0[v${n}+${8 * value}]`);
  const [counter, sum] = [value++, value++];
  lines.push(`  JUMP b1(v${n} v${first})`, `b1(v${counter}:i32 v${sum}:${ty}) loop depth=1:`);
  let total = sum;
  for (let k = 0; k < count; k++) {
    lines.push(`  v${value}:${ty} = ${add} v${total} v${first + k}`);
    total = value++;
  }
  const [one, next] = [value++, value++];
  lines.push(`  v${one}:i32 = CONST -1`, `  v${next}:i32 = ADD v${counter} v${one}`);
  lines.push(`  BRANCH v${next} b1(v${next} v${total}) b2()`, "b2():", `  RETURN (v${total})`);
  return lines.join("\n") + "\n";
}

const ARITHMETIC = `func 0 (i32 i32 i64) -> (i64)
b0(v1:i32 v2:i32 v3:i64):
  v4:i32 = XOR v1 v2
  v5:i32 = SUB v1 v4
  v6:i32 = SUB v2 v5
  v7:i64 = EXTEND_S v6
  v8:i64 = ADD v3 v7
  RETURN (v8)
`;

/** A function with a frame, for values that live through its call. */
const CALLS = `func 0 (i64 i64 i64) -> (i64)
sig 0 (i64 i64 i64) -> (i64)
b0(v1:i64 v2:i64 v3:i64):
  v4:i64 = CALL f0(v3 v2 v1) sig0
  v5:i64 = ADD v4 v2
  v6:i64 = ADD v5 v3
  RETURN (v6)
`;

/**
 * A function that each key changes; immutable-poly-fastpath is decided where tables are known
 * (tests/features/known_tables_test.ts).
 */
const TRIGGERS: Readonly<Record<string, string>> = {
  "three-op-sink": ARITHMETIC,
  "olddest-rhs-sink": ARITHMETIC,
  "uxtw-add": ARITHMETIC,
  "frame-elide-reghomed": ARITHMETIC,
  "small-frame": CALLS,
  "x8-pin": manyValues(12, "i32", false),
  "leaf-scratch-pins": manyValues(16, "i32", false),
  "legacy-gp-pins": manyValues(12, "i32", false),
  "legacy-fp-pins": manyValues(8, "f64", false),
  "deep-fp-pins": manyValues(12, "f64", true),
};

function listing(text: string, key: string, on: boolean): { code: string; count: number } {
  const statistics = new Statistics();
  const { code } = compileFor(ARM64, [text], { optimizations: { [key]: on }, statistics });
  return {
    code: disassemble(code.bytes, code.functionStart[0], code.functionEnd[0]),
    count: statistics.of(key),
  };
}

for (const [key, text] of Object.entries(TRIGGERS)) {
  Deno.test(`${key} changes code, and is counted`, () => {
    const on = listing(text, key, true), off = listing(text, key, false);
    notEqual(on.code, off.code);
    ok(on.count > 0, `${key} was not counted`);
    equal(off.count, 0, `${key} was counted though off`);
  });
}

Deno.test("keys that deny registers keep long-lived values out of them", () => {
  const inLoop = (key: string, on: boolean) => listing(TRIGGERS[key], key, on).code;
  ok(/\bw8\b/.test(inLoop("x8-pin", true)) && !/\b[wx]8\b/.test(inLoop("x8-pin", false)));
  ok(/\bw1[234]\b/.test(inLoop("leaf-scratch-pins", true)));
  ok(!/\b[wx]1[234]\b/.test(inLoop("leaf-scratch-pins", false)));
});

/** Callees of random programs, defined after them, so that the registers their calls write are unknown. */
const CALLEES = ["MUL", "XOR"].map((op, index) =>
  `func ${index + 1} (i32 i64) -> (i64)
b0(v1:i32 v2:i64):
  v3:i64 = EXTEND_U v1
  v4:i64 = ${op} v3 v2
  RETURN (v4)
`
);

/** Random programs of this many statements; each calls, so that values are stored and come back. */
const SIZE = 80;
const PROGRAMS = 12;

/** Compiles random programs, allocations checked; returns the bytes of their code. */
function compilePrograms(optimizations: Record<string, boolean>, statistics: Statistics): string {
  let all = "";
  for (let seed = 1; seed <= PROGRAMS; seed++) {
    const { code } = compileFor(ARM64, [...CALLEES, new ProgramMaker(seed, SIZE, false).make()], {
      optimizations,
      statistics,
    });
    const index = CALLEES.length;
    all += disassemble(code.bytes, code.functionStart[index], code.functionEnd[index]);
  }
  return all;
}

Deno.test("random programs can be allocated with each key the other way, and with all", () => {
  const keys = (OPTIMIZATION_ROWS as readonly OptimizationRow[]).filter((row) => row.target === "arm64");
  const other = ({ name, state }: OptimizationRow): [string, boolean] => [name, state === "off"];
  for (const row of keys) compilePrograms(Object.fromEntries([other(row)]), new Statistics());
  compilePrograms(Object.fromEntries(keys.map(other)), new Statistics());
});

Deno.test("store-load-fwd reloads the value just stored from its register", () => {
  const statistics = new Statistics();
  // With results of blocks in slots there are such pairs to find.
  const on = compilePrograms({ "reg-merge": false }, statistics);
  ok(statistics.of("store-load-fwd") > 0);
  const off = compilePrograms({ "reg-merge": false, "store-load-fwd": false }, new Statistics());
  const reloads = (code: string) =>
    [...code.matchAll(/str ([xd])\d+, (\[sp.*\])\n +ldr \1\d+, (\[sp.*\])/g)]
      .filter(([, , stored, loaded]) => stored === loaded).length;
  // Those that a label precedes stay.
  ok(reloads(on) < reloads(off));
});

Deno.test("every key of arm64 is obeyed", () => {
  const rows: readonly OptimizationRow[] = OPTIMIZATION_ROWS;
  const known = new Set([...Object.keys(TRIGGERS), "store-load-fwd", "immutable-poly-fastpath"]);
  for (const { name, target, state } of rows) {
    if (target !== "arm64") continue;
    ok(state === "on" || state === "off", `${name} is "${state}"`);
    ok(known.has(name), `${name} has no test here`);
  }
});
