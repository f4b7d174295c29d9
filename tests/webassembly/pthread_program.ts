/**
 * For pthread_test.ts, in a process that loads waft's install module first. Threads in Emscripten's manner: the main
 * realm compiles a module and creates a shared memory, Workers receive both in messages, count together with atomic
 * instructions, and post the module back. Objects of other interfaces cannot be cloned. Out: the name of each case that
 * passed, one per line.
 */
import assert from "node:assert/strict";
import { MessageChannel, receiveMessageOnPort, Worker as NodeWorker } from "node:worker_threads";
import { WebAssembly as W } from "@waft/engine/webassembly";
import { type Namespace, run, wasm } from "./subject.ts";

const ROUNDS = 1000;
const PROGRAM = `(module $counter (import "env" "memory" (memory 1 4 shared))
  (func (export "work") (param $thread i32) (result i32) (local $k i32)
    (loop $again
      (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
      (local.set $k (i32.add (local.get $k) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $k) (i32.const ${ROUNDS}))))
    (i32.atomic.store (i32.shl (local.get $thread) (i32.const 2)) (local.get $thread))
    (drop (memory.atomic.notify (i32.const 0) (i32.const -1)))
    (local.get $thread)))`;

interface Message {
  cmd: string;
  result?: number;
  sections?: number;
  back?: unknown;
  message?: string;
}

const CHECKS: (readonly [name: string, run: () => unknown])[] = [];

function check(name: string, run: () => unknown): void {
  CHECKS.push([name, run]);
}

/** A Worker of either kind. */
interface Thread {
  post(message: unknown): void;
  next(): Promise<Message>;
  end(): void;
}

/** Messages in the order in which they come. */
class Inbox {
  readonly #here: Message[] = [];
  readonly #waiting: ((message: Message) => void)[] = [];

  put(message: Message): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#here.push(message);
    else waiting(message);
  }

  next(): Promise<Message> {
    const message = this.#here.shift();
    return message === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(message);
  }
}

const suffix = import.meta.url.endsWith(".ts") ? "ts" : "js";
/** The Worker program of one kind. */
function programOf(kind: "node" | "web"): URL {
  return new URL(`./pthread_${kind}_worker.${suffix}`, import.meta.url);
}

function nodeThread(): Thread {
  const inbox = new Inbox();
  const worker = new NodeWorker(programOf("node"));
  worker.on("message", (message: Message) => inbox.put(message));
  worker.on("error", (error: Error) => inbox.put({ cmd: "error", message: String(error) }));
  return { post: (m) => worker.postMessage(m), next: () => inbox.next(), end: () => void worker.terminate() };
}

function webThread(): Thread {
  const inbox = new Inbox();
  const worker = new Worker(programOf("web"), { type: "module" });
  worker.onmessage = (event: MessageEvent<Message>) => inbox.put(event.data);
  worker.onerror = (event) => {
    event.preventDefault();
    inbox.put({ cmd: "error", message: event.message });
  };
  return { post: (m) => worker.postMessage(m), next: () => inbox.next(), end: () => worker.terminate() };
}

const KINDS: readonly (readonly [name: string, make: () => Thread])[] = [
  ["node:worker_threads", nodeThread],
  ...("Worker" in globalThis ? [["the web", webThread] as const] : []),
];

for (const [name, make] of KINDS) {
  check(`threads in the way of Emscripten, with Workers of ${name}`, async () => {
    const wasmMemory = new WebAssembly.Memory({ initial: 1, maximum: 4, shared: true });
    const wasmModule = new WebAssembly.Module(wasm(PROGRAM));
    assert.ok(wasmModule instanceof W.Module, "the global is waft's");
    const threads = [1, 2, 3].map(() => make());
    try {
      for (const thread of threads) assert.deepEqual(await thread.next(), { cmd: "loaded" });
      threads.forEach((thread, k) => thread.post({ cmd: "load", wasmModule, wasmMemory, thread: k + 1 }));
      for (const [k, thread] of threads.entries()) {
        const { cmd, result, sections, back, message } = await thread.next();
        assert.equal(cmd, "done", message);
        assert.deepEqual([result, sections], [k + 1, 1]);
        assert.ok(back instanceof WebAssembly.Module, "a module comes back as one");
      }
      assert.deepEqual([...new Int32Array(wasmMemory.buffer, 0, 4)], [3 * ROUNDS, 1, 2, 3]);
      threads[0].post({ cmd: "ping" });
      assert.deepEqual(await threads[0].next(), { cmd: "pong" }, "other messages go through as they are");
    } finally {
      for (const thread of threads) thread.end();
    }
  });
}

