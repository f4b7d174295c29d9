/**
 * Elimination of redundant bounds checks on 64-bit memories: random sequences of accesses at constant distances from
 * one address, around both ends of the memory and of the 64-bit range, trap at the same access as in V8.
 */
import assert from "node:assert/strict";
import { encodeModule } from "../../engine/binary/encode.ts";
import { NewEngine } from "../../engine/mod.ts";

const PROGRAMS = 10;
const PAGE = 65536n;

function random(seed: number): (n: number) => number {
  return (n) => {
    seed = Math.imul(seed, 1664525) + 1013904223 | 0;
    return ((seed >>> 8) % n + n) % n;
  };
}

const ACCESSES = [
  ["i32.load8_u", 1],
  ["i32.load", 4],
  ["i32.load16_s", 2],
  ["i32.wrap_i64 (i64.load", 8],
] as const;

/** Sums the values at constant distances from the address; `done` counts the completed accesses. */
function program(seed: number): { text: string; distances: bigint[] } {
  const next = random(seed);
  const distances: bigint[] = [];
  const lines = Array.from({ length: 3 + next(8) }, () => {
    const distance = BigInt(
      next(40) === 0 ? next(0x7fff) * 0x10001 : [next(64), -next(64), next(5000), -next(5000)][next(4)],
    );
    const offset = next(12) === 0 ? next(70_000) : next(3) === 0 ? next(40) : 0;
    distances.push(distance, distance + BigInt(offset));
    const address = next(4) === 0 ? `(local.get $at)` : `(i64.add (local.get $at) (i64.const ${distance}))`;
    const [load] = ACCESSES[next(ACCESSES.length)];
    const value = `(${load} offset=${offset} ${address})${load.includes("(") ? ")" : ""}`;
    const access = next(4) === 0
      ? `(i32.store8 offset=${offset} ${address} (i32.const ${next(256)}))`
      : `(local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) ${value}))`;
    const counted = `${access} (global.set $done (i32.add (global.get $done) (i32.const 1)))`;
    return next(4) === 0 ? `(if (i32.and (local.get $sum) (i32.const 1)) (then ${counted}))` : counted;
  });
  const text = `(module (memory i64 2) (global $done (export "done") (mut i32) (i32.const 0))
    (data (i64.const 0) "${"abcdefghij".repeat(40)}") (data (i64.const 130000) "${"0123456789".repeat(40)}")
    (func (export "f") (param $at i64) (result i32) (local $sum i32)
      ${lines.join("\n      ")}
      (local.get $sum)))`;
  return { text, distances };
}

interface Exports {
  f: (at: bigint) => number;
  done: { value: number };
}

function outcome({ f, done }: Exports, at: bigint): string {
  done.value = 0;
  try {
    return `${f(at)} after ${done.value}`;
  } catch (error) {
    assert.match(String((error as Error).message), /out of bounds/);
    return `out of bounds after ${done.value}`;
  }
}

for (const options of [{}, { bounds: "explicit" }, { optimizations: { "multi-bounds-cert": false } }] as const) {
  Deno.test(`eliminated checks of 64-bit addresses agree with V8: ${JSON.stringify(options)}`, () => {
    let trapped = 0, passed = 0;
    for (let seed = 1; seed <= PROGRAMS; seed++) {
      const { text, distances } = program(seed * 2654435761);
      const engine = NewEngine({ ...options, verify: true });
      const bytes = encodeModule(engine.parse(text)) as Uint8Array<ArrayBuffer>;
      const theirs = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as unknown as Exports;
      const ours = engine.compile(text).instantiate().exports as unknown as Exports;
      for (const end of [0n, 2n * PAGE, PAGE, 1n << 32n, 1n << 63n]) {
        for (const distance of new Set([0n, ...distances])) {
          for (const more of [-9n, -8n, -4n, -1n, 0n, 1n, 7n]) {
            const at = BigInt.asIntN(64, end - distance + more);
            const expected = outcome(theirs, at);
            assert.equal(outcome(ours, at), expected, `f(${at})\n${text}`);
            if (expected.startsWith("out")) trapped++;
            else passed++;
          }
        }
      }
    }
    assert.ok(trapped > 500 && passed > 300, `${trapped} trapped, ${passed} did not`);
  });
}

Deno.test("an address between two checked addresses needs no check", () => {
  const engine = NewEngine({ tier: "optimizing" });
  const checks = (body: string) => {
    const module = engine.compile(`(module (memory i64 1) (func (export "f") (param i64) (result f32) ${body}))`);
    return module.statistics["bounds-facts"] ?? 0;
  };
  const at = (distance: number) => `(f32.load (i64.add (local.get 0) (i64.const ${distance})))`;
  const sum = (...list: number[]) => list.slice(1).reduce((all, d) => `(f32.add ${all} ${at(d)})`, at(list[0]));
  assert.equal(checks(sum(-4, 1280, 640, 644, 0)), 3);
  assert.equal(checks(sum(1280, -4, 640)), 1);
  assert.equal(checks(sum(0, 4, 8)), 0);
  // Lower addresses are unknown.
  assert.equal(checks(sum(1280, 640)), 0);
});
