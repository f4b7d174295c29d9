/**
 * Random loops over floats and vectors, and memory with NaNs of all kinds. In: a seed. Out: the text of a module that
 * exports `memory` and `run`, and the first 512 bytes of its memory. The module stores all its values at the end.
 */
import { Random } from "../fuzz/random.ts";

const TYPES = ["f64", "f32", "v128"] as const;
type Type = (typeof TYPES)[number];

const UNARY = ["neg", "abs", "sqrt", "ceil", "floor", "trunc", "nearest"];
const BINARY = ["add", "sub", "mul", "div", "min", "max", "copysign", "add", "sub", "mul"];
const LANE_UNARY = ["neg", "abs", "sqrt", "ceil"];
const LANE_BINARY = ["add", "sub", "mul", "div", "min", "max", "pmin", "pmax"];

/** Makes the text of one module. Its function has three locals of each type and two counters. */
class Maker {
  readonly #numbers: Random;

  constructor(seed: number) {
    this.#numbers = new Random(seed);
  }

  #random(limit: number): number {
    return this.#numbers.below(limit);
  }

  #pick<T>(of: readonly T[]): T {
    return this.#numbers.pick(of);
  }

  #local(type: Type): string {
    return `$${type}${this.#random(3)}`;
  }

  #address(): string {
    return `(i32.and (i32.add (i32.const ${
      this.#random(64) * 8
    }) (i32.shl (local.get $i) (i32.const 3))) (i32.const 504))`;
  }

  #expression(type: Type, depth: number): string {
    const inner = (of: Type = type) => this.#expression(of, depth - 1);
    const kind = depth === 0 ? this.#random(2) : this.#random(8);
    if (kind === 0) return `(local.get ${this.#local(type)})`;
    if (kind === 1) return `(${type}.load ${this.#address()})`;
    if (kind === 2) return `(select ${inner()} ${inner()} (i32.and (local.get $i) (i32.const 1)))`;
    if (type === "v128") return this.#lanes(inner);
    if (kind === 3) return `(${type}.${this.#pick(UNARY)} ${inner()})`;
    if (kind === 4) {
      return type === "f64" ? `(f64.promote_f32 ${inner("f32")})` : `(f32.demote_f64 ${inner("f64")})`;
    }
    return `(${type}.${this.#pick(BINARY)} ${inner()} ${inner()})`;
  }

  #lanes(inner: (of?: Type) => string): string {
    const shape = this.#pick(["f32x4", "f64x2"]);
    const kind = this.#random(6);
    if (kind === 0) return `(${shape}.splat ${inner(shape === "f32x4" ? "f32" : "f64")})`;
    if (kind === 1) return `(${shape}.${this.#pick(LANE_UNARY)} ${inner()})`;
    if (kind === 2) return `(i32x4.add ${inner()} ${inner()})`;
    return `(${shape}.${this.#pick(LANE_BINARY)} ${inner()} ${inner()})`;
  }

  #statement(depth: number): string {
    const type = this.#pick(TYPES);
    const kind = this.#random(depth === 0 ? 5 : 7);
    const value = this.#expression(type, 3);
    if (kind === 0) return `(${type}.store ${this.#address()} ${value})`;
    if (kind === 1 && type === "f64") return `(i64.store ${this.#address()} (i64.reinterpret_f64 ${value}))`;
    if (kind < 5) return `(local.set ${this.#local(type)} ${value})`;
    const body = this.#statements(depth - 1);
    const condition = `(f64.lt ${this.#expression("f64", 1)} ${this.#expression("f64", 1)})`;
    if (kind === 5) return `(if ${condition} (then ${body}) (else ${this.#statements(depth - 1)}))`;
    const counter = `$n${depth}`;
    return `(local.set ${counter} (i32.const 3)) (loop $l${depth} ${body} (local.set $i (i32.add (local.get $i) (i32.const 5)))
      (br_if $l${depth} (local.tee ${counter} (i32.sub (local.get ${counter}) (i32.const 1)))))`;
  }

  #statements(depth: number): string {
    return Array.from({ length: 2 + this.#random(4) }, () => this.#statement(depth)).join("\n");
  }

  module(): string {
    const locals = TYPES.flatMap((type) => [0, 1, 2].map((n) => `(local $${type}${n} ${type})`)).join(" ");
    const ends = TYPES.flatMap((type) =>
      [0, 1, 2].map((n) =>
        `(${type}.store (i32.const ${1024 + 64 * TYPES.indexOf(type) + 16 * n})
        (local.get $${type}${n}))`
      )
    ).join("\n");
    return `(module (memory (export "memory") 1) (func (export "run") ${locals}
      (local $i i32) (local $n1 i32) (local $n2 i32)
      ${this.#statements(2)} ${this.#statements(2)} ${ends}))`;
  }
}

/** The text of the module of `seed`. */
export function nanProgram(seed: number): string {
  return new Maker(seed).module();
}

/** NaNs of both signs, quiet, signalling and with payloads, infinities, zeros and numbers. */
const WORDS = [
  ...[0x7ff8000000000000n, 0xfff8000000000000n, 0x7ff0000000000001n, 0xfff8dead00000000n, 0x7ff00000ffc00123n],
  ...[0x7ff0000000000000n, 0xfff0000000000000n, 0x8000000000000000n, 0n, 0x3ff0000000000000n, 0xc000000000000000n],
  ...[0x7fc000007f800001n, 0xffc12345ff800000n, 0x3f80000040000000n, 0x8000000000000001n],
];

/** The bytes of memory that a program's statements access. */
const ACCESSED_BYTES = 512;

/** Fills the memory that programs access. */
export function fillWithNans(memory: DataView, seed: number): void {
  const random = new Random(~seed);
  for (let at = 0; at < ACCESSED_BYTES; at += 8) memory.setBigUint64(at, random.pick(WORDS), true);
}
