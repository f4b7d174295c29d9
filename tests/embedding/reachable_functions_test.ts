/**
 * Functions that code can call outlive the instance's last use in JavaScript, however the reference reached the code.
 * In: an instance that gets a reference to a private function of another one, which JavaScript then drops. Out: the
 * results of the function after collections and sweeps, when the memory of dropped instances has other contents.
 */
import assert from "node:assert/strict";
import { host, type Instance, NewEngine } from "../../engine/mod.ts";
import { JS_TAG } from "../../engine/runtime/exceptions/exception.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { settle } from "../support/collect_garbage.ts";

/** The result of every private function of a giver. */
const SECRET = 4242;
const TYPES = `(type $f (func (result i32)))`;
const STRUCT = `(type $s (struct (field (mut (ref null $f)))))`;
const PRIVATE = `(func $secret (type $f) (i32.const ${SECRET})) (elem declare func $secret)`;
/** Calls the function in the global of a receiver. */
const HELD = `(global $held (export "held") (mut (ref null $f)) (ref.null $f))
  (func (export "use") (result i32) (call_ref $f (global.get $held)))`;

const engine = NewEngine();
const compile = (...parts: string[]) => engine.compile(`(module ${parts.join("\n")})`);

/** A way for a reference to get from a giver to a receiver: what is given, and how the receiver takes it. */
interface Way {
  readonly giver: string;
  readonly receiver: string;
  readonly imports?: (giver: Instance) => Record<string, Record<string, unknown>>;
  readonly give: (giver: Instance, receiver: Instance) => void;
}

const call = (instance: Instance, name: string, ...args: unknown[]) =>
  (instance.exports as Record<string, (...args: unknown[]) => unknown>)[name](...args);
const TAKE = `(type $get (func (result funcref))) (func (export "take") (param funcref)
  (global.set $held (ref.cast (ref null $f) (call_ref $get (ref.cast (ref $get) (local.get 0))))))`;
const THROW = `(type $do (func)) (func (export "throw") (type $do) (throw $t (ref.func $secret)))`;
const throwing = (receiver: Instance, giver: Instance) => call(receiver, "catch", giver.exports["throw"]);

/** Puts a function into the object of a global. */
const PUTTER = `(type $s (struct (field (mut funcref))))
  (import "m" "get" (func $get (result funcref))) (import "m" "g" (global $g externref))
  (func (export "put") (struct.set $s 0 (ref.cast (ref $s) (any.convert_extern (global.get $g))) (call $get)))`;

