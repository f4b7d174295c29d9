/**
 * Standard streams that the host has made nonblocking, as Node does with pipes: a guest that has not asked for that
 * waits for them, and is not told EAGAIN, which programs report or take for lost output.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { BUFFER, RawGuest } from "./raw_guest.ts";
import { makeFifo } from "./system_call.ts";

/** Runs `body` with a FIFO and a nonblocking descriptor of it. */
function withFifo(body: (path: string, fd: number) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-fifo-"));
  const path = join(folder, "fifo");
  makeFifo(path);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  try {
    body(path, fd);
  } finally {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  }
}

/** Runs a command of the shell with `FIFO` in its environment, while the guest waits. */
function meanwhile(command: string, path: string): void {
  spawn("sh", ["-c", command], { env: { ...process.env, FIFO: path }, stdio: "ignore" }).unref();
}

Deno.test({
  name: "a read of a nonblocking standard input waits for bytes",
  ignore: LACKS_POSIX_FILES,
  fn: () =>
    withFifo((path, fd) => {
      const guest = new RawGuest({ stdio: [fd, fd, fd] });
      meanwhile('sleep 0.1; printf later > "$FIFO"', path);
      assert.equal(guest.call("fd_read", 0, guest.vector(BUFFER, 100), 1, 0), 0);
      assert.equal(guest.text(BUFFER, guest.u32()), "later");
      guest.close();
    }),
});

Deno.test({
  name: "a write to a full nonblocking standard output waits for room",
  ignore: LACKS_POSIX_FILES,
  fn: () =>
    withFifo((path, fd) => {
      const guest = new RawGuest({ stdio: [fd, fd, fd] });
      assert.throws(() => {
        for (;;) writeSync(fd, new Uint8Array(4096));
      });
      meanwhile('sleep 0.1; head -c 8192 "$FIFO"', path);
      assert.equal(guest.call("fd_write", 1, guest.vector(BUFFER, 100), 1, 0), 0);
      assert.equal(guest.u32(), 100);
      guest.close();
    }),
});
