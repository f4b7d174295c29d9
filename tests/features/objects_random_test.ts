/**
 * Random programs over linked structures and arrays, on waft and on V8: fields are read through aliases of several
 * types, objects are created in loops, with a collection at every few allocations. A failure names the program's seed.
 * `OBJECT_PROGRAMS` sets the number of programs for longer runs.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { NewEngine } from "../../engine/mod.ts";
import { textToBinary } from "../../engine/text/parse_module.ts";

const COUNT = Number(process.env["OBJECT_PROGRAMS"] ?? 40);

const TYPES = `
  (rec
    (type $n (sub (struct (field $i (mut i32)) (field $p (mut (ref null $n))) (field $c i32))))
    (type $m (sub $n (struct (field $i (mut i32)) (field $p (mut (ref null $n))) (field $c i32)
      (field $d (mut f64)) (field $q (mut anyref)))))
    (type $l (sub final $m (struct (field $i (mut i32)) (field $p (mut (ref null $n))) (field $c i32)
      (field $d (mut f64)) (field $q (mut anyref)) (field $b (mut i8)) (field $k (mut (ref null $a))))))
    (type $a (array (mut i32)))
    (type $r (array (mut (ref null $n)))))`;

/** Conversions to non-null references, and a hash of the reachable objects. */
const HELPERS = `
  (func $n! (param (ref null $n)) (result (ref $n))
    (if (result (ref $n)) (ref.is_null (local.get 0))
      (then (struct.new $n (i32.const 3) (ref.null $n) (i32.const 5)))
      (else (ref.as_non_null (local.get 0)))))
  (func $m! (param (ref null $m)) (result (ref $m))
    (if (result (ref $m)) (ref.is_null (local.get 0))
      (then (struct.new $m (i32.const 4) (ref.null $n) (i32.const 6) (f64.const 1.5) (ref.null any)))
      (else (ref.as_non_null (local.get 0)))))
  (func $l! (param (ref null $l)) (result (ref $l))
    (block $has (result (ref $l)) (br_on_non_null $has (local.get 0)) (struct.new_default $l)))
  (func $a! (param (ref null $a)) (result (ref $a))
    (block $has (result (ref $a)) (br_on_non_null $has (local.get 0)) (array.new $a (i32.const 9) (i32.const 8))))
  (func $r! (param (ref null $r)) (result (ref $r))
    (block $has (result (ref $r)) (br_on_non_null $has (local.get 0)) (array.new_default $r (i32.const 8))))
  (func $sum (param $a (ref null $a)) (result i32) (local $k i32) (local $s i32)
    (if (ref.is_null (local.get $a)) (then (return (i32.const 1))))
    (loop $l
      (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 7)) (array.get $a (local.get $a) (local.get $k))))
      (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (array.len (local.get $a)))))
    (local.get $s))
  (func $hash (param $x anyref) (param $deep i32) (result i32) (local $h i32) (local $n (ref null $n)) (local $k i32)
    (if (i32.eqz (local.get $deep)) (then (return (i32.const 11))))
    (local.set $deep (i32.sub (local.get $deep) (i32.const 1)))
    (if (ref.is_null (local.get $x)) (then (return (i32.const 13))))
    (if (ref.test (ref i31) (local.get $x)) (then (return (i31.get_s (ref.cast (ref i31) (local.get $x))))))
    (if (ref.test (ref $a) (local.get $x)) (then (return (call $sum (ref.cast (ref $a) (local.get $x))))))
    (drop (block $isNot (result anyref)
      (local.set $n (br_on_cast_fail $isNot anyref (ref $n) (local.get $x)))
      (local.set $h
        (i32.xor (struct.get $n $i (local.get $n)) (i32.mul (struct.get $n $c (local.get $n)) (i32.const 17))))
      (local.set $h (i32.add
        (i32.mul (local.get $h) (i32.const 31))
        (call $hash (struct.get $n $p (local.get $n)) (local.get $deep))))
      (if (ref.test (ref $m) (local.get $n)) (then
        (local.set $h (i32.add (i32.mul (local.get $h) (i32.const 5))
          (i32.trunc_sat_f64_s (struct.get $m $d (ref.cast (ref $m) (local.get $n))))))
        (local.set $h (i32.xor (local.get $h)
          (call $hash (struct.get $m $q (ref.cast (ref $m) (local.get $n))) (local.get $deep))))))
      (if (ref.test (ref $l) (local.get $n)) (then
        (local.set $h (i32.xor (local.get $h) (struct.get_s $l $b (ref.cast (ref $l) (local.get $n)))))
        (local.set $h (i32.add (local.get $h) (call $sum (struct.get $l $k (ref.cast (ref $l) (local.get $n))))))))
      (return (local.get $h))))
    (i32.const 19))`;

