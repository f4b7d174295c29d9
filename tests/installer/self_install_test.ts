/**
 * Installing and uninstalling waft: on both layouts, with and without WAFT_HOME, under each installed shell, with a
 * small bundle of the fixture and the real launcher. Afterwards the home directory is unchanged, byte for byte.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { readArchive } from "../../project/packages/archive.ts";
import { applyEdits, planPath, undoEdits } from "../../project/ops/versions/path_edit.ts";
import {
  installSelf,
  planUninstall,
  type SelfInstall,
  uninstallSelf,
} from "../../project/ops/versions/self_install.ts";
import { type MachineFacts, machinePaths } from "../../project/base/paths.ts";
import { dieAtStep } from "./die_at_step.ts";
import { contextFor, fakeBundle } from "./release_fixture.ts";

const LAUNCHER = readFileSync(fileURLToPath(new URL("../../installer/launcher.sh", import.meta.url)), "utf8");
const VERSION = "0.1.0";

function has(command: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${command}`]).status === 0;
}

/** The shells of this machine, as arguments to start a script with. */
const SHELLS: readonly (readonly string[])[] = [["dash"], ["bash"], ["zsh"], ["busybox", "sh"]].filter(([name]) =>
  has(name!)
);

/** All names below a directory with their contents. */
function snapshot(root: string, below = ""): string[] {
  return readdirSync(join(root, below)).sort().flatMap((name) => {
    const path = join(below, name);
    const status = statSync(join(root, path));
    return status.isDirectory()
      ? [`${path}/`, ...snapshot(root, path)]
      : [`${path} ${status.mode & 0o777} ${readFileSync(join(root, path), "utf8")}`];
  });
}

function unpackBundle(version: string): string {
  const folder = mkdtempSync(join(tmpdir(), "waft-unpacked-"));
  for (const [path, bytes] of readArchive(fakeBundle(version, { "lib/installer/launcher.sh": LAUNCHER }))) {
    const file = join(folder, path.slice(`waft-${version}/`.length));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes);
  }
  return folder;
}

const RECEIPT = {
  schemaVersion: 1,
  kind: "bundle",
  platform: "linux/amd64",
  commit: "a".repeat(40),
  sha256: "",
  installedAt: "2026-09-01T00:00:00Z",
} as const;

for (const os of ["linux", "darwin"]) {
  for (const withHome of [false, true]) {
    Deno.test(`self install and uninstall, ${os}${withHome ? ", WAFT_HOME" : ""}: nothing is left`, async () => {
      const home = mkdtempSync(join(tmpdir(), "waft-home with space-"));
      const from = unpackBundle(VERSION);
      try {
        writeFileSync(join(home, ".bashrc"), "echo mine"); // Without a final newline.
        chmodSync(join(home, ".bashrc"), 0o600);
        mkdirSync(join(home, ".config"));
        const before = snapshot(home);
        const env: { [name: string]: string } = { PATH: "/usr/bin:/bin", SHELL: "/bin/bash", HOME: home };
        if (withHome) env.WAFT_HOME = join(home, "over there");
        const facts = { env, os, home };
        const paths = machinePaths(facts);
        const path = await planPath(paths.bin, env, home);
        assert.deepEqual(path.edits.map((e) => [e.file.slice(home.length), e.created]), [
          ["/.bashrc", false],
          ["/.profile", true],
        ]);
        const context = contextFor(paths, { base: "http://127.0.0.1:1", keys: { threshold: 1, keys: [] } });
        const install = { from, receipt: { ...RECEIPT, version: VERSION }, bin: paths.bin, path };
        await installSelf(context, facts, install);
        // Again: nothing changes.
        const installed = snapshot(home);
        await installSelf(context, facts, { ...install, path: await planPath(paths.bin, env, home) });
        assert.deepEqual(snapshot(home), installed);

        for (const shell of SHELLS) {
          const run = (args: string[], more: object = {}) =>
            spawnSync(shell[0], [...shell.slice(1), join(paths.bin, "waft"), ...args], {
              env: { ...env, ...more },
              encoding: "utf8",
            });
          assert.equal(run(["a", "b c"]).stdout, `started ${VERSION} a b c\n`, shell.join(" "));
          assert.equal(run([`+${VERSION}`, "x"]).stdout, `started ${VERSION} x\n`);
          assert.match(run(["+9.9.9"]).stderr, /version 9\.9\.9 \(named by \+9\.9\.9\) is not installed/);
          assert.match(run([], { WAFT_RUNTIME: "../../x" }).stderr, /named by WAFT_RUNTIME has no valid name/);
          assert.equal(run(["+9.9.9"]).status, 1);
        }
        const shell = spawnSync(
          "bash",
          ["-c", '. "$HOME/.bashrc"; . "$HOME/.profile"; command -v waft; echo "$PATH"'],
          {
            env,
            encoding: "utf8",
          },
        ).stdout.split("\n");
        assert.deepEqual(shell.slice(0, 3), ["mine", join(paths.bin, "waft"), `${paths.bin}:${env.PATH}`]);

        const plan = await planUninstall(paths, false);
        assert.deepEqual(await uninstallSelf(paths, plan), []);
        assert.deepEqual(snapshot(home), before);
      } finally {
        rmSync(home, { recursive: true, force: true });
        rmSync(from, { recursive: true, force: true });
      }
    });
  }
}

