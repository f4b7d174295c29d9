/**
 * The scripts that start an installed version: a relative home directory, and caches that other users can write.
 * In: launcher.sh and start.sh with a Deno that prints its arguments.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
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
    assert.doesNotMatch(start(script, { HOME: home }), /--no-code-cache/, "an own cache");
    for (const directory of [cache, join(cache, "deno")]) {
      chownSync(directory, 65534, 65534);
      assert.match(start(script, { HOME: home }), /^started run -A .* --no-code-cache .*lib\/waft\.js run$/m);
      assert.match(start("launcher", { HOME: home }), /--no-code-cache/);
      chownSync(directory, process.getuid!(), process.getgid!());
    }
  });
});

Deno.test({ name: "other users cannot write to a new cache of compiled code", ignore: LACKS_POSIX_FILES }, () => {
  withVersion((start, root) => {
    const home = join(root, "home");
    const before = process.umask(0);
    try {
      for (const script of ["launcher", join(home, ".local/share/waft/versions/1.0.0/waft")]) {
        rmSync(join(home, ".cache"), { recursive: true, force: true });
        assert.doesNotMatch(start(script, { HOME: home }), /--no-code-cache/);
        for (const name of [".cache", ".cache/waft", ".cache/waft/deno"]) {
          assert.equal(statSync(join(home, name)).mode & 0o022, 0, name);
        }
      }
    } finally {
      process.umask(before);
    }
  });
});

Deno.test({ name: "no compiled code is taken from the current directory", ignore: LACKS_POSIX_FILES }, () => {
  withVersion((start, root) => {
    const script = join(root, "home/.local/share/waft/versions/1.0.0/waft");
    const environments: { [name: string]: string }[] = [
      { HOME: "home" },
      { HOME: ".", XDG_CACHE_HOME: "home" },
      { HOME: root, WAFT_HOME: "home" },
    ];
    for (const env of environments) {
      assert.match(start(script, env), /--no-code-cache/, JSON.stringify(env));
    }
  });
});