type Kind = "i32" | "f64" | "n" | "m" | "l" | "a" | "r" | "any";

const LOCALS: Readonly<Record<Kind, number>> = { i32: 4, f64: 1, n: 3, m: 2, l: 2, a: 2, r: 2, any: 2 };

function typeOf(kind: Kind): string {
  return kind === "i32" || kind === "f64" ? kind : kind === "any" ? "anyref" : `(ref null $${kind})`;
}

class ProgramWriter {
  #state: number;
  #loops = 0;

  constructor(seed: number) {
    this.#state = seed * 2654435761 >>> 0;
  }

  #below(n: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * n);
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#below(items.length)];
  }

  #local(kind: Kind): string {
    return `$${kind}${this.#below(LOCALS[kind])}`;
  }

  /** An object of `kind`, nearly always non-null. */
  #object(kind: "n" | "m" | "l" | "a" | "r", depth: number): string {
    const value = this.#value(kind, depth - 1);
    return this.#below(60) === 0 ? value : `(call $${kind}! ${value})`;
  }

  #value(kind: Kind, depth: number): string {
    if (depth <= 0 || this.#below(4) === 0) return `(local.get ${this.#local(kind)})`;
    const d = depth - 1;
    const index = () => `(i32.and ${this.#value("i32", d)} (i32.const ${this.#below(30) === 0 ? 15 : 7}))`;
    switch (kind) {
      case "i32":
        return this.#pick([
          () => `(i32.const ${this.#below(200) - 100})`,
          () =>
            `(i32.${this.#pick(["add", "sub", "xor", "mul", "and"])} ${this.#value("i32", d)} ${
              this.#value("i32", d)
            })`,
          () => `(i32.lt_s ${this.#value("i32", d)} ${this.#value("i32", d)})`,
          () => `(struct.get $n $i ${this.#object(this.#pick(["n", "m", "l"]), d)})`,
          () => `(struct.get $m $i ${this.#object("m", d)})`,
          () => `(struct.get $n $c ${this.#object("n", d)})`,
          () => `(struct.get_${this.#pick(["s", "u"])} $l $b ${this.#object("l", d)})`,
          () => `(array.get $a ${this.#object("a", d)} ${index()})`,
          () => `(array.len ${this.#object(this.#pick(["a", "r"]), d)})`,
          () => `(ref.is_null ${this.#value(this.#pick(["n", "m", "l", "any"]), d)})`,
          () =>
            `(ref.test (ref ${this.#pick(["$n", "$m", "$l", "$a", "i31", "eq", "struct"])}) ${this.#value("any", d)})`,
          () => `(ref.test (ref ${this.#pick(["", "null "])}${this.#pick(["$m", "$l"])}) ${this.#value("n", d)})`,
          () => `(ref.eq ${this.#value(this.#pick(["n", "m"]), d)} ${this.#value("n", d)})`,
        ])();
      case "f64":
        return this.#pick([
          () => `(struct.get $m $d ${this.#object(this.#pick(["m", "l"]), d)})`,
          () => `(f64.add ${this.#value("f64", d)} (f64.const 0.5))`,
          () => `(f64.convert_i32_s ${this.#value("i32", d)})`,
        ])();
      case "n":
        return this.#pick([
          () => this.#value("m", d),
          () => `(struct.get $n $p ${this.#object(this.#pick(["n", "m", "l"]), d)})`,
          () => `(struct.new $n ${this.#value("i32", d)} ${this.#value("n", d)} ${this.#value("i32", d)})`,
          () => `(array.get $r ${this.#object("r", d)} ${index()})`,
          () =>
            `(select (result (ref null $n)) ${this.#value("n", d)} ${this.#value("l", d)} ${this.#value("i32", d)})`,
          () => "(ref.null $n)",
        ])();
      case "m":
        return this.#pick([
          () => this.#value("l", d),
          () =>
            `(struct.new $m ${this.#value("i32", d)} ${this.#value("n", d)} ${this.#value("i32", d)} ${
              this.#value("f64", d)
            } ${this.#value("any", d)})`,
          () => this.#narrow("m", "n", d),
          () => this.#narrow("m", "any", d),
        ])();
      case "l":
        return this.#pick([
          () => "(struct.new_default $l)",
          () =>
            `(struct.new $l ${this.#value("i32", d)} ${this.#value("n", d)} ${this.#value("i32", d)} ${
              this.#value("f64", d)
            } ${this.#value("any", d)} ${this.#value("i32", d)} ${this.#value("a", d)})`,
          () => this.#narrow("l", this.#pick(["n", "m", "any"]), d),
        ])();
      case "a":
        return this.#pick([
          () => `(array.new $a ${this.#value("i32", d)} (i32.const ${8 + this.#below(40)}))`,
          () => `(array.new_fixed $a 8 ${Array.from({ length: 8 }, () => this.#value("i32", 1)).join(" ")})`,
          () => `(struct.get $l $k ${this.#object("l", d)})`,
          () => this.#narrow("a", "any", d),
        ])();
      case "r":
        return this.#pick([
          () => `(array.new $r ${this.#value("n", d)} (i32.const ${8 + this.#below(8)}))`,
          () => "(array.new_default $r (i32.const 8))",
        ])();
      case "any":
        return this.#pick([
          () => this.#value(this.#pick(["n", "m", "l", "a"]), d),
          () => `(ref.i31 ${this.#value("i32", d)})`,
          () => `(struct.get $m $q ${this.#object("m", d)})`,
        ])();
    }
  }

  /** Narrows a value of `from` to `to`: null if it does not match, rarely a trap. */
  #narrow(to: Kind, from: Kind, depth: number): string {
    const value = this.#value(from, depth);
    if (this.#below(40) === 0) return `(ref.cast (ref null $${to}) ${value})`;
    const label = `$cast${this.#loops++}`;
    return `(block ${label} (result (ref null $${to}))
      (drop (br_on_cast ${label} ${typeOf(from)} (ref ${
      this.#pick(["", "null "])
    }$${to}) ${value})) (ref.null $${to}))`;
  }

  #statement(depth: number): string {
    const index = () => `(i32.and ${this.#value("i32", 1)} (i32.const 7))`;
    const structures = ["n", "m", "l"] as const;
    return this.#pick([
      () => {
        const kind = this.#pick(Object.keys(LOCALS) as Kind[]);
        return `(local.set ${this.#local(kind)} ${this.#value(kind, 3)})`;
      },
      () => `(struct.set $n $i ${this.#object(this.#pick(structures), 2)} ${this.#value("i32", 2)})`,
      () => `(struct.set $m $i ${this.#object(this.#pick(["m", "l"]), 2)} ${this.#value("i32", 2)})`,
      () => `(struct.set $n $p ${this.#object(this.#pick(structures), 2)} ${this.#value(this.#pick(structures), 2)})`,
      () => `(struct.set $m $d ${this.#object("m", 2)} ${this.#value("f64", 2)})`,
      () => `(struct.set $m $q ${this.#object(this.#pick(["m", "l"]), 2)} ${this.#value("any", 2)})`,
      () => `(struct.set $l $b ${this.#object("l", 2)} ${this.#value("i32", 2)})`,
      () => `(struct.set $l $k ${this.#object("l", 2)} ${this.#value("a", 2)})`,
      () => `(array.set $a ${this.#object("a", 2)} ${index()} ${this.#value("i32", 2)})`,
      () => `(array.set $r ${this.#object("r", 2)} ${index()} ${this.#value("n", 2)})`,
      () =>
        `(array.copy $r $r ${this.#object("r", 1)} (i32.const 2) ${this.#object("r", 1)} (i32.const 0) (i32.const 5))`,
      () => `(array.fill $a ${this.#object("a", 1)} (i32.const 1) ${this.#value("i32", 2)} (i32.const 6))`,
      () => `(array.fill $r ${this.#object("r", 1)} (i32.const 1) ${this.#value("n", 2)} (i32.const 6))`,
      () =>
        depth <= 0
          ? "(nop)"
          : `(if ${this.#value("i32", 2)} (then ${this.#block(depth)}) (else ${this.#block(depth)}))`,
      () => {
        if (depth <= 0) return "(nop)";
        const name = `$loop${this.#loops}`;
        const counter = `$count${this.#loops++ % 6}`;
        return `(local.set ${counter} (i32.const ${1 + this.#below(6)}))
          (loop ${name} ${this.#block(depth)}
            (br_if ${name}
              (i32.gt_s (local.tee ${counter} (i32.sub (local.get ${counter}) (i32.const 1))) (i32.const 0))))`;
      },
    ])();
  }

  #block(depth: number): string {
    return Array.from({ length: 2 + this.#below(5) }, () => this.#statement(depth - 1)).join("\n");
  }

  program(): string {
    const locals = Object.entries(LOCALS).flatMap(([kind, count]) =>
      Array.from({ length: count }, (_, k) => `(local $${kind}${k} ${typeOf(kind as Kind)})`)
    );
    for (let k = 0; k < 6; k++) locals.push(`(local $count${k} i32)`);
    const hashes = ["n", "m", "l", "a", "any"].flatMap((kind) =>
      Array.from(
        { length: LOCALS[kind as Kind] },
        (_, k) =>
          `(local.set $i320 (i32.add (i32.mul (local.get $i320) (i32.const 33))
          (call $hash (local.get $${kind}${k}) (i32.const 6))))`,
      )
    );
    return `(module ${TYPES} ${HELPERS}
      (func (export "run") (param $x i32) (result i32) ${locals.join(" ")}
        (local.set $i320 (local.get $x))
        ${this.#block(4)} ${this.#block(4)} ${this.#block(4)}
        ${hashes.join("\n")}
        (local.get $i320)))`;
  }
}

