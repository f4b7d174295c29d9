/**
 * Rows about modules and instances: bytes, imports in their order, exports, errors of either stage.
 */
import { attributes, describeError, type Namespace, type Row, run, thrown, wasm } from "./subject.ts";

const EMPTY = "(module)";
const ALL = `(module
  (import "m" "f" (func (param i32))) (import "m" "t" (table 1 funcref)) (import "m" "m" (memory 1)) (import "m" "g" (global i32))
  (import "m" "e" (tag (param i32)))
  (export "f" (func 0)) (export "t" (table 0)) (export "m" (memory 0)) (export "g" (global 0)) (export "e" (tag 0)))`;

function imports(W: Namespace) {
  return {
    m: {
      f: () => {},
      t: new W.Table({ element: "anyfunc", initial: 1 }),
      m: new W.Memory({ initial: 1 }),
      g: 5,
      e: new W.Tag({ parameters: ["i32"] }),
    },
  };
}

/** A custom section. */
function custom(name: string, content: string): number[] {
  const bytes = [name.length, ...new TextEncoder().encode(name + content)];
  return [0, bytes.length, ...bytes];
}

const CUSTOM = Uint8Array.from([...wasm(EMPTY), ...custom("a", "one"), ...custom("b", ""), ...custom("a", "two")]);

const NOT_BYTES: readonly unknown[] = [undefined, null, 1, "", {}, [], Symbol("x"), wasm];
const NOT_IMPORTS: readonly unknown[] = [null, 1, "", true, Symbol("x")];

/** A module with one import, and the value that satisfies it. */
const GIVEN: readonly (readonly [kind: string, (W: Namespace) => unknown])[] = [
  ["(func)", () => undefined],
  ["(func)", () => null],
  ["(func)", () => ({})],
  ["(func)", (W) => run(W, `(module (func (export "f")))`).f],
  ["(func)", (W) => run(W, `(module (func (export "f") (param i32)))`).f],
  ["(func)", () => class {}],
  ["(func)", () => Math.max],
  ["(global i32)", () => undefined],
  ["(global i32)", () => null],
  ["(global i32)", () => 1],
  ["(global i32)", () => 1n],
  ["(global i32)", () => "1"],
  ["(global i32)", () => ({ valueOf: () => 1 })],
  ["(global i64)", () => 1],
  ["(global i64)", () => 1n],
  ["(global f32)", () => 1.5],
  ["(global f64)", () => 1n],
  ["(global externref)", () => undefined],
  ["(global externref)", () => null],
  ["(global externref)", () => "text"],
  ["(global (ref extern))", () => undefined],
  ["(global (ref extern))", () => null],
  ["(global anyref)", () => undefined],
  ["(global anyref)", () => null],
  ["(global (ref any))", () => undefined],
  ["(global (ref any))", () => 1.5],
  ["(global (ref any))", () => null],
  ["(global (ref i31))", () => undefined],
  ["(global i31ref)", () => undefined],
  ["(global f32)", () => undefined],
  ["(global funcref)", () => null],
  ["(global funcref)", () => undefined],
  ["(global funcref)", () => () => {}],
  ["(global v128)", () => 1],
  ["(global (mut i32))", () => 1],
  ["(global (mut i32))", (W) => new W.Global({ value: "i32", mutable: true })],
  ["(global (mut i32))", (W) => new W.Global({ value: "i32" })],
  ["(global i32)", (W) => new W.Global({ value: "i32" })],
  ["(global i32)", (W) => new W.Global({ value: "i32", mutable: true })],
  ["(global i32)", (W) => new W.Global({ value: "i64" })],
  ["(global i32)", (W) => Object.create(W.Global.prototype)],
  ["(memory 1)", () => undefined],
  ["(memory 1)", () => ({})],
  ["(memory 1)", (W) => Object.create(W.Memory.prototype)],
  ["(memory 1)", (W) => new W.Memory({ initial: 0 })],
  ["(memory 1)", (W) => new W.Memory({ initial: 1 })],
  ["(memory 1 2)", (W) => new W.Memory({ initial: 1 })],
  ["(memory 1 2)", (W) => new W.Memory({ initial: 1, maximum: 2 })],
  ["(memory 1 2)", (W) => new W.Memory({ initial: 1, maximum: 3 })],
  ["(memory 1 2 shared)", (W) => new W.Memory({ initial: 1, maximum: 2 })],
  ["(memory 1 2 shared)", (W) => new W.Memory({ initial: 1, maximum: 2, shared: true })],
  ["(memory i64 1)", (W) => new W.Memory({ initial: 1 })],
  ["(memory i64 1)", (W) => new W.Memory({ initial: 1n, address: "i64" })],
  ["(table 1 funcref)", () => []],
  ["(table 1 funcref)", (W) => new W.Table({ element: "anyfunc", initial: 0 })],
  ["(table 1 funcref)", (W) => new W.Table({ element: "anyfunc", initial: 1 })],
  ["(table 1 funcref)", (W) => new W.Table({ element: "externref", initial: 1 })],
  ["(table 1 externref)", (W) => new W.Table({ element: "externref", initial: 1 })],
  ["(table i64 1 funcref)", (W) => new W.Table({ element: "anyfunc", initial: 1n, address: "i64" })],
  ["(tag)", () => ({})],
  ["(tag)", (W) => new W.Tag({ parameters: [] })],
  ["(tag)", (W) => new W.Tag({ parameters: ["i32"] })],
  ["(tag (param externref))", (W) => W.JSTag],
  ["(tag (param i32))", (W) => W.JSTag],
];

