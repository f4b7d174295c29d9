/**
 * Errors as embedders see them: codes, stacks, details; and the `console.log` output for engine objects.
 */
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { type Context, host, NewEngine, TrapError, WasmException } from "@waft/engine";
import { WebAssembly } from "@waft/engine/webassembly";
import { TRAP_MESSAGES, TRAP_NAMES } from "../../engine/base/traps.ts";
import { trapName } from "../../engine/base/traps.ts";

/** Every code there is: part of the API, so a row never changes. */
const CODES: Readonly<Record<string, string>> = {
  "unreachable": "unreachable",
  "integer divide by zero": "integer-divide-by-zero",
  "integer overflow": "integer-overflow",
  "invalid conversion to integer": "invalid-conversion",
  "out of bounds memory access": "memory-out-of-bounds",
  "out of bounds table access": "table-out-of-bounds",
  "undefined element": "undefined-element",
  "uninitialized element": "uninitialized-element",
  "indirect call type mismatch": "indirect-call-type",
  "call stack exhausted": "stack-exhausted",
  "null reference": "null-reference",
  "null function reference": "null-function",
  "null structure reference": "null-structure",
  "null array reference": "null-array",
  "null i31 reference": "null-i31",
  "null exception reference": "null-exception",
  "cast failure": "cast-failure",
  "out of bounds array access": "array-out-of-bounds",
  "unaligned atomic": "unaligned-atomic",
  "expected shared memory": "expected-shared-memory",
  "interrupted": "interrupted",
  "out of fuel": "out-of-fuel",
  "allocation size too large": "allocation-too-large",
  "null descriptor reference": "null-descriptor",
  "descriptor cast failure": "descriptor-cast",
};

const TEXT = `(module
  (tag $pair (export "pair") (param i32 i64))
  (memory (export "memory") 1)
  (func $inner (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "load") (param i32) (result i32) (i32.add (call $inner (local.get 0)) (i32.const 1)))
  (func $again (export "again") (call $and))
  (func $and (call $again))
  (func $alone (export "alone") (drop (i32.add (i32.const 1) (call $deep))))
  (func $deep (result i32) (i32.add (call $deep) (i32.const 1)))
  (func (export "spin") (loop (br 0)))
  (func $throws (throw $pair (i32.const 7) (i64.const 8)))
  (func (export "throws") (call $throws)))`;
const instance = NewEngine({ interruptible: true, fuel: true, optimizations: { inline: false } }).compile(TEXT)
  .instantiate();

function trapOf(run: () => unknown): TrapError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof TrapError, String(error));
    return error;
  }
  throw new Error("nothing was thrown");
}

Deno.test("every trap has a stable code", () => {
  assert.deepEqual(Object.fromEntries(TRAP_MESSAGES.slice(1).map((text) => [text, TRAP_NAMES[text]])), CODES);
  assert.equal(trapName("out of memory: 5 bytes more are wanted"), "out-of-memory");
  assert.equal(trapOf(() => instance.call({}, "load", -1)).code, "memory-out-of-bounds");
});

