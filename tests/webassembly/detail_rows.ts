/**
 * Rows about details that libraries depend on: conversions that happen once, accepted byte sources, objects of the
 * garbage-collected heap, types of builtins in recursive groups, buffers of shared memories, stacks of exceptions,
 * suspending.
 */
import { type Namespace, type Row, run, thrown, wasm } from "./subject.ts";

/** An `address` that counts how often it is converted. */
function counted(value: string): { address: object; count: () => number } {
  let count = 0;
  return { address: { toString: () => (count++, value) }, count: () => count };
}

/** Byte sources, and values that only resemble them. */
const BYTE_SOURCES: readonly (readonly [string, () => unknown])[] = [
  ["the prototype of ArrayBuffer", () => ArrayBuffer.prototype],
  ["the prototype of SharedArrayBuffer", () => SharedArrayBuffer.prototype],
  ["an empty object", () => ({})],
  ["an object that says it is a buffer", () => ({ [Symbol.toStringTag]: "ArrayBuffer", byteLength: 8 })],
  ["an object with the prototype of a buffer", () => Object.create(ArrayBuffer.prototype)],
  ["a function", () => () => {}],
  ["a typed array's prototype", () => Uint8Array.prototype],
];

const BOX = `(module (type $box (struct (field i32))) (type $list (array i32))
  (func (export "box") (result (ref $box)) (struct.new $box (i32.const 1)))
  (func (export "list") (result (ref $list)) (array.new_default $list (i32.const 1))))`;

/** Sloppy code: in strict code an assignment throws anyway. */
const SLOPPY = {
  assign: new Function("object", "object.x = 1"),
  assignIndex: new Function("object", "object[0] = 1"),
  remove: new Function("object", "return delete object.x"),
} as const;

const OBJECT_OPERATIONS: readonly (readonly [string, (object: object) => unknown])[] = [
  ["assign", (object) => SLOPPY.assign(object)],
  ["assign an element", (object) => SLOPPY.assignIndex(object)],
  ["delete", (object) => SLOPPY.remove(object)],
  ["Reflect.set", (object) => Reflect.set(object, "x", 1)],
  ["Reflect.deleteProperty", (object) => Reflect.deleteProperty(object, "x")],
  ["Reflect.preventExtensions", (object) => Reflect.preventExtensions(object)],
  ["Reflect.defineProperty", (object) => Reflect.defineProperty(object, "x", { value: 1 })],
  ["Reflect.setPrototypeOf", (object) => Reflect.setPrototypeOf(object, {})],
  ["Object.preventExtensions", (object) => String(Object.preventExtensions(object) === object)],
  ["Object.seal", (object) => String(Object.seal(object) === object)],
  ["Object.freeze", (object) => String(Object.freeze(object) === object)],
  ["Object.defineProperty", (object) => String(Object.defineProperty(object, "x", { value: 1 }) === object)],
  ["Object.setPrototypeOf", (object) => String(Object.setPrototypeOf(object, null) === object)],
  ["Object.isExtensible", (object) => Object.isExtensible(object)],
  ["Object.isSealed", (object) => Object.isSealed(object)],
  ["Object.isFrozen", (object) => Object.isFrozen(object)],
  ["keys", (object) => [Reflect.ownKeys(object), Object.getPrototypeOf(object), "x" in object]],
  ["read", (object) => String((object as { x?: unknown }).x)],
  ["typeof", (object) => typeof object],
  ["a key of maps", (object) => new WeakMap([[object, 5]]).get(object)],
];

/** Imports of a builtin in a recursive group of so many types. */
function inGroup(types: string): string {
  return `(module (rec ${types}) (import "wasm:js-string" "length" (func (type $f))))`;
}

const LENGTH = "(type $f (func (param externref) (result i32)))";

function describeSuspension(W: Namespace, error: unknown): string {
  return W.SuspendError !== undefined && error instanceof W.SuspendError
    ? `SuspendError ${(error as Error).name} ${error instanceof Error}`
    : thrown(W, () => {
      throw error;
    });
}

const WAITS = `(module (import "m" "wait" (func $wait (result i32))) (import "m" "back" (func $back))
  (func (export "f") (result i32) (call $wait))
  (func (export "g") (call $back)))`;

