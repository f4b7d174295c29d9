/**
 * Logs with right checksums and wrong contents: one bit of each byte of the events changed, in replays and in
 * descriptions; chunks with wrong lengths.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { deflateRawSync } from "node:zlib";
import { host, NewEngine } from "../mod.ts";
import { recordingFacts } from "./describe.ts";
import { EVENT } from "./events.ts";
import { LogReader, LogWriter, RecordingError } from "./log_file.ts";
import { Recorder } from "./recorder.ts";
import { replay } from "./replay.ts";

const TEXT = `(module
  (import "env" "f" (func $f (param i32 externref) (result i64)))
  (import "env" "memory" (memory 1 4)) (import "env" "table" (table 1 3 externref))
  (global (export "g") (mut externref) (ref.null extern)) (table (export "t") 2 funcref)
  (func $run (export "run") (param i32) (result i64)
    (i32.store8 (i32.const 9) (local.get 0)) (call $f (local.get 0) (table.get 0 (i32.const 0)))))`;

/** A log with host calls, exceptions, and changes of every kind. */
function sampleLog(): Uint8Array {
  const recorder = new Recorder(TEXT);
  const memory = host.memory(1, 4);
  const table = host.table("externref", 1, 3);
  const f = (n: number) => {
    new Uint8Array(memory.buffer)[n] = n;
    if (n === 3) throw new RangeError("three");
    if (n === 2) memory.grow(1);
    table.set(0, { n });
    return BigInt(n);
  };
  const { exports } = NewEngine({ deterministic: true, fuel: true }).compile(TEXT)
    .instantiate({ record: recorder }, { env: { f, memory, table } });
  const { run, g, t } = exports as unknown as {
    run: (n: number) => bigint;
    g: { value: unknown };
    t: { set(index: number, value: unknown): void };
  };
  run(1);
  g.value = "text";
  t.set(1, run);
  table.grow(1, 5n);
  run(2);
  assert.throws(() => run(3), RangeError);
  return recorder.finish().log;
}

/** Each name is that of a string builtin; only the last import is one by namespace, name and type. */
const BUILTIN_NAMES = `(module
  (import "x" "test" (func (param externref) (result i32)))
  (import "wasm:js-string" "toString" (func (param externref) (result i32)))
  (import "wasm:js-string" "test" (func (param i64) (result i32)))
  (import "wasm:js-string" "charCodeAt" (func (param i64 i32) (result i32)))
  (import "wasm:js-string" "length" (func (param externref) (result i32)))
  (func (export "run")))`;

Deno.test("an import that a log calls a builtin must be one by namespace, name and type", () => {
  const recorder = new Recorder(BUILTIN_NAMES);
  const host = { test: () => 0, toString: () => 0, charCodeAt: () => 0, length: () => 0 };
  NewEngine({ deterministic: true }).compile(BUILTIN_NAMES)
    .instantiate({ record: recorder }, { x: host, "wasm:js-string": host }).call({}, "run");
  const { log } = recorder.finish();
  const forms = (events: Uint8Array) => Buffer.from(events).indexOf(Buffer.alloc(5));
  const claiming = (index: number, form = 1) => rewritten(log, (events) => void (events[forms(events) + index] = form));
  const names = [
    `"x" "test"`,
    `"wasm:js-string" "toString"`,
    `"wasm:js-string" "test"`,
    `"wasm:js-string" "charCodeAt"`,
  ];
  names.forEach((name, index) => {
    const error = errorOf(() => replay(claiming(index)));
    assert.ok(error instanceof RecordingError, `${error}`);
    assert.ok(error.message.includes(`the import ${name} is not a builtin`), error.message);
  });
  assert.throws(() => replay(claiming(4, 2)), { name: "RecordingError", message: /"length" is not a builtin/ });
  assert.equal(replay(claiming(4)).hash, replay(log).hash);
});

