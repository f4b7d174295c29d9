/**
 * Compiling with helpers: the same image as from one thread, whichever thread compiled which function; a failing helper
 * costs only time; threads are reused, and do not keep the process alive.
 */
import { Statistics } from "../base/statistics.ts";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { GENERATED_FEATURES, generateModules } from "../../tests/fuzz/generate_module.ts";
import { ARM64 } from "../backend_arm64/target.ts";
import { X64 } from "../backend_x64/target.ts";
import { decodeModule } from "../binary/decode.ts";
import { encodeModule } from "../binary/encode.ts";
import { CalleeUnknown } from "../codegen/callee_unknown.ts";
import { MachineCode } from "../codegen/machine_code.ts";
import type { Target } from "../codegen/target.ts";
import { type CompiledCode, compileModule, type CompileOptions, compilerState } from "../compile/compile.ts";
import { prepareHelpers, threadCount } from "./helper_threads.ts";
import { codeSettings } from "../settings/code_settings.ts";
import { featureSet } from "../settings/features.ts";
import { endWorkers, processorCount, startWorkers, workerCount } from "../host/workers.ts";
import { NewEngine, type WaftError } from "../mod.ts";
import { optimizationSet } from "../settings/optimizations.ts";
import { compileTogether, type SendJob } from "./compile_together.ts";
import type { CompileJob } from "./helper.ts";
import { Output } from "./output.ts";
import { makeSchedule, Schedule, STATE } from "./schedule.ts";
import { compileShare } from "./share.ts";
import { KnownFunctions } from "../portable/module_writer.ts";
import { parseModule } from "../text/parse_module.ts";
import { validateModule } from "../validate/module.ts";
import type { Module } from "../wasm/module.ts";
import { CHILD_TIMEOUT } from "../../tests/support/host_arguments.ts";

const WORKER = new URL("./worker.ts", import.meta.url);
const TARGETS: readonly Target[] = [X64, ARM64];

function optionsOf(target: Target, more: Partial<CompileOptions> = {}): CompileOptions {
  return {
    target,
    features: featureSet(),
    optimizations: optimizationSet(),
    settings: codeSettings(),
    cpu: new Set(target === X64 ? ["avx", "avx2", "bmi1", "bmi2", "fma", "lzcnt", "popcnt"] : []),
    ...more,
  };
}

/** Sends a job, and returns when `part` of the functions have been compiled by any thread. */
function sendAndWait(send: (message: unknown) => void, part: number): SendJob {
  return (job) => {
    send(job);
    const schedule = scheduleOf(job);
    for (let k = 0; k < 6000 && schedule.finished < part * schedule.count && !schedule.failed; k++) schedule.pause(10);
    assert(schedule.finished >= part * schedule.count || schedule.failed, "the helper compiles its part");
  };
}

function scheduleOf(job: CompileJob): Schedule {
  return new Schedule(job.schedule, job.summaries.calleesFirst.length, job.threads, job.edges);
}

/** Compiles with `helpers`; also returns whether sharing succeeded. */
function attempt(
  module: Module,
  options: CompileOptions,
  helpers: readonly SendJob[],
): { code: CompiledCode; shared: boolean } {
  let shared = false;
  const code = compileModule(module, {
    ...options,
    share: (work) => {
      shared = compileTogether(work, helpers) !== undefined;
      return shared ? "done" : "failed";
    },
  });
  return { code, shared };
}

/** Compiles with `helpers`, which must succeed. */
function together(module: Module, options: CompileOptions, helpers: readonly SendJob[]): CompiledCode {
  const { code, shared } = attempt(module, options, helpers);
  assert(shared, "nothing has failed");
  return code;
}

function sameCode(seen: CompiledCode, expected: CompiledCode, label: string): void {
  assert.deepEqual(seen.bytes, expected.bytes, `${label}: bytes`);
  assert.deepEqual(seen.tables, expected.tables, `${label}: tables`);
  assert.deepEqual([...seen.inlineSites], [...expected.inlineSites], `${label}: inlined calls`);
  assert.deepEqual(Object.entries(seen.statistics), Object.entries(expected.statistics), `${label}: statistics`);
  assert.deepEqual(seen.layout, expected.layout, `${label}: layout`);
}

