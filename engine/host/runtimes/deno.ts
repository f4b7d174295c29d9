/**
 * Foreign functions on Deno: `Deno.dlopen`, which compiles a direct machine call for every symbol.
 */
import type { Ffi, ForeignType } from "./ffi.ts";
import { lendWithKeys } from "../memory/lent_views.ts";
import { thisMachine } from "../machine.ts";

const TYPES: Record<Exclude<ForeignType, "void">, Deno.NativeType & Deno.NativeResultType> = {
  i32: "i32",
  i64: "i64",
  f32: "f32",
  f64: "f64",
  buffer: "buffer",
};

const ONE_POINTER = { parameters: ["i64"], result: "void" } as const;

/** The foreign function interface of Deno. Opening a library asks for the permission `ffi`. */
export function denoFfi(): Ffi {
  const view = (address: number, bytes: number): ArrayBuffer =>
    Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(BigInt(address))!, bytes);
  return {
    name: "deno",
    ...thisMachine(),
    maxViewBytes: Number.MAX_SAFE_INTEGER,
    open: (path, signatures) => {
      const definitions: Record<string, Deno.ForeignFunction> = {};
      for (
        const [name, { params, result }] of Object.entries<(typeof signatures)[keyof typeof signatures]>(signatures)
      ) {
        definitions[name] = {
          parameters: params.map((type) => TYPES[type as keyof typeof TYPES]),
          result: result === "void" ? "void" : TYPES[result],
        };
      }
      return Deno.dlopen(path, definitions).symbols as unknown as ReturnType<Ffi["open"]>;
    },
    call: (address, argument) => {
      const code = Deno.UnsafePointer.create<typeof ONE_POINTER>(BigInt(address))!;
      new Deno.UnsafeFnPointer(code, ONE_POINTER).call(BigInt(argument));
    },
    addressOf: (bytes) => Number(Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes as Uint8Array<ArrayBuffer>))),
    view,
    lentViews: () => lendWithKeys(view, true),
  };
}
