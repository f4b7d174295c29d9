/**
 * The functions that count the depth of calls: shapes of cycles, random graphs beside a search of all paths, and code
 * without cycles, which is the same as code that is not deterministic.
 */
import { deepEqual, equal, notDeepEqual } from "node:assert/strict";
import { OPTIMIZING_X64 } from "../backend_x64/optimizing_target.ts";
import { compileModule } from "../compile/compile.ts";
import { codeSettings } from "../settings/code_settings.ts";
import { featureSet } from "../settings/features.ts";
import { optimizationSet } from "../settings/optimizations.ts";
import { parseModule } from "../text/parse_module.ts";
import { validateModule } from "../validate/module.ts";
import { countedFunctions } from "./counted_functions.ts";

function counted(text: string): string {
  const features = featureSet({ "stack-switching": true });
  return [...countedFunctions(validateModule(parseModule(text), features))].join("");
}

const CASES: readonly (readonly [name: string, text: string, expected: string])[] = [
  ["a chain of calls", `(func call 1) (func call 2) (func)`, "000"],
  ["a function that calls itself", `(func call 0) (func)`, "10"],
  ["a cycle, its caller and its callee", `(func call 1) (func call 2 call 3) (func call 1) (func)`, "1110"],
  ["a cycle of tail calls", `(func return_call 1) (func return_call 0)`, "00"],
  ["a cycle of calls and tail calls", `(func call 1) (func return_call 0)`, "11"],
  ["an import may call back", `(import "" "" (func)) (func call 0) (func)`, "10"],
  [
    "a reference to a function that calls nothing",
    `(table 1 funcref) (elem (i32.const 0) 1) (func (call_indirect (i32.const 0))) (func)`,
    "00",
  ],
  [
    "a reference to the caller",
    `(table 1 funcref) (elem (i32.const 0) 0) (func (call_indirect (i32.const 0))) (func)`,
    "10",
  ],
  [
    "a reference in a global",
    `(type $f (func)) (global (ref $f) (ref.func 0)) (func (call_ref $f (global.get 0))) (func)`,
    "10",
  ],
  [
    "a reference that the host has passed",
    `(type $f (func)) (func (export "f") (param (ref $f)) (call_ref $f (local.get 0))) (func)`,
    "10",
  ],
  [
    "a computation that resumes",
    `(type $f (func)) (type $k (cont $f)) (elem declare func 0) (func (resume $k (cont.new $k (ref.func 0)))) (func)`,
    "10",
  ],
  [
    "a computation that suspends and switches",
    `(type $f (func)) (type $k (cont $f)) (tag $t) (type $g (func (param (ref $k)))) (type $j (cont $g))
    (elem declare func 1) (func (resume $k (cont.new $k (ref.func 1)))) (func (suspend $t) (switch $j $t (ref.null $j)))`,
    "00",
  ],
  [
    "a reference that a handler of the host's tag returns",
    `(type $f (func)) (import "" "" (tag $t (result (ref $f)))) (func (call_ref $f (suspend $t))) (func)`,
    "10",
  ],
  [
    "a table of the host",
    `(import "" "" (table 1 funcref)) (func (call_indirect (i32.const 0))) (func call 0) (func)`,
    "110",
  ],
];
for (const [name, text, expected] of CASES) {
  Deno.test(name, () => equal(counted(`(module ${text})`), expected));
}

Deno.test("a long chain of calls counts as far as it may take too much stack", () => {
  const length = 2000;
  const functions = Array.from({ length }, (_, k) => k + 1 < length ? `(func call ${k + 1})` : `(func)`);
  const result = counted(`(module ${functions.join("")})`);
  equal(result, "1".repeat(length - 1024) + "0".repeat(1024), "64 KiB in activations of 64 units");
});

/** Whether each of `count` functions reaches a call, not a tail call, in a cycle: by all pairs of nodes. */
function byAllPaths(count: number, calls: readonly (readonly [from: number, to: number, tail: boolean])[]): string {
  const reaches = Array.from({ length: count }, (_, k) => Array.from({ length: count }, (_, j) => k === j));
  for (const [from, to] of calls) reaches[from][to] = true;
  for (let m = 0; m < count; m++) {
    for (let a = 0; a < count; a++) for (let b = 0; b < count; b++) reaches[a][b] ||= reaches[a][m] && reaches[m][b];
  }
  const grows = calls.filter(([from, to, tail]) => !tail && reaches[to][from]);
  return reaches.map((row) => grows.some(([from]) => row[from]) ? "1" : "0").join("");
}

Deno.test("random graphs of calls", () => {
  let state = 7;
  const random = (n: number) => (state = Math.imul(state, 1664525) + 1013904223 >>> 0) % 65536 % n;
  let seen = "";
  for (let round = 0; round < 400; round++) {
    const count = 2 + random(8);
    const calls = Array.from(
      { length: random(2 * count) },
      () => [random(count), random(count), random(2) === 0] as const,
    );
    const functions = Array.from(
      { length: count },
      (_, k) =>
        `(func ${
          calls.filter(([from]) => from === k).map(([, to, tail]) =>
            `(if (i32.const 0) (then ${tail ? "return_call" : "call"} ${to}))`
          ).join("")
        })`,
    );
    const result = counted(`(module ${functions.join("")})`);
    equal(result, byAllPaths(count, calls), JSON.stringify(calls));
    seen += result;
  }
  equal(seen.includes("01") && seen.includes("10"), true);
});

/** The bytes of the code of `text`. */
function codeOf(text: string, deterministic: boolean): Uint8Array {
  const { bytes } = compileModule(parseModule(text), {
    target: OPTIMIZING_X64,
    features: featureSet(),
    optimizations: optimizationSet({}),
    settings: codeSettings({ deterministic }),
    cpu: new Set(["avx"]),
  });
  return bytes.slice();
}

Deno.test("deterministic code of integers without a cycle of calls is the normal code", () => {
  const loop = `(loop (br_if 0 (local.tee 0 (i32.sub (call $next (local.get 0)) (i32.const 1)))))`;
  const module = (next: string) =>
    `(module (memory 1) (func (export "f") (param i32) ${loop})
      (func $next (param i32) (result i32) ${next} (i32.load (local.get 0))))`;
  const chain = module(""), cycle = module(`(if (i32.eqz (local.get 0)) (then (return (call $next (i32.const 1)))))`);
  deepEqual(codeOf(chain, true), codeOf(chain, false));
  notDeepEqual(codeOf(cycle, true), codeOf(cycle, false));
});