/** `count` functions with a cyclic call graph, some of them small enough to be inlined. */
function tangle(count: number): string {
  const functions = Array.from({ length: count }, (_, k) => {
    const callee = (n: number) => `$f${(k * 7 + n * 13 + 5) % count}`;
    const body = k % 3 === 0
      ? `(call ${callee(1)} (i32.sub (local.get 0) (i32.const 1)))`
      : `(if (result i32) (i32.lt_s (local.get 0) (i32.const ${k})) (then (i32.const ${k}))
          (else (i32.add (call ${callee(1)} (i32.sub (local.get 0) (i32.const 3)))
            (i32.trunc_sat_f64_s (f64.abs (f64.neg (f64.convert_i32_s (call ${callee(2)}
              (i32.load8_u offset=${k} (i32.and (local.get 0) (i32.const 1023)))))))))))`;
    return `(func $f${k} (param i32) (result i32) ${body})`;
  });
  return `(module (memory 1) (import "h" "log" (func $log (param i32))) ${functions.join("\n")}
    (func (export "run") (param i32) (result i32) (call $log (local.get 0)) (call $f1 (local.get 0))))`
    .replace(/\(module \(memory 1\) (\(import .*?\)\)\))/, "(module $1 (memory 1)");
}

/** Programs of the benchmark and of the examples: typical compiler output. */
const FILES = ["binary_trees", "exceptions_often", "gc_shapes", "json", "memory64_hash", "atomics_ring", "mandelbrot"];

/** Runs a test and ends the threads that it has started. */
function withWorkers(count: number, action: (sends: ((message: unknown) => void)[]) => void): () => Promise<void> {
  return async () => {
    try {
      const sends = startWorkers(WORKER, count);
      assert.equal(sends.length, count);
      action(sends);
    } finally {
      await endWorkers();
    }
  };
}

Deno.test(
  "one, two and three threads make the same image, for both targets",
  withWorkers(2, (sends) => {
    const modules: [string, () => Module][] = [
      ["tangle", () => parseModule(tangle(200))],
      ["two of one kind", () => parseModule("(module (func) (func))")],
      ["no bodies", () => parseModule(`(module (import "a" "b" (func)) (memory 1))`)],
      ...FILES.map((name): [string, () => Module] => [
        name,
        () => decodeModule(new Uint8Array(readFileSync(new URL(`../../bench/wasm/${name}.wasm`, import.meta.url)))),
      ]),
      ...Array.from({ length: 24 }, (_, seed): [string, () => Module] => [
        `seed ${seed}`,
        () => decodeModule(generateModules(9000 + seed, GENERATED_FEATURES, seed % 2 === 0 ? ["gc", "simd"] : [])[0]),
      ]),
    ];
    modules.forEach(([name, make], n) => {
      const target = TARGETS[n % 2];
      const more: Partial<CompileOptions> = {
        settings: codeSettings({ explicitBounds: n % 3 === 0, interruptible: n % 5 === 0, fuel: n % 7 === 0 }),
      };
      for (const chosen of n < 9 ? TARGETS : [target]) {
        const options = optionsOf(chosen, more);
        const alone = compileModule(make(), options);
        const label = `${name}, ${chosen.name}`;
        sameCode(together(make(), options, []), alone, `${label}, one thread`);
        sameCode(together(make(), options, [sendAndWait(sends[0], n % 2 === 0 ? 1 : 0.4)]), alone, `${label}, two`);
        sameCode(together(make(), options, sends), alone, `${label}, three`);
      }
    });
  }),
);

