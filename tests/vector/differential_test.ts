/**
 * Every strict vector instruction, in all its forms, against V8 on random operands: with AVX2, with AVX, and with
 * SSE4.1 only; with guard pages and explicit bounds. Results are identical except for NaNs from arithmetic.
 */
import { equal, ok } from "node:assert/strict";
import process from "node:process";
import { encodeModule } from "../../engine/binary/encode.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { hidingFeatures } from "./hiding_features.ts";
import { randomNumbers, randomVector } from "./random_vectors.ts";
import { maskCases, vectorCases, vectorModule } from "./vector_cases.ts";

/**
 * Left out under emulation: qemu 10.0 evaluates BSL to all ones if its last operand is MOVI's all ones, in any code
 * (two such instructions in sequence reproduce it; qemu 7.2 is correct).
 */
const EMULATOR_IS_WRONG = "v128.bitselect constant second";
const CASES = [...vectorCases(), ...maskCases()]
  .filter(({ name }) => process.env["WAFT_EMULATED"] === undefined || name !== EMULATOR_IS_WRONG);
const TEXT = vectorModule(CASES);
const BYTES = encodeModule(parseModule(TEXT));
/** Rounds of operands per case. */
const ROUNDS = 8;
/** Deliberately not aligned to 16, nor are memory operands then. */
const ADDRESS = 1029;
const REGION = 128;

type Run = (address: number) => void;
interface Side {
  memory: Uint8Array;
  run: Run[];
}

function v8Side(): Side {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(BYTES as Uint8Array<ArrayBuffer>));
  return {
    memory: new Uint8Array((exports["m"] as WebAssembly.Memory).buffer),
    run: CASES.map((_, k) => exports[k] as Run),
  };
}

function waftSide(bounds: "guard" | "explicit"): Side {
  const { exports } = NewEngine({ bounds, verify: true }).compile(BYTES).instantiate();
  return {
    memory: new Uint8Array((exports["m"] as { buffer: ArrayBuffer }).buffer),
    run: CASES.map((_, k) => exports[k] as Run),
  };
}

function isNan(bytes: Uint8Array, at: number, width: number): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at);
  return Number.isNaN(width === 4 ? view.getFloat32(0, true) : view.getFloat64(0, true));
}

/** Whether the regions are equal except for NaNs in lanes of `nanWidth` bytes at 64. */
function alike(expected: Uint8Array, actual: Uint8Array, nanWidth: number): boolean {
  for (let k = 0; k < REGION; k++) {
    if (expected[k] === actual[k]) continue;
    if (nanWidth === 0 || k < 64 || k >= 80) return false;
    const at = k - (k % nanWidth);
    if (!isNan(expected, at, nanWidth) || !isNan(actual, at, nanWidth)) return false;
    k = at + nanWidth - 1;
  }
  return true;
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("").replace(/(.{32})/g, "$1 ");
}

function compareSides(bounds: "guard" | "explicit"): void {
  const v8 = v8Side();
  const waft = waftSide(bounds);
  const next = randomNumbers(1);
  let compared = 0;
  CASES.forEach(({ name, nanWidth }, k) => {
    for (let round = 0; round < ROUNDS; round++) {
      const region = new Uint8Array(REGION);
      for (let n = 0; n < 3; n++) region.set(randomVector(next), 16 * n);
      for (const { memory } of [v8, waft]) memory.set(region, ADDRESS);
      v8.run[k](ADDRESS);
      waft.run[k](ADDRESS);
      const expected = v8.memory.slice(ADDRESS, ADDRESS + REGION);
      const actual = waft.memory.slice(ADDRESS, ADDRESS + REGION);
      if (!alike(expected, actual, nanWidth)) {
        equal(hex(actual), hex(expected), `${name} (case ${k}) of ${hex(region)}`);
      }
      compared++;
    }
  });
  ok(compared > 10_000);
}

Deno.test("vector instructions with all features of the processor agree with V8", () => compareSides("guard"));

Deno.test("vector instructions with AVX but not AVX2 agree with V8", () =>
  hidingFeatures(["avx2", "fma"], () => compareSides("guard")));

Deno.test("vector instructions with SSE4.1 only agree with V8", () => {
  hidingFeatures(["avx", "avx2", "fma", "bmi1", "bmi2", "lzcnt", "popcnt", "sse4.2"], () => compareSides("guard"));
});

Deno.test("vector instructions with explicit bounds agree with V8", () => compareSides("explicit"));
