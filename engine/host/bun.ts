/**
 * Foreign functions on Bun: `bun:ffi`, which compiles a direct machine call for every symbol.
 */
import { type Ffi, type ForeignType, supportedSystem } from "./ffi.ts";

const TYPES: Record<ForeignType, string> = {
  i32: "i32",
  i64: "i64",
  f32: "f32",
  f64: "f64",
  buffer: "ptr",
  void: "void",
};

/** What is used of `bun:ffi`; its declarations are Bun's own, which other runtimes do not have. */
interface BunFfi {
  dlopen(path: string, definitions: Record<string, { args: string[]; returns: string }>): { symbols: object };
  toArrayBuffer(address: number, offset: number, bytes: number): ArrayBuffer;
}

/** The foreign function interface of Bun. */
export function bunFfi(): Ffi {
  const { dlopen, toArrayBuffer } = process.getBuiltinModule("bun:ffi") as unknown as BunFfi;
  const opened: object[] = []; // a library that is collected takes its functions with it
  return {
    name: "bun",
    os: supportedSystem(process.platform),
    arch: process.arch === "x64" ? "x64" : "arm64",
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
  };
}
