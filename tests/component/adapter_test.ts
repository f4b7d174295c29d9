/**
 * Fused adapters against calls through JavaScript: random functions, values and faults have the same effects.
 * `WAFT_ADAPTER_COUNT` is the number of calls, fewer on an emulated processor, which takes 0.8 s for one;
 * `deno task fuzz:adapters` makes more.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { NewEngine } from "@waft/engine";
import { GENERATED } from "../../component/abi/generated.ts";
import { GuestMemory } from "../../component/abi/guest_memory.ts";
import { INTERPRETED } from "../../component/abi/interpreted.ts";
import { Store } from "../../component/async/component_instance.ts";
import { compileBinary } from "../../component/component.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { settle } from "../support/collect_garbage.ts";
import { comparable, observe, stringCalls } from "./adapter_pairs.ts";

const COUNT = Number(process.env["WAFT_ADAPTER_COUNT"] ?? (process.env["WAFT_EMULATED"] === undefined ? 200 : 50));

Deno.test("random calls have the same effects through an adapter and through JavaScript", () => {
  const traps = new Set<string>();
  let returned = 0;
  for (let seed = 1; seed <= COUNT; seed++) {
    const slow = observe(seed, false);
    const fast = observe(seed, true);
    assert.ok(fast.fused, `seed ${seed}: there is an adapter`);
    assert.deepEqual(comparable(fast, slow), comparable(slow, slow), `seed ${seed}, ${slow.fault}`);
    const { throws } = slow.outcome as { throws?: string };
    if (throws === undefined) returned++;
    else traps.add(throws);
  }
  assert.ok(returned > COUNT / 3, `${returned} calls returned`);
  assert.ok(traps.size >= Math.min(8, COUNT / 25), `the traps are ${[...traps].join("; ")}`);
});

/** Leads and bounds of UTF-8 sequences. */
const BYTES = [0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xc3, 0xe0, 0xe1, 0xed, 0xf0, 0xf4, 0xf5];
/** Bounds of UTF-16 surrogates and of Latin-1. */
const UNITS = [0x41, 0x7f, 0x80, 0xff, 0x100, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff];
const TAG = 0x8000_0000;

/** All sequences of one to `most` of `parts`. */
function* sequences(parts: readonly number[], most: number): Generator<number[]> {
  for (const part of parts) {
    yield [part];
    if (most > 1) { for (const rest of sequences(parts, most - 1)) yield [part, ...rest]; }
  }
}

/** The strings of an encoding: bytes and the number of code units. Some begin with enough ASCII for the fast path. */
function* strings(encoding: number): Generator<[Uint8Array, number]> {
  const utf16 = (units: readonly number[]) => new Uint8Array(Uint16Array.from(units).buffer);
  const ascii = Array<number>(17).fill(0x62);
  const mixed = [...ascii, 0xe9, ...ascii, 0x20ac, ...ascii];
  if (encoding === 0) {
    for (const part of sequences(BYTES, 3)) yield [Uint8Array.from(part), part.length];
    for (const lead of [0xf0, 0xf4]) {
      for (const rest of sequences(BYTES.slice(0, 9), 3)) yield [Uint8Array.of(lead, ...rest), 1 + rest.length];
    }
    const text = new TextEncoder().encode(String.fromCharCode(...mixed));
    yield [text, text.length];
    for (const part of sequences(BYTES, 2)) yield [Uint8Array.from([...ascii, ...part]), ascii.length + part.length];
    return;
  }
  const tag = encoding === 2 ? TAG : 0;
  for (const part of sequences(UNITS, 3)) yield [utf16(part), tag + part.length];
  for (const part of sequences(UNITS, 2)) yield [utf16([...ascii, ...part]), tag + ascii.length + part.length];
  yield [utf16(mixed), tag + mixed.length];
  if (tag !== 0) {
    for (const part of sequences(BYTES, 2)) yield [Uint8Array.from([...ascii, ...part]), 17 + part.length];
  }
}

const ENCODINGS = ["UTF-8", "UTF-16", "Latin-1 or UTF-16"];

