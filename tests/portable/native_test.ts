/**
 * The compiler as machine code on native threads: the same images as the TypeScript form, an end of the job where the
 * compiler traps or faults, and programs whose modules move up without a Worker.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import type { CompilationReport } from "../../engine/api/compilation_report.ts";
import type { CodeJob, PlacedCode } from "../../engine/background/placing_job.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import {
  beginBatch,
  beginOptimized,
  compileLoopEntry,
  compileModule,
  type CompileOptions,
  compilerState,
} from "../../engine/compile/compile.ts";
import type { BegunImage } from "../../engine/compile/compile_options.ts";
import { hostBackend } from "../../engine/compile/backends.ts";
import { cpuFeatures, hostArchitecture } from "../../engine/host/cpu.ts";
import { currentHost } from "../../engine/host/current.ts";
import { workerCount } from "../../engine/host/workers.ts";
import type { UnplacedCode } from "../../engine/link/code_description.ts";
import { useNativeCompiler } from "../../engine/portable/late_native.ts";
import { compilerBytes } from "../../engine/portable/portable_form.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { makeInstance, startNativeBodies } from "../../engine/tiers/native_compiler.ts";
import { NativeJobs } from "../../engine/tiers/native_job.ts";
import { describeModule } from "../../engine/translate/describe_module.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { nativeCompiler } from "../../scripts/package/build_native_compiler.ts";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";

const BUILT = await nativeCompiler(hostArchitecture());
const [IMAGE] = BUILT.images();

/** The image with other bits at an offset. */
function damaged(at: number, bits: number): Uint8Array {
  const copy = IMAGE.slice();
  copy[at] ^= bits;
  return copy;
}

/** The compiler with copies of its image that must not be run before the one that must. */
const NATIVE = {
  ...BUILT,
  images: () => [
    new Uint8Array(0),
    IMAGE.subarray(0, -16),
    damaged(0, 1),
    damaged(BUILT.codeBytes, 0x80),
    damaged(IMAGE.length - 1, 0x10),
    new Uint8Array(IMAGE.length),
    IMAGE,
  ],
};
useNativeCompiler(() => NATIVE);

const LISP = new Uint8Array(readFileSync(new URL("../../examples/wasi/lisp.wasm", import.meta.url)));

function optionsOf(more: Partial<CompileOptions> = {}): CompileOptions {
  return {
    target: hostBackend(),
    features: featureSet(),
    optimizations: optimizationSet(),
    settings: codeSettings(),
    cpu: cpuFeatures(currentHost()),
    ...more,
  };
}

/** Advances a job until it ends. */
function outcome<T>(advance: () => T | "waiting"): T {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const result = advance();
    if (result !== "waiting") return result;
    Atomics.wait(pause, 0, 0, 1);
  }
}

const none = () => assert.fail("no other job is needed");

function placedBy(job: CodeJob | undefined): PlacedCode {
  assert.ok(job, "a native thread compiles");
  const code = outcome(() => job.advance(performance.now()));
  assert.notEqual(code, "failed");
  return code as PlacedCode;
}

/** Compares placed code with an image, apart from polls, whose distance depends on the place. */
function assertSame(code: PlacedCode, image: UnplacedCode): void {
  assert.equal(code.codeBytes, image.bytes.length);
  const placed = new Uint8Array(currentHost().view(code.base, code.codeBytes)).slice();
  for (const at of image.tables.pollAt) placed.fill(0, at, at + 4);
  const expected = image.bytes.slice();
  for (const at of image.tables.pollAt) expected.fill(0, at, at + 4);
  assert.deepEqual(placed, expected);
  assert.deepEqual(code.tables, image.tables);
  assert.deepEqual(code.description.inlineSites, image.inlineSites);
  assert.deepEqual(code.statistics, image.statistics);
}

const SETTINGS = [{}, { explicitBounds: true }, { fuel: true, interruptible: true }];

Deno.test("native threads make the images of the TypeScript form", () => {
  const module = decodeModule(LISP);
  const valid = validateModule(module, featureSet(), { bodies: false });
  for (const settings of SETTINGS) {
    const options = optionsOf({ settings: codeSettings(settings) });
    const typescript: CompileOptions = { ...options, form: "typescript" };
    const jobs = new NativeJobs(realmStore().thread, valid, options);
    assertSame(placedBy(jobs.start(undefined, performance.now(), none)), compileModule(module, typescript));
  }
});

/** A function with a loop at offset `at` of the module. */
function loopModule() {
  const bytes = NewEngine().parse(`(module (func (export "count") (param i32) (result i32) (local i32)
    (loop $again
      (local.set 1 (i32.add (local.get 1) (i32.mul (local.get 0) (i32.const 7))))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1)))`).bytes;
  return { module: decodeModule(bytes), at: bytes.indexOf(0x03, decodeModule(bytes).funcs[0].body.offset) };
}

