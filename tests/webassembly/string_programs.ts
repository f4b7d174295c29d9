/**
 * Random string programs: a module whose functions apply the builtins to a table of strings, a JavaScript model of
 * them, and sequences of operations whose outcomes must agree.
 */
import { WebAssembly as waft } from "@waft/engine/webassembly";
import assert from "node:assert/strict";
import { randoms } from "../support/randoms.ts";
import { type Namespace, wasm } from "./subject.ts";

/** Slots of the table that programs work on. */
export const SLOTS = 24;
/** Slots behind these, which they leave alone. */
export const ROOM = 2000;
/** More calls than the runtime serves itself: see runtime/strings/string_builtins.ts. */
const HEAT = 100_000;

const IMPORTS: Readonly<Record<string, string>> = {
  cast: "(param externref) (result (ref extern))",
  test: "(param externref) (result i32)",
  fromCharCodeArray: "(param (ref null $a) i32 i32) (result (ref extern))",
  intoCharCodeArray: "(param externref (ref null $a) i32) (result i32)",
  fromCharCode: "(param i32) (result (ref extern))",
  fromCodePoint: "(param i32) (result (ref extern))",
  charCodeAt: "(param externref i32) (result i32)",
  codePointAt: "(param externref i32) (result i32)",
  length: "(param externref) (result i32)",
  concat: "(param externref externref) (result (ref extern))",
  substring: "(param externref i32 i32) (result (ref extern))",
  equals: "(param externref externref) (result i32)",
  compare: "(param externref externref) (result i32)",
};

/** Operations: parameters $i and $j are slots, $x, $y and $z numbers, $to is the slot for a string. */
const OPERATIONS: Readonly<Record<string, string>> = {
  cast: "(table.set (local.get $to) (call $cast (table.get (local.get $i)))) (i32.const 0)",
  test: "(call $test (table.get (local.get $i)))",
  fromCharCode: "(table.set (local.get $to) (call $fromCharCode (local.get $x))) (i32.const 0)",
  fromCodePoint: "(table.set (local.get $to) (call $fromCodePoint (local.get $x))) (i32.const 0)",
  charCodeAt: "(call $charCodeAt (table.get (local.get $i)) (local.get $x))",
  codePointAt: "(call $codePointAt (table.get (local.get $i)) (local.get $x))",
  length: "(call $length (table.get (local.get $i)))",
  concat: `(table.set (local.get $to) (call $concat (table.get (local.get $i)) (table.get (local.get $j))))
    (i32.const 0)`,
  substring: `(table.set (local.get $to)
    (call $substring (table.get (local.get $i)) (local.get $x) (local.get $y))) (i32.const 0)`,
  equals: "(call $equals (table.get (local.get $i)) (table.get (local.get $j)))",
  compare: "(call $compare (table.get (local.get $i)) (table.get (local.get $j)))",
  // Through an array of $z units, from where $x says, and back from $x to $y; the units around are looked at, too.
  arrays: `(local.set $array (array.new $a (i32.const 46) (local.get $z)))
    (local.set $n (call $intoCharCodeArray (table.get (local.get $i)) (local.get $array) (local.get $x)))
    (table.set (local.get $to) (call $fromCharCodeArray (local.get $array) (local.get $x) (local.get $y)))
    (loop $all
      (local.set $z (i32.sub (local.get $z) (i32.const 1)))
      (if (i32.ge_s (local.get $z) (i32.const 0)) (then
        (local.set $n (i32.add (i32.mul (local.get $n) (i32.const 31)) (array.get_u $a (local.get $array) (local.get $z))))
        (br $all))))
    (local.get $n)`,
};

