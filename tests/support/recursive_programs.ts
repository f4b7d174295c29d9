/**
 * Random programs that recurse until the stack or the fuel is exhausted, with effects before each call. In: a seed.
 * Out: the recorder of a run, and the errors of its calls.
 *
 * Functions call each other directly, through a table, through references, in loops, in tries, and through the host.
 * Frames differ in size: values of many types live across calls, and some calls pass arguments on the stack.
 */
import { type EngineOptions, type Instance, NewEngine } from "@waft/engine";
import { Recorder } from "@waft/engine/recording";
import { Random } from "../fuzz/random.ts";

const SIGNATURES = ["i32", "i32 i64 f64", `i32 ${"i64 ".repeat(6)}${"f64 ".repeat(10)}i32`] as const;
const LOCAL_TYPES = ["i32", "i64", "f64", "v128"] as const;
/** Recursion ends at one of these depths, if the stack lasts. */
const DEPTHS = [40, 2000, 20_000, 1e9];
/** Fuel of a call: calls that branch take exponential time. */
const FUEL = 400_000;

interface Shape {
  readonly signature: number;
  readonly locals: readonly (typeof LOCAL_TYPES)[number][];
}

class Maker {
  readonly #random: Random;
  readonly #shapes: readonly Shape[];
  readonly #deepest: number;
  readonly #hasTailCalls: boolean;

