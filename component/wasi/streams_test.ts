/** wasi:io/streams of WASI 0.2 on descriptors that block. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemName } from "@waft/engine/internal/host/process";
import { ComponentWasi } from "./mod.ts";
import type { InputStream, OutputStream } from "./streams.ts";

/** Runs `test` with a pipe and a descriptor that reads it without waiting. */
async function withPipe(test: (pipe: number, reader: number) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "waft-streams-"));
  const path = join(folder, "pipe");
  assert.equal(spawnSync("mkfifo", [path]).status, 0);
  const pipe = openSync(path, "r+");
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    await test(pipe, reader);
  } finally {
    closeSync(reader);
    closeSync(pipe);
    rmSync(folder, { recursive: true });
  }
}

const ignore = systemName() === "win32"; // no named pipes in the file system

Deno.test({
  name: "blocking reads leave the thread to the event loop where waits do",
  ignore,
  fn: () =>
    withPipe(async (pipe) => {
      const wasi = new ComponentWasi({ stdio: [pipe, 1, 2], waitInEventLoop: true });
      const { getStdin } = wasi.imports["wasi:cli/stdin"] as { getStdin(): InputStream };
      const stdin = getStdin();
      const read = stdin.blockingRead(10n);
      assert.ok(read instanceof Promise);
      writeSync(pipe, "text");
      assert.equal((await read).length, 4);
      const skipped = stdin.blockingSkip(3n);
      assert.ok(skipped instanceof Promise);
      writeSync(pipe, "text");
      assert.equal(await skipped, 3n);
      wasi.close();
    }),
});

/** Bytes of a pattern that shows gaps and swapped pieces. */
const pattern = (length: number) => Uint8Array.from({ length }, (_, k) => k % 251);

/** Reads `count` bytes of a pipe, with turns of the event loop in between, in which its writer goes on. */
async function drain(reader: number, count: number): Promise<Uint8Array> {
  const all = new Uint8Array(count);
  for (let at = 0; at < count;) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    try {
      at += readSync(reader, all, at, Math.min(10_000, count - at), null);
    } catch (error) {
      if ((error as { code?: string }).code !== "EAGAIN") throw error;
    }
  }
  return all;
}

Deno.test({
  name: "writes to a full pipe leave the thread to the event loop where waits do",
  ignore,
  fn: () =>
    withPipe(async (pipe, reader) => {
      const wasi = new ComponentWasi({ stdio: [0, pipe, 2], waitInEventLoop: true });
      const { getStdout } = wasi.imports["wasi:cli/stdout"] as { getStdout(): OutputStream };
      const stdout = getStdout();
      const bytes = pattern(100_000);
      for (
        const write of [
          () => stdout.write(bytes),
          () => stdout.blockingWriteAndFlush(bytes),
          () => stdout.splice({ read: () => bytes, blockingRead: () => bytes }, 100_000n),
          () => stdout.blockingSplice({ read: () => bytes, blockingRead: () => bytes }, 100_000n),
        ]
      ) {
        const written = write();
        assert.ok(written instanceof Promise, "more than the pipe takes");
        assert.equal(stdout.checkWrite(), 0n);
        assert.deepEqual(await drain(reader, bytes.length), bytes);
        await written;
      }
      assert.equal(stdout.write(bytes.subarray(0, 100)), undefined, "at once where there is room");
      wasi.close();
    }),
});

Deno.test({
  name: "streams of WASI 0.3 to a full pipe leave the thread to the event loop",
  ignore,
  fn: () =>
    withPipe(async (pipe, reader) => {
      const wasi = new ComponentWasi({ stdio: [0, pipe, 2] });
      const { writeViaStream } = wasi.imports["wasi:cli/stdout@0.3.0"] as {
        writeViaStream(data: ReadableStream<Uint8Array>): { settled(): Promise<unknown> };
      };
      const bytes = pattern(200_000);
      const data = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(bytes.subarray(0, 150_000));
          controller.enqueue(bytes.subarray(150_000));
          controller.close();
        },
      });
      const outcome = writeViaStream(data);
      assert.deepEqual(await drain(reader, bytes.length), bytes);
      assert.deepEqual(await outcome.settled(), { tag: "ok" });
      wasi.close();
    }),
});
