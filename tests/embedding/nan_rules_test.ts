/**
 * The NaNs of every float instruction beside a model of the processors' manuals: Intel's "Rules for Handling NaNs",
 * Arm's FPProcessNaNs. In: operands of all classes of NaNs in either position, as values, as loads that instructions
 * take from memory, and as constants. The rule of this machine's processor is its own code, the other is imitated; both
 * tiers and code without optimizations have the same bits.
 */
import assert from "node:assert/strict";
import { type EngineOptions, NewEngine, OPTIMIZATION_ROWS } from "@waft/engine";
import { MAKES_NAN } from "../../engine/translate/imitated_nans.ts";
import { OPCODES } from "../../engine/wasm/opcodes.ts";
import { hidingFeatures } from "../vector/hiding_features.ts";

const ENGINES: readonly EngineOptions[] = [
  { verify: true },
  { optimizations: Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, false])) },
  { tier: "baseline" },
  { bounds: "explicit" },
];

/** Float instructions whose result has the bits of operands, or no NaN. */
const EXACT =
  /\.(load|const|abs|neg|copysign|reinterpret|convert|splat|replace_lane|extract_lane|p?m(in|ax)$|eq$|ne$|[lg][te]$)/;

interface Width {
  readonly bits: 32 | 64;
  /** Bits of the fraction. */
  readonly fraction: bigint;
}
const WIDTHS: Readonly<Record<32 | 64, Width>> = { 32: { bits: 32, fraction: 23n }, 64: { bits: 64, fraction: 52n } };

const infinity = ({ bits, fraction }: Width) => ((1n << (BigInt(bits) - 1n - fraction)) - 1n) << fraction;
const signOf = ({ bits }: Width) => 1n << BigInt(bits - 1);
const quietOf = ({ fraction }: Width) => 1n << (fraction - 1n);
const isNaNBits = (width: Width, x: bigint) => (x & ~signOf(width)) > infinity(width);
const isSignaling = (width: Width, x: bigint) => isNaNBits(width, x) && (x & quietOf(width)) === 0n;

/** Operands: NaNs, infinities and numbers that make NaNs. */
function operands(width: Width): bigint[] {
  const sign = signOf(width), inf = infinity(width), quiet = inf | quietOf(width);
  const nans = [quiet, quiet | 5n, inf | 1n, inf | (quietOf(width) >> 1n) | 3n];
  const numbers = [0n, inf, numberBits(width, 1.5), numberBits(width, 4)];
  return [...nans, ...numbers].flatMap((x) => [x, x | sign]);
}

const VIEW = new DataView(new ArrayBuffer(8));

function numberBits({ bits }: Width, value: number): bigint {
  if (bits === 32) VIEW.setFloat32(0, value);
  else VIEW.setFloat64(0, value);
  return bits === 32 ? BigInt(VIEW.getUint32(0)) : VIEW.getBigUint64(0);
}

function numberOf({ bits }: Width, x: bigint): number {
  if (bits === 32) VIEW.setUint32(0, Number(x));
  else VIEW.setBigUint64(0, x);
  return bits === 32 ? VIEW.getFloat32(0) : VIEW.getFloat64(0);
}

type Processor = "x64" | "arm64";

const ARITHMETIC: Readonly<Record<string, (x: number, y: number) => number>> = {
  add: (x, y) => x + y,
  sub: (x, y) => x - y,
  mul: (x, y) => x * y,
  div: (x, y) => x / y,
  min: Math.min,
  max: Math.max,
  sqrt: Math.sqrt,
  ceil: Math.ceil,
  floor: Math.floor,
  trunc: Math.trunc,
  nearest: (x) => {
    const down = Math.floor(x);
    if (!(Math.abs(x) < 2 ** 52) || x === down) return x;
    const up = x - down > 0.5 || x - down === 0.5 && down % 2 !== 0;
    return up ? down + 1 : down;
  },
};

/** The bits of an operation on numbers of one width, on a processor. */
function calculated(processor: Processor, isVector: boolean, name: string, width: Width, given: bigint[]): bigint {
  const [x, y = 0n] = given;
  const value = ARITHMETIC[name](numberOf(width, x!), numberOf(width, y));
  if (!Number.isNaN(value)) return numberBits(width, value);
  const nans = given.filter((bits) => isNaNBits(width, bits));
  const made = infinity(width) | quietOf(width) | (processor === "x64" ? signOf(width) : 0n);
  if (processor === "x64" && isVector && (name === "min" || name === "max")) return made;
  const signaling = processor === "arm64" ? nans.find((bits) => isSignaling(width, bits)) : undefined;
  const chosen = signaling ?? nans[0];
  return chosen === undefined ? made : chosen | quietOf(width);
}

