/**
 * Machine paths: WAFT_HOME, macOS, XDG; which registry serves an id; projects are found upwards.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os, { tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { ProjectError } from "./diagnostic.ts";
import { DISK, type Files } from "./files.ts";
import type { AuthorityHolder } from "../lockfile/held_authority.ts";
import { Credentials } from "../packages/credentials.ts";
import { checkRegistryUrl, readMachine, registryFor, requireTrusted } from "../packages/machine.ts";
import { TrustStore } from "../packages/trust_store.ts";
import { machinePaths, platformName, thisMachine } from "./paths.ts";
import { nearestManifest } from "../ops/versions/asked_range.ts";
import { readProject } from "../project.ts";
import { findProject, requireProject } from "../project_root.ts";
import { nearestSettings } from "../settings.ts";
import { LACKS_POSIX_FILES } from "../../tests/support/posix_files.ts";
import { TempProject } from "../../tests/project/temp_project.ts";

Deno.test("paths: WAFT_HOME overrides everything everywhere", () => {
  for (const os of ["linux", "darwin", "win32"]) {
    assert.deepEqual(machinePaths({ env: { WAFT_HOME: "/w", XDG_CACHE_HOME: "/x" }, os, home: "/h" }), {
      bin: resolve("/w/bin"),
      versions: resolve("/w/versions"),
      config: resolve("/w/config"),
      cache: resolve("/w/cache"),
      state: resolve("/w/state"),
    });
  }
});

Deno.test("paths: macOS below ~/.waft, Linux by XDG with relative values ignored", () => {
  const home = resolve("/h");
  assert.equal(machinePaths({ env: {}, os: "darwin", home }).versions, join(home, ".waft", "versions"));
  const env = { XDG_DATA_HOME: resolve("/d"), XDG_CACHE_HOME: "rel", XDG_STATE_HOME: "" };
  assert.deepEqual(machinePaths({ env, os: "linux", home }), {
    bin: resolve("/h/.waft/bin"),
    versions: resolve("/d/waft/versions"),
    config: resolve("/h/.config/waft"),
    cache: resolve("/h/.cache/waft"),
    state: resolve("/h/.local/state/waft"),
  });
  assert.deepEqual([platformName("linux", "x64"), platformName("darwin", "arm64"), platformName("win32", "x64")], [
    "linux/amd64",
    "darwin/arm64",
    "windows/amd64",
  ]);
});

Deno.test({
  name: "paths: a relative HOME is not a place for machine code",
  ignore: LACKS_POSIX_FILES, // Windows has the home directory from elsewhere
}, () => {
  const before = process.env.HOME;
  try {
    for (const home of [".", "x/y", "~"]) {
      process.env.HOME = home;
      assert.equal(thisMachine().home, userInfo().homedir, home);
    }
  } finally {
    process.env.HOME = before;
  }
});

Deno.test("paths: a user that the system does not know has the root directory", () => {
  const before = process.env.HOME;
  const { homedir, userInfo: user } = os;
  try {
    os.homedir = os.userInfo = () => {
      throw Object.assign(new Error("no such file or directory"), { code: "ENOENT" });
    };
    delete process.env.HOME;
    assert.equal(thisMachine().home, "/");
    process.env.HOME = "relative";
    assert.equal(thisMachine().home, "/");
  } finally {
    Object.assign(os, { homedir, userInfo: user });
    if (before !== undefined) process.env.HOME = before;
  }
});

Deno.test("machine: prefixes, trust and policy; wrong files are findings", async () => {
  const project = new TempProject();
  const { paths } = await project.context(undefined);
  mkdirSync(paths.config, { recursive: true });
  const write = (name: string, value: unknown): void =>
    writeFileSync(join(paths.config, name), typeof value === "string" ? value : JSON.stringify(value));
  write("config.json", {
    registry: "https://main.example/",
    registries: { "git.corp.example": "https://corp.example", "git.corp.example/team": "https://team.example/" },
    trust: ["https://other.example"],
    minReleaseAge: "2h",
  });
  write("policy.json", { deny: ["fs.write"], registries: ["https://main.example"] });
  const machine = await readMachine(paths, { env: {} });
  assert.deepEqual(
    [
      "github.com/a/b",
      "git.corp.example/x",
      "git.corp.example/team/x",
      "git.corp.example/teamwork/x",
      "xgit.corp.example/a",
    ].map((id) => registryFor(id, machine)),
    [
      "https://main.example",
      "https://corp.example",
      "https://team.example",
      "https://corp.example",
      "https://main.example",
    ],
  );
  assert.deepEqual([machine.minReleaseAgeMs, machine.policy.deny], [7_200_000, ["fs.write"]]);
  const code = (registry: string): string => {
    try {
      requireTrusted(registry, machine);
      return "ok";
    } catch (error) {
      return (error as ProjectError).diagnostics[0].code;
    }
  };
  assert.deepEqual(["https://main.example", "https://other.example", "https://evil.example"].map(code), [
    "ok",
    "policy.registry",
    "registry.untrusted",
  ]);
  // Addresses are compared in their canonical form, and name this machine where they are not encrypted.
  const key = `${"A".repeat(43)}=`;
  write("config.json", {
    registries: { "a.example": "https://Plugins.Example:443/" },
    trust: ["https://Other.example/"],
    keys: { "https://PLUGINS.example/": [key] },
  });
  write("policy.json", { registries: ["https://plugins.example:443"] });
  const canonical = await readMachine(paths, { env: {}, registry: "https://main.example" });
  assert.deepEqual(
    [canonical.prefixes["a.example"], canonical.trusted, Object.keys(canonical.keys), canonical.policy.registries],
    ["https://plugins.example", ["https://other.example"], ["https://plugins.example"], ["https://plugins.example"]],
  );
  write("policy.json", {});
  for (
    const plain of [
      { registries: { "a.example": "http://plugins.example" } },
      { trust: ["http://plugins.example"] },
      { keys: { "http://plugins.example": [key] } },
    ]
  ) {
    write("config.json", plain);
    await assert.rejects(readMachine(paths, { env: {} }), /must use https/);
  }
  for (const bad of ["{", { registry: 1 }, { x: 1 }, { minReleaseAge: "soon" }]) {
    write("config.json", bad);
    await assert.rejects(readMachine(paths, { env: {} }), ProjectError);
  }
  write("config.json", {});
  write("policy.json", { deny: ["fs.everything"] });
  await assert.rejects(readMachine(paths, { env: {} }), /is not an authority/);
  project.remove();
});

Deno.test("machine: registry addresses", () => {
  assert.equal(checkRegistryUrl("https://a.example/base/"), "https://a.example/base");
  assert.equal(checkRegistryUrl("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
  for (
    const bad of [
      "http://a.example",
      "ftp://a.example",
      "a.example",
      "https://u:p@a.example",
      "https://a.example/?x",
      "https://a.example/#x",
      "file:///etc/passwd",
    ]
  ) {
    assert.throws(() => checkRegistryUrl(bad), ProjectError, bad);
  }
});

Deno.test("project: the nearest waft.json upwards", async () => {
  const project = new TempProject();
  const deep = join(project.root, "a", "b");
  mkdirSync(deep, { recursive: true });
  assert.equal(await findProject(deep), project.root);
  writeFileSync(join(project.root, "a", "waft.json"), "{}");
  assert.equal(await findProject(deep), join(project.root, "a"));
  assert.equal(await findProject(project.home), undefined);
  project.remove();
});

/** A manifest two levels above `start`, in directories of which some are made unsafe; the outcome of the search. */
async function searched(
  change: (paths: { [name in "top" | "middle" | "manifest" | "lock"]: string }) => void,
): Promise<string> {
  const project = new TempProject();
  const top = project.root;
  const middle = join(top, "middle");
  const paths = { top, middle, manifest: join(top, "waft.json"), lock: join(top, "waft-lock.json") };
  mkdirSync(middle);
  writeFileSync(paths.lock, "{}");
  for (const path of [top, middle]) chmodSync(path, 0o755);
  for (const path of [paths.manifest, paths.lock]) chmodSync(path, 0o644);
  try {
    change(paths);
    const found = await findProject(middle);
    assert.equal(nearestManifest(middle)?.file, found === undefined ? undefined : join(found, "waft.json"));
    return found === undefined ? "none" : found === top ? "found" : found;
  } catch (error) {
    assert.ok(error instanceof ProjectError, String(error));
    assert.throws(() => nearestManifest(middle), ProjectError);
    const named = existsSync(join(middle, "waft.json")) ? middle : top;
    await assert.rejects(requireProject(middle, named), ProjectError);
    return error.diagnostics[0].code;
  } finally {
    project.remove();
  }
}

