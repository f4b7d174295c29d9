/** Watched files: a change is reported once it is complete, and none is missed before the watch begins. */
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileState, watchFile } from "./file_watch.ts";

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
}

Deno.test("a file that changes between its first reading and the watch is reported, and so is its replacement", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-watch-"));
  try {
    const path = join(folder, "watched");
    writeFileSync(path, "one");
    const state = fileState(path);
    writeFileSync(path, "changed");
    let changes = 0;
    watchFile(path, state, () => changes++);
    await until(() => changes === 1);
    writeFileSync(join(folder, "new"), "replaced");
    renameSync(join(folder, "new"), path);
    await until(() => changes === 2);
    rmSync(path);
    assert.equal(fileState(path), undefined);
    // A file that comes back has changed.
    writeFileSync(path, "again, and longer");
    await until(() => changes === 3);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