/** A machine with start-up files, an unpacked bundle, and the expected installation of that bundle. */
async function onMachine(
  work: (all: { home: string; facts: MachineFacts; install: SelfInstall; before: string[] }) => Promise<void>,
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-home-"));
  const from = unpackBundle(VERSION);
  try {
    writeFileSync(join(home, ".bashrc"), "echo mine\n");
    const facts = { env: { PATH: "/usr/bin:/bin", SHELL: "/bin/bash", HOME: home }, os: "linux", home };
    const install = { from, receipt: { ...RECEIPT, version: VERSION }, bin: machinePaths(facts).bin };
    await work({ home, facts, install, before: snapshot(home) });
  } finally {
    rmSync(home, { recursive: true, force: true });
    rmSync(from, { recursive: true, force: true });
  }
}

/** All steps in the full test (`deno task test:installer`), otherwise every third: each step costs two processes. */
const STRIDE = process.env["WAFT_TEST_INSTALLER"] === "whole" ? 1 : 3;

/**
 * Asserts that only empty directories are left, and removes them: without a receipt, the directories that existed
 * before are unknown.
 */
function requireOnlyDirectories(home: string, before: readonly string[], step: number): void {
  const left = snapshot(home).filter((entry) => !before.includes(entry));
  assert.deepEqual(left.filter((entry) => !entry.endsWith("/")), [], `a file is left after step ${step}`);
  for (const directory of left.reverse()) rmdirSync(join(home, directory));
  assert.deepEqual(snapshot(home), before);
}

/** The launcher's output. */
function launch(facts: MachineFacts, bin: string): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(join(bin, "waft"), ["x"], { env: facts.env as { [name: string]: string }, encoding: "utf8" });
}

Deno.test("kill -9 at every step of self install: it works, or names the missing part; a second run completes it", () =>
  onMachine(async ({ home, facts, install, before }) => {
    let step = 0;
    const paths = machinePaths(facts);
    for (; await dieAtStep({ kind: "self install", facts, install, step }) === undefined; step += STRIDE) {
      if (existsSync(join(install.bin, "waft"))) {
        const { stdout, stderr } = launch(facts, install.bin);
        assert.equal(stdout, `started ${VERSION} x\n`, stderr);
      }
      // In every other case, a second attempt starts from the remains of the first.
      if (step % 2 === 1) {
        await dieAtStep({ kind: "self install", facts, install, step: -1 });
        assert.equal(launch(facts, install.bin).stdout, `started ${VERSION} x\n`);
      }
      assert.deepEqual(await uninstallSelf(paths, await planUninstall(paths, false)), []);
      requireOnlyDirectories(home, before, step);
    }
    assert.ok(step >= 18, `only ${step} steps`);
    assert.equal(launch(facts, install.bin).stdout, `started ${VERSION} x\n`);
    const shell = spawnSync("bash", ["-c", '. "$HOME/.bashrc"; command -v waft'], {
      env: facts.env as { HOME: string },
    });
    assert.equal(shell.stdout.toString(), `mine\n${join(install.bin, "waft")}\n`);
  }));

