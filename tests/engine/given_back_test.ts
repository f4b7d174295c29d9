/**
 * The memory of baseline code is given back once optimized code has replaced it: not while a frame may return there,
 * and with the same results for everything that holds addresses of the old code. In: programs with a function of
 * several pages. Out: results, and the bytes given back.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { NewEngine } from "@waft/engine";
import type { Module } from "@waft/engine";
import { RECORD } from "../../engine/abi/context_layout.ts";
import { HANG_MS } from "../support/hang.ts";

/** Steps of a function of some 32 KB. */
const STEPS = 1600;
const MIX = "(local.set $x (i64.add (i64.mul (local.get $x) (i64.const 31)) (i64.xor (local.get $x) (i64.const 77))))";
const HALF = MIX.repeat(STEPS / 2);

const PROGRAM = `(module
  (import "host" "tick" (func $tick (param i64)))
  (type $unary (func (param i64) (result i64)))
  (table (export "table") 2 funcref)
  (elem (i32.const 0) func $large $small)
  (func $small (export "small") (type $unary) (i64.add (local.get 0) (i64.const 1)))
  (func $large (export "large") (type $unary) (local $x i64)
    (local.set $x (local.get 0)) ${HALF} (call $tick (local.get $x)) ${HALF} (local.get $x))
  (func (export "trap") (param $x i64) (result i64)
    ${MIX.repeat(STEPS)} (i64.div_s (call $small (local.get $x)) (i64.const 0)))
  (func (export "indirect") (param i64 i32) (result i64)
    (call_indirect (type $unary) (local.get 0) (local.get 1))))`;

/** Calls the function of another instance by an import and by its table. */
const CALLER = `(module
  (import "other" "large" (func $large (param i64) (result i64)))
  (import "other" "table" (table 2 funcref))
  (func (export "both") (param i64) (result i64)
    (i64.add (call $large (local.get 0)) (call_indirect (param i64) (result i64) (local.get 0) (i32.const 0)))))`;

type Unary = (x: bigint) => bigint;
interface Exports {
  large: Unary;
  small: Unary;
  trap: Unary;
  indirect(x: bigint, index: number): bigint;
}

const largeOf = (x: bigint): bigint => {
  for (let k = 0; k < STEPS; k++) x = BigInt.asIntN(64, x * 31n + (x ^ 77n));
  return x;
};

const MOST = process.platform === "linux" ? 100_000 : 0;
/** Whether the pages of `large` functions of some 32 KB are given back. */
const isGivenBack = (module: Module, large = 2): boolean => module.givenBack >= MOST / 4 * large;

function start(tick: (x: bigint) => unknown = () => {}) {
  const module = NewEngine({ tier: "auto" }).compile(PROGRAM);
  const instance = module.instantiate({}, { host: { tick } });
  return { module, instance, exports: instance.exports as unknown as Exports };
}

/** Calls a function until the pages are given back, which is attempted at calls. */
function untilGivenBack(module: Module, { small }: Exports, large = 2): void {
  const end = performance.now() + HANG_MS;
  while (!isGivenBack(module, large)) {
    assert.equal(small(1n), 2n);
    assert.ok(performance.now() < end, "the pages were never given back");
  }
}

Deno.test("replaced code is given back; everything that holds its addresses calls the new code", () => {
  const { module, instance, exports: { large, small, indirect } } = start();
  const caller = NewEngine().compile(CALLER).instantiate({}, { other: instance.exports as never });
  const both = caller.exports["both"] as Unary;
  assert.equal(both(5n), BigInt.asIntN(64, 2n * largeOf(5n)));
  assert.equal(module.givenBack, 0);
  module.serialize(); // switches
  assert.ok(isGivenBack(module), `${module.givenBack}`);
  for (let k = 0; k < 3; k++) {
    assert.equal(large(7n), largeOf(7n));
    assert.equal(indirect(7n, 0), largeOf(7n));
    assert.equal(small(7n), 8n);
    assert.equal(both(5n), BigInt.asIntN(64, 2n * largeOf(5n)));
  }
  const later = module.instantiate({}, { host: { tick() {} } }).exports as unknown as Exports;
  assert.equal(later.indirect(9n, 0), largeOf(9n));
});

Deno.test("code with a frame on the stack is not given back before the frame is gone", () => {
  const { module, exports } = start(() => {
    if (module.givenBack === 0) module.serialize();
    assert.equal(module.givenBack, 0);
  });
  assert.equal(exports.large(3n), largeOf(3n));
  untilGivenBack(module, exports);
});

