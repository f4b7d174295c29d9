/** `waft serve` as a process: log, signals, mistakes; and the network of `waft run`. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { waft } from "./waft.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const fixture = (name: string) => fileURLToPath(new URL(`../component/fixtures/${name}`, import.meta.url));
const HTTP = fixture("http.wat");
const TCP = fixture("tcp.wat");

async function inHome(action: (home: string) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-serve-"));
  try {
    await action(home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** A running `waft serve`, with its output so far. */
class Served {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  out = "";
  err = "";

  /** `through`: a program and its arguments that start the command which follows them. */
  constructor(home: string, args: readonly string[], through: readonly string[] = [], more: NodeJS.ProcessEnv = {}) {
    const env = { ...process.env, WAFT_HOME: join(home, "waft"), NO_COLOR: "1", WAFT_NO_REPORT: "1", ...more };
    const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
    const [program, ...words] = [...through, process.execPath, ...hostArguments(CLI), "serve", ...args];
    const child = spawn(program, words, { cwd: home, env, stdio });
    this.child = child;
    child.stdout.on("data", (part) => this.out += String(part));
    child.stderr.on("data", (part) => this.err += String(part));
    this.ended = new Promise((resolve) => child.on("close", (code) => resolve(code)));
  }

  /** Sends a signal. `ChildProcess.kill` of Deno does so once, and reports it as the cause of the end. */
  signal(name: "SIGINT" | "SIGTERM" | "SIGHUP"): void {
    const { pid } = this.child;
    if (pid !== undefined) process.kill(pid, name);
  }

  get events(): Record<string, unknown>[] {
    return this.out.split("\n").filter((line) => line !== "").map((line) =>
      JSON.parse(line) as Record<string, unknown>
    );
  }

