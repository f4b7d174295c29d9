/**
 * Chooses the form of the kernel for this host: WebAssembly compiled by the host, or TypeScript on hosts without
 * WebAssembly. In: the generated files. Out: the kernel's functions and memory. Invariant: the TypeScript source is
 * loaded only on hosts that run it.
 */
import { fromBase64 } from "../base/base64.ts";
import { KERNEL_X64 } from "./generated/kernel_x64.ts";
import { OPCODE_TABLE } from "./generated/opcode_table.ts";
import * as layout from "./kernel/layout.ts";
import type { KernelMemory } from "./module_tables.ts";

/** The interface of the kernel (kernel/kernel.ts) to its driver. */
export interface Kernel {
  readonly memory: KernelMemory;
  /** Compiles at most `count` bodies, starting with `first`; returns the number of bodies with a result. */
  compileBodies(first: number, count: number): number;
  /** End addresses of the output rows. */
  callsEnd(): number;
  trapsEnd(): number;
  relocationsEnd(): number;
}

const PAGE = 65_536;
/** Largest kernel memory, in bytes, that is reused: the pages of a reused memory stay resident. */
const KEPT_BYTES = layout.MODULE + (4 << 20);

/** The kernel compiled by the host; undefined on hosts without WebAssembly. */
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

/** Creates kernels from the compiled module, which the first call compiles, or from the source. */
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

/** Hosts without WebAssembly load the source before the first compilation. */
const maker = new KernelMaker(typeof WebAssembly === "object" ? undefined : await import("./source_kernel.ts"));

/** Runs `action` with a kernel that nothing else uses. */
export function withKernel<T>(action: (kernel: Kernel) => T): T {
  return maker.use(action);
}