check("clones: modules and shared memories, wherever they are in a message", () => {
  const module = new W.Module(wasm(PROGRAM));
  const memory = new W.Memory({ initial: 1, maximum: 4, shared: true });
  new Int32Array(memory.buffer)[0] = 41;
  const message = { list: [module, { memory }], map: new Map([[module, memory]]), set: new Set([module]), self: {} };
  message.self = message;
  const clone = structuredClone(message);
  const [theirs, { memory: shared }] = clone.list as [WebAssembly.Module, { memory: WebAssembly.Memory }];
  assert.ok(theirs instanceof W.Module && theirs !== module);
  assert.ok(shared instanceof W.Memory && shared !== memory);
  assert.equal(clone.self, clone);
  assert.ok(clone.set.has(theirs), "identity within a message stays");
  assert.equal(clone.map.get(theirs), shared);
  assert.deepEqual(Object.keys(theirs), []);
  assert.deepEqual(W.Module.exports(theirs), W.Module.exports(module));
  assert.deepEqual(W.Module.imports(theirs), W.Module.imports(module));
  const { work } = new W.Instance(theirs, { env: { memory: shared } }).exports as { work(thread: number): number };
  assert.equal(work(3), 3);
  assert.equal(new Int32Array(memory.buffer)[0], 41 + ROUNDS);
  assert.equal(shared.grow(1), 1);
  assert.equal(memory.buffer.byteLength, 131072, "the memory is the same");
  const again = structuredClone(structuredClone(module));
  assert.ok(again instanceof W.Module, "a clone can be cloned");
  const [alone, memoryAlone] = [structuredClone(module), structuredClone(memory)];
  assert.ok(alone instanceof W.Module && memoryAlone instanceof W.Memory);
});

check("clones: the options of strings stay with a module", () => {
  const text = `(module (import "wasm:js-string" "length" (func $length (param externref) (result i32)))
    (import "'" "five!" (global $text externref))
    (func (export "f") (result i32) (call $length (global.get $text))))`;
  const options = { builtins: ["js-string"], importedStringConstants: "'" };
  const module = structuredClone(new (W.Module as new (...args: unknown[]) => WebAssembly.Module)(wasm(text), options));
  const { f } = new W.Instance(module).exports as { f(): number };
  assert.equal(f(), 5);
});

check("clones: everything else of the namespace is a DataCloneError", async () => {
  const { exports } = new W.Instance(
    new W.Module(wasm(`(module (type $s (struct)) (func (export "f"))
    (func (export "object") (result (ref $s)) (struct.new $s)))`)),
  );
  const { Tag, Exception } = W as Namespace;
  const tag = new Tag({ parameters: [] });
  const others: readonly (readonly [string, unknown])[] = [
    ["an instance", new W.Instance(new W.Module(wasm("(module)")))],
    ["a memory that is not shared", new W.Memory({ initial: 1 })],
    ["a table", new W.Table({ initial: 1, element: "anyfunc" })],
    ["a global", new W.Global({ value: "i32" }, 1)],
    ["a tag", tag],
    ["an exception", new Exception(tag, [])],
    ["an exported function", exports["f"]],
    ["an object of the heap", (exports["object"] as () => object)()],
    ["exports with functions", { ...exports }],
  ];
  const { port1, port2 } = new MessageChannel();
  const channel = new BroadcastChannel("waft-clones");
  for (const [name, value] of others) {
    for (
      const message of [value, { deep: [value] }, new Map([["x", value]]), [new W.Module(wasm("(module)")), value]]
    ) {
      assert.throws(() => structuredClone(message), { name: "DataCloneError" }, name);
      assert.throws(() => port1.postMessage(message), { name: "DataCloneError" }, name);
    }
  }
  port1.close();
  port2.close();
  channel.close();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.ok(run(W, "(module)"));
});

check("clones: ports give the program's values to every kind of listener", async () => {
  const { port1, port2 } = new MessageChannel();
  try {
    const module = new W.Module(wasm(PROGRAM));
    port1.postMessage({ module, n: 1 });
    const received = receiveMessageOnPort(port2) as { message: { module: unknown; n: number } };
    assert.ok(received.message.module instanceof W.Module);
    assert.equal(received.message.n, 1);
    const seen: unknown[] = [];
    const removed = () => seen.push("removed");
    port2.on("message", removed);
    port2.off("message", removed);
    const arrived = new Promise((resolve) => port2.once("message", resolve));
    port1.postMessage(module);
    assert.ok(await arrived instanceof W.Module);
    assert.deepEqual(seen, []);
  } finally {
    port1.close();
    port2.close();
  }
});

for (const [name, run] of CHECKS) {
  await run();
  console.log(name);
}