Deno.test("a stack repeats very long names in a short form, and keeps the frames' names", () => {
  const name = `${"n".repeat(199)}\u{1f600}${"n".repeat(1 << 20)}`;
  const { exports } = NewEngine().compile(`(module (func $"${name}" (export "f") (param i32)
    (if (i32.eqz (local.get 0)) (then unreachable))
    (call 0 (i32.sub (local.get 0) (i32.const 1)))))`).instantiate({}, {});
  const { stack, frames } = trapOf(() => (exports as { f(n: number): void }).f(1));
  assert.equal(frames[0].funcName, name);
  assert.ok(stack!.length < 20_000, `${stack!.length} characters`);
  assert.match(stack!, /\n {4}at n{199}… \(wasm:/);
});

Deno.test("a stack has the guest's frames, then the program's, and nothing of the engine's", () => {
  function caller() {
    instance.call({}, "load", 65536);
  }
  const { stack, frames } = trapOf(caller);
  const lines = stack!.split("\n");
  assert.match(lines[0], /^TrapError: out of bounds memory access \(address 65536 of a memory of 65536 bytes\)$/);
  assert.match(lines[1], /^ {4}at inner \(wasm:4:\d+\)$/);
  assert.match(lines[2], /^ {4}at load \(wasm:5:\d+\)$/);
  assert.equal(frames.length, 2);
  assert.match(lines[3], /caller/);
  assert.doesNotMatch(stack!, /engine\/(runtime|host|module)/);
});

Deno.test("an access out of bounds has its address and the size of the memory", () => {
  assert.deepEqual(trapOf(() => instance.call({}, "load", 65533)).access, { address: 65533 + 3 & ~0, bytes: 65536 });
});

Deno.test("a trap at the end of the last function has its frame, whatever follows the code", () => {
  // The length of the function decides whether its image ends with the call of the trap stub.
  for (const parameters of ["", "(param f64 f32)", "(param i32 f64)"]) {
    for (let length = 0; length < 8; length++) {
      const body = "(global.set 0 (i32.add (global.get 0) (i32.const 7)))".repeat(length);
      const text =
        `(module (global (mut i32) (i32.const 0)) (func) (func (export "f") ${parameters} ${body} unreachable))`;
      for (const tier of ["auto", "baseline", "optimizing"] as const) {
        const { f } = NewEngine({ tier }).compile(text).instantiate().exports as { f: (a: number, b: number) => void };
        assert.throws(() => f(1, 2), (error) => {
          assert.deepEqual((error as TrapError).frames.map(({ funcIndex }) => funcIndex), [1], `${tier}, ${length}`);
          return true;
        });
      }
    }
  }
});

Deno.test("a recursion is shown once", () => {
  for (const [name, functions] of [["again", 2], ["alone", 1]] as const) {
    const { stack, frames, code } = trapOf(() => instance.call({}, name));
    assert.equal(code, "stack-exhausted");
    assert.ok(frames.length > 30, "frames are all there");
    const shown = stack!.split("\n").filter((line) => /wasm:/.test(line));
    assert.ok(shown.length <= functions + 2, stack);
    assert.match(stack!, /\n {4}\.\.\. \d+ more frames of this recursion\n/);
  }
});

Deno.test("a trap says which limit it is about", async () => {
  const late = trapOf(() => instance.call({ deadline: 20 }, "spin"));
  assert.deepEqual([late.message, late.code, late.detail], ["interrupted", "interrupted", "the deadline of 20 ms"]);
  assert.match(late.stack!, /^TrapError: interrupted \(the deadline of 20 ms\)\n {4}at spin /);
  const context: Context = { fuel: 1000, deadline: 60_000 };
  assert.equal(trapOf(() => instance.call(context, "spin")).detail, "the limit of 1000 units of fuel");
  await assert.rejects(instance.callAsync({ deadline: 20 }, "spin"), { detail: "the deadline of 20 ms" });
  const nested = NewEngine({ interruptible: true }).compile(
    `(module (import "m" "f" (func $f)) (func (export "outer") (call $f)))`,
  ).instantiate({}, { m: { f: () => instance.call({ deadline: 20 }, "spin") } });
  assert.equal(trapOf(() => nested.call({ deadline: 60_000 }, "outer")).detail, "the deadline of 20 ms");
});

Deno.test("an exception that nothing catches shows its tag, its values and the guest's frames", () => {
  assert.throws(() => instance.call({}, "throws"), (error) => {
    assert.ok(error instanceof WasmException);
    assert.deepEqual(error.payload, [7, 8n]);
    assert.deepEqual(error.frames.map(({ funcName }) => funcName), ["throws", "throws"]);
    const [header, ...rest] = error.stack!.split("\n");
    assert.equal(header, "WasmException: wasm exception of tag (i32 i64): 7, 8n");
    assert.match(rest.join("\n"), /^ {4}at throws \(wasm:11:\d+\)\n {4}at throws \(wasm:12:\d+\)\n {4}at /);
    return true;
  });
});

Deno.test("errors of the WebAssembly namespace have codes and stacks, too", () => {
  const bytes = new Uint8Array(NewEngine().parse(TEXT).bytes);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes));
  assert.throws(() => (exports["load"] as (n: number) => number)(-1), (error) => {
    assert.ok(error instanceof WebAssembly.RuntimeError);
    assert.equal((error as unknown as { code: string }).code, "memory-out-of-bounds");
    assert.match(error.stack!, /^RuntimeError: out of bounds memory access.*\n {4}at inner \(wasm:/);
    assert.doesNotMatch(error.stack!, /engine\/(runtime|host|webassembly)/);
    return true;
  });
});

