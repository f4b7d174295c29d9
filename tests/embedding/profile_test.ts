/**
 * `engine.profile()`: the shares of functions in programs whose answer is known, stacks, inlined functions, lines, host
 * functions, and the file for the Firefox profiler.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { NewEngine, type Profile } from "@waft/engine";
import { firefoxFaults } from "../support/firefox_format.ts";

const PROGRAM = `(module
  (import "env" "slow" (func $slow (param i32) (result i32)))
  (func $one (param i32) (result i32) (local $s i32)
    (loop $l (local.set $s (i32.xor (i32.mul (local.get $s) (i32.const 31)) (local.get 0)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get $s))
  (func $three (param i32) (result i32) (local $s i32)
    (loop $l (local.set $s (i32.xor (i32.mul (local.get $s) (i32.const 31)) (local.get 0)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get $s))
  (func (export "loops") (param i32) (result i32)
    (i32.add (call $one (local.get 0)) (call $three (i32.mul (i32.const 3) (local.get 0)))))
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func $mix (param i32) (result i32)
    ${"(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const 31)) (i32.const 5)))".repeat(12)}
    (local.get 0))
  (func (export "inlined") (param i32) (result i32) (local $s i32)
    (loop $l (local.set $s (i32.add (local.get $s) (call $mix (local.get 0))))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get $s))
  (func (export "host") (param i32)
    (loop $l (drop (call $slow (local.get 0))) (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))`;

/** Enough samples for shares with a standard deviation of two points. */
const SAMPLES = 500;

function slow(seed: number): number {
  let sum = seed;
  for (let k = 0; k < 20_000; k++) sum = Math.imul(sum, 31) ^ k;
  return sum;
}

/** `both`: every second function has optimized code, until as many calls have been made again. */
const TIERS = ["optimizing", "baseline", "both"] as const;
const BOTH_CALLS = 5000;

/** Profiles calls of an export until there are enough samples. */
async function profiled(tier: typeof TIERS[number], name: string, argument: number): Promise<Profile> {
  const engine = NewEngine(tier === "both" ? { tierUpCalls: BOTH_CALLS, tierUpBatches: true } : { tier });
  const instance = engine.compile(PROGRAM).instantiate({}, { env: { slow } });
  for (let k = 0; tier === "both" && k <= BOTH_CALLS; k++) instance.call({}, name, 1);
  for (let calls = 1;; calls *= 3) {
    const profiler = await engine.profile();
    for (let k = 0; k < calls; k++) instance.call({}, name, argument);
    const profile = profiler.stop();
    if (profile.sampleStacks.length >= SAMPLES) return profile;
    assert.ok(calls < 1e6, `${profile.sampleStacks.length} samples`);
  }
}

/** Shares of a function's own and of all its samples, in percent. */
function shares(profile: Profile, name: string): { self: number; total: number } {
  const found = profile.functions().find((each) => each.name === name);
  const percent = (count = 0) => 100 * count / profile.sampleStacks.length;
  return { self: percent(found?.self), total: percent(found?.total) };
}

function near(actual: number, expected: number, what: string): void {
  assert.ok(Math.abs(actual - expected) <= 10, `${what}: ${actual.toFixed(1)} %, not ${expected} %`);
}

/** The names of a stack, innermost first. */
function stackNames({ frames, stackFrames, stackCallers }: Profile, stack: number): string[] {
  const names: string[] = [];
  for (let at = stack; at >= 0; at = stackCallers[at]) names.push(frames[stackFrames[at]].name);
  return names;
}

function profileTest(name: string, run: () => Promise<void>): void {
  Deno.test({ name, ignore: process.platform !== "linux", fn: run });
}

for (const tier of TIERS) {
  profileTest(`profile: two loops of 1 to 3 turns, ${tier}`, async () => {
    const profile = await profiled(tier, "loops", 10_000_000);
    near(shares(profile, "one").self, 25, "one");
    near(shares(profile, "three").self, 75, "three");
    near(shares(profile, "loops").total, 100, "loops");
    assert.equal(profile.dropped, 0);
  });

  profileTest(`profile: recursion counts a function once per sample, ${tier}`, async () => {
    const profile = await profiled(tier, "fib", 30);
    near(shares(profile, "fib").total, 100, "fib");
    assert.ok(shares(profile, "fib").total <= 100);
    const depths = profile.sampleStacks.map((stack) => stackNames(profile, stack).length);
    assert.ok(Math.max(...depths) <= 31, `at most one frame per level: ${Math.max(...depths)}`);
    assert.ok(depths.filter((depth) => depth > 10).length > depths.length / 2, "whole stacks");
  });

  profileTest(`profile: host functions are frames with the callers around them, ${tier}`, async () => {
    const profile = await profiled(tier, "host", 1000);
    near(shares(profile, '"env" "slow"').self, 100, "slow");
    near(shares(profile, "host").total, 100, "host");
    const expected = ['"env" "slow"', "host"].join();
    const whole = profile.sampleStacks.filter((stack) => stackNames(profile, stack).join() === expected);
    assert.ok(whole.length > profile.sampleStacks.length * 0.8);
  });
}