Deno.test("functions that must wait for the callees of inlined code are compiled after them", () => {
  // $f inlines $g, which calls $h, and so calls $h itself: in one thread $h comes first.
  const text = `(module (func $g (call $h) (call $f)) (func $f (call $g)) (func $h ${
    "(drop (i32.const 1))".repeat(50)
  }))`;
  const options = optionsOf(X64);
  const alone = compileModule(parseModule(text), options);
  const { env } = compilerState(validateModule(parseModule(text), options.features, { bodies: false }), options);
  const { schedule: both } = makeSchedule(env.summaries, 1);
  assert.deepEqual([both.take(0), both.take(0)].sort(), [1, 2], "both are ready at once");
  sameCode(together(parseModule(text), options, []), alone, "in order");
  // By hand, in the order that makes it wait.
  const { schedule } = makeSchedule(
    {
      bytes: new Int32Array(2),
      locals: new Int32Array(2),
      flags: new Uint8Array(2),
      callSites: new Int32Array(2),
      tableWritten: new Uint8Array(0),
      calleesFirst: Int32Array.of(0, 1),
      calleeStart: new Int32Array(3),
      callees: new Int32Array(0),
    },
    1,
  );
  const tried: number[] = [];
  const statistics = new Statistics();
  statistics.count("kept");
  compileShare(schedule, 0, Output.make(0), new MachineCode(2, 0), (code, k) => {
    tried.push(k);
    statistics.count("work");
    if (k === 0 && schedule.writtenKnown[1] === 0) throw new CalleeUnknown(1);
    schedule.writtenKnown[k] = 1;
    code.functionEnd[k] = 0;
    return [];
  }, statistics);
  assert.deepEqual(tried, [0, 1, 0]);
  assert.deepEqual(statistics.snapshot(), { kept: 1, work: 2 }, "discarded work is not counted");
});

Deno.test("helpers that never start, fail or cannot be reached change nothing", () => {
  const module = () => parseModule(tangle(60));
  const options = optionsOf(X64);
  const alone = compileModule(module(), options);
  sameCode(together(module(), options, [() => {}, () => {}]), alone, "no helper comes");
  const failing: SendJob = (job) => scheduleOf(job).fail();
  const { code, shared } = attempt(module(), options, [failing]);
  assert(!shared);
  sameCode(code, alone, "one fails");
  const throwing: SendJob = () => {
    throw new Error("cannot be cloned");
  };
  sameCode(attempt(module(), options, [throwing]).code, alone, "no helper can be asked");
});

Deno.test("a helper that dies is abandoned, with or without a function", () => {
  const module = () => parseModule(tangle(60));
  const options = optionsOf(X64);
  const alone = compileModule(module(), options);
  for (const functions of [0, 3]) {
    const dies: SendJob = (job) => {
      const schedule = scheduleOf(job);
      assert(schedule.change(job.thread, STATE.IDLE, STATE.WORKING));
      for (let k = 0; k < functions; k++) assert(schedule.take(0) >= 0);
    };
    let shared = true;
    const code = compileModule(module(), {
      ...options,
      share: (work) => {
        shared = compileTogether(work, [dies], 300) !== undefined;
        return shared ? "done" : "failed";
      },
    });
    assert(!shared);
    sameCode(code, alone, `${functions} functions`);
  }
});

Deno.test(
  "a helper that cannot read its job fails the sharing, not the compilation, and takes the next one",
  withWorkers(1, ([send]) => {
    const module = () => parseModule(tangle(60));
    const options = optionsOf(ARM64);
    const alone = compileModule(module(), options);
    const broken = sendAndWait((message) => send({ ...message as CompileJob, binary: new SharedArrayBuffer(3) }), 1);
    const { code, shared } = attempt(module(), options, [broken]);
    assert(!shared);
    sameCode(code, alone, "alone after that");
    sameCode(together(module(), options, [sendAndWait(send, 1)]), alone, "the next job");
  }),
);

Deno.test(
  "an invalid body is reported as by one thread",
  withWorkers(1, ([send]) => {
    const text = tangle(40).replace(/\(call \$log \(local.get 0\)\)/, "(call $log (f32.const 1))");
    const errorOf = (share: CompileOptions["share"]): WaftError => {
      try {
        compileModule(parseModule(text), { ...optionsOf(X64), share });
      } catch (error) {
        return error as WaftError;
      }
      return assert.fail("the module is invalid");
    };
    const alone = errorOf(undefined);
    const shared = errorOf((work) => compileTogether(work, [sendAndWait(send, 0.2)]) === undefined ? "failed" : "done");
    assert.equal(shared.message, alone.message);
    assert.deepEqual(shared.place, alone.place);
    assert.equal(shared.name, "InvalidError");
  }),
);