/** Code that relies on the contents of its private table and global, and on tables without null. */
const PRIVATE = `(module
  (type $number (func (param i64) (result i32))) (type $reference (func (param externref) (result i32)))
  (import "env" "f" (func $f))
  (table $private 2 funcref) (elem (table $private) (i32.const 0) func $one $two)
  (table $whole (export "whole") 1 4 (ref $number) (ref.func $one))
  (global $fixed (export "fixed") i32 (i32.const 1)) (global $hidden (mut i32) (i32.const 1))
  (memory $hiddenMemory 1)
  (func $one (type $number) (i32.const 1)) (func $two (type $number) (i32.const 1))
  (func $other (export "other") (type $reference) (i32.const 1))
  (func (export "run") (param i32) (result i32)
    (call $f) (global.set $hidden (i32.const 1))
    (call_indirect $private (type $number) (i64.const 0x4141) (local.get 0))))`;

Deno.test("a log changes nothing that the host cannot reach", () => {
  const recorder = new Recorder(PRIVATE);
  const { exports } = NewEngine({ deterministic: true }).compile(PRIVATE)
    .instantiate({ record: recorder }, { env: { f: () => {} } });
  (exports as unknown as { run: (n: number) => number }).run(1);
  const { log } = recorder.finish();
  /** The log with `parts` as the changes of the host function. */
  const changing = (...parts: number[]) =>
    rewritten(log, (events) => {
      const at = Buffer.from(events).indexOf(Buffer.from([EVENT.HOST, 0, 0, EVENT.RETURN, 0, 0])) + 4;
      return Uint8Array.from([...events.subarray(0, at), ...parts, ...events.subarray(at)]);
    });
  const [PAGES, BYTES, CELL, LENGTH, ELEMENT, FUNCTION] = [1, 2, 4, 5, 6, 11];
  const rows: readonly (readonly [parts: readonly number[], error: RegExp])[] = [
    [[ELEMENT, 0, 1, FUNCTION, 3], /the host cannot change index 0/],
    [[LENGTH, 0, 9], /the host cannot change index 0/],
    [[CELL, 0, 4, 2, 0, 0, 0], /the host cannot change index 0/],
    [[CELL, 1, 4, 2, 0, 0, 0], /the host cannot change index 1/],
    [[PAGES, 0, 2], /the host cannot change index 0/],
    [[BYTES, 0, 0, 1, 7], /the host cannot change index 0/],
    [[LENGTH, 1, 2], /an element without a value/],
    [[ELEMENT, 1, 0, FUNCTION, 3], /a value whose type is not/],
  ];
  for (const tier of ["baseline", "optimizing"] as const) {
    for (const [parts, message] of rows) {
      assert.throws(() => replay(changing(...parts), { tier }), { name: "RecordingError", message });
    }
    assert.equal(replay(changing(), { tier }).hash, replay(log).hash);
  }
});

/** The error of `action`; undefined if it succeeds. */
function errorOf(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}

Deno.test("wrong contents are a RecordingError, or another run that is possible", () => {
  const reader = new LogReader(sampleLog());
  assert.equal(reader.kind, 1);
  const events = reader.current.bytes.slice();
  let refused = 0;
  for (let at = 0; at < events.length; at++) {
    const bytes = events.slice();
    bytes[at] ^= 1 << (at * 3 % 8);
    const writer = new LogWriter(reader.module);
    writer.event(bytes[0]);
    writer.out.raw(bytes.subarray(1));
    const log = writer.finish();
    for (const error of [errorOf(() => replay(log)), errorOf(() => recordingFacts(log))]) {
      assert.ok(error === undefined || error instanceof RecordingError, `byte ${at}: ${error}`);
      if (error !== undefined) refused++;
    }
  }
  assert.ok(refused > events.length / 2);
});

/** A log whose first chunk announces `length` bytes and has `packed` as its data, with right checksums. */
function announcing(length: number, packed: Uint8Array): Uint8Array {
  const head = Buffer.concat([Buffer.from("\0waftrec"), Buffer.from([1, 0, 0, 0])]);
  const announced = [];
  for (let left = length; announced.length === 0 || left > 0; left = Math.floor(left / 128)) {
    announced.push((left % 128) | (left >= 128 ? 128 : 0));
  }
  const payload = Buffer.concat([Buffer.from(announced), packed]);
  const parts: Uint8Array[] = [head];
  let checksum: Uint8Array = createHash("sha256").update(head).digest().subarray(0, 16);
  for (const [kind, body] of [[1, payload], [3, Buffer.from([0])]] as const) {
    const chunk = Buffer.concat([Buffer.from([kind, 0, 0, 0, 0]), body]);
    chunk.writeUInt32LE(body.length, 1);
    checksum = createHash("sha256").update(checksum).update(chunk).digest().subarray(0, 16);
    parts.push(chunk, checksum);
  }
  return Buffer.concat(parts);
}

