/**
 * A lockfile's grants count only after the user has accepted them: a guest that plants a project, a hostile clone, a
 * plugin that may write into the project, and the ways to accept.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import { LACKS_LINKS, LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { hasPty, KEY, waft, waftTyped } from "./waft.ts";

const ID = "evil.example/plugin";

/** A plugin that writes `owned` below its root "/" as soon as a guest starts. */
const PLUGIN_WAT = `(module
  (import "waft:fs@1" "write" (func $write (param i32 i32 i64 i32 i32) (result i32)))
  (memory 1)
  (data (i32.const 0) "/owned")
  (func (export "waft:self@1#init") (drop (call $write (i32.const 0) (i32.const 6) (i64.const 0) (i32.const 0) (i32.const 6)))))`;

const CATALOG = {
  plugins: [{
    entry: "dist/plugin.wasm",
    definition: {
      id: ID,
      authorities: [{ name: "fs.write", mode: "required", reason: "Keeps data.", scope: { roots: ["/"] } }],
    },
  }],
};
const MANIFEST = {
  plugins: {},
  package: {
    module: ID,
    version: "1.0.0",
    name: "Plugin",
    description: "A plugin",
    license: "MIT",
    repository: "https://evil.example/plugin",
    authors: [{ name: "E" }],
  },
};
const MAIN = `(module (func (export "main") (result i32) (i32.const 7)))`;

interface Place {
  /** A directory in which nothing may be written. */
  readonly outside: string;
  readonly attacker: string;
  readonly project: string;
  readonly owned: () => boolean;
  as(home: "attacker" | "victim", cwd: string, ...args: string[]): ReturnType<typeof waft>;
  homeOf(home: "attacker" | "victim"): string;
}