const PROGRAM = `(module (type $a (array (mut i16)))
  ${
  Object.entries(IMPORTS).map(([name, type]) => `(import "wasm:js-string" "${name}" (func $${name} ${type}))`).join(
    "\n",
  )
}
  (table ${SLOTS + ROOM} externref)
  (func (export "get") (param i32) (result externref) (table.get (local.get 0)))
  (func (export "set") (param i32 externref) (table.set (local.get 0) (local.get 1)))
  (func (export "null array") (result externref) (call $fromCharCodeArray (ref.null $a) (i32.const 0) (i32.const 0)))
  (func (export "heat") (param $s externref) (param $n i32) (result i32) (local $sum i32)
    (loop $more
      (local.set $sum (i32.add (local.get $sum) (call $length (local.get $s))))
      (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))
  (func (export "churn") (param $n i32) (result i32) (local $s externref) (local $sum i32)
    (loop $more
      (local.set $s (call $concat (call $fromCharCode (i32.and (local.get $n) (i32.const 1023))) (table.get (i32.const 0))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (call $charCodeAt
        (call $substring (local.get $s) (i32.const 0) (i32.const 2)) (i32.const 1))))
      (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))
  ${
  Object.entries(OPERATIONS).map(([name, body]) =>
    `(func (export "${name}") (param $i i32) (param $j i32) (param $x i32) (param $y i32) (param $z i32) (param $to i32)
      (result i32) (local $array (ref null $a)) (local $n i32) ${body})`
  ).join("\n")
})`;

const OPTIONS = { builtins: ["js-string"] };

// deno-lint-ignore no-explicit-any
export type Exports = any;

/** The exports of an instance of `text` that has the builtins. */
export function start(W: Namespace, text = PROGRAM): Exports {
  return new W.Instance(new W.Module(wasm(text), OPTIONS), {}).exports;
}

/**
 * The host's builtins, if it has them and `equals` accepts null beside null and beside a string, as the proposal says.
 * V8 complies; JavaScriptCore traps on null beside a string. Without an oracle, the model alone judges.
 */
export function oracle(): Exports | undefined {
  try {
    const exports = start(globalThis.WebAssembly);
    exports.set(1, "");
    assert.equal(exports.equals(0, 0, 0, 0, 0, 0), 1, "null equals null");
    assert.equal(exports.equals(0, 1, 0, 0, 0, 0), 0, "null differs from a string");
    assert.equal(exports.equals(1, 0, 0, 0, 0, 0), 0, "a string differs from null");
    return exports;
  } catch {
    return undefined;
  }
}

const TRAP = "trap";

/** Reference model of the builtins in JavaScript, on an array of values. */
export class Model {
  readonly slots: unknown[] = Array.from({ length: SLOTS }, () => null);

