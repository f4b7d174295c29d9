/**
 * Reset, snapshots, pools, and closed instances: the state that an instance defines is reset, is restored in another
 * instance, and never leaks to another one.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { host, type Instance, NewEngine, TrapError, WaftError } from "@waft/engine";

type Cells = { value: number };
type View = { buffer: ArrayBuffer; grow(pages: number): number };
type Elements = { length: number; get(index: number): unknown; set(index: number, value: unknown): void };

const TEXT = `(module
  (memory (export "m") 1 8) (memory (export "m2") 1) (table (export "t") 4 8 funcref) (table (export "u") 1 externref)
  (global (export "g") (mut i32) (i32.const 7)) (global (export "v") (mut f64) (f64.const 1.5))
  (global (export "r") (mut funcref) (ref.func $f))
  (elem (i32.const 0) $f $h) (elem $late func $h)
  (data (i32.const 8) "waft") (data $more "later") (data (memory 1) (i32.const 0) "second")
  (func $f (export "f") (result i32) (i32.const 1)) (func $h (export "h") (result i32) (i32.const 2))
  (func (export "dirty")
    (i32.store (i32.const 8) (i32.const 0x01020304)) (i32.store (i32.const 60000) (i32.const -1))
    (i32.store8 1 (i32.const 0) (i32.const 65))
    (memory.init $more (i32.const 100) (i32.const 0) (i32.const 5)) (data.drop $more)
    (table.init $late (i32.const 2) (i32.const 0) (i32.const 1)) (elem.drop $late)
    (table.set (i32.const 0) (ref.func $h)) (drop (table.grow 0 (ref.func $f) (i32.const 3)))
    (global.set 0 (i32.const 99)) (global.set 1 (f64.const -0)) (global.set 2 (ref.null func))
    (drop (memory.grow (i32.const 2))) (i32.store (i32.const 190000) (i32.const 5)))
  (func (export "late") (memory.init $more (i32.const 200) (i32.const 0) (i32.const 5)) (elem.drop $late))
  (func (export "at") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (func (export "call") (param i32) (result i32) (call_indirect (result i32) (local.get 0))))`;

/** Everything that can be seen of an instance. */
function look(instance: Instance): unknown {
  const { m, m2, t, g, v, r } = instance.exports as unknown as {
    m: View;
    m2: View;
    t: Elements;
    g: Cells;
    v: Cells;
    r: Cells;
  };
  const digest = (view: View) => createHash("sha256").update(new Uint8Array(view.buffer)).digest("hex");
  const nameOf = (f: unknown) => f === null ? null : (f as { name: string }).name;
  return {
    memories: [m.buffer.byteLength, digest(m), m2.buffer.byteLength, digest(m2)],
    table: Array.from({ length: t.length }, (_, i) => nameOf(t.get(i))),
    globals: [g.value, Object.is(v.value, -0) ? "-0" : v.value, nameOf(r.value)],
  };
}

