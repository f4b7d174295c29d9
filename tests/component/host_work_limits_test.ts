/**
 * Limits of calls while the host works for them: it stores results, elements and futures by the component's `realloc`,
 * and passes streams on without any code of the component in between.
 */
import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Context, NewEngine } from "@waft/engine";
import { GENERATED } from "../../component/abi/generated.ts";
import { GuestMemory } from "../../component/abi/guest_memory.ts";
import { INTERPRETED } from "../../component/abi/interpreted.ts";
import type { ValType } from "../../component/model/types.ts";
import { compileComponent } from "../../component/mod.ts";
import type { Descriptor } from "../../component/wasi/filesystem.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";

const engine = NewEngine({ interruptible: true, fuel: true });

/** A component whose `realloc` never returns, and which receives strings in four ways. */
const STORING = `(component
  (type $strings (stream string))
  (type $later (future string))
  (import "result" (func $result async (result string)))
  (import "stream" (func $stream (result $strings)))
  (import "future" (func $future (result $later)))
  (core module $memory
    (memory (export "m") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (loop (br 0)) unreachable))
  (core instance $memory (instantiate $memory))
  (alias core export $memory "m" (core memory $m))
  (alias core export $memory "realloc" (core func $realloc))
  (core func $result (canon lower (func $result) (memory $m) (realloc $realloc)))
  (core func $stream (canon lower (func $stream)))
  (core func $future (canon lower (func $future)))
  (core func $read-stream (canon stream.read $strings (memory $m) (realloc $realloc)))
  (core func $read-future (canon future.read $later (memory $m) (realloc $realloc)))
  (core func $return (canon task.return))
  (core module $main
    (import "h" "result" (func $result (param i32)))
    (import "h" "stream" (func $stream (result i32)))
    (import "h" "future" (func $future (result i32)))
    (import "h" "read-stream" (func $read-stream (param i32 i32 i32) (result i32)))
    (import "h" "read-future" (func $read-future (param i32 i32) (result i32)))
    (import "h" "return" (func $return))
    (func (export "argument") (param i32 i32) (call $return))
    (func (export "result") (call $result (i32.const 16)) (call $return))
    (func (export "stream") (drop (call $read-stream (call $stream) (i32.const 16) (i32.const 1))) (call $return))
    (func (export "future") (drop (call $read-future (call $future) (i32.const 16))) (call $return)))
  (core instance $main (instantiate $main (with "h" (instance
    (export "result" (func $result)) (export "stream" (func $stream)) (export "future" (func $future))
    (export "read-stream" (func $read-stream)) (export "read-future" (func $read-future))
    (export "return" (func $return))))))
  (func (export "argument") async (param "text" string)
    (canon lift (core func $main "argument") async (memory $m) (realloc $realloc)))
  (func (export "result") async (canon lift (core func $main "result") async))
  (func (export "stream") async (canon lift (core func $main "stream") async))
  (func (export "future") async (canon lift (core func $main "future") async)))`;

const later = () => new Promise<string>((resolve) => setTimeout(() => resolve("text"), 1));

async function* strings() {
  yield await later();
}

const storing = compileComponent(engine, STORING);

const LIMITS: readonly (readonly [Context, string, RegExp])[] = [
  [{ deadline: 50 }, "interrupted", /^the deadline/],
  [{ processorTime: 50 }, "interrupted", /^the limit of 50 ms of processor time/],
  [{ fuel: 10_000 }, "out-of-fuel", /fuel/],
];

Deno.test("limits stop realloc when the host stores arguments", async () => {
  for (const [context, code, detail] of LIMITS) {
    const instance = storing.instantiate({}, { result: later, stream: strings, future: later });
    await assert.rejects(instance.callAsync({ ...context }, "argument", "text"), { name: "TrapError", code, detail });
  }
});

for (const way of ["result", "stream", "future"]) {
  Deno.test(`limits stop realloc when the host stores a ${way} after a wait`, async () => {
    for (const [context, code, detail] of LIMITS) {
      const instance = storing.instantiate({}, { result: later, stream: strings, future: later });
      await assert.rejects(instance.callAsync({ ...context }, way), { name: "TrapError", code, detail });
    }
  });
}

