/**
 * The compiled form of the compiler as machine code, the form that packages can contain
 * (scripts/package/build_native_compiler.ts). In a checkout there is none, and the host's WebAssembly runs the form.
 */
import { fromBase64 } from "../base/base64.ts";
import { nodeModule } from "../host/process.ts";

/** A function of the compiler: byte offsets in the code. */
export interface NativeFunction {
  readonly start: number;
  /** The entry thunk, through which it is called. */
  readonly thunk: number;
}

/** The compiler's code, the contents of its memory, and the layout and contents of its VM context. */
export interface NativeCompilerCode {
  /**
   * Position-independent machine code for every processor of the architecture, followed by the initial contents of the
   * memory from address 0 on; compressed with Brotli, in base 64.
   */
  readonly image: string;
  readonly codeBytes: number;
  readonly dataBytes: number;
  readonly contextBytes: number;
  /** Offset in the context of the base and length of the memory. */
  readonly memory: number;
  /** For each global: its offset in the context, then its initial value, an i32. */
  readonly globals: readonly number[];
  /** Offset in the context of the type ids, and these. */
  readonly typeIdsAt: number;
  readonly typeIds: readonly number[];
  /** Offset in the context of the base and length of the table. */
  readonly table: number;
  /** For each element of the table: the offset in the context of its function record; 0 for null. */
  readonly elements: readonly number[];
  /** For each function in the table: the offset of its record, the offset of its code, and its type id. */
  readonly records: readonly number[];
  /** Runs once, before any other function. */
  readonly start: NativeFunction;
  readonly exports: Readonly<Record<string, NativeFunction>>;
}

/** The machine code, and the initial contents of the memory. Throws an Error if they are damaged. */
export function nativeImage({ image, codeBytes, dataBytes }: NativeCompilerCode): {
  readonly code: Uint8Array;
  readonly data: Uint8Array;
} {
  const bytes = new Uint8Array(nodeModule("node:zlib").brotliDecompressSync(fromBase64(image)));
  if (bytes.length !== codeBytes + dataBytes) throw new Error("The compiler's machine code is damaged");
  return { code: bytes.subarray(0, codeBytes), data: bytes.subarray(codeBytes) };
}
