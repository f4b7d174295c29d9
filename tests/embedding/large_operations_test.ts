/**
 * Operations whose work grows with their operands, in code without loops and calls: they end once the time of the call
 * is up, and moves in pieces have the same results as whole ones. The time is used up by a host function, so that no
 * test depends on how long an operation takes.
 */
import assert from "node:assert/strict";
import { collectGarbage, type Context, type Memory, NewEngine } from "@waft/engine";
import { PIECE_BYTES } from "../../engine/abi/builtins.ts";
import { randoms } from "../support/randoms.ts";

const LIMITS: readonly (readonly [name: string, make: () => Context])[] = [
  ["deadline", () => ({ deadline: 1 })],
  ["processorTime", () => ({ processorTime: 1 })],
];
const PAGES = 3 * PIECE_BYTES / 65536;

const { thread } = NewEngine().compile("(module)").instantiate().internal.store;

/** Uses up a millisecond of time and of this thread's processor time, also beside other threads and processes. */
function useTime(): void {
  for (const end = thread.limits.processorNow() + 2; thread.limits.processorNow() < end;);
}

/** An operation, and the state that shows how far it came: `before` if it did nothing. */
interface Operation {
  readonly name: string;
  readonly fields: string;
  readonly code: string;
  readonly state: string;
  readonly before: number;
}

const OPERATIONS: readonly Operation[] = [
  {
    name: "memory.fill",
    fields: `(memory ${PAGES})`,
    code: `(memory.fill (i32.const 0) (i32.const 7) (i32.const ${3 * PIECE_BYTES}))`,
    state: `(i32.load8_u (i32.const ${PIECE_BYTES}))`,
    before: 0,
  },
  {
    name: "memory.copy forwards",
    fields: `(memory ${PAGES}) (data (i32.const ${2 * PIECE_BYTES}) "x")`,
    code: `(memory.copy (i32.const 0) (i32.const 1) (i32.const ${3 * PIECE_BYTES - 1}))`,
    state: `(i32.load8_u (i32.const ${2 * PIECE_BYTES - 1}))`,
    before: 0,
  },
  {
    name: "memory.copy backwards",
    fields: `(memory ${PAGES}) (data (i32.const 0) "x")`,
    code: `(memory.copy (i32.const 1) (i32.const 0) (i32.const ${3 * PIECE_BYTES - 1}))`,
    state: `(i32.load8_u (i32.const 1))`,
    before: 0,
  },
  {
    name: "array.fill of bytes",
    fields: `(type $a (array (mut i8))) (global $g (ref $a) (array.new_default $a (i32.const ${3 * PIECE_BYTES})))`,
    code: `(array.fill $a (global.get $g) (i32.const 0) (i32.const 7) (i32.const ${3 * PIECE_BYTES}))`,
    state: `(array.get_u $a (global.get $g) (i32.const ${2 * PIECE_BYTES}))`,
    before: 0,
  },
  ...(["i16", "i32", "i64", "(ref null any)"] as const).map((type): Operation => ({
    name: `array.fill of ${type}`,
    fields: `(type $a (array (mut ${type})))
      (global $g (ref $a) (array.new_default $a (i32.const ${3 * PIECE_BYTES / 2})))`,
    code: `(array.fill $a (global.get $g) (i32.const 0)
      ${type === "i64" ? "(i64.const 7)" : type.startsWith("i") ? "(i32.const 7)" : "(ref.i31 (i32.const 7))"}
      (i32.const ${3 * PIECE_BYTES / 2}))`,
    state: type === "i64"
      ? `(i32.wrap_i64 (array.get $a (global.get $g) (i32.const ${3 * PIECE_BYTES / 2 - 1})))`
      : type.startsWith("i")
      ? `(array.get${type === "i16" ? "_u" : ""} $a (global.get $g) (i32.const ${3 * PIECE_BYTES / 2 - 1}))`
      : `(i32.eqz (ref.is_null (array.get $a (global.get $g) (i32.const ${3 * PIECE_BYTES / 2 - 1}))))`,
    before: 0,
  })),
  {
    name: "array.new of words",
    fields: `(type $a (array (mut i64))) (global $g (mut (ref null $a)) (ref.null $a))`,
    code: `(global.set $g (array.new $a (i64.const 7) (i32.const ${PIECE_BYTES})))`,
    state: `(ref.is_null (global.get $g))`,
    before: 1,
  },
  {
    name: "array.copy",
    fields: `(type $a (array (mut i64))) (global $g (ref $a) (array.new $a (i64.const 1) (i32.const ${PIECE_BYTES})))
      (global $h (ref $a) (array.new_default $a (i32.const ${PIECE_BYTES})))`,
    code: `(array.copy $a $a (global.get $h) (i32.const 0) (global.get $g) (i32.const 0) (i32.const ${PIECE_BYTES}))`,
    state: `(i32.wrap_i64 (array.get $a (global.get $h) (i32.const ${PIECE_BYTES - 1})))`,
    before: 0,
  },
  {
    name: "memory.grow",
    fields: `(memory 1 100)`,
    code: `(drop (memory.grow (i32.const 50)))`,
    state: `(memory.size)`,
    before: 1,
  },
  {
    name: "table.grow",
    fields: `(table 1 externref)`,
    code: `(drop (table.grow (ref.null extern) (i32.const 1000)))`,
    state: `(table.size)`,
    before: 1,
  },
  {
    name: "table.fill",
    fields: `(table 100 anyref)`,
    code: `(table.fill (i32.const 0) (ref.i31 (i32.const 1)) (i32.const 100))`,
    state: `(ref.is_null (table.get (i32.const 99)))`,
    before: 1,
  },
  {
    name: "table.copy",
    fields: `(table 100 anyref) (elem (table 0) (i32.const 0) anyref (ref.i31 (i32.const 1)))`,
    code: `(table.copy (i32.const 1) (i32.const 0) (i32.const 99))`,
    state: `(ref.is_null (table.get (i32.const 1)))`,
    before: 1,
  },
  {
    name: "table.init",
    fields: `(table 100 anyref) (elem $e anyref (ref.i31 (i32.const 1)))`,
    code: `(table.init 0 $e (i32.const 5) (i32.const 0) (i32.const 1))`,
    state: `(ref.is_null (table.get (i32.const 5)))`,
    before: 1,
  },
  {
    name: "memory.init",
    fields: `(memory 1) (data $d "x")`,
    code: `(memory.init $d (i32.const 5) (i32.const 0) (i32.const 1))`,
    state: `(i32.load8_u (i32.const 5))`,
    before: 0,
  },
];