Deno.test({
  name: "project: files and directories that other users can write are refused",
  ignore: LACKS_POSIX_FILES, // permissions of Windows are not judged
}, async () => {
  assert.equal(await searched(() => {}), "found");
  // The user's own group, as umask 002 leaves it, is not another user.
  assert.equal(await searched(({ top }) => chmodSync(top, 0o775)), "found");
  for (const name of ["manifest", "lock"] as const) {
    assert.equal(await searched((paths) => chmodSync(paths[name], 0o666)), "project.unsafe", name);
  }
  // Parent directories are skipped silently: their contents must not stop the work below.
  for (const mode of [0o777, 0o1777]) assert.equal(await searched(({ top }) => chmodSync(top, mode)), "none");
  // The start directory itself is looked at like all others.
  const manifestInMiddle = ({ middle }: { readonly middle: string }): void => {
    writeFileSync(join(middle, "waft.json"), "{}", { mode: 0o644 });
    chmodSync(middle, 0o1777);
  };
  assert.equal(await searched(manifestInMiddle), "project.unsafe");
});

Deno.test({
  name: "project: a file that others exchange after the search is refused",
  ignore: LACKS_POSIX_FILES, // permissions of Windows are not judged
}, async () => {
  const unsafe = (error: unknown) => error instanceof ProjectError && error.diagnostics[0].code === "project.unsafe";
  for (const name of ["waft.json", "waft-lock.json"]) {
    const project = new TempProject();
    try {
      writeFileSync(join(project.root, "waft-lock.json"), "{}", { mode: 0o644 });
      // Another user can rename a directory above the project, and offer files of their own under its path.
      const exchanging: Files = {
        ...DISK,
        read(path, maxBytes, judge) {
          if (path === join(project.root, name)) chmodSync(path, 0o666);
          return DISK.read(path, maxBytes, judge);
        },
      };
      chmodSync(project.root, 0o755);
      chmodSync(join(project.root, "waft.json"), 0o644);
      await readProject(project.root);
      if (name === "waft.json") await assert.rejects(nearestSettings(project.root, exchanging), unsafe);
      chmodSync(join(project.root, "waft.json"), 0o644);
      await assert.rejects(readProject(project.root, exchanging), unsafe);
      process.env.WAFT_SAFE_DIRECTORIES = project.root;
      await readProject(project.root, exchanging);
    } finally {
      delete process.env.WAFT_SAFE_DIRECTORIES;
      project.remove();
    }
  }
});