Deno.test("kill -9 at every step of self uninstall: again, or after installing again, nothing is left", () =>
  onMachine(async ({ home, facts, install, before }) => {
    const again = { kind: "self install", facts, install, step: -1 } as const;
    let step = 0;
    for (;; step += STRIDE) {
      await dieAtStep(again);
      assert.equal(launch(facts, install.bin).stdout, `started ${VERSION} x\n`);
      if (await dieAtStep({ kind: "self uninstall", facts, step }) !== undefined) break;
      if (existsSync(join(install.bin, "waft"))) {
        const { stdout, stderr } = launch(facts, install.bin);
        if (stdout === "") assert.match(stderr, /not installed|no version is active/);
      }
      // By the remaining waft, or by a newly installed one.
      if (step % 2 === 1) await dieAtStep(again);
      await dieAtStep({ kind: "self uninstall", facts, step: -1 });
      requireOnlyDirectories(home, before, step);
    }
    assert.ok(step >= 8, `only ${step} steps`);
    assert.deepEqual(snapshot(home), before);
  }));

Deno.test("path: the next change removes the leftovers of a killed process beside the start-up files", () =>
  onMachine(async ({ home, facts, install, before }) => {
    const left = join(home, ".bashrc.0123456789ab.tmp");
    writeFileSync(left, "half of it");
    writeFileSync(join(home, ".bashrc.mine.tmp"), "another program's");
    await dieAtStep({ kind: "self install", facts, install, step: -1 });
    assert.equal(existsSync(left), false);
    writeFileSync(left, "half of it");
    await dieAtStep({ kind: "self uninstall", facts, step: -1 });
    rmSync(join(home, ".bashrc.mine.tmp"));
    assert.deepEqual(snapshot(home), before);
  }));

Deno.test("path: start-up files keep their bytes, whatever their encoding", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-home-"));
  const file = join(home, ".zshenv");
  const before = Uint8Array.of(0x23, 0x20, 0xe9, 0xff, 0x0a);
  try {
    writeFileSync(file, before);
    const { edits } = await planPath("/opt/é/bin", { PATH: "/usr/bin", SHELL: "/bin/zsh" }, home);
    await applyEdits(edits);
    const after = readFileSync(file);
    assert.deepEqual(new Uint8Array(after.subarray(0, before.length)), before);
    assert.equal(after.subarray(before.length).toString("utf8"), edits[0].block);
    assert.deepEqual(await undoEdits(edits), []);
    assert.deepEqual(new Uint8Array(readFileSync(file)), before);
  } finally {
    rmSync(home, { recursive: true });
  }
});

Deno.test("path: a start-up file that the user has replaced by a link since stays one", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-home-"));
  const [file, dotfile] = [join(home, ".zshenv"), join(home, "dotfile")];
  try {
    writeFileSync(file, "mine\n");
    const { edits } = await planPath("/opt/w/bin", { PATH: "/usr/bin", SHELL: "/bin/zsh" }, home);
    await applyEdits(edits);
    renameSync(file, dotfile);
    symlinkSync(dotfile, file);
    assert.deepEqual(await undoEdits(edits), []);
    assert.ok(lstatSync(file).isSymbolicLink());
    assert.equal(readFileSync(dotfile, "utf8"), "mine\n");
  } finally {
    rmSync(home, { recursive: true });
  }
});

/** Mounts a file system that is full after one page. */
function mountFull(directory: string): boolean {
  return spawnSync("mount", ["-t", "tmpfs", "-o", "size=4k", "tmpfs", directory]).status === 0;
}

function unmount(directory: string): void {
  spawnSync("umount", ["-l", directory]);
}

const CAN_MOUNT = (() => {
  const folder = mkdtempSync(join(tmpdir(), "waft-mount-"));
  const can = mountFull(folder);
  if (can) unmount(folder);
  rmSync(folder, { recursive: true });
  return can;
})();

