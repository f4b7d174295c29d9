/** wasi:keyvalue in a Redis server. In: `redis-server`, which the tests start on the loopback interface. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRedis } from "../../project/ops/run/redis_store.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { waft } from "./waft.ts";

const DRAFTS = fileURLToPath(new URL("../component/fixtures/drafts.wat", import.meta.url));
const HAS_REDIS = spawnSync("redis-server", ["--version"]).status === 0;
const REASON = HAS_REDIS ? "" : " (ignored: no redis-server here)";

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

interface Setup {
  readonly home: string;
  /** The address of a database. */
  readonly url: string;
  readonly server: ChildProcess;
}

async function withRedis(action: (setup: Setup) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-redis-"));
  const port = await freePort();
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", home];
  const server = spawn("redis-server", args, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((resolve) => server.on("close", resolve));
  try {
    await new Promise<void>((resolve) => {
      server.stdout?.on("data", (part) => String(part).includes("Ready to accept connections") && resolve());
    });
    await action({ home, url: `redis://127.0.0.1:${port}/0`, server });
  } finally {
    server.kill("SIGKILL");
    await ended;
    removeFolder(home);
  }
}

Deno.test({
  name: `a component stores values in Redis, below its prefix${REASON}`,
  ignore: LACKS_POSIX_FILES || !HAS_REDIS,
}, () =>
  withRedis(async ({ home, url, server }) => {
    const run = (address: string, call: string) => {
      const grants = ["--config-var", "name=Ada", "--logging", "--keyvalue-redis", address];
      return waft(["run", ...grants, "--invoke", call, DRAFTS], home, home);
    };
    const shown = await run(`${url}?prefix=shop:`, "show()");
    assert.deepEqual(shown, { code: 0, out: '"Ada"\n', err: "warn test: Ada\n" });
    assert.deepEqual(await run(`${url}?prefix=a*b:`, "fill(100000)"), { code: 0, out: "0\n", err: "" });
    const { store, close } = await openRedis(url);
    try {
      assert.deepEqual((await store.keys()).sort(), ["a*b:k", "shop:k"]);
      assert.deepEqual(await store.get("shop:k"), new TextEncoder().encode("Ada"));
      assert.equal((await store.get("a*b:k"))?.length, 100_000);
      assert.deepEqual([await store.exists("shop:k"), await store.exists("k")], [true, false]);
      await store.delete("shop:k");
      assert.equal(await store.get("shop:k"), undefined);
      await store.set("axb:k", new Uint8Array([0, 255]));
      const some = await openRedis(`${url}?prefix=a*b:`);
      assert.deepEqual(await some.store.keys(), ["k"], "a prefix is no pattern");
      some.close();
      server.kill("SIGKILL");
      await assert.rejects(async () => {
        for (let k = 0; k < 1000; k++) await store.get("k");
      }, { payload: { tag: "other", val: "the store is unavailable" } });
    } finally {
      close();
    }
  }));

Deno.test("addresses that are none, and servers that cannot be reached, are one line", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-redis-"));
  try {
    const cases: [string[], number, RegExp][] = [
      [["--keyvalue-redis", "localhost:6379"], 2, /--keyvalue-redis takes redis:\/\/HOST:PORT\/DATABASE/],
      [["--keyvalue-redis", "redis://h/a"], 2, /--keyvalue-redis takes/],
      [["--keyvalue-redis", "redis://h/0?db=1"], 2, /--keyvalue-redis takes/],
      [
        ["--keyvalue-redis", "redis://127.0.0.1:1/0"],
        1,
        /--keyvalue-redis: cannot reach 127\.0\.0\.1:1: .*ECONNREFUSED/,
      ],
      [["--keyvalue-redis", "redis://h/0", "--keyvalue"], 2, /--keyvalue and --keyvalue-redis exclude each other/],
    ];
    for (const [args, code, message] of cases) {
      const run = await waft(["run", ...args, "--invoke", "show()", DRAFTS], home, home);
      assert.equal(run.code, code, run.err);
      assert.match(run.err, message);
      assert.equal(run.err.trimEnd().split("\n").length, 1);
    }
  } finally {
    removeFolder(home);
  }
});
