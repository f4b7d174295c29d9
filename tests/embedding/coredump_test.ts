/**
 * Core dumps of traps: their stack, memories and globals, for traps of instructions, faults, builtins and limits, in
 * both tiers, and across instances. The dumps are read by the decoder, by a reader of the custom sections that follows
 * the tool conventions, and validated by the host where it has WebAssembly.
 */
import assert from "node:assert/strict";
import { NewEngine, TrapError } from "@waft/engine";
import { ByteReader } from "@waft/engine/internal/base/bytes";
import { decodeModule } from "@waft/engine/internal/binary/decode";

interface Frame {
  readonly instance: number;
  readonly func: number;
  readonly offset: number;
}

interface Dump {
  readonly name: string;
  readonly modules: string[];
  readonly instances: number[][];
  readonly frames: Frame[];
  readonly module: ReturnType<typeof decodeModule>;
}

function list<T>(reader: ByteReader, read: () => T): T[] {
  return Array.from({ length: reader.u32() }, read);
}

/** Reads a dump by the grammar of Coredump.md. */
function readDump(bytes: Uint8Array): Dump {
  const module = decodeModule(bytes);
  const section = (name: string) => new ByteReader(module.customs.find((custom) => custom.name === name)!.bytes);
  const record = (reader: ByteReader) => assert.equal(reader.u8(), 0);
  const core = section("core");
  record(core);
  const modules = section("coremodules");
  const instances = section("coreinstances");
  const stack = section("corestack");
  record(stack);
  assert.equal(stack.name(), "main");
  const dump = {
    name: core.name(),
    modules: list(modules, () => (record(modules), modules.name())),
    instances: list(instances, () => {
      record(instances);
      const index = instances.u32();
      return [index, list(instances, () => instances.u32()).length, list(instances, () => instances.u32()).length];
    }),
    frames: list(stack, () => {
      record(stack);
      const frame = { instance: stack.u32(), func: stack.u32(), offset: stack.u32() };
      assert.deepEqual([stack.u32(), stack.u32()], [0, 0], "values are missing");
      return frame;
    }),
    module,
  };
  for (const reader of [core, modules, instances, stack]) assert.equal(reader.left, 0);
  return dump;
}

function trapOf(run: () => unknown): TrapError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof TrapError, String(error));
    return error;
  }
  assert.fail("no trap");
}

const PROGRAM = `(module $program
  (import "env" "base" (global $base i64))
  (memory (export "memory") 2 9)
  (global (mut i32) (i32.const -5))
  (global (mut f64) (f64.const 1.5))
  (global (mut v128) (v128.const i32x4 1 2 3 4))
  (global (mut externref) (ref.null extern))
  (global (mut f32) (f32.const -0))
  (data (i32.const 8) "abc")
  (data (i32.const 70000) "xyz")
  (func $divide (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
  (func $middle (param i32) (result i32) (i32.add (call $divide (local.get 0)) (i32.const 1)))
  (func (export "divide") (param i32) (result i32)
    (global.set 1 (i32.const 77))
    (i32.store8 (i32.const 131071) (i32.const 9))
    (i32.add (call $middle (local.get 0)) (i32.const 1)))
  (func (export "far") (result i32) (i32.load (i32.const 1000000)))
  (func (export "spin") (loop (br 0)))
  (func (export "fill") (memory.fill (i32.const 131000) (i32.const 1) (i32.const 1000))))`;

function byteAt({ module }: Dump, at: number): number {
  for (const { bytes, mode } of module.datas) {
    assert.ok(mode.kind === "active");
    const start = new ByteReader(mode.start.bytes, 1).s32();
    if (at >= start && at < start + bytes.length) return bytes[at - start];
  }
  return 0;
}