Deno.test({
  name: CAN_MOUNT
    ? "self install: a full disk is reported, and the remains can be removed"
    : "self install on a full disk (ignored: this user cannot mount a small disk)",
  ignore: !CAN_MOUNT,
  fn: () =>
    onMachine(async ({ home, facts, install, before }) => {
      const paths = machinePaths(facts);
      for (const full of [paths.versions, paths.state, install.bin]) {
        mkdirSync(full, { recursive: true });
        assert.ok(mountFull(full));
        try {
          writeFileSync(join(full, "fill"), new Uint8Array(4096));
          const context = contextFor(paths, { base: "http://127.0.0.1:1", keys: { threshold: 1, keys: [] } });
          await assert.rejects(
            installSelf(context, facts, install),
            /install\.disk-full: no space left on the disk/,
          );
        } finally {
          unmount(full);
        }
        assert.deepEqual(await uninstallSelf(paths, await planUninstall(paths, false)), []);
        assert.deepEqual(snapshot(home).filter((entry) => !entry.endsWith("/")), before, `after a full ${full}`);
      }
    }),
});

Deno.test("self uninstall: keeps configuration unless told otherwise, and lines that the user changed", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-home-"));
  const from = unpackBundle(VERSION);
  try {
    const env = { PATH: "/usr/bin", SHELL: "/bin/zsh", HOME: home };
    const facts = { env, os: "linux", home };
    const paths = machinePaths(facts);
    const path = await planPath(paths.bin, env, home);
    const context = contextFor(paths, { base: "http://127.0.0.1:1", keys: { threshold: 1, keys: [] } });
    await installSelf(context, facts, { from, receipt: { ...RECEIPT, version: VERSION }, bin: paths.bin, path });
    mkdirSync(paths.config, { recursive: true });
    writeFileSync(join(paths.config, "credentials.json"), "{}");
    const rc = join(home, ".zshenv");
    writeFileSync(rc, `${readFileSync(rc, "utf8").replace("PATH=", "MYPATH=")}echo more\n`);
    const plan = await planUninstall(paths, false);
    assert.deepEqual(plan.keep, [paths.config]);
    assert.match((await uninstallSelf(paths, plan)).join(), /\.zshenv: the lines .* were changed; remove them by hand/);
    assert.deepEqual(readdirSync(home).sort(), [".config", ".zshenv"]);
    await uninstallSelf(paths, await planUninstall(paths, true));
    assert.equal(existsSync(paths.config), false);
  } finally {
    rmSync(home, { recursive: true, force: true });
    rmSync(from, { recursive: true, force: true });
  }
});

Deno.test("self uninstall: without a receipt nothing is removed, and never the files of others", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-home-"));
  const from = unpackBundle(VERSION);
  try {
    const env = { PATH: "/usr/bin", SHELL: "/bin/sh", HOME: home, WAFT_HOME: home };
    const facts = { env, os: "linux", home };
    const paths = machinePaths(facts);
    // A home directory in which the user has folders of the same names.
    for (const folder of ["versions/mine", "cache/other", "state/other", "config/other", "bin"]) {
      mkdirSync(join(home, folder), { recursive: true });
      writeFileSync(join(home, folder, "file"), "mine");
    }
    const before = snapshot(home);
    const nothing = await planUninstall(paths, true);
    assert.deepEqual(nothing, { isInstalled: false, remove: [], edits: [], keep: [] });
    await uninstallSelf(paths, nothing);
    assert.deepEqual(snapshot(home), before);

    const context = contextFor(paths, { base: "http://127.0.0.1:1", keys: { threshold: 1, keys: [] } });
    await installSelf(context, facts, { from, receipt: { ...RECEIPT, version: VERSION }, bin: paths.bin });
    mkdirSync(join(paths.cache, "blobs"));
    assert.notDeepEqual(snapshot(home), before);
    const plan = await planUninstall(paths, false);
    for (const path of plan.remove) assert.ok(!before.some((line) => line.includes(path.slice(home.length))), path);
    await uninstallSelf(paths, plan);
    assert.deepEqual(snapshot(home), before);
  } finally {
    rmSync(home, { recursive: true, force: true });
    rmSync(from, { recursive: true, force: true });
  }
});