  async until(condition: () => boolean): Promise<void> {
    let code: number | null | undefined;
    void this.ended.then((ended) => code = ended);
    while (!condition()) {
      if (code !== undefined) throw new Error(`ended with status ${code}: ${this.out}${this.err}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

function get(url: string, agent: Agent | false = false): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { agent }, (message) => {
      let body = "";
      message.on("data", (part) => body += String(part));
      message.on("end", () => resolve({ status: message.statusCode ?? 0, body }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** Requests a path over TLS without checking the certificate, and returns the name in it. */
function getSecurely(port: number, path: string): Promise<{ status: number; body: string; name: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, agent: false, rejectUnauthorized: false };
    const sent = httpsRequest(options, (message) => {
      const { CN } = (message.socket as TLSSocket).getPeerCertificate().subject;
      let body = "";
      message.on("data", (part) => body += String(part));
      message.on("end", () => resolve({ status: message.statusCode ?? 0, body, name: String(CN) }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

Deno.test({
  name: "waft serve answers requests, writes a line per event, and stops gracefully on SIGTERM",
  ignore: LACKS_POSIX_FILES,
}, async () => {
  await inHome(async (home) => {
    const served = new Served(home, ["--addr", "127.0.0.1:0", "--json", "--timeout", "60000", HTTP]);
    await served.until(() => served.out.includes("\n"));
    const [{ event, url }] = served.events;
    assert.equal(event, "listening");
    assert.deepEqual(await get(`${url}abc`), { status: 201, body: "/abc" });
    assert.deepEqual(await get(`${url}trap`), { status: 500, body: "Internal Server Error\n" });
    const sent = httpRequest(`${url}echo`, { method: "POST", agent: false });
    sent.write("begun ");
    let body = "";
    const answered = new Promise((resolve, reject) => {
      sent.on("error", reject);
      sent.on("response", (message) => {
        message.on("data", (part) => body += String(part));
        message.on("end", resolve);
      });
    });
    await served.until(() => body === "begun ");
    served.signal("SIGTERM");
    await served.until(() => served.out.includes('"stopping"'));
    sent.end("ended");
    await answered;
    assert.equal(body, "begun ended");
    assert.equal(await served.ended, 0);
    const events = served.events;
    assert.deepEqual(events.map(({ event }) => event), [
      "listening",
      "request",
      "request",
      "stopping",
      "request",
      "stopped",
    ]);
    const [first, second] = events.filter(({ event }) => event === "request");
    assert.deepEqual([first["method"], first["path"], first["status"], first["error"]], [
      "GET",
      "/abc",
      201,
      undefined,
    ]);
    assert.deepEqual([second["status"], second["error"]], [500, "unreachable"]);
    assert.equal(served.err, "");
  });
});

Deno.test({
  name: "without --json only failures are logged, and a second signal ends at once",
  ignore: LACKS_POSIX_FILES,
}, async () => {
  await inHome(async (home) => {
    const served = new Served(home, ["--addr", "127.0.0.1:0", HTTP]);
    await served.until(() => served.err.includes("\n"));
    const url = /Listening on (\S+)/.exec(served.err)?.[1] ?? "";
    await get(`${url}abc`);
    await get(`${url}trap`);
    await served.until(() => served.err.includes("/trap"));
    assert.match(served.err, /^Listening on \S+\nwaft: request GET \/trap: status 500: unreachable\n$/);
    const sent = httpRequest(`${url}echo`, { method: "POST", agent: false });
    sent.on("error", () => {});
    sent.write("x");
    await new Promise((resolve) => sent.on("response", resolve));
    served.signal("SIGINT");
    await served.until(() => served.err.includes("Stopping; requests in progress: 1"));
    served.signal("SIGINT");
    assert.equal(await served.ended, 130);
  });
});

Deno.test({
  name: "waft serve --workers replaces workers that are killed, all of them on SIGHUP, and counts every request",
  // On Bun, the kernel gives connections to workers that end (docs/serve.md).
  ignore: LACKS_POSIX_FILES || "Bun" in globalThis,
}, async () => {
  await inHome(async (home) => {
    writeFileSync(join(home, "http.wat"), readFileSync(HTTP));
    const admin = ["--admin", "127.0.0.1:0", "--watch"];
    const served = new Served(home, ["--addr", "127.0.0.1:0", "--workers", "2", ...admin, "--json", "http.wat"]);
    const started = () => served.events.filter(({ event }) => event === "worker-started").map(({ pid }) => Number(pid));
    const count = (name: string) => served.events.filter(({ event }) => event === name).length;
    await served.until(() => served.out.includes('"listening"'));
    const { url, admin: operators } = served.events.find(({ event }) => event === "listening") ?? {};
    assert.equal(started().length, 2);
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    let answered = 0;
    const ask = async () => {
      assert.deepEqual(await get(`${url}abc`, agent), { status: 201, body: "/abc" });
      answered++;
    };
    await ask();
    await served.until(() => count("request") === 1);
    process.kill(started()[0], "SIGKILL");
    await served.until(() => started().length === 3);
    const ended = served.events.find(({ event }) => event === "worker-ended");
    assert.deepEqual([ended?.["pid"], ended?.["signal"]], [started()[0], "SIGKILL"]);
    // Requests go on without a pause, over connections that stay open, while all workers are replaced.
    let isReloading = true;
    const clients = Array.from({ length: 4 }, async () => {
      while (isReloading) await ask();
    });
    served.signal("SIGHUP");
    await served.until(() => count("reloaded") === 1);
    // A file that is no component leaves the old workers in place.
    writeFileSync(join(home, "http.wat"), "(module)");
    await served.until(() => count("reloaded") === 2);
    isReloading = false;
    await Promise.all(clients);
    assert.deepEqual(served.events.filter(({ event }) => event === "reloaded").map(({ ok }) => ok), [true, false]);
    assert.match(served.err, /http\.wat: not a component/);
    assert.equal((await get(`${operators}readyz`)).status, 200);
    const { status, body } = await get(`${operators}metrics`);
    assert.equal(status, 200);
    const sample = (series: string) =>
      Number(body.split("\n").find((line) => line.startsWith(`${series} `))?.split(" ")[1]);
    assert.equal(sample("waft_workers"), 2);
    assert.equal(sample("waft_worker_restarts_total"), 1);
    assert.equal(sample('waft_reloads_total{result="success"}'), 1);
    // The killed worker may not have told about the first request.
    const counted = sample('waft_http_requests_total{method="GET",status="201"}');
    assert.ok(counted === answered || counted === answered - 1, `${counted} of ${answered}`);
    agent.destroy();
    served.signal("SIGTERM");
    assert.equal(await served.ended, 0, served.err);
    assert.equal(count("request"), answered);
    assert.equal(served.events.at(-1)?.["event"], "stopped");
  });
});

Deno.test({
  name: "waft serve --tls-cert answers HTTPS, and reads the certificate again when it changes",
  ignore: LACKS_POSIX_FILES,
}, async () => {
  await inHome(async (home) => {
    const pem = join(home, "server.pem");
    copyFileSync(fixture("tls_one.pem"), pem);
    const served = new Served(home, ["--addr", "127.0.0.1:0", "--access-log", "--tls-cert", pem, HTTP]);
    await served.until(() => served.err.includes("\n"));
    const port = Number(/^Listening on https:\/\/127\.0\.0\.1:(\d+)\/\n/.exec(served.err)?.[1]);
    assert.deepEqual(await getSecurely(port, "/abc"), { status: 201, body: "/abc", name: "one.example" });
    // A connection without a handshake must not keep the server from stopping.
    const silent = connect(port, "127.0.0.1");
    silent.on("error", () => {});
    await new Promise((resolve) => silent.once("connect", resolve));
    writeFileSync(pem, "no certificate");
    await served.until(() => served.err.includes("not replaced: "));
    assert.equal((await getSecurely(port, "/")).name, "one.example");
    copyFileSync(fixture("tls_two.pem"), pem);
    // Bun cannot replace it (docs/serve.md).
    const [said, name] = "Bun" in globalThis
      ? ["cannot replace the certificate", "one.example"]
      : ["The certificate is replaced", "two.example"];
    await served.until(() => served.err.includes(said));
    assert.equal((await getSecurely(port, "/")).name, name);
    served.signal("SIGTERM");
    assert.equal(await served.ended, 0);
    silent.destroy();
    const lines = served.out.split("\n").filter((line) => line !== "");
    assert.equal(lines.length, 3);
    assert.match(lines[0], /^127\.0\.0\.1 - - \[[^\]]+\] "GET \/abc HTTP\/1\.1" 201 4$/);
  });
});

/** Passes a listening socket to the command that follows, as systemd does. */
const ACTIVATE = `import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execvp(sys.argv[1], sys.argv[1:])`;

Deno.test({
  name: "waft serve takes its socket from systemd, and reports its state",
  ignore: LACKS_POSIX_FILES || "Bun" in globalThis,
}, async () => {
  await inHome(async (home) => {
    const notify = join(home, "systemd-notify");
    writeFileSync(notify, `#!/bin/sh\necho "$@" >> ${home}/notified\n`, { mode: 0o755 });
    const more = { PATH: `${home}:${process.env["PATH"]}`, NOTIFY_SOCKET: join(home, "notify") };
    const notified = () => existsSync(join(home, "notified")) ? readFileSync(join(home, "notified"), "utf8") : "";
    for (const options of [[], ["--workers", "1"]]) {
      rmSync(join(home, "notified"), { force: true });
      const served = new Served(home, [...options, HTTP], ["python3", "-c", ACTIVATE], more);
      await served.until(() => notified().includes("--ready") && served.err.includes("\n"));
      const url = /^Listening on (\S+)\n/.exec(served.err)?.[1] ?? "";
      assert.notEqual(url, "http://127.0.0.1:8080/");
      assert.deepEqual(await get(`${url}abc`), { status: 201, body: "/abc" });
      served.signal("SIGTERM");
      assert.equal(await served.ended, 0);
      assert.equal(notified(), `--pid=${served.child.pid} --ready\n--pid=${served.child.pid} --stopping\n`);
    }
  });
});