export const MODULE_ROWS: readonly Row[] = [
  [
    "values other than bytes",
    (W) => NOT_BYTES.map((bytes) => [thrown(W, () => new W.Module(bytes)), thrown(W, () => W.validate(bytes))]),
  ],
  [
    "empty and damaged bytes",
    (W) =>
      [[], [0], [0, 97, 115, 109], [0, 97, 115, 109, 2, 0, 0, 0], [...wasm(EMPTY), 1], [65, 66]].map((bytes) => [
        thrown(W, () => new W.Module(Uint8Array.from(bytes))),
        thrown(W, () => W.validate(Uint8Array.from(bytes))),
      ]),
  ],
  ["text is not compiled", (W) => thrown(W, () => new W.Module(new TextEncoder().encode("(module)")))],
  ["bytes in any view", (W) => {
    const { buffer } = Uint8Array.from([9, 9, ...wasm(EMPTY), 9, 9]);
    return [
      W.validate(new Uint8Array(buffer, 2, 8)),
      W.validate(buffer),
      W.validate(new Uint8Array(buffer, 2, 8).slice().buffer),
      W.validate(new Uint16Array(buffer, 2, 4)),
    ];
  }],
  ["bytes in a DataView", (W) => W.validate(new DataView(wasm(EMPTY).slice().buffer))],
  ["an invalid body", (W) => [
    W.validate(wasm(`(module (func (result i32) (i64.const 0)))`)),
    thrown(W, () => new W.Module(wasm(`(module (func (result i32) (i64.const 0)))`))),
  ]],
  ["imports and exports of a module", (W) => {
    const module = new W.Module(wasm(ALL));
    const [first] = W.Module.exports(module);
    return [
      W.Module.imports(module),
      W.Module.exports(module),
      attributes(first, "name"),
      W.Module.exports(module) !== W.Module.exports(module),
    ];
  }],
  [
    "names with any letters",
    (W) => Object.keys(run(W, `(module (func (export "") (export "é\\00x") (export "0") (export "__proto__")))`)),
  ],
  ["custom sections", (W) => {
    const module = new W.Module(CUSTOM);
    const read = (name: string) =>
      W.Module.customSections(module, name).map((section: ArrayBuffer) => new TextDecoder().decode(section));
    return [
      read("a"),
      read("b"),
      read("c"),
      read("undefined"),
      thrown(W, () => W.Module.customSections(module)),
      thrown(W, () => W.Module.customSections(module, undefined)),
    ];
  }],
  ["the exports object", (W) => {
    const exports = run(W, ALL, imports(W));
    return [
      Object.getPrototypeOf(exports) === null,
      Object.isFrozen(exports),
      Object.isExtensible(exports),
      Object.keys(exports),
      attributes(exports, "f"),
      exports,
      thrown(W, () => {
        "use strict";
        exports.f = 1;
      }),
    ];
  }],
  ["imported objects are exported as they are", (W) => {
    const given = imports(W);
    const exports = run(W, ALL, given);
    return [
      exports.t === given.m.t,
      exports.m === given.m.m,
      exports.e === given.m.e,
      exports.f === given.m.f,
      exports.g.value,
    ];
  }],
  ["exports of two instances", (W) => {
    const text =
      `(module (memory (export "m") 1) (table (export "t") 1 funcref) (global (export "g") (mut i32) (i32.const 0)))`;
    const module = new W.Module(wasm(text));
    const a = new W.Instance(module);
    const b = new W.Instance(module);
    a.exports.g.value = 3;
    return [a.exports === a.exports, a.exports.m === b.exports.m, a.exports.m === a.exports.m, b.exports.g.value];
  }],
  ["one memory under two names", (W) => {
    const { a, b } = run(W, `(module (memory 1) (export "a" (memory 0)) (export "b" (memory 0)))`);
    return a === b;
  }],
  ["values other than an import object", (W) =>
    NOT_IMPORTS.map((given) => [
      thrown(W, () => new W.Instance(new W.Module(wasm(EMPTY)), given)),
      thrown(W, () => new W.Instance(new W.Module(wasm(ALL)), given)),
    ])],
  ["a missing import object", (W) => [
    String(new W.Instance(new W.Module(wasm(EMPTY)), undefined)),
    thrown(W, () => new W.Instance(new W.Module(wasm(ALL)))),
    thrown(W, () => new W.Instance(new W.Module(wasm(ALL)), {})),
    thrown(W, () => new W.Instance(new W.Module(wasm(ALL)), { m: 1 })),
    thrown(W, () => new W.Instance({}, {})),
  ]],
  ["imports are read in order, each once", (W) => {
    const read: string[] = [];
    const given = imports(W).m as Record<string, unknown>;
    const names = new Proxy(given, {
      get(target, name) {
        read.push(String(name));
        return target[String(name)];
      },
    });
    const outer = {
      get m() {
        read.push("module");
        return names;
      },
    };
    run(W, ALL, outer);
    return read;
  }],
  ["the same name twice", (W) => {
    let times = 0;
    const given = {
      m: {
        get f() {
          return times++ === 0 ? () => 10 : () => 20;
        },
      },
    };
    const text = `(module (import "m" "f" (func $a (result i32))) (import "m" "f" (func $b (result i32)))
      (func (export "f") (result i32) (i32.sub (call $a) (call $b))))`;
    return run(W, text, given).f();
  }],
  ["imports that are inherited, or a function's", (W) => {
    const text = `(module (import "m" "f" (func (result i32))) (export "f" (func 0)))`;
    const f = () => 7;
    return [
      run(W, text, Object.create({ m: Object.create({ f }) })).f(),
      run(W, text, { m: Object.assign(() => {}, { f }) }).f(),
    ];
  }],
  ...GIVEN.map(([kind, give], k): Row => [
    `given ${k} for (import ${kind})`,
    (W) => {
      const given = give(W);
      const name = kind.startsWith("(func") || kind.startsWith("(tag") || kind.includes("v128") ? "" : ` (export "x")`;
      return thrown(
        W,
        () =>
          Object.keys(
            run(
              W,
              `(module ${
                kind.replace(" ", `${name} (import "m" "x") `).replace(/^\((func|tag)\)/, `($1 (import "m" "x"))`)
              })`,
              { m: { x: given } },
            ),
          ),
      );
    },
  ]),
  ["a start function that traps or throws", (W) => [
    thrown(W, () => run(W, `(module (func $s unreachable) (start $s))`)),
    thrown(W, () =>
      run(W, `(module (import "m" "s" (func $s)) (start $s))`, {
        m: {
          s: () => {
            throw new SyntaxError("x");
          },
        },
      })),
  ]],
  ["segments out of bounds", (W) => [
    thrown(W, () => run(W, `(module (memory 1) (data (i32.const 65536) "x"))`)),
    thrown(W, () => run(W, `(module (table 1 funcref) (func $f) (elem (i32.const 1) $f))`)),
  ]],
  ["buffers that are detached, shared, or can change their length", async (W) => {
    const log: unknown[] = [];
    for (const source of SOURCES) {
      log.push(thrown(W, () => W.validate(source())), thrown(W, () => new W.Module(source())));
      for (const name of ["compile", "instantiate"]) {
        log.push(await W[name](source()).then(() => "fulfilled", (error: unknown) => describeError(W, error)));
      }
    }
    return log;
  }],
];

const EMPTY_MODULE = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);

function detached<T>(make: (buffer: ArrayBuffer) => T): T {
  const { buffer } = EMPTY_MODULE.slice();
  const made = make(buffer);
  structuredClone(buffer, { transfer: [buffer] });
  return made;
}

function filled<B extends ArrayBuffer | SharedArrayBuffer>(buffer: B): B {
  new Uint8Array(buffer).set(EMPTY_MODULE);
  return buffer;
}

type Longer = new (length: number, options: { maxByteLength: number }) => ArrayBuffer;

const SOURCES: readonly (() => unknown)[] = [
  () => detached((buffer) => buffer),
  () => detached((buffer) => new Uint8Array(buffer)),
  () => filled(new SharedArrayBuffer(8)),
  () => filled(new (SharedArrayBuffer as unknown as Longer)(8, { maxByteLength: 64 })),
  () => new Uint8Array(filled(new SharedArrayBuffer(8))),
  () => new Uint8Array(filled(new (SharedArrayBuffer as unknown as Longer)(8, { maxByteLength: 64 }))),
  () => filled(new (ArrayBuffer as unknown as Longer)(8, { maxByteLength: 64 })),
  () => Object.create(ArrayBuffer.prototype),
];