Deno.test("project: a manifest that is a pipe or too large is not read by the search", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-manifest-"));
  try {
    const file = join(folder, "waft.json");
    if (!LACKS_POSIX_FILES) {
      assert.equal(spawnSync("mkfifo", ["-m", "600", file]).status, 0);
      assert.deepEqual(nearestManifest(folder), { file, text: "" });
      rmSync(file);
    }
    writeFileSync(file, " ".repeat(1 << 21));
    assert.deepEqual(nearestManifest(folder), { file, text: "" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

Deno.test({
  name: "machine: configuration, policy, tokens and records that others could replace are refused",
  ignore: LACKS_POSIX_FILES, // permissions of Windows are not judged
}, async () => {
  const project = new TempProject();
  const above = join(project.root, "home");
  const paths = machinePaths({ env: { WAFT_HOME: join(above, "waft") }, os: "linux", home: "/h" });
  const holder = { id: "a.example/b", digest: `sha256:${"0".repeat(64)}` } as AuthorityHolder;
  const store = new TrustStore({ paths, files: DISK });
  const credentials = new Credentials(paths, DISK);
  const modes: readonly (readonly [string, number])[] = [
    [above, 0o777],
    [join(above, "waft"), 0o777],
    [paths.config, 0o777],
    [paths.state, 0o777],
  ];
  const outcome = async (work: () => Promise<unknown>): Promise<string> => {
    try {
      await work();
      return "";
    } catch (error) {
      assert.ok(error instanceof ProjectError, String(error));
      return error.diagnostics[0].code;
    }
  };
  try {
    mkdirSync(paths.config, { recursive: true });
    for (const directory of [above, join(above, "waft"), paths.config]) chmodSync(directory, 0o755);
    await store.accept(project.root, [holder], undefined);
    await credentials.keep("https://r.example", "token-of-mine");
    chmodSync(paths.state, 0o755);
    for (const file of ["config.json", "policy.json"]) {
      writeFileSync(join(paths.config, file), "{}", { mode: 0o644 });
      for (const [directory, mode] of modes) {
        chmodSync(directory, mode);
        const isAboveConfig = directory !== paths.state;
        assert.equal(await outcome(() => readMachine(paths, { env: {} })), isAboveConfig ? "machine.unsafe" : "");
        assert.equal(
          await outcome(() => credentials.token("https://r.example")),
          isAboveConfig ? "machine.unsafe" : "",
        );
        const isAboveRecords = directory !== paths.config;
        assert.equal(
          await outcome(() => store.uncovered(project.root, [holder])),
          isAboveRecords ? "machine.unsafe" : "",
        );
        process.env.WAFT_SAFE_DIRECTORIES = above;
        assert.equal(await outcome(() => readMachine(paths, { env: {} })), "", "declared safe");
        delete process.env.WAFT_SAFE_DIRECTORIES;
        chmodSync(directory, 0o755);
      }
      assert.deepEqual(await store.uncovered(project.root, [holder]), []);
      rmSync(join(paths.config, file));
    }
  } finally {
    delete process.env.WAFT_SAFE_DIRECTORIES;
    project.remove();
  }
});

Deno.test({
  name: "project: a manifest or lockfile whose link leads through directories of others is refused",
  ignore: LACKS_POSIX_FILES,
}, async () => {
  for (const name of ["manifest", "lock"] as const) {
    for (const [mode, expected] of [[0o755, "found"], [0o777, "project.unsafe"]] as const) {
      const linked = await searched(({ top, ...paths }) => {
        const shared = join(top, "shared");
        mkdirSync(shared);
        chmodSync(shared, mode);
        writeFileSync(join(shared, "file"), "{}", { mode: 0o644 });
        rmSync(paths[name]);
        symlinkSync("shared/file", paths[name]);
      });
      assert.equal(linked, expected, `${name} ${mode.toString(8)}`);
    }
  }
});

Deno.test({
  name: `project: files of another user are refused${
    process.getuid?.() === 0 ? "" : " (ignored: only root can make them)"
  }`,
  ignore: process.getuid?.() !== 0,
  async fn() {
    const other = 65534;
    for (const name of ["manifest", "lock"] as const) {
      assert.equal(await searched((paths) => chownSync(paths[name], other, other)), "project.unsafe", name);
    }
    assert.equal(await searched(({ top }) => chownSync(top, other, other)), "none");
    assert.equal(await searched(({ top }) => (chownSync(top, 0, 12), chmodSync(top, 0o775))), "none");
    assert.equal(
      await searched(({ middle }) => {
        writeFileSync(join(middle, "waft.json"), "{}");
        chownSync(middle, other, other);
      }),
      "project.unsafe",
    );
    // Declared safe by the user's own environment.
    process.env.WAFT_SAFE_DIRECTORIES = "relative:/nowhere:/tmp/";
    try {
      assert.equal(await searched(({ top }) => chownSync(top, other, other)), "found");
      process.env.WAFT_SAFE_DIRECTORIES = "/tm";
      assert.equal(await searched(({ top }) => chownSync(top, other, other)), "none");
    } finally {
      delete process.env.WAFT_SAFE_DIRECTORIES;
    }
  },
});
