/** Canonicalizations of NaNs: which of them go, which stay, and where others come. */
import { deepEqual, equal } from "node:assert/strict";
import { parseFunction } from "../ir/parse.ts";
import { printFunction } from "../ir/print.ts";
import { verifyFunction } from "../ir/verify.ts";
import { ControlFlow } from "./cfg.ts";
import { removeDeadCode } from "./dead_code.ts";
import { removeCanonicalizations } from "./nan_bits.ts";

const NAN = "v90:f64 = CONST 0x7ff8000000000000";

/** `value` made canonical as `result`. */
function canonical(result: string, value: string, test: string): string {
  return `  ${test}:i32 = FNE ${value} ${value}\n  ${result}:f64 = SELECT v90 ${value} ${test}`;
}

/** The function with these blocks after the pass, one line each; values are renamed by appearance. */
function after(blocks: string, params = "v1:i32 v2:f64 v3:f64"): string[] {
  const types = [...params.matchAll(/:(\w+)/g)].map(([, type]) => type).join(" ");
  const f = parseFunction(`func 0 (${types}) -> ()\nsig 0 (f64) -> ()\nb0(${params}):\n  ${NAN}\n${blocks}`);
  verifyFunction(f);
  const flow = new ControlFlow();
  removeCanonicalizations(f, flow);
  verifyFunction(f);
  removeDeadCode(f, flow);
  verifyFunction(f);
  return printFunction(f).split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

/** By block: the names of the values that are made canonical there. */
function places(lines: readonly string[]): string[] {
  let block = "";
  const found: string[] = [];
  for (const line of lines) {
    block = /^(b\d+)\(/.exec(line)?.[1] ?? block;
    const value = /= (?:SELECT|VBITSELECT) v\d+ (v\d+) v\d+$/.exec(line)?.[1];
    if (value !== undefined) found.push(`${block} ${value}`);
  }
  return found;
}

Deno.test("of a chain of arithmetic the last value alone is made canonical", () => {
  const lines = after(`  v4:f64 = FMUL v2 v3
${canonical("v6", "v4", "v5")}
  v7:f64 = FADD v6 v2
${canonical("v9", "v7", "v8")}
  STORE memory0[v1] v9
  RETURN ()`);
  equal(places(lines).length, 1);
  equal(lines.filter((line) => /FADD v4 v2/.test(line)).length, 1);
});

Deno.test("comparisons and conversions to integers read no bits", () => {
  for (const use of ["i32 = FLT v6 v3", "i32 = TRUNC_SAT_S v6", "i64 = TRUNC_U v6", "f32 = FDEMOTE v6"]) {
    deepEqual(places(after(`  v4:f64 = FMUL v2 v3\n${canonical("v6", "v4", "v5")}\n  v7:${use}\n  RETURN ()`)), []);
  }
});

Deno.test("bits are read by stores, calls, integers, the sign of copysign, and signs that change", () => {
  const uses = [
    "STORE memory0[v1] v6",
    "CALL f1(v6) sig0",
    "v7:i64 = BITCAST v6\n  STORE memory0[v1] v7",
    "v7:f64 = FCOPYSIGN v2 v6\n  STORE memory0[v1] v7",
    "v7:f64 = FNEG v6\n  STORE memory0[v1] v7",
    "v7:f64 = SELECT v6 v3 v1\n  STORE memory0[v1] v7",
  ];
  for (const use of uses) {
    const lines = after(`  v4:f64 = FMUL v2 v3\n${canonical("v6", "v4", "v5")}\n  ${use}\n  RETURN ()`);
    equal(places(lines).filter((place) => place === "b0 v4").length, 1, use);
  }
});

Deno.test("a selection of another constant, or with another test, is left alone", () => {
  const rest = "  v8:i32 = FLT v6 v3\n  v9:f64 = SELECT v2 v3 v8\n  STORE memory0[v1] v9\n  RETURN ()";
  const zero = "  v7:f64 = CONST 0x0000000000000000\n  v4:f64 = FMUL v2 v3\n";
  equal(places(after(`${zero}  v5:i32 = FNE v4 v4\n  v6:f64 = SELECT v7 v4 v5\n${rest}`)).length, 2);
  equal(places(after(`${zero}  v5:i32 = FNE v4 v3\n  v6:f64 = SELECT v90 v4 v5\n${rest}`)).length, 2);
});

const SUM = `b1(v10:i32 v11:f64) loop depth=1:
  v12:f64 = LOAD memory0[v10]
  v13:f64 = FADD v11 v12
${canonical("v15", "v13", "v14")}
  v17:i32 = ADD v10 v18`;

Deno.test("a sum becomes canonical after its loop, from the parameter or from its last value", () => {
  const start = "  v18:i32 = CONST -8\n  v4:f64 = CONST 0x0000000000000000\n  JUMP b1(v1 v4)\n";
  const last = after(`${start}${SUM}\n  BRANCH v17 b1(v17 v15) b2()\nb2():\n  STORE memory0[v1] v15\n  RETURN ()`);
  deepEqual(places(last), ["b2 v13"]);
  const passed = after(
    `${start}${SUM}\n  BRANCH v17 b1(v17 v15) b2(v15)\nb2(v20:f64):\n  STORE memory0[v1] v20\n  RETURN ()`,
  );
  deepEqual(places(passed), ["b2 v20"]);
});

Deno.test("a sum whose steps are stored stays canonical in its loop", () => {
  const lines = after(`  v18:i32 = CONST -8
  v4:f64 = CONST 0x0000000000000000
  JUMP b1(v1 v4)
${SUM}
  STORE memory0[v10] v15
  BRANCH v17 b1(v17 v15) b2()
b2():
  STORE memory0[v1] v15
  RETURN ()`);
  deepEqual(places(lines), ["b1 v13"]);
});

Deno.test("a parameter that may have the bits of a loaded NaN keeps them", () => {
  const lines = after(`  v4:f64 = LOAD memory0[v1]
  v5:f64 = FMUL v2 v3
${canonical("v7", "v5", "v6")}
  BRANCH v1 b1() b2(v7)
b1():
  JUMP b2(v4)
b2(v10:f64):
  STORE memory0[v1] v10
  RETURN ()`);
  deepEqual(places(lines), ["b0 v5"]);
});

Deno.test("lanes that are read in the other width are canonical", () => {
  const vector = (use: string) =>
    places(after(
      `  v91:v128 = CONST 0x0000c07f0000c07f0000c07f0000c07f
  v4:v128 = VFMUL v2 v3 #4
  v5:v128 = VFNE v4 v4 #4
  v6:v128 = VBITSELECT v91 v4 v5
${use}
  RETURN ()`,
      "v1:i32 v2:v128 v3:v128",
    ));
  deepEqual(vector("  v7:v128 = VFADD v6 v2 #4\n  v8:v128 = VFLT v7 v2 #4\n  STORE memory0[v1] v8"), []);
  deepEqual(vector("  v7:v128 = VFADD v6 v2 #5\n  v8:v128 = VFLT v7 v2 #5\n  STORE memory0[v1] v8"), ["b0 v4"]);
  deepEqual(vector("  v7:v128 = VADD v6 v2 #2\n  STORE memory0[v1] v7"), ["b0 v4"]);
});
