/**
 * Disks without space: every operation that writes files fails with one clear error and leaves old or new files
 * (full_disk_program.ts has the scenarios). The disk is a tmpfs in a separate mount namespace, which needs no
 * privileges where the system permits user namespaces.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("./full_disk_program.ts", import.meta.url));
/** Mounts the disk, runs the rest of the arguments with its path, and removes the directory after the namespace. */
const SCRIPT = 'mount -t tmpfs -o size=1200k,nr_inodes=400 none "$0" && exec "$@" "$0"';
/** The namespace, with and without privileges of the user. */
const NAMESPACES = [["-Urm"], ["-m"]];
/** Failures of all scenarios together; fewer would mean that a disk was never full. */
const FEWEST = 120;

function inNamespace(flags: readonly string[], disk: string, command: readonly string[]) {
  return spawnSync("unshare", [...flags, "sh", "-c", SCRIPT, disk, ...command], { encoding: "utf8" });
}

const disk = Deno.makeTempDirSync({ prefix: "waft-full-" });
const flags = NAMESPACES.find((candidate) => inNamespace(candidate, disk, ["true"]).status === 0);
Deno.removeSync(disk);

Deno.test({
  name: flags === undefined
    ? "operations on a full disk (ignored: this user can make no namespace with a small disk)"
    : "operations on a full disk: a clear error, old or new files, nothing left over",
  ignore: flags === undefined,
  fn() {
    const disk = Deno.makeTempDirSync({ prefix: "waft-full-" });
    try {
      const command = [Deno.execPath(), "run", "-A", "--no-check", PROGRAM];
      const { status, stdout, stderr } = inNamespace(flags!, disk, command);
      assert.equal(status, 0, stderr);
      const counts = Object.entries(JSON.parse(stdout) as Record<string, number>);
      assert(counts.every(([, failures]) => failures > 0), stdout);
      assert(counts.reduce((sum, [, failures]) => sum + failures, 0) >= FEWEST, stdout);
    } finally {
      Deno.removeSync(disk);
    }
  },
});
