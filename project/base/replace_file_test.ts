/**
 * Outputs of commands: regular files are replaced as a whole, links are followed, other files are written as they are.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, lstatSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemName } from "@waft/engine/internal/host/process";
import { writeOutput } from "./replace_file.ts";

Deno.test({
  name: "an output keeps permissions and links, and creates the target of a dangling link",
  ignore: systemName() === "win32", // permissions and links of POSIX
  fn() {
    const folder = mkdtempSync(join(tmpdir(), "waft-output-"));
    const at = (name: string) => join(folder, name);
    try {
      writeFileSync(at("tool"), "old");
      chmodSync(at("tool"), 0o750);
      symlinkSync("tool", at("link"));
      symlinkSync("nothing", at("dangling"));
      const { ino } = statSync(at("tool"));
      writeOutput(at("link"), "new");
      assert.equal(readFileSync(at("tool"), "utf8"), "new");
      assert.equal(statSync(at("tool")).mode & 0o777, 0o750);
      assert.notEqual(statSync(at("tool")).ino, ino, "the file is replaced, not overwritten");
      assert(lstatSync(at("link")).isSymbolicLink());
      writeOutput(at("dangling"), "made");
      assert.equal(readFileSync(at("nothing"), "utf8"), "made");
      writeOutput("/dev/null", "gone");
      assert(statSync("/dev/null").isCharacterDevice());
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
});

Deno.test({
  name: "an output to a pipe reaches its reader",
  ignore: systemName() === "win32", // no named pipes in the file system
  fn() {
    const folder = mkdtempSync(join(tmpdir(), "waft-output-"));
    const pipe = join(folder, "pipe");
    try {
      assert.equal(spawnSync("mkfifo", [pipe]).status, 0);
      const reader = new Deno.Command("cat", { args: [pipe], stdout: "piped" }).spawn();
      writeOutput(pipe, "through");
      return reader.output().then(({ stdout }) => assert.equal(new TextDecoder().decode(stdout), "through"));
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
});
