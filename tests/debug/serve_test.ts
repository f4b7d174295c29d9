/** `waft serve --debug` as a process: an editor stops requests, each of which has an instance of its own. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostCommand } from "../support/host_arguments.ts";
import { attach, names } from "./editor.ts";

const MAIN = 1;
const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const HTTP = path("../component/fixtures/http.wat");
const ASYNC_HTTP = path("../component/fixtures/async_http.wat");

/** Starts `waft serve`; returns the process and its output so far. */
function serve(home: string, args: readonly string[]) {
  const [command, first] = hostCommand(path("../../cli.ts"));
  const env = { ...process.env, WAFT_HOME: join(home, "waft"), NO_COLOR: "1", WAFT_NO_REPORT: "1" };
  const child = spawn(command, [...first, "serve", ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  const output = { out: "", err: "" };
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  const begun = new Promise<void>((resolve) => {
    child.stdout.on("data", (part) => {
      output.out += String(part);
      if (output.out.includes("\n")) resolve();
    });
    void ended.then(() => resolve());
  });
  child.stderr.on("data", (part) => output.err += String(part));
  return { child, output, ended, begun };
}

Deno.test("an editor stops requests of waft serve --debug, one after the other", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-debug-"));
  const { child, output, ended, begun } = serve(home, ["--addr", "127.0.0.1:0", "--json", "--debug", "0", HTTP]);
  try {
    await begun;
    assert.ok(output.out.includes("listening"), output.out + output.err);
    const { url, debug } = JSON.parse(output.out.split("\n")[0]) as { url: string; debug: number };
    const get = async (path: string) => {
      const answer = await fetch(`${url}${path}`);
      return [answer.status, await answer.text()];
    };
    assert.deepEqual(await get("free"), [201, "/free"], "nothing stops without an editor");
    const client = await attach(debug, HTTP, ["handle"]);
    for (const name of ["one", "two"]) {
      const stops = client.waitForEvent("stopped");
      const answer = get(name);
      assert.equal((await stops).body.reason, "breakpoint");
      assert.equal(await names(client), "handle");
      await client.continueRequest({ threadId: MAIN });
      assert.deepEqual(await answer, [201, `/${name}`]);
    }
    await client.stop();
    assert.deepEqual(await get("free"), [201, "/free"], "its breakpoints are gone with it");
  } finally {
    child.kill("SIGKILL");
    await ended;
    rmSync(home, { recursive: true, force: true });
  }
});

Deno.test("an editor stops requests of a service of WASI 0.3", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-debug-"));
  const { child, output, ended, begun } = serve(home, ["--addr", "127.0.0.1:0", "--json", "--debug", "0", ASYNC_HTTP]);
  try {
    await begun;
    assert.ok(output.out.includes("listening"), output.out + output.err);
    const { url, debug } = JSON.parse(output.out.split("\n")[0]) as { url: string; debug: number };
    const get = async () => {
      const answer = await fetch(url);
      return [answer.status, await answer.text()];
    };
    const plain = await get();
    assert.equal(plain[0], 200, output.err);
    const client = await attach(debug, ASYNC_HTTP, ["handle"]);
    for (let round = 0; round < 2; round++) {
      const stops = client.waitForEvent("stopped");
      const answer = get();
      assert.equal((await stops).body.reason, "breakpoint");
      assert.equal(await names(client), "handle");
      await client.continueRequest({ threadId: MAIN });
      assert.deepEqual(await answer, plain);
    }
    await client.stop();
    assert.deepEqual(await get(), plain);
  } finally {
    child.kill("SIGKILL");
    await ended;
    rmSync(home, { recursive: true, force: true });
  }
});

Deno.test("waft serve --debug needs one process, one component and a port", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-debug-"));
  for (
    const [words, expected] of [
      [["--debug", "0", "--workers", "2", HTTP], /--debug needs one process/],
      [["--debug", "0", "--watch", HTTP], /--debug needs one process/],
      [["--debug", "70000", HTTP], /--debug takes a port from 0 to 65535, not "70000"/],
    ] as const
  ) {
    const { output, ended } = serve(home, words);
    assert.equal(await ended, 2, output.err);
    assert.match(output.err, expected);
  }
  rmSync(home, { recursive: true, force: true });
});
