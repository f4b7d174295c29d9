/** `waft serve` as a process: log, signals, TLS, HTTP/2, mistakes; and the network of `waft run`. */
import assert from "node:assert/strict";
import { copyFileSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { fixture, get, inHome, Served } from "./served.ts";
import { waft } from "./waft.ts";

const HTTP = fixture("http.wat");
const TCP = fixture("tcp.wat");

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

Deno.test({
  name: "waft serve --h2c answers HTTP/2 without TLS, beside HTTP/1.1",
  // Bun answers HTTP/1.1 alone (docs/serve.md).
  ignore: LACKS_POSIX_FILES || "Bun" in globalThis,
}, async () => {
  await inHome(async (home) => {
    const served = new Served(home, ["--addr", "127.0.0.1:0", "--h2c", "--access-log", HTTP]);
    await served.until(() => served.err.includes("\n"));
    const url = /Listening on (\S+)/.exec(served.err)?.[1] ?? "";
    assert.deepEqual(await get(`${url}abc`), { status: 201, body: "/abc" });
    const session = connectHttp2(url);
    session.on("error", () => {});
    const stream = session.request({ ":path": "/abc" });
    const status = await new Promise((resolve) => stream.on("response", (fields) => resolve(fields[":status"])));
    stream.resume();
    await new Promise((resolve) => stream.on("close", resolve));
    assert.equal(status, 201);
    served.signal("SIGTERM");
    assert.equal(await served.ended, 0);
    session.destroy();
    assert.deepEqual(served.out.match(/HTTP\/\d\.\d" 201 4/g), ['HTTP/1.1" 201 4', 'HTTP/2.0" 201 4']);
  });
});

Deno.test("mistakes of waft serve are one line, before anything listens", async () => {
  await inHome(async (home) => {
    writeFileSync(join(home, "module.wat"), "(module)");
    writeFileSync(join(home, "empty.wat"), "(component)");
    const configs = {
      "routes.json": '{ "routes": [\n{ "component": "a", "timeout": "80 s" }] }',
      "twice.json": '{ "routes": [{ "component": "a" }, { "component": "b", "path": "/" }] }',
      "unknown.json": '{ "routes": [{ "component": "a", "paht": "/" }] }',
      "missing.json": '{ "routes": [{ "component": "missing.wasm" }] }',
    };
    for (const [name, text] of Object.entries(configs)) writeFileSync(join(home, name), text);
    const cases: [string[], number, RegExp][] = [
      [["missing.wasm"], 1, /missing\.wasm/],
      [["module.wat"], 1, /module\.wat: not a component/],
      [["empty.wat"], 1, /empty\.wat: the component does not export wasi:http\/incoming-handler/],
      [[], 2, /missing argument: a component, or --config FILE/],
      [["--config", "none.json"], 1, /none\.json/],
      [["--config", "routes.json", HTTP], 2, /--config names the components: leave out the file/],
      [["--config", "routes.json", "--inherit-env"], 2, /--inherit-env and --config exclude each other/],
      [["--config", "routes.json"], 3, /routes\.json:2:32: serve\.value: .*"80 s".* is not a time/],
      [["--config", "twice.json"], 3, /twice\.json:1:\d+: serve\.value: routes\[1\] answers the same requests as/],
      [["--config", "unknown.json"], 3, /unknown\.json:1:\d+: serve\.unknown-key: "paht" .*\n.*did you mean "path"/],
      [["--config", "missing.json"], 1, /missing\.wasm/],
      [["--max-reuse", "2", HTTP], 1, /http\.wat: --max-reuse needs a component of WASI 0\.3/],
      [["--max-reuse", "0", HTTP], 2, /--max-reuse takes a number from 1 to 99999/],
      [["--addr", "8080", HTTP], 2, /--addr takes ADDRESS:PORT, not "8080"/],
      [["--addr", "127.0.0.1:65536", HTTP], 2, /--addr takes/],
      [["--concurrent", "0", HTTP], 2, /--concurrent takes a number/],
      [["--workers", "0", HTTP], 2, /--workers takes auto or a number from 1 to 1024, not "0"/],
      [["--workers", "1", "missing.wasm"], 1, /^waft: missing\.wasm: [^\n]+\n$/],
      [["--admin", "8081", HTTP], 2, /--admin takes ADDRESS:PORT, not "8081"/],
      [["--graceful-timeout", "soon", HTTP], 2, /--graceful-timeout takes milliseconds/],
      [["--tls-key", "key.pem", HTTP], 2, /--tls-key needs --tls-cert/],
      [["--h2c", "--tls-cert", fixture("tls_one.pem"), HTTP], 2, /--h2c is for servers without TLS/],
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
    assert.match(run.err, /--net is for components: WASI preview 1 has no function that connects/);
  });
});
