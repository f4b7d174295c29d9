/**
 * Rows about memories, tables, globals, tags and exceptions.
 */
import { type Namespace, type Row, run, thrown } from "./subject.ts";

/** Descriptors of sizes, good and bad. */
const SIZES: readonly Record<string, unknown>[] = [
  {},
  { initial: 0 },
  { initial: 1.9 },
  { initial: "1" },
  { initial: -1 },
  { initial: NaN },
  { initial: Infinity },
  { initial: 2 ** 32 },
  { initial: 1n },
  { initial: null },
  { initial: { valueOf: () => 2 } },
  { initial: Symbol("x") },
  { initial: undefined },
  { initial: 1, maximum: 1 },
  { initial: 2, maximum: 1 },
  { initial: 1, maximum: 2 ** 32 },
  { initial: 1, maximum: undefined },
  { initial: 1, address: "i32" },
  { initial: 1n, address: "i64" },
  { initial: 1, address: "i64" },
  { initial: -1n, address: "i64" },
  { initial: 1n, maximum: 2n, address: "i64" },
  { initial: 1, address: "i16" },
  { initial: 1, address: undefined },
];

function memory(W: Namespace, of: object = { initial: 1, maximum: 4 }) {
  return new W.Memory(of);
}

const GROWER =
  `(module (memory (export "m") 1 10) (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))`;
const TYPES = [
  "i32",
  "i64",
  "f32",
  "f64",
  "v128",
  "externref",
  "anyfunc",
  "funcref",
  "anyref",
  "i31ref",
  "void",
  "",
  undefined,
];
const VALUES: readonly unknown[] = [
  undefined,
  null,
  0,
  -0,
  1.7,
  -1,
  2 ** 31,
  2 ** 53,
  NaN,
  1n,
  -1n,
  2n ** 64n + 5n,
  "7",
  "x",
  true,
  {},
  Symbol("x"),
];

