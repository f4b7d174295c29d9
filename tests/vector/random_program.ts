/**
 * Random programs over vectors, in the text format: expressions of all strict instructions over locals, memory, globals
 * and repeated constants, inside loops, branches with values, and calls with more vectors than registers. In: a seed.
 * Out: a module whose `run(p)` reads and writes the 512 bytes at p. NaNs from arithmetic are masked at once, so that
 * all engines must agree on every bit.
 */
import { SIMD_ROWS } from "../../engine/wasm/opcodes_simd.ts";
import { randomNumbers, randomVector } from "./random_vectors.ts";

interface Row {
  mnemonic: string;
  immediates: string;
  params: string;
  result: string;
}

const ROWS: Row[] = SIMD_ROWS.map((row) => {
  const [, mnemonic, immediates, signature] = row.split(" ");
  const [params, result] = signature.split("_");
  return { mnemonic: mnemonic, immediates: immediates, params: params, result: result };
}).filter(({ mnemonic }) => !mnemonic.includes("relaxed") && mnemonic !== "v128.const");

const BY_RESULT: Readonly<Record<string, Row[]>> = Object.fromEntries(
  ["v", "i", "I", "f", "F", ""].map((letter) => [letter, ROWS.filter((row) => row.result === letter)]),
);
const ARITHMETIC = /^(f\d+x\d)\.(add|sub|mul|div|sqrt|ceil|floor|trunc|nearest|min|max|demote|promote)/;
const VECTORS = 7;
const HELPER_PARAMS = 10;

/** The module of a seed. */
export function randomProgram(seed: number): string {
  return new Program(seed).text();
}

class Program {
  readonly #next: () => number;
  readonly #constants: string[];
  #label = 0;
  #counters = 0;
  #fuel = 0;
  /** Whether the current function may call others. */
  #calls = false;

