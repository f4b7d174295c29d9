/**
 * The grants, limits and interruptions of plugins that are components: what WASI's functions reach, memories of all
 * core instances together, deadlines and fuel.
 */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeComponent } from "../../component/binary/decode.ts";
import { countStorage } from "../../component/link/memory_count.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import type { JsonObject } from "../../project/base/json_read.ts";
import { findAuthority } from "../../project/definitions/authorities.ts";
import { HOST_INTERFACES } from "../../project/definitions/wit_interfaces.ts";
import { componentImports } from "../../project/plugins/component_imports.ts";
import { LACKS_LINKS } from "../support/posix_files.ts";
import { componentPlugin, INTERFACE, MEMORY } from "./component_plugin.ts";
import { CONTRACT, withPlugins } from "./plugin_project.ts";

const NS = `${CONTRACT}@1`;

Deno.test("component plugins: every row names known authorities, and an interface that the host has", () => {
  const wasi = new ComponentWasi();
  try {
    const known = { ...wasi.imports, ...httpInterfaces(wasi), "waft:plugin/self": {} };
    for (const { name, authorities } of HOST_INTERFACES.values()) {
      assert.ok(name in known, name);
      for (const authority of authorities) assert.ok(findAuthority(authority) !== undefined, authority);
    }
  } finally {
    wasi.close();
  }
});

type Api = Readonly<Record<string, Readonly<Record<string, (...args: unknown[]) => unknown>>>>;
type Descriptor = Readonly<Record<string, (...args: unknown[]) => unknown>>;

interface Place {
  readonly root: string;
  /** The imports of a plugin that imports all interfaces, with these grants; other authorities are denied. */
  api(grants: { readonly [authority: string]: JsonObject }): Api;
}

/** Runs `work` in a temporary project directory. */
function inProject(work: (place: Place) => void): void {
  const root = mkdtempSync(join(tmpdir(), "waft-component-plugin-"));
  const closers: (() => void)[] = [];
  try {
    work({
      root,
      api: (grants) =>
        componentImports({
          plugin: { id: "t.example/p", config: new Uint8Array(), links: linksWith(grants) },
          services: {
            args: ["guest", "one"],
            env: [["OPEN", "1"], ["SECRET", "2"]],
            stdio: [0, 1, 2],
            root,
            log: () => {},
          },
          closers,
        }) as Api,
    });
  } finally {
    for (const close of closers) close();
    rmSync(root, { recursive: true, force: true });
  }
}

function linksWith(grants: { readonly [authority: string]: JsonObject }) {
  return [...HOST_INTERFACES.values()].map(({ name, version, authorities }) => {
    const open = Object.fromEntries(authorities.filter((a) => a in grants).map((a) => [a, grants[a]]));
    const target = authorities.length === 0
      ? { kind: "self" as const }
      : Object.keys(open).length > 0
      ? { kind: "host" as const, grants: open }
      : { kind: "denied" as const, status: 3, reason: "denied" };
    return { module: `${name}@${version === "1" ? "1.0.0" : "0.2.0"}`, name: "*", target };
  });
}

/** The payload of the error that `action` throws, or its message. */
function failure(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return (error as { payload?: unknown }).payload ?? (error as Error).message;
  }
  return "none";
}

/** Opens a file of a directory. */
function open(directory: Descriptor, path: string, flags: object, create = false): Descriptor {
  return directory.openAt!({}, path, { create }, flags) as Descriptor;
}

