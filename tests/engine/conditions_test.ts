/**
 * Conditions that combine two comparisons, compiled for the current processor, against JavaScript's results: integers
 * of both widths, floats including NaN; as branch, select and value, inverted and not.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";

const PARAMS = "(param $a i32) (param $b i32) (param $c i64) (param $d i64) (param $e f32) (param $f f64)";
const I32 = [0, 1, -1, 7, -7, 31, 32, 65536, 2147483647, -2147483648];
const I64 = [0n, 1n, -1n, 20n, -31n, 4294967296n, -(1n << 63n), (1n << 63n) - 1n];
const FLOATS = [0, -0, 1.5, -2, NaN, Infinity];
type Values = readonly [number, number, bigint, bigint, number, number];
interface Comparison {
  text: string;
  holds(values: Values): boolean;
}

const INTEGER: Readonly<Record<string, (x: bigint, y: bigint) => boolean>> = {
  eq: (x, y) => x === y,
  ne: (x, y) => x !== y,
  lt: (x, y) => x < y,
  gt: (x, y) => x > y,
  le: (x, y) => x <= y,
  ge: (x, y) => x >= y,
};

function integerComparison(bits: 32 | 64, op: string, sign: string, other: bigint | string): Comparison {
  const type = `i${bits}`;
  const [x, y] = bits === 32 ? [0, 1] : [2, 3];
  const right = typeof other === "string" ? `(local.get ${y})` : `(${type}.const ${other})`;
  const read = (value: number | bigint) => sign === "_u" ? BigInt.asUintN(bits, BigInt(value)) : BigInt(value);
  return {
    text: `(${type}.${op}${sign} (local.get ${x}) ${right})`,
    holds: (values) => INTEGER[op](read(values[x]), read(typeof other === "string" ? values[y] : other)),
  };
}

function comparisons(): Comparison[] {
  const list: Comparison[] = [];
  for (const bits of [32, 64] as const) {
    for (const op of Object.keys(INTEGER)) {
      const sign = op === "eq" || op === "ne" ? "" : list.length % 2 === 0 ? "_s" : "_u";
      for (const other of ["local", 0n, 31n, -31n, 100000n]) list.push(integerComparison(bits, op, sign, other));
    }
  }
  for (const [type, at] of [["f32", 4], ["f64", 5]] as const) {
    for (const [op, holds] of Object.entries({ lt: 1, ge: 2, eq: 3, ne: 4 })) {
      for (const right of [0, 1.5]) {
        list.push({
          text: `(${type}.${op} (local.get ${at}) (${type}.const ${right}))`,
          holds: (v) => [v[at] < right, v[at] >= right, v[at] === right, v[at] !== right][holds - 1],
        });
      }
    }
  }
  list.push({ text: "(i32.eqz (i32.and (local.get 0) (i32.const 12)))", holds: (v) => (v[0] & 12) === 0 });
  list.push({ text: "(i32.lt_u (local.get 0) (i32.shl (local.get 1) (i32.const 3)))", holds: shifted });
  return list;
}

function shifted(v: Values): boolean {
  return (v[0] >>> 0) < ((v[1] << 3) >>> 0);
}

/** The uses of a condition: text that evaluates to 1 or 0. */
const USES: readonly ((c: string) => string)[] = [
  (c) => c,
  (c) => `(if (result i32) ${c} (then (i32.const 1)) (else (i32.const 0)))`,
  (c) => `(select (i32.const 1) (i32.const 0) (i32.eqz (i32.eqz ${c})))`,
  (c) => `(block (br_if 0 (i32.eqz ${c})) (return (i32.const 1))) (i32.const 0)`,
];

Deno.test("combined comparisons evaluate like their parts", () => {
  const list = comparisons();
  const functions: { text: string; holds: (values: Values) => boolean }[] = [];
  for (let k = 0; k < list.length; k++) {
    for (const step of [1, 7, 23]) {
      const [x, y] = [list[k], list[(k + step) % list.length]];
      const use = USES[functions.length % USES.length];
      functions.push({ text: use(`(i32.and ${x.text} ${y.text})`), holds: (v) => x.holds(v) && y.holds(v) });
      functions.push({ text: use(`(i32.or ${x.text} ${y.text})`), holds: (v) => x.holds(v) || y.holds(v) });
    }
    // A truth value that is not a comparison.
    const x = list[k];
    const branch = (c: string) => `(if (result i32) ${c} (then (i32.const 1)) (else (i32.const 0)))`;
    functions.push({ text: branch(`(i32.or ${x.text} (local.get $b))`), holds: (v) => x.holds(v) || v[1] !== 0 });
  }
  const text = functions.map((f, k) => `(func (export "f${k}") ${PARAMS} (result i32) ${f.text})`).join("\n");
  const instance = NewEngine({ verify: true }).compile(`(module ${text})`).instantiate();
  functions.forEach(({ text, holds }, k) => {
    for (let n = 0; n < 24; n++) {
      const pick = <T>(from: readonly T[], by: number) => from[(n * by + k) % from.length];
      const values: Values = [pick(I32, 1), pick(I32, 3), pick(I64, 1), pick(I64, 3), pick(FLOATS, 1), pick(FLOATS, 5)];
      const result = Number(instance.call({}, `f${k}`, ...values));
      assert.equal(result, Number(holds(values)), `${text} of ${values.join(", ")}`);
    }
  });
});
