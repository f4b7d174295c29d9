/**
 * Reset, pools and the end of component instances: a reset restores memories, tables and globals that other instances
 * filled, ends objects of resources and disposes of those of the host.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";

/**
 * A component in the shape that wit-component gives programs: a table that another core instance fills after the
 * instantiation, a global that start code sets, a counter in memory, a resource of its own and one of the host.
 */
const COMPONENT = `(component
  (import "host" (instance $host
    (export "file" (type $file (sub resource)))
    (export "open" (func (result (own $file))))))
  (alias export $host "file" (type $file))
  (core module $shim
    (table (export "t") 1 1 funcref)
    (type $f (func (result i32)))
    (func (export "call") (result i32) (call_indirect (type $f) (i32.const 0))))
  (core module $main
    (import "shim" "call" (func $call (result i32)))
    (import "host" "open" (func $open (result i32)))
    (import "own" "new" (func $new (param i32) (result i32)))
    (memory (export "m") 1)
    (func (export "count") (result i32)
      (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
      (i32.add (i32.load (i32.const 0)) (call $call)))
    (func (export "open") (drop (call $open)))
    (func (export "make") (result i32) (call $new (i32.const 7)))
    (func (export "get") (param i32) (result i32) (local.get 0))
    (func (export "fail") unreachable))
  (core module $fill
    (import "shim" "t" (table 1 1 funcref))
    (import "main" "m" (memory 1))
    (func $hundred (result i32) (i32.const 100))
    (func $start (i32.store (i32.const 0) (i32.const 10)))
    (start $start)
    (elem (i32.const 0) $hundred))
  (core instance $shim (instantiate $shim))
  (type $thing (resource (rep i32)))
  (core func $new (canon resource.new $thing))
  (core func $open (canon lower (func $host "open")))
  (core instance $main (instantiate $main
    (with "shim" (instance $shim))
    (with "host" (instance (export "open" (func $open))))
    (with "own" (instance (export "new" (func $new))))))
  (core instance (instantiate $fill (with "shim" (instance $shim)) (with "main" (instance $main))))
  (export $thing2 "thing" (type $thing))
  (func (export "count") (result u32) (canon lift (core func $main "count")))
  (func (export "open") (canon lift (core func $main "open")))
  (func (export "make") (result (own $thing2)) (canon lift (core func $main "make")))
  (func (export "[method]thing.get") (param "self" (borrow $thing2)) (result u32)
    (canon lift (core func $main "get")))
  (func (export "fail") (canon lift (core func $main "fail"))))`;

interface Thing {
  get(): number;
  [Symbol.dispose](): void;
}

interface Exports {
  count(): number;
  open(): void;
  make(): Thing;
  fail(): void;
}

class File {
  static disposed = 0;
  [Symbol.dispose](): void {
    File.disposed++;
  }
}

const component = compileComponent(NewEngine(), COMPONENT);
const imports = { host: { File, open: () => new File() } };

Deno.test("a reset restores the state after instantiation, not the state of each core instance alone", () => {
  const instance = component.instantiate<Exports>({ resettable: true }, imports);
  assert.deepEqual([instance.exports.count(), instance.exports.count()], [111, 112]);
  instance.reset();
  assert.equal(instance.exports.count(), 111);
});

Deno.test("a reset ends the component's resources and disposes of the host's", () => {
  const instance = component.instantiate<Exports>({ resettable: true }, imports);
  const thing = instance.exports.make();
  assert.equal(thing.get(), 7);
  instance.exports.open();
  instance.exports.open();
  File.disposed = 0;
  instance.reset();
  assert.equal(File.disposed, 2);
  assert.throws(() => thing.get(), /may have been passed on or disposed of/);
  thing[Symbol.dispose]();
  assert.equal(instance.exports.make().get(), 7);
});

Deno.test("a reset makes an instance usable again that has trapped", () => {
  const instance = component.instantiate<Exports>({ resettable: true }, imports);
  assert.throws(() => instance.exports.fail(), { name: "TrapError" });
  assert.throws(() => instance.exports.count(), /cannot enter component instance/);
  instance.reset();
  assert.equal(instance.exports.count(), 111);
});

Deno.test("only an idle instance with a recorded state is reset", () => {
  assert.throws(() => component.instantiate({}, imports).reset(), /not instantiated with \{ resettable: true \}/);
  let problem: unknown;
  const instance = component.instantiate<Exports>({ resettable: true }, {
    host: {
      File,
      open: () => {
        try {
          instance.reset();
        } catch (error) {
          problem = error;
        }
        return new File();
      },
    },
  });
  instance.exports.count();
  instance.exports.open();
  assert.match(String(problem), /not idle/);
  assert.equal(instance.exports.count(), 112);
});