/** The bits of a conversion between widths. */
function converted(from: Width, to: Width, x: bigint): bigint {
  if (!isNaNBits(from, x)) return numberBits(to, numberOf(from, x));
  const fraction = x & ((1n << from.fraction) - 1n);
  const shift = to.fraction - from.fraction;
  const kept = shift < 0n ? fraction >> -shift : fraction << shift;
  return ((x & signOf(from)) === 0n ? 0n : signOf(to)) | infinity(to) | kept | quietOf(to);
}

/** The expected result of an instruction on lanes, or on one scalar. */
function expected(processor: Processor, mnemonic: string, width: Width, given: bigint[][]): bigint[] {
  const [type, instruction] = mnemonic.split(".") as [string, string];
  const isVector = type.includes("x");
  const name = instruction.replace(/^relaxed_(?=m)/, "");
  if (/^(de|pro)mote/.test(name)) {
    const [from, to] = name.startsWith("d") ? [WIDTHS[64], WIDTHS[32]] : [WIDTHS[32], WIDTHS[64]];
    const lanes = given[0].slice(0, isVector ? 2 : 1).map((x) => converted(from, to, x));
    return name === "demote_f64x2_zero" ? [...lanes, 0n, 0n] : lanes;
  }
  const one = (operation: string, ...of: bigint[]) => calculated(processor, isVector, operation, width, of);
  return given[0].map((x, k) => {
    const [y, z] = [given[1]?.[k], given[2]?.[k]];
    if (instruction === "relaxed_madd") return one("add", one("mul", x, y!), z!);
    if (instruction === "relaxed_nmadd") return one("sub", z!, one("mul", x, y!));
    return y === undefined ? one(name, x) : one(name, x, y);
  });
}

interface Case {
  readonly mnemonic: string;
  /** Type of the operands and of the result in memory. */
  readonly from: string;
  readonly to: string;
  readonly count: number;
  /** Width and number of lanes of the operands, width of those of the result. */
  readonly width: Width;
  readonly lanes: number;
  readonly result: Width;
}

const LETTERS: Readonly<Record<string, string>> = { f: "f32", F: "f64", v: "v128" };

function caseOf(mnemonic: string, params: string, results: string, makes: number): Case {
  const from = LETTERS[params[0]];
  const result = WIDTHS[makes === 2 ? 64 : 32];
  const width = /demote|promote/.test(mnemonic) ? WIDTHS[result.bits === 32 ? 64 : 32] : result;
  const lanes = from === "v128" ? 128 / width.bits : 1;
  return { mnemonic, from, to: LETTERS[results[0]], count: params.length, width, lanes, result };
}

const CASES: readonly Case[] = OPCODES.filter(({ id }) => MAKES_NAN[id] !== 0)
  .map(({ id, mnemonic, params, results }) => caseOf(mnemonic, params!, results!, MAKES_NAN[id]));

/** The forms of an instruction in a module: its operands, as text, and the order in which they are given. */
const FORMS = ["values", "exchanged", "loads", "loads exchanged", "constants"] as const;

/** The text of a constant with these lanes. */
function constantText({ from, width }: Case, lanes: readonly bigint[]): string {
  if (from === "v128") return `(v128.const i${width.bits}x${128 / width.bits} ${lanes.join(" ")})`;
  return `(${from}.reinterpret_i${width.bits} (i${width.bits}.const ${lanes[0]}))`;
}

/** A module that computes all forms at once; operand k is at 16 k, the result of form k at 64 + 16 k. */
function moduleOf(of: Case, first: readonly bigint[]): string {
  const { mnemonic, from, to, count } = of;
  const order = Array.from({ length: count }, (_, k) => k);
  const load = (k: number) => `(${from}.load (i32.const ${16 * k}))`;
  const value = (k: number) => `(local.get ${k})`;
  const apply = (operand: (k: number) => string, of = order) => `(${mnemonic} ${of.map(operand).join(" ")})`;
  const exchanged = count === 1 ? order : [1, 0, ...order.slice(2)];
  const constant = (k: number) => k === 0 ? constantText(of, first) : load(k);
  const results = [apply(value), apply(value, exchanged), apply(load), apply(load, exchanged), apply(constant)];
  const stores = results.map((text, k) => `(${to}.store (i32.const ${64 + 16 * k}) ${text})`);
  return `(module (memory (export "memory") 1)
    (func $f (param ${`${from} `.repeat(count)}) ${stores.join("\n")})
    (func (export "run") (call $f ${order.map(load).join(" ")})))`;
}

function writeLanes(view: DataView, at: number, { bits }: Width, lanes: readonly bigint[]): void {
  for (const [k, x] of lanes.entries()) {
    if (bits === 32) view.setUint32(at + 4 * k, Number(x), true);
    else view.setBigUint64(at + 8 * k, x, true);
  }
}

