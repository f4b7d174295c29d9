/**
 * The kernel as machine code, the form in which packages contain it (scripts/package/build_native_kernel.ts). In a
 * checkout there is none, and the host's WebAssembly runs the kernel.
 */

/** A function of the kernel: byte offsets in the code. */
interface NativeFunction {
  readonly start: number;
  /** The entry thunk, through which JavaScript calls the function. */
  readonly thunk: number;
}

/** The kernel's code and the layout of its context. */
export interface NativeKernel {
  /** Position-independent machine code for every processor of the architecture, in base 64. */
  readonly code: string;
  readonly codeBytes: number;
  readonly contextBytes: number;
  /** Offset in the context of the base and length of its memory. */
  readonly memory: number;
  /** For each global: its offset in the context, then its initial value, an i32. */
  readonly globals: readonly number[];
  /** Runs once, before any other function. */
  readonly start: NativeFunction;
  readonly compileBodies: NativeFunction;
  readonly writeBodies: NativeFunction;
  readonly validateBodies: NativeFunction;
  readonly compileLazily: NativeFunction;
  readonly compileNext: NativeFunction;
  readonly placeBodies: NativeFunction;
  readonly linkBodies: NativeFunction;
  readonly callsEnd: NativeFunction;
  readonly trapsEnd: NativeFunction;
  readonly relocationsEnd: NativeFunction;
}