for (const from of [0, 1, 2]) {
  for (const to of [0, 1, 2]) {
    Deno.test(`strings of ${ENCODINGS[from]} reach components with ${ENCODINGS[to]}, or trap, as through JavaScript`, () => {
      const { effects } = stringCalls(from, to);
      const outcomes = new Set<string>();
      for (const [bytes, units] of strings(from)) {
        const [fused, slow] = effects(bytes, units);
        assert.deepEqual(fused, slow, `bytes ${bytes}, ${units} units`);
        outcomes.add(JSON.stringify((slow as { outcome: unknown }).outcome));
      }
      assert.equal(outcomes.size, 2, "some strings are valid");
    });
  }
}

/**
 * Two components: `A` echoes strings, counts lists, and traps with a borrowed handle; `B` calls it. `realloc` of both
 * never frees, and grows the memory.
 */
function pairText(): string {
  const memory = `(memory (export "memory") 1)
    (global $next (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (block $fits (loop $more
        (br_if $fits (i32.le_u (global.get $next) (i32.shl (memory.size) (i32.const 16))))
        (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))))
      (local.get $at))`;
  const options = (instance: string) =>
    `(memory (core memory ${instance} "memory")) (realloc (core func ${instance} "realloc"))`;
  return `(component
  (component $A
    (core module $m ${memory}
      (func (export "echo") (param i32 i32) (result i32)
        (i32.store (i32.const 16) (local.get 0)) (i32.store (i32.const 20) (local.get 1)) (i32.const 16))
      (func (export "reset") (param i32) (global.set $next (i32.const 4096)))
      (func (export "count") (param i32 i32) (result i32) (local.get 1))
      (func (export "fail") (param i32) unreachable))
    (core instance $i (instantiate $m))
    (type $thing' (resource (rep i32)))
    (export $thing "thing" (type $thing'))
    (core func $new (canon resource.new $thing'))
    (core module $n (import "a" "new" (func $new (param i32) (result i32)))
      (func (export "make") (result i32) (call $new (i32.const 5))))
    (core instance $j (instantiate $n (with "a" (instance (export "new" (func $new))))))
    (func (export "make") (result (own $thing)) (canon lift (core func $j "make")))
    (func (export "fail") (param "t" (borrow $thing)) (canon lift (core func $i "fail")))
    (func (export "echo") (param "s" string) (result string)
      (canon lift (core func $i "echo") ${options("$i")} (post-return (core func $i "reset"))))
    (func (export "count") (param "l" (list bool)) (result u32) (canon lift (core func $i "count") ${options("$i")}))
    (func (export "texts") (param "l" (list string)) (result u32) (canon lift (core func $i "count") ${options("$i")})))
  (component $B
    (import "a" (instance $a
      (export "thing" (type $thing (sub resource)))
      (export "make" (func (result (own $thing))))
      (export "fail" (func (param "t" (borrow $thing))))
      (export "echo" (func (param "s" string) (result string)))
      (export "count" (func (param "l" (list bool)) (result u32)))
      (export "texts" (func (param "l" (list string)) (result u32)))))
    (core module $memory ${memory})
    (core instance $memory (instantiate $memory))
    (core func $make (canon lower (func $a "make")))
    (core func $fail (canon lower (func $a "fail")))
    (core func $echo (canon lower (func $a "echo") ${options("$memory")}))
    (core func $count (canon lower (func $a "count") ${options("$memory")}))
    (core func $texts (canon lower (func $a "texts") ${options("$memory")}))
    (core module $n
      (import "a" "memory" (memory 1))
      (import "a" "make" (func $make (result i32)))
      (import "a" "fail" (func $fail (param i32)))
      (import "a" "echo" (func $echo (param i32 i32 i32)))
      (import "a" "count" (func $count (param i32 i32) (result i32)))
      (import "a" "texts" (func $texts (param i32 i32) (result i32)))
      (func (export "echo") (param i32 i32) (result i32)
        (call $echo (local.get 0) (local.get 1) (i32.const 32)) (i32.const 32))
      (func (export "count") (param i32 i32) (result i32) (call $count (local.get 0) (local.get 1)))
      (func (export "spin") (loop (drop (call $count (i32.const 0) (i32.const 100))) (br 0)))
      (func (export "fail") (call $fail (call $make)))
      (func (export "overlap") (result i32) (local $at i32)
        ;; Strings of 512 KiB at the same address.
        (drop (memory.grow (i32.const 16)))
        (loop $more
          (i32.store (i32.add (i32.const 0x8000) (local.get $at)) (i32.const 0x20000))
          (i32.store (i32.add (i32.const 0x8004) (local.get $at)) (i32.const 0x80000))
          (br_if $more (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.const 0x8000))))
        (call $texts (i32.const 0x8000) (i32.const 0x1000))))
    (core instance $j (instantiate $n (with "a" (instance
      (export "memory" (memory $memory "memory")) (export "make" (func $make)) (export "fail" (func $fail))
      (export "echo" (func $echo)) (export "count" (func $count)) (export "texts" (func $texts))))))
    (func (export "echo") (param "s" string) (result string) (canon lift (core func $j "echo") ${options("$memory")}))
    (func (export "count") (param "l" (list bool)) (result u32)
      (canon lift (core func $j "count") ${options("$memory")}))
    (func (export "spin") (canon lift (core func $j "spin")))
    (func (export "overlap") (result u32) (canon lift (core func $j "overlap")))
    (func (export "fail") (canon lift (core func $j "fail"))))
  (instance $a (instantiate $A))
  (instance $b (instantiate $B (with "a" (instance $a))))
  (func (export "echo") (alias export $b "echo"))
  (func (export "count") (alias export $b "count"))
  (func (export "spin") (alias export $b "spin"))
  (func (export "overlap") (alias export $b "overlap"))
  (func (export "fail") (alias export $b "fail")))`;
}

