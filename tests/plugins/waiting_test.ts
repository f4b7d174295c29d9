/**
 * Plugins that wait for the network in asynchronous calls: the event loop keeps running, calls take turns, and
 * deadline, signal and fuel apply.
 */
import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { TrapError } from "@waft/engine";
import { CONTRACT, guestModule, hostOf, PLUGIN, type TestPlugin } from "./plugin_project.ts";
import { HANG_MS } from "../support/hang.ts";

const NS = `${CONTRACT}@1`;

/** Connects, sends 4 bytes of its memory, and returns the answer plus `work` rounds of a loop. */
function client(port: number): TestPlugin {
  return {
    provides: ["ask i32,i32->i32", "calls ->i32"],
    requests: { "net.connect": { hosts: [`127.0.0.1:${port}`] }, "caller.memory.read": {} },
    wat: `(module
      (import "waft:net@1" "connect" (func $connect (param i32 i32 i32) (result i32)))
      (import "waft:net@1" "send" (func $send (param i32 i32 i32) (result i32)))
      (import "waft:net@1" "receive" (func $receive (param i32 i32 i32) (result i32)))
      (import "waft:net@1" "close" (func $close (param i32) (result i32)))
      (import "waft:caller@1" "read" (func $read (param i64 i32 i32) (result i32)))
      (memory 1) (data (i32.const 0) "127.0.0.1") (global $calls (mut i32) (i32.const 0))
      (func (export "${NS}#calls") (result i32) (global.get $calls))
      (func (export "${NS}#ask") (param $what i32) (param $work i32) (result i32) (local $s i32) (local $n i32)
        (local.set $s (call $connect (i32.const 0) (i32.const 9) (i32.const ${port})))
        (if (i32.lt_s (local.get $s) (i32.const 0)) (then (return (local.get $s))))
        (i32.store (i32.const 100) (local.get $what))
        (drop (call $send (local.get $s) (i32.const 100) (i32.const 4)))
        (local.set $n (call $receive (local.get $s) (i32.const 200) (i32.const 4)))
        (drop (call $close (local.get $s)))
        (if (i32.lt_s (local.get $n) (i32.const 0)) (then (return (local.get $n))))
        (loop $l (if (local.get $work) (then (local.set $work (i32.sub (local.get $work) (i32.const 1))) (br $l))))
        ;; The caller is the same after the wait as before.
        (if (call $read (i64.const 0) (i32.const 300) (i32.const 4)) (then unreachable))
        (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (i32.add (i32.load (i32.const 200)) (i32.load (i32.const 300)))))`,
  };
}

const GUEST = `(module
  (import "${NS}" "ask" (func $ask (param i32 i32) (result i32)))
  (import "${NS}" "calls" (func $calls (result i32)))
  (memory (export "memory") 1) (data (i32.const 0) "\\01\\00\\00\\00")
  (func (export "ask") (param i32) (result i32) (call $ask (local.get 0) (i32.const 0)))
  (func (export "twice") (param i32) (result i32)
    (i32.add (call $ask (local.get 0) (i32.const 0)) (call $ask (local.get 0) (i32.const 0))))
  (func (export "work") (param i32) (result i32) (call $ask (i32.const 0) (local.get 0)))
  (func (export "calls") (export "f") (result i32) (call $calls)))`;

/** A server that echoes each connection's bytes after `delay` milliseconds; never if that is infinite. */
async function withServer(delay: number, work: (port: number) => Promise<void>): Promise<void> {
  const sockets = new Set<Socket>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (data) => {
      if (delay < Infinity) timers.add(setTimeout(() => socket.end(data), delay));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work((server.address() as { port: number }).port);
  } finally {
    for (const socket of sockets) socket.destroy();
    for (const timer of timers) clearTimeout(timer);
    await new Promise((resolve) => server.close(resolve));
  }
}

/** The server may be in this thread: the event loop keeps running while plugins wait. */
function waitingTest(name: string, delay: number, work: (port: number) => Promise<void>): void {
  Deno.test({
    name: `waiting: ${name}`,
    // Threads of sockets end a little later than the graph.
    sanitizeResources: false,
    sanitizeOps: false,
    fn: () => withServer(delay, work),
  });
}

waitingTest("a plugin waits for a server of this very thread", 5, async (port) => {
  const host = hostOf([client(port)], ".");
  assert.equal(host.waits, true);
  const graph = await host.startAsync(guestModule(GUEST));
  let turns = 0;
  const ticking = setInterval(() => turns++, 1);
  assert.equal(await graph.callAsync({}, "ask", 41), 42);
  assert.equal(await graph.callAsync({}, "twice", 10), 22);
  clearInterval(ticking);
  assert.ok(turns > 5, `${turns}`);
  assert.equal(graph.call({}, "calls"), 3, "between asynchronous calls synchronous ones work");
  await graph.closeAsync();
  await assert.rejects(graph.callAsync({}, "ask", 1), /graph is closed/);
});

waitingTest("calls take turns; a synchronous one in between is refused", 5, async (port) => {
  const graph = await hostOf([client(port)], ".").startAsync(guestModule(GUEST));
  const calls = [1, 2, 3, 4].map((n) => graph.callAsync({}, "ask", n));
  await new Promise((resolve) => setTimeout(resolve, 2));
  // The first call waits for the server, or has not come so far: then it is preempted.
  assert.throws(() => graph.call({}, "calls"), /waits for its turn|is preempted: callAsync waits/);
  assert.deepEqual(await Promise.all(calls), [2, 3, 4, 5]);
  assert.equal(graph.call({}, "calls"), 4);
  graph.close();
});