for (const bounds of ["guard", "explicit"] as const) {
  const module = NewEngine({ bounds }).compile(TEXT);

  Deno.test(`${bounds}: reset goes back to the state after instantiation, every time`, () => {
    const instance = module.instantiate();
    const fresh = look(instance);
    const kept = new Uint8Array((instance.exports["m"] as View).buffer);
    for (let round = 0; round < 3; round++) {
      instance.call({}, "dirty");
      assert.notDeepEqual(look(instance), fresh);
      assert.equal(instance.call({}, "call", 0), 2);
      assert.throws(() => instance.call({}, "late"), TrapError);
      instance.reset();
      assert.deepEqual(look(instance), fresh);
      assert.equal(instance.call({}, "call", 0), 1);
      instance.call({}, "late"); // segments are there again
      instance.reset();
      assert.throws(() => instance.call({}, "at", 65536), TrapError, "the pages it grew by are out of bounds again");
    }
    assert.equal(kept.length, 65536);
    kept[9] = 1; // a view of the memory's previous contents is still writable
  });

  Deno.test(`${bounds}: a snapshot brings the state to another instance`, () => {
    const first = module.instantiate();
    first.call({}, "dirty");
    const bytes = first.snapshot();
    const second = module.restore(bytes);
    assert.deepEqual(look(second), look(first));
    assert.throws(() => second.call({}, "late"), TrapError, "dropped segments stay dropped");
    assert.equal(second.call({}, "call", 0), 2);
    assert.deepEqual(second.snapshot(), bytes);
    assert.throws(() => second.call({}, "dirty"), TrapError, "half of it is done");
    second.reset();
    assert.deepEqual(look(second), look(first), "reset goes back to the restored state");
    assert.ok(bytes.length < 40_000, `${bytes.length} bytes`);
    const other = NewEngine({ bounds: bounds === "guard" ? "explicit" : "guard", fuel: true }).compile(TEXT);
    assert.deepEqual(look(other.restore(bytes)), look(first), "how the code was compiled does not matter");
    assert.throws(() => module.restore(bytes, { limits: { maxMemoryPages: 2 } }), RangeError);
  });

  Deno.test(`${bounds}: instances of a pool begin in their initial state`, () => {
    const pool = module.pool({ size: 2 });
    const fresh = look(module.instantiate());
    const [a, b, c] = [pool.take(), pool.take(), pool.take()];
    for (const instance of [a, b, c]) {
      instance.call({}, "dirty");
      pool.put(instance);
    }
    assert.deepEqual([pool.idle, pool.taken], [2, 0]);
    assert.throws(() => c.call({}, "f"), /closed/, "one more than the pool keeps");
    for (let i = 0; i < 3; i++) assert.deepEqual(look(pool.take()), fresh);
    assert.throws(() => pool.put(a) as unknown ?? pool.put(a), TypeError);
    assert.throws(() => pool.put(module.instantiate()), TypeError);
    pool.close();
    assert.throws(() => pool.take(), /closed/);
  });

  Deno.test(`${bounds}: much data is mapped copy-on-write, and written pages go back`, () => {
    const engine = NewEngine({ bounds });
    const words = "0123456789abcdef".repeat(20_000);
    const big = engine.compile(
      `(module (memory (export "m") 8 16) (data (i32.const 4096) "${words}") (data (i32.const 5000) "!")
      (data (i32.const 400000) "end")
      (func (export "dirty") (memory.fill (i32.const 0) (i32.const 90) (i32.const 500000))))`,
    );
    const expected = new Uint8Array(8 * 65536);
    expected.set(new TextEncoder().encode(words), 4096);
    expected[5000] = 33;
    expected.set(new TextEncoder().encode("end"), 400000);
    const bytesOf = (instance: Instance) => new Uint8Array((instance.exports["m"] as View).buffer);
    for (let round = 0; round < 3; round++) {
      const instance = big.instantiate();
      assert.ok(instance.internal.memories[0].hasImage);
      assert.deepEqual(bytesOf(instance), expected);
      instance.call({}, "dirty");
      assert.deepEqual(bytesOf(big.instantiate()), expected, "another instance is not touched");
      instance.reset();
      assert.deepEqual(bytesOf(instance), expected);
      instance.call({}, "dirty");
      const restored = big.restore(instance.snapshot());
      assert.deepEqual(bytesOf(restored), bytesOf(instance));
      (instance.exports["m"] as View).grow(2);
      instance.reset();
      assert.deepEqual(bytesOf(instance), expected);
      instance.close();
    }
  });
}

const engine = NewEngine({ interruptible: true });

Deno.test("reset after a start function goes back to its effects, and is opt-in", () => {
  let starts = 0;
  const module = engine.compile(
    `(module (import "h" "s" (func $s (result i32))) (memory (export "m") 1) (table 2 externref)
    (global $g (export "g") (mut i32) (i32.const 0))
    (func $start (global.set $g (call $s)) (i32.store (i32.const 4) (i32.const 42)))
    (start $start)
    (func (export "dirty") (global.set $g (i32.const 5)) (i32.store (i32.const 4) (i32.const 1))))`,
  );
  const imports = { h: { s: () => ++starts } };
  const plain = module.instantiate({}, imports);
  assert.throws(() => plain.reset(), /start function.*resettable/);
  const instance = module.instantiate({ resettable: true }, imports);
  instance.call({}, "dirty");
  instance.reset();
  assert.equal((instance.exports["g"] as Cells).value, 2);
  assert.equal(new Int32Array((instance.exports["m"] as View).buffer)[1], 42);
  assert.equal(starts, 2, "the start function does not run again");
  assert.equal(module.pool({ imports }).take().call({}, "dirty"), undefined);
});

