/**
 * The scenarios of native faults: each uses a part of the engine that takes something from the system. Out: functions
 * that return when the part has worked, also by a fallback, and throw the engine's error otherwise. A wrong result is
 * an AssertionError.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { host, type Instance, Memory, NewEngine } from "../../engine/mod.ts";
import { Store } from "../../engine/runtime/instance/store.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import type { Tiering } from "../../engine/api/settings.ts";
import { WebAssembly as waft } from "../../engine/webassembly/mod.ts";
import type { Namespace } from "../webassembly/subject.ts";

const FACTORIAL = `(module (func (export "factorial") (param i64) (result i64)
  (if (result i64) (i64.eqz (local.get 0)) (then (i64.const 1))
    (else (i64.mul (local.get 0) (call 0 (i64.sub (local.get 0) (i64.const 1))))))))`;

const MEMORIES = `(module (memory (export "memory") 1 100)
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "peek") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "poke") (param i32) (i32.store (local.get 0) (i32.const 7))))`;

const OBJECTS = `(module (type $n (struct (field i32) (field (ref null $n))))
  (type $bytes (array (mut i8)))
  (func (export "chain") (param i32) (result i32) (local $l (ref null $n)) (local $i i32)
    (loop $l
      (local.set $l (struct.new $n (local.get $i) (if (result (ref null $n))
        (i32.and (local.get $i) (i32.const 15)) (then (local.get $l)) (else (ref.null $n)))))
      (drop (array.new $bytes (i32.const 1) (i32.const 5000)))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get 0))))
    (struct.get $n 0 (local.get $l))))`;

const EXCEPTIONS = `(module (tag $t (param i32))
  (func $throw (param i32) (throw $t (local.get 0)))
  (func (export "catch") (param i32) (result i32) (local $sum i32)
    (loop $l
      (block $h (result i32 exnref)
        (try_table (catch_ref $t $h) (call $throw (local.get 0)))
        (return (i32.const -1)))
      (drop)
      (local.set $sum (i32.add (local.get $sum)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get $sum)))`;

const STRINGS = `(module
  (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
  (import "wasm:js-string" "charCodeAt" (func $at (param externref i32) (result i32)))
  (func (export "sum") (param externref i32) (result i32) (local $s i32)
    (loop $l
      (local.set $s (i32.add (local.get $s) (call $at (local.get 0) (i32.const 1))))
      (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
    (i32.add (local.get $s) (call $length (local.get 0)))))`;

const TURNS = `(module (func (export "turn") (param i32) (result i32)
  (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))) (i32.const 42)))`;

const IMAGE = `(module (memory (export "memory") 8) (data (i32.const 0) "${"waft".repeat(40_000)}")
  (func (export "peek") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "poke") (param i32) (i32.store (local.get 0) (i32.const 7))))`;

/** The word at any multiple of 4 in the image. */
const IMAGE_WORD = 0x74666177;

/** A module of so much code that two kernels share it. */
const LARGE = `(module ${
  Array.from({ length: 2500 }, (_, k) =>
    `(func (export "f${k}") (param i32) (result i32) ${
      "(local.get 0) (i32.const 77) (i32.mul) (local.set 0) ".repeat(12)
    }
      (i32.add (local.get 0) (i32.const ${k})))`).join("\n")
})`;

type Calls = Record<string, (...args: unknown[]) => unknown>;

/** Runs `use` on the exports of a new instance, and closes it. */
function withInstance<T>(
  engine: ReturnType<typeof NewEngine>,
  source: string,
  use: (calls: Calls, instance: Instance) => T,
  context: Parameters<ReturnType<typeof engine.compile>["instantiate"]>[0] = {},
): T {
  const instance = engine.compile(source).instantiate(context);
  try {
    return use(instance.exports as unknown as Calls, instance as unknown as Instance);
  } finally {
    instance.close();
  }
}

/** Calls `name` of a new instance of `source`. */
function run(source: string, name: string, args: unknown[], expected: unknown, tier: Tiering = "optimizing"): void {
  withInstance(NewEngine({ tier }), source, (calls) => assert.equal(calls[name](...args), expected));
}

/** Enough calls of builtins that machine code replaces them. */
function strings(): void {
  const W: Namespace = waft;
  const module = new W.Module(NewEngine().parse(STRINGS).bytes, { builtins: ["js-string"] });
  const { sum } = new W.Instance(module, {}).exports as unknown as Calls;
  assert.equal(sum("aba", 40_000), 40_000 * 98 + 3);
}

