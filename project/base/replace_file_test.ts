/**
 * Outputs of commands: regular files are replaced as a whole, links are followed, other files are written as they are.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  lchownSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { systemName } from "@waft/engine/internal/host/process";
import { planFile, writeOutput } from "./replace_file.ts";

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
  name: "a new output has the permissions that the umask leaves, and a kept one those of before",
  ignore: systemName() === "win32", // permissions of POSIX
  fn() {
    const folder = mkdtempSync(join(tmpdir(), "waft-output-"));
    const at = (name: string) => join(folder, name);
    const umask = process.umask(0o027);
    try {
      writeOutput(at("new"), "text");
      assert.equal(statSync(at("new")).mode & 0o777, 0o640);
      chmodSync(at("new"), 0o664);
      writeOutput(at("new"), "text");
      assert.equal(statSync(at("new")).mode & 0o777, 0o664);
      symlinkSync("named", at("dangling"));
      writeOutput(at("dangling"), "text");
      assert.equal(statSync(at("named")).mode & 0o777, 0o640);
      planFile(at("secret"))("text", 0o600);
      assert.equal(statSync(at("secret")).mode & 0o777, 0o600);
    } finally {
      process.umask(umask);
      rmSync(folder, { recursive: true });
    }
  },
});

Deno.test({
  name: "an output does not follow a link that another user has placed in a directory like /tmp",
  ignore: systemName() === "win32" || process.getuid?.() !== 0, // only root can give links to other users
  fn() {
    const folder = mkdtempSync(join(tmpdir(), "waft-output-"));
    const at = (name: string) => join(folder, name);
    try {
      writeFileSync(at("precious"), "old");
      symlinkSync("precious", at("link"));
      lchownSync(at("link"), 65534, 65534);
      chmodSync(folder, 0o1777);
      assert.throws(() => writeOutput(at("link"), "new"), /symbolic link of another user \(65534\)/);
      assert.equal(readFileSync(at("precious"), "utf8"), "old");
      chmodSync(folder, 0o755);
      writeOutput(at("link"), "new");
      assert.equal(readFileSync(at("precious"), "utf8"), "new");
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