Deno.test("a pool hands out instances in their first state, and closes those that it cannot keep", () => {
  const pool = component.pool({ size: 1, imports });
  const first = pool.take();
  const second = pool.take();
  assert.deepEqual([first.call({}, "count"), second.call({}, "count")], [111, 111]);
  pool.put(first);
  pool.put(second);
  assert.equal(pool.idle, 1);
  assert.throws(() => second.call({}, "count"), /closed/);
  assert.equal(pool.take(), first);
  assert.equal(first.call({}, "count"), 111);
});

Deno.test("a closed instance refuses calls and disposes of the host's resources", () => {
  const instance = component.instantiate<Exports>({}, imports);
  const { count } = instance.exports;
  instance.exports.open();
  File.disposed = 0;
  instance.close();
  instance.close();
  assert.equal(File.disposed, 1);
  assert.throws(() => count(), /closed/);
  assert.throws(() => instance.reset(), Error);
});

Deno.test("resources whose disposal fails do not keep others from it", () => {
  let disposed = 0;
  class Stubborn {
    [Symbol.dispose](): void {
      disposed++;
      throw new Error(`disposal ${disposed} fails`);
    }
  }
  const instance = component.instantiate<Exports>({}, { host: { File: Stubborn, open: () => new Stubborn() } });
  for (let k = 0; k < 3; k++) instance.exports.open();
  assert.throws(() => instance.close(), /disposal 1 fails/);
  assert.equal(disposed, 3);
});

Deno.test("limits of an instantiation apply to every core instance", () => {
  const grow = compileComponent(
    NewEngine(),
    `(component
      (core module $m (memory 1) (func (export "grow") (result i32) (memory.grow (i32.const 4))))
      (core instance $i (instantiate $m))
      (func (export "grow") (result s32) (canon lift (core func $i "grow"))))`,
  );
  assert.equal(grow.instantiate({ limits: { maxMemoryPages: 4 } }).call({}, "grow"), -1);
  assert.equal(grow.instantiate({ limits: { maxMemoryPages: 5 } }).call({}, "grow"), 1);
});

Deno.test("closing an instance closes the adapters between its components", () => {
  const pair = compileComponent(
    NewEngine({ limits: { maxInstances: 200 } }),
    `(component
      (component $A
        (core module $m (func (export "f") (param i32) (result i32) (local.get 0)))
        (core instance $i (instantiate $m))
        (func (export "f") (param "x" u32) (result u32) (canon lift (core func $i "f"))))
      (component $B
        (import "f" (func $f (param "x" u32) (result u32)))
        (core func $f (canon lower (func $f)))
        (core module $n (import "a" "f" (func $f (param i32) (result i32)))
          (func (export "g") (param i32) (result i32) (call $f (local.get 0))))
        (core instance $i (instantiate $n (with "a" (instance (export "f" (func $f))))))
        (func (export "g") (param "x" u32) (result u32) (canon lift (core func $i "g"))))
      (instance $a (instantiate $A))
      (instance $b (instantiate $B (with "f" (func $a "f"))))
      (func (export "g") (alias export $b "g")))`,
  );
  for (let round = 0; round < 300; round++) {
    const instance = pair.instantiate<{ g(x: number): number }>();
    assert.equal(instance.exports.g(round), round);
    instance.close();
  }
});

Deno.test("objects of a component have their first contents for each user of a pool", () => {
  const counter = compileComponent(
    NewEngine(),
    `(component
      (core module $m (type $s (struct (field (mut i32)))) (global $g (ref $s) (struct.new $s (i32.const 0)))
        (func (export "count") (result i32)
          (struct.set $s 0 (global.get $g) (i32.add (struct.get $s 0 (global.get $g)) (i32.const 1)))
          (struct.get $s 0 (global.get $g))))
      (core instance $i (instantiate $m))
      (func (export "count") (result u32) (canon lift (core func $i "count"))))`,
  );
  const pool = counter.pool({ size: 1 });
  for (let user = 0; user < 3; user++) {
    const instance = pool.take();
    assert.equal(instance.call({}, "count"), 1);
    pool.put(instance);
  }
  assert.equal(pool.idle, 1);
  pool.close();
});
