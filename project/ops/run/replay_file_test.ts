/**
 * Replays of recordings with large outputs and values. In: logs of an fd_write that only stores its result, and of host
 * functions with huge values.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NewEngine } from "@waft/engine";
import { Recorder } from "@waft/engine/recording";
import type { FileFailure } from "../../base/failure.ts";
import { failureOf, replayFile } from "./replay_file.ts";

const PAGE_BYTES = 65536;
const PAGES = 40;

/** Calls fd_write with two vectors at 8, which are `length` bytes from 0 on. */
const TEXT = `(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") ${PAGES}) (data (i32.const 100) "text")
  (func (export "f") (param $length i32) (result i32)
    (i32.store (i32.const 12) (local.get $length)) (i32.store (i32.const 20) (local.get $length))
    (call $write (i32.const 1) (i32.const 8) (i32.const 2) (i32.const 0))))`;

/** The log of a run in which fd_write says that it has written `written` bytes. */
function logOf(length: number, written: number): Uint8Array {
  const recorder = new Recorder(TEXT);
  const fd_write = () => {
    new DataView((instance.exports["memory"] as { buffer: ArrayBuffer }).buffer).setUint32(0, written, true);
    return 0;
  };
  const instance = NewEngine({ deterministic: true, fuel: true }).compile(TEXT)
    .instantiate({ record: recorder }, { wasi_snapshot_preview1: { fd_write } });
  instance.call({}, "f", length);
  return recorder.finish().log;
}

Deno.test("the output of a replay comes in pieces, however much the recording says was written", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-replay-"));
  try {
    const file = join(folder, "log");
    const all = PAGES * PAGE_BYTES;
    const rows: readonly (readonly [length: number, written: number, expected: number])[] = [
      [200, 400, 400],
      [200, 0xffffffff, 400],
      [PAGE_BYTES + 1, 2 * PAGE_BYTES + 1, 2 * PAGE_BYTES + 1],
      [all, 2 * all, 2 * all],
      [-1, 0xffffffff, all],
    ];
    for (const [length, written, expected] of rows) {
      writeFileSync(file, logOf(length, written));
      const pieces: Uint8Array[] = [];
      replayFile(file, {}, (descriptor, bytes) => {
        assert.equal(descriptor, 1);
        assert.ok(bytes.length <= PAGE_BYTES, `${bytes.length} bytes at once`);
        pieces.push(bytes);
      });
      const output = Buffer.concat(pieces);
      assert.equal(output.length, expected);
      assert.equal(output.toString("latin1", 100, 104), "text");
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** The log of a run whose import returns, or throws, a value. */
function logOfValue(value: unknown, throws: boolean): Uint8Array {
  const text = `(module (import "e" "f" (func $f (result externref))) (export "f" (func $g))
    (func $g (result externref) (call $f)))`;
  const recorder = new Recorder(text);
  const f = () => {
    if (throws) throw value;
    return value;
  };
  const instance = NewEngine({ deterministic: true, fuel: true }).compile(text).instantiate({ record: recorder }, {
    e: { f },
  });
  try {
    instance.call({}, "f");
  } catch (error) {
    assert.ok(throws, String(error));
  }
  return recorder.finish().log;
}

Deno.test("huge values of the host are short in the results and messages of a replay", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-replay-"));
  const file = join(folder, "log");
  const replayed = (value: unknown, throws: boolean) => {
    writeFileSync(file, logOfValue(value, throws));
    const { run, error } = replayFile(file, {}, () => {});
    const failure = failureOf(file, error) as FileFailure | undefined;
    return throws ? [run.message, (failure?.cause as Error).message] : [...run.results];
  };
  try {
    assert.deepEqual(replayed(5n, false), ["5"]);
    assert.deepEqual(replayed(1n << 8_000_000n, false), ["a number of more than 1024 bits"]);
    const [message, printed] = replayed(-1n << 8_000_000n, true);
    assert.equal(message, "the host threw a number of more than 1024 bits");
    assert.equal(printed, message);
    assert.ok(replayed("\u001b".repeat(1 << 20), false).every((text) => text!.length < 10_000));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
