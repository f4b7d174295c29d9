/**
 * Random programs for the string builtins: results, traps and table contents equal those of a JavaScript model, and
 * those of the host's builtins where they comply; before and after machine code takes over, while strings are created,
 * dropped and swept.
 */
import { collectGarbage } from "@waft/engine";
import { WebAssembly as waft } from "@waft/engine/webassembly";
import assert from "node:assert/strict";
import { randoms } from "../support/randoms.ts";
import { TestWorker } from "../support/test_worker.ts";
import { type Exports, heat, Model, oracle, play, playOnce, ROOM, SLOTS, start } from "./string_programs.ts";
import { wasm } from "./subject.ts";

for (const hot of [false, true]) {
  Deno.test(`random programs on strings, ${hot ? "by machine code" : "by the runtime"}`, () => {
    const ours = start(waft);
    if (hot) heat(ours);
    const others = oracle();
    for (let seed = 1; seed <= 12; seed++) {
      const random = randoms(seed);
      const model = new Model();
      const sides = others === undefined ? [ours] : [ours, others];
      for (const side of sides) for (let k = 0; k < SLOTS; k++) side.set(k, null);
      play(sides, model, random, 1000);
      if (seed % 3 === 0) collectGarbage();
      play(sides, model, random, 500);
    }
    assert.throws(() => ours["null array"](), { name: "RuntimeError" });
  });
}

/** Hostile values: those whose methods throw, and strings that implementations store in different ways. */
function hostileValues(): unknown[] {
  const called = () => {
    throw new Error("a builtin called the program");
  };
  const object = { toString: called, valueOf: called, charCodeAt: called, [Symbol.toPrimitive]: called };
  Object.defineProperty(object, "length", { get: called });
  const units = Array.from({ length: 20_000 }, (_, k) => String.fromCharCode(k * 13 & 0xffff)).join("");
  const huge = "x".repeat(1 << 22);
  const lone = "\ud800".repeat(3000) + "\udc00".repeat(3000);
  return [
    object,
    new Proxy({}, { get: called, has: called, getPrototypeOf: called, ownKeys: called }),
    new Proxy(() => 1, { apply: called }),
    new String("abc"),
    Object.create(String.prototype),
    ["a"],
    Symbol.iterator,
    10n ** 30n,
    NaN,
    units,
    huge,
    huge + "\u3042",
    huge.slice(5),
    units.slice(3, 9000),
    lone,
    lone + lone,
    "",
    "\0".repeat(300),
    "a\ud800",
    "\udc00a",
  ];
}

Deno.test("hostile arguments: every builtin with values that call back, huge strings and lone surrogates", () => {
  const ours = start(waft);
  const others = oracle();
  const model = new Model();
  const numbers = [0, -1, 2 ** 31 - 1, -(2 ** 31), 0xd800, 0x10ffff, 0x110000, 5000, (1 << 22) - 1];
  const values = hostileValues();
  for (const hot of [false, true]) {
    if (hot) heat(ours);
    for (const [i, first] of values.entries()) {
      for (const [j, second] of values.entries()) {
        if ((i + j) % 4 !== 0) continue;
        for (const side of others === undefined ? [ours] : [ours, others]) {
          side.set(0, first);
          side.set(1, second);
        }
        [model.slots[0], model.slots[1]] = [first, second];
        for (const x of numbers) playOnce(ours, others, model, [0, 1, x, numbers[(i + j) % numbers.length], 900, 2]);
      }
    }
  }
});