Deno.test("limits stop realloc when the host stores the value of a promise for a component without async", async () => {
  const source = `(component
    (import "ask" (func $ask (result string)))
    (core module $memory
      (memory (export "m") 1)
      (global $spins (export "spins") (mut i32) (i32.const 1))
      (func (export "realloc") (param i32 i32 i32 i32) (result i32)
        (loop (br_if 0 (global.get $spins)))
        (i32.const 64)))
    (core instance $memory (instantiate $memory))
    (core func $ask (canon lower (func $ask)
      (memory (core memory $memory "m")) (realloc (core func $memory "realloc"))))
    (core module $main
      (import "h" "ask" (func $ask (param i32)))
      (import "m" "m" (memory 1))
      (import "m" "spins" (global $spins (mut i32)))
      (func (export "ask") (call $ask (i32.const 16)))
      (func (export "length") (result i32)
        (global.set $spins (i32.const 0))
        (call $ask (i32.const 16))
        (i32.load (i32.const 20))))
    (core instance $main (instantiate $main
      (with "m" (instance $memory)) (with "h" (instance (export "ask" (func $ask))))))
    (func (export "ask") (canon lift (core func $main "ask")))
    (func (export "length") (result u32) (canon lift (core func $main "length"))))`;
  const component = compileComponent(engine, source);
  for (const [context, code, detail] of LIMITS) {
    const instance = component.instantiate({}, { ask: later });
    await assert.rejects(instance.callAsync({ ...context }, "ask"), { name: "TrapError", code, detail });
  }
  assert.equal(await component.instantiate({}, { ask: later }).callAsync({}, "length"), 4);
});

/** A component that passes a stream of the host on to the host, and waits for the end. */
const PASSING = `(component
  (type $bytes (stream u8))
  (import "wasi:cli/types@0.3.0" (instance $cli
    (type $code' (enum "io" "illegal-byte-sequence" "pipe"))
    (export "error-code" (type (eq $code')))))
  (alias export $cli "error-code" (type $code))
  (type $end (result (error $code)))
  (type $outcome (future $end))
  (import "wasi:cli/stdin@0.3.0" (instance $stdin
    (alias outer 1 $bytes (type $bytes))
    (alias outer 1 $outcome (type $outcome))
    (export "read-via-stream" (func (result (tuple $bytes $outcome))))))
  (import "wasi:cli/stdout@0.3.0" (instance $stdout
    (alias outer 1 $bytes (type $bytes))
    (alias outer 1 $outcome (type $outcome))
    (export "write-via-stream" (func (param "data" $bytes) (result $outcome)))))
  (core module $memory (memory (export "m") 1))
  (core instance $memory (instantiate $memory))
  (alias core export $memory "m" (core memory $m))
  (core func $input (canon lower (func $stdin "read-via-stream") (memory $m)))
  (core func $output (canon lower (func $stdout "write-via-stream")))
  (core func $settled (canon future.read $outcome (memory $m)))
  (core func $return (canon task.return))
  (core module $main
    (import "m" "m" (memory 1))
    (import "h" "input" (func $input (param i32)))
    (import "h" "output" (func $output (param i32) (result i32)))
    (import "h" "settled" (func $settled (param i32 i32) (result i32)))
    (import "h" "return" (func $return))
    (func (export "pass")
      (call $input (i32.const 0))
      (drop (call $settled (call $output (i32.load (i32.const 0))) (i32.const 16)))
      (call $return)))
  (core instance $main (instantiate $main (with "m" (instance $memory)) (with "h" (instance
    (export "input" (func $input)) (export "output" (func $output)) (export "settled" (func $settled))
    (export "return" (func $return))))))
  (func (export "pass") async (canon lift (core func $main "pass") async)))`;

const passing = compileComponent(engine, PASSING);

/** Elements without an end, which are always there at once. */
const endless = {
  async *[Symbol.asyncIterator]() {
    for (;;) yield new Uint8Array(16);
  },
};

async function readAll(stream: ReadableStream<Uint8Array>): Promise<unknown> {
  for await (const _ of stream);
  return { tag: "ok" };
}

