/**
 * The output of a guest as text, for a process whose own streams serve another purpose. In: the functions of WASI, and
 * the instance that they serve. Out: the same functions, but the guest's output on its standard streams goes to a
 * function.
 *
 * The streams are those with which the guest began, under whatever numbers it has given them since. Invariant: no
 * function of the guest reaches the process's own streams; WASI must therefore have {@linkcode silentStreams} as its
 * descriptors, to which the functions that are not captured lead.
 */
import type { Instance, Memory } from "@waft/engine";
import { currentHost } from "@waft/engine/internal/host/current";
import { fileCalls } from "@waft/engine/internal/host/file_calls";
import { openFlags } from "@waft/engine/internal/wasi/abi";
import { Scratch } from "@waft/engine/internal/wasi/scratch";
import { Buffer } from "node:buffer";
import { devNull } from "node:os";
import { WASI } from "./run_module.ts";

/** Takes the output of a guest. */
export type Print = (category: "stdout" | "stderr", text: string) => void;

/** Bytes of an entry in a list of buffers: address and length. */
const ENTRY = 8;
/** The most entries of a list, which is WASI's own limit, and the most bytes that one call writes. */
const MAX_ENTRIES = 1024;
const MAX_BYTES = 1 << 20;
/** A descriptor that no process has. */
const NO_DESCRIPTOR = 0x7fffffff;
/** `openat` relative to the current directory. */
const AT_FDCWD = -100;

type WasiFunction = (...args: number[]) => unknown;
type Functions = Record<string, Record<string, unknown>>;

/** Descriptors for a guest's streams: inputs that are at their end, and outputs that go nowhere. */
export function silentStreams(): [number, number, number] {
  const host = currentHost();
  const { RDWR, CLOEXEC } = openFlags(host.arch);
  const opened = fileCalls(host)("openat", AT_FDCWD, new Scratch(host).path(devNull), RDWR | CLOEXEC);
  const fd = opened < 0 ? NO_DESCRIPTOR : opened;
  return [fd, fd, fd];
}

/** The imports with captured output. `instance` is called when the guest prints. */
export function withOutput(imports: Functions, instance: () => Instance, print: Print): Functions {
  const functions = imports[WASI] as Record<string, WasiFunction> | undefined;
  if (functions === undefined) return imports;
  const streams = new Map<number, "stdout" | "stderr">([[1, "stdout"], [2, "stderr"]]);
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  const memory = () => (instance().exports as { memory?: Memory }).memory?.bytes ?? new Uint8Array(0);
  /** Calls the function `name`, and `done` if it succeeds. */
  const call = (name: string, args: number[], done: () => void): unknown => {
    const status = functions[name](...args);
    if (status === 0) done();
    return status;
  };
  return {
    ...imports,
    [WASI]: {
      ...functions,
      fd_write: (fd: number, list: number, count: number, written: number): unknown => {
        const category = streams.get(fd);
        const bytes = category === undefined
          ? undefined
          : bytesIn(memory(), { list: list >>> 0, count: count >>> 0, result: written >>> 0 });
        // The function itself reports descriptors, addresses and counts that are not valid.
        if (category === undefined || bytes === undefined) return functions.fd_write(fd, list, count, written);
        const text = decoders[category].decode(bytes, { stream: true });
        if (text !== "") print(category, text);
        setWord(memory(), written >>> 0, bytes.length);
        return 0;
      },
      fd_close: (fd: number) => call("fd_close", [fd], () => streams.delete(fd)),
      fd_renumber: (from: number, to: number) =>
        call("fd_renumber", [from, to], () => {
          const category = streams.get(from);
          streams.delete(from);
          streams.delete(to);
          if (category !== undefined) streams.set(to, category);
        }),
    },
  };
}

/**
 * The bytes in the buffers of a list, as many of them as one call writes; undefined if a buffer, the list or the word
 * at `result` is not in the memory, or if the list is too long.
 */
function bytesIn(
  memory: Uint8Array,
  { list, count, result }: { readonly list: number; readonly count: number; readonly result: number },
): Uint8Array | undefined {
  if (count > MAX_ENTRIES || list + count * ENTRY > memory.length || result + 4 > memory.length) return undefined;
  const view = new DataView(memory.buffer, memory.byteOffset, memory.length);
  const parts: Uint8Array[] = [];
  let left = MAX_BYTES;
  for (let at = list; at < list + count * ENTRY; at += ENTRY) {
    const [start, length] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
    if (start + length > memory.length) return undefined;
    const taken = Math.min(length, left);
    parts.push(memory.subarray(start, start + taken));
    left -= taken;
  }
  return Buffer.concat(parts);
}

function setWord(bytes: Uint8Array, at: number, value: number): void {
  new DataView(bytes.buffer, bytes.byteOffset, bytes.length).setUint32(at, value, true);
}