Deno.test("imports are left alone", () => {
  const memory = host.memory(1);
  const module = engine.compile(
    `(module (import "h" "m" (memory 1)) (memory $own (export "own") 1) (data (i32.const 0) "x")
    (data (memory $own) (i32.const 0) "y"))`,
  );
  const instance = module.instantiate({}, { h: { m: memory } });
  new Uint8Array(memory.buffer)[0] = 1;
  new Uint8Array((instance.exports["own"] as View).buffer)[0] = 1;
  instance.reset();
  assert.equal(new Uint8Array(memory.buffer)[0], 1);
  assert.equal(new Uint8Array((instance.exports["own"] as View).buffer)[0], "y".charCodeAt(0));
  assert.throws(() => instance.snapshot(), /cannot be saved: it imports the memory "h" "m"/);
});

Deno.test("an instance that is not idle is neither reset nor saved", async () => {
  let gate!: (value: number) => void;
  const errors: unknown[] = [];
  const attempt = (action: () => void) => {
    try {
      action();
    } catch (error) {
      errors.push((error as Error).message);
    }
  };
  const instance: Instance = engine.compile(
    `(module (import "h" "now" (func $now)) (import "h" "wait" (func $wait (result i32)))
    (func (export "now") (call $now)) (func (export "wait") (result i32) (call $wait)))`,
  ).instantiate({}, {
    h: {
      now: () => {
        attempt(() => instance.reset());
        attempt(() => instance.snapshot());
      },
      wait: () => new Promise((resolve) => gate = resolve),
    },
  });
  instance.call({}, "now");
  instance.internal.store.thread.sliceMs = 2000; // a busy machine may take longer than a slice to get there
  const call = instance.callAsync({}, "wait");
  instance.internal.store.thread.sliceMs = 8;
  attempt(() => instance.reset());
  attempt(() => instance.snapshot());
  assert.equal(errors.length, 4);
  for (const message of errors) assert.match(message as string, /not idle/);
  gate(3);
  assert.equal(await call, 3);
  instance.reset();
  instance.close();
  assert.throws(() => instance.reset(), /closed/);
  assert.throws(() => instance.snapshot(), /closed/);
});

Deno.test("references out of the instance are not saved, and are named", () => {
  const other = engine.compile(`(module (func (export "f")))`).instantiate();
  const instance = engine.compile(`(module (table (export "t") 3 funcref) (table (export "u") 2 externref)
    (global (export "x") (mut externref) (ref.null extern)) (func (export "f")))`).instantiate();
  const { t, u, x } = instance.exports as unknown as { t: Elements; u: Elements; x: { value: unknown } };
  t.set(2, instance.exports["f"]);
  instance.snapshot();
  t.set(1, other.exports["f"]);
  assert.throws(() => instance.snapshot(), /element 1 of table 0 refers to an object outside/);
  t.set(1, null);
  u.set(1, {});
  assert.throws(() => instance.snapshot(), /element 1 of table 1/);
  u.set(1, null);
  x.value = "host";
  assert.throws(() => instance.snapshot(), /global 0/);
});

