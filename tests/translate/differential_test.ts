/**
 * Random modules, translated and interpreted, against the host's WebAssembly: same results, traps, globals and memory.
 * RANDOM_MODULES=n runs n seeds, RANDOM_SEED=s starts at seed s.
 */
import { Statistics } from "../../engine/base/statistics.ts";
import { noneBut } from "../../engine/testing/optimizations.ts";
import { deepEqual, equal, ok } from "node:assert/strict";
import process from "node:process";
import { featureSet } from "../../engine/settings/features.ts";
import { TrapSignal } from "../../engine/ir/testing/interpret.ts";
import { verifyFunction } from "../../engine/ir/verify.ts";
import { textToBinary } from "../../engine/text/parse_module.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { TRAP_MESSAGES } from "../../engine/base/traps.ts";
import { AddressSpace, InterpretedInstance } from "../support/interpreted_instance.ts";
import { RandomModule } from "./random_module.ts";

const FUEL = 60;
const ARGUMENTS = [
  0n,
  1n,
  0xffffffffffffffffn,
  0x3ff0000000000000n,
  0x40490fdbn,
  0x8000000080000000n,
  300n,
  0x7ff8000000000000n,
];

const BITS = new DataView(new ArrayBuffer(8));

/** Converts bits to the host's JavaScript value of a type. */
function hostValue(type: string, bits: bigint): number | bigint {
  BITS.setBigUint64(0, bits);
  if (type === "i32") return BITS.getInt32(4);
  if (type === "i64") return BITS.getBigInt64(0);
  return type === "f32" ? BITS.getFloat32(4) : BITS.getFloat64(0);
}

/** Maps the host's trap messages to those of the suite. */
function trapName(message: string): string {
  if (/by zero/.test(message)) return "integer divide by zero";
  if (/unrepresentable/.test(message) && /float/.test(message)) return "conversion";
  if (/unrepresentable/.test(message)) return "integer overflow";
  if (/memory access|out of bounds memory/.test(message)) return "out of bounds memory access";
  if (/table index is out of bounds|undefined element|uninitialized|null function|signature mismatch/.test(message)) {
    return "call";
  }
  return message;
}

function ourTrapName(code: number): string {
  const message = TRAP_MESSAGES[code];
  if (message === "invalid conversion to integer") return "conversion";
  if (/element|indirect/.test(message)) return "call";
  return message;
}

function tryModule(seed: number, statistics: Statistics): void {
  const random = new RandomModule(seed);
  const bytes = new Uint8Array(textToBinary(random.text()));
  const host = new WebAssembly.Instance(new WebAssembly.Module(bytes));
  const valid = validateModule(decodeModule(bytes), featureSet());
  const ours = new InterpretedInstance(valid, new AddressSpace(), () => undefined, {
    explicitBounds: seed % 2 === 1,
    optimizations: noneBut(
      seed % 3 === 0 ? {} : {
        "inline": true,
        "inline-loop-callees": seed % 3 === 1,
        "immutable-table": seed % 5 < 4,
        "immutable-table-type": seed % 5 < 2,
      },
    ),
    statistics,
    prepare: (f) => verifyFunction(f),
  });
  const global = (name: string) => ours.exports.get(name) as { kind: "global"; address: number };
  const readGlobal = (name: string) => {
    const { view, offset } = ours.resolve(global(name).address, 8)!;
    return view.getBigUint64(offset, true);
  };
  for (let k = 0; k < random.count; k++) {
    const { params, results } = random.signature(k);
    for (let round = 0; round < 3; round++) {
      const where = `seed ${seed}, f${k}, round ${round}`;
      const args = params.map((type, n) => {
        const bits = ARGUMENTS[(round * 3 + n * 5 + k) % ARGUMENTS.length];
        return type === "i32" || type === "f32" ? bits & 0xffffffffn : bits;
      });
      (host.exports.fuel as WebAssembly.Global).value = FUEL;
      const cell = ours.resolve(global("fuel").address, 8)!;
      cell.view.setBigUint64(cell.offset, BigInt(FUEL), true);
      let expected: string | unknown[];
      try {
        const f = host.exports[`f${k}`] as (...values: unknown[]) => unknown;
        const value = f(...params.map((type, n) => hostValue(type, args[n])));
        expected = results.length === 0 ? [] : results.length === 1 ? [value] : [...value as unknown[]];
      } catch (error) {
        expected = trapName((error as Error).message);
      }
      let actual: string | unknown[];
      try {
        const { record } = ours.exports.get(`f${k}`) as { kind: "func"; record: number };
        actual = ours.invoke(record, args).map((bits, n) => hostValue(results[n], bits));
      } catch (error) {
        if (!(error instanceof TrapSignal)) throw new Error(where, { cause: error });
        actual = ourTrapName(error.code);
        // The host reports overflow of a truncation as a failed conversion.
        if (expected === "conversion" && actual === "integer overflow") actual = "conversion";
      }
      deepEqual({ where, actual }, { where, actual: expected });
      equal(readGlobal("g0"), BigInt((host.exports.g0 as WebAssembly.Global).value >>> 0), `${where}: g0`);
      equal(readGlobal("g1"), BigInt.asUintN(64, (host.exports.g1 as WebAssembly.Global).value), `${where}: g1`);
      const fuel = Number(readGlobal("fuel"));
      equal(fuel | 0, (host.exports.fuel as WebAssembly.Global).value, `${where}: fuel`);
    }
  }
  const theirs = new Uint8Array((host.exports.memory as WebAssembly.Memory).buffer);
  const mine = new Uint8Array(ours.memory0().buffer);
  equal(mine.length, theirs.length, `seed ${seed}: memory size`);
  ok(mine.every((byte, k) => byte === theirs[k]), `seed ${seed}: memory content`);
}

Deno.test("random modules behave as on the host's WebAssembly", () => {
  const count = Number(process.env.RANDOM_MODULES ?? 120);
  const first = Number(process.env.RANDOM_SEED ?? 1);
  const statistics = new Statistics();
  for (let seed = first; seed < first + count; seed++) tryModule(seed, statistics);
  for (const key of count > 100 ? ["inline", "inline-loop-callees", "immutable-table"] : []) {
    ok(statistics.of(key) > 0, `${key} never applied`);
  }
});
