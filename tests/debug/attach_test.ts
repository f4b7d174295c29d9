/**
 * Editors that attach to instances of an embedder's program: stops while the program runs on, several instances,
 * waiting for an editor, editors that leave or violate the protocol.
 */
import { DebugClient } from "@vscode/debugadapter-testsupport";
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { DebugServer } from "../../project/debug/mod.ts";
import { HANG_MS } from "../support/hang.ts";

const TEXT = `(module
  (import "host" "twice" (func $twice (param i32) (result i32)))
  (global $calls (mut i32) (i32.const 0))
  (func $start (global.set $calls (i32.const 10)))
  (start $start)
  (func $square (param $n i32) (result i32)
    (i32.mul (local.get $n) (local.get $n)))
  (func (export "run") (param $n i32) (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.add (call $square (local.get $n)) (call $twice (local.get $n))))
  (func (export "fail") (unreachable))
  (func (export "calls") (result i32) (global.get $calls)))`;

const imports = { host: { twice: (n: number) => n * 2 } };
const MAIN = 1;

/** Fails instead of waiting for ever. */
async function guarded<T>(work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Error("the session has hung")), HANG_MS);
  });
  return await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function withServer(use: (server: DebugServer) => Promise<void>): Promise<void> {
  const server = await DebugServer.listen();
  try {
    await guarded(use(server));
  } finally {
    await server.close();
  }
}

/** An editor that is attached, with breakpoints in functions; at the entry if it is to stop there. */
async function attach(
  { port }: DebugServer,
  { functions = [], ...args }: { functions?: string[]; program?: string; stopOnEntry?: boolean },
): Promise<DebugClient> {
  const client = new DebugClient("", "", "waft");
  await client.start(port);
  await client.initializeRequest();
  const initialized = client.waitForEvent("initialized");
  await client.attachRequest(args as object);
  await initialized;
  await client.setFunctionBreakpointsRequest({ breakpoints: functions.map((name) => ({ name })) });
  // The stop can be reported before the answer to `configurationDone`.
  const atEntry = args.stopOnEntry ? client.waitForEvent("stopped") : undefined;
  await client.configurationDoneRequest();
  await atEntry;
  return client;
}

/** The client's end of the connection. */
function socketOf(client: DebugClient): Socket {
  return (client as unknown as { outputStream: Socket }).outputStream;
}

/** The frames of a stop, the innermost first. */
async function topFrame(client: DebugClient): Promise<string> {
  const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
  return stackFrames.map(({ name, line }) => `${name}:${line}`).join(" ");
}

Deno.test("an editor attaches to a running program, stops it, changes it, and leaves", () =>
  withServer(async (server) => {
    const plugin = await server.instantiate(TEXT, imports, { name: "plugin.wat" });
    assert.equal(await plugin.call({}, "run", 3), 15, "nothing stops without an editor");
    const client = await attach(server, { functions: ["square"] });
    const stops = client.waitForEvent("stopped");
    const result = plugin.call({}, "run", 4);
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    assert.equal((await stops).body.reason, "breakpoint");
    assert.equal(await topFrame(client), "square:7 run:10");
    const queued = plugin.call({}, "calls");
    const { scopes } = (await client.scopesRequest({ frameId: 1 })).body;
    const { variablesReference } = scopes.find(({ name }) => name === "Locals")!;
    assert.equal((await client.variablesRequest({ variablesReference })).body.variables[0].value, "4");
    await client.setVariableRequest({ variablesReference, name: "n", value: "5" });
    await assert.rejects(client.customRequest("stepBack", { threadId: MAIN }), /cannot go back/);
    const stepped = client.waitForEvent("stopped");
    await client.stepOutRequest({ threadId: MAIN });
    await stepped;
    assert.equal(await topFrame(client), "run:10");
    await client.continueRequest({ threadId: MAIN });
    assert.equal(await result, 33);
    clearInterval(timer);
    assert.ok(turns > 0, "the event loop goes on while the program is stopped");
    assert.equal(await queued, 12, "calls are made one after the other");
    const trap = client.waitForEvent("stopped");
    const failed = plugin.call({}, "fail").catch((error) => error);
    assert.deepEqual([(await trap).body.reason, (await trap).body.text], ["exception", "unreachable"]);
    const ended = client.waitForEvent("terminated");
    await client.stop();
    await ended;
    assert.match(String(await failed), /unreachable/);
    assert.equal(await plugin.call({}, "run", 4), 24, "its breakpoints are gone with it");
  }));

