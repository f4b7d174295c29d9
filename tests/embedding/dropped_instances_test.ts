/**
 * Instances that synchronous code drops. In: instances that are garbage when the next ones are made, without a turn of
 * the event loop. Out: how many of them, and how many bytes, are left; and the results of everything else that outlives
 * an instance, after the memory of many dropped ones has got other contents.
 */
import assert from "node:assert/strict";
import { type Instance, NewEngine } from "../../engine/mod.ts";
import { countedBytes, finalizeCollected } from "../../engine/host/finalizers.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { WebAssembly } from "@waft/engine/webassembly";
import { collectGarbage } from "../support/collect_garbage.ts";

const MIB = 1 << 20;
const COUNT = 400;
/** The instances between two collections. */
const BETWEEN = 40;

const TEXT = `(module (memory (export "memory") 16 64) (table (export "table") 4 funcref) (elem (i32.const 0) $size)
  (data (i32.const 8) "some bytes")
  (func $size (export "run") (param $pages i32) (result i32)
    (drop (memory.grow (local.get $pages)))
    (memory.fill (i32.const 64) (i32.const 1) (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 64)))
    (memory.size)))`;

type Exports = Record<string, (...args: unknown[]) => unknown>;

/** Keeps references to values of the host in a table, as programs of wasm-bindgen do, and in a global. */
const HOLDER = `(module (memory 16) (table $values 8 externref) (global $last (mut externref) (ref.null extern))
  (func (export "hold") (param $at i32) (param externref)
    (global.set $last (local.get 1)) (table.set $values (local.get $at) (local.get 1))))`;

const holder = NewEngine().compile(HOLDER);
const importer = new WebAssembly.Module(
  new Uint8Array(
    NewEngine().parse(`(module (import "h" "table" (table 4 funcref)) (import "h" "memory" (memory 16 64))
      (import "h" "base" (global (mut externref))) (elem (i32.const 0) $run)
      (func $run (export "run") (result i32) (memory.size)))`).bytes,
  ),
);
const binary = new Uint8Array(NewEngine().parse(TEXT).bytes);
const module = NewEngine().compile(TEXT);

/** Ways to make an instance, to use it, and to drop it. */
const USES: Readonly<Record<string, () => void>> = {
  "called": () => void (module.instantiate().exports as unknown as Exports)["run"](0),
  "grown": () => void (module.instantiate().exports as unknown as Exports)["run"](16),
  "holding values of the host": () => {
    const { hold } = holder.instantiate().exports as unknown as Exports;
    for (let at = 0; at < 8; at++) hold(at, {});
  },
  "importing objects of the host": () => {
    const table = new WebAssembly.Table({ initial: 4, element: "anyfunc" });
    // The declarations lack the type externref.
    const base = new WebAssembly.Global({ value: "externref" as "i32", mutable: true }, {});
    const memory = new WebAssembly.Memory({ initial: 16, maximum: 64 });
    const { exports } = new WebAssembly.Instance(importer, { h: { table, base, memory } });
    assert.equal((exports as unknown as Exports)["run"](), 16);
    assert.equal(table.get(0), exports["run"]);
  },
  "looked at": () => {
    const { exports } = module.instantiate();
    const { buffer } = exports["memory"] as { buffer: ArrayBuffer };
    assert.equal(String.fromCharCode(new Uint8Array(buffer)[8]), "s");
  },
  "of WebAssembly": () => {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(binary));
    assert.equal((exports as unknown as Exports)["run"](1), 17);
    assert.equal(new Uint8Array((exports["memory"] as WebAssembly.Memory).buffer)[8], 115);
    assert.equal((exports["table"] as WebAssembly.Table).get(0), (exports as unknown as Exports)["run"]);
  },
};

/** Whether this host notices collected objects without a turn of the event loop. */
function looksNow(): boolean {
  for (let k = 0; k < BETWEEN; k++) module.instantiate();
  return finalizeCollected(true);
}

for (const [name, use] of Object.entries(USES)) {
  Deno.test(`instances that a loop drops are collected within the loop: ${name}`, () => {
    if (!looksNow()) return;
    const [openBefore, bytesBefore] = [realmStore().instances.open, countedBytes()];
    for (let k = 0; k < COUNT; k++) {
      use();
      if (k % BETWEEN === 0) collectGarbage();
    }
    const open = realmStore().instances.open - openBefore;
    const mib = Math.round((countedBytes() - bytesBefore) / MIB);
    assert.ok(open < COUNT / 4, `${open} of ${COUNT} instances are open`);
    assert.ok(mib < COUNT / 4, `${mib} of ${COUNT} MiB are left`);
  });
}

Deno.test("instances of other modules that a loop drops are collected within the loop", () => {
  if (!looksNow()) return;
  const { instantiate } = { instantiate: () => NewEngine().compile(TEXT).instantiate() };
  const before = realmStore().instances.open;
  for (let k = 0; k < COUNT / 4; k++) {
    instantiate();
    if (k % 10 === 0) collectGarbage();
  }
  const open = realmStore().instances.open - before;
  assert.ok(open < COUNT / 8, `${open} of ${COUNT / 4} instances are open`);
});