/** An attacker's project, created by waft, whose lockfile grants the plugin everything below `outside`. */
async function withAttack(work: (place: Place) => Promise<void>): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), "waft-trust-"));
  const outside = join(base, "outside");
  const attacker = join(base, "attacker-project");
  const project = join(base, "project");
  for (
    const path of [outside, project, join(attacker, "plugins", "p", "register"), join(attacker, "plugins", "p", "dist")]
  ) {
    mkdirSync(path, { recursive: true });
  }
  writeFileSync(join(attacker, "waft.json"), '{ "plugins": {} }\n');
  writeFileSync(join(attacker, "main.wat"), MAIN);
  const plugin = join(attacker, "plugins", "p");
  writeFileSync(join(plugin, "waft.json"), JSON.stringify(MANIFEST));
  writeFileSync(join(plugin, "register", "catalog.json"), JSON.stringify(CATALOG));
  writeFileSync(join(plugin, "dist", "plugin.wasm"), assemble(PLUGIN_WAT));
  const homeOf = (home: string): string => join(base, `home-${home}`);
  const as = (home: "attacker" | "victim", cwd: string, ...args: string[]) => waft(args, cwd, homeOf(home));
  try {
    const added = await as("attacker", attacker, "add", "./plugins/p", "--allow", `fs.write:/=${outside}`);
    assert.equal(added.code, 0, added.err);
    await work({ outside, attacker, project, owned: () => existsSync(join(outside, "owned")), as, homeOf });
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/** A WASI guest that writes these files below its first directory and exits with the number of failed writes. */
function writer(files: { readonly [path: string]: Uint8Array }): string {
  const escape = (bytes: Uint8Array): string => [...bytes].map((b) => `\\${b.toString(16).padStart(2, "0")}`).join("");
  let at = 1024;
  const data: string[] = [];
  const calls: string[] = [];
  for (const [path, bytes] of Object.entries(files)) {
    const parts = path.split("/");
    for (let n = 1; n < parts.length; n++) {
      const dir = new TextEncoder().encode(parts.slice(0, n).join("/"));
      data.push(`(data (i32.const ${at}) "${escape(dir)}")`);
      calls.push(`(drop (call $mkdir (i32.const 3) (i32.const ${at}) (i32.const ${dir.length})))`);
      at += dir.length;
    }
    const name = new TextEncoder().encode(path);
    data.push(`(data (i32.const ${at}) "${escape(name)}") (data (i32.const ${at + name.length}) "${escape(bytes)}")`);
    calls.push(`(call $put (i32.const ${at}) (i32.const ${name.length}) (i32.const ${bytes.length}))`);
    at += name.length + bytes.length;
  }
  return `(module
    (import "wasi_snapshot_preview1" "path_open"
      (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 4) (global $failed (mut i32) (i32.const 0))
    ${data.join("\n")}
    (func $put (param $name i32) (param $length i32) (param $bytes i32)
      (if (call $open (i32.const 3) (i32.const 0) (local.get $name) (local.get $length) (i32.const 9)
            (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 0))
        (then (global.set $failed (i32.add (global.get $failed) (i32.const 1))) (return)))
      (i32.store (i32.const 8) (i32.add (local.get $name) (local.get $length)))
      (i32.store (i32.const 12) (local.get $bytes))
      (drop (call $write (i32.load (i32.const 0)) (i32.const 8) (i32.const 1) (i32.const 16))))
    (func (export "_start") ${calls.join("\n")} (call $exit (global.get $failed))))`;
}

function filesBelow(root: string): { [path: string]: Uint8Array } {
  const found: { [path: string]: Uint8Array } = {};
  for (const entry of readdirSync(root, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    found[path.slice(root.length + 1).replaceAll(sep, "/")] = new Uint8Array(readFileSync(path));
  }
  return found;
}

Deno.test("trust: a guest confined to --dir . cannot plant a project, and a planted one does not run", async () => {
  await withAttack(async ({ attacker, project, owned, as }) => {
    const files = filesBelow(attacker);
    const names = Object.keys(files);
    // Manifests and lockfiles are refused in every directory: two in the project and one in the plugin.
    const refused = names.filter((name) => /(?:^|\/)waft(?:-lock)?\.json$/.test(name)).length;
    assert.equal(refused, 3);
    writeFileSync(join(project, "guest.wat"), writer(files));
    const first = await as("victim", project, "run", "--dir", ".", "guest.wat");
    assert.equal(first.code, refused, first.err);
    for (const name of names) assert.equal(existsSync(join(project, name)), !/waft(?:-lock)?\.json$/.test(name), name);
    // Even where the files got there by another way, the same command does not load them.
    for (const name of names) writeFileSync(join(project, name), files[name]);
    const second = await as("victim", project, "run", "--dir", ".", "guest.wat");
    assert.equal(second.code, 4);
    assert.match(second.err, /trust\.needed: the grants of evil\.example\/plugin were not accepted/);
    assert.match(second.err, /fs\.write \/=\S+[\\/]outside \(outside of the project: \S+[\\/]outside\)/);
    assert.equal(owned(), false);
  });
});

Deno.test("trust: a guest changes nothing in waft's own directories, where the JavaScript runtime keeps code, too", async () => {
  await withAttack(async ({ project, as, homeOf }) => {
    const own = join(homeOf("victim"), "waft");
    const names = ["bin/waft", "versions/1/start", "config/policy.json", "state/trust/record", "state/active.json"];
    names.push("cache/compiled/code", "cache/deno/v8_code_cache_v2", "cache/blobs/sha256/blob");
    writeFileSync(
      join(project, "guest.wat"),
      writer(Object.fromEntries(names.map((name) => [name, Uint8Array.of(1)]))),
    );
    mkdirSync(own, { recursive: true });
    const run = await as("victim", project, "run", "--dir", `${own}::/`, "guest.wat");
    assert.equal(run.code, names.length, run.err);
    for (const name of names) assert.equal(existsSync(join(own, name)), false, name);
  });
});

Deno.test("trust: a hostile clone runs nothing until its grants are accepted, and then exactly those", async () => {
  await withAttack(async ({ attacker, project, outside, owned, as, homeOf }) => {
    cpSync(attacker, project, { recursive: true });
    const refused = await as("victim", project, "run", "main.wat");
    assert.equal(refused.code, 4);
    const digest = /waft trust (sha256:[0-9a-f]{64})/.exec(refused.err)?.[1];
    assert.ok(digest !== undefined, refused.err);
    assert.equal((await as("victim", project, "run", "--locked", "--allow-path-plugins", "main.wat")).code, 4);
    assert.equal((await as("victim", project, "trust")).code, 4, "without a terminal the digest is needed");
    assert.equal((await as("victim", project, "trust", `sha256:${"0".repeat(64)}`)).code, 4);
    assert.equal((await as("victim", project, "trust", "yes")).code, 2);
    assert.equal((await as("victim", project, "trust", digest, "--dry-run")).code, 0);
    assert.equal(owned(), false);

    // For CI: this digest, once.
    const wrong = await as("victim", project, "run", "--trust", `sha256:${"0".repeat(64)}`, "main.wat");
    assert.deepEqual([wrong.code, owned()], [4, false]);
    const ci = await as("victim", project, "run", "--locked", "--allow-path-plugins", "--trust", digest, "main.wat");
    assert.deepEqual([ci.code, ci.out, owned()], [0, "7\n", true], ci.err);
    rmSync(join(outside, "owned"));
    assert.equal((await as("victim", project, "run", "main.wat")).code, 4, "--trust records nothing");

    assert.equal((await as("victim", project, "trust", digest)).code, 0);
    assert.equal((await as("victim", project, "run", "main.wat")).out, "7\n");
    assert.equal(owned(), true);
    const trust = join(homeOf("victim"), "waft", "state", "trust");
    const [record] = readdirSync(trust);
    if (!LACKS_POSIX_FILES) {
      assert.equal(statSync(trust).mode & 0o777, 0o700);
      assert.equal(statSync(join(trust, record!)).mode & 0o777, 0o600);
    }

    // The same files in another directory were not accepted there.
    const copy = `${project}-copy`;
    cpSync(project, copy, { recursive: true });
    assert.equal((await as("victim", copy, "run", "main.wat")).code, 4);

    // A record that others could have written does not count. Permissions of Windows are not judged.
    if (!LACKS_POSIX_FILES) {
      chmodSync(join(trust, record!), 0o666);
      assert.match((await as("victim", project, "run", "main.wat")).err, /trust\.unsafe/);
      chmodSync(join(trust, record!), 0o600);
    }

    // Other code under the same grants is another decision.
    writeFileSync(
      join(project, "plugins", "p", "dist", "plugin.wasm"),
      assemble(PLUGIN_WAT.replace("/owned", "/other")),
    );
    const relocked = await as("attacker", project, "add", "--allow", `fs.write:/=${outside}`);
    assert.equal(relocked.code, 0, relocked.err);
    assert.equal((await as("victim", project, "run", "main.wat")).code, 4);
    assert.equal(existsSync(join(outside, "other")), false);

    assert.equal((await as("victim", project, "trust", "--forget")).out, "forgotten\n");
  });
});

Deno.test("trust: records, lockfiles and projects that are replayed, copied, swapped or moved accept nothing", async () => {
  await withAttack(async ({ attacker, project, outside, owned, as, homeOf }) => {
    const trust = join(homeOf("victim"), "waft", "state", "trust");
    const run = async (cwd: string) => (await as("victim", cwd, "run", "main.wat")).code;
    const accept = async (cwd: string) => {
      const digest = /waft trust (sha256:[0-9a-f]{64})/.exec((await as("victim", cwd, "run", "main.wat")).err)?.[1];
      assert.equal((await as("victim", cwd, "trust", digest!)).code, 0);
    };
    cpSync(attacker, project, { recursive: true });
    await accept(project);
    assert.equal(await run(project), 0);
    assert.equal(owned(), true);
    rmSync(join(outside, "owned"));
    const [record] = readdirSync(trust);

    // A copy of the project, with the record under the name of the copy's.
    const copy = `${project}-copy`;
    cpSync(project, copy, { recursive: true });
    const name = `${createHash("sha256").update(realpathSync(copy)).digest("hex")}.json`;
    cpSync(join(trust, record!), join(trust, name));
    chmodSync(join(trust, name), 0o600);
    assert.deepEqual([await run(copy), owned()], [4, false], "a record that was copied");

    // The project is moved, and another one takes its place.
    const moved = `${project}-moved`;
    renameSync(project, moved);
    assert.deepEqual([await run(moved), owned()], [4, false], "a project that was moved");
    cpSync(attacker, project, { recursive: true });
    writeFileSync(
      join(project, "plugins", "p", "dist", "plugin.wasm"),
      assemble(PLUGIN_WAT.replace("/owned", "/other")),
    );
    assert.equal((await as("attacker", project, "add", "--allow", `fs.write:/=${outside}`)).code, 0);
    assert.deepEqual(
      [await run(project), existsSync(join(outside, "other"))],
      [4, false],
      "another project in its place",
    );

    // The user accepts that one; the first lockfile, which was accepted before, is put back.
    await accept(project);
    assert.equal(await run(project), 0);
    rmSync(join(outside, "other"));
    rmSync(project, { recursive: true });
    cpSync(moved, project, { recursive: true });
    assert.deepEqual(
      [await run(project), owned()],
      [4, false],
      "a lockfile that was accepted before the last decision",
    );

    // Records that are empty, cut or forged into other shapes.
    const text = readFileSync(join(trust, record!), "utf8");
    const before = text.replaceAll(/sha256:[0-9a-f]{64}/g, `sha256:${"0".repeat(64)}`);
    for (const forged of ["", "{}", text.slice(0, -5), before, text.replace('"version": 1', '"version": 2'), "[]"]) {
      writeFileSync(join(trust, record!), forged);
      assert.deepEqual([await run(project), owned()], [4, false], forged.slice(0, 40));
    }
  });
});

Deno.test("trust: `add` in a hostile clone takes over none of its grants", async () => {
  await withAttack(async ({ attacker, project, outside, owned, as }) => {
    cpSync(attacker, project, { recursive: true });
    const asked = await as("victim", project, "add");
    assert.equal(asked.code, 4);
    assert.match(asked.err, /never accepted on this machine/);
    // Allowing the requested grants binds the root to the project, not to the attacker's directory.
    const added = await as("victim", project, "add", "--allow-requested");
    assert.equal(added.code, 0, added.err);
    assert.ok(!readFileSync(join(project, "waft-lock.json"), "utf8").includes(outside));
    assert.equal((await as("victim", project, "run", "main.wat")).out, "7\n");
    assert.equal(owned(), false);
    assert.ok(existsSync(join(project, "owned")));
    // `--locked` changes and records nothing.
    rmSync(project, { recursive: true });
    cpSync(attacker, project, { recursive: true });
    assert.equal((await as("victim", project, "add", "--locked")).code, 0);
    assert.equal((await as("victim", project, "run", "main.wat")).code, 4);
  });
});

Deno.test({
  name: "trust: a root inside the project is refused if a symbolic link leads to it, wherever that points",
  ignore: LACKS_LINKS,
}, async () => {
  await withAttack(async ({ attacker, outside, owned, as }) => {
    const granted = await as("attacker", attacker, "plugin", "grant", ID, "--allow", "fs.write:/=./data");
    assert.equal(granted.code, 0, granted.err);
    mkdirSync(join(attacker, "inner"));
    for (const target of [outside, "../outside", "inner", ".git/hooks", "nowhere"]) {
      symlinkSync(target, join(attacker, "data"));
      const { code, out, err } = await as("attacker", attacker, "run", "main.wat");
      assert.deepEqual([code, out], [3, ""]);
      assert.ok(err.includes(`data is a symbolic link to ${target}`), err);
      assert.deepEqual([owned(), readdirSync(join(attacker, "inner"))], [false, []], target);
      rmSync(join(attacker, "data"));
    }
    assert.equal((await as("attacker", attacker, "run", "main.wat")).code, 0);
    assert.ok(existsSync(join(attacker, "data", "owned")));
  });
});

Deno.test({
  name: `trust: at a terminal the grants are shown and asked for, and no is the default${
    hasPty() ? "" : " (ignored: no pty)"
  }`,
  ignore: !hasPty(),
  async fn() {
    await withAttack(async ({ attacker, project, owned, homeOf }) => {
      cpSync(attacker, project, { recursive: true });
      const home = homeOf("victim");
      const no = await waftTyped(["run", "main.wat"], [["Accept these grants", KEY.enter]], project, home);
      assert.match(no.out, /fs\.write/);
      assert.deepEqual([no.code, owned()], [4, false], no.out);
      const yes = await waftTyped(["run", "main.wat"], [["Accept these grants", "y"]], project, home);
      assert.deepEqual([yes.code, owned()], [0, true], yes.out);
      const again = await waft(["run", "main.wat"], project, home);
      assert.equal(again.out, "7\n", again.err);
    });
  },
});

Deno.test("trust: a lockfile, or none, that lets guests use more of WASI than was accepted needs acceptance", async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "waft-groups-")));
  const [project, elsewhere] = [join(base, "project"), join(base, "elsewhere")];
  const lock = join(project, "waft-lock.json");
  const mine = (...args: string[]) => waft(args, project, join(base, "home"));
  /** The lockfile of a project whose guests have these groups, made on another machine. */
  const lockOf = async (groups: string): Promise<Uint8Array> => {
    const { code, err } = await waft(["add", "--wasi", groups], elsewhere, join(base, "other-home"));
    assert.equal(code, 0, err);
    return readFileSync(join(elsewhere, "waft-lock.json"));
  };
  const refusal = async (groups: string, args = ["run", "main.wat"]): Promise<string> => {
    const { code, out, err } = await mine(...args);
    assert.deepEqual([code, out], [4, ""], err);
    assert.ok(err.includes(`guests of the project: more of WASI than was accepted: ${groups}\n`), err);
    return /sha256:[0-9a-f]{64}/.exec(err)![0];
  };
  const runs = async (...flags: string[]) => {
    const { code, out, err } = await mine("run", ...flags, "main.wat");
    assert.deepEqual([code, out], [0, "7\n"], err);
  };
  try {
    for (const folder of [project, elsewhere]) {
      mkdirSync(folder);
      writeFileSync(join(folder, "waft.json"), "{}");
      writeFileSync(join(folder, "main.wat"), MAIN);
    }
    // Without a record, all groups are as in a directory without a project.
    await runs();
    writeFileSync(lock, await lockOf("clock,stdio"));
    await runs();
    // The first run has recorded the groups; fewer of them change nothing.
    writeFileSync(lock, await lockOf("none"));
    await runs();
    const wide = await lockOf("clock,fs,stdio");
    writeFileSync(lock, wide);
    const digest = await refusal("fs");
    for (const command of ["profile", "debug"]) await refusal("fs", [command, "main.wat"]);
    await runs("--bare");
    await runs("--trust", digest);
    await refusal("fs");
    assert.match((await mine("status")).err, /not accepted the grants of the guests \(fs of WASI\)/);
    const wrong = await mine("run", "--trust", digest.replace(/.$/, (last) => last === "0" ? "1" : "0"), "main.wat");
    assert.match(wrong.err, /have the digest sha256:.*, not the accepted/);
    // A change of something else accepts nothing.
    assert.equal((await mine("add")).code, 0);
    await refusal("fs");
    assert.equal((await mine("trust", digest)).code, 0);
    await runs();
    // Without a lockfile, guests have all groups.
    rmSync(lock);
    const without = await refusal("args env random");
    assert.equal((await mine("trust", without)).code, 0);
    await runs();
    // A decision of this user counts at once.
    assert.equal((await mine("add", "--wasi", "stdio")).code, 0);
    await runs();
    assert.equal((await mine("add", "--wasi", "all")).code, 0);
    await runs();
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
});