Deno.test("calls wait for an editor if they should, the start function included", () =>
  withServer(async (server) => {
    const made = server.instantiate(TEXT, imports, { waits: true });
    const client = await attach(server, { stopOnEntry: true });
    assert.equal(await topFrame(client), "start:4");
    await client.continueRequest({ threadId: MAIN });
    assert.equal(await (await made).call({}, "calls"), 10);
    await client.stop();
  }));

Deno.test("one editor per instance, which it names; both are told what there is", () =>
  withServer(async (server) => {
    await assert.rejects(attach(server, {}), /no debugged instance was found: there is none yet/);
    const [a, b] = [await server.instantiate(TEXT, imports), await server.instantiate(TEXT, imports)];
    assert.deepEqual([a.name, b.name], ["module", "module 2"]);
    await assert.rejects(server.instantiate(TEXT, imports, { name: "module" }), /has the name "module" already/);
    await assert.rejects(server.instantiate("(module (func (i32.add)))"), /type mismatch/);
    const client = await attach(server, { program: "module 2", functions: ["run"] });
    await assert.rejects(attach(server, { program: "module 2" }), /another editor is attached to module 2/);
    await assert.rejects(attach(server, { program: "x" }), /no debugged instance x was found: there are module, /);
    assert.equal(await a.call({}, "run", 1), 3, "the other one runs on");
    const stops = client.waitForEvent("stopped");
    const result = b.call({}, "run", 1);
    await stops;
    socketOf(client).destroy(); // without a word
    assert.equal(await result, 3);
    const next = await attach(server, { program: "module 2" });
    await next.stop();
  }));

Deno.test("a server that closes lets stopped programs go on, and limits of calls hold", () =>
  withServer(async (server) => {
    const plugin = await server.instantiate(TEXT, imports);
    const client = await attach(server, { functions: ["run"] });
    const stops = client.waitForEvent("stopped");
    const controller = new AbortController();
    const aborted = plugin.call({ signal: controller.signal }, "run", 1).catch((error) => error.name);
    await stops;
    controller.abort();
    const next = client.waitForEvent("stopped");
    const result = plugin.call({}, "run", 2);
    await client.continueRequest({ threadId: MAIN });
    assert.equal(await aborted, "AbortError");
    await next;
    await server.close();
    assert.equal(await result, 8);
    assert.throws(() => server.port, /closed/);
  }));

Deno.test("web pages and floods get nothing", () =>
  withServer(async (server) => {
    const plugin = await server.instantiate(TEXT, imports);
    const message = (command: string, seq: number) =>
      JSON.stringify({ seq, type: "request", command, arguments: { program: "module", stopOnEntry: true } });
    const body = message("attach", 1);
    const done = message("configurationDone", 2);
    const inputs = [
      `POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      `Content-Length: ${body.length}\r\nOrigin: null\r\n\r\n${body}Content-Length: ${done.length}\r\n\r\n${done}`,
      "x".repeat(100_000),
      "Content-Length: 99999999999\r\n\r\n",
      `Content-Length: 4\r\n\r\nnull`,
      `Content-Length: 9\r\n\r\n{"seq":1}`,
    ];
    for (const input of inputs) {
      const answer = await new Promise<string>((resolve, reject) => {
        let text = "";
        const socket = connect(server.port, "127.0.0.1", () => socket.end(input));
        socket.on("data", (data) => text += data);
        socket.on("close", () => resolve(text));
        socket.on("error", reject);
      });
      assert.ok(!answer.includes('"success":true'), answer);
      assert.equal(await plugin.call({}, "run", 1), 3);
    }
    const silent = Array.from({ length: 50 }, () => connect(server.port, "127.0.0.1").on("error", () => {}));
    assert.equal(await plugin.call({}, "run", 1), 3);
    for (const socket of silent) socket.destroy();
  }));
