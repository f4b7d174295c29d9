/**
 * Random loops over floats and vectors whose memory has NaNs with payloads: deterministic code leaves the same bytes
 * with and without the optimization nan-bits, and in the baseline tier, which makes every NaN canonical at once.
 * With the NaNs of a processor, all code leaves the same bytes, too.
 * NAN_SEEDS=FROM-TO selects other seeds.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { type EngineOptions, NewEngine, OPTIMIZATION_ROWS } from "@waft/engine";
import { fillWithNans, nanProgram } from "../support/nan_programs.ts";

const [FROM, TO] = (process.env["NAN_SEEDS"] ?? "0-60").split("-").map(Number) as [number, number];
const ENGINES: readonly EngineOptions[] = [
  { verify: true },
  { optimizations: { "nan-bits": false } },
  { tier: "baseline" },
];
/** Engines that give equal NaNs, for each processor. */
const PROCESSOR_ENGINES: readonly EngineOptions[] = [
  { verify: true },
  { optimizations: Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, false])) },
  { bounds: "explicit", fuel: true },
  { tier: "baseline" },
  { tier: "baseline", bounds: "explicit" },
];
/** The memory after the module's function has run once. */
function memoryAfter(text: string, options: EngineOptions, seed: number): Uint8Array {
  const instance = NewEngine({ ...options, deterministic: true }).compile(text).instantiate();
  const memory = new Uint8Array((instance.exports["memory"] as { buffer: ArrayBuffer }).buffer, 0, 2048);
  fillWithNans(new DataView(memory.buffer, memory.byteOffset, memory.length), seed);
  instance.call({}, "run");
  const bytes = memory.slice();
  instance.close();
  return bytes;
}

Deno.test("random programs over NaNs leave the same bytes with and without nan-bits, and in either tier", () => {
  let removed = 0;
  for (let seed = FROM; seed < TO; seed++) {
    const text = nanProgram(seed);
    const [first, ...others] = ENGINES.map((options) => memoryAfter(text, options, seed));
    for (const [k, bytes] of others.entries()) {
      assert.deepEqual(bytes, first, `seed ${seed}: ${JSON.stringify(ENGINES[k + 1])}`);
    }
    const { statistics } = NewEngine({ deterministic: true }).compile(text);
    removed += statistics["nan-bits"] ?? 0;
  }
  assert.ok(removed > 20 * (TO - FROM), `only ${removed} canonicalizations went`);
});

for (const nans of ["x64", "arm64"] as const) {
  Deno.test(`random programs over NaNs leave the same bytes in all code with the NaNs of ${nans}`, () => {
    for (let seed = FROM; seed < TO; seed++) {
      const text = nanProgram(seed);
      const [first, ...others] = PROCESSOR_ENGINES.map((options) => memoryAfter(text, { ...options, nans }, seed));
      for (const [k, bytes] of others.entries()) {
        assert.deepEqual(bytes, first, `seed ${seed}: ${JSON.stringify(PROCESSOR_ENGINES[k + 1])}`);
      }
    }
  });
}