Deno.test("replaced methods of String do not change the builtins", () => {
  const names = ["charCodeAt", "codePointAt", "substring", "slice", "concat"] as const;
  const kept = names.map((name) => Object.getOwnPropertyDescriptor(String.prototype, name)!);
  const { fromCharCode, fromCodePoint } = String;
  const ours = start(waft);
  ours.set(0, "text");
  const outcomes: unknown[] = [];
  let calls = 0;
  const replaced = () => (calls++, "replaced");
  for (const name of names) Object.defineProperty(String.prototype, name, { value: replaced });
  String.fromCharCode = String.fromCodePoint = replaced;
  try {
    for (
      const operation of ["charCodeAt", "codePointAt", "substring", "concat", "fromCharCode", "fromCodePoint", "arrays"]
    ) {
      ours.set(2, null);
      outcomes.push(ours[operation](0, 0, 1, 3, 10, 2), ours.get(2));
    }
  } finally {
    names.forEach((name, k) => Object.defineProperty(String.prototype, name, kept[k]));
    Object.assign(String, { fromCharCode, fromCodePoint });
  }
  const model = new Model();
  model.slots[0] = "text";
  const expected = ["charCodeAt", "codePointAt", "substring", "concat", "fromCharCode", "fromCodePoint", "arrays"]
    .flatMap(
      (operation) => {
        model.slots[2] = null;
        const result = model.run(operation, 0, 0, 1, 3, 10, 2);
        return [result, model.slots[2]];
      },
    );
  assert.deepEqual([outcomes, calls], [expected, 0]);
});

Deno.test("strings of machine code are swept, and live ones stay", () => {
  const ours = start(waft);
  heat(ours);
  const others = oracle();
  const texts = Array.from({ length: SLOTS - 2 }, (_, k) => `text ${k} \ud800${String.fromCharCode(k)}`);
  texts.forEach((text, k) => ours.set(k + 1, text));
  // Half of them are made by machine code, and JavaScript has not seen them before the sweeps.
  texts.forEach((_, k) => k % 2 === 0 && ours.concat(k + 1, k + 1, 0, 0, 0, k + 1));
  for (const text of ["x", "a longer text than most are", "y".repeat(400)]) {
    ours.set(0, text);
    others?.set(0, text);
    const sum = ours.churn(200_000);
    if (others !== undefined) assert.equal(sum, others.churn(200_000));
    if (text === "x") collectGarbage();
  }
  texts.forEach((text, k) => assert.equal(ours.get(k + 1), k % 2 === 0 ? text + text : text));
});

Deno.test("more strings alive than text has room for", () => {
  const ours = start(waft);
  heat(ours);
  // 18,000 units each: more than the arena has.
  const text = (k: number) => String(k).padStart(9, "0").repeat(2000);
  for (let k = 0; k < ROOM; k++) ours.set(SLOTS + k, text(k));
  for (let round = 0; round < 2; round++) {
    for (let k = 1; k < ROOM; k += 1 + round) {
      // Comparing makes copies of both, in the end.
      for (let n = 0; n < 6; n++) assert.equal(ours.equals(SLOTS + k, SLOTS + k - 1, 0, 0, 0, 0), 0);
      assert.equal(ours.charCodeAt(SLOTS + k, 0, 8, 0, 0, 0), 48 + k % 10, `string ${k}`);
    }
  }
  for (let k = 0; k < ROOM - 1; k += 3) {
    const from = 9 * (k % 1990);
    ours.substring(SLOTS + k, 0, from, from + 18, 0, SLOTS + k);
    assert.equal(ours.get(SLOTS + k), String(k).padStart(9, "0").repeat(2));
    assert.equal(ours.get(SLOTS + k + 1), text(k + 1));
  }
  const model = Object.assign(new Model(), { slots: Array.from({ length: SLOTS }, (_, k) => ours.get(k)) });
  play([ours], model, randoms(99), 500);
});

