/**
 * The places at which a call runs code of the program (ARCHITECTURE.md, "Code of others"): at each, that code throws,
 * calls the instance again, closes it and resets it. The call then ends with a result or one clear error, and the realm
 * is as before.
 */
import assert from "node:assert/strict";
import { host, type Instance, NewEngine, startCall, Suspension } from "@waft/engine";

const TEXT = `(module
  (import "h" "f" (func $f (param i32) (result i32)))
  (import "h" "two" (func $two (result i32 i32)))
  (import "h" "ref" (func $ref (result externref)))
  (memory (export "m") 1) (table 1 funcref) (elem (i32.const 0) $five)
  (func $five (result i32) (i32.const 5))
  (func $work (result i32) (i32.store (i32.const 0) (i32.const 7))
    (i32.add (i32.load (i32.const 0)) (call_indirect (result i32) (i32.const 0))))
  (func (export "f") (param i32 externref) (result i32) (i32.add (call $work) (call $f (local.get 0))))
  (func (export "two") (result i32) (i32.add (call $two)) (i32.add (call $work)))
  (func (export "ref") (result i32) (drop (call $ref)) (call $work))
  (func (export "work") (result i32) (call $work)))`;

/** What the program's code does. */
const ACTS = ["throw", "call", "close", "reset"] as const;
type Act = (typeof ACTS)[number];

/** A call: the code of the program is `act`, which returns a number; other values are those of the host functions. */
interface Place {
  readonly name: string;
  /** The export that is called. */
  readonly call: string;
  readonly args?: (act: () => number) => unknown[];
  readonly result?: (act: () => number) => unknown;
  readonly context?: (act: () => number) => object;
  /** An error means that the value is an ordinary one. */
  readonly isContained?: boolean;
  /** Only in asynchronous calls. */
  readonly isAsync?: boolean;
}

const PLACES: readonly Place[] = [
  { name: "valueOf of an argument", call: "f", args: (act) => [{ valueOf: act }, null] },
  { name: "toString of an argument", call: "f", args: (act) => [{ toString: act, valueOf: undefined }, "text"] },
  { name: "Symbol.toPrimitive of an argument", call: "f", args: (act) => [{ [Symbol.toPrimitive]: act }, {}] },
  { name: "trap of a proxy as an argument", call: "f", args: (act) => [new Proxy({}, { get: () => act }), null] },
  { name: "a host function", call: "f", result: (act) => act() },
  { name: "valueOf of a result", call: "f", result: (act) => ({ valueOf: act }) },
  {
    name: "the iterator of results",
    call: "two",
    result: (act) => ({
      *[Symbol.iterator]() {
        yield* [act(), 1];
      },
    }),
  },
  {
    name: "the getter of an iterator",
    call: "two",
    result: (act) => {
      return Object.defineProperty([1, 2], Symbol.iterator, { get: () => (act(), Array.prototype.values) });
    },
  },
  { name: "valueOf of a result of several", call: "two", result: (act) => [1, { valueOf: act }] },
  {
    name: "getPrototypeOf of a proxy as a reference",
    call: "ref",
    isContained: true,
    result: (act) => {
      return new Proxy({}, { getPrototypeOf: () => (act(), null) });
    },
  },
  {
    name: "the getter of then",
    call: "f",
    result: (act) => ({
      get then() {
        return act(), undefined;
      },
    }),
  },
  {
    name: "the getter of a context",
    call: "work",
    context: (act) => ({
      get fuel() {
        return act(), undefined;
      },
    }),
  },
  {
    name: "then of a thenable",
    call: "f",
    isAsync: true,
    result: (act) => {
      return { then: (done: (value: number) => void) => done(act()) };
    },
  },
  {
    name: "constructor of a promise",
    call: "f",
    isAsync: true,
    result: (act) => {
      return Object.defineProperty(Promise.resolve(1), "constructor", { get: () => (act(), Promise) });
    },
  },
  {
    name: "valueOf of a promise's value",
    call: "f",
    isAsync: true,
    result: (act) => Promise.resolve({ valueOf: act }),
  },
  {
    name: "valueOf of a suspension's value",
    call: "f",
    isAsync: true,
    result: (act) => {
      const suspension = new Suspension();
      queueMicrotask(() => suspension.resume({ valueOf: act }));
      return suspension;
    },
  },
];

/** The messages with which a call may end, besides that of the program's own error. */
const CLEAR = /^(?:The instance is closed|The instance is not idle: |Cannot convert object to primitive value)/;

