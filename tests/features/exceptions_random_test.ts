/**
 * Random programs that throw, catch, rethrow and delegate, on waft and on V8: same results, same traces, same uncaught
 * exceptions. Each program uses either try_table or the legacy instructions (V8 does not accept a mixture), calls other
 * functions and a throwing host function, and keeps many values live across tries, in both bounds modes and with
 * register-keeping switched off.
 */
import assert from "node:assert/strict";
import { encodeModule } from "../../engine/binary/encode.ts";
import { NewEngine, type Tag, WasmException } from "../../engine/mod.ts";

const FUNCTIONS = 5;
const PROGRAMS = 60;
const VARIABLES = ["$p", "$q", "$x", "$y", "$z", "$w"];

/** Generates one program as text. */
class Program {
  #seed: number;
  readonly #legacy: boolean;
  #label = 0;
  #level = 0;
  #caught: string[] = [];
  #delegates: string[] = [];
  #room = 0;

  constructor(seed: number, legacy: boolean) {
    this.#seed = seed;
    this.#legacy = legacy;
  }

  #next(n: number): number {
    this.#seed = Math.imul(this.#seed, 1664525) + 1013904223 | 0;
    return ((this.#seed >>> 8) % n + n) % n;
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#next(list.length)];
  }

  text(): string {
    const functions = Array.from({ length: FUNCTIONS }, (_, k) => this.#func(k));
    return `(module
      (import "host" "h" (func $h (param i32) (result i32)))
      (tag $a (export "a") (param i32)) (tag $b (export "b") (param i64 f64 i32)) (tag $c (export "c"))
      (global $trace (export "trace") (mut i32) (i32.const 1)) (global $fuel (export "fuel") (mut i32) (i32.const 0))
      ${functions.join("\n")})`;
  }

  #func(k: number): string {
    this.#level = k;
    this.#room = 30;
    const locals = VARIABLES.slice(2).map((v) => `(local ${v} i32)`).join(" ");
    return `(func $f${k} (export "f${k}") (param $p i32) (param $q i32) (result i32) ${locals}
      (local $i i64) (local $f f64) (local $n0 i32) (local $n1 i32) (local $n2 i32) (local $n3 i32)
      (global.set $fuel (i32.sub (global.get $fuel) (i32.const 1)))
      (if (i32.lt_s (global.get $fuel) (i32.const 0)) (then (return (local.get $p))))
      ${this.#block(3)}
      (i32.xor (i32.add (local.get $x) (i32.mul (local.get $y) (i32.const 3))) (i32.sub (local.get $z)
        (i32.add (local.get $w) (i32.wrap_i64 (i64.add (local.get $i) (i64.reinterpret_f64 (local.get $f))))))))`;
  }

  #block(depth: number): string {
    return Array.from({ length: 1 + this.#next(4) }, () => this.#statement(depth)).join("\n");
  }

  #expr(depth: number): string {
    const kind = this.#next(depth <= 0 ? 3 : 9);
    if (kind < 2) return `(local.get ${this.#pick(VARIABLES)})`;
    if (kind === 2) return `(i32.const ${this.#next(20) - 5})`;
    if (kind === 3 && this.#level + 1 < FUNCTIONS) {
      return `(call $f${this.#level + 1 + this.#next(FUNCTIONS - this.#level - 1)} ${this.#expr(depth - 1)} ${
        this.#expr(depth - 1)
      })`;
    }
    if (kind === 4) return `(call $h ${this.#expr(depth - 1)})`;
    const op = this.#pick(["add", "sub", "mul", "xor", "and", "shl", "lt_s", "eq"]);
    return `(i32.${op} ${this.#expr(depth - 1)} ${this.#expr(depth - 1)})`;
  }

  #statement(depth: number): string {
    if (this.#room-- <= 0 || depth <= 0) return this.#simple();
    const kind = this.#next(12);
    if (kind < 3) return this.#simple();
    if (kind === 3) {
      return `(if ${this.#expr(2)} (then ${this.#block(depth - 1)}) (else ${this.#block(depth - 1)}))`;
    }
    if (kind === 4) {
      const label = `$l${this.#label++}`;
      return `(block ${label} ${this.#block(depth - 1)} (br_if ${label} ${this.#expr(2)}) ${this.#block(depth - 1)})`;
    }
    if (kind === 5) {
      const label = `$l${this.#label++}`, n = `$n${depth}`;
      return `(local.set ${n} (i32.const ${2 + this.#next(3)})) (loop ${label} ${this.#block(depth - 1)}
        (br_if ${label} (local.tee ${n} (i32.sub (local.get ${n}) (i32.const 1)))))`;
    }
    if (kind === 6) return `(if (i32.eqz (i32.rem_u ${this.#expr(2)} (i32.const 3))) (then ${this.#throw()}))`;
    return this.#legacy ? this.#tryCatch(depth) : this.#tryTable(depth);
  }

  #simple(): string {
    switch (this.#next(6)) {
      case 0:
        return `(global.set $trace (i32.add (i32.mul (global.get $trace) (i32.const 31)) ${this.#expr(1)}))`;
      case 1:
        return `(local.set $i (i64.add (local.get $i) (i64.extend_i32_s ${this.#expr(1)})))`;
      case 2:
        return `(local.set $f (f64.add (local.get $f) (f64.convert_i32_s ${this.#expr(1)})))`;
      case 3:
        return `(if (i32.eqz (i32.and ${this.#expr(1)} (i32.const 3))) (then ${this.#throw()}))`;
      default:
        return `(local.set ${this.#pick(VARIABLES)} ${this.#expr(3)})`;
    }
  }