Deno.test("hostile snapshots give one clear error", () => {
  const module = engine.compile(TEXT);
  const instance = module.instantiate();
  instance.call({}, "dirty");
  const bytes = instance.snapshot();
  const refused = (hostile: Uint8Array, why: RegExp) =>
    assert.throws(() => module.restore(hostile), (error) => error instanceof WaftError && why.test(error.message));
  for (const length of [0, 1, 8, 40, 100, bytes.length - 1]) refused(bytes.subarray(0, length), /cannot be restored/);
  let random = 12345;
  const next = (below: number) => (random = (random * 1103515245 + 12345) & 0x7fffffff) % below;
  /** With a checksum that is right. */
  const sealed = (content: Uint8Array) => {
    const sum = createHash("sha256").update(content).digest();
    return new Uint8Array([...content, ...sum]);
  };
  const content = bytes.slice(0, -32);
  for (let k = 0; k < 200; k++) {
    const damaged = bytes.slice();
    damaged[next(bytes.length)] ^= 1 << next(8);
    refused(damaged, /cannot be restored/);
    // A liar with a right checksum: refused, or a state that the module could have.
    const lie = content.slice();
    lie[next(2) === 0 ? 41 + next(16) : content.length - 1 - next(64)] = next(256);
    try {
      const restored = module.restore(sealed(lie));
      restored.call({}, "at", 8);
      restored.close();
    } catch (error) {
      assert.ok(error instanceof WaftError || error instanceof RangeError || error instanceof TrapError, String(error));
    }
  }
  for (let length = 0; length < content.length; length += 1 + (length >> 4)) {
    refused(sealed(content.slice(0, length)), /cannot be restored/);
  }
  refused(sealed(new Uint8Array([...content, 0])), /trailing bytes/);
  const newer = content.slice();
  newer[8] = 2;
  refused(sealed(newer), /version 2/);
  assert.throws(() => engine.compile(`(module (memory 1))`).restore(bytes), /another module/);
});

Deno.test("restoring takes no more memory than the snapshot has bytes, whatever pages it speaks of", () => {
  const text = `(module (memory (export "m") 0 65536)
    (func (export "at") (param i32) (result i32) (i32.load8_u (local.get 0))))`;
  const instance = engine.compile(text).instantiate();
  const head = instance.snapshot().subarray(0, 8 + 1 + 32);
  instance.close();
  // 16,000 pages; block 1, and the last, are not empty; no segment is dropped.
  const block = Array.from({ length: 4096 }, () => 66);
  const content = Uint8Array.of(...head, 0x80, 0x7d, 1, 1, ...block, 0xfd, 0xcf, 0x0f, 1, ...block, 0, 0, 0, 0);
  const snapshot = Uint8Array.of(...content, ...createHash("sha256").update(content).digest());
  const { Uint8Array: Bytes } = globalThis;
  let most = 0;
  globalThis.Uint8Array = new Proxy(Bytes, {
    construct(target, args, self) {
      if (typeof args[0] === "number") most = Math.max(most, args[0]);
      return Reflect.construct(target, args, self === globalThis.Uint8Array ? target : self);
    },
  });
  try {
    const small = NewEngine({ limits: { maxMemoryPages: 100 } }).compile(text);
    assert.throws(
      () => small.restore(snapshot),
      (error) => error instanceof RangeError && /16000 pages/.test(error.message),
    );
    const restored = engine.compile(text).restore(snapshot);
    for (const [at, value] of [[16_000 * 65536 - 1, 66], [5000, 66], [0, 0], [16_000 * 65536 - 4097, 0]]) {
      assert.equal(restored.call({}, "at", at), value);
    }
    restored.reset();
    assert.equal(restored.call({}, "at", 5000), 66);
    restored.close();
  } finally {
    globalThis.Uint8Array = Bytes;
  }
  assert(most < 1 << 20, `${most} bytes at once`);
});

Deno.test("memories of closed instances go at once, and never while a view is in use", () => {
  const module = engine.compile(
    `(module (memory (export "m") 1) (func (export "w") (param i32) (i32.store (i32.const 0) (local.get 0))))`,
  );
  // More than there is address space for.
  for (let k = 0; k < 17_000; k++) {
    const instance = module.instantiate();
    instance.call({}, "w", k);
    instance.close();
  }
  const watched = module.instantiate();
  watched.call({}, "w", 77);
  const memory = watched.exports["m"] as View;
  const view = new Int32Array(memory.buffer);
  watched.close();
  assert.equal(view[0], 0);
  const next = module.instantiate();
  next.call({}, "w", 5);
  view[0] = 9;
  assert.equal(new Int32Array((next.exports["m"] as View).buffer)[0], 5);
  assert.equal(memory.buffer.byteLength, 0);
  assert.equal(memory.grow(1), -1);
});
