/**
 * The registry as a process: one command starts it, the token is shown once, it stops cleanly, and kill -9 loses no
 * acknowledged change.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createAccount } from "../../registry/store/accounts.ts";
import { migrate } from "../../registry/store/migrations.ts";
import { PostgresDatabase } from "../../registry/store/postgres.ts";
import { SqliteDatabase } from "../../registry/store/sqlite.ts";
import { CODEC, codecDefinition, definition } from "../project/sample_plugins.ts";
import { App, WAFT } from "./registry_process.ts";
import { contentDigest, realArchive } from "./test_registry.ts";

Deno.test("one command starts a registry; kill -9 loses nothing acknowledged; SIGTERM ends it cleanly", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waft-process-"));
  const args = ["--port", "0", "--data", folder, "--trust-proxy", "--rate-factor", "1000"];
  const first = new App(args);
  try {
    const url = await first.saw(/^registry: (http:\/\/127\.0\.0\.1:\d+)$/m);
    const token = await first.saw(/^admin token, shown only this once: (waft_\w{43})$/m);
    const json = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const granted = await fetch(`${url}/api/prefixes`, {
      method: "POST",
      headers: json,
      body: JSON.stringify({ prefix: "github.com/acme", account: "admin" }),
    });
    assert.equal(granted.status, 201, await granted.text());
    const archive = realArchive([codecDefinition()]);
    const published = await fetch(`${url}/api/packages/github.com:acme:codec/versions/2.0.1`, {
      method: "PUT",
      headers: { ...json, "content-type": "application/gzip", "content-digest": contentDigest(archive) },
      body: archive,
    });
    assert.equal(published.status, 201, await published.text());
    let acknowledged = 0;
    let unknown = 0;
    const installing = Promise.all(Array.from({ length: 300 }, async (_, i) => {
      try {
        const answer = await fetch(`${url}/api/packages/github.com:acme:codec/installs`, {
          method: "POST",
          headers: { "x-forwarded-for": `10.${i >> 8}.${i & 255}.1` },
        });
        await answer.arrayBuffer();
        if (answer.status === 200) acknowledged++;
        if (acknowledged === 100) first.child.kill("SIGKILL");
      } catch {
        unknown++;
      }
    }));
    await installing;
    await first.ended;
    assert.ok(acknowledged >= 100, String(acknowledged));

    const second = new App(args);
    try {
      const again = await second.saw(/^registry: (\S+)$/m);
      const detail = await (await fetch(`${again}/api/packages/github.com:acme:codec`)).json() as {
        name: string;
        installs: { total: number };
      };
      assert.equal(detail.name, CODEC);
      assert.ok(detail.installs.total >= acknowledged, `${detail.installs.total} of ${acknowledged}`);
      assert.ok(detail.installs.total <= acknowledged + unknown, `${detail.installs.total} of ${acknowledged}`);
      await (await fetch(`${again}/api/packages/odd%0A%7B%22event%22`)).body?.cancel();
      // Not child.kill: it makes Deno report the signal regardless of the process's exit status.
      process.kill(second.child.pid!, "SIGTERM");
      assert.equal(await second.ended, 0);
      assert.match(second.text, /registry: stopping/);
      // Each log entry is a JSON object on one line, for any request.
      const events = second.text.split("\n").filter((line) => line.startsWith("{")).map((line) =>
        JSON.parse(line) as { at: string; event: string; path?: string; status?: number; requestId?: string }
      );
      const odd = events.find((e) => e.path?.includes("odd"))!;
      assert.deepEqual([odd.event, odd.status, odd.path], ["request", 400, "/api/packages/odd%0A%7B%22event%22"]);
      assert.match(odd.requestId!, /^[0-9a-f]{16}$/);
      assert.ok(events.every((e) => !Number.isNaN(Date.parse(e.at)) && e.event !== ""));
      assert.doesNotMatch(second.text, /admin token/);
    } finally {
      second.child.kill("SIGKILL");
    }
  } finally {
    first.child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
});

Deno.test("wrong arguments are told with the usage, and a port in use is one clear line", async () => {
  for (const args of [["fly"], ["--port", "x"], ["backup"], ["--nonsense"], ["serve", "more"]]) {
    const app = new App([...args, "--data", join(tmpdir(), "waft-never")]);
    const code = await app.ended;
    assert.equal(code, 2, `${args.join(" ")}: ${app.text}`);
    assert.doesNotMatch(app.text, /\n\s+at /, "no stack trace");
  }
  const nowhere = new App(["--releases", tmpdir(), "--data", join(tmpdir(), "waft-never")]);
  assert.equal(await nowhere.ended, 1);
  assert.match(nowhere.text, /^registry: \S+ has no releases\/index\.json; `deno task release --out \S+` writes it\n$/);
  const holder = createServer().listen(0, "127.0.0.1");
  await once(holder, "listening");
  const { port } = holder.address() as AddressInfo;
  const folder = await mkdtemp(join(tmpdir(), "waft-process-"));
  try {
    const second = new App(["--port", String(port), "--data", folder]);
    assert.equal(await second.ended, 1);
    assert.match(second.text, /^registry: [^\n]*(?:EADDRINUSE|in use)[^\n]*\n$/);
    const third = new App(["--port", "0", "--data", folder]);
    await third.saw(/^admin token, shown only this once: (waft_\w{43})$/m);
    third.child.kill("SIGKILL");
    await third.ended;
  } finally {
    holder.close();
    await rm(folder, { recursive: true, force: true });
  }
});

Deno.test("waft registry: serve, backup, restore and migrate move a registry to another place", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waft-process-"));
  const file = join(folder, "backup.sqlite");
  const waft = async (...args: string[]): Promise<string> => {
    const app = new App(["registry", ...args], { main: WAFT });
    return `${await app.ended} ${app.text.trim()}`;
  };
  const first = new App(["registry", "serve", "--port", "0", "--data", join(folder, "a")], { main: WAFT });
  try {
    const url = await first.saw(/^registry: (\S+)$/m);
    await first.saw(/^example: (plugins\.waft\.example\/log) /m);
    const account = (...args: string[]): Promise<string> => waft("account", ...args, "--data", join(folder, "a"));
    const made = await account("ada", "--prefix", "github.com/ada", "--prefix", "ada.example", "--days", "7");
    assert.match(
      made,
      /^0 registry: ada may publish ada\.example, github\.com\/ada\ntoken, shown only this once: waft_\w{43}$/,
    );
    assert.match(
      await account("bob", "--prefix", "github.com/ada"),
      /^1 waft: github\.com\/ada belongs to another account$/,
    );
    const mistyped = join(folder, "aa");
    for (const words of [["account", "eve"], ["backup", join(folder, "none")], ["publish-docs", "nightly"]]) {
      assert.match(await waft(...words, "--data", mistyped), /^1 waft: there is no registry in .*aa: --data names/);
    }
    await assert.rejects(stat(mistyped), "a mistyped folder becomes no registry");
    await writeFile(join(folder, "text"), "no backup".repeat(200));
    assert.match(
      await waft("restore", join(folder, "text"), "--data", join(folder, "c")),
      /^1 waft: .*text is not a backup of a registry$/,
    );
    assert.match(await account("Bob!"), /^1 waft: "Bob!" is not an account name: /);
    assert.match(await account("bob", "--prefix", "GitHub"), /^1 waft: "GitHub" is not a prefix: /);
    assert.match(await account("bob", "--scopes", "publish,fly"), /^2 .*Scopes are/s);
    assert.match(await account("admin", "--scopes", "admin"), /^0 registry: admin may publish .*waft\.example/);
    const archive = realArchive([definition("github.com/ada/codec", "1.0.0")]);
    const published = await fetch(`${url}/api/packages/github.com:ada:codec/versions/1.0.0`, {
      method: "PUT",
      headers: {
        authorization: `Bearer ${/waft_\w{43}/.exec(made)![0]}`,
        "content-type": "application/gzip",
        "content-digest": contentDigest(archive),
      },
      body: archive,
    });
    assert.equal(published.status, 201, await published.text());
    const status = async (printed: string): Promise<number> => {
      const headers = { authorization: `Bearer ${/waft_\w{43}/.exec(printed)![0]}` };
      const answer = await fetch(`${url}/api/account`, { headers });
      await answer.body?.cancel();
      return answer.status;
    };
    const suspend = (...args: string[]): Promise<string> => waft("suspend", ...args, "--data", join(folder, "a"));
    assert.equal(await status(made), 200);
    assert.match(await suspend("nil"), /^1 waft: there is no account "nil"$/);
    assert.match(await suspend("--lift", "ada"), /^1 waft: ada is not suspended$/);
    assert.match(await suspend("ada"), /^0 registry: ada is suspended; 1 token revoked$/);
    assert.equal(await status(made), 401, "the running registry refuses the token");
    assert.match(await suspend("ada"), /^0 registry: ada is suspended; 0 tokens revoked$/);
    assert.match(await account("ada"), /^1 waft: ada is suspended; `registry suspend --lift ada` ends the suspension$/);
    assert.match(await suspend("--lift", "ada"), /^0 registry: ada is no longer suspended; .* makes a new token$/);
    assert.equal(await status(made), 401, "a revoked token stays revoked");
    assert.equal(await status(await account("ada")), 200);
    assert.match(await waft("backup", file, "--data", join(folder, "a")), /^0 registry: written .*: \d+ rows$/);
    assert.match(await waft("backup", file, "--data", join(folder, "a")), /^1 waft: .* exists already$/);
    assert.equal((await stat(file)).mode & 0o777, 0o600, "the signing key is in it");
    assert.match(await waft("restore", file, "--data", join(folder, "b")), /^0 registry: restored .*: \d+ rows$/);
    assert.match(await waft("restore", file, "--data", join(folder, "b")), /^1 waft: .* not empty/);
    assert.match(await waft("migrate", "--data", join(folder, "b")), /^0 registry: 0 migrations applied$/);
    assert.match(await waft("migrate", "--to", "postgres", "--data", join(folder, "b")), /^1 waft: .* DATABASE_URL/);
    const second = new App(["registry", "--port", "0", "--data", join(folder, "b")], { main: WAFT });
    try {
      const copy = await second.saw(/^registry: (\S+)$/m);
      const path = "/api/packages/plugins.waft.example:kv/versions/0.1.0";
      const [before, after] = await Promise.all([url, copy].map(async (u) => await (await fetch(u + path)).text()));
      assert.equal(after, before, "the same record with the same signature");
      assert.doesNotMatch(second.text, /admin token/, "the accounts came along");
    } finally {
      second.child.kill("SIGKILL");
      await second.ended;
    }
  } finally {
    first.child.kill("SIGKILL");
    await first.ended;
    await rm(folder, { recursive: true, force: true });
  }
});

Deno.test("the first steps of the documentation, word for word", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waft-steps-"));
  const page = await readFile(new URL("../../docs/registry.md", import.meta.url), "utf8");
  const blocks = [...page.matchAll(/```sh\n([^]*?)```/g)].map((m) => m[1]);
  const [serving, authoring, using, yanking] = blocks;
  assert.match(serving!, /^waft registry serve --port 8750 --data \.\/registry-data\n$/);
  const author = join(folder, "author");
  const user = join(folder, "user");
  for (const place of [author, user]) await mkdir(place);
  const data = join(author, "registry-data");
  const app = new App(["registry", "serve", "--port", "0", "--data", data], { main: WAFT });
  try {
    const url = await app.saw(/^registry: (\S+)$/m);
    await app.saw(/^example: (plugins\.waft\.example\/log) /m);
    await writeFile(join(folder, "waft"), `#!/bin/sh\nexec "${process.execPath}" run -A --no-check "${WAFT}" "$@"\n`, {
      mode: 0o755,
    });
    let token = "";
    const run = async (cwd: string, line: string): Promise<string> => {
      const command = line.replace("http://127.0.0.1:8750", url).replace("waft_…", token);
      const env = {
        ...process.env,
        PATH: `${folder}:${process.env.PATH}`,
        WAFT_HOME: join(folder, "home"),
        DATABASE_URL: "",
      };
      const child = spawn("sh", ["-c", command], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
      let text = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk: Uint8Array) => text += new TextDecoder().decode(chunk));
      }
      const [code] = await once(child, "close") as [number];
      assert.equal(code, 0, `${command}\n${text}`);
      token ||= /waft_\w{43}/.exec(text)?.[0] ?? "";
      return text;
    };
    for (const line of authoring!.trim().replaceAll("\\\n", "").split("\n")) await run(author, line);
    for (const line of using!.trim().split("\n")) {
      // There is no terminal to review at.
      const last = await run(user, line.startsWith("waft add") ? `${line} --allow-requested` : line);
      if (line.startsWith("waft plugin check")) assert.match(last, /^passed$/m);
    }
    const withToken = (line: string): string => `WAFT_REGISTRY=${url} WAFT_TOKEN=${token} ${line}`;
    for (const line of yanking!.trim().split("\n")) await run(author, withToken(line));
    // docs/getting-started.md, from its first module to the last command; the installer has separate tests.
    const start = await readFile(new URL("../../docs/getting-started.md", import.meta.url), "utf8");
    const beginner = join(folder, "beginner");
    await mkdir(beginner);
    await writeFile(join(beginner, "gcd.wat"), /```wat\n([^]*?)```/.exec(start)![1]);
    const lines = [...start.matchAll(/```sh\n([^]*?)```/g)].flatMap((m) => m[1].trim().split("\n"));
    assert.ok(lines.length >= 8);
    for (const line of lines) {
      if (line.startsWith("sh installer/install.sh ")) continue;
      // The first form asks at a terminal; there is none here.
      if (line === "waft add plugins.waft.example/kv") continue;
      const text = await run(beginner, `WAFT_REGISTRY=${url} ${line}`);
      if (line.startsWith("waft run")) assert.equal(text, "21\n");
    }
  } finally {
    app.child.kill("SIGKILL");
    await app.ended;
    await rm(folder, { recursive: true, force: true });
  }
});

const postgres = process.env.DATABASE_URL;
Deno.test({
  name: `migrate --to postgres${postgres === undefined ? " (ignored: DATABASE_URL is not set)" : ""}`,
  ignore: postgres === undefined,
  async fn() {
    const folder = await mkdtemp(join(tmpdir(), "waft-process-"));
    const schema = `waft_move_${randomBytes(6).toString("hex")}`;
    const admin = new PostgresDatabase(postgres!, { connections: 1 });
    await admin.run(`CREATE SCHEMA ${schema}`);
    try {
      const source = new SqliteDatabase(join(folder, "registry.sqlite"));
      await migrate(source);
      await createAccount(source, "ada", 1);
      await source.close();
      const databaseUrl = `${postgres}?search_path=${schema}`;
      const move = new App(["migrate", "--to", "postgres", "--data", folder], { databaseUrl });
      assert.equal(`${await move.ended} ${move.text}`, "0 registry: copied 1 rows into PostgreSQL\n");
      const rows = await admin.all(`SELECT name FROM ${schema}.accounts`);
      assert.deepEqual(rows.map((r) => r.name), ["ada"]);
    } finally {
      await admin.run(`DROP SCHEMA ${schema} CASCADE`);
      await admin.close();
      await rm(folder, { recursive: true, force: true });
    }
  },
});