for (const tier of ["baseline", "optimizing"] as const) {
  for (const bounds of ["guard", "explicit"] as const) {
    Deno.test(`${tier}, ${bounds}: large operations end once the time of the call is up`, async () => {
      const engine = NewEngine({ interruptible: true, tier, bounds });
      for (const { name, fields, code, state, before } of OPERATIONS) {
        const module = engine.compile(`(module (import "h" "use-time" (func $use)) ${fields}
          (func (export "f") (call $use) ${code}) (func (export "state") (result i32) ${state}))`);
        for (const [limit, make] of LIMITS) {
          for (const way of ["call", "callAsync"] as const) {
            const instance = module.instantiate({}, { h: { "use-time": useTime } });
            const words = `${name}, ${limit}, ${way}`;
            await assert.rejects(
              async () => await (way === "call" ? instance.call(make(), "f") : instance.callAsync(make(), "f")),
              { message: "interrupted" },
              words,
            );
            assert.equal(instance.call({}, "state"), before, words);
            instance.call({}, "f");
            assert.notEqual(instance.call({}, "state"), before, `${words}, without a limit`);
            instance.close();
          }
        }
      }
    });

    Deno.test(`${tier}, ${bounds}: moves and fills of several pieces are those of JavaScript`, () => {
      const instance = NewEngine({ tier, bounds, fuel: tier === "baseline" }).compile(`(module
        (memory (export "m") ${PAGES + 16})
        (func (export "copy") (param i32 i32 i32) (result i32) (local i32 i64 f64 v128)
          (local.set 3 (i32.const 3)) (local.set 4 (i64.const 4)) (local.set 5 (f64.const 5))
          (local.set 6 (v128.const i64x2 6 7))
          (memory.copy (local.get 0) (local.get 1) (local.get 2))
          (memory.fill (local.get 0) (i32.const 0x19a) (i32.and (local.get 2) (i32.const 1023)))
          (memory.fill (i32.add (local.get 1) (i32.const 5)) (i32.const 77) (i32.sub (local.get 2) (i32.const 5)))
          (i32.add (i32.add (local.get 3) (i32.wrap_i64 (local.get 4)))
            (i32.add (i32.trunc_f64_u (local.get 5)) (i32.wrap_i64 (i64x2.extract_lane 1 (local.get 6)))))))`)
        .instantiate();
      const bytes = new Uint8Array((instance.exports["m"] as Memory).buffer);
      const random = randoms(7);
      for (let round = 0; round < 12; round++) {
        for (let k = 0; k < 4000; k++) bytes[random(bytes.length)] = 1 + random(255);
        const expected = bytes.slice();
        const count = PIECE_BYTES * (1 + round % 3) + [-1, 0, 1, 4095][random(4)] - 65536;
        const distance = [1, 63, 64, 4096, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1][random(7)];
        const low = random(1000);
        const high = Math.min(low + distance, bytes.length - count);
        const [to, from] = round % 2 === 0 ? [low, high] : [high, low];
        assert.equal(instance.call({}, "copy", to, from, count), 19);
        expected.copyWithin(to, from, from + count);
        expected.fill(0x9a, to, to + (count & 1023));
        expected.fill(77, from + 5, from + count);
        assert.ok(expected.every((byte, at) => bytes[at] === byte), `${to} ${from} ${count}`);
      }
      instance.close();
      collectGarbage();
    });
  }
}
