/**
 * The way into machine code through the dynamic loader: the code becomes a shared object in a file in memory, which
 * dlopen opens. In: position-independent code and the C signatures of its entry points. Out: functions, which every
 * JavaScript runtime compiles to direct machine calls.
 *
 * The fastest call has no parameters and returns an i32. A function of one constant pointer therefore gets its own
 * entry point, which loads the pointer as a constant.
 */
import { fromBase64 } from "../../base/base64.ts";
import { writeSharedObject } from "./elf.ts";
import type { Ffi } from "../runtimes/ffi.ts";
import { type CodeEntry, namesOf, pointerOf } from "./code_entry.ts";
import { BOUND_ENTRY } from "./generated_code.ts";
import type { NativeSymbol } from "../host.ts";
import { SystemError } from "../calls/system_error.ts";

/** Files that hold code; the part of the host that the loader needs. */
export interface CodeFiles {
  /** Creates a file in memory that contains `bytes`; returns its descriptor. Throws an Error. */
  create(bytes: Uint8Array): number;
  close(file: number): void;
}

/**
 * A path to descriptor `fd` that has not been used before. The loader identifies libraries by path, even after the
 * descriptor refers to another file, so random redundant "/" and "./" make the path unique.
 */
export function uniqueFdPath(fd: number): string {
  const bits = Math.floor(Math.random() * 2 ** 48).toString(2);
  return `/proc/self/fd/${bits.replaceAll("1", "./").replaceAll("0", "/")}${fd}`;
}

/** The distance in words of a branch of arm64. */
const BRANCH_FIELD = (1 << 26) - 1;

/**
 * Appends an entry point to `text` that calls `offset` with `pointer` as its only argument; returns both with the
 * entry's offset.
 */
function withBoundEntry(
  text: Uint8Array,
  offset: number,
  pointer: number,
  arch: "x64" | "arm64",
): { text: Uint8Array; entry: number } {
  const { code, labels } = BOUND_ENTRY[arch];
  const added = fromBase64(code);
  const entry = Math.ceil(text.length / 16) * 16;
  const bytes = new Uint8Array(entry + added.length);
  bytes.set(text);
  bytes.set(added, entry);
  const view = new DataView(bytes.buffer);
  const at = entry + labels.target;
  if (arch === "x64") {
    view.setBigUint64(entry + labels.pointer - 8, BigInt(pointer), true);
    view.setInt32(at - 4, offset - at, true);
  } else {
    view.setBigUint64(entry + labels.pointer, BigInt(pointer), true);
    view.setInt32(at, view.getInt32(at, true) | (((offset - at) >> 2) & BRANCH_FIELD), true);
  }
  return { text: bytes, entry };
}

/**
 * `() => enter()`, compiled from its own source. V8 makes a direct machine call of a foreign symbol only at a
 * monomorphic call site, and closures of one function literal share their call sites.
 */
function ownClosure(enter: () => number): () => number {
  try {
    return new Function("enter", "return () => enter();")(enter) as () => number;
  } catch {
    return () => enter(); // code from strings is not allowed here
  }
}

/** Enters machine code through shared objects. */
export function objectEntry(ffi: Ffi, files: CodeFiles): CodeEntry {
  const nativeLibrary: CodeEntry["nativeLibrary"] = (text, symbols) => {
    const offsets: Record<string, number> = {};
    for (const name of namesOf(symbols)) offsets[name] = symbols[name].offset;
    const fd = files.create(writeSharedObject(text, offsets, ffi.arch));
    try {
      return ffi.open(uniqueFdPath(fd), symbols);
    } catch (error) {
      throw new SystemError(`Cannot load machine code: ${(error as Error).message}`, "dlopen", 0);
    } finally {
      files.close(fd);
    }
  };
  return {
    nativeLibrary,
    boundCalls: <Name extends string>(
      text: Uint8Array,
      offsets: Readonly<Record<Name, number>>,
      pointer: number | Readonly<Record<Name, number>>,
    ) => {
      const symbols = {} as Record<Name, NativeSymbol>;
      let bound = text;
      for (const name of namesOf(offsets)) {
        const next = withBoundEntry(bound, offsets[name], pointerOf(pointer, name), ffi.arch);
        bound = next.text;
        symbols[name] = { offset: next.entry, params: [], result: "i32" };
      }
      const library = nativeLibrary(bound, symbols);
      const calls = {} as Record<Name, () => number>;
      for (const name of namesOf(offsets)) calls[name] = ownClosure(library[name] as () => number);
      return calls;
    },
  };
}