Deno.test("native threads compile loops", () => {
  const { module, at } = loopModule();
  const options = optionsOf({ settings: codeSettings({ interruptible: true }) });
  const loop = { index: 0, at, frameBytes: 64 };
  const valid = validateModule(module, featureSet(), { bodies: false });
  const job = new NativeJobs(realmStore().thread, valid, options).start(loop, performance.now(), none);
  const expected = compileLoopEntry(module, { ...options, form: "typescript" }, loop);
  assert.ok(expected);
  const code = placedBy(job);
  assertSame(code, expected);
  assert.equal(code.entry, expected.entry);
  assert.deepEqual(code.jumps, expected.jumps);
});

Deno.test("a compiler that faults ends its job, and nothing else", () => {
  const valid = validateModule(decodeModule(LISP), featureSet(), { bodies: false });
  const options = optionsOf({ hasValidBodies: true });
  const work = { valid, options, ...compilerState(valid, options) };
  const description = describeModule(work.env);
  const { thread } = realmStore();
  const run = (begun: BegunImage<UnplacedCode>, words = description.words) => {
    const instance = makeInstance(thread, NATIVE, description.bodies.length);
    const bodies = startNativeBodies(instance, begun, { ...description, words });
    return outcome(() => bodies.advance());
  };
  // The index of a body that does not exist: its offset is read far outside of the memory.
  for (const index of [0x7fff_ffff, 0x1fff_ffff, -0x8000_0000]) {
    assert.equal(run({ ...beginOptimized(work), bodies: [{ index }] }), "failed");
  }
  const whole = run(beginOptimized(work));
  assert.notEqual(whole, "failed", "the next job is not concerned");
  assert.notEqual(run(beginBatch(work, [3], 4000)), "failed");
});

Deno.test("where a native thread fails, another job takes its place", () => {
  const valid = validateModule(decodeModule(LISP), featureSet(), { bodies: false });
  const jobs = new NativeJobs(realmStore().thread, valid, optionsOf());
  const other = placedBy(jobs.start(undefined, performance.now(), none));
  const instead: CodeJob = { since: 0, advance: () => other, abandon: () => {} };
  const late = jobs.start(undefined, -1e9, () => instead);
  assert.ok(late);
  assert.equal(outcome(() => late.advance(performance.now())), other, "a job that takes too long is abandoned");
});

Deno.test("abandoned jobs do not disturb others", () => {
  const module = decodeModule(LISP);
  const valid = validateModule(module, featureSet(), { bodies: false });
  const jobs = new NativeJobs(realmStore().thread, valid, optionsOf());
  for (let k = 0; k < 5; k++) jobs.start(undefined, performance.now(), none)?.abandon();
  const expected = compileModule(module, optionsOf({ form: "typescript" }));
  assertSame(placedBy(jobs.start(undefined, performance.now(), none)), expected);
});

Deno.test("a process and a realm may end while native threads compile for them", () => {
  const run = (mode: string) => {
    const [command, first] = hostCommand(fileURLToPath(new URL("./unfinished_jobs_program.ts", import.meta.url)));
    return spawnSync(command, [...first, mode], { encoding: "utf8", timeout: CHILD_TIMEOUT });
  };
  const ended = run("process");
  assert.equal(ended.status, 3, ended.stderr);
  const { status, stdout, stderr } = run("worker");
  assert.equal(stdout, "compiled\n", stderr);
  assert.equal(status, 0);
});

/** A module of `count` functions whose bodies have `bytes` bytes each. */
function moduleWithBodies(count: number, bytes: number): Uint8Array {
  const body = `(func ${"nop ".repeat(bytes)})`;
  return NewEngine().parse(`(module ${body.repeat(count)})`).bytes;
}

Deno.test("large modules, deterministic code and checked compilations are left to Workers", () => {
  const stateOf = (bytes: Uint8Array, more: Partial<CompileOptions> = {}) => {
    const valid = validateModule(decodeModule(bytes), featureSet(), { bodies: false });
    return new NativeJobs(realmStore().thread, valid, optionsOf(more)).state;
  };
  assert.notEqual(stateOf(LISP), "absent");
  assert.notEqual(stateOf(compilerBytes()), "absent", "0.4 MB");
  assert.equal(stateOf(moduleWithBodies(4, 200_000)), "absent");
  assert.equal(stateOf(LISP, { settings: codeSettings({ deterministic: true }) }), "absent");
  assert.equal(stateOf(LISP, { verify: true }), "absent");
});

Deno.test("a program moves up without a Worker", () => {
  const reports: CompilationReport[] = [];
  const engine = NewEngine({ explain: (report) => reports.push(report) });
  const { bytes } = loopModule().module;
  const instance = engine.compile(bytes).instantiate();
  const isOptimized = () => reports.some(({ part, origin }) => part === "module" && origin === "background");
  // Each call takes a fraction of a second at most: the module moves up at one of the calls.
  for (let calls = 0; calls < 10_000 && !isOptimized(); calls++) instance.call({}, "count", 5_000_000);
  assert.ok(isOptimized());
  assert.equal(workerCount(), 0);
  assert.equal(instance.call({}, "count", 10), 385);
});
