/**
 * Extends the host's messaging functions to Module and Memory objects: `structuredClone`, `postMessage` of Workers,
 * ports and channels, `MessageEvent.data`, and the listeners of node:worker_threads. In: the host's globals. Out: the
 * same functions, which open and close envelopes (messages.ts).
 *
 * Invariant: a message without objects of the namespace is unchanged; a function is patched once.
 */
import { fromMessage, toMessage } from "./messages.ts";

// deno-lint-ignore no-explicit-any
type Endpoint = Record<string, any>;
type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;

const PATCHED = new WeakSet<object>();

/** Replaces a method of `owner`, own or inherited, by the result of `wrap`. */
function patch(owner: Endpoint | undefined, name: string, wrap: (original: AnyFunction) => AnyFunction): void {
  const original = owner?.[name] as AnyFunction | undefined;
  if (owner === undefined || typeof original !== "function" || PATCHED.has(original)) return;
  const own = Object.getOwnPropertyDescriptor(owner, name);
  // a Bun port, whose function calls the global one
  if (own !== undefined && !own.configurable && !own.writable) return;
  const wrapped = wrap(original);
  PATCHED.add(wrapped);
  Object.defineProperty(wrapped, "name", { value: name, configurable: true });
  if (own?.configurable === false) owner[name] = wrapped;
  else Object.defineProperty(owner, name, { value: wrapped, writable: true, enumerable: true, configurable: true });
}

/** Wraps a function that posts its first argument. */
function posting(original: AnyFunction): AnyFunction {
  return function (this: unknown, ...args: unknown[]): unknown {
    if (args.length > 0) args[0] = toMessage(args[0]);
    return Reflect.apply(original, this, args);
  };
}

function cloning(original: AnyFunction): AnyFunction {
  return (...args) => {
    if (args.length > 0) args[0] = toMessage(args[0]);
    return fromMessage(Reflect.apply(original, undefined, args));
  };
}

/** The wrapper of each listener, by which the listener can be removed. */
const LISTENERS = new WeakMap<AnyFunction, AnyFunction>();

function wrappedListener(listener: AnyFunction): AnyFunction {
  let wrapped = LISTENERS.get(listener);
  if (wrapped === undefined) {
    wrapped = function (this: unknown, ...args: unknown[]): unknown {
      return Reflect.apply(listener, this, [fromMessage(args[0]), ...args.slice(1)]);
    };
    LISTENERS.set(listener, wrapped);
  }
  return wrapped;
}

/** Wraps a function that adds or removes a listener, given the name of an event and the listener. */
function listening(original: AnyFunction): AnyFunction {
  return function (this: unknown, ...args: unknown[]): unknown {
    if (args[0] === "message" && typeof args[1] === "function") args[1] = wrappedListener(args[1] as AnyFunction);
    return Reflect.apply(original, this, args);
  };
}

/** Wraps an emitter's `emit` so that listeners receive the program's value. */
function emitting(original: AnyFunction): AnyFunction {
  return function (this: unknown, ...args: unknown[]): unknown {
    if (args[0] === "message" && args.length > 1) args[1] = fromMessage(args[1]);
    return Reflect.apply(original, this, args);
  };
}

/** Methods of Node's ports that take listeners. */
const NODE_LISTENING = ["on", "once", "addListener", "off", "removeListener"];

/** The classes of the web whose objects post messages, and dispatch events of the messages that they receive. */
const ENDPOINTS = ["Worker", "MessagePort", "BroadcastChannel"];

/** Patches the web's messaging functions. */
export function patchWebMessages(): void {
  const globals = globalThis as Endpoint;
  patch(globals, "structuredClone", cloning);
  patch(globals, "postMessage", posting);
  const prototypes = ENDPOINTS.flatMap((name) => globals[name]?.prototype as Endpoint | undefined ?? []);
  for (const prototype of prototypes) patch(prototype, "postMessage", posting);
  if (isNode()) { for (const prototype of prototypes) patchEventsLater(prototype); }
  else patchEvents();
}

function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: Record<string, string> } };
  return !("Deno" in globalThis) && process?.versions?.["node"] !== undefined &&
    process.versions["bun"] === undefined;
}

/** Opens envelopes in `MessageEvent.data`, or at dispatch where that is not an accessor. */
function patchEvents(): void {
  const prototype = (globalThis as Endpoint)["MessageEvent"]?.prototype;
  const data = prototype === undefined ? undefined : Object.getOwnPropertyDescriptor(prototype, "data");
  if (data?.get === undefined) return patchDispatch();
  if (PATCHED.has(data.get)) return;
  const { get } = data;
  const opened = function (this: unknown): unknown {
    return fromMessage(Reflect.apply(get, this, []));
  };
  PATCHED.add(opened);
  Object.defineProperty(prototype, "data", { ...data, get: opened });
}

/**
 * Calls `patchEvents` before the first listener of messages is added: on Node the first mention of MessageEvent loads
 * its HTTP client, which takes 50 ms and 18 MB.
 */
function patchEventsLater(prototype: Endpoint): void {
  patch(prototype, "addEventListener", (original) =>
    function (this: unknown, ...args: unknown[]): unknown {
      if (args[0] === "message") patchEvents();
      return Reflect.apply(original, this, args);
    });
  const handler = Object.getOwnPropertyDescriptor(prototype, "onmessage");
  if (handler?.set === undefined || PATCHED.has(handler.set)) return;
  const { set } = handler;
  const setter = function (this: unknown, value: unknown): void {
    patchEvents();
    Reflect.apply(set, this, [value]);
  };
  PATCHED.add(setter);
  Object.defineProperty(prototype, "onmessage", { ...handler, set: setter });
}

/** Opens the envelope of an event whose `data` is an own property, as on Deno. */
function open(event: unknown): void {
  const message = event as { type?: unknown; data?: unknown };
  if (message.type !== "message" || !Object.hasOwn(message, "data")) return;
  const value = fromMessage(message.data);
  if (value !== message.data) message.data = value;
}

/**
 * Opens envelopes before listeners run: at dispatch, and in a Worker's scope, where the host dispatches events itself,
 * in the first listener.
 */
function patchDispatch(): void {
  patch(
    EventTarget.prototype as unknown as Endpoint,
    "dispatchEvent",
    (original) =>
      function (this: unknown, ...args: unknown[]): unknown {
        open(args[0]);
        return Reflect.apply(original, this, args);
      },
  );
  if ("WorkerGlobalScope" in globalThis) globalThis.addEventListener("message", open);
}

/** The parts of node:worker_threads that carry messages. */
export interface NodeWorkers {
  Worker: { prototype: object };
  MessagePort: { prototype: object };
  parentPort: object | null;
  receiveMessageOnPort(port: never): { message: unknown } | undefined;
  workerData: unknown;
}

/** Patches the messaging functions of node:worker_threads. */
export function patchNodeMessages(workers: NodeWorkers): void {
  const worker = workers.Worker.prototype as Endpoint;
  patch(worker, "postMessage", posting);
  patch(worker, "emit", emitting);
  for (const port of [workers.MessagePort.prototype, workers.parentPort]) {
    if (port === null) continue;
    patch(port as Endpoint, "postMessage", posting);
    for (const name of NODE_LISTENING) patch(port as Endpoint, name, listening);
  }
  patch(workers as unknown as Endpoint, "receiveMessageOnPort", (original) => (...args) => {
    const received = Reflect.apply(original, undefined, args) as { message: unknown } | undefined;
    return received === undefined ? undefined : { message: fromMessage(received.message) };
  });
}