  #text(i: number): string {
    const value = this.slots[i];
    if (typeof value !== "string") throw TRAP;
    return value;
  }

  #put(to: number, text: string): number {
    this.slots[to] = text;
    return 0;
  }

  run(name: string, i: number, j: number, x: number, y: number, z: number, to: number): number {
    const [from, end] = [x >>> 0, y >>> 0];
    switch (name) {
      case "cast":
        return this.#put(to, this.#text(i));
      case "test":
        return typeof this.slots[i] === "string" ? 1 : 0;
      case "fromCharCode":
        return this.#put(to, String.fromCharCode(x));
      case "fromCodePoint":
        if (from > 0x10ffff) throw TRAP;
        return this.#put(to, String.fromCodePoint(x));
      case "charCodeAt":
      case "codePointAt":
        if (from >= this.#text(i).length) throw TRAP;
        return this.#text(i)[name](from) as number;
      case "length":
        return this.#text(i).length;
      case "concat":
        return this.#put(to, this.#text(i) + this.#text(j));
      case "substring": {
        const text = this.#text(i);
        return this.#put(to, from > end || from > text.length ? "" : text.slice(from, end));
      }
      case "equals":
        for (const k of [i, j]) if (this.slots[k] !== null) this.#text(k);
        return this.slots[i] === this.slots[j] ? 1 : 0;
      case "compare": {
        const [a, b] = [this.#text(i), this.#text(j)];
        return a === b ? 0 : a < b ? -1 : 1;
      }
      default: {
        const units = new Array<number>(z).fill(46);
        const text = this.#text(i);
        if (from + text.length > z) throw TRAP;
        for (let k = 0; k < text.length; k++) units[from + k] = text.charCodeAt(k);
        if (from > end || end > z) throw TRAP;
        this.#put(to, units.slice(from, end).map((unit) => String.fromCharCode(unit)).join(""));
        return units.reduceRight((sum, unit) => Math.imul(sum, 31) + unit | 0, text.length);
      }
    }
  }
}

/** Code units for edge cases: zero, ASCII, Latin, paired and unpaired surrogates, the last unit. */
const UNITS = [0, 65, 66, 97, 255, 256, 0x3b1, 0xd7ff, 0xd800, 0xd83d, 0xdbff, 0xdc00, 0xde00, 0xdfff, 0xe000, 0xffff];

function randomText(random: (below: number) => number): string {
  const length = [0, 1, 2, 3, 4, 5, 8, 13, 30, 64, 65, 254, 300, 511, 700, 5000][random(16)];
  const units = Array.from({ length }, () => UNITS[random(random(2) === 0 ? 4 : UNITS.length)]);
  const text = String.fromCharCode(...units);
  // Not flat in every implementation.
  return random(3) === 0 ? text + text.slice(random(length + 1)) : text;
}

const OTHERS = [null, undefined, 5, -1, 2 ** 31, 1.5, true, 7n, {}, Symbol("s"), new String("text"), () => {}];

/** Runs `count` operations on `sides` and the model. */
export function play(sides: readonly Exports[], model: Model, random: (below: number) => number, count: number): void {
  const names = Object.keys(OPERATIONS);
  const number =
    () => [0, 1, 2, 3, 63, 64, 255, 256, 512, 0xd800, 0xffff, 0x10ffff, 0x110000, -1, -(2 ** 31), 2 ** 31 - 1];
  const numeral = () => random(2) === 0 ? random(random(2) === 0 ? 10 : 600) : number()[random(16)];
  for (let step = 0; step < count; step++) {
    const [i, j, to] = [random(SLOTS), random(SLOTS), random(SLOTS)];
    if (random(8) === 0) {
      const value = random(6) === 0 ? OTHERS[random(OTHERS.length)] : randomText(random);
      model.slots[to] = value;
      for (const side of sides) side.set(to, value);
      continue;
    }
    const name = names[random(names.length)];
    const args = [i, j, numeral(), numeral(), random(1000), to] as const;
    const words = `step ${step}: ${name}(${args.join()})`;
    const act = (run: () => number) => {
      try {
        return run();
      } catch (error) {
        if (error === TRAP || (error as Error).name === "RuntimeError") return TRAP;
        throw error;
      }
    };
    const expected = act(() => model.run(name, ...args));
    for (const side of sides) assert.equal(act(() => side[name](...args)), expected, words);
    if (typeof model.slots[to] === "string" && model.slots[to].length > 20000) {
      model.slots[to] = "";
      for (const side of sides) side.set(to, "");
    }
    // Not always: a string that JavaScript has seen is another case.
    const seen = random(SLOTS * 2);
    if (seen < SLOTS) { for (const side of sides) assert.ok(Object.is(side.get(seen), model.slots[seen]), words); }
  }
  for (const side of sides) {
    for (let k = 0; k < SLOTS; k++) assert.ok(Object.is(side.get(k), model.slots[k]), `slot ${k}`);
  }
}

/** Runs every operation with `args` on both sides and the model: results, traps and the new string must agree. */
export function playOnce(
  ours: Exports,
  others: Exports | undefined,
  model: Model,
  args: readonly [number, number, number, number, number, number],
): void {
  const to = args[5];
  const outcome = (run: () => number): unknown => {
    try {
      return run();
    } catch (error) {
      if (error === TRAP || (error as Error).name === "RuntimeError") return TRAP;
      throw error;
    }
  };
  for (const name of Object.keys(OPERATIONS)) {
    model.slots[to] = null;
    const expected = [outcome(() => model.run(name, ...args)), model.slots[to]];
    for (const side of others === undefined ? [ours] : [ours, others]) {
      side.set(to, null);
      const got = [outcome(() => side[name](...args)), side.get(to)];
      // Not deepEqual: a failure would print strings of megabytes.
      assert.ok(Object.is(got[0], expected[0]) && Object.is(got[1], expected[1]), `${name}(${args.join()})`);
    }
  }
}

/** Lets machine code take over. */
export function heat(ours: Exports): void {
  assert.equal(ours.heat("abc", HEAT), HEAT * 3);
}

/** The task of a Worker: random programs, in the runtime and in machine code. */
export function playAlone(seed: number): string {
  const ours = start(waft);
  play([ours], new Model(), randoms(seed), 300);
  heat(ours);
  for (let k = 0; k < SLOTS; k++) ours.set(k, null);
  play([ours], new Model(), randoms(seed + 1), 1500);
  return "played";
}