profileTest("profile: inlined functions have frames of their own", async () => {
  const profile = await profiled("optimizing", "inlined", 10_000_000);
  const mix = profile.frames.find(({ name }) => name === "mix");
  assert.equal(mix?.isInlined, true);
  // The rest is the loop around it; how the two share their cycles depends on the load of the processor.
  assert.ok(shares(profile, "mix").self > 50, `${shares(profile, "mix").self} %`);
  near(shares(profile, "inlined").total, 100, "inlined");
});

profileTest("profile: frames have the lines of a module in text form", async () => {
  const profile = await profiled("optimizing", "loops", 10_000_000);
  const lines = new Set(profile.frames.filter(({ name }) => name === "three").map(({ line }) => line));
  assert.ok(
    lines.size > 0 && [...lines].every((line) => line !== undefined && line >= 7 && line <= 10),
    [...lines].join(),
  );
});

profileTest("profile: nothing runs, nothing is sampled in guest code; intervals are checked", async () => {
  const engine = NewEngine();
  const profiler = await engine.profile({ interval: 1 });
  const profile = profiler.stop();
  assert.equal(profiler.stop(), profile);
  assert.deepEqual(profile.functions().filter(({ kind }) => kind === "wasm"), []);
  await assert.rejects(() => engine.profile({ interval: 0 }), /interval of a profile must be 0.1 to 1000/);
  await assert.rejects(() => engine.profile({ interval: NaN }), RangeError);
});

profileTest("profile: the file of the Firefox profiler has its format", async () => {
  const profile = await profiled("optimizing", "host", 1000);
  const file = JSON.parse(JSON.stringify(profile.toFirefox("program.wasm")));
  assert.deepEqual(firefoxFaults(file), []);
  assert.equal(file.meta.product, "program.wasm");
  const { stringArray } = file.threads[0];
  assert.ok(stringArray.includes("host") && stringArray.includes('"env" "slow"'));
});

profileTest("profile: a damaged file of the Firefox profiler does not have its format", async () => {
  const profile = await profiled("optimizing", "loops", 10_000_000);
  const text = JSON.stringify(profile.toFirefox("program.wasm"));
  for (const table of ["samples", "stackTable", "frameTable", "funcTable"]) {
    const columns = JSON.parse(text).threads[0][table];
    for (const column of Object.keys(columns).filter((name) => Array.isArray(columns[name]))) {
      for (const damage of [(values: unknown[]) => values.pop(), (values: unknown[]) => values[0] = "damaged"]) {
        const file = JSON.parse(text);
        damage(file.threads[0][table][column]);
        assert.notDeepEqual(firefoxFaults(file), [], `${table}.${column}`);
      }
    }
  }
});

profileTest("profile: a source map that the program reads gives the lines", async () => {
  const path = fileURLToPath(new URL("../debug/programs/sums.wasm", import.meta.url));
  const engine = NewEngine();
  const instance = engine.compile(new Uint8Array(readFileSync(path))).instantiate();
  const asked: string[] = [];
  const profiler = await engine.profile({
    sourceMap: (url) => {
      asked.push(url);
      return readFileSync(`${path}.map`, "utf8");
    },
  });
  instance.call({}, "run", 16_000);
  const places = new Set(profiler.stop().frames.map(({ file, line }) => `${file}:${line}`));
  assert.deepEqual(asked, ["./sums.wasm.map"]);
  assert.ok(places.has("./sums/sums.ts:10"), [...places].join());
});

profileTest("very long names are short in a profile", async () => {
  const engine = NewEngine();
  const instance = engine.compile(`(module (func $"${"n".repeat(1 << 20)}" (export "f") (param i32)
    (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))`).instantiate({}, {});
  let profile: Profile;
  do {
    const profiler = await engine.profile();
    instance.call({}, "f", 50_000_000);
    profile = profiler.stop();
  } while (profile.functions().length === 0);
  // A sample in the middle of parking may name a caller that has returned.
  const names = profile.functions().map(({ name }) => name);
  assert.ok(names.includes(`${"n".repeat(200)}…`), names.join());
  assert.deepEqual(names.filter((name) => name.length > 201), []);
});
