/**
 * The example key-value store under load and after damage: stored values survive compaction, restart and a truncated
 * log.
 */
import assert from "node:assert/strict";
import { cpSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { Memory } from "../../engine/runtime/memory/memory.ts";
import { inspectModule } from "../../project/definitions/engine_inspector.ts";
import { digestBytes } from "../../project/base/integrity.ts";
import { addPlugins } from "../../project/ops/project/add.ts";
import { deciderFromFlags } from "../../project/ops/project/decide.ts";
import { loadProject } from "../../project/plugins/load.ts";
import { PluginHost } from "../../project/plugins/plugin_host.ts";
import { TempProject } from "../project/temp_project.ts";

const KV = fileURLToPath(new URL("../../examples/plugins/kv", import.meta.url));
const NS = "plugins.waft.example/contracts/kv@1";
const GUEST = `(module
  (import "${NS}" "set" (func $set (param i64 i32 i64 i32) (result i32)))
  (import "${NS}" "get" (func $get (param i64 i32 i64 i32) (result i32)))
  (import "${NS}" "remove" (func $remove (param i64 i32) (result i32)))
  (import "${NS}" "count" (func $count (result i32)))
  (memory (export "memory") 40)
  (export "set" (func $set)) (export "get" (func $get)) (export "remove" (func $remove)) (export "count" (func $count)))`;

interface Store {
  set(key: string, value: string | Uint8Array): number;
  get(key: string): string | number;
  remove(key: string): number;
  count(): number;
  close(): void;
}

interface Opened {
  readonly project: TempProject;
  readonly logged: string[];
  open(): Store;
}

async function withKv(deny: readonly string[], maxEntries: number, work: (opened: Opened) => void): Promise<void> {
  const project = new TempProject();
  try {
    cpSync(KV, join(project.root, "kv"), { recursive: true });
    const context = await project.context(undefined, { inspect: inspectModule });
    await addPlugins(context, {
      root: project.root,
      directory: project.root,
      specs: ["./kv"],
      decider: deciderFromFlags({ allow: [], deny, allowRequested: true, command: "" }).decide,
      config: new Map([["plugins.waft.example/kv", { maxEntries }]]),
    });
    const engine = NewEngine();
    const logged: string[] = [];
    const log = (_: string, __: number, text: string) => void logged.push(text);
    const host = new PluginHost(await loadProject(context, project.root), engine, { log });
    const module = engine.compile(GUEST);
    work({
      project,
      logged,
      open() {
        const graph = host.start({ module, digest: digestBytes(new TextEncoder().encode(GUEST)) });
        const memory = graph.guest.exports.memory;
        assert.ok(memory instanceof Memory);
        const put = (at: number, value: string | Uint8Array): [bigint, number] => {
          const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
          new Uint8Array(memory.buffer).set(bytes, at);
          return [BigInt(at), bytes.length];
        };
        const call = (name: string, ...args: unknown[]) => graph.call({}, name, ...args) as number;
        return {
          set: (key, value) => call("set", ...put(0, key), ...put(4096, value)),
          get(key) {
            const size = call("get", ...put(0, key), 4096n, 1 << 21);
            return size < 0 ? size : new TextDecoder().decode(new Uint8Array(memory.buffer, 4096, size));
          },
          remove: (key) => call("remove", ...put(0, key)),
          count: () => call("count"),
          close: () => graph.close(),
        };
      },
    });
  } finally {
    project.remove();
  }
}

Deno.test("kv example: values survive restarts; a cut or damaged log costs its end only", async () => {
  await withKv([], 4, ({ project, logged, open }) => {
    const file = join(project.root, "store", "kv.log");
    let kv = open();
    assert.deepEqual([kv.get("a"), kv.set("a", "one"), kv.set("b", "two"), kv.set("a", "uno")], [-4, 0, 0, 0]);
    assert.deepEqual([kv.remove("b"), kv.remove("b"), kv.count(), kv.set("", "")], [0, 4, 1, 0]);
    kv.close();
    kv = open();
    assert.deepEqual([kv.get("a"), kv.get("b"), kv.get(""), kv.count()], ["uno", -4, "", 2]);
    assert.deepEqual([kv.set("c", "3"), kv.set("d", "4"), kv.set("e", "5"), kv.set("d", "four")], [0, 0, 7, 0]);
    kv.close();
    const whole = statSync(file).size;
    truncateSync(file, whole - 1);
    kv = open();
    assert.deepEqual([kv.get("d"), kv.get("c")], ["4", "3"], "the cut change is gone, no other");
    assert.deepEqual(logged, ["the end of the log is damaged and was cut off"]);
    assert.equal(kv.set("d", "vier"), 0);
    kv.close();
    const bytes = readFileSync(file);
    bytes[bytes.length - 2] ^= 1;
    writeFileSync(file, bytes);
    kv = open();
    assert.equal(kv.get("d"), "4");
    kv.close();
    // A log with mostly stale entries is rewritten.
    kv = open();
    for (let i = 0; i < 20; i++) assert.equal(kv.set("a", `${i}`.padEnd(1000, "x")), 0);
    kv.close();
    const before = statSync(file).size;
    kv = open();
    assert.ok(statSync(file).size < before / 5);
    assert.deepEqual([kv.get("a"), kv.get("c"), kv.count()], ["19".padEnd(1000, "x"), "3", 4]);
    kv.close();
    kv = open();
    assert.deepEqual([kv.get("a"), kv.get("c"), kv.count()], ["19".padEnd(1000, "x"), "3", 4]);
    kv.close();
    // Not a log at all.
    writeFileSync(file, new Uint8Array(100).fill(255));
    kv = open();
    assert.equal(kv.count(), 0);
    kv.close();
  });
});

Deno.test("kv example: without files it forgets; keys and bytes that come and go never fill it", async () => {
  await withKv(["fs.read", "fs.write"], 1000, ({ open }) => {
    const kv = open();
    const expected = new Map<string, string>();
    // More distinct keys than the table has room for, most of them removed again.
    for (let i = 0; i < 40_000; i++) {
      const key = `key ${i}`;
      assert.equal(kv.set(key, `${i}`), 0);
      if (i % 100 === 0) expected.set(key, `${i}`);
      else assert.equal(kv.remove(key), 0);
    }
    // More bytes than the arena has.
    const big = "y".repeat(1 << 20);
    for (let i = 0; i < 40; i++) assert.equal(kv.set("big", big.slice(i)), 0);
    expected.set("big", big.slice(39));
    assert.equal(kv.count(), expected.size);
    for (const [key, value] of expected) assert.equal(kv.get(key), value);
    assert.equal(kv.get("key 1"), -4);
    assert.equal(kv.set("x".repeat(1025), ""), 6);
    kv.close();
    const again = open();
    assert.equal(again.count(), 0);
    again.close();
  });
});
