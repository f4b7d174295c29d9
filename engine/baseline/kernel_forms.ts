/**
 * The kernel in the form that runs here: as WebAssembly by the host's compiler, or as TypeScript where that is not to be had. In: the generated files.
 * Out: its functions and its memory. Invariant: the TypeScript is loaded only where it runs.
 */
import { KERNEL_X64 } from "./generated/kernel_x64.ts";
import { OPCODE_TABLE } from "./generated/opcode_table.ts";
import * as layout from "./kernel/layout.ts";
import type { KernelMemory } from "./module_tables.ts";

/** The kernel (kernel/kernel.ts) as its driver sees it. */
export interface Kernel {
  readonly memory: KernelMemory;
  /** Compiles bodies from `first` on, at most `count`; returns how many have a result. */
  compileBodies(first: number, count: number): number;
  /** Addresses behind the last rows that came out. */
  callsEnd(): number;
  trapsEnd(): number;
  relocationsEnd(): number;
}

const PAGE = 65_536;
/** A kernel whose memory is larger than this is not kept: its pages would stay resident. */
const KEPT_BYTES = layout.MODULE + (4 << 20);

/** The bytes of a text in base 64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const chars = atob(text);
  const bytes = new Uint8Array(chars.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = chars.charCodeAt(k);
  return bytes;
}

/** The host's compiled form of the kernel; undefined where there is no WebAssembly. */
function hostModule(): WebAssembly.Module | undefined {
  try {
    return new WebAssembly.Module(fromBase64(KERNEL_X64));
  } catch {
    return undefined;
  }
}

function hostKernel(module: WebAssembly.Module): Kernel {
  const memory = new WebAssembly.Memory({ initial: layout.MODULE / PAGE });
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  let bytes = new Uint8Array(memory.buffer);
  bytes.set(fromBase64(OPCODE_TABLE), layout.OPCODES);
  return {
    ...exports as unknown as Omit<Kernel, "memory">,
    memory: {
      bytes(size) {
        if (size > bytes.length) memory.grow(Math.ceil((size - bytes.length) / PAGE));
        if (bytes.buffer !== memory.buffer) bytes = new Uint8Array(memory.buffer);
        return bytes;
      },
    },
  };
}

/** Makes kernels: of the compiled module, which is made by the first, or of the source. */
class KernelMaker {
  #module: WebAssembly.Module | undefined;
  #spare: Kernel | undefined;
  readonly #source: typeof import("./source_kernel.ts") | undefined;

  constructor(source: typeof import("./source_kernel.ts") | undefined) {
    this.#source = source;
  }

  /** Runs `action` with a kernel that nothing else uses. */
  use<T>(action: (kernel: Kernel) => T): T {
    const kernel = this.#spare ?? this.#make();
    this.#spare = undefined;
    try {
      return action(kernel);
    } finally {
      if (kernel.memory.bytes(0).length <= KEPT_BYTES) this.#spare = kernel;
    }
  }

  #make(): Kernel {
    if (this.#source !== undefined) return this.#source.sourceKernel(fromBase64(OPCODE_TABLE));
    this.#module ??= hostModule();
    if (this.#module === undefined) throw new Error("WebAssembly was taken away");
    return hostKernel(this.#module);
  }
}

/** Where there is no WebAssembly, the source has to be there before anything is compiled. */
const maker = new KernelMaker(typeof WebAssembly === "object" ? undefined : await import("./source_kernel.ts"));

/** Runs `action` with a kernel that nothing else uses. */
export function withKernel<T>(action: (kernel: Kernel) => T): T {
  return maker.use(action);
}
