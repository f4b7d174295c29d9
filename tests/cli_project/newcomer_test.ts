/**
 * The commands of examples/app/README.md, one by one: from an empty directory to a guest with three plugins.
 *
 * Uses the plugins and the guest of examples/ as they are checked in. A server on another thread serves the page.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createSilentServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startWaft, waft } from "./waft.ts";

const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));
const PLUGINS = ["./plugins/kv", "./plugins/log", "./plugins/http"];

interface Place {
  readonly root: string;
  run(...args: string[]): ReturnType<typeof waft>;
  /** Runs and expects this exit code. */
  expect(code: number, ...args: string[]): ReturnType<typeof waft>;
  /** Starts it and does not wait. */
  start(...args: string[]): ReturnType<typeof startWaft>;
}

async function inNewDirectory(work: (place: Place) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-newcomer-"));
  const root = join(home, "visits");
  mkdirSync(root);
  // A registry without a listener: no command here may need it.
  const env = { WAFT_REGISTRY: "http://127.0.0.1:1" };
  const run = (...args: string[]) => waft(args, root, home, env);
  try {
    await work({
      root,
      run,
      start: (...args) => startWaft(args, root, home, env),
      async expect(code, ...args) {
        const result = await run(...args);
        assert.equal(result.code, code, `waft ${args.join(" ")}\n${result.out}${result.err}`);
        return result;
      },
    });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Copies the example plugins into the project; the HTTP fetcher may then reach `port`. */
function copyExamples(root: string, port: number): void {
  cpSync(join(EXAMPLES, "plugins"), join(root, "plugins"), { recursive: true });
  cpSync(join(EXAMPLES, "app", "visits.wasm"), join(root, "visits.wasm"));
  const catalog = join(root, "plugins", "http", "register", "catalog.json");
  const text = readFileSync(catalog, "utf8");
  assert.ok(text.includes('"localhost:8080"'));
  writeFileSync(catalog, text.replace('"localhost:8080"', `"localhost:${port}"`));
}

Deno.test("a newcomer: init, add, review, run, status; offline once locked", async () => {
  const started = Date.now();
  let startMs = 0;
  const server = createServer((request, response) => response.end(`you asked for ${request.url}`));
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await inNewDirectory(async ({ root, expect }) => {
      const timeStart = async (): Promise<void> => {
        const before = Date.now();
        await expect(0, "--version");
        startMs = Math.max(startMs, Date.now() - before);
      };
      await timeStart();
      await expect(0, "init", "--full", "--kind", "application", "--name", "Visits", "--yes");
      assert.equal((await expect(0, "run", "main.wat", "20", "22")).out, "42\n");
      copyExamples(root, port);

      // Without plugins, linking the guest fails and the message names the missing import.
      assert.match(
        (await expect(1, "run", "--invoke", "visit", "visits.wasm")).err,
        /plugins\.waft\.example\/contracts/,
      );
      // Without a terminal to review at, nothing is written, and the message lists the flags to pass.
      const asked = await expect(4, "add", ...PLUGINS);
      assert.match(asked.err, /--allow/);
      assert.ok(!existsSync(join(root, "waft-lock.json")));
      await expect(0, "add", ...PLUGINS, "--allow-requested");
      await expect(0, "plugin", "check", "--offline");

      const first = await expect(0, "run", "--invoke", "visit", "visits.wasm");
      assert.equal(first.out, "1\n");
      const lines = first.err.trim().split("\n").map((line) => JSON.parse(line) as { [key: string]: unknown });
      assert.equal(lines[0].message, 'visited "again"');
      assert.ok(Math.abs(Number(lines[0].ms) - Date.now()) < 60_000);
      assert.deepEqual(lines[1].counters, { visits: 1 });
      assert.equal((await expect(0, "run", "--offline", "--invoke", "visit", "visits.wasm")).out, "2\n");
      assert.ok(existsSync(join(root, "store", "kv.log")));
      assert.equal(readFileSync(join(root, "logs", "app.log"), "utf8").trim().split("\n").length, 4);

      // status * 1000 + size of the body
      const body = "you asked for /hello".length;
      const fetched = await expect(0, "run", "--invoke", "fetch", "visits.wasm", String(port));
      assert.equal(fetched.out, `${200_000 + body}\n`);
      assert.equal((await expect(0, "run", "--invoke", "fetch", "visits.wasm", "1")).out, "-3\n", "not granted");

      // Locked: paths have no fixed source.
      assert.match((await expect(3, "run", "--locked", "--invoke", "visit", "visits.wasm")).err, /lock\.path/);
      const locked = await expect(
        0,
        "run",
        "--locked",
        "--allow-path-plugins",
        "--offline",
        "--invoke",
        "visit",
        "visits.wasm",
      );
      assert.equal(locked.out, "3\n");
      assert.match((await expect(1, "run", "--bare", "--invoke", "visit", "visits.wasm")).err, /unknown import/);
      assert.match((await expect(0, "status")).out, /up to date\s+3 plugins/);

      // A plugin that changed since it was locked does not run.
      writeFileSync(join(root, "plugins", "kv", "README.md"), "changed");
      assert.match((await expect(3, "run", "--invoke", "visit", "visits.wasm")).err, /lock\.path-changed/);
      writeFileSync(join(root, "waft-lock.json"), "{");
      assert.match((await expect(3, "run", "main.wat", "20", "22")).err, /lock\.syntax/);
      assert.equal((await expect(0, "run", "--bare", "main.wat", "20", "22")).out, "42\n");
      await timeStart();
    });
  } finally {
    server.close();
    server.closeAllConnections();
  }
  // A minute, or more where even `--version` takes most of a second: then the machine has other things to do.
  const took = Date.now() - started;
  assert.ok(took < Math.max(60_000, 90 * startMs), `${took} ms, with ${startMs} ms a start`);
});

Deno.test("a newcomer: denied optional authorities, and a trap in a plugin, at the command line", async () => {
  await inNewDirectory(async ({ root, expect }) => {
    await expect(0, "init", "--quick");
    copyExamples(root, 1);
    const deny = ["fs.read", "fs.write", "clock.wall"].flatMap((name) => ["--deny", name]);
    await expect(0, "add", ...PLUGINS, "--allow-requested", ...deny);
    for (let i = 0; i < 2; i++) {
      const { out, err } = await expect(0, "run", "--invoke", "visit", "visits.wasm");
      assert.equal(out, "1\n", "nothing is kept");
      assert.deepEqual(JSON.parse(err.split("\n")[0]), { level: "info", message: 'visited "again"' });
    }
    assert.ok(!existsSync(join(root, "store")) && !existsSync(join(root, "logs")));
  });
  await inNewDirectory(async ({ root, expect }) => {
    await expect(
      0,
      ...["init", "--full", "--kind", "plugin", "--name", "Greeter", "--module", "t.example/greeter", "--yes"],
      ...["--description", "Greets", "--license", "MIT", "--repository", "https://t.example/greeter", "--project", "p"],
    );
    await expect(0, "init", "--quick");
    await expect(0, "add", "./p", "--allow-requested");
    assert.equal((await expect(0, "run", "p/test/guest.wat")).out, "19\n");
    const source = join(root, "p", "src", "plugin.wat");
    writeFileSync(source, readFileSync(source, "utf8").replace("(i32.const 19)))\n", "unreachable))\n"));
    await expect(0, "parse", "p/src/plugin.wat", "-o", "p/dist/plugin.wasm");
    await expect(0, "add", "./p", "--allow-requested");
    const trapped = await expect(134, "run", "p/test/guest.wat");
    assert.match(trapped.err, /unreachable in plugin t\.example\/greeter/);
  });
});

Deno.test("a newcomer: a server that never answers holds up a run no longer than its deadline, or Ctrl-C", async () => {
  const sockets = new Set<Socket>();
  const server = createSilentServer((socket) => void sockets.add(socket.on("error", () => {})));
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await inNewDirectory(async ({ root, expect, start }) => {
      await expect(0, "init", "--quick");
      copyExamples(root, port);
      await expect(0, "add", ...PLUGINS, "--allow-requested");
      // On a busy machine, the work before the wait may exceed a short deadline; retry with a longer one.
      for (let timeout = 1500, late = ""; !/in plugin plugins\.waft\.example\/http/.test(late); timeout *= 3) {
        assert.ok(timeout < 20_000, late);
        late = (await expect(134, "run", "--timeout", `${timeout}`, "--invoke", "fetch", "visits.wasm", `${port}`)).err;
        assert.match(late, /interrupted/);
      }

      const waiting = sockets.size;
      const child = start("run", "--invoke", "fetch", "visits.wasm", String(port));
      const ended = new Promise<string | null>((resolve) => child.on("close", (_, signal) => resolve(signal)));
      while (sockets.size === waiting) await new Promise((resolve) => setTimeout(resolve, 20));
      child.kill("SIGINT");
      assert.equal(await ended, "SIGINT");
    });
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});