  #throw(): string {
    if (this.#caught.length > 0 && this.#next(3) === 0) return `(rethrow ${this.#pick(this.#caught)})`;
    switch (this.#next(4)) {
      case 0:
        return `(throw $b (local.get $i) (local.get $f) ${this.#expr(1)})`;
      case 1:
        return `(throw $c)`;
      default:
        return `(throw $a ${this.#expr(1)})`;
    }
  }

  #tryTable(depth: number): string {
    const out = `$out${this.#label++}`, withRef = this.#next(2) === 1;
    const clauses: { clause: string; label: string; type: string; take: string }[] = [];
    const add = (kind: string, type: string, take: string) => {
      const label = `$c${this.#label++}`;
      clauses.push({ clause: `(${kind} ${label})`, label, type, take });
    };
    if (this.#next(2) === 0) add("catch $a", "(result i32)", "(local.set $x)");
    if (this.#next(2) === 0) add("catch $b", "(result i64 f64 i32)", "(local.set $y) (local.set $f) (local.set $i)");
    if (withRef) {
      const again = this.#next(2) === 0;
      const take = again ? "(local.set $w (i32.add (local.get $w) (i32.const 1))) (throw_ref)" : "(drop)";
      add("catch_all_ref", "(result exnref)", take);
    } else if (this.#next(3) === 0) add("catch_all", "", "");
    let code = `(try_table ${clauses.map(({ clause }) => clause).join(" ")} ${this.#block(depth - 1)}) (br ${out})`;
    for (const { label, type, take } of clauses) {
      code = `(block ${label} ${type} ${code}) ${take} ${this.#block(depth - 1)} (br ${out})`;
    }
    return `(block ${out} ${code})`;
  }

  #tryCatch(depth: number): string {
    const label = `$t${this.#label++}`;
    this.#delegates.push(label);
    const body = this.#block(depth - 1);
    this.#delegates.pop();
    const others = this.#delegates;
    if (others.length > 0 && this.#next(4) === 0) return `(try ${label} (do ${body}) (delegate ${this.#pick(others)}))`;
    const saved = this.#delegates;
    this.#delegates = [];
    this.#caught.push(label);
    let catches = "";
    if (this.#next(2) === 0) catches += `(catch $a (local.set $x) ${this.#block(depth - 1)})`;
    if (this.#next(2) === 0) {
      catches += `(catch $b (local.set $y) (local.set $f) (local.set $i) ${this.#block(depth - 1)})`;
    }
    if (this.#next(3) === 0) catches += `(catch_all ${this.#block(depth - 1)})`;
    this.#caught.pop();
    this.#delegates = saved;
    return `(try ${label} (do ${body}) ${catches})`;
  }
}

class HostFailure extends Error {}

/** The outcome of calling `f`, as text. */
function outcome(f: () => unknown, describe: (error: unknown) => string): string {
  try {
    return String(f());
  } catch (error) {
    if (error instanceof HostFailure) return `host: ${error.message}`;
    return describe(error);
  }
}

function host(x: number): number {
  if (x % 5 === 0) throw new HostFailure(`on ${x}`);
  return x * 7 + 1;
}

function run(seed: number, legacy: boolean, options: Parameters<typeof NewEngine>[0]): void {
  const text = new Program(seed, legacy).text();
  const engine = NewEngine({ ...options, verify: true });
  const bytes = encodeModule(engine.parse(text));
  const theirs = new WebAssembly.Instance(new WebAssembly.Module(bytes as Uint8Array<ArrayBuffer>), {
    host: { h: host },
  })
    .exports as Record<string, unknown>;
  const ours = engine.compile(text).instantiate({}, { host: { h: host } }).exports as Record<string, unknown>;
  const api = WebAssembly as unknown as {
    Exception: new (...args: never[]) => { is(t: unknown): boolean; getArg(t: unknown, k: number): unknown };
  };
  const arity = { a: 1, b: 3, c: 0 };
  for (const [p, q] of [[0, 0], [1, 5], [-3, 12], [100, 7]] as const) {
    for (const side of [ours, theirs]) {
      (side["fuel"] as { value: number }).value = 300;
      (side["trace"] as { value: number }).value = 1;
    }
    const mine = outcome(() => (ours["f0"] as (p: number, q: number) => number)(p, q), (error) => {
      if (!(error instanceof WasmException)) throw error;
      const name = ["a", "b", "c"].find((n) => (ours[n] as Tag) === error.tag);
      return `${name}(${error.payload.map(String).join()})`;
    });
    const expected = outcome(() => (theirs["f0"] as (p: number, q: number) => number)(p, q), (error) => {
      if (!(error instanceof api.Exception)) throw error;
      const [name, n] = Object.entries(arity).find(([key]) => error.is(theirs[key]))!;
      return `${name}(${Array.from({ length: n }, (_, k) => String(error.getArg(theirs[name], k))).join()})`;
    });
    const trace = (side: Record<string, unknown>) => (side["trace"] as { value: number }).value;
    assert.equal(`${mine} ${trace(ours)}`, `${expected} ${trace(theirs)}`, `seed ${seed}, f0(${p}, ${q})\n${text}`);
  }
}

for (const legacy of [false, true]) {
  Deno.test(`random programs with ${legacy ? "try" : "try_table"} agree with V8`, () => {
    for (let seed = 1; seed <= PROGRAMS; seed++) {
      run(seed * 7919, legacy, {
        bounds: seed % 2 === 0 ? "guard" : "explicit",
        optimizations: seed % 5 === 0
          ? { "stack-reg": false, "call-next-use": false }
          : seed % 5 === 1
          ? { inline: false }
          : {},
      });
    }
  });
}