Deno.test("the pages of many functions are given back in steps", () => {
  const count = 80;
  const text = `(module (import "host" "tick" (func $tick))
    (func (export "small") (param i64) (result i64) (i64.add (local.get 0) (i64.const 1)))
    (func (export "park") (call $tick))
    ${`(func (param $x i64) (result i64) ${MIX.repeat(500)} (local.get $x))`.repeat(count)})`;
  const module = NewEngine({ tier: "auto" }).compile(text);
  const { tables: { functionStart, functionEnd } } = module.internal.image;
  assert.ok(functionEnd[2] - functionStart[2] > 2 * 4096);
  const { exports } = module.instantiate({}, { host: { tick: () => void module.serialize() } });
  const { park } = exports as unknown as { park(): void };
  park();
  assert.equal(module.givenBack, 0);
  const seen = new Set<number>();
  const all = process.platform === "linux" ? count * 4096 : 0;
  for (const end = performance.now() + HANG_MS; module.givenBack < all;) {
    assert.ok(performance.now() < end, `${module.givenBack} of ${all}`);
    assert.equal((exports as unknown as Exports).small(1n), 2n);
    seen.add(module.givenBack);
  }
  assert.ok(all === 0 || seen.size > 2, `${[...seen]}`);
});

Deno.test("code with a suspended frame is not given back before the call has ended", async () => {
  let resolve = (): void => {};
  const { module, instance, exports } = start(() => new Promise<void>((done) => resolve = done));
  const call = instance.callAsync({}, "large", 3n);
  module.serialize();
  for (let k = 0; k < 200; k++) assert.equal(exports.small(1n), 2n);
  assert.equal(module.givenBack, 0);
  resolve();
  assert.equal(await call, largeOf(3n));
  untilGivenBack(module, exports);
});

Deno.test("code with a frame of a suspended computation is not given back before the computation has ended", () => {
  const engine = NewEngine({ tier: "auto", features: { "stack-switching": true } });
  const module = engine.compile(`(module
    (type $unary (func (param i64) (result i64))) (type $begin (cont $unary))
    (type $rest (func (result i64))) (type $waiting (cont $rest))
    (tag $wait)
    (global $kept (mut (ref null $waiting)) (ref.null $waiting))
    (elem declare func $large)
    (func (export "small") (type $unary) (i64.add (local.get 0) (i64.const 1)))
    (func $large (type $unary) (local $x i64)
      (local.set $x (local.get 0)) ${HALF} (suspend $wait) ${HALF} (local.get $x))
    (func (export "begin") (param i64)
      (block $suspended (result (ref $waiting))
        (resume $begin (on $wait $suspended) (local.get 0) (cont.new $begin (ref.func $large))) (unreachable))
      (global.set $kept))
    (func (export "finish") (result i64) (resume $waiting (global.get $kept))))`);
  const { exports } = module.instantiate();
  const { begin, finish } = exports as unknown as { begin(x: bigint): void; finish(): bigint };
  begin(3n);
  module.serialize();
  for (let k = 0; k < 200; k++) assert.equal((exports as unknown as Exports).small(1n), 2n);
  assert.equal(module.givenBack, 0);
  assert.equal(finish(), largeOf(3n));
  untilGivenBack(module, exports as unknown as Exports, 1);
});

Deno.test("traps have the same place after code was given back", () => {
  const stackOf = ({ trap }: Exports) => {
    try {
      trap(1n);
    } catch (error) {
      return (error as { frames?: unknown }).frames;
    }
    return assert.fail("no trap");
  };
  const { module, exports } = start();
  const before = stackOf(exports);
  module.serialize();
  assert.ok(isGivenBack(module));
  assert.ok(before !== undefined);
  assert.deepEqual(stackOf(exports), before);
});

Deno.test("code that other realms use is not given back", () => {
  const { module, exports } = start();
  module.internal.references.share();
  module.serialize();
  for (let k = 0; k < 100; k++) assert.equal(exports.small(1n), 2n);
  assert.equal(module.givenBack, 0);
});

Deno.test({
  name: "execution of pages that were given back ends the call",
  ignore: process.platform !== "linux", // elsewhere they stay
  fn: () => {
    const { module, instance, exports } = start();
    const { image: { base, tables: { functionStart, functionEnd } } } = module.internal;
    const middle = base + ((functionStart[1] + functionEnd[1]) >> 1);
    module.serialize();
    assert.ok(isGivenBack(module));
    const { region } = instance.internal;
    const record = instance.internal.recordOffset(2) + RECORD.CODE;
    const code = region.word(record);
    region.setWord(record, middle);
    assert.throws(() => exports.indirect(7n, 0));
    region.setWord(record, code);
    assert.equal(exports.indirect(7n, 0), largeOf(7n));
  },
});

Deno.test("no thunk of an image is within a function", () => {
  const { image } = NewEngine({ tier: "baseline" }).compile(PROGRAM).internal;
  const { entryThunk, hostThunk } = image.tables;
  const thunks = [...entryThunk, ...hostThunk].filter((offset) => offset >= 0);
  assert.ok(thunks.length > 0);
  assert.deepEqual(thunks.filter((offset) => image.functionAt(image.base + offset) >= 0), []);
});
