/**
 * Functions that cover every vector instruction in all forms that selection distinguishes: operands in registers, from
 * memory, as constants on either side, the same operand twice, all lanes, all kinds of shuffles. Each takes an address
 * p: operands are at p, p + 16 and p + 32; the result goes to p + 64, followed by copies of the operands, to show that
 * they are preserved.
 */
import { SIMD_ROWS } from "../../engine/wasm/opcodes_simd.ts";
import { randomNumbers, randomVector } from "./random_vectors.ts";

interface VectorCase {
  /** The instruction, with its immediates. */
  name: string;
  /** The function's body in the text format. */
  body: string;
  /** Lanes of the result at p + 64 that may be differing NaNs: 0 for none, else their width in bytes. */
  nanWidth: number;
}

const next = randomNumbers(7);
const A = "(v128.load (local.get $p))";
const B = "(v128.load offset=16 (local.get $p))";
const C = "(v128.load offset=32 (local.get $p))";
const LOADS: Readonly<Record<string, string>> = {
  i: "(i32.load offset=16 (local.get $p))",
  I: "(i64.load offset=16 (local.get $p))",
  f: "(f32.load offset=16 (local.get $p))",
  F: "(f64.load offset=16 (local.get $p))",
};
const STORES: Readonly<Record<string, string>> = {
  v: "v128.store",
  i: "i32.store",
  I: "i64.store",
  f: "f32.store",
  F: "f64.store",
};
const LOCALS = "(local $a v128) (local $b v128)";
const SET = `(local.set $a ${A}) (local.set $b ${B})`;
const COPY =
  "(v128.store offset=80 (local.get $p) (local.get $a)) (v128.store offset=96 (local.get $p) (local.get $b))";

function literal(bytes: Uint8Array): string {
  return `(v128.const i8x16 ${bytes.join(" ")})`;
}

const CONSTANTS = [
  new Uint8Array(16),
  new Uint8Array(16).fill(255),
  ...Array.from({ length: 4 }, () => randomVector(next)),
].map(literal);

const MASKS = [
  ...CONSTANTS,
  literal(Uint8Array.from({ length: 16 }, (_, k) => (k & 2) === 0 ? 255 : 0)),
  literal(Uint8Array.from({ length: 16 }, (_, k) => k < 6 ? 0 : 255)),
];

const ARITHMETIC =
  /^(f\d+x\d)\.(add|sub|mul|div|sqrt|ceil|floor|trunc|nearest|min|max|demote_f64x2_zero|promote_low_f32x4)$/;

/** Shuffles with a single-instruction form, and some without. */
const SHUFFLES: number[][] = [
  ...[1, 2, 4, 8].flatMap((width) =>
    [0, 8].flatMap((high) =>
      [[0, 16], [16, 0], [0, 0], [16, 16]].map(([x, y]) =>
        Array.from({ length: 16 }, (_, k) => {
          const element = Math.floor(k / width);
          return (element % 2 === 0 ? x : y) + high + (element >> 1) * width + (k % width);
        })
      )
    )
  ),
  ...[1, 5, 8, 15, 16, 17, 23, 31].map((d) => Array.from({ length: 16 }, (_, k) => (k + d) % 32)),
  ...[1, 7, 12].map((d) => Array.from({ length: 16 }, (_, k) => (k + d) % 16)),
  ...Array.from({ length: 12 }, () => {
    const words = Array.from({ length: 4 }, () => next() % 8);
    return Array.from({ length: 16 }, (_, k) => words[k >> 2] * 4 + (k & 3));
  }),
  ...Array.from({ length: 6 }, () => {
    const words = Array.from({ length: 4 }, (_, k) => (next() % 4) + (k < 2 ? 0 : 4));
    return Array.from({ length: 16 }, (_, k) => words[k >> 2] * 4 + (k & 3));
  }),
  ...Array.from({ length: 6 }, (_, n) => {
    const halves = Array.from({ length: 8 }, (_, k) => (n & 1) === (k >> 2) ? k : (next() % 4) + (k & 4));
    return Array.from({ length: 16 }, (_, k) => halves[k >> 1] * 2 + (k & 1));
  }),
  ...Array.from({ length: 6 }, () => {
    const sides = next();
    return Array.from({ length: 16 }, (_, k) => k + 16 * ((sides >> (k >> 1)) & 1));
  }),
  ...Array.from({ length: 12 }, () => Array.from({ length: 16 }, () => next() % 32)),
  Array.from({ length: 16 }, (_, k) => k),
  Array.from({ length: 16 }, (_, k) => k + 16),
  Array.from({ length: 16 }, () => 3),
];

/** The lanes of an instruction with a lane immediate. */
function laneCount(mnemonic: string): number {
  const memory = /^v128\.(?:load|store)(\d+)_lane$/.exec(mnemonic);
  return memory !== null ? 128 / Number(memory[1]) : Number(/x(\d+)/.exec(mnemonic)![1]);
}

function nanWidth(mnemonic: string): number {
  const match = ARITHMETIC.exec(mnemonic);
  return match === null ? 0 : match[1] === "f32x4" ? 4 : 8;
}

