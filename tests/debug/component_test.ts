/**
 * Editors that attach to components of a program: stops in core modules, also of a later instance, while the component
 * is suspended; allocators do not stop; traps.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { TrapError } from "@waft/engine";
import { DebugServer } from "../../project/debug/mod.ts";
import { HANG_MS } from "../support/hang.ts";
import { attach, locals, names } from "./editor.ts";

const MAIN = 1;

/** A component of two core modules, with a string for whose bytes it has an allocator, and a function of the host. */
const COMPONENT = `(component
  (import "twice" (func $twice (param "n" u32) (result u32)))
  (core func $twice (canon lower (func $twice)))
  (core module $libc
    (memory (export "m") 1)
    (global $started (mut i32) (i32.const 0))
    (func $start (global.set $started (i32.const 1)))
    (start $start)
    (func $realloc (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "half") (param $n i32) (result i32) (i32.div_u (local.get $n) (i32.add (global.get $started) (i32.const 1)))))
  (core instance $libc (instantiate $libc))
  (core module $main
    (import "libc" "half" (func $half (param i32) (result i32)))
    (import "host" "twice" (func $twice (param i32) (result i32)))
    (global $calls (mut i32) (i32.const 0))
    (func $square (param $n i32) (result i32) (i32.mul (local.get $n) (local.get $n)))
    (func $run (export "run") (param $n i32) (result i32)
      (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
      (i32.add (call $square (local.get $n)) (call $half (call $twice (local.get $n)))))
    (func (export "length") (param $at i32) (param $length i32) (result i32) (call $square (local.get $length)))
    (func $fail (export "fail") unreachable)
    (func (export "calls") (result i32) (global.get $calls)))
  (core instance $i (instantiate $main (with "libc" (instance $libc))
    (with "host" (instance (export "twice" (func $twice))))))
  (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run")))
  (func (export "length") (param "text" string) (result u32)
    (canon lift (core func $i "length") (memory (core memory $libc "m")) (realloc (core func $libc "realloc"))))
  (func (export "fail") (canon lift (core func $i "fail")))
  (func (export "calls") (result u32) (canon lift (core func $i "calls"))))`;

const imports = { twice: async (n: number) => await Promise.resolve(n * 2) };

async function withServer(use: (server: DebugServer) => Promise<void>): Promise<void> {
  const server = await DebugServer.listen();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Error("the session has hung")), HANG_MS);
  });
  try {
    await Promise.race([use(server), late]);
  } finally {
    clearTimeout(timer);
    await server.close();
  }
}

Deno.test("an editor attaches to a component, and stops it in its core modules", () =>
  withServer(async (server) => {
    const component = await server.instantiateComponent(COMPONENT, imports, { name: "shop.wasm" });
    assert.equal(await component.call({}, "run", 3), 12, "nothing stops without an editor");
    const client = await attach(server.port, "shop.wasm", ["square"]);
    const stops = client.waitForEvent("stopped");
    const result = component.call({}, "run", 4);
    const queued = component.call({}, "calls");
    assert.equal((await stops).body.reason, "breakpoint");
    assert.equal(await names(client), "square run");
    assert.deepEqual(await locals(client), ["n=4"]);
    const stepped = client.waitForEvent("stopped");
    await client.stepOutRequest({ threadId: MAIN });
    await stepped;
    assert.equal(await names(client), "run");
    await client.continueRequest({ threadId: MAIN });
    assert.deepEqual([await result, await queued], [20, 2], "calls are made one after the other");
    const trap = client.waitForEvent("stopped");
    const failed = component.call({}, "fail").catch((error) => error);
    assert.deepEqual([(await trap).body.reason, (await trap).body.text], ["exception", "unreachable"]);
    assert.equal(await names(client), "fail");
    await client.continueRequest({ threadId: MAIN });
    assert.ok(await failed instanceof TrapError);
    await client.stop();
  }));