const WAYS: Readonly<Record<string, Way>> = {
  "the result of a call": {
    giver:
      `${TYPES} (type $get (func (result funcref))) ${PRIVATE} (func (export "get") (type $get) (ref.func $secret))`,
    receiver: `${TYPES} ${HELD} ${TAKE}`,
    give: (giver, receiver) => call(receiver, "take", giver.exports["get"]),
  },
  "the result of a call, in a table": {
    giver:
      `${TYPES} (type $get (func (result funcref))) ${PRIVATE} (func (export "get") (type $get) (ref.func $secret))`,
    receiver: `${TYPES} (type $get (func (result funcref))) (table $t 2 funcref)
      (func (export "take") (param funcref)
        (table.set $t (i32.const 1) (call_ref $get (ref.cast (ref $get) (local.get 0)))))
      (func (export "use") (result i32) (call_indirect $t (type $f) (i32.const 1)))`,
    give: (giver, receiver) => call(receiver, "take", giver.exports["get"]),
  },
  "a field of a resulting object": {
    giver: `${TYPES} ${STRUCT} (type $make (func (result anyref))) ${PRIVATE}
      (func (export "get") (type $make) (struct.new $s (ref.func $secret)))`,
    receiver: `${TYPES} ${STRUCT} (type $make (func (result anyref))) (global $object (mut (ref null $s)) (ref.null $s))
      (func (export "take") (param funcref)
        (global.set $object (ref.cast (ref $s) (call_ref $make (ref.cast (ref $make) (local.get 0))))))
      (func (export "use") (result i32) (call_ref $f (struct.get $s 0 (global.get $object))))`,
    give: (giver, receiver) => call(receiver, "take", giver.exports["get"]),
  },
  "a field of an object that JavaScript passes on": {
    giver: `${TYPES} ${STRUCT} ${PRIVATE} (func (export "get") (result anyref) (struct.new $s (ref.func $secret)))`,
    receiver: `${TYPES} ${STRUCT} ${HELD} (func (export "take") (param anyref)
      (global.set $held (struct.get $s 0 (ref.cast (ref $s) (local.get 0)))))`,
    give: (giver, receiver) => call(receiver, "take", call(giver, "get")),
  },
  "the payload of an exception": {
    giver: `${TYPES} (tag $t (export "t") (param funcref)) ${PRIVATE} ${THROW}`,
    receiver: `${TYPES} (type $do (func)) (import "g" "t" (tag $t (param funcref))) ${HELD}
      (func (export "catch") (param funcref) (global.set $held (ref.cast (ref null $f)
        (block $h (result funcref) (try_table (catch $t $h) (call_ref $do (ref.cast (ref $do) (local.get 0)))) unreachable))))`,
    imports: (giver) => ({ g: { t: giver.exports["t"] } }),
    give: (giver, receiver) => throwing(receiver, giver),
  },
  "the payload of an exception that passed through JavaScript": {
    giver: `${TYPES} (tag $t (export "t") (param funcref)) ${PRIVATE} ${THROW}`,
    receiver: `${TYPES} (import "g" "t" (tag $t (param funcref))) (import "g" "throw" (func $throw)) ${HELD}
      (func (export "catch") (global.set $held (ref.cast (ref null $f)
        (block $h (result funcref) (try_table (catch $t $h) (call $throw)) unreachable))))`,
    imports: (giver) => ({ g: { t: giver.exports["t"], throw: () => call(giver, "throw") } }),
    give: (_, receiver) => call(receiver, "catch"),
  },
  "the payload of an exception in an exnref": {
    giver: `${TYPES} (tag $t (export "t") (param funcref)) ${PRIVATE} ${THROW}`,
    receiver:
      `${TYPES} (type $do (func)) (import "g" "t" (tag $t (param funcref))) (global $e (mut exnref) (ref.null exn))
      (func (export "catch") (param funcref) (global.set $e
        (block $h (result exnref) (try_table (catch_all_ref $h) (call_ref $do (ref.cast (ref $do) (local.get 0)))) unreachable)))
      (func (export "use") (result i32) (call_ref $f (ref.cast (ref null $f)
        (block $h (result funcref) (try_table (catch $t $h) (throw_ref (global.get $e))) unreachable))))`,
    imports: (giver) => ({ g: { t: giver.exports["t"] } }),
    give: (giver, receiver) => throwing(receiver, giver),
  },
  "an object thrown as a value of JavaScript": {
    giver: `${TYPES} ${STRUCT} (type $do (func)) (import "js" "tag" (tag $t (param externref))) ${PRIVATE}
      (func (export "throw") (type $do) (throw $t (extern.convert_any (struct.new $s (ref.func $secret)))))`,
    receiver: `${TYPES} ${STRUCT} (type $do (func)) (import "js" "tag" (tag $t (param externref)))
      (import "g" "throw" (func $throw)) ${HELD}
      (func (export "catch") (global.set $held (struct.get $s 0 (ref.cast (ref $s) (any.convert_extern
        (block $h (result externref) (try_table (catch $t $h) (call $throw)) unreachable))))))`,
    imports: (giver) => ({ g: { throw: () => call(giver, "throw") } }),
    give: (_, receiver) => call(receiver, "catch"),
  },
  "a field of an object in an immutable global of external references": {
    giver: `${TYPES} ${PRIVATE} (func (export "get") (result funcref) (ref.func $secret))`,
    receiver: `${TYPES} (type $s (struct (field (mut funcref))))
      (global $g (export "g") externref (extern.convert_any (struct.new $s (ref.null func))))
      (func (export "use") (result i32) (call_ref $f (ref.cast (ref null $f)
        (struct.get $s 0 (ref.cast (ref $s) (any.convert_extern (global.get $g)))))))`,
    give: ({ exports: { get } }, { exports: { g } }) => call(compile(PUTTER).instantiate({}, { m: { get, g } }), "put"),
  },
  "an argument of a call": {
    giver: `${TYPES} (type $put (func (param (ref $f)))) ${PRIVATE}
      (func (export "put") (param funcref) (call_ref $put (ref.func $secret) (ref.cast (ref $put) (local.get 0))))`,
    receiver: `${TYPES} (type $put (func (param (ref $f)))) ${HELD}
      (func (export "put") (type $put) (global.set $held (local.get 0)))`,
    give: (giver, receiver) => call(giver, "put", receiver.exports["put"]),
  },
  "a global of the host": {
    giver:
      `${TYPES} (type $get (func (result funcref))) ${PRIVATE} (func (export "get") (result funcref) (ref.func $secret))`,
    receiver: `${TYPES} (import "h" "g" (global $g (mut funcref)))
      (func (export "use") (result i32) (call_ref $f (ref.cast (ref null $f) (global.get $g))))`,
    imports: () => ({ h: { g: GLOBAL } }),
    give: (giver) => GLOBAL.value = call(giver, "get"),
  },
};