const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("component plugins: without grants no file, stream, variable, clock, random byte or host is reached", () => {
  inProject(({ api }) => {
    const all = api({});
    assert.deepEqual(all["wasi:filesystem/preopens"].getDirectories!(), []);
    const environment = all["wasi:cli/environment"];
    assert.deepEqual([environment.getEnvironment!(), environment.getArguments!()], [[], []]);
    const denied = /is denied to t\.example\/p/;
    for (
      const [name, f] of [["clocks/wall-clock", "now"], ["clocks/monotonic-clock", "now"], [
        "random/random",
        "getRandomU64",
      ], ["random/insecure-seed", "insecureSeed"]] as const
    ) {
      assert.throws(() => all[`wasi:${name}`][f](), denied, name);
    }
    for (const [name, f] of [["stdout", "getStdout"], ["stderr", "getStderr"]] as const) {
      const stream = all[`wasi:cli/${name}`][f]() as Descriptor;
      assert.notEqual(failure(() => stream.write!(bytes("leak\n"))), "none", name);
    }
    const stdin = all["wasi:cli/stdin"].getStdin!() as Descriptor;
    assert.notEqual(failure(() => stdin.read!(1n)), "none");
    assert.equal(all["wasi:cli/terminal-stdout"].getTerminalStdout!(), undefined);
    assert.throws(() => all["wasi:cli/exit"].exit!({ tag: "ok" }), /exit was called/);
  });
});