Deno.test("deadline and signal stop a stream that the host passes on to itself; timers run meanwhile", async () => {
  const make = () =>
    passing.instantiate({}, {
      "wasi:cli/types": {},
      "wasi:cli/stdin": { readViaStream: () => [endless, new Promise(() => {})] },
      "wasi:cli/stdout": { writeViaStream: readAll },
    });
  await assert.rejects(make().callAsync({ deadline: 50 }, "pass"), { code: "interrupted" });
  const controller = new AbortController();
  setTimeout(() => controller.abort(new RangeError("enough")), 20);
  await assert.rejects(make().callAsync({ signal: controller.signal }, "pass"), { message: "enough" });
});

Deno.test("bytes of a stream of WASI that the component passes on cost fuel", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-passing-"));
  const [input, output] = [join(folder, "in"), join(folder, "out")];
  const BYTES = 4 << 20;
  writeFileSync(input, "");
  truncateSync(input, BYTES);
  const pass = async (fuel: number): Promise<number> => {
    const stdio: [number, number, number] = [openSync(input, "r"), openSync(output, "w"), 2];
    const wasi = new ComponentWasi({ stdio });
    const context = { fuel };
    try {
      await passing.instantiate({}, wasi.imports).callAsync(context, "pass");
    } finally {
      wasi.close();
      closeSync(stdio[0]);
      closeSync(stdio[1]);
    }
    return fuel - context.fuel;
  };
  try {
    const used = await pass(1_000_000);
    assert.ok(used >= 2 * BYTES / 64 && used < 3 * BYTES / 64, `${used} units`);
    await assert.rejects(pass(BYTES / 64), { code: "out-of-fuel" });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

Deno.test("a long list of pollables costs fuel", () => {
  const source = `(component
    (import "wasi:io/poll@0.2.0" (instance $poll
      (export "pollable" (type $pollable (sub resource)))
      (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
      (alias outer 1 $pollable (type $outer))
      (export "pollable" (type $own (eq $outer)))
      (export "subscribe-duration" (func (param "when" u64) (result (own $own))))))
    (core module $memory
      (memory (export "m") 16)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 524288)))
    (core instance $memory (instantiate $memory))
    (core func $poll (canon lower (func $poll "poll")
      (memory (core memory $memory "m")) (realloc (core func $memory "realloc"))))
    (core func $subscribe (canon lower (func $clock "subscribe-duration")))
    (core module $main
      (import "m" "m" (memory 16))
      (import "h" "poll" (func $poll (param i32 i32 i32)))
      (import "h" "subscribe" (func $subscribe (param i64) (result i32)))
      (func (export "poll") (local $bytes i32)
        (i32.store (i32.const 0) (call $subscribe (i64.const 0)))
        (local.set $bytes (i32.const 4))
        (loop $double
          (memory.copy (local.get $bytes) (i32.const 0) (local.get $bytes))
          (local.set $bytes (i32.shl (local.get $bytes) (i32.const 1)))
          (br_if $double (i32.lt_u (local.get $bytes) (i32.const 262144))))
        (call $poll (i32.const 0) (i32.const 65536) (i32.const 524280))))
    (core instance $main (instantiate $main (with "m" (instance $memory)) (with "h" (instance
      (export "poll" (func $poll)) (export "subscribe" (func $subscribe))))))
    (func (export "poll") (canon lift (core func $main "poll"))))`;
  const component = compileComponent(engine, source);
  const poll = (fuel: number) => {
    const wasi = new ComponentWasi();
    try {
      component.instantiate({}, wasi.imports).call({ fuel }, "poll");
    } finally {
      wasi.close();
    }
  };
  poll(1_000_000);
  assert.throws(() => poll(30_000), { code: "out-of-fuel" });
});

/** A module that calls a function of the host. */
const calling = engine.compile(`(module (import "host" "f" (func $f)) (func (export "f") (call $f)))`);

const NUMBER: ValType = { kind: "u8" };
const PAIR: ValType = { kind: "tuple", types: [NUMBER, NUMBER] };
const BYTES: ValType = { kind: "list", element: NUMBER };
const STRING: ValType = { kind: "string" };

const LISTS: readonly (readonly [name: string, element: ValType, count: number, length: number])[] = [
  ["tuples", PAIR, 4_000_000, 0],
  ["lists of numbers", BYTES, 2_000_000, 0],
  ["short strings", STRING, 2_000_000, 24],
  ["long strings", STRING, 8, 2 ** 26],
  ["numbers", NUMBER, 2 ** 27, 0],
];

for (const [name, layer] of [["generated", GENERATED], ["interpreted", INTERPRETED]] as const) {
  for (const [elements, element, count, length] of LISTS) {
    Deno.test(`long lists of ${elements} that a guest passes cost fuel and end at the deadline (${name})`, () => {
      const buffer = new ArrayBuffer(2 ** 27);
      if (element === STRING) {
        const words = new Uint32Array(buffer, 0, 2 * count);
        for (let k = 1; k < words.length; k += 2) words[k] = length;
      }
      const memory = new GuestMemory({ buffer }, "i32", undefined);
      const type: ValType = { kind: "list", element };
      const lift = layer.lifter([type], "i32", 16).bind({ memory, encoding: "utf8", handles: [], foreign: false });
      let lifted = 0;
      const f = () => {
        lift([0, count]);
        lifted++;
      };
      const instance = calling.instantiate({}, { host: { f } });
      assert.throws(() => instance.call({ fuel: 2 ** 20 }, "f"), { code: "out-of-fuel" });
      assert.throws(() => instance.call({ deadline: 2 }, "f"), { code: "interrupted" });
      assert.equal(lifted, 0);
    });
  }
}

const MAP: ValType = { kind: "map", key: NUMBER, value: NUMBER };
const ENUM: ValType = { kind: "enum", names: ["one", "two"] };

const STORED: readonly (readonly [name: string, element: ValType, make: () => ArrayLike<unknown>])[] = [
  ["tuples", PAIR, () => Array(4_000_000).fill([1, 2])],
  ["lists of numbers", BYTES, () => Array(1_000_000).fill(new Uint8Array(3))],
  ["maps", MAP, () => Array(1_000_000).fill(new Map([[1, 2]]))],
  ["cases", ENUM, () => Array(8_000_000).fill("two")],
  ["short strings", STRING, () => Array(2_000_000).fill("abc")],
  ["long strings", STRING, () => ["a".repeat(2 ** 25), "é".repeat(2 ** 25), "\u{1f600}".repeat(2 ** 24)]],
  ["numbers", NUMBER, () => new Uint8Array(2 ** 27)],
];

for (const [name, layer] of [["generated", GENERATED], ["interpreted", INTERPRETED]] as const) {
  for (const [elements, element, make] of STORED) {
    Deno.test(`storing long lists of ${elements} in a guest ends at the deadline (${name})`, () => {
      const value = make();
      const memory = new GuestMemory({ buffer: new ArrayBuffer(2 ** 28) }, "i32", () => 2 ** 27);
      const type: ValType = { kind: "list", element };
      for (const encoding of ["utf8", "utf16", "latin1+utf16"] as const) {
        const lower = layer.lowerer([type], "i32", 16).bind({ memory, encoding, handles: [], foreign: false });
        let lowered = 0;
        const f = () => {
          lower([value]);
          lowered++;
        };
        assert.throws(() => calling.instantiate({}, { host: { f } }).call({ deadline: 2 }, "f"), {
          code: "interrupted",
        });
        assert.equal(lowered, 0);
        if (element !== STRING) break;
      }
    });
  }
}

Deno.test("strings of several pieces are stored whole, also if a pair of surrogates is at a border", () => {
  const buffer = new ArrayBuffer(2 ** 23);
  const memory = new GuestMemory({ buffer }, "i32", () => 0);
  for (const layer of [GENERATED, INTERPRETED]) {
    for (const encoding of ["utf8", "utf16", "latin1+utf16"] as const) {
      const env = { memory, encoding, handles: [], foreign: false };
      const lower = layer.lowerer([STRING], "i32", 16).bind(env);
      const lift = layer.lifter([STRING], "i32", 16).bind(env);
      for (
        const text of ["a" + "\u{1f600}".repeat(2 ** 19), "\u{1f600}".repeat(2 ** 19 + 1), "é".repeat(2 ** 20 + 1)]
      ) {
        assert.equal(lift(lower([text]))[0] === text, true);
      }
    }
  }
});

Deno.test("a map costs fuel as if the hashes of its keys collided, and looks at the deadline while it is built", () => {
  const count = 6400;
  const buffer = new ArrayBuffer(2 ** 20);
  const word: ValType = { kind: "u32" };
  const pair: ValType = { kind: "tuple", types: [word, word] };
  /** Costs above this are those of adding entries. */
  const most = 2 ** 13;
  const run = (layer: typeof GENERATED, type: ValType, distinct: number, looks = Infinity) => {
    new Uint32Array(buffer, 0, 2 * count).set(Array.from({ length: 2 * count }, (_, k) => (k >> 1) % distinct));
    let spent = 0;
    let left = looks;
    class Watched extends GuestMemory {
      override spend(cost: number) {
        spent += cost;
        if (cost > most && left-- === 0) throw passed;
      }
    }
    const memory = new Watched({ buffer }, "i32", undefined);
    memory.beginLift();
    const env = { memory, encoding: "utf8", handles: [], foreign: false } as const;
    layer.lifter([type], "i32", 16).bind(env)([0, count]);
    return spent;
  };
  const passed = new Error("the deadline has passed");
  for (const layer of [GENERATED, INTERPRETED]) {
    const map: ValType = { kind: "map", key: word, value: word };
    const list = run(layer, { kind: "list", element: pair }, count);
    const [short, long] = [count / 2, count].map((distinct) => run(layer, map, distinct) - list);
    assert.ok(long > 3.9 * count ** 2, `${long} for ${count} entries`);
    assert.ok(short < 0.8 * long && short > 0.7 * long, "entries with the same key are one");
    assert.throws(() => run(layer, map, count, count / 100), passed);
  }
});

Deno.test("a long write to a file ends at the deadline", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-write-"));
  const wasi = new ComponentWasi({ preopens: [{ host: folder, guest: "/" }] });
  try {
    const { getDirectories } = wasi.imports["wasi:filesystem/preopens"] as { getDirectories(): [Descriptor, string][] };
    const file = getDirectories()[0][0].openAt({}, "file", { create: true }, { write: true });
    const bytes = new Uint8Array(2 ** 20);
    const f = () => {
      for (const end = performance.now() + 20; performance.now() < end;);
      file.write(bytes, 0n);
    };
    assert.throws(() => calling.instantiate({}, { host: { f } }).call({ deadline: 10 }, "f"), { code: "interrupted" });
    assert.equal(statSync(join(folder, "file")).size, 0);
    calling.instantiate({}, { host: { f } }).call({}, "f");
    assert.equal(statSync(join(folder, "file")).size, bytes.length);
  } finally {
    wasi.close();
    rmSync(folder, { recursive: true });
  }
});

Deno.test("nested tuples of few bytes, and many short lists, are charged for the objects that they become", () => {
  const component = compileComponent(
    engine,
    `(component
    (type $0 (tuple u8)) ${Array.from({ length: 90 }, (_, k) => `(type $${k + 1} (tuple $${k}))`).join(" ")}
    (type $bytes (list u8))
    (import "nested" (func $nested (param "list" (list $90))))
    (import "bytes" (func $bytes (param "list" (list $bytes))))
    (core module $memory (memory (export "m") 512))
    (core instance $memory (instantiate $memory))
    (core func $nested (canon lower (func $nested) (memory (core memory $memory "m"))))
    (core func $bytes (canon lower (func $bytes) (memory (core memory $memory "m"))))
    (core module $main
      (import "h" "nested" (func $nested (param i32 i32)))
      (import "h" "bytes" (func $bytes (param i32 i32)))
      (func (export "nested") (param $count i32) (call $nested (i32.const 0) (local.get $count)))
      (func (export "bytes") (param $count i32) (call $bytes (i32.const 0) (local.get $count))))
    (core instance $main (instantiate $main (with "h" (instance
      (export "nested" (func $nested)) (export "bytes" (func $bytes))))))
    (func (export "nested") (param "count" u32) (canon lift (core func $main "nested")))
    (func (export "bytes") (param "count" u32) (canon lift (core func $main "bytes"))))`,
  );
  let length = 0;
  const take = (list: unknown[]) => void (length = list.length);
  const pass = (name: string, count: number) => {
    component.instantiate({}, { nested: take, bytes: take }).call({}, name, count);
    return length;
  };
  const reason = { message: "the values of one call are too large" };
  assert.equal(pass("nested", 1000), 1000);
  assert.throws(() => pass("nested", 1_000_000), reason);
  assert.equal(pass("bytes", 1000), 1000);
  assert.throws(() => pass("bytes", 3_000_000), reason);
});