export const DETAIL_ROWS: readonly Row[] = [
  ["the address of a memory is converted once", (W) => {
    const { address, count } = counted("i32");
    return [thrown(W, () => new W.Memory({ initial: 1, address }).buffer.byteLength), count()];
  }],
  ["the address of a table is converted once", (W) => {
    const { address, count } = counted("i64");
    return [thrown(W, () => new W.Table({ element: "anyfunc", initial: 1n, address }).length), count()];
  }],
  ["an address that changes its mind", (W) => {
    const answers = ["i32", "i64"];
    const address = { toString: () => answers.shift() };
    return thrown(W, () => new W.Memory({ initial: 1, address }).grow(0));
  }],
  ...BYTE_SOURCES.flatMap(([name, make]): Row[] => [
    [`no bytes: ${name}`, (W) => thrown(W, () => new W.Module(make()))],
    [`nothing to validate: ${name}`, (W) => thrown(W, () => W.validate(make()))],
  ]),
  ...["box", "list"].flatMap((kind) =>
    OBJECT_OPERATIONS.map(([name, operate]): Row => [
      `${kind}: ${name}`,
      (W) => {
        const object = run(W, BOX)[kind]();
        return thrown(W, () => operate(object));
      },
    ])
  ),
  ["a builtin whose type is alone in its group", (W) => W.validate(wasm(inGroup(LENGTH)), { builtins: ["js-string"] })],
  ["a builtin whose type is in a larger group", (W) => {
    const bytes = [`${LENGTH} (type $g (func))`, `(type $g (func)) ${LENGTH}`].map((types) => wasm(inGroup(types)));
    return bytes.map((source) => [
      W.validate(source),
      W.validate(source, { builtins: ["js-string"] }),
      thrown(W, () => new W.Module(source, { builtins: ["js-string"] })),
    ]);
  }],
  ["an array of a builtin in a larger group", (W) => {
    const text = `(module (rec (type $a (array (mut i16))) (type (func)))
      (import "wasm:js-string" "fromCharCodeArray" (func (param (ref null $a) i32 i32) (result (ref extern)))))`;
    return [W.validate(wasm(text)), W.validate(wasm(text), { builtins: ["js-string"] })];
  }],
  ["the buffer of a shared memory is frozen", (W) => {
    const memory = new W.Memory({ initial: 1, maximum: 2, shared: true });
    const { buffer } = memory;
    return [Object.isFrozen(buffer), memory.buffer === buffer, buffer.byteLength];
  }],
  ["a shared memory has another buffer after growth", (W) => {
    const memory = new W.Memory({ initial: 1, maximum: 2, shared: true });
    const before = memory.buffer;
    memory.grow(1);
    const after = memory.buffer;
    new Uint8Array(after)[5] = 42;
    return [
      before === after,
      before.byteLength,
      after.byteLength,
      new Uint8Array(before)[5],
      Object.isFrozen(after),
      memory.buffer === after,
    ];
  }],
  ["a shared memory that does not grow keeps its buffer", (W) => {
    const memory = new W.Memory({ initial: 1, maximum: 2, shared: true });
    const before = memory.buffer;
    memory.grow(0);
    return [before === memory.buffer, memory.buffer.byteLength];
  }],
  ["a shared memory that code grows", (W) => {
    const memory = new W.Memory({ initial: 1, maximum: 4, shared: true });
    const { grow } = run(
      W,
      `(module (import "m" "m" (memory 1 4 shared)) (func (export "grow") (result i32) (memory.grow (i32.const 2))))`,
      { m: { m: memory } },
    );
    const before = memory.buffer;
    return [grow(), before.byteLength, memory.buffer.byteLength, memory.buffer === before];
  }],
  ["an exception that was traced takes a stack", (W) => {
    const traced = new W.Exception(new W.Tag({ parameters: [] }), [], { traceStack: true });
    const { enumerable, configurable } = Object.getOwnPropertyDescriptor(traced, "stack") ?? {};
    const before = typeof traced.stack;
    traced.stack = "mine"; // as Emscripten's glue does
    return [before, traced.stack, Object.getOwnPropertyNames(traced), enumerable, configurable];
  }],
  ["an exception that was not traced takes none", (W) => {
    const plain = new W.Exception(new W.Tag({ parameters: [] }), []);
    return [String(plain.stack), Object.getOwnPropertyNames(plain), thrown(W, () => plain.stack = "mine")];
  }],
  ["an exception from code takes a stack", (W) => {
    const tag = new W.Tag({ parameters: [] });
    const { f } = run(W, `(module (import "m" "t" (tag $t)) (func (export "f") (throw $t)))`, { m: { t: tag } });
    try {
      f();
      return "nothing";
    } catch (error) {
      const exception = error as { stack: unknown };
      return [String(exception.stack), thrown(W, () => exception.stack = "mine")];
    }
  }],
  ["link errors are of their class for every address type", (W) => {
    const wide = new W.Memory({ initial: 1n, address: "i64" });
    const narrow = new W.Memory({ initial: 1 });
    const link = (text: string, m: unknown) => thrown(W, () => run(W, text, { m: { m } }));
    return [
      link(`(module (import "m" "m" (memory 1)))`, wide),
      link(`(module (import "m" "m" (memory i64 1)))`, narrow),
      link(`(module (import "m" "m" (memory i64 1)))`, wide),
    ];
  }],
  ["the interface SuspendError", (W) => {
    if (W.SuspendError === undefined) return "absent";
    const error = new W.SuspendError("why");
    return [
      W.SuspendError.name,
      W.SuspendError.length,
      Object.getPrototypeOf(W.SuspendError) === Error,
      error.name,
      error.message,
      error instanceof Error,
      Object.prototype.toString.call(error),
    ];
  }],
  ["suspending without promising", (W) => {
    const { f } = run(W, WAITS, { m: { wait: new W.Suspending(() => Promise.resolve(1)), back: () => {} } });
    try {
      return f();
    } catch (error) {
      return describeSuspension(W, error);
    }
  }],
  ["suspending through a frame of JavaScript", async (W) => {
    const inner = run(W, WAITS, { m: { wait: new W.Suspending(() => Promise.resolve(1)), back: () => {} } });
    const outer = run(W, WAITS, { m: { wait: () => 1, back: () => void inner.f() } });
    try {
      return await W.promising(outer.g)();
    } catch (error) {
      return describeSuspension(W, error);
    }
  }],
];
