/**
 * Fuel consumption of random modules as machine code, against the interpreter, which charges each region separately as
 * the translator specifies: for any initial amount, the remainder, the outcome and the effects are the same.
 */
import { deepEqual, ok } from "node:assert/strict";
import process from "node:process";
import { decodeModule } from "../../engine/binary/decode.ts";
import { THREAD } from "../../engine/abi/context_layout.ts";
import { type EngineOptions, NewEngine, TrapError } from "../../engine/mod.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { TrapSignal } from "../../engine/ir/testing/interpret.ts";
import { textToBinary } from "../../engine/text/parse_module.ts";
import { TRAP_MESSAGES } from "../../engine/base/traps.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { AddressSpace, InterpretedInstance } from "../support/interpreted_instance.ts";
import { RandomModule } from "./random_module.ts";

/** The module's own call limit, and an amount of fuel that is never exhausted. */
const CALLS = 40;
const ENOUGH = 1_000_000n;
const AMOUNTS = 24;
/** First argument of functions, by round. */
const ARGUMENTS = [0n, 5n, 0xffffffffn];

const { i64 } = NewEngine().compile("(module)").instantiate().internal.store.thread.state;
const CELL = THREAD.FUEL >> 3;

interface Side {
  /** Calls function `k` with the argument of `round`; returns the outcome. */
  call(k: number, round: number): string;
  fuel: bigint;
  state(): unknown;
}

function interpreted(bytes: Uint8Array, random: RandomModule): Side {
  const valid = validateModule(decodeModule(bytes), featureSet());
  const instance = new InterpretedInstance(valid, new AddressSpace(), () => undefined, { fuel: true });
  const cell = (name: string) => {
    const { address } = instance.exports.get(name) as { kind: "global"; address: number };
    return instance.resolve(address, 8)!;
  };
  return {
    get fuel() {
      return instance.fuel!;
    },
    set fuel(fuel: bigint) {
      instance.fuel = fuel;
    },
    call(k, round) {
      const { view, offset } = cell("fuel");
      view.setBigUint64(offset, BigInt(CALLS), true);
      const { params } = random.signature(k);
      const { record } = instance.exports.get(`f${k}`) as { kind: "func"; record: number };
      try {
        instance.invoke(record, params.map((type) => type === "i32" || type === "i64" ? ARGUMENTS[round] : 0n));
        return "done";
      } catch (error) {
        if (!(error instanceof TrapSignal)) throw error;
        return TRAP_MESSAGES[error.code];
      }
    },
    state() {
      const value = (name: string) => {
        const { view, offset } = cell(name);
        return view.getBigUint64(offset, true);
      };
      const memory = new Uint8Array(instance.memory0().buffer);
      return [value("g0"), value("g1"), memory.reduce((sum, byte) => Math.imul(sum, 31) + byte | 0, 0)];
    },
  };
}

function compiled(bytes: Uint8Array, random: RandomModule, options: EngineOptions): Side {
  const { exports } = NewEngine({ ...options, fuel: true, verify: true }).compile(bytes).instantiate();
  const global = (name: string) => exports[name] as { value: number | bigint };
  return {
    get fuel() {
      return i64[CELL];
    },
    set fuel(fuel: bigint) {
      i64[CELL] = fuel;
    },
    call(k, round) {
      global("fuel").value = CALLS;
      const { params } = random.signature(k);
      const args = params.map((type) =>
        type === "i32" ? Number(ARGUMENTS[round]) | 0 : type === "i64" ? ARGUMENTS[round] : 0
      );
      try {
        (exports[`f${k}`] as (...args: unknown[]) => unknown)(...args);
        return "done";
      } catch (error) {
        if (!(error instanceof TrapError)) throw error;
        return error.message;
      }
    },
    state() {
      const memory = new Uint8Array((exports["memory"] as { buffer: ArrayBuffer }).buffer);
      const sum = memory.reduce((sum, byte) => Math.imul(sum, 31) + byte | 0, 0);
      return [BigInt(Number(global("g0").value) >>> 0), BigInt.asUintN(64, BigInt(global("g1").value)), sum];
    },
  };
}

/** Calls all functions with `fuel` each; returns the remainders and outcomes. */
function trace(side: Side, count: number, fuel: bigint): unknown[] {
  const before = side.fuel;
  const entries: unknown[] = [];
  for (let k = 0; k < count; k++) {
    for (let round = 0; round < ARGUMENTS.length; round++) {
      side.fuel = fuel;
      entries.push([k, round, side.call(k, round), side.fuel]);
    }
  }
  entries.push(side.state());
  side.fuel = before;
  return entries;
}

Deno.test("with any amount of fuel, random modules end as if every region were charged separately", () => {
  const modules = Number(process.env["RANDOM_MODULES"] ?? 4);
  const first = Number(process.env["RANDOM_SEED"] ?? 1);
  let ran = 0, exhausted = 0;
  for (let seed = first; seed < first + modules; seed++) {
    const random = new RandomModule(seed);
    const bytes = new Uint8Array(textToBinary(random.text()));
    const whole = trace(interpreted(bytes, random), random.count, ENOUGH) as [number, number, string, bigint][];
    const most = whole.slice(0, -1).reduce((most, [, , , left]) => ENOUGH - left > most ? ENOUGH - left : most, 0n);
    for (let n = 0; n <= AMOUNTS; n++) {
      // Small amounts one by one: most faults show early.
      const fuel = n < AMOUNTS / 2 ? BigInt(n) : most * BigInt(n) / BigInt(AMOUNTS);
      const expected = trace(interpreted(bytes, random), random.count, fuel);
      for (const options of [{}, { bounds: "explicit", optimizations: { inline: false } }] as const) {
        const where = `seed ${seed}, ${fuel} units, ${JSON.stringify(options)}`;
        deepEqual([where, trace(compiled(bytes, random, options), random.count, fuel)], [where, expected]);
      }
      for (const entry of expected.slice(0, -1) as [number, number, string, bigint][]) {
        ran++;
        if (entry[2] === "out of fuel") exhausted++;
      }
    }
  }
  ok(exhausted > ran / 20 && exhausted < ran, `${exhausted} of ${ran} calls ran out of fuel`);
});