Deno.test("mistakes of waft serve are one line, before anything listens", async () => {
  await inHome(async (home) => {
    writeFileSync(join(home, "module.wat"), "(module)");
    writeFileSync(join(home, "empty.wat"), "(component)");
    const cases: [string[], number, RegExp][] = [
      [["missing.wasm"], 1, /missing\.wasm/],
      [["module.wat"], 1, /module\.wat: not a component/],
      [["empty.wat"], 1, /empty\.wat: the component does not export wasi:http\/incoming-handler/],
      [["--addr", "8080", HTTP], 2, /--addr takes ADDRESS:PORT, not "8080"/],
      [["--addr", "127.0.0.1:65536", HTTP], 2, /--addr takes/],
      [["--concurrent", "0", HTTP], 2, /--concurrent takes a number/],
      [["--workers", "0", HTTP], 2, /--workers takes auto or a number from 1 to 1024, not "0"/],
      [["--workers", "1", "missing.wasm"], 1, /^waft: missing\.wasm: [^\n]+\n$/],
      [["--admin", "8081", HTTP], 2, /--admin takes ADDRESS:PORT, not "8081"/],
      [["--graceful-timeout", "soon", HTTP], 2, /--graceful-timeout takes milliseconds/],
      [["--tls-key", "key.pem", HTTP], 2, /--tls-key needs --tls-cert/],
      [["--tls-cert", "missing.pem", HTTP], 1, /^waft: missing\.pem: [^\n]+\n$/],
      [["--tls-cert", HTTP, HTTP], 1, /^waft: [^\n]*http\.wat: [^\n]+\n$/],
      [["--tls-cert", fixture("tls_one.pem"), "--tls-key", fixture("tls_two.pem"), HTTP], 1, /not the certificate of/],
      [["--json", "--access-log", HTTP], 2, /--json and --access-log exclude each other/],
      [["--net", "*", HTTP], 1, /"\*" is not HOST or HOST:PORT/],
      [["--timeout", "soon", HTTP], 2, /--timeout takes milliseconds, or a number with ms, s, m or h/],
    ];
    for (const [args, code, message] of cases) {
      const run = await waft(["serve", ...args], home, home);
      assert.equal(run.code, code, `${args.join(" ")}: ${run.err}`);
      assert.match(run.err, message);
      assert.equal(run.out, "");
    }
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as { port: number };
    const run = await waft(["serve", "--addr", `127.0.0.1:${port}`, HTTP], home, home);
    taken.close();
    assert.equal(run.code, 1);
    assert.match(run.err, new RegExp(`127\\.0\\.0\\.1:${port}: .*(in use|EADDRINUSE)`));
  });
});

Deno.test("waft run --net lets a component connect to the granted address only", async () => {
  await inHome(async (home) => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (part) => socket.end(`${String(part)} pong`));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const talk = (...grants: string[]) => waft(["run", ...grants, "--invoke", `talk(${port})`, TCP], home, home);
    try {
      assert.deepEqual(await talk("--net", `127.0.0.1:${port}`), { code: 0, out: 'ok("ping pong")\n', err: "" });
      assert.deepEqual(await talk("--net", `127.0.0.1:${port === 1 ? 2 : port - 1}`), {
        code: 1,
        out: "err(access-denied)\n",
        err: "",
      });
      assert.deepEqual(await talk(), { code: 1, out: "err(access-denied)\n", err: "" });
    } finally {
      server.close();
    }
    writeFileSync(join(home, "module.wat"), '(module (func (export "_start")))');
    const run = await waft(["run", "--net", "127.0.0.1", "module.wat"], home, home);
    assert.equal(run.code, 2);
    assert.match(run.err, /--net and --listen are for components/);
  });
});