const GLOBAL = host.global("funcref", true, null);
const OTHER = compile(
  `(func (export "x") (result i32) (i32.const 31337))`,
  "(global (mut i64) (i64.const 7))".repeat(40),
);

/** Collects, sweeps the references of compiled code, and gives the memory of dropped instances other contents. */
async function churn(): Promise<void> {
  const { thread } = realmStore();
  for (let round = 0; round < 2; round++) {
    thread.attention.sweepDue = true;
    thread.services.atSafepoint();
    await settle();
  }
  for (let k = 0; k < 40; k++) KEPT.push(OTHER.instantiate());
}
const KEPT: Instance[] = [];

/** Makes a receiver that holds a function of a giver, which is garbage when this returns. */
function receive({ giver, receiver, imports, give }: Way): Instance {
  const js = { js: { tag: JS_TAG } };
  const given = compile(giver).instantiate({}, js);
  const made = compile(receiver).instantiate({}, { ...js, ...imports?.(given) });
  give(given, made);
  return made;
}

/** Receivers of all ways, after collections; objects come last, because a sweep removes nothing once there are some. */
async function receivers(): Promise<ReadonlyMap<string, Instance>> {
  const received = new Map<string, Instance>();
  for (const objects of [false, true]) {
    for (const [name, way] of Object.entries(WAYS)) {
      if (name.includes("object") === objects) received.set(name, receive(way));
    }
    received.set(`passed on ${objects}`, passOn());
    await churn();
  }
  return received;
}

/** A receiver that got a function from an instance that got it from the giver; both are garbage when this returns. */
function passOn(): Instance {
  const way = WAYS["the result of a call"];
  const passer = compile(`${TYPES} ${HELD} ${TAKE}`, `(func (export "get") (type $get) (global.get $held))`);
  const receiver = compile(way.receiver).instantiate();
  const middle = passer.instantiate();
  way.give(compile(way.giver).instantiate(), middle);
  call(receiver, "take", middle.exports["get"]);
  return receiver;
}

const RECEIVERS = receivers();

for (const name of [...Object.keys(WAYS), "passed on false", "passed on true"]) {
  Deno.test(`a function lives on as ${name}`, async () => {
    assert.equal(call((await RECEIVERS).get(name)!, "use"), SECRET);
  });
}
