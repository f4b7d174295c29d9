/** Roots are the directories that were accepted: no symbolic link is followed on the way to them. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { currentHost } from "@waft/engine/internal/host/current";
import { fileCalls } from "@waft/engine/internal/host/file_calls";
import { WasiError } from "@waft/engine/internal/wasi/paths";
import { Scratch } from "@waft/engine/internal/wasi/scratch";
import { LACKS_LINKS } from "../../tests/support/posix_files.ts";
import { leadsIntoGit, LinkedRoot, openRoot, withoutGit } from "./open_root.ts";

/** Runs `work` with a directory that has a project in it. */
function inDirectory(work: (base: string, project: string) => void): void {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "waft-root-")));
  const project = join(base, "project");
  mkdirSync(join(project, "a/b"), { recursive: true });
  mkdirSync(join(base, "outside"));
  try {
    work(base, project);
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/** Opens a root and makes the directory `mark` in it. */
function markRoot(project: string, directory: string, create = false): void {
  const host = currentHost();
  const sys = fileCalls(host);
  const fd = openRoot(project, directory, create);
  assert.equal(sys("mkdirat", fd, new Scratch(host).path("mark"), 0o777), 0, directory);
  sys("close", fd);
}

Deno.test("roots: relative and absolute directories, inside and outside of the project, and new ones", () =>
  inDirectory((base, project) => {
    const rows: [directory: string, found: string, create?: boolean][] = [
      [".", project],
      ["./a", join(project, "a")],
      ["a/../a/b", join(project, "a/b")],
      ["../outside", join(base, "outside")],
      [base, base],
      ["new/one", join(project, "new/one"), true],
      ["../other/one", join(base, "other/one"), true],
    ];
    for (const [directory, found, create] of rows) {
      markRoot(project, directory, create);
      assert.ok(existsSync(join(found, "mark")), directory);
    }
    assert.throws(() => openRoot(project, "missing"), WasiError);
    assert.ok(!existsSync(join(project, "missing")));
  }));

Deno.test({
  name: "roots: a symbolic link at any place of the path is refused by its name, wherever it leads",
  ignore: LACKS_LINKS,
  fn: () =>
    inDirectory((base, project) => {
      symlinkSync("a", join(project, "inner"));
      symlinkSync("../outside", join(project, "outer"));
      symlinkSync(project, join(base, "alias"));
      symlinkSync("nowhere", join(project, "dangling"));
      const rows: [directory: string, link: string, target: string][] = [
        ["inner", join(project, "inner"), "a"],
        ["inner/b", join(project, "inner"), "a"],
        ["outer/new", join(project, "outer"), "../outside"],
        ["dangling", join(project, "dangling"), "nowhere"],
        [join(project, "outer"), join(project, "outer"), "../outside"],
        ["../alias/a", join(base, "alias"), project],
        [join(base, "alias/a"), join(base, "alias"), project],
      ];
      for (const [directory, link, target] of rows) {
        for (const create of [false, true]) {
          assert.throws(
            () => openRoot(project, directory, create),
            (error: unknown) =>
              error instanceof LinkedRoot && error.message === `${link} is a symbolic link to ${target}`,
            directory,
          );
        }
      }
      assert.ok(!existsSync(join(base, "outside/new")));
      // A project that is reached through a link is that project.
      markRoot(join(base, "alias"), "a");
      markRoot(join(base, "alias"), "../outside");
      assert.ok(existsSync(join(project, "a/mark")) && existsSync(join(base, "outside/mark")));
    }),
});

Deno.test("roots: directories of Git are known in every spelling, and protected from the project upwards", () =>
  inDirectory((base, project) => {
    for (
      const path of [
        ".git",
        "./.git/hooks",
        "a/.GIT",
        ".git./x",
        "/x/.g\u200cit",
        "GIT~1",
        "a/GI7D29~1",
        "gi0ab1~12",
        ".git\\hooks",
      ]
    ) {
      assert.ok(leadsIntoGit(path), path);
    }
    for (const path of [".", ".github", "git", "a.git", ".gitignore", "GIX~1", "GI7D29"]) {
      assert.ok(!leadsIntoGit(path), path);
    }
    assert.deepEqual(withoutGit({ names: ["x"], files: ["/f"] }, project), {
      names: ["x", ".git"],
      files: ["/f"],
      directories: [],
    });
    mkdirSync(join(base, ".git"));
    const [found] = withoutGit({}, join(project, "a")).directories!;
    assert.equal(relative(base, found), ".git");
  }));
