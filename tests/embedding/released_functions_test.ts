/**
 * Instances and values that compiled code got and dropped again are collected. In: instances and values that JavaScript
 * no longer refers to. Out: how many are left after a sweep. No program of this file has objects, of which a sweep does
 * not know to which instance they belong.
 */
import assert from "node:assert/strict";
import { host, type Instance, NewEngine } from "../../engine/mod.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { settle } from "../support/collect_garbage.ts";

const COUNT = 30;
const engine = NewEngine();
const GIVER = engine.compile(`(module (tag $t (param funcref externref))
  (func $f (export "f") (param funcref) (result i32) (i32.const 7))
  (func (export "throw") (param externref) (throw $t (ref.func $f) (local.get 0))))`);
const RECEIVER = engine.compile(`(module (table (export "table") 2 funcref) (global $held (mut funcref) (ref.null func))
  (func (export "take") (param funcref) (global.set $held (local.get 0))))`);

type Functions = Record<string, (...args: unknown[]) => unknown>;

/** The number of instances of GIVER that stay open after each was put to `use`. */
async function remaining(use: (giver: Functions, receiver: Instance) => void): Promise<number> {
  const receiver = RECEIVER.instantiate();
  await settle();
  const { thread, instances } = realmStore();
  const openBefore = instances.open;
  for (let k = 0; k < COUNT; k++) use(GIVER.instantiate().exports as Functions, receiver);
  thread.attention.sweepDue = true;
  thread.services.atSafepoint();
  await settle();
  const left = instances.open - openBefore;
  RECEIVERS.push(receiver);
  return left;
}
const RECEIVERS: Instance[] = [];

const USES: Readonly<Record<string, (giver: Functions, receiver: Instance) => void>> = {
  "replaced in a global by code": ({ f }, receiver) => (receiver.exports as Functions)["take"](f),
  "replaced in a table by JavaScript": ({ f }, receiver) => {
    (receiver.exports["table"] as { set(index: number, value: unknown): void }).set(1, f);
  },
  "thrown to JavaScript": (giver) => void assert.throws(() => giver["throw"]({})),
};

for (const [name, use] of Object.entries(USES)) {
  Deno.test(`an instance is collected after its function was ${name}`, async () => {
    const left = await remaining(use);
    assert.ok(left < COUNT / 4, `${left} of ${COUNT} instances are left`);
  });
}

/** Puts values somewhere and takes them out again; without calls of code that has references afterwards. */
const PLACES: Readonly<Record<string, (value: object) => void>> = (() => {
  const table = host.table("externref", 2);
  const global = host.global("externref", true, null);
  const { exports } = engine.compile(`(module (tag $t (param externref)) (table (export "t") 2 externref)
    (func (export "throw") (param externref) (throw $t (local.get 0)))
    (func (export "see") (param externref)))`).instantiate();
  const own = exports["t"] as { set(index: number, value: unknown): void };
  const { throw: raise, see } = exports as Functions;
  return {
    "a table of the host": (value) => [value, null].forEach((v) => table.set(0, v)),
    "a global of the host": (value) => [value, null].forEach((v) => global.value = v),
    "an instance's table": (value) => [value, null].forEach((v) => own.set(1, v)),
    "an exception": (value) => void assert.throws(() => raise(value)),
    "an argument": (value) => void see(value),
  };
})();

let collected = 0;
// A registry that is garbage itself reports nothing.
const REGISTRY = new FinalizationRegistry(() => collected++);

for (const [place, put] of Object.entries(PLACES)) {
  Deno.test(`values that were in ${place} are collected, without further calls`, async () => {
    const count = 600;
    collected = 0;
    for (let k = 0; k < count; k++) {
      const value = { k };
      REGISTRY.register(value, undefined);
      put(value);
    }
    await settle();
    // the last collection of the JavaScript engine may leave less than a sweep is worth
    assert.ok(collected > count - 100, `${collected} of ${count}`);
  });
}

