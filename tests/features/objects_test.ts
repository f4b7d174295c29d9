/**
 * Structures, arrays, i31 and casts as machine code, against V8's WebAssembly on the same module: every value and
 * target type of generated hierarchies, and the corner cases of layouts.
 */
import assert from "node:assert/strict";
import { type EngineOptions, NewEngine } from "../../engine/mod.ts";
import { textToBinary } from "../../engine/text/parse_module.ts";

type Exports = Record<string, (...args: unknown[]) => unknown>;

const MODES = ["guard", "explicit"] as const;
const CONFIGURATIONS: readonly EngineOptions[] = [
  {},
  { optimizations: { "inline": false, "bounds-facts": false, "store-forward": false } },
  { tier: "baseline" },
];

function outcome(action: () => unknown): string {
  try {
    return String(action());
  } catch (error) {
    return error instanceof RangeError ? "RangeError" : "trap";
  }
}

function ours(text: string, bounds: "guard" | "explicit", options: EngineOptions = {}): Exports {
  const instance = NewEngine({ bounds, verify: true, ...options }).compile(text).instantiate();
  return instance.exports as unknown as Exports;
}

function theirs(text: string): Exports {
  const bytes = textToBinary(text) as Uint8Array<ArrayBuffer>;
  return new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as unknown as Exports;
}

/** Calls every export with every list of arguments on both sides. */
function sameAsV8(text: string, calls: (name: string) => readonly (readonly unknown[])[]): void {
  for (const bounds of MODES) {
    for (const options of CONFIGURATIONS) {
      const expected = theirs(text);
      const found = ours(text, bounds, options);
      for (const name of Object.keys(expected)) {
        for (const args of calls(name)) {
          const [mine, v8] = [found, expected].map((exports) => outcome(() => exports[name](...args)));
          assert.equal(mine, v8, `${bounds} ${name}(${args})`);
        }
      }
    }
  }
}

