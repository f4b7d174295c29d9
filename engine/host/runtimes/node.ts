/**
 * Foreign functions on Node: `node:ffi` where available (Node 26), which compiles a direct machine call for every
 * symbol with only numeric parameters; otherwise the package `koffi`, which is installed beside this one. Calls without
 * parameters are the fastest on both.
 */
import { errorCode } from "../../base/errors.ts";
import type { Ffi, ForeignFunction, ForeignType } from "./ffi.ts";
import { lendWithKeys } from "../memory/lent_views.ts";
import { thisMachine } from "../machine.ts";

type Signatures = Parameters<Ffi["open"]>[1];
type Functions = ReturnType<Ffi["open"]>;

/** The part of `node:ffi` in use. */
interface NodeFfi {
  dlopen(path: string, definitions: Record<string, { arguments: string[]; return: string }>): {
    lib: object;
    functions: object;
  };
  toArrayBuffer(pointer: bigint, bytes: number, copy: boolean): ArrayBuffer;
  /** The address of a buffer, which stays there; 0 if it is empty. */
  getRawPointer?(bytes: Uint8Array): bigint;
}

/** The part of koffi 3 in use. */
interface Koffi {
  load(path: string): { func(name: string, result: string, params: string[]): ForeignFunction };
  view(pointer: bigint, bytes: number): ArrayBuffer;
}

const NODE_TYPES: Record<ForeignType, string> = {
  i32: "i32",
  i64: "i64",
  f32: "f32",
  f64: "f64",
  buffer: "pointer",
  void: "void",
};

const KOFFI_TYPES: Record<ForeignType, string> = {
  i32: "int32",
  i64: "int64",
  f32: "float",
  f64: "double",
  buffer: "void *",
  void: "void",
};

/** The FFI of Node. Throws an Error that names the package to install when there is none. */
export function nodeFfi(): Ffi {
  const builtin = builtinFfi();
  const own = builtin === undefined ? withKoffi(installedKoffi()) : withBuiltin(builtin);
  return {
    name: "node",
    ...thisMachine(),
    ...own,
    lentViews: () => lendWithKeys(own.view, builtin !== undefined),
  };
}

/**
 * `node:ffi`, if this Node has it. Loading it prints an experimental warning, which would appear on stderr of every
 * `waft run` and does not concern users who merely run WebAssembly, so this warning is suppressed.
 */
function builtinFfi(): NodeFfi | undefined {
  const { emitWarning } = process;
  try {
    process.emitWarning = (() => {}) as typeof emitWarning;
    return process.getBuiltinModule("node:ffi") as unknown as NodeFfi | undefined;
  } catch {
    return undefined; // switched off
  } finally {
    process.emitWarning = emitWarning;
  }
}

function installedKoffi(): Koffi {
  const { createRequire } = process.getBuiltinModule("node:module");
  try {
    return createRequire(import.meta.url)("koffi") as Koffi;
  } catch (cause) {
    const isForbidden = errorCode(cause) === "ERR_DLOPEN_DISABLED";
    const message = isForbidden
      ? 'waft may not load the package "koffi", an addon: start Node with --allow-addons, and without --no-addons'
      : 'waft needs the package "koffi" on this Node: npm install koffi (Node 26 has a foreign function interface)';
    throw new Error(message, { cause });
  }
}

function withBuiltin(ffi: NodeFfi): Pick<Ffi, "addressOf" | "maxViewBytes" | "open" | "view"> {
  const { getRawPointer } = ffi;
  const opened: object[] = []; // collecting a library frees its functions
  return {
    ...(getRawPointer && { addressOf: (bytes: Uint8Array) => Number(getRawPointer(bytes)) }),
    maxViewBytes: Number.MAX_SAFE_INTEGER,
    open: (path, signatures) => {
      const definitions: Record<string, { arguments: string[]; return: string }> = {};
      for (const [name, { params, result }] of Object.entries(signatures as Signatures)) {
        definitions[name] = { arguments: params.map((type) => NODE_TYPES[type]), return: NODE_TYPES[result] };
      }
      const { lib, functions } = ffi.dlopen(path, definitions);
      opened.push(lib);
      return functions as Functions;
    },
    view: (address, bytes) => ffi.toArrayBuffer(BigInt(address), bytes, false),
  };
}

function withKoffi(koffi: Koffi): Pick<Ffi, "maxViewBytes" | "open" | "view"> {
  return {
    maxViewBytes: process.getBuiltinModule("node:buffer").constants.MAX_LENGTH,
    open: (path, signatures) => {
      const library = koffi.load(path);
      const functions: Record<string, ForeignFunction> = {};
      for (const [name, { params, result }] of Object.entries(signatures as Signatures)) {
        const call = library.func(name, KOFFI_TYPES[result], params.map((type) => KOFFI_TYPES[type]));
        // koffi returns small 64-bit integers as numbers.
        functions[name] = result === "i64" ? (...args) => BigInt(call(...args)) : call;
      }
      return functions as Functions;
    },
    view: (address, bytes) => koffi.view(BigInt(address), bytes),
  };
}
