/**
 * Progress on a terminal: an activity that takes over a second shows a line and removes it, a quick one shows none, and
 * without a terminal nothing is shown. No test depends on the speed of the machine: a module grows until its
 * compilation takes long enough, and a registry answers late.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasPty, type Run, waft, waftTyped } from "./waft.ts";

/** Removes the line; the last thing that progress writes. */
const CLEAR = "\r\u001b[K";
const LINE = /… [0-9]+ s/;

function progressTest(name: string, work: (folder: string) => Promise<void>): void {
  Deno.test({
    name: `progress: ${name}${hasPty() ? "" : " (ignored: python3 with pty is needed for a pseudo-terminal)"}`,
    ignore: !hasPty(),
    async fn() {
      const folder = mkdtempSync(join(tmpdir(), "waft-progress-"));
      try {
        await work(folder);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  });
}

/** A module with `count` functions of some forty instructions. */
function functions(count: number): string {
  const body = "(local.set 0 (i32.add (i32.mul (local.get 0) (i32.const 7)) (i32.load (local.get 0))))".repeat(8);
  const rest = Array.from({ length: count }, () => `(func (param i32) (result i32) ${body} (local.get 0))`).join("\n");
  return `(module (memory 1) (func (export "main") (result i32) (i32.const 42)) ${rest})`;
}

/** Compiles modules of growing size, each twice the size of the one before, until one shows progress. */
async function untilShown(folder: string, run: (file: string) => Promise<Run>): Promise<{ file: string; out: string }> {
  for (let count = 1000; count <= 256_000; count *= 2) {
    const file = `functions${count}.wat`;
    writeFileSync(join(folder, file), functions(count));
    const { code, out } = await run(file);
    assert.equal(code, 0, out);
    if (LINE.test(out)) return { file, out };
  }
  throw new Error("no compilation showed progress");
}

progressTest("a long compilation shows a line, a short one none, a pipe none", async (folder) => {
  const run = (file: string) => waftTyped(["run", "--no-cache", file], [], folder, folder);
  writeFileSync(join(folder, "small.wat"), functions(1));
  const small = await run("small.wat");
  assert.doesNotMatch(small.out, /…/);
  assert.ok(small.code === 0 && small.out.endsWith("42\r\n"), small.out);
  const { file, out } = await untilShown(folder, run);
  assert.match(out, /compiling functions[0-9]+\.wat … 1 s/);
  assert.ok(out.endsWith(`${CLEAR}42\r\n`), "the line is removed before the result");
  const piped = await waft(["run", "--no-cache", file], folder, folder);
  assert.deepEqual([piped.code, piped.out, piped.err], [0, "42\n", ""]);
});

progressTest("compiling to a file shows how much is done, and at the end size and time", async (folder) => {
  const run = (file: string) => waftTyped(["compile", file, "-o", "out.waftbin"], [], folder, folder);
  const { out } = await untilShown(folder, run);
  assert.match(out, /… [0-9]+ s, [0-9]+ %/);
  assert.match(out.slice(out.lastIndexOf(CLEAR)), /Kout\.waftbin: [0-9.]+ (?:KiB|MiB) in [0-9]+\.[0-9] s\r\n$/);
  writeFileSync(join(folder, "one.wat"), functions(1));
  const piped = await waft(["compile", "one.wat", "-o", "one.waftbin"], folder, folder);
  assert.deepEqual([piped.code, piped.out, piped.err], [0, "", ""]);
});

/** A registry that answers each request late, so that a command waits for over a second. */
async function lateRegistry(work: (address: string) => Promise<void>): Promise<void> {
  const server: Server = createServer((_, response) => {
    setTimeout(() => response.writeHead(404, { "content-type": "application/json" }).end("{}"), 2500);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

progressTest(
  "a command that waits for a registry shows a line; in a pipe it shows none",
  (folder) =>
    lateRegistry(async (address) => {
      writeFileSync(join(folder, "waft.json"), "{}");
      const words = ["add", "github.com/acme/kv", "--registry", address];
      const shown = await waftTyped(words, [], folder, folder);
      assert.match(shown.out, LINE);
      assert.ok(shown.out.lastIndexOf(CLEAR) > shown.out.search(LINE), "the line is removed");
      const piped = await waft(words, folder, folder);
      assert.doesNotMatch(piped.out + piped.err, /…|\r/);
      assert.equal(piped.code, shown.code);
    }),
);
