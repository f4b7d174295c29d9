/**
 * Recordings whose depth of calls is that of the machine (option `stack`): programs that exhaust the stack, recorded in
 * each tier and bounds mode, and replayed in each with the same state, fuel, results and errors; refused options.
 */
import assert from "node:assert/strict";
import { type EngineOptions, type Instance, NewEngine } from "@waft/engine";
import { Recorder, type RecordingEnd, replay } from "@waft/engine/recording";
import { runRecursive } from "../support/recursive_programs.ts";

const CODE = [
  { tier: "optimizing", bounds: "guard" },
  { tier: "optimizing", bounds: "explicit" },
  { tier: "baseline", bounds: "guard" },
  { tier: "baseline", bounds: "explicit" },
] as const satisfies readonly EngineOptions[];
const OPTIONS = { deterministic: true, stack: "native", nans: "processor" } as const;
const EXHAUSTED = "call stack exhausted";

/** What comes before each call: a replay that stopped a call too late or too early would have another hash. */
const EFFECT = "(global.set $g (i32.add (global.get $g) (i32.const 1)))";
const MODULE = `(import "env" "back" (func $back (param i32) (result i32)))
  (type $t (func (param i32) (result i32))) (tag $e)
  (memory 1) (global $g (export "g") (mut i32) (i32.const 0))`;

/** Functions `run`, whose calls never end, by name. */
const PROGRAMS: Readonly<Record<string, string>> = {
  direct: `(func $run (export "run") (param i32) (result i32) ${EFFECT}
    (i32.add (local.get 0) (call $run (i32.add (local.get 0) (i32.const 1)))))`,
  "not in its first call": `(func $run (export "run") (param i32) (result i32) ${EFFECT}
    (if (i32.lt_u (i32.rem_u (local.get 0) (i32.const 100)) (i32.const 99))
      (then (return (call $run (i32.add (local.get 0) (i32.const 1))))))
    (drop (call $leaf (local.get 0))) (i32.add (local.get 0) (call $run (i32.add (local.get 0) (i32.const 1)))))
    (func $leaf (param i32) (result i32) (i32.store (i32.const 8) (local.get 0)) (local.get 0))`,
  mutual:
    `(func $run (export "run") (param i32) (result i32) ${EFFECT} (i32.sub (call $even (local.get 0)) (i32.const 1)))
    (func $even (param i32) (result i32) (local i64 i64 f64) ${EFFECT}
      (local.set 1 (i64.extend_i32_u (local.get 0))) (local.set 3 (f64.convert_i32_u (local.get 0)))
      (i32.add (call $run (i32.add (local.get 0) (i32.const 1)))
        (i32.wrap_i64 (i64.add (local.get 1) (i64.trunc_f64_s (local.get 3))))))`,
  indirect: `(table funcref (elem $run $other))
    (func $run (export "run") (type $t) ${EFFECT}
      (i32.mul (i32.const 3) (call_indirect (type $t) (i32.add (local.get 0) (i32.const 1))
        (i32.and (local.get 0) (i32.const 1)))))
    (func $other (type $t) ${EFFECT} (i32.add (i32.const 3) (call $run (i32.add (local.get 0) (i32.const 1)))))`,
  inlined: `(func $one (param i32) (result i32) ${EFFECT} (i32.add (i32.const 1) (call $run (local.get 0))))
    (func $two (param i32) (result i32) ${EFFECT} (i32.add (i32.const 2) (call $run (i32.add (local.get 0) (i32.const 1)))))
    (func $run (export "run") (param i32) (result i32) ${EFFECT}
      (if (result i32) (i32.and (local.get 0) (i32.const 1))
        (then (call $one (i32.add (local.get 0) (i32.const 1)))) (else (call $two (local.get 0)))))`,
  "through the host": `(func $run (export "run") (param i32) (result i32) ${EFFECT}
    (if (i32.and (i32.lt_u (local.get 0) (i32.const 3000))
        (i32.eq (i32.rem_u (local.get 0) (i32.const 1000)) (i32.const 7)))
      (then (return (i32.add (i32.const 1) (call $back (i32.add (local.get 0) (i32.const 1)))))))
    (i32.add (local.get 0) (call $run (i32.add (local.get 0) (i32.const 1)))))`,
  "within exceptions": `(func $run (export "run") (param i32) (result i32) ${EFFECT}
    (block $h (try_table (catch_all $h) (call $thrower (local.get 0))))
    (block $i (try_table (catch_all $i) (drop (call $run (i32.add (local.get 0) (i32.const 1)))))) (i32.const 5))
    (func $thrower (param i32) (if (i32.and (local.get 0) (i32.const 1)) (then ${EFFECT} (throw $e))))`,
  "twice at once": `(func $run (export "run") (param i32) (result i32) (local $k i32) ${EFFECT}
    (if (i32.eq (local.get 0) (i32.const 30)) (then (return (i32.const 1))))
    (if (i32.eqz (i32.and (global.get $g) (i32.const 0x1fff))) (then (return (call $deep (local.get 0)))))
    (loop $l (drop (call $run (i32.add (local.get 0) (i32.const 1))))
      (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 2))))
    (i32.const 2))
    (func $deep (param i32) (result i32) ${EFFECT} (i32.add (i32.const 1) (call $deep (local.get 0))))`,
  "a large frame": `(func $run (export "run") (param i32) (result i32)
      (local v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128)
    ${EFFECT}
    ${
    Array.from({ length: 20 }, (_, k) => `(local.set ${k + 1} (i32x4.splat (i32.add (local.get 0) (i32.const ${k}))))`)
      .join(" ")
  }
    (drop (call $run (i32.add (local.get 0) (i32.const 1))))
    ${Array.from({ length: 20 }, (_, k) => `(v128.store (i32.const ${16 * k}) (local.get ${k + 1}))`).join(" ")}
    (i32.const 1))`,
};

