/**
 * The output of a guest as text, for a process whose own streams serve another purpose. In: the functions of WASI, and
 * the instance that they serve. Out: the same functions, but what the guest writes to its standard output and error
 * goes to a function, and its standard input is empty.
 */
import type { Instance, Memory } from "@waft/engine";
import { WASI } from "./run_module.ts";

/** Takes what a guest prints. */
export type Print = (category: "stdout" | "stderr", text: string) => void;

/** The guest's descriptors of its standard streams. */
const STDIN = 0;
const STREAMS: ReadonlyMap<number, "stdout" | "stderr"> = new Map([[1, "stdout"], [2, "stderr"]]);
/** Bytes of an entry in a list of buffers: address and length. */
const ENTRY = 8;

type Functions = Record<string, Record<string, unknown>>;

/** The imports with captured output. `instance` is called when the guest prints. */
export function withOutput(imports: Functions, instance: () => Instance, print: Print): Functions {
  const { fd_write: write, fd_read: read } = imports[WASI] ?? {};
  if (typeof write !== "function" || typeof read !== "function") return imports;
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  const memory = () => (instance().exports as { memory?: Memory }).memory?.bytes ?? new Uint8Array(0);
  return {
    ...imports,
    [WASI]: {
      ...imports[WASI],
      fd_write: (fd: number, list: number, count: number, written: number): unknown => {
        const category = STREAMS.get(fd);
        const parts = category === undefined ? undefined : buffersIn(memory(), list, count, written);
        // The function itself reports descriptors and addresses that are not valid.
        if (category === undefined || parts === undefined) return write(fd, list, count, written);
        for (const part of parts) print(category, decoders[category].decode(part, { stream: true }));
        setWord(memory(), written, parts.reduce((sum, part) => sum + part.length, 0));
        return 0;
      },
      fd_read: (fd: number, list: number, count: number, got: number): unknown => {
        if (fd !== STDIN || buffersIn(memory(), list, count, got) === undefined) return read(fd, list, count, got);
        setWord(memory(), got, 0);
        return 0;
      },
    },
  };
}

/** The buffers of a list; undefined if one of them, the list or the word at `result` is not in the memory. */
function buffersIn(bytes: Uint8Array, list: number, count: number, result: number): Uint8Array[] | undefined {
  if (list + count * ENTRY > bytes.length || result + 4 > bytes.length) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const parts: Uint8Array[] = [];
  for (let at = list; at < list + count * ENTRY; at += ENTRY) {
    const [start, length] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
    if (start + length > bytes.length) return undefined;
    parts.push(bytes.slice(start, start + length));
  }
  return parts;
}

function setWord(bytes: Uint8Array, at: number, value: number): void {
  new DataView(bytes.buffer, bytes.byteOffset, bytes.length).setUint32(at, value, true);
}