/** All cases of strict instructions. */
export function vectorCases(): VectorCase[] {
  const cases: VectorCase[] = [];
  for (const row of SIMD_ROWS) {
    const [, mnemonic, immediates, signature] = row.split(" ");
    if (mnemonic.includes("relaxed") || mnemonic === "v128.const") continue;
    const [params, results] = signature.split("_");
    const add = (name: string, body: string) => cases.push({ name, body, nanWidth: nanWidth(mnemonic) });
    const store = (value: string) => `(${STORES[results]} offset=64 (local.get $p) ${value})`;
    const variants = mnemonic === "i8x16.shuffle"
      ? SHUFFLES.map((lanes) => ` ${lanes.join(" ")}`)
      : immediates.includes("lane")
      ? Array.from({ length: laneCount(mnemonic) }, (_, lane) => ` ${lane}`)
      : [""];
    for (const immediate of variants) {
      const op = `${mnemonic}${immediate}`;
      switch (params) {
        case "a":
          add(op, store(`(${op} (local.get $p))`));
          add(`${op} far`, store(`(${mnemonic} offset=5 (local.get $p))`));
          break;
        case "av":
          if (mnemonic.startsWith("v128.store")) {
            add(op, `(${op.replace(" ", " offset=67 ")} (local.get $p) ${B})`);
          } else add(op, store(`(${op.replace(" ", " offset=3 ")} (local.get $p) ${B})`));
          break;
        case "v":
          add(op, store(`(${op} ${A})`));
          add(`${op} kept`, `${LOCALS} ${SET} ${store(`(${op} (local.get $a))`)} ${COPY}`);
          for (const constant of CONSTANTS.slice(1, 3)) add(`${op} constant`, store(`(${op} ${constant})`));
          break;
        case "vv":
          add(op, store(`(${op} ${A} ${B})`));
          add(`${op} kept`, `${LOCALS} ${SET} ${store(`(${op} (local.get $a) (local.get $b))`)} ${COPY}`);
          add(`${op} kept exchanged`, `${LOCALS} ${SET} ${store(`(${op} (local.get $b) (local.get $a))`)} ${COPY}`);
          // Two loads that the optimizer merges.
          add(`${op} alike`, store(`(${op} ${A} ${A})`));
          add(`${op} same`, `${LOCALS} ${SET} ${store(`(${op} (local.get $a) (local.get $a))`)} ${COPY}`);
          add(
            `${op} first from memory`,
            `${LOCALS} ${SET} ${store(`(${op} ${C} (local.get $a))`)} ${COPY}`,
          );
          for (const constant of mnemonic === "i8x16.shuffle" ? CONSTANTS.slice(0, 3) : CONSTANTS) {
            add(`${op} constant right`, store(`(${op} ${A} ${constant})`));
            add(`${op} constant left`, store(`(${op} ${constant} ${B})`));
          }
          break;
        case "vvv":
          add(op, store(`(${op} ${A} ${B} ${C})`));
          add(`${op} kept`, `${LOCALS} ${SET} ${store(`(${op} (local.get $a) (local.get $b) ${C})`)} ${COPY}`);
          for (const constant of CONSTANTS.slice(0, 3)) {
            add(`${op} constant first`, store(`(${op} ${constant} ${B} ${C})`));
            add(`${op} constant second`, store(`(${op} ${A} ${constant} ${C})`));
          }
          add(`${op} alike`, `${LOCALS} ${SET} ${store(`(${op} (local.get $a) (local.get $a) ${C})`)} ${COPY}`);
          for (const mask of MASKS) add(`${op} constant mask`, store(`(${op} ${A} ${B} ${mask})`));
          add(`${op} mask kept`, `${LOCALS} ${SET} ${store(`(${op} ${C} (local.get $b) (local.get $a))`)} ${COPY}`);
          break;
        default: {
          const scalar = LOADS[params.at(-1)!];
          if (params.length === 1) {
            add(op, store(`(${op} ${scalar})`));
            break;
          }
          add(op, store(`(${op} ${A} ${scalar})`));
          add(`${op} kept`, `${LOCALS} ${SET} ${store(`(${op} (local.get $a) ${scalar})`)} ${COPY}`);
          if (params !== "vi" || immediate !== "") break;
          for (const count of [0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, -1]) {
            add(`${op} by ${count}`, store(`(${op} ${A} (i32.const ${count}))`));
          }
        }
      }
    }
  }
  return cases;
}

const INVERSES = [
  ...["i8x16", "i16x8", "i32x4"].flatMap((shape) => ["ne", "gt_u", "lt_u"].map((name) => `${shape}.${name}`)),
  ...["i64x2.ne", "i64x2.ge_s", "i64x2.le_s"],
];

/** Masks whose inverse the hardware computes, in the instructions that can use it. */
export function maskCases(): VectorCase[] {
  const masks = [...INVERSES.map((name) => `(${name} ${B} ${C})`), `(v128.not ${B})`];
  return masks.flatMap((mask) =>
    [
      `(v128.bitselect ${A} ${C} ${mask})`,
      `(v128.and ${A} ${mask})`,
      `(v128.and ${mask} ${A})`,
      `(v128.and ${mask} ${mask})`,
      `(v128.andnot ${A} ${mask})`,
      `(v128.andnot ${mask} ${A})`,
      `(v128.bitselect ${mask} ${A} ${mask})`,
    ].map((value) => ({ name: value, body: `(v128.store offset=64 (local.get $p) ${value})`, nanWidth: 0 }))
  );
}

/** A module of the cases: function k is exported as `k`, the memory as `m`. */
export function vectorModule(cases: readonly VectorCase[]): string {
  const functions = cases.map(({ body }, k) => `(func (export "${k}") (param $p i32) ${body})`);
  return `(module (memory (export "m") 1)\n${functions.join("\n")})`;
}
