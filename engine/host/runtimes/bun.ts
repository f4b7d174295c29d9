/**
 * Foreign functions on Bun: `bun:ffi`, which compiles a direct machine call for every symbol.
 */
import { fromBase64 } from "../../base/base64.ts";
import { LET_GO } from "../code/generated_code.ts";
import type { Ffi, ForeignType } from "./ffi.ts";
import { Finalizers } from "../finalizers.ts";
import { PROT } from "../host.ts";
import type { LentViews } from "../memory/lent_views.ts";
import { thisMachine } from "../machine.ts";

const TYPES: Record<ForeignType, string> = {
  i32: "i32",
  i64: "i64",
  f32: "f32",
  f64: "f64",
  buffer: "ptr",
  void: "void",
};

/** The part of `bun:ffi` in use; Bun's own declarations do not exist on other runtimes. */
interface BunFfi {
  dlopen(path: string, definitions: Record<string, { args: string[]; returns: string }>): { symbols: object };
  /**
   * Calls `deallocator` (the address of a C function) with the pages and `context` when no buffer owns the pages any
   * more.
   */
  toArrayBuffer(
    address: number,
    offset: number,
    bytes: number,
    context?: number,
    deallocator?: number,
  ): ArrayBuffer;
}

/** A lent range whose first buffer has been collected. */
interface Awaited {
  /** Address of the word that becomes 1 when the last buffer of its pages is gone. */
  word: number;
  gone: () => void;
}

/**
 * Lends memory with a deallocator: JavaScriptCore calls it when it frees the pages, wherever they were transferred to.
 * The call may come at any time and on any thread, so the deallocator only sets a word. The words are checked when a
 * buffer is collected and when another is lent.
 */
function lendWithWords(
  toArrayBuffer: BunFfi["toArrayBuffer"],
  host: Parameters<Ffi["lentViews"]>[0],
): LentViews {
  const { code, labels: { address } } = LET_GO[host.arch === "x64" ? host.system.x64Convention : "arm64"];
  const library = host.nativeLibrary(fromBase64(code), { letGo: { offset: address, params: [], result: "i64" } });
  const letGo = Number(library.letGo());
  /** Unused words; the words of each page, by page address. */
  const free: number[] = [];
  const pages = new Map<number, BigInt64Array>();
  const awaited = new Set<Awaited>();
  const buffers = new Finalizers<Awaited>((range) => {
    awaited.add(range);
    lookAround();
  });

  function wordAt(at: number): { words: BigInt64Array; index: number } {
    const page = at - at % host.pageSize;
    return { words: pages.get(page)!, index: (at - page) / 8 };
  }

  function lookAround(): void {
    for (const range of awaited) {
      const { words, index } = wordAt(range.word);
      if (words[index] === 0n) continue;
      awaited.delete(range);
      words[index] = 0n;
      free.push(range.word);
      range.gone();
    }
  }

  return {
    lend: (at, bytes, gone) => {
      lookAround();
      if (free.length === 0) {
        const page = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
        pages.set(page, new BigInt64Array(toArrayBuffer(page, 0, host.pageSize)));
        for (let offset = host.pageSize - 8; offset >= 0; offset -= 8) free.push(page + offset);
      }
      const word = free.pop()!;
      const buffer = toArrayBuffer(at, 0, bytes, word, letGo);
      buffers.register(buffer, { word, gone });
      return buffer;
    },
    seal: () => {}, // impossible in JavaScriptCore, and unnecessary
    detach: (buffer) => {
      if (!buffer.detached) buffer.transfer(0);
    },
  };
}

/** The foreign function interface of Bun. */
export function bunFfi(): Ffi {
  const { dlopen, toArrayBuffer } = process.getBuiltinModule("bun:ffi") as unknown as BunFfi;
  const opened: object[] = []; // collecting a library frees its functions
  return {
    name: "bun",
    ...thisMachine(),
    maxViewBytes: 2 ** 32,
    open: (path, signatures) => {
      const definitions: Record<string, { args: string[]; returns: string }> = {};
      for (
        const [name, { params, result }] of Object.entries<(typeof signatures)[keyof typeof signatures]>(signatures)
      ) {
        definitions[name] = { args: params.map((type) => TYPES[type]), returns: TYPES[result] };
      }
      const library = dlopen(path, definitions);
      opened.push(library);
      return library.symbols as ReturnType<Ffi["open"]>;
    },
    view: (address, bytes) => toArrayBuffer(address, 0, bytes),
    lentViews: (host) => lendWithWords(toArrayBuffer, host),
  };
}