Deno.test("functions of a program under the names of builtins are called, whatever others have", () => {
  heat(start(waft));
  const text = `(module
    (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
    (import "wasm:js-string" "test" (func $test (param externref) (result i32)))
    (import "wasm:js-string" "charCodeAt" (func $at (param externref i32) (result i32)))
    (import "wasm:js-string" "charCodeAt" (func $again (param externref i32) (result i32)))
    (func (export "all") (param externref) (result i32 i32 i32 i32)
      (call $length (local.get 0)) (call $test (local.get 0))
      (call $at (local.get 0) (i32.const 0)) (call $again (local.get 0) (i32.const 0))))`;
  const own = { length: () => 7, test: () => 8, charCodeAt: () => 9 };
  let reads = 0;
  const module = new waft.Module(wasm(text));
  const twice = Object.defineProperty({ ...own }, "charCodeAt", {
    get: () => (reads++, reads === 1 ? () => 1 : () => 2),
  });
  for (const [given, at] of [[own, [9, 9]], [twice, [1, 2]]] as const) {
    // deno-lint-ignore no-explicit-any
    const { all } = new waft.Instance(module, { "wasm:js-string": given }).exports as any;
    for (const value of ["text", null, {}, 5]) assert.deepEqual(all(value), [7, 8, ...at]);
  }
  // With the option, the same module has the builtins.
  assert.deepEqual(start(waft, text).all("text"), [4, 1, 116, 116]);
});

Deno.test("builtins that are exported, referred to and called by reference are those that are imported", () => {
  const ours = start(
    waft,
    `(module (type $t (func (param externref) (result i32)))
    (import "wasm:js-string" "length" (func $length (type $t)))
    (import "wasm:js-string" "concat" (func $concat (param externref externref) (result (ref extern))))
    (export "length" (func $length)) (export "concat" (func $concat))
    (elem declare func $length)
    (func (export "ref") (result funcref) (ref.func $length))
    (func (export "call") (param externref) (result i32) (call_ref $t (local.get 0) (ref.func $length)))
    (func (export "through") (param $f funcref) (param $s externref) (result i32)
      (call_ref $t (local.get $s) (ref.cast (ref $t) (local.get $f)))))`,
  );
  const before = ours.ref();
  for (let round = 0; round < 2; round++) {
    assert.equal(ours.ref(), ours.length);
    assert.equal(ours.ref(), before);
    assert.equal(ours.length("four"), 4);
    assert.equal(ours.call("four"), 4);
    assert.equal(ours.through(ours.length, "four"), 4);
    assert.equal(ours.concat("a", ours.concat("b", "c")), "abc");
    assert.throws(() => ours.call(null), { name: "RuntimeError" });
    heat(start(waft));
  }
  const other = new waft.Instance(
    new waft.Module(
      wasm(`(module (import "wasm:js-string" "length" (func $f (param externref) (result i32)))
        (func (export "f") (param externref) (result i32) (call $f (local.get 0))))`),
    ),
    { "wasm:js-string": { length: ours.length } },
  ).exports as Exports;
  assert.equal(other.f("linked"), 6);
});

Deno.test("a trap of a builtin is not caught, and says where it happened", () => {
  const ours = start(
    waft,
    `(module (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
        (func $outer (export "f") (param externref) (result i32)
          (block $caught (return (try_table (result i32) (catch_all $caught) (call $length (local.get 0)))))
          (i32.const -1)))`,
  );
  for (let round = 0; round < 2; round++) {
    assert.equal(ours.f("ab"), 2);
    assert.throws(() => ours.f(5), { name: "RuntimeError", message: "illegal cast" });
    try {
      ours.f(null);
    } catch (error) {
      assert.deepEqual((error as { frames: { funcName?: string }[] }).frames.map(({ funcName }) => funcName), [
        "outer",
      ]);
    }
    heat(start(waft));
  }
});

Deno.test("every Worker has strings of its own", async () => {
  heat(start(waft));
  const workers = Array.from({ length: 2 }, () => new TestWorker(new URL("./strings_worker.ts", import.meta.url)));
  const seeds = [31, 32];
  assert.deepEqual(await Promise.all(workers.map((worker, k) => worker.ask(seeds[k]))), ["played", "played"]);
  for (const worker of workers) worker.terminate();
  play([start(waft)], new Model(), randoms(33), 500);
});