export const OBJECT_ROWS: readonly Row[] = [
  ...SIZES.map((of, k): Row => [`memory ${k}`, (W) => thrown(W, () => memory(W, of).buffer.byteLength)]),
  ...SIZES.map((
    of,
    k,
  ): Row => [`table ${k}`, (W) => thrown(W, () => new W.Table({ element: "anyfunc", ...of }).length)]),
  ["memories of too many pages", (W) => [65537, 2 ** 31].map((initial) => thrown(W, () => memory(W, { initial })))],
  ["shared memories", (W) => {
    const { buffer } = memory(W, { initial: 1, maximum: 2, shared: true });
    return [
      thrown(W, () => memory(W, { initial: 1, shared: true })),
      String(buffer),
      buffer.byteLength,
      buffer instanceof SharedArrayBuffer,
      memory(W, { initial: 1, maximum: 2, shared: 0 }).buffer instanceof ArrayBuffer,
    ];
  }],
  ["the buffer is the same until the memory grows", (W) => {
    const m = memory(W);
    const { buffer } = m;
    const same = m.buffer === buffer;
    new Uint8Array(buffer)[5] = 9;
    const view = new Uint8Array(buffer);
    const old = m.grow(2);
    return [
      same,
      old,
      m.buffer === buffer,
      buffer.byteLength,
      view.length,
      view[5],
      m.buffer.byteLength,
      new Uint8Array(m.buffer)[5],
    ];
  }],
  ["growing by nothing makes a new buffer", (W) => {
    const m = memory(W);
    const { buffer } = m;
    return [m.grow(0), m.buffer === buffer, buffer.byteLength, m.buffer.byteLength];
  }],
  ["a buffer that a program transfers", (W) => {
    const m = memory(W);
    new Uint8Array(m.buffer)[1] = 5;
    const moved = m.buffer.transfer();
    return [moved.byteLength, m.buffer.byteLength, m.grow(1), m.buffer.byteLength, new Uint8Array(m.buffer)[1]];
  }],
  ["the buffer of a shared memory that grows", (W) => {
    const m = memory(W, { initial: 1, maximum: 3, shared: true });
    const { buffer } = m;
    return [m.grow(1), m.buffer === buffer, buffer.byteLength, m.buffer.byteLength, Object.isFrozen(buffer)];
  }],
  ["a buffer of nothing grows", (W) => {
    const m = memory(W, { initial: 0 });
    const { buffer } = m;
    return [m.grow(0), m.buffer === buffer, m.grow(1), m.buffer.byteLength];
  }],
  ["memory.grow detaches the buffer", (W) => {
    const { m, grow } = run(W, GROWER);
    const { buffer } = m;
    const view = new Uint8Array(buffer);
    const first = [grow(1), buffer.byteLength, view.length, m.buffer.byteLength];
    const second = m.buffer;
    return [...first, grow(0), second.byteLength, grow(100), m.buffer.byteLength];
  }],
  ["memory.grow that fails leaves the buffer", (W) => {
    const { m, grow } = run(W, GROWER);
    const { buffer } = m;
    return [grow(100), m.buffer === buffer, buffer.byteLength, thrown(W, () => m.grow(10)), m.buffer === buffer];
  }],
  [
    "growing too far",
    (W) => [4, 2 ** 32 - 1, 2 ** 32, -1, "1", 1.5, 1n, undefined, {}].map((by) => thrown(W, () => memory(W).grow(by))),
  ],
  ["growing wide memories", (W) => {
    const m = memory(W, { initial: 1n, maximum: 3n, address: "i64" });
    return [
      thrown(W, () => m.grow(1)),
      m.grow(1n),
      m.grow(0n),
      m.buffer.byteLength,
      thrown(W, () => m.grow(2n)),
      thrown(W, () => m.grow(-1n)),
    ];
  }],
  ["contents of a memory are visible on both sides", (W) => {
    const m = memory(W);
    const { load, store } = run(
      W,
      `(module (import "m" "m" (memory 1)) (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
      (func (export "store") (param i32 i32) (i32.store (local.get 0) (local.get 1))))`,
      { m: { m } },
    );
    const view = new Int32Array(m.buffer);
    view[3] = 77;
    store(20, -5);
    m.grow(1);
    store(65536, 6);
    return [load(12), view.length, new Int32Array(m.buffer)[5], new Int32Array(m.buffer)[16384]];
  }],

  ["tables of kinds", (W) => TYPES.map((element) => thrown(W, () => new W.Table({ element, initial: 1 }).get(0)))],
  ["tables with a first value", (W) => {
    const { f } = run(W, `(module (func (export "f")))`);
    const t = new W.Table({ element: "anyfunc", initial: 2 }, f);
    return [
      t.get(0) === f,
      t.get(1) === f,
      new W.Table({ element: "anyfunc", initial: 1 }, null).get(0),
      new W.Table({ element: "anyfunc", initial: 1 }, undefined).get(0),
      new W.Table({ element: "externref", initial: 1 }, "x").get(0),
      new W.Table({ element: "externref", initial: 1 }, undefined).get(0),
      new W.Table({ element: "externref", initial: 1 }, null).get(0),
      thrown(W, () => new W.Table({ element: "anyfunc", initial: 1 }, () => {})),
    ];
  }],
  [
    "an empty table with a first value of another type",
    (W) => thrown(W, () => new W.Table({ element: "anyfunc", initial: 0 }, {})),
  ],
  ["setting and getting elements", (W) => {
    const { f } = run(W, `(module (func (export "f")))`);
    const t = new W.Table({ element: "anyfunc", initial: 2 });
    return [
      t.set(0, f),
      t.get(0) === f,
      t.set(0),
      t.get(0),
      thrown(W, () => t.set(1, undefined)),
      thrown(W, () => t.set(2, f)),
      thrown(W, () => t.set(-1, f)),
      thrown(W, () => t.get(2)),
      thrown(W, () => t.get("0")),
      thrown(W, () => t.get(NaN)),
      thrown(W, () => t.set()),
      thrown(W, () => t.get()),
      thrown(W, () => t.set(0, Math.max)),
      thrown(W, () => t.set({ valueOf: () => 1 }, null)),
    ];
  }],
  ["elements that are any value", (W) => {
    const t = new W.Table({ element: "externref", initial: VALUES.length });
    VALUES.forEach((value, k) => t.set(k, value));
    return VALUES.every((value, k) => Object.is(t.get(k), value));
  }],
  ["a missing element of externref", (W) => {
    const t = new W.Table({ element: "externref", initial: 1 }, 5);
    t.set(0);
    t.grow(1);
    return [t.get(0), t.get(1)];
  }],
  ["growing tables", (W) => {
    const { f } = run(W, `(module (func (export "f")))`);
    const t = new W.Table({ element: "anyfunc", initial: 1, maximum: 4 });
    return [
      t.grow(1),
      t.grow(1, f),
      t.length,
      t.get(1),
      t.get(2) === f,
      t.grow(0),
      thrown(W, () => t.grow(2)),
      thrown(W, () => t.grow(1, {})),
      thrown(W, () => t.grow(-1)),
      thrown(W, () => t.grow()),
      thrown(W, () => t.grow(2 ** 32)),
      t.length,
    ];
  }],
  ["wide tables", (W) => {
    const t = new W.Table({ element: "externref", initial: 1n, maximum: 3n, address: "i64" }, "a");
    return [
      t.length,
      t.get(0n),
      thrown(W, () => t.get(0)),
      t.grow(1n, "b"),
      t.get(1n),
      thrown(W, () => t.get(2n)),
      thrown(W, () => t.set(-1n)),
      thrown(W, () => t.grow(9n)),
    ];
  }],
  ["tables are shared with code", (W) => {
    const t = new W.Table({ element: "anyfunc", initial: 2 });
    const text =
      `(module (import "m" "t" (table 2 funcref)) (type $f (func (result i32))) (func $x (export "x") (result i32) (i32.const 42))
      (elem (i32.const 1) $x) (func (export "call") (param i32) (result i32) (call_indirect (type $f) (local.get 0))))`;
    const { call, x } = run(W, text, { m: { t } });
    const before = thrown(W, () => call(0));
    t.set(0, t.get(1));
    return [before, call(0), t.get(1) === x, thrown(W, () => call(2))];
  }],

  ...TYPES.map((
    value,
  ): Row => [
    `globals of ${String(value)}`,
    (W) => VALUES.map((given) => thrown(W, () => new W.Global({ value, mutable: true }, given).value)),
  ]),
  ...TYPES.map((value): Row => [`setting globals of ${String(value)}`, (W) =>
    VALUES.map((given) =>
      thrown(W, () => {
        const global = new W.Global({ value, mutable: true });
        global.value = given;
        return global.value;
      })
    )]
  ),
  ["globals without a value", (W) => TYPES.map((value) => thrown(W, () => new W.Global({ value }).value))],
  ["immutable globals", (W) => {
    const g = new W.Global({ value: "i32" }, 5);
    return [
      g.value,
      g.valueOf(),
      g + 1,
      thrown(W, () => {
        g.value = 1;
      }),
      thrown(W, () => {
        g.value = undefined;
      }),
    ];
  }],
  ["setters without an argument", (W) => {
    const { set } = Object.getOwnPropertyDescriptor(W.Global.prototype, "value")!;
    return thrown(W, () => Reflect.apply(set!, new W.Global({ value: "i32", mutable: true }), []));
  }],
  ["the meaning of mutable", (W) =>
    [1, 0, "", "x", null].map((mutable) =>
      thrown(W, () => {
        new W.Global({ value: "i32", mutable }).value = 1;
      })
    )],
  ["globals are shared with code", (W) => {
    const g = new W.Global({ value: "i64", mutable: true }, 5n);
    const { inc, own } = run(
      W,
      `(module (import "m" "g" (global $g (mut i64))) (global (export "own") v128 (v128.const i64x2 1 2))
      (func (export "inc") (global.set $g (i64.add (global.get $g) (i64.const 1)))))`,
      { m: { g } },
    );
    inc();
    g.value = g.value * 2n;
    inc();
    return [g.value, thrown(W, () => own.value), String(own)];
  }],

  ["tags", (W) => [
    thrown(W, () => new W.Tag({})),
    thrown(W, () => new W.Tag({ parameters: "i32" })),
    thrown(W, () => new W.Tag({ parameters: ["i33"] })),
    thrown(W, () => new W.Tag({ parameters: 1 })),
    String(new W.Tag({ parameters: ["i32", "externref"] })),
  ]],
  ["a tag with an iterable of parameters", (W) => thrown(W, () => new W.Tag({ parameters: new Set(["i32"]) }))],
  [
    "a payload with a length that is not iterable",
    (W) => thrown(W, () => new W.Exception(new W.Tag({ parameters: ["i32"] }), { length: 1, 0: 1 })),
  ],
  ["exceptions", (W) => {
    const tag = new W.Tag({ parameters: ["i32", "i64", "f32", "externref"] });
    const other = new W.Tag({ parameters: ["i32"] });
    const payload = { x: 1 };
    const e = new W.Exception(tag, [2 ** 32 + 3, 4n, 1.1, payload]);
    return [
      String(Object.prototype.toString.call(e)),
      e instanceof Error,
      e.is(tag),
      e.is(other),
      thrown(W, () => e.is({})),
      [0, 1, 2].map((k) => e.getArg(tag, k)),
      e.getArg(tag, 3) === payload,
      thrown(W, () => e.getArg(tag, 4)),
      thrown(W, () => e.getArg(other, 0)),
      thrown(W, () => e.getArg(tag)),
      thrown(W, () => e.getArg(tag, "1")),
      thrown(W, () => e.getArg({}, 0)),
      e.stack,
      typeof new W.Exception(tag, [1, 1n, 1, 1], { traceStack: true }).stack,
      Object.getOwnPropertyNames(e),
    ];
  }],
  ["exceptions that cannot be", (W) => {
    const tag = new W.Tag({ parameters: ["i32", "i64"] });
    return [
      thrown(W, () => new W.Exception(tag)),
      thrown(W, () => new W.Exception(tag, [1])),
      thrown(W, () => new W.Exception(tag, [1, 2])),
      thrown(W, () => new W.Exception(tag, [1, 2n, 3])),
      thrown(W, () => new W.Exception(tag, [Symbol("x"), 1n])),
      thrown(W, () => new W.Exception({}, [])),
      thrown(W, () => new W.Exception(W.JSTag, [1])),
      thrown(W, () => new W.Exception(tag, [1, 1n], 5)),
    ];
  }],
];
