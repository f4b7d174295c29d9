/**
 * Random programs with recordings, and of each seed one that recurses until the stack or the fuel is exhausted. In: a
 * seed. Out: the number of recordings, after each was replayed in both tiers and bounds modes with the same hash and
 * fuel. The recorded program also has the same trace as one without a recorder.
 *
 * Modules that share memories, tables or globals cannot be recorded; such a case is left out of the comparison of
 * traces, but the instances that exist are recorded and replayed.
 */
import assert from "node:assert/strict";
import { type EngineOptions, NewEngine } from "@waft/engine";
import { Recorder, replay, type ReplayOptions } from "@waft/engine/recording";
import { COMPILED_FEATURES } from "./compare.ts";
import { generateModules } from "./generate_module.ts";
import { runScenario } from "./scenario.ts";
import { type Subject, waft } from "./subject.ts";
import { runRecursive } from "../support/recursive_programs.ts";

const OPTIONS: EngineOptions = { deterministic: true, fuel: true, nans: "processor", stack: "native" };
const FEATURES = COMPILED_FEATURES.filter((name) => name !== "threads");
const REPLAYS: readonly ReplayOptions[] = [
  { tier: "optimizing", bounds: "guard" },
  { tier: "baseline", bounds: "explicit" },
];

/** The sums of some seeds. */
interface RecordedPrograms {
  recordings: number;
  /** Bytes of logs. */
  bytes: number;
  calls: number;
  hostCalls: number;
  failed: number;
}

/** A subject whose instances are recorded by `recorders`. */
function recording(recorders: Recorder[]): Subject {
  const engine = NewEngine(OPTIONS);
  return {
    ...waft("recording", OPTIONS),
    instantiate: (bytes, imports) => {
      const module = engine.compile(bytes);
      const recorder = new Recorder(bytes);
      recorders.push(recorder);
      return module.instantiate({ record: recorder }, imports).exports;
    },
  };
}

/** Records and replays the programs of `count` seeds from `first` on. Fails at the first difference, with its seed. */
export function replayPrograms(
  first: number,
  count: number,
  logs?: (log: Uint8Array, seed: number) => void,
): RecordedPrograms {
  const sums: RecordedPrograms = { recordings: 0, bytes: 0, calls: 0, hostCalls: 0, failed: 0 };
  for (let seed = first; seed < first + count; seed++) {
    const modules = generateModules(seed, FEATURES);
    const recorders: Recorder[] = [];
    const trace = runScenario(modules, seed, recording(recorders));
    if (modules.length === 1) {
      const plain = runScenario(modules, seed, waft("plain", OPTIONS));
      assert.deepEqual(trace.entries, plain.entries, `seed ${seed}: the recording changes the run`);
    }
    for (const [k, recorder] of recorders.entries()) {
      replayOne(recorder, `seed ${seed}, module ${k}`, sums, (log) => logs?.(log, seed));
    }
    const tier = seed % 2 === 0 ? "optimizing" : "baseline";
    const { recorder } = runRecursive(seed, { ...OPTIONS, tier });
    replayOne(recorder, `seed ${seed}, recursive program`, sums, (log) => logs?.(log, seed));
  }
  return sums;
}

function replayOne(recorder: Recorder, name: string, sums: RecordedPrograms, show: (log: Uint8Array) => void): void {
  let end: ReturnType<Recorder["finish"]>;
  try {
    end = recorder.finish();
  } catch (error) {
    // A link error came before the recording.
    if (/has no instance|of another instance/.test((error as Error).message)) return;
    throw error;
  }
  show(end.log);
  sums.recordings++;
  sums.bytes += end.log.length;
  for (const settings of REPLAYS) {
    const label = `${name}, ${settings.tier}`;
    let again: ReturnType<typeof replay>;
    try {
      again = replay(end.log, settings);
    } catch (error) {
      throw new Error(`${label}: ${(error as Error).message}`, { cause: error });
    }
    assert.deepEqual([again.hash, again.fuel], [end.hash, end.fuel], label);
    if (settings !== REPLAYS[0]) continue;
    sums.calls += again.calls;
    sums.hostCalls += again.hostCalls;
    if (again.error !== undefined) sums.failed++;
  }
}