Deno.test("a stack can be set by a program", () => {
  const error = trapOf(() => instance.call({}, "load", -1));
  error.stack = "mine";
  assert.equal(error.stack, "mine");
});

/** Objects of the API, and their line in a log. */
const LOGGED: readonly (readonly [make: () => unknown, line: string])[] = [
  [() => NewEngine(), "Engine { bounds: auto, tier: auto }"],
  [
    () => NewEngine({ bounds: "explicit", fuel: true, interruptible: true }),
    "Engine { bounds: explicit, tier: auto, interruptible, fuel }",
  ],
  [() => host.memory(1, 3), "Memory { pages: 1, maxPages: 3 }"],
  [() => host.sharedMemory(1, 3), "Memory { pages: 1, maxPages: 3, shared }"],
  [() => host.table("funcref", 2), "ExternTable { length: 2, funcref }"],
  [() => host.global("i64", true, 5n), "ExternGlobal { mut i64 }"],
  [() => host.tag("i32", "externref"), "Tag { param i32 externref }"],
];

Deno.test("objects of the API are one line in a log", () => {
  const own = (globalThis as { Deno?: typeof Deno }).Deno;
  for (const [make, line] of LOGGED) {
    const object = make();
    assert.equal(inspect(object), line);
    if (own !== undefined) assert.equal(own.inspect(object), line);
  }
});

Deno.test("exports and results can be typed", () => {
  const module = NewEngine().compile(
    `(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))`,
  );
  const typed = module.instantiate<{ add(a: number, b: number): number }>();
  const sum: number = typed.exports.add(2, 3) + typed.call({}, "add", 1, 1);
  // @ts-expect-error: the export has two parameters of type number
  const wrong = () => typed.call({}, "add", "1", 1);
  // @ts-expect-error: there is no such export
  const absent = () => typed.call({}, "sub", 1, 1);
  assert.throws(absent, TypeError);
  assert.equal(wrong(), 2);
  const pool = module.pool<{ add(a: number, b: number): number }>();
  const product: number = pool.take().call({}, "add", 2, 2);
  assert.equal(product, 4);
  pool.close();
  assert.equal(sum, 7);
  const { add } = module.instantiate().exports as { add(a: number, b: number): number };
  assert.equal(add(1, 2), 3);
});

Deno.test("equal bytes are compiled once", () => {
  const bytes = new Uint8Array(NewEngine().parse(TEXT).bytes);
  const engine = NewEngine();
  const first = engine.compile(bytes);
  const state = (module: typeof first) => module.instantiate().internal.module;
  assert.equal(state(engine.compile(bytes.slice())), state(first));
  assert.equal(state(NewEngine().compile(bytes)), state(first), "engines with equal settings share");
  assert.notEqual(state(NewEngine({ fuel: true }).compile(bytes)), state(first), "others do not");
  assert.notEqual(state(NewEngine({ bounds: "explicit" }).compile(bytes)), state(first));
  const changed = new Uint8Array(NewEngine().parse(`(module (func (export "f") (result i32) (i32.const 1)))`).bytes);
  const one = engine.compile(changed);
  changed[changed.indexOf(0x41) + 1] = 2; // the constant
  const two = engine.compile(changed);
  assert.deepEqual([one.instantiate().call({}, "f"), two.instantiate().call({}, "f")], [1, 2]);
  const token = first.share();
  const again = engine.compile(bytes);
  again.share();
  again.unshare();
  assert.deepEqual(first.share(), token, "a module that another one unshares stays shared");
});

Deno.test("many modules that differ in few bytes do not make the search for equal bytes slower", () => {
  const long = "a".repeat(100_000);
  const bytes = new Uint8Array(NewEngine().parse(`(module (memory 2) (data (i32.const 0) "${long}"))`).bytes);
  const engine = NewEngine();
  const state = (module: ReturnType<typeof engine.compile>) => module.instantiate().internal.module;
  const modules = Array.from({ length: 12 }, (_, k) => {
    bytes[bytes.length - 2] = k;
    return engine.compile(bytes);
  });
  // The last ones alone are compared: a search looks at a bounded number of modules.
  assert.equal(state(engine.compile(bytes)), state(modules[11]));
  bytes[bytes.length - 2] = 0;
  assert.notEqual(state(engine.compile(bytes)), state(modules[0]));
});
