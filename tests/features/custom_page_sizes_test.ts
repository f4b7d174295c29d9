/**
 * Memories with pages of one byte (custom page sizes): sizes, growth and every kind of access, around the end of the
 * memory, equal a model in every tier and bounds mode; snapshots, resets, core dumps, threads, limits and the two
 * formats keep the size of pages. V8 lacks the proposal.
 */
import assert from "node:assert/strict";
import { decodeModule } from "../../engine/binary/decode.ts";
import { encodeModule } from "../../engine/binary/encode.ts";
import { type EngineOptions, type Instance, Memory, NewEngine, TrapError } from "../../engine/mod.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { printModule } from "../../engine/text/print.ts";

const FEATURES = { features: { "custom-page-sizes": true } } as const;

/** Name of a load, bytes of its access, and the store of the same bytes. */
const ACCESSES = [
  { load: "i32.load8_u", store: "i32.store8", bytes: 1, type: "i32" },
  { load: "i32.load16_u", store: "i32.store16", bytes: 2, type: "i32" },
  { load: "i32.load", store: "i32.store", bytes: 4, type: "i32" },
  { load: "i64.load", store: "i64.store", bytes: 8, type: "i64" },
] as const;
const OFFSETS = [0, 1, 13, 0xffff_ffff] as const;
const INIT = Array.from({ length: 40 }, (_, k) => 7 * k + 1);

function moduleText(address: "i32" | "i64", index: number, shared: boolean): string {
  const memory = `(memory ${address} 9 20000 ${shared ? "shared" : ""} (pagesize 1))`;
  const other = `(memory 1 1)`;
  const m = index === 0 ? "" : "1";
  const accesses = ACCESSES.flatMap(({ load, store, type }, k) =>
    OFFSETS.map((offset, o) =>
      `(func (export "load${k}_${o}") (param ${address}) (result ${type}) (${load} ${m} offset=${offset} (local.get 0)))
       (func (export "store${k}_${o}") (param ${address} ${type})
         (${store} ${m} offset=${offset} (local.get 0) (local.get 1)))`
    )
  );
  const all = `(param ${address} ${address} ${address})`;
  return `(module
    ${index === 0 ? `${memory} ${other}` : `${other} ${memory}`}
    (data $d "${INIT.map((byte) => `\\${(byte & 0xff).toString(16).padStart(2, "0")}`).join("")}")
    (export "memory" (memory ${index}))
    (func (export "size") (result ${address}) (memory.size ${m}))
    (func (export "grow") (param ${address}) (result ${address}) (memory.grow ${m} (local.get 0)))
    (func (export "fill") (param ${address} i32 ${address})
      (memory.fill ${m} (local.get 0) (local.get 1) (local.get 2)))
    (func (export "fill5") (param ${address}) (memory.fill ${m} (local.get 0) (i32.const 7) (${address}.const 5)))
    (func (export "copy") ${all} (memory.copy ${m} ${m} (local.get 0) (local.get 1) (local.get 2)))
    (func (export "copy12") (param ${address} ${address})
      (memory.copy ${m} ${m} (local.get 0) (local.get 1) (${address}.const 12)))
    (func (export "init") (param ${address} i32 i32)
      (memory.init ${m} $d (local.get 0) (local.get 1) (local.get 2)))
    (func (export "sum") (param $i ${address}) (param $end ${address}) (result i32) (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.load8_u ${m} offset=3 (local.get $i))))
        (br_if $l (${address}.lt_u
          (local.tee $i (${address}.add (local.get $i) (${address}.const 1))) (local.get $end))))
      (local.get $sum))
    ${accesses.join("\n")})`;
}

class OutOfBounds extends Error {}

/** The memory of the module as an array. */
class Model {
  bytes: Uint8Array = new Uint8Array(9);

  range(at: number, bytes: number): number {
    if (at + bytes > this.bytes.length) throw new OutOfBounds();
    return at;
  }

  load(at: number, bytes: number): bigint {
    this.range(at, bytes);
    return this.bytes.subarray(at, at + bytes).reduceRight((value, byte) => value << 8n | BigInt(byte), 0n);
  }

  store(at: number, bytes: number, value: bigint): void {
    this.range(at, bytes);
    for (let k = 0; k < bytes; k++) this.bytes[at + k] = Number(value >> BigInt(8 * k) & 0xffn);
  }

  grow(by: number): number {
    const old = this.bytes.length;
    if (old + by > 20_000) return -1;
    const grown = new Uint8Array(old + by);
    grown.set(this.bytes);
    this.bytes = grown;
    return old;
  }

  sum(from: number, end: number): number {
    let sum = 0;
    do sum = Math.imul(sum, 31) + Number(this.load(from++ + 3, 1)) | 0; while (from < end);
    return sum;
  }
}

function random(seed: number): (n: number) => number {
  return (n) => {
    seed = Math.imul(seed, 1664525) + 1013904223 | 0;
    return ((seed >>> 8) % n + n) % n;
  };
}