  constructor(seed: number) {
    this.#next = randomNumbers(seed * 2654435761);
    const literal = (bytes: Uint8Array) => `(v128.const i8x16 ${bytes.join(" ")})`;
    this.#constants = [
      literal(new Uint8Array(16)),
      literal(new Uint8Array(16).fill(255)),
      ...Array.from({ length: 3 }, () => literal(randomVector(this.#next))),
    ];
  }

  #below(n: number): number {
    return this.#next() % n;
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)];
  }

  text(): string {
    const types = (letter: string, n: number) => Array.from({ length: n }, () => letter).join(" ");
    const helper = this.#body(12, false);
    const main = this.#body(40, true);
    const params = Array.from(
      { length: VECTORS },
      (_, k) => `(local.set $v${k} (v128.load offset=${16 * k} (local.get $p)))`,
    );
    const results = Array.from({ length: 3 }, () => this.#vector(2)).join(" ");
    return `(module (memory (export "m") 1) (global $g (mut v128) ${this.#pick(this.#constants)})
(func $helper (param $p i32) ${Array.from({ length: HELPER_PARAMS }, (_, k) => `(param $v${k} v128)`).join(" ")}
  (result ${types("v128", 3)}) ${this.#locals(HELPER_PARAMS)} ${helper} ${results})
(func (export "run") (param $p i32) ${Array.from({ length: VECTORS }, (_, k) => `(local $v${k} v128)`).join(" ")}
  ${this.#locals(VECTORS)} ${params.join(" ")} ${main}
  ${
      Array.from({ length: VECTORS }, (_, k) => `(v128.store offset=${256 + 16 * k} (local.get $p) (local.get $v${k}))`)
        .join(" ")
    }
  (v128.store offset=480 (local.get $p) (global.get $g))))`;
  }

  #locals(_vectors: number): string {
    return `(local $x i32) (local $y i64) (local $f f32) (local $d f64) ${
      Array.from({ length: 8 }, (_, k) => `(local $n${k} i32)`).join(" ")
    }`;
  }

  #body(fuel: number, calls: boolean): string {
    this.#fuel = fuel;
    this.#calls = calls;
    this.#counters = 0;
    let text = "";
    while (this.#fuel > 0) text += this.#statement(0) + "\n";
    return text;
  }

  #statements(depth: number): string {
    return Array.from({ length: 1 + this.#below(3) }, () => this.#statement(depth + 1)).join(" ");
  }

  #local(): string {
    return `$v${this.#below(VECTORS)}`;
  }

  #statement(depth: number): string {
    this.#fuel--;
    const kind = depth > 3 ? this.#below(8) : this.#below(14);
    switch (kind) {
      case 8:
        return `(if ${this.#condition()} (then ${this.#statements(depth)}) (else ${this.#statements(depth)}))`;
      case 9: {
        if (this.#counters === 8) return this.#statement(4);
        const counter = `$n${this.#counters++}`;
        const label = `$l${this.#label++}`;
        return `(local.set ${counter} (i32.const ${1 + this.#below(4)})) (loop ${label} ${this.#statements(depth)}
          (br_if ${label} (local.tee ${counter} (i32.sub (local.get ${counter}) (i32.const 1)))))`;
      }
      case 10: {
        const label = `$l${this.#label++}`;
        return `(local.set ${this.#local()} (block ${label} (result v128)
          (drop (br_if ${label} ${this.#vector(2)} ${this.#condition()})) ${this.#statements(depth)} ${
          this.#vector(2)
        }))`;
      }
      case 11:
        if (!this.#calls) return `(global.set $g ${this.#vector(3)})`;
        return `(call $helper (local.get $p) ${
          Array.from({ length: HELPER_PARAMS }, () => this.#vector(1)).join(" ")
        }) (local.set ${this.#local()}) (local.set ${this.#local()}) (local.set ${this.#local()})`;
      case 12:
        return `(global.set $g ${this.#vector(3)})`;
      case 0:
        return this.#store();
      case 1:
        return `(local.set $x ${this.#scalar("i")})`;
      case 2:
        return `(local.set $y ${this.#scalar("I")}) (local.set $f ${this.#scalar("f")}) (local.set $d ${
          this.#scalar("F")
        })`;
      default:
        return `(local.set ${this.#local()} ${this.#vector(4)})`;
    }
  }

  #store(): string {
    const row = this.#pick(BY_RESULT[""]);
    const lane = row.immediates.includes("lane")
      ? ` ${this.#below(128 / Number(/\d+_lane/.exec(row.mnemonic)![0].slice(0, -5)))}`
      : "";
    return `(${row.mnemonic} offset=${this.#below(400)}${lane} (local.get $p) ${this.#vector(3)})`;
  }

  #condition(): string {
    return this.#pick([
      () => `(v128.any_true ${this.#vector(2)})`,
      () => `(i32.eqz (v128.any_true ${this.#vector(2)}))`,
      () => `(i8x16.all_true ${this.#vector(2)})`,
      () => `(i32x4.all_true ${this.#vector(2)})`,
      () => `(i32.and ${this.#scalar("i")} (i32.const 1))`,
    ])();
  }

  #scalar(letter: string): string {
    const local = `(local.get ${{ i: "$x", I: "$y", f: "$f", F: "$d" }[letter]})`;
    if (this.#below(3) === 0) return local;
    return this.#apply(this.#pick(BY_RESULT[letter]), 1);
  }

  #vector(depth: number): string {
    const leaf = depth === 0 || this.#below(6) === 0;
    if (!leaf) {
      if (this.#below(12) === 0) {
        return `(select ${this.#vector(depth - 1)} ${this.#vector(depth - 1)} ${this.#condition()})`;
      }
      return this.#apply(this.#pick(BY_RESULT["v"]), depth - 1);
    }
    switch (this.#below(6)) {
      case 0:
      case 1:
        return this.#pick(this.#constants);
      case 2:
        return `(v128.load offset=${this.#below(480)} (local.get $p))`;
      case 3:
        return this.#below(4) === 0 ? "(global.get $g)" : `(local.tee ${this.#local()} ${this.#pick(this.#constants)})`;
      default:
        return `(local.get ${this.#local()})`;
    }
  }

  #apply(row: Row, depth: number): string {
    const { mnemonic, immediates, params } = row;
    let immediate = "";
    if (immediates.startsWith("memarg")) immediate += ` offset=${this.#below(480)}`;
    if (immediates.includes("lanes")) immediate += ` ${this.#lanes().join(" ")}`;
    else if (immediates.includes("lane")) {
      const memory = /^v128\.(?:load|store)(\d+)_lane$/.exec(mnemonic);
      immediate += ` ${this.#below(memory !== null ? 128 / Number(memory[1]) : Number(/x(\d+)/.exec(mnemonic)![1]))}`;
    }
    const operands = Array.from(params, (letter) => {
      if (letter === "a") return "(local.get $p)";
      if (letter === "v") return this.#vector(depth);
      if (letter === "i" && this.#below(2) === 0) return `(i32.const ${this.#below(70)})`;
      return this.#scalar(letter);
    });
    const text = `(${mnemonic}${immediate} ${operands.join(" ")})`;
    const arithmetic = ARITHMETIC.exec(mnemonic);
    if (arithmetic === null) return text;
    const saved = this.#local();
    return `(v128.and (local.tee ${saved} ${text}) (local.tee ${saved} (${
      arithmetic[1]
    }.eq (local.get ${saved}) (local.get ${saved}))))`;
  }

  /** Lanes of a shuffle, often of a shape with a dedicated instruction. */
  #lanes(): number[] {
    const width = this.#pick([1, 2, 4, 8]);
    const sources = Array.from({ length: 16 / width }, () => this.#below(32 / width));
    switch (this.#below(4)) {
      case 0: {
        const distance = this.#below(32);
        return Array.from({ length: 16 }, (_, k) => (k + distance) % 32);
      }
      case 1: {
        const high = this.#pick([0, 8]), x = this.#pick([0, 16]), y = this.#pick([0, 16]);
        return Array.from({ length: 16 }, (_, k) => {
          const element = Math.floor(k / width);
          return (element % 2 === 0 ? x : y) + high + (element >> 1) * width + (k % width);
        });
      }
      case 2:
        return Array.from({ length: 16 }, (_, k) => k + 16 * ((sources[Math.floor(k / width)] * width) >> 4));
    }
    return Array.from({ length: 16 }, (_, k) => sources[Math.floor(k / width)] * width + (k % width));
  }
}