/** Ways in which an instance, and values of the host, hold themselves. */
const CYCLES: Readonly<
  Record<string, (exports: Functions & { table: { set(index: number, value: unknown): void } }) => void>
> = {
  "its table": (exports) => exports.table.set(1, { exports }),
  "its global": (exports) => void exports["keep"]({ exports }),
  "an exnref": (exports) => void exports["catch"]({ exports }),
  "an exnref of a JavaScript error": (exports) =>
    void exports["catchError"](() => {
      throw Object.assign(new Error("kept"), { exports });
    }),
};

const HOLDER = engine.compile(`(module (type $call (func)) (import "h" "call" (func $host (param externref)))
  (tag $t (param externref)) (table (export "table") 2 externref)
  (global $held (mut externref) (ref.null extern)) (global $e (mut exnref) (ref.null exn))
  (func (export "keep") (param externref) (global.set $held (local.get 0)))
  (func (export "held") (result externref) (global.get $held))
  (func (export "catch") (param externref) (global.set $e
    (block $h (result exnref) (try_table (catch_all_ref $h) (throw $t (local.get 0))) unreachable)))
  (func (export "catchError") (param externref) (global.set $e
    (block $h (result exnref) (try_table (catch_all_ref $h) (call $host (local.get 0))) unreachable)))
  (func (export "rethrow") (throw_ref (global.get $e)))
  (func (export "caught") (result externref)
    (block $h (result externref) (try_table (catch $t $h) (throw_ref (global.get $e))) unreachable)))`);
const HELD_IMPORTS = { h: { call: (f: () => void) => f() } };
const makeHolder = () => HOLDER.instantiate({}, HELD_IMPORTS).exports as never as Parameters<typeof CYCLES[string]>[0];

/** Collects and sweeps, more than once: a sweep leaves to an instance what the next collection finds. */
async function sweepOften(): Promise<void> {
  const { thread } = realmStore();
  for (let round = 0; round < 2; round++) {
    thread.attention.sweepDue = true;
    thread.services.atSafepoint();
    await settle();
  }
}

for (const [way, hold] of Object.entries(CYCLES)) {
  Deno.test(`an instance that holds itself by ${way} is collected`, async () => {
    await sweepOften();
    const before = realmStore().instances.open;
    for (let k = 0; k < COUNT; k++) hold(makeHolder());
    await sweepOften();
    const left = realmStore().instances.open - before;
    assert.ok(left < COUNT / 4, `${left} of ${COUNT} instances are left`);
  });
}

Deno.test("values that a living instance holds stay, with their identity, whoever gets them next", async () => {
  const kept = Array.from({ length: 20 }, () => {
    const holder = makeHolder();
    for (const hold of Object.values(CYCLES)) hold(holder);
    holder["catch"]({ holder });
    return holder;
  });
  const receiver = makeHolder();
  for (let round = 0; round < 2; round++) {
    await sweepOften();
    for (const holder of kept) {
      assert.equal((holder["held"]() as { exports: unknown }).exports, holder);
      assert.equal((holder["caught"]() as { holder: unknown }).holder, holder);
      assert.equal((holder.table as never as { get(index: number): { exports: unknown } }).get(1).exports, holder);
      assert.throws(() => holder["rethrow"](), (error: { payload: [unknown] }) => {
        return error.payload[0] === holder["caught"]();
      });
    }
  }
  receiver["keep"](kept[3]["held"]());
  receiver["catchError"](() => kept[4]["rethrow"]());
  await sweepOften();
  kept[3]["keep"](null);
  kept[4]["catch"](null);
  await sweepOften();
  assert.equal((receiver["held"]() as { exports: unknown }).exports, kept[3]);
  assert.throws(() => receiver["rethrow"](), (error: { payload: [{ holder: unknown }] }) => {
    return error.payload[0].holder === kept[4];
  });
});
