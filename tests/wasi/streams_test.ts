/**
 * Standard streams that are files: descriptors that the program opened with `node:fs`, and keeps.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ERRNO, FILETYPE } from "../../engine/wasi/abi.ts";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { BUFFER, RawGuest } from "./raw_guest.ts";

type Stdio = readonly [input: number, output: number, errors: number];

/** Runs `body` with files as standard streams: the input "first\nsecond\n", and two empty outputs. */
function withFiles(body: (guest: RawGuest, stdio: Stdio, text: (stream: 1 | 2) => string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-files-"));
  const paths = ["in", "out", "err"].map((name) => join(folder, name));
  writeFileSync(paths[0], "first\nsecond\n");
  const stdio = paths.map((path, stream) => openSync(path, stream === 0 ? "r" : "w")) as [number, number, number];
  try {
    const guest = new RawGuest({ stdio });
    body(guest, stdio, (stream) => readFileSync(paths[stream], "utf8"));
    guest.close();
  } finally {
    for (const fd of stdio) closeSync(fd);
    removeFolder(folder);
  }
}

Deno.test("files as standard streams: the guest and the program read and write one behind the other", () => {
  withFiles((guest, [input, output], text) => {
    assert.deepEqual(guest.read(0, 6), { errno: 0, text: "first\n" });
    const byte = new Uint8Array(1);
    assert.deepEqual([readSync(input, byte), byte[0]], [1, "s".charCodeAt(0)]);
    assert.deepEqual(guest.read(0), { errno: 0, text: "econd\n" });
    assert.deepEqual(guest.read(0), { errno: 0, text: "" });
    writeSync(output, "program\n");
    assert.equal(guest.write(1, "guest\n"), 0);
    assert.equal(guest.write(1, ""), 0);
    writeSync(output, "program again\n");
    assert.equal(guest.write(2, "errors\n"), 0);
    assert.equal(guest.call("fd_sync", 1), 0);
    assert.deepEqual([text(1), text(2)], ["program\nguest\nprogram again\n", "errors\n"]);
  });
});

Deno.test("files as standard streams: vectors, status, wrong directions, closing", () => {
  withFiles((guest, [, output], text) => {
    guest.bytes(BUFFER, 6).set(new TextEncoder().encode("abcdef"));
    const vectors = 512;
    [BUFFER, 2, 0, 0, BUFFER + 2, 4].forEach((word, k) => guest.view.setUint32(vectors + 4 * k, word, true));
    assert.deepEqual([guest.call("fd_write", 1, vectors, 3, 0), guest.u32()], [0, 6]);
    assert.equal(guest.call("fd_filestat_get", 1, 0), 0);
    assert.deepEqual([guest.bytes(16, 1)[0], guest.u64(32)], [FILETYPE.regular_file, 6n]);
    assert.equal(guest.write(0, "x"), ERRNO.badf);
    assert.equal(guest.read(1).errno, ERRNO.badf);
    assert.equal(guest.call("fd_close", 1), 0);
    assert.equal(guest.write(1, "x"), ERRNO.badf);
    writeSync(output, "\n");
    assert.equal(text(1), "abcdef\n");
  });
});

Deno.test("files as standard streams: a descriptor that the program has closed is refused", () => {
  const [program, first] = hostCommand(fileURLToPath(new URL("./closed_stream_program.ts", import.meta.url)));
  const { stdout, stderr } = spawnSync(program, first, { encoding: "utf8", timeout: CHILD_TIMEOUT });
  assert.equal(stdout, `${ERRNO.badf}\n`, stderr);
});