const bytes = componentToBinary(pairText());

Deno.test("a function that is called often gets an adapter, with the same results", () => {
  const engine = NewEngine();
  const compile = engine.compile.bind(engine);
  const component = compileBinary(engine, bytes);
  let compiled = 0;
  engine.compile = (source) => {
    compiled++;
    return compile(source);
  };
  const instance = component.instantiate();
  const linked = compiled;
  for (let k = 0; k < 40; k++) {
    const text = `${["é", "☃", "😀"][k % 3]}text ${k}`.repeat(1 + 97 * k);
    assert.equal(instance.call({}, "echo", text), text);
  }
  assert.equal(compiled, linked + 1, "one adapter");
  for (let k = 0; k < 40; k++) assert.equal(component.instantiate().call({}, "echo", "text"), "text");
  assert.equal(compiled, linked + 1, "instances share the code of adapters");
});

Deno.test("calls through adapters are stopped by deadline and fuel, and all calls consume the same fuel", () => {
  const engine = NewEngine({ interruptible: true, fuel: true });
  const component = compileBinary(engine, bytes);
  const list = Array.from({ length: 10_000 }, () => true);
  const instance = component.instantiate({ resettable: true });
  const fuelOf = () => {
    const context = { fuel: 1_000_000 };
    assert.equal(instance.call(context, "count", list), list.length);
    return 1_000_000 - context.fuel;
  };
  const first = fuelOf();
  assert.ok(first > list.length, `${first} for ${list.length} elements`);
  for (let k = 0; k < 20; k++) {
    instance.reset();
    assert.equal(fuelOf(), first);
  }
  assert.throws(() => component.instantiate().call({ fuel: 5000 }, "count", list), { code: "out-of-fuel" });
  assert.throws(() => component.instantiate().call({ deadline: 20 }, "spin"), { code: "interrupted" });
});

for (const [callsBeforeAdapter, how] of [[0, "an adapter"], [Infinity, "JavaScript"]] as const) {
  const component = compileBinary(NewEngine(), bytes, { callsBeforeAdapter });

  Deno.test(`a trap of a call that lends a handle through ${how} leaves an instance that can be reset`, () => {
    const instance = component.instantiate({ resettable: true });
    for (let k = 0; k < 3; k++) {
      assert.throws(() => instance.call({}, "fail"), { name: "TrapError", code: "unreachable" });
      assert.throws(() => instance.call({}, "echo", "text"), /cannot enter/);
      instance.reset();
      assert.equal(instance.call({}, "echo", "text"), "text");
    }
  });
}

Deno.test("strings that overlap cannot exceed the limit of one call", () => {
  const instance = compileBinary(NewEngine(), bytes, { callsBeforeAdapter: 0 }).instantiate();
  assert.throws(() => instance.call({}, "overlap"), {
    name: "TrapError",
    message: /the values of one call are too large/,
  });
});