/** A deterministic generator of random numbers below `n`. */
function random(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/**
 * A module with a random tree of types, a constructor for a value of each kind, and every test and cast from every top
 * type.
 */
function hierarchy(seed: number, count: number, deep: boolean): { text: string; makers: number } {
  const next = random(seed);
  const types: string[] = [];
  const parents: number[] = [];
  for (let k = 0; k < count; k++) {
    const parent = k === 0 ? -1 : deep ? k - 1 : next(k + 1) - 1;
    parents.push(parent);
  }
  const isParent = new Set(parents);
  for (let k = 0; k < count; k++) {
    // Fields accumulate, so that types differ in structure; the recursion group keeps siblings distinct.
    let fields = "";
    for (let at = k; at >= 0; at = parents[at]) fields = `(field i32)${fields}`;
    const open = isParent.has(k) || next(2) === 0;
    const above = parents[k] >= 0 ? `$t${parents[k]}` : "";
    types.push(`(type $t${k} (sub ${open ? "" : "final"} ${above} (struct ${fields})))`);
  }
  const makers = [
    ...types.map((_, k) => `(struct.new_default $t${k})`),
    "(ref.i31 (i32.const -7))",
    "(array.new_default $a (i32.const 3))",
    "(ref.null none)",
    "(any.convert_extern (global.get $host))",
  ];
  const targets = [...types.map((_, k) => `$t${k}`), "$a", "i31", "eq", "struct", "array", "any", "none"];
  const parts = [`(rec ${types.join("\n")})`, "(type $a (array (mut i8)))"];
  parts.push('(import "h" "host" (global $host externref))');
  parts.push(
    `(func $make (param i32) (result anyref) ${
      makers.map((maker, k) => `(if (i32.eq (local.get 0) (i32.const ${k})) (then (return ${maker})))`).join("\n")
    } (unreachable))`,
  );
  targets.forEach((target, k) => {
    for (const nul of ["", "null "]) {
      const type = `(ref ${nul}${target})`;
      const n = nul === "" ? "" : "n";
      parts.push(
        `(func (export "test${k}${n}") (param i32) (result i32) (ref.test ${type} (call $make (local.get 0))))`,
      );
      parts.push(`(func (export "cast${k}${n}") (param i32) (result i32)
        (drop (ref.cast ${type} (call $make (local.get 0)))) (i32.const 1))`);
      parts.push(`(func (export "br${k}${n}") (param i32) (result i32)
        (block $yes (result ${type})
          (drop (br_on_cast $yes anyref ${type} (call $make (local.get 0)))) (return (i32.const 0)))
        (drop) (i32.const 1))`);
      parts.push(`(func (export "fail${k}${n}") (param i32) (result i32)
        (block $no (result anyref)
          (drop (br_on_cast_fail $no anyref ${type} (call $make (local.get 0)))) (return (i32.const 1)))
        (drop) (i32.const 0))`);
    }
  });
  // From a type of the hierarchy, where fewer checks are needed.
  for (let k = 0; k < count; k++) {
    const parent = parents[k];
    if (parent < 0) continue;
    parts.push(`(func (export "down${k}") (param i32) (result i32)
      (ref.test (ref $t${k}) (ref.cast (ref null $t${parent}) (call $make (local.get 0)))))`);
    parts.push(`(func (export "again${k}") (param i32) (result i32)
      (drop (ref.cast (ref null $t${k}) (ref.cast (ref null $t${parent}) (call $make (local.get 0))))) (i32.const 1))`);
  }
  return { text: `(module ${parts.join("\n")})`, makers: makers.length };
}

for (const [seed, count, deep] of [[1, 6, false], [2, 12, false], [3, 14, true]] as const) {
  Deno.test(`tests and casts agree with V8: ${count} types${deep ? " in a chain" : ""}`, () => {
    const { text, makers } = hierarchy(seed, count, deep);
    const host = { h: { host: "a host value" as never } };
    const bytes = textToBinary(text) as Uint8Array<ArrayBuffer>;
    const expected = new WebAssembly.Instance(new WebAssembly.Module(bytes), host).exports as unknown as Exports;
    for (const bounds of MODES) {
      const module = NewEngine({ bounds, verify: true }).compile(text);
      const found = module.instantiate({}, host).exports as unknown as Exports;
      for (const name of Object.keys(expected)) {
        for (let k = 0; k < makers; k++) {
          const [mine, v8] = [found, expected].map((exports) => outcome(() => exports[name](k)));
          assert.equal(mine, v8, `${bounds} ${name}(${k})`);
        }
      }
    }
  });
}

Deno.test("fields of every type keep their bits, including packed fields and fields beyond the first page", () => {
  const kinds = ["i8", "i16", "i32", "i64", "f32", "f64", "v128", "anyref"];
  const fields = Array.from({ length: 900 }, (_, k) => `(field $f${k} (mut ${kinds[k % kinds.length]}))`).join(" ");
  const gets: string[] = [];
  for (const k of [0, 1, 2, 3, 4, 5, 7, 8, 9, 600, 601, 602, 603, 604, 605, 888, 889, 890, 895]) {
    const kind = kinds[k % kinds.length];
    const param = kind === "i8" || kind === "i16" ? "i32" : kind === "anyref" ? "i32" : kind;
    const value = kind === "anyref" ? "(ref.i31 (local.get 0))" : "(local.get 0)";
    for (const suffix of kind === "i8" || kind === "i16" ? ["_s", "_u"] : [""]) {
      const read = `(struct.get${suffix} $s $f${k} (local.get 1))`;
      gets.push(`(func (export "${param}_${k}${suffix}") (param ${param}) (result ${param})
        (local (ref null $s)) (local.set 1 (struct.new_default $s))
        (struct.set $s $f${k} (local.get 1) ${value})
        (call $clobber)
        ${kind === "anyref" ? `(i31.get_s (ref.cast (ref i31) ${read}))` : read})`);
    }
    gets.push(
      `(func (export "null_${k}") (param (ref null $s)) (struct.set $s $f${k} (local.get 0) ${
        kind === "anyref" ? "(ref.null any)" : kind === "v128" ? "(v128.const i64x2 1 2)" : `(${param}.const 1)`
      }))`,
    );
  }
  const text = `(module (type $s (struct ${fields})) (func $clobber (drop (struct.new_default $s))) ${
    gets.join("\n")
  })`;
  const values: Record<string, readonly unknown[]> = {
    i32: [0, -1, 127, 128, 255, 256, 32767, 32768, 65535, 0x7fffffff, -0x80000000],
    i64: [0n, -1n, 2n ** 63n - 1n],
    f32: [0, -0, 1.5, Infinity, NaN],
    f64: [0, -0, 1.1, -Infinity, NaN],
    null: [null],
  };
  sameAsV8(text, (name) => values[name.split("_")[0]].map((value) => [value]));
});

Deno.test("arrays: bounds, filling, copying, segments, invalid lengths", () => {
  const parts: string[] = ['(data $d "abcdefghijklmnopqrstuvwxyz")'];
  const calls: (readonly unknown[])[] = [];
  for (const i of [0, 1, 4, 5, 6, -1]) for (const n of [0, 1, 3, 5, 6, 100, -1]) calls.push([i, n]);
  for (
    const [type, from, to] of [["i8", "", ""], ["i16", "", ""], ["i32", "", ""], [
      "i64",
      "i64.extend_i32_s",
      "i32.wrap_i64",
    ], ["f64", "f64.convert_i32_s", "i32.trunc_sat_f64_s"]] as const
  ) {
    const packed = type === "i8" || type === "i16";
    const value = (x: string) => from === "" ? x : `(${from} ${x})`;
    const read = (a: string, i: string) => {
      const get = `(array.get${packed ? "_u" : ""} $${type} ${a} ${i})`;
      return to === "" ? get : `(${to} ${get})`;
    };
    parts.push(`(type $${type} (array (mut ${type})))`);
    parts.push(`(func $sum_${type} (param $a (ref $${type})) (result i32) (local $i i32) (local $s i32)
      (block $end (loop $l
        (br_if $end (i32.ge_u (local.get $i) (array.len (local.get $a))))
        (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 31)) ${read("(local.get $a)", "(local.get $i)")}))
        (local.set $i (i32.add (local.get $i) (i32.const 1))) (br $l)))
      (local.get $s))`);
    const body = (code: string) =>
      `(param $i i32) (param $n i32) (result i32) (local $a (ref $${type}))
       (local.set $a (array.new_fixed $${type} 5 ${[1, 2, 3, 4, 5].map((x) => value(`(i32.const ${x})`)).join(" ")}))
       ${code} (call $sum_${type} (local.get $a))`;
    parts.push(`(func (export "get_${type}") ${body(`(return ${read("(local.get $a)", "(local.get $i)")})`)})`);
    parts.push(
      `(func (export "set_${type}") ${
        body(`(array.set $${type} (local.get $a) (local.get $i) ${value("(local.get $n)")})`)
      })`,
    );
    parts.push(
      `(func (export "fill_${type}") ${
        body(`(array.fill $${type} (local.get $a) (local.get $i) ${value("(i32.const 9)")} (local.get $n))`)
      })`,
    );
    parts.push(
      `(func (export "copy_${type}") ${
        body(`(array.copy $${type} $${type} (local.get $a) (local.get $i) (local.get $a) (i32.const 1) (local.get $n))`)
      })`,
    );
    parts.push(
      `(func (export "new_${type}") ${
        body(
          `(if (i32.lt_u (local.get $n) (i32.const 200)) (then (local.set $a (array.new $${type} ${
            value("(i32.const -3)")
          } (local.get $n)))))`,
        )
      })`,
    );
    parts.push(
      `(func (export "data_${type}") ${
        body(`(array.init_data $${type} $d (local.get $a) (local.get $i) (i32.const 2) (local.get $n))`)
      })`,
    );
    parts.push(
      `(func (export "from_${type}") ${
        body(`(local.set $a (array.new_data $${type} $d (local.get $i) (local.get $n)))`)
      })`,
    );
  }
  sameAsV8(`(module ${parts.join("\n")})`, () => calls);
  const huge = ours(
    `(module (type $a (array (mut v128))) (func (export "make") (param i32) (result i32)
      (array.len (array.new_default $a (local.get 0)))))`,
    "guard",
  );
  assert.equal(huge["make"](1000), 1000);
  for (const n of [-1, 0x7fffffff, 0x10000000]) assert.throws(() => huge["make"](n), /allocation size too large/);
});

Deno.test("a function of a subtype may be called where its supertype is expected", () => {
  const text = `(module
    (type $f (sub (func (param i32) (result anyref))))
    (type $g (sub $f (func (param i32) (result eqref))))
    (type $h (sub final $g (func (param i32) (result (ref i31)))))
    (table $t 4 funcref) (table $w 4 funcref)
    (elem (table $t) (i32.const 0) func $a $b $c) (elem (table $w) (i32.const 0) func $a $b $c)
    (func $a (type $f) (ref.null any)) (func $b (type $g) (ref.i31 (local.get 0)))
    (func $c (type $h) (ref.i31 (i32.add (local.get 0) (i32.const 1))))
    ${
    ["f", "g", "h"].map((type) =>
      `(func (export "${type}") (param i32) (result i32)
        (ref.is_null (call_indirect $t (type $${type}) (i32.const 1) (local.get 0))))
       (func (export "w${type}") (param i32) (result i32)
        (ref.is_null (call_indirect $w (type $${type}) (i32.const 1) (local.get 0))))
       (func (export "c${type}") (result i32)
        (ref.is_null (call_indirect $t (type $${type}) (i32.const 1) (i32.const 2))))`
    ).join("\n")
  }
    (func (export "change") (table.set $w (i32.const 3) (ref.func $c))))`;
  sameAsV8(text, (name) => name.length > 1 && name.startsWith("c") ? [[]] : [[0], [1], [2], [3], [4]]);
});
