/**
 * Reading a repository runs no program that its configuration names, and returns correct data.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { gitState } from "./git_state.ts";

const ENV = {
  PATH: process.env.PATH ?? "",
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@b.example",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@b.example",
};

function git(cwd: string, ...args: string[]): string {
  const run = spawnSync("git", args, { cwd, env: ENV, encoding: "utf8" });
  assert.equal(run.status, 0, `git ${args.join(" ")}: ${run.stderr}`);
  return run.stdout.trim();
}

async function inRepository(work: (root: string, marks: string) => Promise<void>): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), "waft-git-"));
  const [root, marks] = [join(base, "repo"), join(base, "marks")];
  for (const path of [root, marks]) mkdirSync(path);
  try {
    git(root, "init", "-q");
    writeFileSync(join(root, "waft.json"), "{}");
    git(root, "add", ".");
    git(root, "commit", "-qm", "one");
    await work(root, marks);
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

Deno.test("git: commit, tags and changed files", async () => {
  await inRepository(async (root) => {
    git(root, "tag", "v1.2.3");
    git(root, "tag", "-a", "v1.2.4", "-m", "annotated");
    writeFileSync(join(root, "new"), "");
    mkdirSync(join(root, "sub"));
    writeFileSync(join(root, "sub", "waft.json"), "{}");
    const head = git(root, "rev-parse", "HEAD");
    const state = await gitState(root);
    assert.deepEqual(state, {
      head,
      tags: [{ name: "v1.2.3", commit: head }, { name: "v1.2.4", commit: head }],
      dirty: ["new", "sub/waft.json"],
    });
    assert.deepEqual((await gitState(join(root, "sub")))?.dirty, ["waft.json"]);
  });
  const outside = mkdtempSync(join(tmpdir(), "waft-nogit-"));
  assert.equal(await gitState(outside), undefined);
  rmSync(outside, { recursive: true });
});

Deno.test("git: no program of the repository's configuration runs, and none sees waft's token", async () => {
  await inRepository(async (root, marks) => {
    const trap = join(root, ".git", "trap");
    writeFileSync(trap, `#!/bin/sh\nenv > "${marks}/$(date +%s%N)"\ncat\n`);
    chmodSync(trap, 0o755);
    const set = (key: string, value: string): string => git(root, "config", key, value);
    // Settings that run programs in the commands used, with and without a file that looks changed.
    set("core.fsmonitor", trap);
    set("core.hooksPath", join(root, ".git"));
    for (const name of ["evil", "a.b", "a=b"]) {
      set(`filter.${name}.clean`, trap);
      set(`filter.${name}.process`, trap);
      set(`filter.${name}.required`, "true");
    }
    set("core.sshCommand", trap);
    set("core.pager", trap);
    set("diff.external", trap);
    set("extensions.partialClone", "origin");
    set("remote.origin.url", root);
    set("remote.origin.uploadpack", trap);
    set("remote.origin.promisor", "true");
    for (const name of ["post-index-change", "post-checkout"]) {
      writeFileSync(join(root, ".git", name), `#!/bin/sh\ntouch "${marks}/hook"\n`, { mode: 0o755 });
    }
    writeFileSync(join(root, ".gitattributes"), "*.json filter=evil\n*.txt filter=a.b\n*.md filter=a=b\n");
    for (const name of ["waft.json", "x.txt", "y.md"]) writeFileSync(join(root, name), "changed contents");
    git(root, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "status", "--porcelain", "--ignored=no");
    for (const name of readdirSync(marks)) rmSync(join(marks, name));
    process.env.WAFT_TOKEN = "secret";
    try {
      const state = await gitState(root);
      assert.ok(state?.dirty.includes("waft.json"));
    } finally {
      delete process.env.WAFT_TOKEN;
    }
    assert.deepEqual(readdirSync(marks), []);
    // The trap does work: an unguarded status springs it.
    git(root, "status", "--porcelain");
    assert.ok(readdirSync(marks).length > 0);
  });
});

Deno.test("git: no filter runs when the configuration is too long to be listed", async () => {
  await inRepository(async (root, marks) => {
    const trap = join(root, ".git", "trap");
    writeFileSync(trap, `#!/bin/sh\ntouch "${marks}/ran"\ncat\n`, { mode: 0o755 });
    git(root, "config", "filter.evil.clean", trap);
    const key = "k".repeat(1000);
    appendFileSync(join(root, ".git", "config"), `[pad "${key}"]\n${`${key} = 1\n`.repeat(9000)}`);
    writeFileSync(join(root, ".gitattributes"), "*.json filter=evil\n");
    // A file of the same size is compared with the filter's output.
    writeFileSync(join(root, "waft.json"), "[]");
    await gitState(root);
    assert.deepEqual(readdirSync(marks), []);
    // The trap does work: an unguarded status springs it.
    git(root, "status", "--porcelain");
    assert.deepEqual(readdirSync(marks), ["ran"]);
  });
});

Deno.test("git: started outside of the repository, where Windows and empty entries of PATH find programs", async () => {
  await inRepository(async (root, marks) => {
    const programs = mkdtempSync(join(tmpdir(), "waft-git-"));
    const before = process.env.PATH ?? "";
    try {
      // Writes the directory in which it is started.
      writeFileSync(join(programs, "git"), `#!/bin/sh\npwd > "${marks}/started"\nexit 1\n`, { mode: 0o755 });
      process.env.PATH = `${programs}${delimiter}${before}`;
      await gitState(root);
    } finally {
      process.env.PATH = before;
      rmSync(programs, { recursive: true });
    }
    const started = readFileSync(join(marks, "started"), "utf8").trim();
    assert.ok(!`${started}/`.startsWith(`${realpathSync(root)}/`), started);
  });
});