/** A module with more than a megabyte of bodies that compiles quickly: unused constants. */
function bigModule(): string {
  const constant = "(drop (v128.const i32x4 1 2 3 4))".repeat(1200);
  const functions = Array.from(
    { length: 60 },
    (_, k) =>
      `(func $f${k} (export "f${k}") (param i32) (result i32) ${constant}
      (i32.add (local.get 0) (i32.const ${k})))`,
  );
  return `(module ${functions.join("\n")})`;
}

Deno.test("an engine with the option parallel makes the same artifact, and keeps its threads", async () => {
  try {
    // As text: equal binaries would share the code that the first engine compiled.
    const text = bigModule();
    const bytes = encodeModule(parseModule(text));
    assert(bytes.length > 1_000_000);
    const alone = NewEngine().compile(bytes).serialize();
    assert.equal(workerCount(), 0);
    assert.deepEqual(NewEngine({ tier: "optimizing", parallel: 3 }).compile(text).serialize(), alone);
    assert.equal(workerCount(), 2);
    const module = NewEngine({ tier: "optimizing", parallel: "auto" }).compile(text);
    assert.deepEqual(module.serialize(), alone);
    assert.equal(module.instantiate().call({}, "f7", 35), 42);
  } finally {
    await endWorkers();
  }
  assert.equal(workerCount(), 0);
});

Deno.test("small modules start no threads", () => {
  NewEngine({ tier: "optimizing", parallel: 4 }).compile(`(module (func))`);
  prepareHelpers(1, 1e9);
  assert.equal(workerCount(), 0);
});

Deno.test("the option parallel is a count or auto", () => {
  assert.equal(threadCount(undefined), 1);
  assert.equal(threadCount(0), 1);
  assert.equal(threadCount(3), 3);
  assert.equal(threadCount(1e6), 16);
  assert.equal(threadCount("auto"), Math.max(1, Math.min(8, Math.floor(processorCount() / 2))));
  for (const wrong of [-1, 1.5, NaN, Infinity, "2", null]) {
    assert.throws(() => NewEngine({ parallel: wrong as number }), RangeError);
  }
});

Deno.test("reused threads do not keep the process alive", () => {
  const script = `
    import { NewEngine } from ${JSON.stringify(new URL("../mod.ts", import.meta.url).href)};
    import { workerCount } from ${JSON.stringify(new URL("../host/workers.ts", import.meta.url).href)};
    const text = "(module " + Array.from({ length: 60 }, () =>
      "(func " + "(drop (v128.const i32x4 1 2 3 4))".repeat(1200) + ")").join("") + ")";
    NewEngine({ tier: "optimizing", parallel: 2 }).compile(text);
    console.log("threads", workerCount());`;
  const output = execFileSync(process.execPath, ["eval", "--ext=ts", "--no-check", script], {
    timeout: CHILD_TIMEOUT,
    stdio: ["ignore", "pipe", "pipe"],
  });
  assert.match(output.toString(), /threads 1/);
});

Deno.test("what is known of a function is complete, also if another thread finishes it meanwhile", () => {
  const code = new MachineCode(1, 0);
  const { writtenVector } = code;
  let reads = 0;
  Object.defineProperty(code, "writtenVector", {
    get: () => {
      if (++reads === 2) {
        code.writtenGeneral[0] = 5;
        writtenVector[0] = 6;
        code.writtenKnown[0] = 1;
      }
      return writtenVector;
    },
  });
  const memory = { buffer: new ArrayBuffer(64) };
  const known = new KnownFunctions({ memory, knownColumn: (n) => n * 8 }, code);
  const words = new Int32Array(memory.buffer, 0, 5);
  known.update();
  assert.equal(words[4] === 1 && words[0] !== 5, false, "known, but its registers are not");
  known.update();
  assert.deepEqual([words[0], words[2], words[4]], [5, 6, 1]);
});
