/**
 * The compiled form of the compiler as machine code, the form that packages can contain
 * (scripts/package/build_native_compiler.ts). In a checkout there is none, and the host's WebAssembly runs the form.
 */

/** A function of the compiler: byte offsets in the code. */
export interface NativeFunction {
  readonly start: number;
  /** The entry thunk, through which it is called. */
  readonly thunk: number;
}

/** The compiler's code, the contents of its memory, and the layout and contents of its VM context. */
export interface NativeCompilerCode {
  /** Size in bytes of the image: code, initial contents of the memory from address 0 on, zeros; a multiple of 16. */
  readonly imageBytes: number;
  /** The checksum of the image (artifact/checksum.ts). */
  readonly checksum: readonly number[];
  /** Size of the position-independent code, for every processor of the architecture; a multiple of 16. */
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

/** The compiler with the copies of its image. */
export interface NativeCompiler extends NativeCompilerCode {
  /** The path of the image's file, to map it; undefined without one. It may not exist, and may be damaged as well. */
  readonly file?: string | undefined;
  /** The copies, the fastest to read first. A copy may be damaged: it must be checked before it is run. */
  readonly images: () => Iterable<Uint8Array>;
}