function outcome(action: () => unknown): unknown {
  try {
    return action() ?? "done";
  } catch (error) {
    const isTrap = error instanceof OutOfBounds ||
      (error instanceof TrapError && error.code === "memory-out-of-bounds");
    if (!isTrap) throw error;
    return "out of bounds";
  }
}

/** Calls `turns` random functions of the instance and of the model. */
function compareWithModel(instance: Instance, address: "i32" | "i64", turns: number, seed: number): void {
  const next = random(seed);
  const model = new Model();
  const wide = (value: number) => address === "i64" ? BigInt(value) : value | 0;
  const call = (name: string, ...args: unknown[]) => instance.call({}, name, ...args);
  const place = () => Math.max(0, next(4) === 0 ? next(200) : model.bytes.length + next(60) - 45);
  const actions: (() => [string, () => unknown, () => unknown])[] = [
    () => {
      const k = next(ACCESSES.length), o = next(OFFSETS.length), at = place();
      const { bytes, type } = ACCESSES[k];
      const expected = () => {
        const value = model.load(at + OFFSETS[o], bytes);
        return type === "i64" ? BigInt.asIntN(64, value) : Number(BigInt.asIntN(32, value));
      };
      return [`load${k}_${o} ${at}`, () => call(`load${k}_${o}`, wide(at)), expected];
    },
    () => {
      const k = next(ACCESSES.length), o = next(OFFSETS.length), at = place(), value = next(1 << 20) * 4093;
      const { bytes, type } = ACCESSES[k];
      const given = type === "i64" ? BigInt(value) : value | 0;
      const expected = () => model.store(at + OFFSETS[o], bytes, BigInt(value));
      return [`store${k}_${o} ${at}`, () => call(`store${k}_${o}`, wide(at), given), expected];
    },
    () => {
      const at = place(), count = next(30);
      const expected = () => void model.bytes.fill(9, model.range(at, count), at + count);
      return [`fill ${at} ${count}`, () => call("fill", wide(at), 9, wide(count)), expected];
    },
    () => {
      const at = place();
      return [`fill5 ${at}`, () => call("fill5", wide(at)), () => void model.bytes.fill(7, model.range(at, 5), at + 5)];
    },
    () => {
      const [to, from, count] = [place(), place(), next(30)];
      const expected = () => {
        model.range(to, count);
        model.bytes.copyWithin(to, model.range(from, count), from + count);
      };
      return [`copy ${to} ${from} ${count}`, () => call("copy", wide(to), wide(from), wide(count)), expected];
    },
    () => {
      const [to, from] = [place(), place()];
      const expected = () => {
        model.range(to, 12);
        model.bytes.copyWithin(to, model.range(from, 12), from + 12);
      };
      return [`copy12 ${to} ${from}`, () => call("copy12", wide(to), wide(from)), expected];
    },
    () => {
      const [to, from, count] = [place(), next(50), next(20)];
      const expected = () => {
        if (from + count > INIT.length) throw new OutOfBounds();
        model.bytes.set(INIT.slice(from, from + count), model.range(to, count));
      };
      return [`init ${to} ${from} ${count}`, () => call("init", wide(to), from, count), expected];
    },
    () => {
      const from = place(), end = from + next(20);
      return [`sum ${from} ${end}`, () => call("sum", wide(from), wide(end)), () => model.sum(from, end)];
    },
    () => {
      const by = next(20) === 0 ? 4096 * next(4) : next(9);
      return [`grow ${by}`, () => Number(call("grow", wide(by))), () => model.grow(by)];
    },
  ];
  for (let turn = 0; turn < turns; turn++) {
    const [name, actual, expected] = actions[next(actions.length)]();
    assert.deepEqual(outcome(actual), outcome(expected), `turn ${turn}: ${name} of ${model.bytes.length} bytes`);
    assert.equal(Number(call("size")), model.bytes.length);
  }
  const memory = instance.exports.memory as Memory;
  assert.deepEqual([memory.pages, memory.byteLength], [model.bytes.length, model.bytes.length]);
  assert.deepEqual(new Uint8Array(memory.buffer), model.bytes);
}

const SETTINGS: readonly EngineOptions[] = [
  {},
  { tier: "baseline" },
  { bounds: "explicit" },
  { bounds: "explicit", tier: "baseline" },
  { optimizations: { "mask-memories": true } },
  { optimizations: { "mask-memories": true }, tier: "baseline" },
  { deterministic: true, fuel: true },
  { verify: "code" },
  { verify: "code", bounds: "explicit" },
];

const KINDS = [
  { address: "i32", index: 0, shared: false },
  { address: "i32", index: 1, shared: false },
  { address: "i64", index: 0, shared: false },
  { address: "i32", index: 0, shared: true },
] as const;

for (const settings of SETTINGS) {
  Deno.test(`pages of one byte equal the model: ${JSON.stringify(settings)}`, () => {
    const engine = NewEngine({ tier: "optimizing", ...settings, ...FEATURES });
    KINDS.forEach(({ address, index, shared }, k) => {
      if (shared && settings.deterministic) return;
      const instance = engine.compile(moduleText(address, index, shared)).instantiate();
      compareWithModel(instance, address, 600, 11 * k + 5);
    });
  });
}