Deno.test({
  name: "component plugins: a symbolic link on the way to a root is refused by its name, and Git is not changed",
  ignore: LACKS_LINKS,
  fn: () =>
    inProject(({ root, api }) => {
      mkdirSync(join(root, ".git/hooks"), { recursive: true });
      mkdirSync(join(root, "real"));
      symlinkSync(".git/hooks", join(root, "data"));
      symlinkSync("real", join(root, "alias"));
      const rows: [authority: string, directory: string, fault: RegExp][] = [
        ["fs.read", "./alias", /root \/d is not the one that was accepted: .*alias is a symbolic link to real/],
        ["fs.write", "./data", /root \/d is not the one that was accepted: .*data is a symbolic link to \.git\/hooks/],
        ["fs.write", "./.git/hooks", /directory \.\/\.git\/hooks of its root \/d is Git's/],
      ];
      for (const [authority, directory, fault] of rows) {
        assert.throws(() => api({ [authority]: { roots: { "/d": directory } } }), fault, directory);
      }
      const [[all]] = api({ "fs.write": { roots: { "/d": "." } } })["wasi:filesystem/preopens"]
        .getDirectories!() as [Descriptor, string][];
      assert.equal(failure(() => open(all, ".git/hooks/pre-commit", { write: true }, true)), "not-permitted");
      assert.equal(failure(() => all.createDirectoryAt!("real/.git")), "not-permitted");
      assert.equal(failure(() => all.renameAt!("real", all, ".git")), "not-permitted");
      assert.equal(failure(() => all.renameAt!(".git", all, "git")), "not-permitted");
      assert.deepEqual([readdirSync(join(root, ".git/hooks")), readdirSync(join(root, "real"))], [[], []]);
    }),
});

Deno.test("component plugins: variables and arguments by their grants, clocks in granted steps", () => {
  inProject(({ api }) => {
    const all = api({
      "guest.env": { names: ["OPEN"] },
      "clock.wall": { resolutionNs: 3_600_000_000_000 },
      "clock.monotonic": { resolutionNs: 1_000_000_000 },
    });
    const environment = all["wasi:cli/environment"];
    assert.deepEqual([environment.getEnvironment!(), environment.getArguments!()], [[["OPEN", "1"]], []]);
    const { seconds, nanoseconds } = all["wasi:clocks/wall-clock"].now!() as { seconds: bigint; nanoseconds: number };
    assert.deepEqual([seconds % 3600n, nanoseconds], [0n, 0]);
    assert.equal(all["wasi:clocks/monotonic-clock"].now!() as bigint % 1_000_000_000n, 0n);
    const args = api({ "guest.args": {} })["wasi:cli/environment"];
    assert.deepEqual([args.getEnvironment!(), args.getArguments!()], [[], ["guest", "one"]]);
  });
});

Deno.test("component plugins: timers end at readings of the granted clock", () => {
  inProject(({ api }) => {
    const step = 3_600_000_000_000n;
    const { now, subscribeInstant, subscribeDuration } = api({ "clock.monotonic": { resolutionNs: Number(step) } })[
      "wasi:clocks/monotonic-clock"
    ];
    const isReady = (timer: unknown) => (timer as { ready(): boolean }).ready();
    const reading = now!() as bigint;
    equalUnlessPassed(now!, reading, () => isReady(subscribeInstant!(reading)), true);
    // These instants have passed, or not, within the step: a timer that tells them apart is a finer clock.
    for (const instant of [reading + 1n, reading + step - 1n]) {
      equalUnlessPassed(now!, reading, () => isReady(subscribeInstant!(instant)), false);
    }
    equalUnlessPassed(now!, reading, () => isReady(subscribeDuration!(1n)), false);
    for (const duration of [step, 2n ** 64n - 1n]) assert.equal(isReady(subscribeDuration!(duration)), false);
    assert.equal(isReady(subscribeInstant!(2n ** 64n - 1n)), false);
  });
});

/** Compares the result of `action`, unless the clock has gone on meanwhile. */
function equalUnlessPassed(now: () => unknown, reading: bigint, action: () => boolean, expected: boolean): void {
  const result = action();
  if (now() === reading) assert.equal(result, expected);
}

Deno.test("component plugins: fs.read reads and changes nothing", () => {
  inProject(({ root, api }) => {
    mkdirSync(join(root, "data"));
    writeFileSync(join(root, "data", "a"), "hello");
    const all = api({ "fs.read": { roots: { "/data": "./data" } } });
    const [[directory, name]] = all["wasi:filesystem/preopens"].getDirectories!() as [[Descriptor, string]];
    assert.equal(name, "/data");
    const file = open(directory, "a", { read: true });
    assert.equal(new TextDecoder().decode((file.read!(100n, 0n) as [Uint8Array])[0]), "hello");
    assert.notEqual(failure(() => open(directory, "b", { write: true }, true)), "none");
    assert.notEqual(failure(() => open(directory, "a", { write: true }).write!(bytes("x"), 0n)), "none");
    assert.notEqual(failure(() => file.setSize!(0n)), "none");
    for (
      const [method, ...args] of [
        ["unlinkFileAt", "a"],
        ["createDirectoryAt", "d"],
        ["renameAt", "a", directory, "b"],
        ["symlinkAt", "a", "l"],
        ["linkAt", {}, "a", directory, "l"],
      ] as const
    ) {
      assert.notEqual(failure(() => directory[method](...args)), "none", method);
    }
    assert.notEqual(failure(() => open(directory, "../secret", { read: true })), "none");
    assert.equal(readFileSync(join(root, "data", "a"), "utf8"), "hello");
    assert.ok(!existsSync(join(root, "data", "b")));
  });
});

Deno.test("component plugins: fs.write writes, reads nothing, and never changes the project's own files", () => {
  inProject(({ root, api }) => {
    writeFileSync(join(root, "waft-lock.json"), "locked");
    writeFileSync(join(root, "a"), "secret");
    const all = api({ "fs.write": { roots: { "/": ".", "/logs": "./logs" } } });
    const list = all["wasi:filesystem/preopens"].getDirectories!() as [Descriptor, string][];
    const [directory, logs] = ["/", "/logs"].map((name) => list.find((entry) => entry[1] === name)![0]) as [
      Descriptor,
      Descriptor,
    ];
    (open(logs, "app.log", { write: true }, true).appendViaStream!() as Descriptor).write!(bytes("one"));
    (open(logs, "app.log", { write: true }, true).appendViaStream!() as Descriptor).write!(bytes(" two"));
    assert.equal(readFileSync(join(root, "logs", "app.log"), "utf8"), "one two");
    assert.notEqual(failure(() => open(directory, "a", { read: true }).read!(10n, 0n)), "none");
    assert.notEqual(failure(() => open(directory, "a", { read: true, write: true }).read!(10n, 0n)), "none");
    assert.notEqual(failure(() => directory.readDirectory!()), "none");
    assert.notEqual(failure(() => directory.linkAt!({}, "a", logs, "a")), "none");
    assert.notEqual(failure(() => open(directory, "waft-lock.json", { write: true }).write!(bytes("x"), 0n)), "none");
    assert.notEqual(failure(() => directory.unlinkFileAt!("waft-lock.json")), "none");
    assert.notEqual(failure(() => directory.renameAt!("a", directory, "waft-lock.json")), "none");
    assert.equal(readFileSync(join(root, "waft-lock.json"), "utf8"), "locked");
  });
});

const GUEST = `(module (import "${NS}" "n" (func $n (param i32) (result i32))) (export "n" (func $n)))`;

/** A component with two core instances, each with a memory, of which \`n\` grows the first. */
const TWO_MEMORIES = `(component
  (core module $m (memory 1) (func (export "n") (param i32) (result i32) (memory.grow (local.get 0))))
  (core instance $i (instantiate $m)) (core instance $j (instantiate $m))
  (func $n (param "p" u32) (result s32) (canon lift (core func $i "n")))
  (instance $x (export "n" (func $n))) (export "${INTERFACE}" (instance $x)))`;

Deno.test("component plugins: the memories of all core instances share the limit", () => {
  const plugin = { wat: TWO_MEMORIES, interface: INTERFACE, provides: ["n i32->i32"], maxMemoryPages: 9 };
  withPlugins([plugin], GUEST, ({ call }) => {
    assert.equal(call("n", 3), 1);
    assert.equal(call("n", 1), -1);
  });
});

Deno.test("component plugins: instances of nested components and of aliases count", () => {
  const count = (text: string) => countStorage(decodeComponent(componentToBinary(text)));
  assert.deepEqual(count(TWO_MEMORIES), { memories: 2, tables: 0 });
  const nested = `(component
    (component $b (core module $m (memory 1) (memory 1) (table 1 funcref)) (core instance (instantiate $m)) (core instance (instantiate $m)))
    (component $c (alias outer 1 0 (component $d)) (instance (instantiate $d)) (instance (instantiate $d)))
    (instance (instantiate $c)) (instance (instantiate $b)))`;
  // An instance counts as one of the largest component before it: two of $c, with four core instances each.
  assert.deepEqual(count(nested), { memories: 16, tables: 8 });
  const open = `(component (component $c (import "d" (component $d)) (instance (instantiate $d))))`;
  assert.deepEqual(count(open), { memories: 0, tables: 0 });
  const used =
    `(component (core module $m (memory 1)) (component $c (import "d" (component $d)) (instance (instantiate $d)))
    (component $d (core module $m (memory 1)) (core instance (instantiate $m))) (instance (instantiate $c (with "d" (component $d)))))`;
  assert.equal(count(used).memories, Infinity);
});

Deno.test("component plugins: a deadline and fuel of the guest's call end the component", () => {
  const spin = componentPlugin(
    "n: func(p: u32) -> u32;",
    `(module ${MEMORY} (func (export "${INTERFACE}#n") (param i32) (result i32)
      (loop $l (br_if $l (i32.ne (local.tee 0 (i32.sub (local.get 0) (i32.const 1))) (i32.const 0)))) (i32.const 7)))`,
    { provides: ["n i32->i32"] },
  );
  withPlugins([spin], GUEST, ({ graph }) => {
    const context = { fuel: 100_000 };
    assert.equal(graph.call(context, "n", 1000), 7);
    assert.ok(context.fuel < 100_000 - 1000, `fuel left: ${context.fuel}`);
    assert.throws(() => graph.call({ fuel: 1000 }, "n", 0), /out of fuel in plugin t\.example\/p/);
    assert.throws(() => graph.call({}, "n", 1), /the instance graph is closed/);
  });
  withPlugins([spin], GUEST, ({ graph }) => {
    assert.throws(() => graph.call({ deadline: 20 }, "n", 0), /deadline|interrupted/);
  });
});