Deno.test("an engine without the features or the room for adapters calls through JavaScript", () => {
  const features = { "multi-memory": false };
  assert.equal(compileBinary(NewEngine({ features }), bytes).instantiate().call({}, "echo", "text"), "text");
  const limits = { maxInstances: realmStore().instances.open + 4 };
  assert.equal(compileBinary(NewEngine({ limits }), bytes).instantiate().call({}, "echo", "text"), "text");
});

Deno.test("values are lifted in order, so the first bad one traps", () => {
  const type = { kind: "tuple", types: [{ kind: "char" }, { kind: "string" }] } as const;
  const memory = new GuestMemory({ buffer: new ArrayBuffer(8) }, "i32", undefined);
  const env = { memory, encoding: "utf8", handles: [], foreign: true } as const;
  for (const layer of [GENERATED, INTERPRETED]) {
    assert.throws(() => layer.lifter([type], "i32", 16).bind(env)([0xd800, 100, 1]), /Unicode scalar value/);
  }
});

Deno.test("a 64-bit address beyond the integers of JavaScript is still misaligned", () => {
  const type = { kind: "list", element: { kind: "u32" } } as const;
  const memory = new GuestMemory({ buffer: new ArrayBuffer(8) }, "i64", undefined);
  const env = { memory, encoding: "utf8", handles: [], foreign: true } as const;
  for (const layer of [GENERATED, INTERPRETED]) {
    const lift = layer.lifter([type], "i64", 16).bind(env);
    assert.throws(() => lift([2n ** 60n + 1n, 1n]), /list pointer is not aligned/);
    assert.throws(() => lift([2n ** 60n, 1n]), /list pointer is out of bounds/);
  }
});

/** `g` of `B` calls `f` of `A` with a string, which asks the host. */
const ASKING = `(component
  (import "ask" (func $ask (result u32)))
  (component $A
    (import "ask" (func $ask (result u32)))
    (core func $ask (canon lower (func $ask)))
    (core module $m
      (import "a" "ask" (func $ask (result i32)))
      (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64))
      (func (export "f") (param i32 i32) (result i32) (i32.add (call $ask) (local.get 1))))
    (core instance $i (instantiate $m (with "a" (instance (export "ask" (func $ask))))))
    (func (export "f") (param "s" string) (result u32) (canon lift (core func $i "f")
      (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))
  (component $B
    (import "f" (func $f (param "s" string) (result u32)))
    (core module $memory (memory (export "memory") 1))
    (core instance $memory (instantiate $memory))
    (core func $f (canon lower (func $f) (memory (core memory $memory "memory"))))
    (core module $m
      (import "a" "f" (func $f (param i32 i32) (result i32)))
      (func (export "g") (result i32) (call $f (i32.const 0) (i32.const 3))))
    (core instance $i (instantiate $m (with "a" (instance (export "f" (func $f))))))
    (func (export "g") (result u32) (canon lift (core func $i "g"))))
  (instance $a (instantiate $A (with "ask" (func $ask))))
  (instance $b (instantiate $B (with "f" (func $a "f"))))
  (func (export "g") (alias export $b "g")))`;

Deno.test("a call between components waits for a promise of the host", async () => {
  const component = compileBinary(NewEngine(), componentToBinary(ASKING));
  const instance = component.instantiate({}, { ask: () => Promise.resolve(4) });
  for (let k = 0; k < 20; k++) assert.equal(await instance.callAsync({}, "g"), 7);
  const plain = component.instantiate({}, { ask: () => 5 });
  for (let k = 0; k < 20; k++) assert.equal(plain.call({}, "g"), 8);
});

/** Gives `store` a core instance with a memory; returns a weak reference to it. */
function addInstance(store: Store): WeakRef<object> {
  const instance = NewEngine().compile(`(module (memory (export "memory") 1))`).instantiate({});
  store.coreInstances.push(instance);
  return new WeakRef(instance);
}

Deno.test("a closed component leaves no core instances to calls that a trap has ended", async () => {
  const store = new Store(false, false, () => false);
  const instance = addInstance(store);
  // The engine's references to host values lead to such a call, its lent handles, and the store.
  const call = { lenders: [{ store }] };
  store.close();
  await settle();
  assert.equal(instance.deref(), undefined);
  assert.equal(call.lenders[0].store.adapters.length, 0);
});
