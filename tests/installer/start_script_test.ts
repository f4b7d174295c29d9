/**
 * The scripts that start an installed version: a relative home directory, and a cache of another user.
 * In: launcher.sh and start.sh with a Deno that prints its arguments.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";

const INSTALLER = fileURLToPath(new URL("../../installer/", import.meta.url));

/** A version in `directory`, and the function that runs a script with variables of the environment. */
function withVersion(work: (start: (script: string, env: { [name: string]: string }) => string, root: string) => void) {
  const root = mkdtempSync(join(tmpdir(), "waft-start-"));
  try {
    const version = join(root, "home/.local/share/waft/versions/1.0.0");
    mkdirSync(version, { recursive: true });
    mkdirSync(join(root, "home/.local/state/waft"), { recursive: true });
    writeFileSync(join(root, "home/.local/state/waft/active.json"), '{"current":"1.0.0"}\n');
    for (const name of ["start", "waft"]) copyFileSync(join(INSTALLER, `${name}.sh`), join(version, name));
    copyFileSync(join(INSTALLER, "launcher.sh"), join(root, "launcher"));
    writeFileSync(join(version, "receipt.json"), "{}");
    writeFileSync(join(version, "deno"), '#!/bin/sh\necho "started $*"\n');
    chmodSync(join(version, "deno"), 0o755);
    const start = (script: string, env: { [name: string]: string }): string => {
      const { stdout, stderr } = spawnSync("sh", [script, "run"], {
        cwd: root,
        env: { PATH: process.env.PATH!, ...env },
        encoding: "utf8",
      });
      return stdout + stderr;
    };
    work(start, root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

Deno.test({ name: "the launcher refuses a relative home directory", ignore: LACKS_POSIX_FILES }, () => {
  withVersion((start, root) => {
    assert.match(start("launcher", { HOME: join(root, "home") }), /^started run -A --quiet /);
    for (const HOME of ["home", "./home", ""]) {
      assert.match(start("launcher", { HOME }), /HOME is not set to an absolute path, and WAFT_HOME is not set/);
    }
  });
});

Deno.test({
  name: `no compiled code is taken from a cache of another user${
    process.getuid?.() === 0 ? "" : " (ignored: only root can make one)"
  }`,
  ignore: process.getuid?.() !== 0,
}, () => {
  withVersion((start, root) => {
    const home = join(root, "home");
    const script = join(home, ".local/share/waft/versions/1.0.0/waft");
    const cache = join(home, ".cache/waft");
    assert.doesNotMatch(start(script, { HOME: home }), /--no-code-cache/, "no cache yet");
    mkdirSync(cache, { recursive: true });
    assert.doesNotMatch(start(script, { HOME: home }), /--no-code-cache/, "an own cache");
    chownSync(cache, 65534, 65534);
    assert.match(start(script, { HOME: home }), /^started run -A .* --no-code-cache .*lib\/waft\.js run$/m);
    assert.match(start("launcher", { HOME: home }), /--no-code-cache/);
  });
});
