/**
 * The registry as a process: one command starts it, the token shows once, it stops cleanly, and kill -9 loses nothing that
 * was acknowledged.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { CODEC, codecDefinition } from "../project/sample_plugins.ts";
import { contentDigest, realArchive } from "./test_registry.ts";

const MAIN = fileURLToPath(new URL("../../registry/main.ts", import.meta.url));

class App {
  readonly child: ChildProcess;
  text = "";
  readonly ended: Promise<number | null>;

  constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, ["run", "-A", "--no-check", MAIN, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, DATABASE_URL: "" },
    });
    const collect = (chunk: Uint8Array): void => {
      this.text += new TextDecoder().decode(chunk);
    };
    this.child.stdout!.on("data", collect);
    this.child.stderr!.on("data", collect);
    this.ended = new Promise((resolve) => this.child.once("exit", (code) => resolve(code)));
  }

  /** Waits until the output matches. */
  async saw(pattern: RegExp): Promise<string> {
    for (let i = 0; i < 400; i++) {
      const match = pattern.exec(this.text);
      if (match !== null) return match[1]!;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`no ${pattern} in ${this.text}`);
  }
}

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
      // Not child.kill: it makes Deno report the signal whatever the process answers to it.
      process.kill(second.child.pid!, "SIGTERM");
      assert.equal(await second.ended, 0);
      assert.match(second.text, /registry: stopping/);
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
    assert.ok(code === 2 || (code === 1 && /is no port/.test(app.text)), `${args.join(" ")}: ${code} ${app.text}`);
    assert.doesNotMatch(app.text, /\n\s+at /, "no stack trace");
  }
});