/** `log` with another version in its head, with right checksums. */
function withVersion(log: Uint8Array, version: number): Uint8Array {
  const bytes = Buffer.from(log);
  const HEAD = 12;
  bytes.writeUInt32LE(version, HEAD - 4);
  let checksum: Uint8Array = createHash("sha256").update(bytes.subarray(0, HEAD)).digest().subarray(0, 16);
  for (let at = HEAD; at < bytes.length;) {
    const end = at + 5 + bytes.readUInt32LE(at + 1);
    checksum = createHash("sha256").update(checksum).update(bytes.subarray(at, end)).digest().subarray(0, 16);
    bytes.set(checksum, end);
    at = end + 16;
  }
  return bytes;
}

Deno.test("a log of version 1 is replayed, one of an unknown version is refused", () => {
  const log = sampleLog();
  assert.equal(replay(withVersion(log, 1)).hash, replay(log).hash);
  for (const version of [0, 4]) {
    assert.throws(() => replay(withVersion(log, version)), {
      name: "RecordingError",
      message: `The recording cannot be read: it has version ${version}, but this build reads versions 1 to 3`,
    });
  }
});

Deno.test("a chunk that announces more than its payload may hold is refused before it is inflated", () => {
  const small = deflateRawSync(new Uint8Array(1000));
  const rows: readonly (readonly [length: number, packed: Uint8Array, error: RegExp])[] = [
    [2 ** 31 - 1, small, /a chunk is too long/],
    [2 ** 32 - 1, small, /a chunk is too long/],
    [(1 << 24) + 1, small, /a chunk is too long/],
    [1 << 24, small, /the contents of a chunk are malformed/],
    [999, small, /the contents of a chunk are malformed/],
    [64 * 2 ** 20, deflateRawSync(new Uint8Array(64 * 2 ** 20)), /a chunk is too long/],
  ];
  for (const [length, packed, error] of rows) assert.throws(() => new LogReader(announcing(length, packed)), error);
});

Deno.test("long contents that shrink far are stored, and read again", () => {
  const module = new Uint8Array(20 * 2 ** 20);
  module[5] = 9;
  const log = new LogWriter(module).finish();
  assert.ok(log.length > module.length / 64);
  assert.equal(Buffer.compare(new LogReader(log).module, module), 0);
});

