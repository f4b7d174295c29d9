/**
 * Random straight-line code of atomic and plain accesses on one thread, against the host's WebAssembly: same results,
 * traps and memory. Most accesses are aligned and in bounds, some are not; old values are used or dropped; memories are
 * shared or not, first or second, with 32-bit and 64-bit addresses.
 */
import { deepEqual } from "node:assert/strict";
import { type EngineOptions, NewEngine } from "../../engine/mod.ts";
import { encodeModule } from "../../engine/binary/encode.ts";
import { OPTIMIZATION_ROWS } from "../../engine/settings/optimizations.ts";
import { THREADS_ROWS } from "../../engine/wasm/opcodes_threads.ts";

/** Mnemonics with their operands after the address (i32 i, i64 I) and their result. */
const ROWS = THREADS_ROWS.map((row) => row.split(" ")).filter(([, name]) => /^i(32|64)\.atomic/.test(name)).map((
  [, name, , signature],
) => ({
  name: name,
  operands: signature.slice(1, signature.indexOf("_")),
  result: signature.slice(signature.indexOf("_") + 1),
}));

class Random {
  #state: number;
  constructor(seed: number) {
    this.#state = seed * 2654435761 | 1;
  }
  below(n: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % n;
  }
  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)];
  }
}

const PLAIN = ["i32.load", "i64.load", "i32.load8_s", "i64.load32_u", "i32.store", "i64.store16"];

/** Whether the host, the reference of the comparison, accepts the module. */
function hostTakes(text: string): boolean {
  return WebAssembly.validate(new Uint8Array(encodeModule(NewEngine().parse(text))));
}

/** Features that the oldest supported host, Node 20, lacks. */
const MEMORY64 = hostTakes("(module (memory i64 1))");
const SECOND_MEMORY = hostTakes("(module (memory 1) (memory 1))");

function makeModule(random: Random): string {
  const wide = random.below(4) === 0 && MEMORY64;
  const second = random.below(3) === 0 && SECOND_MEMORY;
  const memory = `(memory ${wide ? "i64 " : ""}1 2${random.below(2) === 0 ? " shared" : ""})`;
  const use = second ? " 1" : "";
  const constant = (type: string) =>
    type === "i" ? `(i32.const ${random.below(5) - 2})` : `(i64.const ${random.below(2) === 0 ? -3 : 0x1_0000_0001})`;
  const value = (type: string) =>
    random.below(3) === 0 ? constant(type) : type === "i" ? "(local.get $i)" : "(local.get $h)";
  const address = () => {
    const mask = random.below(12) === 0 ? 0x1ffff : random.below(12) === 0 ? 0xffff : 0xfff8;
    const i = random.below(4) === 0
      ? `(i32.const ${random.below(0x1000) * 8})`
      : `(i32.and (i32.add (local.get $i) (i32.const ${random.below(64) * 8})) (i32.const ${mask}))`;
    return wide ? `(i64.extend_i32_u ${i})` : i;
  };
  const offset = () =>
    random.below(2) === 0 ? ` offset=${random.below(8) * 8}` : random.below(30) === 0 ? " offset=1" : "";
  const lines: string[] = [];
  const mix = (result: string, text: string) => {
    if (random.below(3) === 0) lines.push(`(drop ${text})`);
    else {
      const wider = result === "i" ? `(i64.extend_i32_u ${text})` : text;
      lines.push(`(local.set $h (i64.add (i64.mul (local.get $h) (i64.const 31)) ${wider}))`);
    }
  };
  for (let n = 0; n < 24; n++) {
    if (random.below(3) === 0) {
      const name = random.pick(PLAIN);
      const type = name.startsWith("i32") ? "i" : "I";
      if (name.includes("store")) lines.push(`(${name}${use}${offset()} ${address()} ${value(type)})`);
      else mix(type, `(${name}${use}${offset()} ${address()})`);
      continue;
    }
    if (random.below(20) === 0) lines.push("(atomic.fence)");
    const { name, operands, result } = random.pick(ROWS);
    const text = `(${name}${use}${offset()} ${address()} ${[...operands].map(value).join(" ")})`;
    if (result === "") lines.push(text);
    else mix(result, text);
    if (random.below(4) === 0) lines.push("(local.set $i (i32.add (local.get $i) (i32.const 24)))");
  }
  const notify = `(memory.atomic.notify${use} ${address()} (i32.const 1))`;
  if (random.below(4) === 0) mix("i", notify);
  return `(module ${second ? "(memory 1) " : ""}${memory} (export "m" (memory ${second ? 1 : 0}))
    (func (export "run") (param $i i32) (param $h i64) (result i64)\n${lines.join("\n")}\n(local.get $h)))`;
}

interface Exports {
  run(i: number, h: bigint): bigint;
  m: { buffer: ArrayBuffer };
}

/** Whether the host reports unaligned accesses everywhere; Bun reports an unaligned notification as out of bounds. */
const NAMES_UNALIGNED = (() => {
  const text = `(module (memory 1) (func (export "f") (drop (memory.atomic.notify (i32.const 1) (i32.const 0)))))`;
  const bytes = new Uint8Array(encodeModule(NewEngine().parse(text)));
  try {
    (new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as { f(): void }).f();
  } catch (error) {
    return /unaligned/i.test((error as Error).message);
  }
  throw new Error("The host does not trap");
})();

function trapName({ message }: Error): string {
  return !NAMES_UNALIGNED ? "trap" : /unaligned/i.test(message) ? "unaligned" : "out of bounds";
}

/** The results of a few calls, and a hash of the memory after them. */
function outcome(exports: Exports): unknown[] {
  const seen: unknown[] = [];
  for (const [i, h] of [[0, 1n], [64, -5n], [65528, 1n << 40n], [3, 7n], [-8, 0n]] as [number, bigint][]) {
    try {
      seen.push(exports.run(i, h));
    } catch (error) {
      seen.push(trapName(error as Error));
    }
  }
  const words = new Int32Array(exports.m.buffer);
  let hash = 0;
  for (let n = 0; n < words.length; n++) hash = Math.imul(hash, 31) + words[n] | 0;
  seen.push(hash);
  return seen;
}

const ALL_OFF = Object.fromEntries(
  OPTIMIZATION_ROWS.filter(({ state }) => state === "on" || state === "off").map(({ name }) => [name, false]),
);
const CONFIGURATIONS: Readonly<Record<string, EngineOptions>> = {
  "guard": { verify: true },
  "explicit": { bounds: "explicit", verify: true },
  "explicit, unoptimized": { bounds: "explicit", optimizations: ALL_OFF },
};

for (const [name, options] of Object.entries(CONFIGURATIONS)) {
  Deno.test(`${name}: atomic and plain accesses agree with the host's WebAssembly`, () => {
    const engine = NewEngine(options);
    for (let seed = 1; seed <= 150; seed++) {
      const text = makeModule(new Random(seed));
      const bytes = new Uint8Array(encodeModule(engine.parse(text)));
      const theirs = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as unknown as Exports;
      const ours = engine.compile(bytes).instantiate().exports as unknown as Exports;
      deepEqual(outcome(ours), outcome(theirs), `seed ${seed}\n${text}`);
    }
  });
}
