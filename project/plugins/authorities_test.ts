/**
 * Each authority grants exactly its scope, and without it nothing links: executed with real modules.
 *
 * The negative half is made from the table of host functions, so a new row is tested without a new test. The positive
 * half is one test per authority.
 */
import assert from "node:assert/strict";
import {
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { lookup } from "node:dns/promises";
import { createServer as freePortServer } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import {
  CONTRACT,
  findingOf,
  PLUGIN,
  type RunChoices,
  type Running,
  type TestPlugin,
  withPlugins,
} from "../../tests/plugins/plugin_project.ts";
import { AUTHORITIES, findAuthority, HOST_FUNCTIONS, type HostFunction } from "../definitions/authorities.ts";
import { assemble } from "../definitions/engine_inspector.ts";
import type { JsonObject } from "../base/json_read.ts";
import { LACKS_LINKS } from "../../tests/support/posix_files.ts";
import { serves } from "./host_functions.ts";

const NS = `${CONTRACT}@1`;

/** A request for an authority with some scope that its kind allows. */
const SCOPES: { readonly [kind: string]: JsonObject } = {
  none: {},
  namespaces: { namespaces: ["x"] },
  exports: { exports: ["x"] },
  names: { names: ["X"] },
  streams: { streams: ["stderr"] },
  roots: { roots: ["/x"] },
  hosts: { hosts: ["localhost:1"] },
  clock: {},
  instances: { maxInstances: 1, maxMemoryBytes: 65536 },
};

const list = (word: string, types: readonly string[]): string =>
  types.length === 0 ? "" : `(${word} ${types.join(" ")})`;

/** Name of a host function as a plugin's own contract function. */
const nameOf = (row: HostFunction): string => `${row.namespace.replace(/\W/g, "-")}_${row.name}`;

/** A plugin that passes host functions on under their own names, with a page of memory and accessors to it. */
function passing(rows: readonly HostFunction[], more: Partial<TestPlugin> = {}): TestPlugin {
  const types = (row: HostFunction) => `${row.type.params.join()}->${row.type.results.join()}`;
  return {
    provides: [...rows.map((row) => `${nameOf(row)} ${types(row)}`), "peek i32->i32", "poke i32,i32->"],
    wat: `(module
      ${
      rows.map((row, i) =>
        `(import "${row.namespace}" "${row.name}"
        (func $f${i} ${list("param", row.type.params)} ${list("result", row.type.results)}))`
      ).join("\n")
    }
      (memory (export "memory") 2)
      ${
      rows.map((row, i) =>
        `(func (export "${NS}#${nameOf(row)}") ${list("param", row.type.params)} ${list("result", row.type.results)}
        ${row.type.params.map((_, k) => `(local.get ${k})`).join(" ")} (call $f${i}))`
      ).join("\n")
    }
      (func (export "${NS}#peek") (param i32) (result i32) (i32.load8_u (local.get 0)))
      (func (export "${NS}#poke") (param i32 i32) (i32.store8 (local.get 0) (local.get 1))))`,
    ...more,
  };
}

/** A guest that re-exports all of a contract's functions. */
function guestOf(plugin: TestPlugin, more = ""): string {
  const functions = plugin.provides!.map((text) => text.split(" ") as [string, string]);
  return `(module ${
    functions.map(([name, type], i) => {
      const [params, results] = type.split("->").map((t) => t === "" ? [] : t!.split(",")) as [string[], string[]];
      return `(import "${NS}" "${name}" (func $f${i} ${list("param", params)} ${list("result", results)}))
        (export "${name}" (func $f${i}))`;
    }).join("\n")
  } ${more})`;
}

/** A running plugin whose memory the test reads and writes, and whose host functions it calls. */
interface Hands {
  /** Calls the host function `name` of the namespace. */
  do(name: string, ...args: unknown[]): unknown;
  /** Puts a text at `at`; its place as [at, length]. */
  put(at: number, text: string | Uint8Array): [number, number];
  take(at: number, length: number): Uint8Array;
  text(at: number, length: number): string;
  readonly running: Running;
}

function withHost(
  namespace: string,
  requests: TestPlugin["requests"],
  work: (hands: Hands) => void,
  choices: RunChoices & { readonly plugin?: Partial<TestPlugin>; readonly guestText?: string } = {},
): void {
  const granted = choices.plugin?.grants ?? requests!;
  const rows = [...HOST_FUNCTIONS.values()].filter((row) =>
    row.namespace === namespace && row.authorities.some((name) => name in granted)
  );
  const plugin = passing(rows, { requests: requests!, ...choices.plugin });
  withPlugins([plugin], guestOf(plugin, choices.guestText), (running) => {
    const take = (at: number, length: number) =>
      Uint8Array.from({ length }, (_, i) => running.call("peek", at + i) as number);
    work({
      running,
      do: (name, ...args) => running.call(`${namespace.replace(/\W/g, "-")}_${name}`, ...args),
      put(at, text) {
        const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
        bytes.forEach((byte, i) => running.call("poke", at + i, byte));
        return [at, bytes.length];
      },
      take,
      text: (at, length) => new TextDecoder().decode(take(at, length)),
    });
  }, choices);
}

const zero = (type: string): unknown => type === "i64" ? 0n : 0;

Deno.test("authorities: every row is served; without a grant its import cannot be linked, an optional denial says so", () => {
  let rows = 0;
  for (const row of HOST_FUNCTIONS.values()) {
    assert.ok(serves({ module: row.namespace }), row.namespace);
    if (row.authorities.length === 0) continue;
    rows++;
    const plugin = passing([row]);
    const name = `${row.namespace} ${row.name}`;
    assert.equal(findingOf(() => withPlugins([plugin], "(module)", () => {})), "link.unlinked", name);
    // Another authority, even all others together, does not help.
    const requests: { [name: string]: JsonObject } = {};
    for (const { name, scope } of AUTHORITIES) {
      if (!row.authorities.includes(name) && name !== "host.code") requests[name] = SCOPES[scope];
    }
    assert.equal(findingOf(() => withPlugins([{ ...plugin, requests }], "(module)", () => {})), "link.unlinked", name);
    for (const authority of row.authorities) {
      const own = { [authority]: SCOPES[findAuthority(authority)!.scope] };
      const denied = { ...plugin, requests: own, optional: [authority], grants: {} };
      withPlugins([denied], guestOf(denied), ({ call }) => {
        const expected = row.type.results[0] === "i64" ? BigInt(row.denied) : row.denied;
        assert.equal(call(nameOf(row), ...row.type.params.map(zero)), expected, name);
      });
      // A required one that is denied links nothing, whatever the mode of others.
      assert.equal(
        findingOf(() => withPlugins([{ ...plugin, requests: own, grants: {} }], "(module)", () => {})),
        "link.unlinked",
      );
    }
  }
  assert.ok(rows >= 38, `${rows}`);
});

Deno.test("authorities: no other namespace exists, not even with every grant", () => {
  const requests: { [name: string]: JsonObject } = {};
  for (const { name, scope } of AUTHORITIES) if (name !== "host.code") requests[name] = SCOPES[scope];
  for (
    const item of [
      `"env" "memory" (memory 1)`,
      `"wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32))`,
      `"waft:self@1" "exit" (func)`,
      `"waft:self@2" "log" (func (param i32 i32 i32))`,
      `"waft:self@1" "log" (func (param i32 i32))`,
      `"waft:caller@1" "memory" (table 1 funcref)`,
      `"waft:caller@1" "mem" (memory 0)`,
      `"waft:caller@1" "read" (global i32)`,
      `"t.example/other@1" "go" (func)`,
      `"constructor" "constructor" (func)`,
    ]
  ) {
    const plugin = { wat: `(module (import ${item}))`, requests };
    assert.equal(findingOf(() => withPlugins([plugin], "(module)", () => {})), "link.unlinked", item);
  }
});

Deno.test("authorities: caller.call calls the named exports and no others", () => {
  withHost("waft:caller@1", { "caller.call": { exports: ["add", "many", "ref", "trap", "absent"] } }, (t) => {
    const cells = new DataView(new ArrayBuffer(32));
    cells.setInt32(0, -5, true);
    cells.setBigInt64(8, 1n << 40n, true);
    cells.setFloat32(16, 0.5, true);
    cells.setFloat64(24, 0.25, true);
    const [args] = t.put(200, new Uint8Array(cells.buffer));
    assert.equal(t.do("call", ...t.put(0, "add"), args, 4, 300, 1), 0);
    assert.equal(new DataView(t.take(300, 8).buffer).getFloat64(0, true), (2 ** 40) - 5 + 0.75);
    assert.equal(t.do("call", ...t.put(0, "many"), 0, 0, 300, 2), 0);
    assert.deepEqual([...t.take(300, 16)], [7, 0, 0, 0, 0, 0, 0, 0, ...Array<number>(8).fill(255)]);
    assert.equal(t.do("call", ...t.put(0, "secret"), 0, 0, 300, 2), 3);
    assert.equal(t.do("call", ...t.put(0, "absent"), 0, 0, 300, 2), 4);
    assert.equal(t.do("call", ...t.put(0, "ref"), 0, 1, 300, 2), 6);
    assert.equal(t.do("call", ...t.put(0, "add"), args, 3, 300, 1), 6);
    assert.equal(t.do("call", ...t.put(0, "many"), 0, 0, 300, 1), 1);
    assert.equal(t.do("call", ...t.put(0, "many"), 0, 0, 131064, 2), 1);
    assert.equal(t.do("call", ...t.put(0, "add"), 131064, 4, 300, 1), 1);
    // The guest's trap is the guest's, but the plugin was in the middle of something.
    assert.throws(() => t.do("call", ...t.put(0, "trap"), 0, 0, 0, 0), { message: "unreachable" });
    assert.throws(() => t.do("call", 0, 0, 0, 0, 0, 0), /graph is closed/);
  }, {
    guestText: `(func (export "add") (param i32 i64 f32 f64) (result f64)
        (f64.add (f64.convert_i64_s (i64.add (i64.extend_i32_s (local.get 0)) (local.get 1)))
          (f64.add (f64.promote_f32 (local.get 2)) (local.get 3))))
      (func (export "many") (result i32 i64) (i32.const 7) (i64.const -1))
      (func (export "ref") (param externref)) (func (export "secret")) (func (export "trap") unreachable)`,
  });
});

Deno.test("authorities: caller.identity tells digest and number", () => {
  withHost("waft:caller@1", { "caller.identity": {} }, (t) => {
    assert.equal(t.do("module-digest", 64), 0);
    const number = t.do("instance-number") as bigint;
    assert.equal(number, BigInt(t.running.graph.guest.internal.number));
    assert.equal(Buffer.from(t.take(64, 32)).toString("hex"), "ab".repeat(32));
    assert.equal(t.do("module-digest", 131060), 1);
  }, { guest: { digest: `sha256:${"ab".repeat(32)}` } });
});

Deno.test("authorities: guest.args and guest.env", () => {
  const guest = { args: ["prog", "ünï"], env: [["A", "one"], ["B", "two"], ["A", "last"]] as const };
  withHost("waft:guest@1", { "guest.args": {} }, (t) => {
    assert.deepEqual([t.do("args-count"), t.do("arg-size", 1), t.do("arg-size", 2), t.do("arg-size", -1)], [
      2,
      5,
      -4,
      -4,
    ]);
    assert.equal(t.do("arg-read", 1, 0, 99), 5);
    assert.equal(t.text(0, 5), "ünï");
    assert.equal(t.do("arg-read", 0, 10, 2), 2);
    assert.equal(t.do("arg-read", 0, 131071, 2), -1);
  }, { guest });
  withHost("waft:guest@1", { "guest.env": { names: ["A", "C"] } }, (t) => {
    assert.equal(t.do("env-size", ...t.put(0, "A")), 4);
    assert.equal(t.do("env-read", ...t.put(0, "A"), 50, 10), 4);
    assert.equal(t.text(50, 4), "last");
    assert.equal(t.do("env-size", ...t.put(0, "B")), -3, "not in the scope");
    assert.equal(t.do("env-size", ...t.put(0, "PATH")), -3, "the process has it; the guest has not");
    assert.equal(t.do("env-size", ...t.put(0, "C")), -4);
    assert.equal(t.do("env-size", ...t.put(0, Uint8Array.of(255))), -6);
  }, { guest });
});

Deno.test("authorities: clocks keep to their resolution; random fills", () => {
  withHost("waft:clock-wall@1", { "clock.wall": { resolutionNs: 3_600_000_000_000 } }, (t) => {
    const now = t.do("now") as bigint;
    assert.equal(now % 3_600_000_000_000n, 0n);
    assert.ok(Math.abs(Number(now / 1_000_000n) - Date.now()) <= 3_700_000);
    assert.equal(t.do("resolution"), 3_600_000_000_000n);
  });
  withHost("waft:clock-monotonic@1", { "clock.monotonic": {} }, (t) => {
    const [a, b] = [t.do("now") as bigint, t.do("now") as bigint];
    assert.ok(a > 0n && b >= a);
    assert.equal(t.do("resolution"), 1n);
  });
  withHost("waft:random@1", { random: {} }, (t) => {
    assert.equal(t.do("fill", 0, 131072), 0);
    assert.ok(new Set([...t.take(0, 32), ...t.take(131040, 32)]).size > 20);
    assert.equal(t.do("fill", 1, 131072), 1);
  });
});

Deno.test("authorities: stdio reads and writes the granted streams only", () => {
  const folder = Deno.makeTempDirSync();
  writeFileSync(join(folder, "in"), "input");
  const files = [
    openSync(join(folder, "in"), "r"),
    openSync(join(folder, "out"), "w"),
    openSync(join(folder, "err"), "w"),
  ];
  const stdio = files as [number, number, number];
  try {
    withHost("waft:stdio@1", { stdio: { streams: ["stdout"] } }, (t) => {
      assert.equal(t.do("write", 1, ...t.put(0, "to out")), 6);
      assert.equal(t.do("write", 2, ...t.put(0, "to err")), -3);
      assert.equal(t.do("write", 0, 0, 1), -6);
      assert.equal(t.do("write", 3, 0, 1), -6);
      assert.equal(t.do("read", 0, 10), -3);
      assert.equal(t.do("write", 1, 131072, 1), -1);
    }, { stdio });
    withHost("waft:stdio@1", { stdio: { streams: ["stdin", "stderr"] } }, (t) => {
      assert.equal(t.do("read", 0, 3), 3);
      assert.equal(t.text(0, 3), "inp");
      assert.deepEqual([t.do("read", 0, 10), t.do("read", 0, 10)], [2, 0]);
      assert.equal(t.do("write", 2, ...t.put(0, "e")), 1);
      assert.equal(t.do("write", 1, 0, 1), -3);
    }, { stdio });
    assert.equal(readFileSync(join(folder, "out"), "utf8"), "to out");
    assert.equal(readFileSync(join(folder, "err"), "utf8"), "e");
  } finally {
    for (const file of files) closeSync(file);
    Deno.removeSync(folder, { recursive: true });
  }
});

Deno.test("authorities: fs.read reads beneath its roots and nothing else", () => {
  withHost("waft:fs@1", { "fs.read": { roots: ["/data", "/gone"] } }, (t) => {
    const { root } = t.running;
    mkdirSync(join(root, "data", "sub"), { recursive: true });
    writeFileSync(join(root, "data", "a.txt"), "alpha");
    writeFileSync(join(root, "data", "sub", "b"), "beta");
    writeFileSync(join(root, "secret"), "secret");
    const links = LACKS_LINKS ? {} : { abs: "/etc/passwd", in: "sub/b", loop: "loop", out: "../secret" };
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, "data", name));
    const read = (path: string, offset = 0n) => t.do("read", ...t.put(0, path), offset, 500, 100);
    assert.equal(read("/data/a.txt"), 5);
    assert.equal(t.text(500, 5), "alpha");
    assert.equal(read("/data/a.txt", 3n), 2);
    assert.equal(read("/data/a.txt", 99n), 0);
    assert.equal(read("/data/a.txt", -1n), -6);
    assert.equal(read("/data/in"), LACKS_LINKS ? -4 : 4);
    assert.equal(read("/data//sub/./../sub/b"), 4);
    for (
      const [path, status] of [
        ["/data/out", LACKS_LINKS ? -4 : -3],
        ["/data/abs", LACKS_LINKS ? -4 : -3],
        ["/data/../secret", -3],
        ["/secret", -3],
        ["/etc/passwd", -3],
        ["data/a.txt", -3],
        ["", -3],
        ["/", -3],
        ["/dataX/a.txt", -3],
        ["/data/sub/../../secret", -3],
        ["/data/none", -4],
        ["/gone/x", -4],
        ["/data/sub", -6],
        ["/data", -6],
        ["/data/a.txt/x", -4],
        ["/data/loop", LACKS_LINKS ? -4 : -6],
        ["/data/a\0b", -6],
        [`/data/${"x".repeat(5000)}`, -6],
      ] as const
    ) assert.equal(read(path), status, path);
    assert.equal(t.do("read", ...t.put(0, "/data/a.txt"), 0n, 131070, 5), -1);
    assert.equal(t.do("stat", ...t.put(0, "/data/a.txt"), 600), 0);
    assert.deepEqual([...t.take(600, 16)], [1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    assert.equal(t.do("stat", ...t.put(0, "/data"), 600), 0);
    assert.equal(t.take(600, 1)[0], 2);
    assert.equal(t.do("stat", ...t.put(0, "/data/none"), 600), 4);
    const size = t.do("list", ...t.put(0, "/data"), 700, 100) as number;
    assert.equal(t.text(700, size), ["a.txt", ...Object.keys(links), "sub", ""].join("\0"));
    assert.equal(t.do("list", ...t.put(0, "/data"), 9000, 3), size, "a listing that does not fit is not written");
    assert.equal(t.take(9000, 1)[0], 0);
  });
});

Deno.test("authorities: fs.write writes beneath its roots, into the directories of the review", () => {
  const plugin = { grants: { "fs.write": { roots: { "/store": "elsewhere/kept" } } } };
  withHost("waft:fs@1", { "fs.write": { roots: ["/store", "/other"] } }, (t) => {
    const { root } = t.running;
    const write = (path: string, offset: bigint, text: string) =>
      t.do("write", ...t.put(0, path), offset, ...t.put(500, text));
    assert.equal(write("/store/a", 0n, "hello"), 5);
    assert.equal(write("/store/a", -1n, " world"), 6);
    assert.equal(write("/store/a", 0n, "J"), 1);
    const kept = join(root, "elsewhere", "kept");
    assert.equal(readFileSync(join(kept, "a"), "utf8"), "Jello world");
    assert.equal(t.do("truncate", ...t.put(0, "/store/a"), 5n), 0);
    assert.equal(t.do("sync", ...t.put(0, "/store/a")), 0);
    assert.equal(t.do("make-dir", ...t.put(0, "/store/d")), 0);
    assert.equal(t.do("make-dir", ...t.put(0, "/store/d")), 5);
    assert.equal(t.do("rename", ...t.put(0, "/store/a"), ...t.put(100, "/store/d/b")), 0);
    assert.equal(readFileSync(join(kept, "d", "b"), "utf8"), "Jello");
    assert.equal(t.do("remove", ...t.put(0, "/store/d")), 5);
    assert.equal(t.do("remove", ...t.put(0, "/store/d/b")), 0);
    assert.equal(t.do("remove", ...t.put(0, "/store/d")), 0);
    assert.equal(t.do("remove", ...t.put(0, "/store/d")), 4);
    writeFileSync(join(root, "secret"), "secret");
    if (!LACKS_LINKS) {
      symlinkSync("../../secret", join(kept, "link"));
      assert.equal(write("/store/link", 0n, "x"), -3);
      assert.equal(t.do("rename", ...t.put(0, "/store/link"), ...t.put(100, "/secret")), 3);
    }
    assert.equal(write("/store/../x", 0n, "x"), -3);
    assert.equal(write("/other/x", 0n, "x"), -3, "requested but not granted");
    assert.equal(write("/store/n", -2n, "x"), -6);
    assert.equal(t.do("truncate", ...t.put(0, "/store/none"), 5n), 4);
    assert.equal(readFileSync(join(root, "secret"), "utf8"), "secret");
  }, { plugin });
});

Deno.test("authorities: fs.write on the project itself reaches neither manifest nor lockfile", () => {
  const plugin = { grants: { "fs.write": { roots: { "/": "." } } } };
  withHost("waft:fs@1", { "fs.write": { roots: ["/"] } }, (t) => {
    const { root } = t.running;
    writeFileSync(join(root, "waft.json"), "{}");
    writeFileSync(join(root, "waft-lock.json"), "lock");
    writeFileSync(join(root, "mine"), "mine");
    mkdirSync(join(root, "sub"));
    if (!LACKS_LINKS) symlinkSync("waft-lock.json", join(root, "soft"));
    linkSync(join(root, "waft-lock.json"), join(root, "hard"));
    const attempts: { [what: string]: () => unknown } = {};
    const soft = LACKS_LINKS ? [] : ["/soft"];
    for (
      const path of ["/waft.json", "/waft-lock.json", "/./waft-lock.json", "/sub/../waft-lock.json", ...soft, "/hard"]
    ) {
      attempts[`write ${path}`] = () => t.do("write", ...t.put(0, path), 0n, ...t.put(500, "x"));
      attempts[`append ${path}`] = () => t.do("write", ...t.put(0, path), -1n, ...t.put(500, "x"));
      attempts[`truncate ${path}`] = () => t.do("truncate", ...t.put(0, path), 0n);
    }
    for (const path of ["/waft.json", "/waft-lock.json", "/sub/WAFT-LOCK.json", "/hard"]) {
      attempts[`rename to ${path}`] = () => t.do("rename", ...t.put(0, "/mine"), ...t.put(100, path));
    }
    for (const path of ["/waft.json", "/waft-lock.json", "/hard"]) {
      attempts[`rename ${path}`] = () => t.do("rename", ...t.put(0, path), ...t.put(100, "/moved"));
      attempts[`remove ${path}`] = () => t.do("remove", ...t.put(0, path));
    }
    attempts["make-dir"] = () => t.do("make-dir", ...t.put(0, "/sub/waft.json"));
    attempts["create"] = () => t.do("write", ...t.put(0, "/sub/waft-lock.json"), 0n, ...t.put(500, "x"));
    for (const [what, attempt] of Object.entries(attempts)) {
      assert.ok([3, -3].includes(attempt() as number), what);
      assert.equal(readFileSync(join(root, "waft.json"), "utf8"), "{}", what);
      assert.equal(readFileSync(join(root, "waft-lock.json"), "utf8"), "lock", what);
      assert.deepEqual(readdirSync(join(root, "sub")), [], what);
    }
    assert.equal(t.do("write", ...t.put(0, "/mine"), 0n, ...t.put(500, "yours")), 5);
  }, { plugin });
});

Deno.test("authorities: fs.write changes nothing of Git, by the project itself or by a root", () => {
  const plugin = { grants: { "fs.write": { roots: { "/": "." } } } };
  withHost("waft:fs@1", { "fs.write": { roots: ["/"] } }, (t) => {
    const { root } = t.running;
    mkdirSync(join(root, "repository"));
    const attempts = {
      create: () => t.do("write", ...t.put(0, "/.git"), 0n, ...t.put(500, "gitdir: x")),
      "make-dir": () => t.do("make-dir", ...t.put(0, "/repository/.GIT")),
      rename: () => t.do("rename", ...t.put(0, "/repository"), ...t.put(100, "/.git")),
    };
    for (const [what, attempt] of Object.entries(attempts)) assert.ok([3, -3].includes(attempt() as number), what);
    assert.deepEqual([readdirSync(root), readdirSync(join(root, "repository"))], [["repository"], []]);
  }, { plugin });
  withHost("waft:fs@1", { "fs.write": { roots: ["/"] } }, (t) => {
    const hook = join(t.running.root, ".git/hooks/pre-commit");
    const attempts = {
      write: () => t.do("write", ...t.put(0, "/.git/hooks/pre-commit"), 0n, ...t.put(500, "x")),
      create: () => t.do("write", ...t.put(0, "/.git/hooks/post-commit"), 0n, ...t.put(500, "x")),
      truncate: () => t.do("truncate", ...t.put(0, "/.git/hooks/pre-commit"), 0n),
      "rename it": () => t.do("rename", ...t.put(0, "/.git/hooks"), ...t.put(100, "/hooks")),
      remove: () => t.do("remove", ...t.put(0, "/.git/hooks/pre-commit")),
    };
    for (const [what, attempt] of Object.entries(attempts)) {
      assert.ok([3, -3].includes(attempt() as number), what);
      assert.equal(readFileSync(hook, "utf8"), "hook", what);
      assert.deepEqual(readdirSync(join(t.running.root, ".git/hooks")), ["pre-commit"], what);
    }
  }, {
    plugin,
    prepare: (root) => {
      mkdirSync(join(root, ".git/hooks"), { recursive: true });
      writeFileSync(join(root, ".git/hooks/pre-commit"), "hook");
    },
  });
  const inGit = { grants: { "fs.write": { roots: { "/": "./.git/hooks" } } } };
  assert.throws(
    () => withHost("waft:fs@1", { "fs.write": { roots: ["/"] } }, () => {}, { plugin: inGit }),
    /the directory \.\/\.git\/hooks of its root \/ is Git's/,
  );
});

Deno.test({
  name: "authorities: a symbolic link on the way to a root is refused by its name before the plugin runs",
  ignore: LACKS_LINKS,
  fn: () => {
    for (const authority of ["fs.read", "fs.write"]) {
      const plugin = { grants: { [authority]: { roots: { "/store": "./kept/data" } } } };
      const prepare = (link: string, target: string) => (root: string) => {
        mkdirSync(join(root, "elsewhere/data"), { recursive: true });
        mkdirSync(join(root, ...link.split("/").slice(0, -1)), { recursive: true });
        symlinkSync(target, join(root, link));
      };
      for (const [link, target] of [["kept", "elsewhere"], ["kept/data", "../elsewhere/data"]] as const) {
        assert.throws(
          () =>
            withHost("waft:fs@1", { [authority]: { roots: ["/store"] } }, () => {}, {
              plugin,
              prepare: prepare(link, target),
            }),
          new RegExp(`root /store is not the one that was accepted: .*${link} is a symbolic link to ${target}`),
          link,
        );
      }
      // One that appears later is refused at its first use.
      withHost("waft:fs@1", { [authority]: { roots: ["/store"] } }, (t) => {
        prepare("kept", "elsewhere")(t.running.root);
        const [path, length] = t.put(0, "/store/x");
        const use = () => authority === "fs.read" ? t.do("stat", path, length, 500) : t.do("make-dir", path, length);
        assert.throws(use, /kept is a symbolic link to elsewhere/);
        assert.deepEqual(readdirSync(join(t.running.root, "elsewhere/data")), []);
      }, { plugin });
    }
  },
});

/** Whether the system's resolver reads numbers in the forms of inet_aton. */
const SYSTEM_READS_HEX = await lookup("0x7f.1").then(({ address }) => address === "127.0.0.1", () => false);

/** An echo server on a thread of its own, since this one waits; its port. */
async function withEcho(work: (port: number) => void): Promise<void> {
  const source = `const { createServer } = require("node:net"); const { parentPort } = require("node:worker_threads");
    const server = createServer((s) => { s.on("error", () => {}); s.on("data", (d) => { s.write(d); if (d.includes(33)) s.end(); }); });
    server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`;
  const worker = new Worker(source, { eval: true });
  try {
    work(await new Promise<number>((resolve, reject) => worker.once("message", resolve).once("error", reject)));
  } finally {
    await worker.terminate();
  }
}

Deno.test("authorities: net.connect reaches the granted host and port only", async () => {
  await withEcho((port) => {
    const scope = { hosts: [`127.0.0.1:${port}`, "127.0.0.1:1"] };
    withHost("waft:net@1", { "net.connect": scope }, (t) => {
      const connect = (host: string, to: number) => t.do("connect", ...t.put(0, host), to) as number;
      assert.equal(connect("127.0.0.1", port + 1), -3);
      assert.equal(connect("localhost", port), -3);
      assert.equal(connect("127.0.0.1", 1), -7, "granted, but the connection is refused");
      const socket = connect("127.0.0.1", port);
      assert.equal(socket, 0);
      assert.equal(t.do("send", socket, ...t.put(100, "hello!")), 6);
      assert.equal(t.do("receive", socket, 200, 4), 4);
      assert.equal(t.do("receive", socket, 204, 50), 2);
      assert.equal(t.text(200, 6), "hello!");
      assert.equal(t.do("receive", socket, 200, 50), 0, "the other side ended");
      assert.equal(t.do("receive", socket, 131072, 50), -1);
      assert.equal(t.do("send", 7, 0, 1), -4);
      assert.equal(t.do("close", socket), 0);
      assert.equal(t.do("close", socket), 4);
      assert.equal(t.do("receive", socket, 0, 1), -4);
    });
  });
});

Deno.test("authorities: net.connect checks the address that a name leads to, and connects to that one", async () => {
  await withEcho((port) => {
    const connect = (hosts: string[], host: string) => {
      let result = NaN;
      withHost("waft:net@1", { "net.connect": { hosts: hosts.map((name) => `${name}:${port}`) } }, (t) => {
        result = t.do("connect", ...t.put(0, host), port) as number;
      });
      return result;
    };
    // Names that the system's resolver turns into addresses of this machine, where it knows them.
    for (const name of ["0x7f.1", "0x7f000001", "ip6-localhost", hostname()]) {
      assert.ok([-3, -7].includes(connect([name], name)), name);
    }
    assert.equal(connect(["0x7f.1", "127.0.0.1"], "0x7f.1"), SYSTEM_READS_HEX ? 0 : -7, "the grants name the address");
    assert.equal(connect(["localhost"], "LOCALHOST."), 0);
    assert.equal(connect(["127.0.0.1"], "127.0.0.1"), 0);
    assert.equal(connect(["[::ffff:127.0.0.1]"], "127.0.0.1"), 0, "another spelling of the address");
    for (const scope of ["2130706433", "127.1", "*", "a b"]) {
      assert.equal(connect([scope], scope), -3, scope);
    }
  });
});

Deno.test("authorities: net.listen accepts on the granted address only", async () => {
  const port = await new Promise<number>((resolve) => {
    const server = freePortServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
  withHost("waft:net@1", { "net.listen": { hosts: [`127.0.0.1:${port}`] } }, (t) => {
    assert.equal(t.do("listen", ...t.put(0, "0.0.0.0"), port), -3);
    const listener = t.do("listen", ...t.put(0, "127.0.0.1"), port) as number;
    assert.equal(listener, 0);
    const client = new Worker(
      `const s = require("node:net").connect(${port}, "127.0.0.1", () => s.end("ping")); s.on("error", () => {});`,
      { eval: true },
    );
    const socket = t.do("accept", listener) as number;
    assert.equal(socket, 1);
    assert.equal(t.do("receive", socket, 200, 50), 4);
    assert.equal(t.text(200, 4), "ping");
    assert.equal(t.do("receive", listener, 200, 50), -4);
    assert.equal(t.do("close", socket), 0);
    assert.equal(t.do("close", listener), 0);
    void client.terminate();
  });
});

Deno.test("authorities: instance.manage makes children within its limits, which reach nothing", () => {
  withHost("waft:instance@1", { "instance.manage": { maxInstances: 2, maxMemoryBytes: 4 * 65536 } }, (t) => {
    const create = (text: string) => t.do("create", ...t.put(0, assemble(text))) as number;
    const call = (handle: number, name: string, argument = 0) => {
      const [args] = t.put(5000, new Uint8Array(new Int32Array([argument, 0]).buffer));
      const status = t.do("call", handle, ...t.put(4900, name), args, 1, 5100, 1);
      return [status, new DataView(t.take(5100, 4).buffer).getInt32(0, true)];
    };
    const child = create(`(module (memory 1) (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
      (func (export "trap") (param i32) (result i32) unreachable))`);
    assert.equal(child, 0);
    assert.deepEqual(call(child, "grow", 1), [0, 1]);
    assert.deepEqual(call(child, "grow", 1), [0, -1], "half of the granted memory is one child's share");
    assert.equal(call(child, "none")[0], 4);
    assert.equal(create(`(module (memory 3))`), -6);
    assert.equal(create(`(module (import "waft:self@1" "abort" (func (param i32 i32))))`), -6);
    assert.equal(t.do("create", ...t.put(0, "no module")), -6);
    assert.equal(t.do("create", 131072, 1), -1);
    assert.equal(create(`(module (func (export "id") (param i32) (result i32) (local.get 0)))`), 1);
    assert.equal(create(`(module)`), -3);
    assert.equal(call(child, "trap")[0], 7, "the child's trap is a status");
    assert.equal(call(child, "grow")[0], 4, "and its end");
    assert.deepEqual(call(1, "id", 9), [0, 9]);
    assert.equal(t.do("close", 1), 0);
    assert.equal(t.do("close", 1), 4);
    assert.equal(create(`(module)`), 0);
  });
});

Deno.test("authorities: the log of one plugin never looks like another's", () => {
  const plugin = {
    wat: `(module (import "waft:self@1" "log" (func $log (param i32 i32 i32))) (memory 1)
      (data (i32.const 0) "x\\0aother: error: fake")
      (func (export "waft:self@1#init") (call $log (i32.const 99) (i32.const 0) (i32.const 20))))`,
  };
  withPlugins([plugin], "(module)", ({ logged }) => {
    assert.deepEqual(logged, [`${PLUGIN} 4 x\\u{a}other: error: fake`]);
  });
});