Deno.test("a description of a recording is short, whatever values it has", () => {
  const writer = new LogWriter(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
  const done = (write: (out: LogWriter["out"]) => void) => {
    const out = writer.event(11);
    out.u32(0);
    out.u32(1);
    write(out);
  };
  const bigint = (digits: string) =>
    done((out) => {
      out.u8(10);
      out.name(digits);
    });
  bigint("-ff");
  bigint("f".repeat(1 << 20));
  done((out) => {
    out.u8(9);
    out.u32(1 << 20);
    for (let k = 0; k < 1 << 20; k++) out.u32(97);
  });
  const many = writer.event(11);
  many.u32(0);
  many.u32(1 << 16);
  for (let k = 0; k < 1 << 16; k++) many.u8(0);
  const { first } = recordingFacts(writer.finish());
  assert.match(first[3], /^done (object null, ){16}and 65520 more$/);
  assert.deepEqual(first.slice(0, 2), ["done bigint -255", "done bigint a number of more than 1024 bits"]);
  assert.match(first[2], /^done string "a+"…$/);
  assert.ok(first[2].length < 2000, `${first[2].length} characters`);
});

/** A log of a program that exhausts its stack, recorded with frames of the machine. */
function exhaustedLog(): Uint8Array {
  const recorder = new Recorder(ENDLESS);
  const instance = NewEngine({ deterministic: true, stack: "native" }).compile(ENDLESS)
    .instantiate({ record: recorder });
  assert.throws(() => instance.call({}, "run", 0), { message: "call stack exhausted" });
  return recorder.finish().log;
}

const ENDLESS = `(module (memory 1)
  (func $run (export "run") (param i32) (result i32) (i32.store (i32.const 0) (local.get 0))
    (i32.add (i32.const 1) (call $run (i32.add (local.get 0) (i32.const 1))))))`;

/** `log` with other contents of its only chunk of events, and an end that announces an exhausted stack or does not. */
function rewritten(log: Uint8Array, change: (events: Uint8Array) => unknown, announces = true): Uint8Array {
  const reader = new LogReader(log);
  assert.equal(reader.kind, EVENT.BEGIN);
  const given = reader.current.bytes.slice();
  const changed = change(given);
  const events = changed instanceof Uint8Array ? changed : given;
  const writer = new LogWriter(reader.module);
  writer.event(events[0]);
  writer.out.raw(events.subarray(1));
  writer.hasExhaustion = announces;
  return writer.finish();
}

Deno.test("another place of an exhausted stack than the recorded one is refused", () => {
  const log = exhaustedLog();
  const facts = recordingFacts(log);
  assert.equal(facts.stack, "native");
  const [, text] = /stack, at activation (\d+): run/.exec(JSON.stringify(facts))!;
  const depth = Number(text);
  const at = (events: Uint8Array) => Buffer.from(events).indexOf(Buffer.from(leb(EVENT.EXHAUSTED, depth)));
  assert.equal(replay(rewritten(log, () => {})).hash, replay(log).hash);
  const number = (value: number) => (events: Uint8Array) => events.set(leb(EVENT.EXHAUSTED, value), at(events));
  const rows: readonly (readonly [name: string, change: (events: Uint8Array) => void, announces: boolean, RegExp])[] = [
    ["a call less", number(depth - 1), true, /exhausts the stack/],
    ["a call more", number(depth + 1), true, /exhausts the stack/],
    ["a million calls more", number(depth + 1_000_000), true, /exhausts the stack/],
    ["no call", (events) => events.set([EVENT.EXHAUSTED, 0x80, 0x80, 0], at(events)), true, /a stack of 0 activations/],
    ["another function", (events) => events[at(events) + 5] ^= 1, true, /exhausts the stack/],
    ["another path", (events) => events[at(events) + 5 + 20] ^= 1, true, /exhausts the stack/],
    ["no announcement", () => {}, false, /does not announce/],
  ];
  for (const [name, change, announces, message] of rows) {
    const error = errorOf(() => replay(rewritten(log, change, announces)));
    assert.ok(error instanceof RecordingError, `${name}: ${error}`);
    assert.match(error.message, message, name);
  }
});

/** An event's number and its first field. */
function leb(event: number, value: number): number[] {
  const bytes = [event];
  for (; value >= 128; value >>>= 7) bytes.push(value & 127 | 128);
  return [...bytes, value];
}

Deno.test("a log with larger memories than a replay allows is refused, its own memory and an imported one", () => {
  const LARGE = `(module (memory 20000) (func (export "run")))`;
  const own = new Recorder(LARGE);
  const limits = { maxMemoryPages: 20_000 };
  NewEngine({ deterministic: true, limits }).compile(LARGE).instantiate({ record: own }).call({}, "run");
  const text = `(module (import "env" "m" (memory 1)) (func (export "run")))`;
  const imported = new Recorder(text);
  NewEngine({ deterministic: true }).compile(text)
    .instantiate({ record: imported }, { env: { m: host.memory(20_000) } }).call({}, "run");
  for (const { log } of [own.finish(), imported.finish()]) {
    const refused = /memories of 20000 pages, above the limit of 16384: raise it \(maxMemoryPages, --max-memory\)/;
    assert.throws(() => replay(log), (error) => error instanceof RecordingError && refused.test(error.message));
    assert.equal(replay(log, { maxMemoryPages: 20_000 }).calls, 1);
  }
  assert.throws(() => replay(sampleLog(), { maxMemoryPages: -1 }), /maxMemoryPages/);
  assert.throws(() => replay(sampleLog(), { maxMemoryPages: 1 }), /memories of 16384 pages/);
});
