/**
 * Bounds checks hoisted out of counted loops: random loops over 32-bit memories with explicit bounds, over 64-bit and
 * over shared memories, between addresses around both ends of the memory and of the address space, end as in V8, after
 * the same number of iterations and with the same bytes written.
 */
import assert from "node:assert/strict";
import { encodeModule } from "../../engine/binary/encode.ts";
import { NewEngine } from "../../engine/mod.ts";

const PROGRAMS = 8;
const PAGE = 65536n;

function random(seed: number): (n: number) => number {
  return (n) => {
    seed = Math.imul(seed, 1664525) + 1013904223 | 0;
    return ((seed >>> 8) % n + n) % n;
  };
}

/**
 * A loop from $from to $to with a few accesses per iteration, some of them conditional; it may grow the memory
 * beforehand or leave early.
 */
function program(seed: number, type: "i32" | "i64", memory: string): string {
  const next = random(seed);
  const step = [1, 1, 4, 8, -1, -2, 3][next(7)];
  const order = step > 0 ? ["ne", "lt_s", "lt_u", "le_s", "le_u"] : ["ne", "gt_s", "gt_u", "ge_s", "ge_u"];
  const test = (value: string) => `(${type}.${order[next(order.length)]} ${value} (local.get $to))`;
  const at = () => {
    const index = [
      `(local.get $i)`,
      `(${type}.add (local.get $i) (${type}.const ${next(80) - 40}))`,
      `(${type}.add (local.get $base) (${type}.shl (local.get $i) (${type}.const ${next(3)})))`,
      `(${type}.sub (local.get $base) (local.get $i))`,
    ];
    return index[next(index.length)];
  };
  const access = () => {
    const offset = next(3) === 0 ? next(100) : 0;
    const load =
      `(local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.load8_u offset=${offset} ${at()})))`;
    const store = `(i32.store8 offset=${offset} ${at()} (local.get $sum))`;
    const one = next(2) === 0 ? load : store;
    return next(4) === 0 ? `(if (i32.and (local.get $sum) (i32.const 1)) (then ${one}))` : one;
  };
  const body = `${Array.from({ length: 2 + next(4) }, access).join("\n")}
      (global.set $done (i32.add (global.get $done) (i32.const 1)))
      (br_if $out (i32.gt_u (global.get $done) (i32.const 200000)))`;
  const up = `(local.set $i (${type}.add (local.get $i) (${type}.const ${step})))`;
  const loop = next(2) === 0
    ? `(loop $l ${body} ${up} (br_if $l ${test("(local.get $i)")}))`
    : `(loop $l (br_if $out (i32.eqz ${test("(local.get $i)")})) ${body} ${up} (br $l))`;
  const grow = next(3) === 0 ? `(drop (memory.grow (${type}.const 1)))` : "";
  return `(module (memory (export "memory") ${memory}) (global $done (export "done") (mut i32) (i32.const 0))
    (func (export "f") (param $from ${type}) (param $to ${type}) (param $base ${type}) (result i32)
      (local $sum i32) (local $i ${type})
      (local.set $i (local.get $from)) ${grow}
      (block $out ${loop})
      (i32.xor (local.get $sum) ${type === "i32" ? "(local.get $i)" : "(i32.wrap_i64 (local.get $i))"})))`;
}

interface Exports {
  f: (from: unknown, to: unknown, base: unknown) => number;
  done: { value: number };
  memory: { buffer: ArrayBuffer };
}

function outcome({ f, done, memory }: Exports, args: [unknown, unknown, unknown]): string {
  done.value = 0;
  let end: string;
  try {
    end = String(f(...args));
  } catch (error) {
    end = String((error as Error).message);
    assert.match(end, /out of bounds/);
    end = "out of bounds";
  }
  let sum = 0;
  const bytes = new Uint8Array(memory.buffer);
  for (let n = 0; n < bytes.length; n += 1) sum = Math.imul(sum ^ bytes[n], 0x01000193) + 1 | 0;
  return `${end} after ${done.value} with ${sum}`;
}

for (const [type, memory] of [["i32", "1 4"], ["i64", "i64 1 4"], ["i32", "1 4 shared"]] as const) {
  Deno.test(`loops over memory ${memory} with hoisted bounds checks agree with V8`, () => {
    let trapped = 0, ended = 0;
    for (let seed = 1; seed <= PROGRAMS; seed++) {
      const text = program(seed * 2654435761, type, memory);
      const engine = NewEngine({ bounds: "explicit", verify: true });
      const bytes = encodeModule(engine.parse(text)) as Uint8Array<ArrayBuffer>;
      const theirs = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as unknown as Exports;
      const ours = engine.compile(text).instantiate().exports as unknown as Exports;
      const next = random(seed);
      const places = [0n, PAGE, 2n * PAGE, 1n << 31n, 1n << 32n, 1n << 63n];
      for (let n = 0; n < 40; n++) {
        const from = places[n % 3 === 0 ? next(places.length) : next(3)] + BigInt(next(100) - 50);
        const to = next(2) === 0 ? from + BigInt(next(3000) - 1500) : places[next(places.length)] + BigInt(next(9) - 4);
        const base = places[next(3)] + BigInt(next(5000) - 2500);
        const words = [from, to, base].map((word) =>
          type === "i64" ? BigInt.asIntN(64, word) : Number(BigInt.asIntN(32, word))
        ) as [unknown, unknown, unknown];
        const [want, got] = [outcome(theirs, words), outcome(ours, words)];
        assert.equal(got, want, `${text}\n${words}`);
        if (got.startsWith("out")) trapped++;
        else ended++;
      }
    }
    assert.ok(trapped > 30 && ended > 30, `${trapped} ${ended}`);
  });
}