function outcome(action: () => unknown): string {
  try {
    return String(action());
  } catch (error) {
    return error instanceof RangeError ? `RangeError ${error.message}` : "trap";
  }
}

Deno.test(`${COUNT} random programs over objects agree with V8`, () => {
  const engines = [
    NewEngine({ bounds: "guard", verify: true }),
    NewEngine({ bounds: "guard", tier: "baseline" }),
    NewEngine({ bounds: "explicit", tier: "baseline" }),
    NewEngine({ bounds: "explicit", optimizations: { "inline": false, "store-forward": false } }),
  ];
  const { heap } = engines[0].compile("(module)").instantiate().internal.store;
  let finished = 0;
  try {
    for (let seed = 1; seed <= COUNT; seed++) {
      const text = new ProgramWriter(seed).program();
      const bytes = textToBinary(text) as Uint8Array<ArrayBuffer>;
      const expected = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports["run"] as (x: number) => number;
      for (const [k, engine] of engines.entries()) {
        const found = engine.compile(bytes).instantiate().exports["run"] as (x: number) => number;
        heap.stress(k === 0 ? 1 + seed % 3 : 0);
        for (const x of [0, 1, -5]) {
          const v8 = outcome(() => expected(x));
          assert.equal(outcome(() => found(x)), v8, `seed ${seed}, run(${x}), engine ${k}`);
          if (v8 !== "trap") finished++;
        }
      }
    }
  } finally {
    heap.stress(0);
  }
  assert.ok(finished > COUNT * 3, `only ${finished} runs finished without a trap`);
});