function readLanes(view: DataView, at: number, { bits }: Width, count: number): bigint[] {
  return Array.from(
    { length: count },
    (_, k) => bits === 32 ? BigInt(view.getUint32(at + 4 * k, true)) : view.getBigUint64(at + 8 * k, true),
  );
}

/** Checks one instruction in one engine with all pairs of operands; constants are the operands `first`. */
function check(of: Case, nans: Processor, options: EngineOptions, first: readonly bigint[]): void {
  const { mnemonic, width, lanes, count } = of;
  const instance = NewEngine({ ...options, deterministic: true, nans }).compile(moduleOf(of, first)).instantiate();
  const view = new DataView((instance.exports["memory"] as { buffer: ArrayBuffer }).buffer);
  const all = operands(width);
  const resultLanes = of.to === "v128" ? 128 / of.result.bits : 1;
  const pairs = count === 1 ? all.length : all.length ** 2;
  for (let pair = 0; pair < pairs; pair++) {
    const given = Array.from(
      { length: count },
      (_, k) =>
        Array.from(
          { length: lanes },
          (_, lane) =>
            all[(Math.floor(pair / all.length ** (k % 2)) + lane * (k + 1) + (k === 2 ? pair : 0)) % all.length],
        ),
    );
    given.forEach((x, k) => writeLanes(view, 16 * k, width, x));
    instance.call({}, "run");
    const [x, y, ...rest] = given as [bigint[], bigint[], ...bigint[][]];
    const exchanged = count === 1 ? given : [y, x, ...rest];
    const inputs = [given, exchanged, given, exchanged, [first as bigint[], ...given.slice(1)]];
    for (const [k, input] of inputs.entries()) {
      const actual = readLanes(view, 64 + 16 * k, of.result, resultLanes);
      const wanted = expected(nans, mnemonic, width, input);
      const hex = (bits: bigint[]) => bits.map((b) => b.toString(16)).join(" ");
      assert.equal(
        hex(actual),
        hex(wanted),
        `${mnemonic}, NaNs of ${nans}, ${JSON.stringify(options)}, ${FORMS[k]}: ${input.map(hex).join("; ")}`,
      );
    }
  }
  instance.close();
}

Deno.test("the table of NaNs has every float instruction that computes", () => {
  const computing = OPCODES.filter(({ mnemonic, params, results }) => {
    if (params === undefined || results === undefined || params === "") return false;
    return /^f(32|64)/.test(mnemonic) && /[fFv]/.test(results) && !EXACT.test(mnemonic.replace(/relaxed_/, ""));
  });
  const names = computing.map(({ mnemonic }) => mnemonic);
  const extremes = CASES.map(({ mnemonic }) => mnemonic).filter((name) => /\.(relaxed_)?m(in|ax)$/.test(name));
  assert.deepEqual([...names, ...extremes].sort(), CASES.map(({ mnemonic }) => mnemonic).sort());
  assert.equal(extremes.length, 12);
});

function checkAll(nans: Processor, options: EngineOptions): void {
  for (const of of CASES) {
    const all = operands(of.width);
    for (const pick of [1, 7]) {
      check(of, nans, options, Array.from({ length: of.lanes }, (_, k) => all[(pick + 2 * k) % all.length]));
    }
  }
}

for (const nans of ["x64", "arm64"] as const) {
  for (const options of ENGINES) {
    Deno.test(`float instructions make the NaNs of ${nans}: ${JSON.stringify(options).slice(0, 40)}`, () => {
      checkAll(nans, options);
    });
  }
  Deno.test(`float instructions of older processors make the NaNs of ${nans}`, () => {
    hidingFeatures(["avx", "avx2"], () => checkAll(nans, {}));
  });
}

Deno.test("the option nans takes a rule or the processor, and requires deterministic code", () => {
  const { nans } = NewEngine({ deterministic: true, nans: "processor" });
  assert.ok(nans === "x64" || nans === "arm64");
  assert.equal(NewEngine({ deterministic: true }).nans, "canonical");
  assert.throws(() => NewEngine({ deterministic: true, nans: "mips" as "x64" }), /nans must be canonical, x64, arm64/);
  assert.throws(() => NewEngine({ nans: "x64" }), /nans requires the option deterministic/);
});

Deno.test("code that imitates NaNs is optimized code, with the reason in the statistics", () => {
  const own = NewEngine({ deterministic: true, nans: "processor" }).nans;
  const text = `(module (func (export "f") (param f64) (result f64) (f64.sqrt (local.get 0))))`;
  for (const nans of ["x64", "arm64"] as const) {
    const { statistics } = NewEngine({ deterministic: true, nans, tier: "baseline" }).compile(text);
    assert.equal(statistics["not-baseline:imitated-nans"] ?? 0, nans === own ? 0 : 1);
  }
});