  constructor(seed: number) {
    const random = this.#random = new Random(seed);
    this.#deepest = random.pick(DEPTHS);
    this.#hasTailCalls = random.below(8) === 0;
    this.#shapes = Array.from({ length: 2 + random.below(4) }, () => ({
      signature: random.below(3) === 0 ? random.below(SIGNATURES.length) : 0,
      locals: Array.from({ length: random.below(5) }, () => random.pick(LOCAL_TYPES)),
    }));
  }

  text(): string {
    const { length } = this.#shapes;
    const plain = this.#shapes.flatMap(({ signature }, k) => signature === 0 ? [`$f${k}`] : []);
    const table = [...plain, "$leaf"];
    return `(module
      (import "env" "back" (func $back (param i32 i32) (result i32)))
      ${SIGNATURES.map((types, k) => `(type $s${k} (func (param ${types}) (result i32)))`).join(" ")}
      (tag $t (param i32)) (memory (export "memory") 1) (global $g (mut i32) (i32.const 1))
      (table $table funcref (elem ${table.join(" ")}))
      (func $leaf (type $s0) (i32.store (i32.const 0) (local.get 0)) (i32.add (local.get 0) (i32.load (i32.const 8))))
      (func $element (param i32) (result i32) (i32.rem_u (local.get 0) (i32.const ${table.length})))
      ${this.#shapes.map((shape, k) => this.#function(shape, k)).join("\n")}
      ${Array.from({ length }, (_, k) => this.#entry(k)).join("\n")})`;
  }

  /** An export that calls function `k`. */
  #entry(k: number): string {
    return `(func (export "f${k}") (param i32) (result i32) ${this.#call(k, "(local.get 0)")})`;
  }

  #function({ signature, locals }: Shape, index: number): string {
    const params = SIGNATURES[signature].trim().split(" ");
    const local = (k: number) => params.length + k;
    const set = locals.map((type, k) => `(local.set ${local(k)} ${this.#value(type)})`);
    // Reading the locals at the end keeps them alive across the calls.
    const uses = locals.map((type, k) => this.#stored(type, `(local.get ${local(k)})`));
    const count = 1 + (this.#random.below(3) === 0 ? 1 : 0);
    const calls = Array.from({ length: count }, () => this.#statement(local(locals.length)));
    return `(func $f${index} (type $s${signature}) (local ${[...locals, "i32"].join(" ")})
      ${this.#effect()} ${set.join(" ")}
      (if (i32.gt_u (local.get 0) (i32.const ${Math.min(this.#deepest, 0x7fffffff)})) (then (return (local.get 0))))
      ${calls.join("\n")} ${uses.join(" ")}
      ${this.#end(local(locals.length))})`;
  }

  #end(result: number): string {
    if (!this.#hasTailCalls || this.#random.below(2) === 0) return `(local.get ${result})`;
    const k = this.#random.below(this.#shapes.length);
    return `(return_${this.#call(k, "(i32.add (local.get 0) (i32.const 1))").slice(1)}`;
  }

  #effect(): string {
    const at = 8 * (1 + this.#random.below(8));
    return this.#random.pick([
      `(i32.store (i32.const ${at}) (i32.add (i32.load (i32.const ${at})) (local.get 0)))`,
      `(global.set $g (i32.add (i32.mul (global.get $g) (i32.const 31)) (local.get 0)))`,
      `(drop (call $leaf (local.get 0)))`,
    ]);
  }

  #value(type: (typeof LOCAL_TYPES)[number]): string {
    const n = "(local.get 0)";
    if (type === "i32") return `(i32.xor ${n} (global.get $g))`;
    if (type === "i64") return `(i64.mul (i64.extend_i32_u ${n}) (i64.const 0x100000001b3))`;
    return type === "f64" ? `(f64.convert_i32_u ${n})` : `(i32x4.splat ${n})`;
  }

  #stored(type: (typeof LOCAL_TYPES)[number], value: string): string {
    return `(${type}.store (i32.const ${128 + 16 * this.#random.below(8)}) ${value})`;
  }

  /** A call of function `k` with first argument `n`. */
  #call(k: number, n: string): string {
    const [, ...others] = SIGNATURES[this.#shapes[k].signature].trim().split(" ");
    const args = others.map((type) => type === "i32" ? "(global.get $g)" : this.#value(type as "i64"));
    return `(call $f${k} ${[n, ...args].join(" ")})`;
  }

  /** Sets local `to` to the result of a call with the next depth. */
  #statement(to: number): string {
    const deeper = "(i32.add (local.get 0) (i32.const 1))";
    const k = this.#random.below(this.#shapes.length);
    const direct = this.#call(k, deeper);
    const indirect = `(call_indirect $table (type $s0) ${deeper} (call $element (local.get 0)))`;
    const set = (value: string) => `(local.set ${to} (i32.add (local.get ${to}) ${value}))`;
    switch (this.#random.below(7)) {
      case 0:
        return set(indirect);
      case 1:
        return `(block $out (try_table (catch_all $out)
          ${set(direct)}
          (if (i32.eqz (i32.rem_u (local.get 0) (i32.const 5))) (then (throw $t (local.get 0))))))`;
      case 2:
        return `(if (i32.eq (i32.rem_u (local.get 0) (i32.const 1021)) (i32.const 5))
          (then ${set(`(call $back (i32.const ${k}) ${deeper})`)}) (else ${set(direct)}))`;
      case 3:
        return `(loop $l ${set(direct)} (br_if $l (i32.eqz (i32.rem_u (local.get ${to}) (i32.const 3)))))`;
      case 4:
        return set(`(call_ref $s0 ${deeper} (ref.cast (ref $s0) (table.get $table (call $element (local.get 0)))))`);
      default:
        return set(direct);
    }
  }
}

/** Runs the program of a seed with `options`, and records it. Returns the recorder and the errors. */
export function runRecursive(seed: number, options: EngineOptions): { recorder: Recorder; errors: string[] } {
  const text = new Maker(seed).text();
  const recorder = new Recorder(text);
  const errors: string[] = [];
  const back = (k: number, n: number) => {
    try {
      return instance.call<number>({}, `f${k}`, n);
    } catch (error) {
      if (n % 2 === 0) throw error;
      return 7;
    }
  };
  const module = NewEngine({ ...options, deterministic: true, fuel: true, stack: "native" }).compile(text);
  const instance: Instance = module.instantiate({ record: recorder }, { env: { back } });
  for (let round = 0; round < 4; round++) {
    try {
      instance.call({ fuel: FUEL }, `f${(seed + round) % 2}`, round);
    } catch (error) {
      errors.push((error as Error).message);
    }
  }
  return { recorder, errors };
}