waitingTest("two guests wait at the same time", 20, async (port) => {
  const host = hostOf([client(port)], ".");
  const graphs = await Promise.all([1, 2, 3].map(() => host.startAsync(guestModule(GUEST))));
  assert.deepEqual(await Promise.all(graphs.map((graph, i) => graph.callAsync({}, "ask", i))), [1, 2, 3]);
  for (const graph of graphs) await graph.closeAsync();
});

waitingTest("a deadline ends a wait", Infinity, async (port) => {
  // On a busy machine, the work before the wait may exceed a short deadline; retry with a longer one.
  for (let deadline = 200, message = ""; message !== `interrupted in plugin ${PLUGIN}`; deadline *= 4) {
    assert.ok(deadline < HANG_MS, message);
    const graph = await hostOf([client(port)], ".").startAsync(guestModule(GUEST));
    const error = await graph.callAsync({ deadline }, "ask", 1).catch((error: unknown) => error);
    assert.ok(error instanceof TrapError, String(error));
    ({ message } = error);
    assert.match(message, /^interrupted/);
    await assert.rejects(graph.callAsync({}, "calls"), /graph is closed after: interrupted/);
    await graph.closeAsync();
  }
});

waitingTest("a signal ends a wait, and one before ends nothing", Infinity, async (port) => {
  const host = hostOf([client(port)], ".");
  const graph = await host.startAsync(guestModule(GUEST));
  await assert.rejects(graph.callAsync({ signal: AbortSignal.abort() }, "calls"), { name: "AbortError" });
  assert.equal(await graph.callAsync({}, "calls"), 0);
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error("enough")), 100);
  await assert.rejects(graph.callAsync({ signal: controller.signal }, "ask", 1), { message: "enough" });
  await graph.closeAsync();
  const other = await host.startAsync(guestModule(GUEST));
  assert.equal(await other.callAsync({}, "calls"), 0, "the host goes on");
  await other.closeAsync();
});

waitingTest("closing a graph ends who waits in it", Infinity, async (port) => {
  const graph = await hostOf([client(port)], ".").startAsync(guestModule(GUEST));
  const call = graph.callAsync({}, "ask", 1);
  setTimeout(() => graph.close(), 50);
  await assert.rejects(call, /closed/);
});

waitingTest("fuel that a plugin uses after it waited counts", 1, async (port) => {
  const graph = await hostOf([client(port)], ".").startAsync(guestModule(GUEST));
  const used = async (rounds: number) => {
    const context = { fuel: 1_000_000 };
    assert.equal(await graph.callAsync(context, "work", rounds), 1);
    return 1_000_000 - context.fuel;
  };
  const [few, many] = [await used(0), await used(10_000)];
  assert.ok(few > 0 && many - few > 10_000 && many - few < 200_000, `${few} ${many}`);
  assert.equal(await used(10_000), many, "the same fuel every time");
  await assert.rejects(graph.callAsync({ fuel: 20_000 }, "work", 1_000_000), {
    message: `out of fuel in plugin ${PLUGIN}`,
  });
  await graph.closeAsync();
});

waitingTest("through a plugin between, a callback into the guest, init and hooks", 2, async (port) => {
  const between = "t.example/between";
  const other = `${between}/contract`;
  const host = hostOf([
    client(port),
    {
      id: between,
      contract: other,
      provides: ["go i32->i32"],
      requests: { "caller.call": { exports: ["back"] }, "invoke.observe": {} },
      consumes: [{
        id: CONTRACT,
        major: 1,
        mode: "required",
        functions: [{ name: "ask", params: ["i32", "i32"], results: ["i32"] }],
      }],
      bindings: { [NS]: [PLUGIN] },
      wat: `(module (import "${NS}" "ask" (func $ask (param i32 i32) (result i32)))
        (import "waft:caller@1" "call" (func $call (param i32 i32 i32 i32 i32 i32) (result i32)))
        (import "waft:hooks@1" "subject-size" (func $subject (result i32)))
        (memory (export "memory") 1) (data (i32.const 8) "back")
        (global $init (mut i32) (i32.const 0)) (global $hooks (mut i32) (i32.const 0))
        (func (export "waft:self@1#init")
          (global.set $init (call $ask (i32.const 100) (i32.const 0))))
        (func (export "waft:hooks@1#before-call") (global.set $hooks (i32.add (global.get $hooks) (call $subject))))
        (func (export "waft:hooks@1#after-call") (param i32)
          (global.set $hooks (i32.add (global.get $hooks) (i32.const 100))))
        (func (export "${other}@1#go") (param i32) (result i32)
          (i64.store (i32.const 16) (i64.extend_i32_u (local.get 0)))
          (if (call $call (i32.const 8) (i32.const 4) (i32.const 16) (i32.const 1) (i32.const 24) (i32.const 1))
            (then (return (i32.const -1))))
          (i32.add (i32.add (global.get $init) (i32.load (i32.const 24))) (i32.mul (global.get $hooks) (i32.const 10000)))))`,
    },
  ], ".");
  const graph = await host.startAsync(guestModule(`(module
    (import "${other}@1" "go" (func $go (param i32) (result i32)))
    (import "${NS}" "ask" (func $ask (param i32 i32) (result i32)))
    (memory (export "memory") 1) (data (i32.const 0) "\\02\\00\\00\\00")
    (func (export "back") (param i32) (result i32) (call $ask (local.get 0) (i32.const 0)))
    (func (export "go") (param i32) (result i32) (call $go (local.get 0))))`));
  // init: 100 and the plugin's own 0; back: 5 and the guest's 2; hooks: before "go" (2), before "back" (4), after
  // "back" (100).
  assert.equal(await graph.callAsync({}, "go", 5), 100 + 7 + 1_060_000);
  await graph.closeAsync();
});