function factorial(engine: ReturnType<typeof NewEngine>): void {
  withInstance(engine, FACTORIAL, (calls) => assert.equal(calls["factorial"](20n), 2432902008176640000n));
}

/** Grows the memory, which may fail by −1, and checks its contents. */
function grow(bounds: "guard" | "explicit", tier: "baseline" | "optimizing"): void {
  withInstance(NewEngine({ bounds, tier }), MEMORIES, ({ grow, peek, poke }) => {
    poke(65532);
    const old = grow(20);
    assert.ok(old === 1 || old === -1, `grow returned ${old}`);
    assert.equal(peek(65532), 7);
    if (old === 1) assert.equal(peek(20 * 65536), 0);
    else assert.throws(() => peek(20 * 65536), /out of bounds/);
  });
}

/** Saves a module, and loads it from memory, from a small file and from one that is mapped. */
function artifacts(folder: string): void {
  const engine = NewEngine({ tier: "optimizing" });
  const artifact = engine.compile(FACTORIAL).serialize();
  const loaded = engine.load(artifact).instantiate();
  assert.equal((loaded.exports as unknown as Calls)["factorial"](3n), 6n);
  loaded.close();
  for (const [name, source] of [["small", FACTORIAL], ["large", IMAGE]]) {
    const path = join(folder, `${name}.waftbin`);
    writeFileSync(path, engine.compile(source).serialize());
    engine.loadFile(path).instantiate().close();
  }
}

/** Poked pages are restored by `reset`, and a snapshot has them. */
function resets(): void {
  for (const source of [MEMORIES, IMAGE]) {
    const first = source === IMAGE ? IMAGE_WORD : 0;
    withInstance(NewEngine({ tier: "optimizing" }), source, (calls, instance) => {
      calls["poke"](4096);
      const snapshot = instance.snapshot();
      instance.reset();
      assert.equal(calls["peek"](4096), first);
      assert.ok(snapshot.length > 0);
    }, { resettable: true });
  }
}

function deadlines(): void {
  withInstance(NewEngine({ interruptible: true, tier: "optimizing" }), TURNS, (_, instance) => {
    assert.equal(instance.call({ deadline: 60_000 }, "turn", 1000), 42);
    assert.throws(() => instance.call({ deadline: 1 }, "turn", 0), /interrupted/);
  });
}

function sharedMemory(): void {
  const memory = host.sharedMemory(1, 4);
  assert.equal(memory.grow(1), 1);
  const same = Memory.fromShared(memory.share());
  assert.equal(same.pages, 2);
}

/** A second store of this realm, as another realm would make it. */
function anotherStore(): void {
  const { thread } = realmStore();
  const unused = () => assert.fail("no program uses the store");
  const store = thread.host.releasingOnError(() => new Store(thread.code, { collector: unused, strings: unused }));
  assert.notEqual(store.thread.arena.start, thread.arena.start);
}

/** A scenario. */
export interface Scenario {
  readonly work: () => void | Promise<void>;
  /** Whether each success keeps what it has taken. */
  readonly keeps?: boolean;
}

/** The scenarios by name; `folder` is for their files. */
export function scenarios(folder: string): Readonly<Record<string, Scenario>> {
  return {
    "engine made": { work: () => factorial(NewEngine({ tier: "optimizing" })) },
    "store made": { work: anotherStore, keeps: true },
    "baseline code": { work: () => factorial(NewEngine({ tier: "baseline" })) },
    "both tiers": { work: () => factorial(NewEngine({ tier: "auto", tierUpCalls: 0 })) },
    "memory with guard pages": { work: () => grow("guard", "optimizing") },
    "memory with explicit bounds": { work: () => grow("explicit", "baseline") },
    "shared memory": { work: sharedMemory },
    "objects": { work: () => run(OBJECTS, "chain", [2000], 1999) },
    "exceptions": { work: () => run(EXCEPTIONS, "catch", [100], 5050) },
    "strings": { work: strings },
    "snapshot and reset": { work: resets },
    "artifacts": { work: () => artifacts(folder) },
    "deadline": { work: deadlines },
    "two kernels": { work: () => run(LARGE, "f7", [0], 7, "baseline") },
  };
}
