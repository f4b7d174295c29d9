/** A runner that breaks the protocol in the way that its argument names. */
import { fstatSync, readSync, writeSync } from "node:fs";
import process from "node:process";

const KIND = { READY: 2, DONE: 20, FAILED: 21, HOST: 22, RETURNED: 23, NOTICE: 25 };
const EMPTY = new Uint8Array(0);

function read(bytes: number): Uint8Array {
  const all = new Uint8Array(bytes);
  for (let at = 0; at < bytes;) {
    const count = attempt(() => readSync(0, all, at, bytes - at, null));
    if (count === 0) process.exit(0);
    at += count;
  }
  return all;
}

/** The result of a system call that is repeated while a pipe is not ready. */
function attempt(call: () => number): number {
  for (;;) {
    try {
      return call();
    } catch (error) {
      if ((error as { code?: string }).code !== "EAGAIN") process.exit(0);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function request(): { kind: number; id: number; payload: Uint8Array } {
  const view = new DataView(read(16).buffer);
  return { kind: view.getUint32(4, true), id: view.getUint32(8, true), payload: read(view.getUint32(0, true)) };
}

function send(kind: number, id: number, payload: Uint8Array = EMPTY, subject = 0, length = payload.length): void {
  const message = new Uint8Array(16 + payload.length);
  const view = new DataView(message.buffer);
  [length, kind, id, subject].forEach((word, k) => view.setUint32(4 * k, word, true));
  message.set(payload, 16);
  for (let at = 0; at < message.length;) at += attempt(() => writeSync(1, message, at));
}

const text = (value: string) => new TextEncoder().encode(value);

/** Text after its number of bytes. */
function counted(value: string): Uint8Array {
  const bytes = text(value);
  const all = new Uint8Array(4 + bytes.length);
  new DataView(all.buffer).setUint32(0, bytes.length, true);
  all.set(bytes, 4);
  return all;
}

/** The payload of a call of a host function without arguments. */
const hostCall = (requestId: number) => new Uint8Array(new Uint32Array([requestId, 0]).buffer);

const wait = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);

const [mode] = process.argv.slice(2);
fstatSync(0);
if (mode === "exits") process.exit(7);
if (mode === "silent") wait();
request();
if (mode === "version") send(KIND.READY, 0, text('{"version":999,"measures":[]}'));
send(KIND.READY, 0, text('{"version":1,"measures":[]}'));

/** The answers to the first request, by mode. */
const ANSWERS: Readonly<Record<string, (id: number) => void>> = {
  noise: () => writeSync(1, text("this is not a message of the protocol\n")),
  unknown: (id) => send(99, id),
  upper: (id) => send(0x100 | KIND.DONE, id),
  long: (id) => send(KIND.DONE, id, EMPTY, 0, 0xffff_ffff),
  forged: () => send(KIND.DONE, 4_000_000),
  twice: (id) => [send(KIND.DONE, id, counted('{"imports":[],"exports":[]}')), send(KIND.DONE, id)],
  foreign: (id) => send(KIND.RETURNED, id),
  again: () => send(KIND.READY, 0, text('{"version":1,"measures":[]}')),
  function: (id) => send(KIND.HOST, 1, hostCall(id), 5),
  orphan: () => send(KIND.HOST, 1, hostCall(0), 0),
  short: (id) => send(KIND.HOST, 1, new Uint8Array(2), id),
  list: (id) => send(KIND.DONE, id, counted('{"imports":7,"exports":{"length":-1}}')),
  json: (id) => send(KIND.DONE, id, counted("{{{")),
  reason: (id) => send(KIND.FAILED, id, text("no JSON")),
  dies: () => process.kill(process.pid, "SIGKILL"),
  flood: () => {
    for (;;) send(KIND.DONE, 77, new Uint8Array(1 << 16));
  },
  chatter: () => {
    for (let k = 0; k < 2000; k++) writeSync(2, "x".repeat(1000));
    process.exit(1);
  },
  deaf: wait,
};

ANSWERS[mode]?.(request().id);
// Calls: the interface has a host function and one export.
if (mode.startsWith("call-")) {
  send(
    KIND.DONE,
    request().id,
    counted('{"imports":[{"module":"e","name":"f","kind":"func"}],"exports":[{"name":"run","kind":"func"}]}'),
  );
  send(KIND.DONE, request().id);
  const { id } = request();
  if (mode === "call-twice") { for (const callback of [1, 2]) send(KIND.HOST, callback, hostCall(id), 0); }
  if (mode === "call-flood") {
    for (let callback = 1;; callback++) send(KIND.HOST, callback, hostCall(id), 0);
  }
  if (mode === "call-result") send(KIND.DONE, id, new Uint8Array([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 200]));
  if (mode === "call-count") send(KIND.DONE, id, new Uint8Array(12).fill(255));
  if (mode === "call-error") {
    const frames = Array.from({ length: 5000 }, () => ({ funcIndex: "x", funcName: {}, offset: null }));
    const forged = { kind: "TrapError", message: "m".repeat(100_000), frames, access: 5, detail: [], fuel: "x" };
    send(KIND.FAILED, id, text(JSON.stringify(forged)));
  }
}
// Components: host functions 0 and 1 are the sizes of files and of sockets; a call lends file 1.
if (mode.startsWith("component-")) {
  const bytes = (...parts: (number | readonly number[])[]) => Uint8Array.from(parts.flat());
  const word = (value: number) => [...new Uint8Array(new Uint32Array([value]).buffer)];
  const [LEAF, ITEMS, RESOURCE, CHANNEL] = [0, 2, 5, 6];
  const [PROGRAM, RUNNER] = [0, 1];
  const NO_FUEL = Array<number>(8).fill(0);
  send(KIND.DONE, request().id);
  const instance = request().id;
  send(KIND.DONE, instance);
  const { id } = request();
  const callSize = (index: number, side: number, handle: number, request = id) =>
    send(KIND.HOST, 1, bytes(word(request), RESOURCE, side, word(handle)), index);
  const answer = (...value: (number | readonly number[])[]) => send(KIND.DONE, id, bytes(NO_FUEL, ...value));
  const cases: Readonly<Record<string, () => void>> = {
    "component-unknown": () => callSize(0, PROGRAM, 7),
    "component-side": () => callSize(0, RUNNER, 1),
    "component-type": () => callSize(1, PROGRAM, 1),
    "component-stale": () => {
      answer(LEAF, 4, word(5));
      callSize(0, PROGRAM, 1, request().id);
    },
    "component-text": () => answer(LEAF, 8, word(1), 65),
    "component-range": () => answer(LEAF, 4, word(0xffff_ffff)),
    "component-list": () => answer(ITEMS, word(0xffff_ffff)),
    "component-channel": () => answer(CHANNEL, word(1)),
    "component-form": () => answer(77),
    "component-drop": () => send(KIND.NOTICE, 0, bytes(1, word(9)), instance),
    "component-stream": () => send(KIND.NOTICE, 0, bytes(2, word(1)), instance),
    "component-kind": () => send(KIND.NOTICE, 0, bytes(9, word(1)), instance),
    "component-notice": () => send(KIND.NOTICE, 0, bytes(1, word(1)), 4_000_000),
    "component-twice": () => {
      for (let k = 0; k < 2; k++) send(KIND.NOTICE, 0, bytes(1, word(1)), instance);
    },
  };
  cases[mode]();
}
wait();