Deno.test("functions that JavaScript calls while it passes values do not stop, the others do", () =>
  withServer(async (server) => {
    const component = await server.instantiateComponent(COMPONENT, imports);
    assert.equal(component.name, "component");
    const allocator = await attach(server.port, "component#2", ["realloc"]);
    assert.equal(await component.call({}, "length", "four"), 16);
    await allocator.stop();
    const half = await attach(server.port, "component#2", ["half"]);
    const client = await attach(server.port, "component", ["square"]);
    const stops = client.waitForEvent("stopped");
    const result = component.call({}, "run", 5);
    await stops;
    assert.equal(await names(client), "square run");
    const inOther = half.waitForEvent("stopped");
    await client.continueRequest({ threadId: MAIN });
    await inOther;
    assert.deepEqual(await locals(half), ["n=10"]);
    await half.continueRequest({ threadId: MAIN });
    assert.equal(await result, 30);
    await Promise.all([client.stop(), half.stop()]);
  }));

Deno.test("an editor that attaches to a component sees all its core modules, of later instances, too", () =>
  withServer(async (server) => {
    const component = await server.compileComponent(COMPONENT, { name: "shop.wasm" });
    const first = component.instantiate({}, imports);
    const client = await attach(server.port, "shop.wasm", ["half", "square"]);
    /** The stack at the next stop after `resume`. */
    const stack = async (resume: () => Promise<unknown>): Promise<string> => {
      const stops = client.waitForEvent("stopped");
      await resume();
      await stops;
      return await names(client);
    };
    for (const [instance, n] of [[first, 4], [component.instantiate({}, imports), 6], [first, 8]] as const) {
      let result: Promise<unknown> | undefined;
      const atSquare = await stack(() => Promise.resolve(void (result = instance.call({}, "run", n))));
      assert.equal(atSquare, "square run");
      assert.equal(await stack(() => client.continueRequest({ threadId: MAIN })), "half run");
      assert.deepEqual(await locals(client), [`n=${2 * n}`]);
      assert.equal(await stack(() => client.stepOutRequest({ threadId: MAIN })), "run");
      await client.continueRequest({ threadId: MAIN });
      assert.equal(await result, n * n + n);
    }
    const { modules } = (await client.modulesRequest({})).body;
    assert.deepEqual(modules.map(({ name }) => name), ["shop.wasm", "shop.wasm#2"]);
    await assert.rejects(attach(server.port, "shop.wasm#2", []), /another editor is attached to shop\.wasm#2/);
    await client.stop();
    assert.equal(await first.call({}, "run", 4), 20, "its breakpoints are gone with it");
    const again = await attach(server.port, "shop.wasm#2", ["half"]);
    await again.stop();
  }));

Deno.test("an editor follows the instance whose call is in progress", () =>
  withServer(async (server) => {
    const component = await server.compileComponent(COMPONENT, { waits: true });
    const first = component.instantiate({}, imports);
    const result = first.call({}, "run", 2);
    const client = await attach(server.port, "component", ["square"], true);
    const other = component.instantiate({}, imports);
    const second = other.call({}, "run", 7);
    assert.deepEqual(await locals(client), ["n=2"]);
    const next = client.waitForEvent("stopped");
    await client.continueRequest({ threadId: MAIN });
    assert.equal(await result, 6);
    await next;
    assert.deepEqual(await locals(client), ["n=7"]);
    await client.continueRequest({ threadId: MAIN });
    assert.equal(await second, 56);
    await client.stop();
    assert.equal(await first.call({}, "run", 2), 6, "its breakpoints are gone with it");
    assert.equal(await other.call({}, "run", 2), 6);
  }));

Deno.test("activations of calls between core modules end when they return", () =>
  withServer(async (server) => {
    const component = await server.instantiateComponent(`(component
      (core module $lib
        (func $half (export "half") (param $n i32) (result i32) (i32.shr_u (local.get $n) (i32.const 1))))
      (core instance $lib (instantiate $lib))
      (core module $main
        (import "lib" "half" (func $half (param i32) (result i32)))
        (func $run (export "run") (param $n i32) (result i32) (local $sum i32)
          (loop $next
            (local.set $sum (i32.add (local.get $sum) (call $half (local.get $n))))
            (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
          (local.get $sum)))
      (core instance $i (instantiate $main (with "lib" (instance $lib))))
      (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run"))))`);
    // Records of all calls would not fit into the memory that they have.
    assert.equal(await component.call({}, "run", 10_000_000), 3290337280);
    const client = await attach(server.port, "component#2", ["half"]);
    let stops = client.waitForEvent("stopped");
    const result = component.call({}, "run", 2);
    for (const n of [2, 1]) {
      await stops;
      assert.equal(await names(client), "half");
      assert.deepEqual(await locals(client), [`n=${n}`]);
      stops = client.waitForEvent("stopped");
      await client.continueRequest({ threadId: MAIN });
    }
    stops.catch(() => {});
    assert.equal(await result, 1);
    await client.stop();
  }));

const STREAMS = readFileSync(new URL("../component/fixtures/streams.wat", import.meta.url), "utf8");

function bytesOf(...parts: readonly (readonly number[])[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(Uint8Array.from(part));
      controller.close();
    },
  });
}