/** Replays with all code, and compares state, fuel, results and the error's message. */
function requireSame({ log, hash, fuel }: RecordingEnd, results: readonly unknown[], error?: string): void {
  for (const code of CODE) {
    const end = replay(log, code);
    assert.deepEqual([end.hash, end.fuel, end.results], [hash, fuel, results], JSON.stringify(code));
    assert.equal((end.error as Error | undefined)?.message, error);
  }
}

/** Records three calls of `run`. */
function record(text: string, code: EngineOptions): RecordingEnd {
  const recorder = new Recorder(text);
  const back = (n: number) => {
    try {
      return instance.call<number>({}, "run", n);
    } catch {
      return instance.call<number>({}, "run", n + 1);
    }
  };
  const instance: Instance = NewEngine({ ...OPTIONS, ...code, fuel: true }).compile(text)
    .instantiate({ record: recorder }, { env: { back } });
  for (const n of [0, 1, 2]) assert.throws(() => instance.call({}, "run", n), { message: EXHAUSTED });
  return recorder.finish();
}

for (const [name, functions] of Object.entries(PROGRAMS)) {
  Deno.test(`an exhausted stack is repeated at the same call: ${name}`, () => {
    for (const code of CODE) requireSame(record(`(module ${MODULE} ${functions})`, code), [], EXHAUSTED);
  });
}

Deno.test("random programs that exhaust the stack or the fuel are repeated", () => {
  const errors = new Set<string>();
  for (let seed = 1; seed <= 30; seed++) {
    const run = runRecursive(seed, { ...CODE[seed % CODE.length], nans: "processor" });
    for (const error of run.errors) errors.add(error);
    const { log, hash, fuel } = run.recorder.finish();
    for (const code of CODE) {
      const end = replay(log, code);
      assert.deepEqual([end.hash, end.fuel], [hash, fuel], `seed ${seed}, ${JSON.stringify(code)}`);
    }
  }
  assert.deepEqual([...errors].sort(), [EXHAUSTED, "out of fuel"]);
});

Deno.test("a start function and an asynchronous call that exhaust the stack", async () => {
  const start = `(module ${MODULE} ${
    PROGRAMS["direct"]
  } (func $start (drop (call $run (i32.const 0)))) (start $start))`;
  const wait = `(module ${MODULE} ${PROGRAMS["through the host"]})`;
  for (const code of CODE) {
    const engine = NewEngine({ ...OPTIONS, ...code });
    const started = new Recorder(start);
    const imports = { env: { back: (n: number) => Promise.resolve(n) } };
    assert.throws(() => engine.compile(start).instantiate({ record: started }, imports), { message: EXHAUSTED });
    requireSame(started.finish(), [], EXHAUSTED);
    const waiting = new Recorder(wait);
    const direct = wait.replace("(i32.const 7))", "(i32.const 7777777))");
    const instance = engine.compile(wait).instantiate({ record: waiting }, imports);
    assert.equal(await instance.callAsync({}, "run", 7), 9);
    assert.notEqual(direct, wait);
    const endless = new Recorder(direct);
    const other = engine.compile(direct).instantiate({ record: endless }, imports);
    await assert.rejects(other.callAsync({}, "run", 8), { message: EXHAUSTED });
    requireSame(waiting.finish(), [9]);
    requireSame(endless.finish(), [], EXHAUSTED);
  }
});

Deno.test("modules with tail calls count the depth", () => {
  const text = `(module ${MODULE} ${PROGRAMS["direct"]}
    (func (export "loop") (param i32) (result i32) (return_call $run (local.get 0))))`;
  for (const code of CODE) requireSame(record(text, code), [], EXHAUSTED);
});

Deno.test("the option stack: what it refuses", () => {
  const rows: readonly (readonly [EngineOptions, RegExp])[] = [
    [{ stack: "native" }, /requires the option deterministic/],
    [{ stack: "native", deterministic: true, tier: "auto" }, /needs tier optimizing or baseline/],
    [{ stack: "both" as "native", deterministic: true }, /must be counted or native, not "both"/],
  ];
  for (const [options, message] of rows) assert.throws(() => NewEngine(options), { name: "TypeError", message });
});