const COUNTER = `(module
  (memory (export "m") 3 100000 (pagesize 1))
  (data (i32.const 1) "\\2a\\07")
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "put") (param i32 i32) (i32.store8 (local.get 0) (local.get 1)))
  (func (export "trap") (unreachable)))`;

const bytesOf = (instance: Instance) => [...new Uint8Array((instance.exports.m as Memory).buffer)];

Deno.test("snapshots and resets keep the last bytes of a memory of 4,109 bytes", () => {
  const module = NewEngine(FEATURES).compile(COUNTER);
  const instance = module.instantiate();
  instance.call({}, "grow", 4106);
  instance.call({}, "put", 4108, 5);
  const snapshot = instance.snapshot();
  const expected = [0, 42, 7, ...Array(4105).fill(0), 5];
  assert.deepEqual(bytesOf(module.restore(snapshot)), expected);
  instance.call({}, "put", 0, 1);
  instance.reset();
  assert.deepEqual(bytesOf(instance), [0, 42, 7]);
  assert.equal(instance.call({}, "grow", 2), 3);
  assert.deepEqual(bytesOf(instance), [0, 42, 7, 0, 0]);
});

Deno.test("a core dump has the memory's last bytes and its page size", () => {
  const instance = NewEngine(FEATURES).compile(COUNTER).instantiate();
  instance.call({}, "grow", 4106);
  instance.call({}, "put", 4108, 5);
  assert.throws(() => instance.call({}, "trap"), (error: unknown) => {
    assert(error instanceof TrapError);
    const { memories, datas } = decodeModule(error.coredump("program"));
    assert.deepEqual([memories[0].pageSize, memories[0].limits.min], [1, 4109n]);
    assert.equal(datas.at(-1)?.bytes.at(-1), 5);
    return true;
  });
});

Deno.test("limits of memories count bytes", () => {
  const engine = NewEngine({ ...FEATURES, limits: { maxMemoryPages: 1 } });
  const instance = engine.compile(COUNTER).instantiate();
  assert.equal(instance.call({}, "grow", 65536 - 3), 3);
  assert.equal(instance.call({}, "grow", 1), -1);
  const large = engine.compile("(module (memory 65537 (pagesize 1)))");
  assert.throws(() => large.instantiate(), { name: "RangeError", message: /65537 pages exceed the limit of 65536/ });
});

Deno.test("page sizes of imports are equal", () => {
  const engine = NewEngine(FEATURES);
  const importing = (size: string) => engine.compile(`(module (memory (import "a" "m") 0 ${size}))`);
  const small = importing("(pagesize 1)"), large = importing("");
  const m = engine.compile(COUNTER).instantiate().exports.m;
  small.instantiate({}, { a: { m } });
  assert.throws(() => large.instantiate({}, { a: { m } }), {
    name: "LinkError",
    message: /must be a memory with pages of 64 KiB, got one with pages of one byte/,
  });
  const own = small.memoryForImport("a", "m");
  assert.deepEqual([own.pages, own.grow(10), own.byteLength], [0, 0, 10]);
  small.instantiate({}, { a: { m: own } });
});

Deno.test("a shared memory with pages of one byte has the same type in another realm", () => {
  const engine = NewEngine(FEATURES);
  const module = engine.compile(`(module (memory (import "a" "m") 1 9 shared (pagesize 1))
    (func (export "grow") (result i32) (memory.grow (i32.const 4))))`);
  const own = module.memoryForImport("a", "m");
  const same = Memory.fromShared(own.share());
  const instance = module.instantiate({}, { a: { m: same } });
  assert.equal(instance.call({}, "grow"), 1);
  assert.deepEqual([own.pages, own.byteLength, same.pages], [5, 5, 5]);
});

Deno.test("both formats keep page sizes", () => {
  const text = `(module (memory 1 2 (pagesize 1)) (memory i64 3 (pagesize 65536)) (memory 4)
    (memory (pagesize 1) (data "abc")))`;
  const module = parseModule(text);
  assert.deepEqual(module.memories.map(({ pageSize, limits }) => [pageSize, limits.min]), [
    [1, 1n],
    [65536, 3n],
    [undefined, 4n],
    [1, 3n],
  ]);
  const bytes = new Uint8Array(encodeModule(module));
  assert.deepEqual(decodeModule(bytes).memories, module.memories);
  assert.deepEqual(parseModule(printModule(decodeModule(bytes))).memories, module.memories);
});

Deno.test("the feature is off by default, and errors name it and the size", () => {
  const engine = NewEngine();
  for (const size of [1, 65536]) {
    assert.throws(() => engine.compile(`(module (memory 1 (pagesize ${size})))`), {
      name: "UnsupportedError",
      message: /custom-page-sizes/,
    });
  }
  const on = NewEngine(FEATURES);
  assert.throws(() => on.compile("(module (memory 1 (pagesize 512)))"), { message: /page size 512: a page has 1 or/ });
  assert.throws(() => on.compile("(module (memory 1 (pagesize 3)))"), { message: /invalid custom page size 3/ });
  assert.throws(() => on.compile("(module (memory (pagesize 1) 1))"), { name: /Error/ });
});