for (const bounds of ["guard", "explicit"] as const) {
  for (const place of PLACES) {
    Deno.test(`${bounds}: code of others: ${place.name}`, async () => {
      const module = NewEngine({ bounds }).compile(TEXT);
      for (const act of ACTS) {
        if (place.isAsync !== true) await tryPlace(module, place, act, false);
        await tryPlace(module, place, act, true);
      }
    });
  }
}

async function tryPlace(
  module: ReturnType<ReturnType<typeof NewEngine>["compile"]>,
  place: Place,
  act: Act,
  isAsync: boolean,
): Promise<void> {
  const thrown = new SyntaxError("of the program");
  const where = `${place.name}, ${act}${isAsync ? ", asynchronous" : ""}`;
  let acts = 0;
  const once = (): number => {
    if (acts++ > 0) return 3;
    if (act === "throw") throw thrown;
    if (act === "call") assert.equal(instance.call({}, "work"), 12, where);
    else instance[act]();
    return 3;
  };
  const given = () => place.result === undefined ? 3 : place.result(once);
  const two = () => place.call === "two" ? given() : [1, 2];
  const instance: Instance = module.instantiate({}, { h: { f: given, ref: given, two } });
  const context = () => place.context?.(once) ?? {};
  const args = place.args?.(once) ?? [1, null];
  let outcome: unknown;
  try {
    outcome = isAsync
      ? await instance.callAsync(context(), place.call, ...args)
      : instance.call(context(), place.call, ...args);
  } catch (error) {
    outcome = error;
  }
  assert.ok(acts > 0, `${where}: the code has run`);
  if (act === "throw") assert.equal(outcome, place.isContained === true ? 12 : thrown, where);
  else if (typeof outcome !== "number") assert.match((outcome as Error).message, CLEAR, where);
  const { thread } = instance.internal.store;
  assert.deepEqual([thread.depth, thread.stack.suspended.size, thread.suspendableDepth], [0, 0, -1], where);
  if (act === "close") assert.throws(() => instance.call({}, "work"), /closed/, where);
  else assert.equal(instance.call({}, "work"), 12, where);
}

Deno.test("code of others: an argument that starts a call which is preempted keeps this one from running", async () => {
  const instance = NewEngine({ interruptible: true }).compile(
    `(module (func (export "spin") (loop (br 0))) (func (export "f") (param i32) (result i32) (local.get 0)))`,
  ).instantiate();
  instance.internal.store.thread.sliceMs = 0;
  const abort = new AbortController();
  let spins: Promise<unknown> | undefined;
  const argument = {
    valueOf: () => {
      spins = instance.callAsync({ signal: abort.signal }, "spin");
      return 5;
    },
  };
  assert.throws(() => instance.call({}, "f", argument), /preempted/);
  abort.abort(new SyntaxError("stop"));
  await assert.rejects(spins!, { message: "stop" });
  assert.equal(instance.call({}, "f", 4), 4);
});

Deno.test("code of others: imports are read before anything is made, and a getter may do anything", () => {
  const module = NewEngine().compile(`(module (import "a" "f" (func)) (import "a" "g" (global i32)) (memory 1))`);
  const open = () => module.instantiate({}, { a: { f: () => {}, g: 1 } });
  const { store } = open().internal;
  const before = store.instances.open;
  for (const key of ["a", "f", "g"]) {
    const names = { f: () => {}, g: 1 };
    const throws = {
      get: () => {
        throw new SyntaxError(key);
      },
      enumerable: true,
    };
    const imports = key === "a"
      ? Object.defineProperty({}, "a", throws)
      : { a: Object.defineProperty(names, key, throws) };
    assert.throws(() => module.instantiate({}, imports as never), { name: "SyntaxError", message: key });
    assert.equal(store.instances.open, before, key);
  }
  const made: Instance[] = [];
  const nested = {
    f: () => {},
    get g() {
      made.push(open());
      made[0].close();
      return 2;
    },
  };
  module.instantiate({}, { a: nested }).close();
  assert.equal(made.length, 1);
});

Deno.test("code of others: listeners of the end of a call may call, close and reset", () => {
  const module = NewEngine().compile(TEXT);
  for (const act of ["call", "close", "reset"] as const) {
    const instance: Instance = module.instantiate({}, { h: { f: () => 3, ref: () => 3, two: () => [1, 2] } });
    const ends: unknown[] = [];
    startCall(instance.exports["f"] as () => void, {}, [1, null], (value) => {
      ends.push(value);
      if (act === "call") ends.push(instance.call({}, "work"));
      else instance[act]();
    }, (reason) => ends.push(reason));
    assert.deepEqual(ends, act === "call" ? [15, 12] : [15]);
  }
  const table = host.table("externref", 1);
  assert.equal(table.get(0), null);
});
