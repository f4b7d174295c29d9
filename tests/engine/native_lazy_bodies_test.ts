/**
 * Lazy compilation with the kernel as machine code, as packages have it: first calls that JavaScript does not see. The
 * tests of lazy_bodies_test.ts, and those of machine code alone.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { type EngineOptions, NewEngine } from "@waft/engine";
import { LazyBodies } from "../../engine/baseline/lazy_bodies.ts";
import { useNativeKernel } from "../../engine/baseline/kernel_forms.ts";
import { LAZY_ROUTINE } from "../../engine/baseline/generated/routines.ts";
import { hostArchitecture } from "../../engine/host/cpu.ts";
import { nativeKernel } from "../../scripts/package/build_native_kernel.ts";

useNativeKernel(await nativeKernel(hostArchitecture()));
await import("./lazy_bodies_test.ts");

const IS_LAZY = process.platform === "linux";
const HAS_ROUTINE = IS_LAZY && hostArchitecture() in LAZY_ROUTINE;
const lazily = (options: EngineOptions = {}) => NewEngine({ tier: "auto", ...options, lazyFrom: 0 } as EngineOptions);

/** The number of bodies that JavaScript compiles in `action`. */
function compiledByDriver(action: () => void): number {
  const { compile } = LazyBodies.prototype;
  let count = 0;
  LazyBodies.prototype.compile = function (index) {
    count++;
    return compile.call(this, index);
  };
  try {
    action();
  } finally {
    LazyBodies.prototype.compile = compile;
  }
  return count;
}

/** A chain of functions, each of which has all of these parameters and passes them on; the last returns their sum. */
function chain(length: number, parameters: number): string {
  const all = (text: (k: number) => string) => Array.from({ length: parameters }, (_, k) => text(k)).join(" ");
  const params = all((k) => k % 3 === 2 ? "f64" : "i32");
  const sum = all((k) => `(i32.add ${k % 3 === 2 ? `(i32.trunc_f64_s (local.get ${k}))` : `(local.get ${k})`})`);
  const body = (k: number) =>
    k + 1 < length ? `(call $f${k + 1} ${all((p) => `(local.get ${p})`)})` : `(i32.const 0) ${sum}`;
  const functions = Array.from({ length }, (_, k) => `(func $f${k} (param ${params}) (result i32) ${body(k)})`);
  const values = all((k) => k % 3 === 2 ? `(f64.const ${k + 1})` : `(i32.const ${k + 1})`);
  return `(module ${functions.join("\n")} (func (export "run") (result i32) (call $f0 ${values})))`;
}

for (const bounds of ["guard", "explicit"] as const) {
  for (const fuel of [undefined, 1_000_000]) {
    Deno.test(`${bounds}, fuel ${fuel}: machine code compiles a chain of calls with all of its arguments`, () => {
      for (const parameters of [0, 1, 5, 11, 30]) {
        const module = lazily({ bounds, fuel: fuel !== undefined }).compile(chain(300, parameters));
        const instance = module.instantiate();
        let result: unknown;
        const driver = compiledByDriver(() => result = instance.call({ fuel }, "run"));
        assert.equal(result, parameters * (parameters + 1) / 2);
        assert.ok(HAS_ROUTINE ? driver < 20 : driver === (IS_LAZY ? 301 : 0), `${driver} of 301`);
      }
    });
  }
}

Deno.test("modules take the kernels from each other", () => {
  const count = 6;
  const modules = Array.from({ length: count }, (_, k) => lazily().compile(chain(40 + k, 3)).instantiate());
  for (let round = 0; round < 2; round++) for (const instance of modules) assert.equal(instance.call({}, "run"), 6);
});

Deno.test("the traps and frames of functions that machine code has had compiled are found", () => {
  const { exports } = lazily().compile(`(module
    (func $a (param i32) (result i32) (call $b (local.get 0)))
    (func $b (param i32) (result i32) (call $c (local.get 0)))
    (func $c (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
    (func (export "run") (param i32) (result i32) (call $a (local.get 0))))`).instantiate();
  const run = exports.run as (x: number) => number;
  assert.throws(() => run(0), (error: Error) => {
    assert.match(String(error.stack), /\bc\b[^]*\bb\b[^]*\ba\b/);
    return true;
  });
  assert.equal(run(1), 1);
});