/** Contents by which a result tells whose memory it was read from. */
const SECRET = 4242;
const VICTIM = `(module
  (type $f (func (result i32))) (type $s (struct (field (ref $f))))
  (import "h" "wait" (func $wait (result i32)))
  (memory (export "memory") 16) (data (i32.const 100) "\\92\\10\\00\\00")
  (table (export "table") 4 funcref) (elem (i32.const 0) $load)
  (global $g (export "global") (mut i64) (i64.const ${SECRET}))
  (tag $t (export "tag") (param i32 funcref))
  (func $load (export "load") (type $f) (i32.load (i32.const 100)))
  (func (export "object") (result anyref) (struct.new $s (ref.func $load)))
  (func (export "use") (param anyref) (result i32)
    (call_ref $f (struct.get $s 0 (ref.cast (ref $s) (local.get 0)))))
  (func (export "throw") (throw $t (i32.const ${SECRET}) (ref.func $load)))
  (func (export "waiting") (result i32) (drop (call $wait)) (call $load)))`;
/** The same layout with other contents. */
const OTHER = VICTIM.replaceAll(String(SECRET), "31337").replace(`"\\\\92\\\\10`, `"\\\\ff\\\\ff`);

const victim = NewEngine().compile(VICTIM);
const other = NewEngine().compile(OTHER);
/** Calls the function in the payload of an exception. */
const catcher = NewEngine().compile(`(module (type $f (func (result i32)))
  (import "g" "tag" (tag $t (param i32 funcref))) (import "g" "rethrow" (func $rethrow))
  (func (export "catch") (result i32)
    (call_ref $f (ref.cast (ref $f)
      (block $caught (result i32 funcref) (try_table (catch $t $caught) (call $rethrow)) unreachable)))
    (i32.add) (i32.sub (i32.const ${SECRET}))))`);

/** Collects, and gives the memory of the collected instances to others, all in the current job. */
function churn(): void {
  for (let round = 0; round < 3; round++) {
    collectGarbage();
    assert.ok(finalizeCollected(true));
    for (let k = 0; k < BETWEEN; k++) {
      const instance = other.instantiate({}, { h: { wait: () => 0 } });
      new Uint8Array((instance.exports["memory"] as { buffer: ArrayBuffer }).buffer).fill(255);
      if (k < 4) KEPT.push(instance);
    }
  }
}
const KEPT: Instance[] = [];

/** What outlives an instance: returns a function that uses it. */
const SURVIVORS: Readonly<Record<string, (instance: Instance, exports: Exports) => () => unknown>> = {
  "its memory": ({ exports }) => {
    const memory = exports["memory"] as { buffer: ArrayBuffer };
    return () => new Uint32Array(memory.buffer, 100, 1)[0];
  },
  "a buffer of its memory": ({ exports }) => {
    const { buffer } = exports["memory"] as { buffer: ArrayBuffer };
    return () => new DataView(buffer).getUint32(100, true);
  },
  "a view of its memory": ({ exports }) => {
    const view = new Uint32Array((exports["memory"] as { buffer: ArrayBuffer }).buffer, 100, 1);
    return () => view[0];
  },
  "a function": (_, { load }) => load,
  "the element of its table": ({ exports }) => {
    const table = exports["table"] as { get(index: number): () => unknown };
    return () => table.get(0)();
  },
  "a function from its table": ({ exports }) => (exports["table"] as { get(index: number): () => unknown }).get(0),
  "its global": ({ exports }) => {
    const global = exports["global"] as { value: bigint };
    return () => Number(global.value);
  },
  "an exception": ({ exports: { tag } }, { throw: raise }) => {
    const caught = thrownBy(raise);
    const rethrow = () => {
      throw caught;
    };
    return () => (catcher.instantiate({}, { g: { tag, rethrow } }).exports as unknown as Exports)["catch"]();
  },
  "an object with a function": (_, { object }) => {
    const made = object();
    const user = victim.instantiate({}, { h: { wait: () => 0 } });
    return () => (user.exports as unknown as Exports)["use"](made);
  },
  "a function in another table": (_, { load }) => {
    const user = victim.instantiate({}, { h: { wait: () => 0 } });
    const table = user.exports["table"] as { set(index: number, value: unknown): void; get(index: number): unknown };
    table.set(2, load);
    return () => (table.get(2) as () => unknown)();
  },
};

function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

/** Makes an instance, of which only what the survivor refers to is left when this returns. */
function survive(survivor: (typeof SURVIVORS)[string]): () => unknown {
  const instance = victim.instantiate({}, { h: { wait: () => 0 } });
  return survivor(instance, instance.exports as unknown as Exports);
}

for (const [name, survivor] of Object.entries(SURVIVORS)) {
  Deno.test(`what outlives a dropped instance within a job: ${name}`, () => {
    if (!looksNow()) return;
    const uses = Array.from({ length: 5 }, () => survive(survivor));
    churn();
    for (const use of uses) assert.equal(use(), SECRET);
    churn();
    for (const use of uses) assert.equal(use(), SECRET);
  });
}

Deno.test("the memory of an instance is not released while one of its calls is in progress", () => {
  if (!looksNow()) return;
  let instance: Instance | undefined;
  const wait = () => {
    instance = undefined;
    collectGarbage();
    assert.equal(finalizeCollected(true), false, "not while code is parked");
    for (let k = 0; k < BETWEEN; k++) other.instantiate({}, { h: { wait: () => 0 } });
    return 0;
  };
  const start = () => {
    instance = victim.instantiate({}, { h: { wait } });
    return (instance.exports as unknown as Exports)["waiting"];
  };
  assert.equal(start()(), SECRET);
});

Deno.test("a suspended call keeps its instance", async () => {
  if (!looksNow()) return;
  let resume: (value: number) => void = () => {};
  const start = () => {
    const wait = () => new Promise<number>((resolve) => resume = resolve);
    return victim.instantiate({}, { h: { wait } }).callAsync({}, "waiting");
  };
  const result = start();
  churn();
  await Promise.resolve();
  churn();
  resume(0);
  churn();
  assert.equal(await result, SECRET);
});