Deno.test("self install: another program of that name is not replaced", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-home-"));
  const from = unpackBundle(VERSION);
  try {
    const facts = { env: { PATH: "", HOME: home }, os: "linux", home };
    const paths = machinePaths(facts);
    mkdirSync(paths.bin, { recursive: true });
    writeFileSync(join(paths.bin, "waft"), "#!/bin/sh\n");
    const context = contextFor(paths, { base: "http://127.0.0.1:1", keys: { threshold: 1, keys: [] } });
    await assert.rejects(
      installSelf(context, facts, { from, receipt: { ...RECEIPT, version: VERSION }, bin: paths.bin }),
      /another program with this name exists/,
    );
    assert.deepEqual(readdirSync(home), [".waft"]);
  } finally {
    rmSync(home, { recursive: true, force: true });
    rmSync(from, { recursive: true, force: true });
  }
});

Deno.test("path: symbolic links and unwritable files are left alone, a directory on the PATH needs nothing", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-home-"));
  try {
    writeFileSync(join(home, "dotfiles"), "");
    symlinkSync(join(home, "dotfiles"), join(home, ".zshenv"));
    const plan = await planPath("/opt/w/bin", { PATH: "/usr/bin", SHELL: "/bin/zsh" }, home);
    assert.deepEqual(plan.edits, []);
    assert.match(plan.refused.join(), /\.zshenv is a symbolic link/);
    assert.equal((await planPath("/opt/w/bin", { PATH: "/usr/bin:/opt/w/bin", SHELL: "/bin/zsh" }, home)).onPath, true);
    const fish = await planPath("/opt/a\\'b/bin", { PATH: "/usr/bin", SHELL: "/bin/fish" }, home);
    assert.match(fish.line, /^contains -- '\/opt\/a\\\\\\'b\/bin' \$PATH; /);
    const quoted = await planPath("/opt/it's/bin", { PATH: "/usr/bin", SHELL: "/bin/sh" }, home);
    await applyEdits(quoted.edits);
    const out = spawnSync("sh", ["-c", `. "${home}/.profile"; echo "$PATH"`], { env: { PATH: "/usr/bin:/bin" } });
    assert.equal(out.stdout.toString(), "/opt/it's/bin:/usr/bin:/bin\n");
    if (process.getuid?.() !== 0) {
      chmodSync(join(home, ".profile"), 0o400);
      assert.match((await planPath("/x", { SHELL: "/bin/sh" }, home)).refused.join(), /cannot be written/);
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

Deno.test("start: no code from elsewhere is loaded, and the commands that download have no FFI; under each shell", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-start-"));
  try {
    const installer = fileURLToPath(new URL("../../installer/", import.meta.url));
    copyFileSync(join(installer, "start.sh"), join(folder, "start"));
    copyFileSync(join(installer, "waft.sh"), join(folder, "waft"));
    symlinkSync(process.execPath, join(folder, "deno"));
    mkdirSync(join(folder, "lib"));
    writeFileSync(
      join(folder, "lib", "waft.js"),
      `const loads = async (name) => await import(name).then(() => true, (error) => /--no-(?:remote|npm)/.test(error.message) ? false : error);
       const loaded = [await loads("http://127.0.0.1:1/x.js"), await loads("npm:not-there@1"), await loads("jsr:@not/there@1")];
       console.log(JSON.stringify([Deno.args, loaded, Deno.permissions.querySync({ name: "ffi" }).state]));`,
    );
    for (const shell of SHELLS) {
      for (
        const [words, ffi] of [
          [["run", "version"], "granted"],
          [["version", "list", "a b"], "denied"],
          [["version"], "denied"],
          [["self", "install"], "denied"],
          [["self", "uninstall"], "denied"],
          [[], "granted"],
        ] as const
      ) {
        const { stdout, stderr } = spawnSync(shell[0], [...shell.slice(1), join(folder, "waft"), ...words], {
          env: { PATH: "/usr/bin:/bin", WAFT_HOME: join(folder, "home") },
          encoding: "utf8",
        });
        assert.deepEqual(JSON.parse(stdout || "null"), [words, [false, false, false], ffi], stderr);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
