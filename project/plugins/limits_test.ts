/**
 * Deadline and fuel of a call bound the host functions of plugins. The waits below never end by themselves, so one that
 * ignores the deadline hangs the test.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Context } from "@waft/engine";
import { LACKS_POSIX_FILES } from "../../tests/support/posix_files.ts";
import { CONTRACT, type RunChoices, type TestPlugin, withPlugins } from "../../tests/plugins/plugin_project.ts";

const NS = `${CONTRACT}@1`;
const PAGES = 2100;
/** Bytes of one transfer: the host moves them faster than a deadline passes, so that the trap is that of the fuel. */
const BYTES = 2 ** 27;
const FUEL = 2 ** 20;

/** A plugin with 131 MiB of memory whose function runs `body`. */
function pluginOf(imports: string, body: string, requests: TestPlugin["requests"]): TestPlugin {
  return {
    requests,
    provides: ["go ->i32"],
    maxMemoryPages: PAGES,
    wat: `(module ${imports} (memory (export "memory") ${PAGES})
      (data (i32.const 0) "/d/file") (data (i32.const 16) "127.0.0.1") (data (i32.const 32) "/d")
      (func (export "${NS}#go") (result i32) ${body}))`,
  };
}

const GUEST = `(module (import "${NS}" "go" (func $go (result i32))) (memory (export "memory") ${PAGES})
  (func (export "go") (result i32) (call $go)))`;

/** Calls the plugin in a project with a directory `d`, which `prepare` fills; the result or the trap's message. */
function outcome(
  plugin: TestPlugin,
  context: Context,
  choices: RunChoices = {},
  prepare: (directory: string) => void = () => {},
): unknown {
  let result: unknown;
  withPlugins([plugin], GUEST, ({ graph, root }) => {
    const directory = join(root, "d");
    mkdirSync(directory);
    prepare(directory);
    try {
      result = graph.call(context, "go");
    } catch (error) {
      result = (error as Error).message;
    }
  }, choices);
  return result;
}

const STDIO = { stdio: { streams: ["stdin", "stdout"] } };

/** Work in proportion to a length: imports, body, authorities. */
const WORK: { readonly [name: string]: TestPlugin } = {
  "random bytes": pluginOf(
    `(import "waft:random@1" "fill" (func $f (param i32 i32) (result i32)))`,
    `(call $f (i32.const 64) (i32.const ${BYTES}))`,
    { random: {} },
  ),
  "a read of a file": pluginOf(
    `(import "waft:fs@1" "read" (func $f (param i32 i32 i64 i32 i32) (result i32)))`,
    `(call $f (i32.const 0) (i32.const 7) (i64.const 0) (i32.const 64) (i32.const ${BYTES}))`,
    { "fs.read": { roots: ["/d"] } },
  ),
  "a write of a file": pluginOf(
    `(import "waft:fs@1" "write" (func $f (param i32 i32 i64 i32 i32) (result i32)))`,
    `(call $f (i32.const 0) (i32.const 7) (i64.const -1) (i32.const 64) (i32.const ${BYTES}))`,
    { "fs.write": { roots: ["/d"] } },
  ),
  "a copy of the caller's memory": pluginOf(
    `(import "waft:caller@1" "read" (func $f (param i64 i32 i32) (result i32)))`,
    `(call $f (i64.const 0) (i32.const 64) (i32.const ${BYTES}))`,
    { "caller.memory.read": {} },
  ),
  "a copy to the caller's memory": pluginOf(
    `(import "waft:caller@1" "write" (func $f (param i64 i32 i32) (result i32)))`,
    `(call $f (i64.const 0) (i32.const 64) (i32.const ${BYTES}))`,
    { "caller.memory.write": {} },
  ),
};

for (const [name, plugin] of Object.entries(WORK)) {
  Deno.test(`plugins: ${name} costs fuel, and ends at the deadline`, () => {
    const prepare = (directory: string) => {
      writeFileSync(join(directory, "file"), "");
      truncateSync(join(directory, "file"), name.includes("read") ? BYTES : 0);
    };
    assert.match(String(outcome(plugin, { fuel: FUEL }, {}, prepare)), /^out of fuel/);
    assert.match(String(outcome(plugin, { deadline: 1 }, {}, prepare)), /^interrupted/);
    const context = { fuel: 4 * FUEL };
    assert.match(String(outcome(plugin, context, {}, prepare)), new RegExp(`^(?:0|${BYTES})$`));
    assert.ok(context.fuel <= 2 * FUEL + 2000, `${context.fuel} left`);
  });
}

Deno.test("plugins: listing a directory costs fuel for its entries, also if they do not fit", () => {
  const plugin = pluginOf(
    `(import "waft:fs@1" "list" (func $f (param i32 i32 i32 i32) (result i32)))`,
    `(call $f (i32.const 32) (i32.const 2) (i32.const 64) (i32.const 0))`,
    { "fs.read": { roots: ["/d"] } },
  );
  const used = (entries: number) => {
    const context = { fuel: FUEL };
    outcome(plugin, context, {}, (directory) => {
      for (let k = 0; k < entries; k++) writeFileSync(join(directory, `${k}`.padStart(200, "x")), "");
    });
    return FUEL - context.fuel;
  };
  assert.ok(used(1000) - used(0) > 1000 * (200 / 64 + 8), "names, and comparisons of sorting");
});

/** Waits: for a pipe that nothing writes or reads, and for a connection over which nothing comes. */
const WAITS: readonly (readonly [name: string, plugin: TestPlugin])[] = [
  [
    "reads of an empty pipe",
    pluginOf(
      `(import "waft:stdio@1" "read" (func $f (param i32 i32) (result i32)))`,
      `(call $f (i32.const 64) (i32.const 10))`,
      STDIO,
    ),
  ],
  [
    "writes to a full pipe",
    pluginOf(
      `(import "waft:stdio@1" "write" (func $f (param i32 i32 i32) (result i32)))`,
      `(loop $again (drop (call $f (i32.const 1) (i32.const 64) (i32.const 100000))) (br $again)) (unreachable)`,
      STDIO,
    ),
  ],
];

Deno.test({ name: "plugins: waits for standard streams end at the deadline", ignore: LACKS_POSIX_FILES }, () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-plugin-limits-"));
  const paths = ["in", "out"].map((name) => join(folder, name));
  assert.equal(spawnSync("mkfifo", paths).status, 0);
  const [input, output] = paths.map((path) => openSync(path, "r+"));
  try {
    for (const [name, plugin] of WAITS) {
      assert.match(String(outcome(plugin, { deadline: 30 }, { stdio: [input, output, 2] })), /^interrupted/, name);
    }
  } finally {
    closeSync(input);
    closeSync(output);
    rmSync(folder, { recursive: true });
  }
});

Deno.test("plugins: waits for sockets end at the deadline of a synchronous call", async () => {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const plugin = pluginOf(
      `(import "waft:net@1" "connect" (func $connect (param i32 i32 i32) (result i32)))
       (import "waft:net@1" "receive" (func $receive (param i32 i32 i32) (result i32)))`,
      `(call $receive (call $connect (i32.const 16) (i32.const 9) (i32.const ${port})) (i32.const 64) (i32.const 9))`,
      { "net.connect": { hosts: [`127.0.0.1:${port}`] } },
    );
    assert.match(String(outcome(plugin, { deadline: 300 })), /^interrupted/);
  } finally {
    server.close();
  }
});