for (const tier of ["baseline", "optimizing"] as const) {
  const engine = NewEngine({ tier, interruptible: true });
  const module = engine.compile(PROGRAM);
  const instantiate = () => module.instantiate({}, { env: { base: 3n } });

  Deno.test(`${tier}: a dump has the stack, the memory and the globals of the instance`, () => {
    const instance = instantiate();
    const trap = trapOf(() => instance.call({}, "divide", 0));
    const bytes = trap.coredump("program.wasm");
    assert.ok(engine.validate(bytes) === undefined);
    const { WebAssembly } = globalThis;
    if (WebAssembly !== undefined) assert.ok(WebAssembly.validate(bytes));
    const dump = readDump(bytes);
    assert.deepEqual([dump.name, dump.modules, dump.instances], ["program.wasm", ["program"], [[0, 1, 6]]]);
    assert.deepEqual(dump.frames.map(({ instance, func }) => [instance, func]), [[0, 0], [0, 1], [0, 2]]);
    const binary = decodeModule(engine.parse(PROGRAM).bytes);
    dump.frames.forEach(({ func, offset }, k) => {
      assert.equal(binary.funcs[func].body.offset + offset, trap.frames[k].offset);
    });
    assert.deepEqual([...dump.module.names.funcs], [[0, "divide"], [1, "middle"], [2, "divide"]]);
    assert.deepEqual(dump.module.memories.map(({ limits }) => [limits.min, limits.max]), [[2n, 9n]]);
    assert.deepEqual([8, 9, 11, 70002, 131071].map((at) => byteAt(dump, at)), [97, 98, 0, 122, 9]);
    assert.ok(dump.module.datas.reduce((sum, { bytes }) => sum + bytes.length, 0) <= 4 * 4096);
    const globals = dump.module.globals.map(({ type, init }) => [type.mutable, ...init.bytes]);
    assert.deepEqual(globals[0], [false, 0x42, 3, 0x0b]);
    assert.deepEqual(globals[1], [false, 0x41, 77 | 0x80, 0, 0x0b]);
    assert.deepEqual(globals[2], [false, 0x44, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0x0b]);
    assert.deepEqual(globals[3].slice(0, 8), [false, 0xfd, 0x0c, 1, 0, 0, 0, 2]);
    assert.deepEqual(globals[4], [false, 0xd0, 0x6f, 0x0b]);
    assert.deepEqual(globals[5], [false, 0x43, 0, 0, 0, 0x80, 0x0b]);
  });

  Deno.test(`${tier}: faults, bulk instructions and deadlines have dumps, too`, async () => {
    const instance = instantiate();
    assert.deepEqual(readDump(trapOf(() => instance.call({}, "far")).coredump()).frames.map(({ func }) => func), [3]);
    assert.deepEqual(readDump(trapOf(() => instance.call({}, "fill")).coredump()).frames.map(({ func }) => func), [5]);
    const late = trapOf(() => instance.call({ deadline: 20 }, "spin"));
    assert.deepEqual(readDump(late.coredump()).frames.map(({ func }) => func), [4]);
    const other = instantiate();
    const preempted = await instance.callAsync({ deadline: 30 }, "spin").then(() => assert.fail(), (error) => error);
    trapOf(() => other.call({}, "divide", 0));
    assert.deepEqual(readDump(preempted.coredump()).instances, [[0, 1, 6]]);
  });

  Deno.test(`${tier}: the dump is that of the instance whose code trapped`, () => {
    const inner = engine.compile(`(module $inner (global (export "g") (mut i32) (i32.const 42))
      (func (export "f") (result i32) unreachable))`).instantiate();
    const outer = engine.compile(`(module $outer (import "inner" "f" (func $f (result i32))) (memory 1)
      (func (export "call") (result i32) (i32.add (call $f) (i32.const 1))))`);
    const instance = outer.instantiate({}, { inner: inner.exports });
    const dump = readDump(trapOf(() => instance.call({}, "call")).coredump());
    assert.deepEqual(dump.modules, ["inner", "outer"]);
    assert.deepEqual(dump.instances, [[0, 0, 1], [1, 0, 0]]);
    assert.deepEqual(dump.frames.map(({ instance, func }) => [instance, func]), [[0, 0], [1, 1]]);
    assert.deepEqual([...dump.module.globals[0].init.bytes], [0x41, 42, 0x0b]);
    // A trap of the caller after the callee has returned is the caller's.
    const after = engine.compile(`(module (import "inner" "f" (func $f (result i32))) (memory 3)
      (func (export "call") (drop (call $f)) unreachable))`);
    const calm = engine.compile(`(module (func (export "f") (result i32) (i32.const 1)))`).instantiate();
    const caller = after.instantiate({}, { inner: calm.exports });
    assert.equal(readDump(trapOf(() => caller.call({}, "call")).coredump()).module.memories[0].limits.min, 3n);
  });
}

Deno.test("a trap that happened in no instance has no dump", () => {
  assert.throws(() => new TrapError("mine").coredump(), { message: /did not happen in an instance/ });
});

Deno.test("memories with 64-bit addresses and shared ones are in the dump", () => {
  const engine = NewEngine();
  const source = `(module (memory i64 1) (memory 1 1 shared) (data (memory 0) (i64.const 5) "q")
    (func (export "f") unreachable))`;
  const bytes = trapOf(() => engine.compile(source).instantiate().call({}, "f")).coredump();
  engine.validate(bytes);
  const { memories, datas } = readDump(bytes).module;
  assert.deepEqual(memories.map(({ shared }) => shared), [false, true]);
  assert.equal(datas[0].bytes[5], "q".charCodeAt(0));
});
