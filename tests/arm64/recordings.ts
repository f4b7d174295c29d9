/**
 * Recordings made on one host and replayed on another: `recordings.ts record FOLDER COUNT` records random programs of
 * COUNT seeds, a WASI program, an interrupted one, one with asynchronous calls, and loops over NaNs, and writes the
 * logs to FOLDER. The code has the NaNs of the recording processor.
 * `recordings.ts replay FOLDER` replays them in both tiers; a replay compares the state and the fuel with the log.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type Context, NewEngine } from "../../engine/mod.ts";
import { Recorder, replay } from "../../engine/recording/mod.ts";
import { Wasi } from "../../engine/wasi/mod.ts";
import { replayPrograms } from "../fuzz/recording.ts";
import { fillWithNans, nanProgram } from "../support/nan_programs.ts";

const PROGRAM = `(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "env" "wait" (func $wait (param i32) (result f64)))
  (memory (export "memory") 1)
  (func $step (export "step") (result i32)
    (drop (call $random (i32.const 0) (i32.const 64))) (drop (call $clock (i32.const 0) (i64.const 1) (i32.const 64)))
    (f64.store (i32.const 80) (f64.div (f64.load (i32.const 0)) (f64.load (i32.const 64))))
    (i32.load (i32.const 8)))
  (func (export "spin")
    (loop $l (i32.store (i32.const 96) (i32.add (i32.load (i32.const 96)) (call $more))) (br $l)))
  (func $more (result i32) (i64.store (i32.const 104) (i64.rotl (i64.load (i32.const 0)) (i64.const 3)))
    (if (i32.eqz (i32.load (i32.const 96))) (then (drop (call $step)))) (i32.const 3))
  (func (export "wait") (param i32) (result f64)
    (f64.add (call $wait (local.get 0)) (call $wait (i32.const 1)))))`;

/** The number of programs over NaNs. */
const NAN_SEEDS = 40;

/** Records calls of PROGRAM. */
async function recorded(...calls: readonly (readonly [name: string, context: Context, ...args: unknown[]])[]) {
  const recorder = new Recorder(PROGRAM);
  const wasi = new Wasi();
  const instance = NewEngine({ deterministic: true, nans: "processor", fuel: true, interruptible: true }).compile(
    PROGRAM,
  )
    .instantiate({ record: recorder }, {
      wasi_snapshot_preview1: wasi.imports,
      env: { wait: (n: number) => new Promise((resolve) => setTimeout(() => resolve(Math.random()), n)) },
    });
  wasi.attach(instance);
  await Promise.allSettled(calls.map(([name, context, ...args]) => instance.callAsync(context, name, ...args)));
  wasi.close();
  return recorder.finish().log;
}

/** Records a random program over NaNs. */
function recordedNans(seed: number): Uint8Array {
  const text = nanProgram(seed);
  const recorder = new Recorder(text);
  const instance = NewEngine({ deterministic: true, nans: "processor" }).compile(text)
    .instantiate({ record: recorder });
  fillWithNans(new DataView((instance.exports["memory"] as { buffer: ArrayBuffer }).buffer), seed);
  instance.call({}, "run");
  return recorder.finish().log;
}

async function record(folder: string, seeds: number): Promise<void> {
  let count = 0;
  const write = (log: Uint8Array) => writeFileSync(join(folder, String(count++)), log);
  replayPrograms(1, seeds, write);
  write(await recorded(["step", {}], ["step", {}]));
  write(await recorded(["spin", { deadline: 20 }], ["step", {}]));
  write(
    await recorded(["spin", { fuel: 10_000 }], ["wait", {}, 5], ["wait", { deadline: 3 }, 60_000], ["wait", {}, 2]),
  );
  for (let seed = 0; seed < NAN_SEEDS; seed++) write(recordedNans(seed));
  console.log(`recorded: ${count}`);
}

function replayAll(folder: string): boolean {
  const names = readdirSync(folder);
  let different = 0;
  for (const name of names) {
    const log = readFileSync(join(folder, name));
    for (const tier of ["optimizing", "baseline"] as const) {
      try {
        replay(log, { tier });
      } catch (error) {
        different++;
        console.log(`${name}, ${tier}: ${(error as Error).message}`);
      }
    }
  }
  console.log(`recordings: ${names.length}, different: ${different}`);
  return different === 0;
}

const [command, folder, seeds] = process.argv.slice(2);
if (command === "record") await record(folder, Number(seeds));
else process.exit(replayAll(folder) ? 0 : 1);