Deno.test("an editor stops a component with asynchronous functions while its tasks wait", () =>
  withServer(async (server) => {
    const asked: string[] = [];
    const ask = async (question: string) => {
      asked.push(question);
      await Promise.resolve();
      return 20;
    };
    const component = await server.instantiateComponent(STREAMS, { ask }, { name: "streams.wasm" });
    const sum = () => component.call({}, "sum", bytesOf([1, 2, 3, 4], [5, 6]));
    assert.equal(await sum(), 21, "nothing stops without an editor");
    const client = await attach(server.port, "streams.wasm", ["sum"]);
    for (let round = 0; round < 2; round++) {
      const stops = client.waitForEvent("stopped");
      const result = sum();
      assert.equal((await stops).body.reason, "breakpoint");
      assert.equal(await names(client), "sum");
      for (let step = 0; step < 8; step++) {
        const stepped = client.waitForEvent("stopped");
        await client.nextRequest({ threadId: MAIN });
        await stepped;
        assert.equal(await names(client), "sum", "a step over a read that waits ends in the same activation");
      }
      await client.continueRequest({ threadId: MAIN });
      assert.equal(await result, 21);
    }
    await client.stop();
    assert.equal(await sum(), 21);
    assert.deepEqual(asked, []);
  }));

Deno.test("a stop holds all tasks of a component, and each has activations of its own", () =>
  withServer(async (server) => {
    const component = await server.instantiateComponent(STREAMS, { ask: () => 20 }, { name: "streams.wasm" });
    // The task goes on after it has returned the stream, inside the function that writes to it.
    const numbers = await component.call({}, "count", 5) as ReadableStream<number>;
    const reader = numbers.getReader();
    const client = await attach(server.port, "streams.wasm", ["sum"]);
    const stops = client.waitForEvent("stopped");
    const result = component.call({}, "sum", bytesOf([1, 2]));
    await stops;
    assert.equal(await names(client), "sum", "the activation of the other task is not among them");
    // The task waits with the first number; only its code makes the second one.
    assert.deepEqual(await reader.read(), { done: false, value: 0 });
    let isRead = false;
    const first = reader.read().finally(() => isRead = true);
    assert.equal(await names(client), "sum");
    assert.equal(isRead, false, "nothing of the component runs while it is stopped");
    await client.continueRequest({ threadId: MAIN });
    assert.equal(await result, 3);
    assert.deepEqual(await first, { done: false, value: 1 });
    const paused = client.waitForEvent("stopped");
    await client.pauseRequest({ threadId: MAIN });
    const second = reader.read();
    await paused;
    assert.equal(await names(client), "count");
    const shown = await locals(client);
    assert.ok(shown.includes("n=5"), shown.join());
    await client.continueRequest({ threadId: MAIN });
    assert.deepEqual(await second, { done: false, value: 2 });
    await client.stop();
    const rest = [];
    for (let part = await reader.read(); !part.done; part = await reader.read()) rest.push(part.value);
    assert.deepEqual(rest, [3, 4]);
  }));

Deno.test("components that the debugger cannot read are refused, and so are taken names", () =>
  withServer(async (server) => {
    await assert.rejects(server.compileComponent("(component (core instance 0))"), Error);
    await server.compileComponent(COMPONENT, { name: "shop" });
    await assert.rejects(server.compileComponent(COMPONENT, { name: "shop" }), /has the name "shop" already/);
    const client = attach(server.port, "none", []);
    await assert.rejects(client, /no debugged instance none was found: there are shop, shop#2/);
  }));
