/**
 * Chooses the form of the kernel for this host: machine code, which only packages contain; otherwise WebAssembly
 * compiled by the host; otherwise TypeScript, which exists for x64 only. In: the generated files. Out: the kernel's
 * functions and memory. Invariant: the TypeScript source is loaded only on hosts without WebAssembly.
 */
import { fromBase64 } from "../base/base64.ts";
import { hasAddressSpace } from "../host/memory/address_space.ts";
import { hostArchitecture } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import { HOST_WEB_ASSEMBLY, type HostWebAssembly, MEMORY_ROOM, unlessRefused } from "../host/host_webassembly.ts";
import { LateData } from "../host/late_data.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";
import { HAS_NATIVE_KERNEL } from "./generated/kernel_presence.ts";
import { OPCODE_TABLE } from "./generated/opcode_table.ts";
import * as layout from "./kernel/layout.ts";
import type { LazyRoutine } from "./lazy_routine.ts";
import { processorCount } from "../host/workers.ts";
import type { KernelMemory } from "./module_tables.ts";
import type { NativeKernel } from "./native_code.ts";

/** The interface of the kernel (kernel/kernel.ts) to its driver. */
export interface Kernel {
  readonly memory: KernelMemory;
  /** Compiles at most `count` bodies, starting with `first`; returns the number of bodies with a result. */
  compileBodies(first: number, count: number): number;
  /**
   * The three steps of compileBodies. `writeBodies` returns the result of compileBodies; H_BASE must be set before
   * `placeBodies`.
   */
  writeBodies(first: number, count: number): number;
  /** Compiles one body to offset `base` of the image; what came of it is at H_RESULT. */
  compileLazily(index: number, base: number): void;
  /** Validates bodies as `writeBodies` does, without code; returns the number of bodies with a status. */
  validateBodies(first: number, count: number): number;
  placeBodies(first: number, done: number): void;
  linkBodies(): void;
  /**
   * Starts `writeBodies` in another thread; the returned function waits for it to finish and returns its result. The
   * kernel must not be used in between. Throws an Error if the system cannot create a thread. Absent in forms that
   * cannot run in a thread.
   */
  startBodies?(first: number, count: number): () => number;
  /** The same for `validateBodies`. */
  startValidation?(first: number, count: number): () => number;
  /** The module whose tables are in the memory, if its bodies are compiled lazily. */
  tenant?: Tenant | undefined;
  /** How machine code compiles a body; absent in forms that it cannot call. */
  readonly routine?: LazyRoutine | undefined;
  /** End addresses of the output rows. */
  callsEnd(): number;
  trapsEnd(): number;
  relocationsEnd(): number;
  /** Frees the kernel; absent in forms that the garbage collector frees. */
  release?(): void;
}

/** A module whose tables are in a kernel's memory. */
export interface Tenant {
  /** Called before the kernel is used for another module, or freed. */
  leave(): void;
}

/** Ends the tenancy of a kernel: the caller writes another module to its memory, or frees it. */
export function evictTenant(kernel: Kernel): void {
  const { tenant } = kernel;
  kernel.tenant = undefined;
  tenant?.leave();
}

function freeKernel(kernel: Kernel): void {
  evictTenant(kernel);
  kernel.release?.();
}

const PAGE = 65_536;
/** Maximum size in bytes of a kernel memory that is kept for reuse: the pages of a kept memory stay resident. */
const KEPT_BYTES = layout.MODULE + (4 << 20);

/** The most kernels that are kept: modules that are compiled lazily at the same time have one each. */
const MAX_SPARES = 3;

/** The processors for which there is a kernel. */
export type KernelTarget = "x64" | "arm64";

/** The kernels as WebAssembly. A process uses the one for its processor; tests compare the code of both. */
const KERNELS: Readonly<Record<KernelTarget, LateModule<{ readonly KERNEL: string }>>> = {
  x64: new LateModule(
    new URL(`./generated/kernel_x64.${SUFFIX}`, import.meta.url),
    () => import("./generated/kernel_x64.ts"),
  ),
  arm64: new LateModule(
    new URL(`./generated/kernel_arm64.${SUFFIX}`, import.meta.url),
    () => import("./generated/kernel_arm64.ts"),
  ),
};

/** The kernels as machine code, as modules. */
const NATIVE_MODULES: Readonly<Record<KernelTarget, LateModule<{ readonly NATIVE: NativeKernel | undefined }>>> = {
  x64: new LateModule(
    new URL(`./generated/native_x64.${SUFFIX}`, import.meta.url),
    () => import("./generated/native_x64.ts"),
  ),
  arm64: new LateModule(
    new URL(`./generated/native_arm64.${SUFFIX}`, import.meta.url),
    () => import("./generated/native_arm64.ts"),
  ),
};

/** The kernels as machine code. */
const NATIVES: Readonly<Record<KernelTarget, LateData<NativeKernel | undefined>>> = {
  x64: new LateData(new URL("./generated/native_x64.json", import.meta.url), () => NATIVE_MODULES.x64.get().NATIVE),
  arm64: new LateData(
    new URL("./generated/native_arm64.json", import.meta.url),
    () => NATIVE_MODULES.arm64.get().NATIVE,
  ),
};

/** A checkout imports the kernel of this processor at once: where `require` is slow, it is slower than importing. */
async function prepareKernels(): Promise<void> {
  const arch = hostArchitecture();
  await (HAS_NATIVE_KERNEL ? KERNELS[arch].prepare() : KERNELS[arch].load());
  await NATIVE_MODULES[arch].prepare();
}

await prepareKernels();

/** The kernel for `target`, compiled by the host; undefined if compilation fails. */
function hostModule({ Module }: HostWebAssembly, target: KernelTarget): WebAssembly.Module | undefined {
  return unlessRefused(() => new Module(fromBase64(KERNELS[target].get().KERNEL)));
}

/** An instance of the kernel; undefined if the address space or the memory is not available. */
function hostKernel({ Memory, Instance }: HostWebAssembly, module: WebAssembly.Module): Kernel | undefined {
  if (!hasAddressSpace(currentHost(), MEMORY_ROOM)) return undefined;
  const memory = unlessRefused(() => new Memory({ initial: layout.MODULE / PAGE }));
  if (memory === undefined) return undefined;
  const { exports } = new Instance(module, { env: { memory } });
  const all = () => new Uint8Array(memory.buffer as ArrayBuffer); // not shared
  let bytes = all();
  bytes.set(fromBase64(OPCODE_TABLE), layout.OPCODES);
  return {
    ...exports as unknown as Omit<Kernel, "memory">,
    memory: {
      get size() {
        return bytes.length;
      },
      view(from, size) {
        const end = from + size;
        if (end > bytes.length) memory.grow(Math.ceil((end - bytes.length) / PAGE));
        if (bytes.buffer !== memory.buffer) bytes = all();
        return bytes.subarray(from, end);
      },
    },
  };
}

/** Creates machine-code kernels; undefined until the engine registers the function. */
let makeNative: ((native: NativeKernel) => Kernel | undefined) | undefined;

/** Registers the function that creates machine-code kernels for this processor. */
export function setNativeMaker(make: (native: NativeKernel) => Kernel | undefined): void {
  makeNative = make;
}

/** Creates kernels from machine code, from the compiled module (compiled on first use), or from the source. */
class KernelMaker {
  #module: WebAssembly.Module | undefined;
  /** The machine code; "unread" until the first kernel is made. */
  #native: NativeKernel | "unread" | undefined;
  readonly #spares: Kernel[] = [];
  readonly #target: KernelTarget;
  readonly #source: typeof import("./source_kernel.ts") | undefined;

  constructor(target: KernelTarget, source: typeof import("./source_kernel.ts") | undefined) {
    this.#target = target;
    this.#source = source;
    this.#native = HAS_NATIVE_KERNEL && target === hostArchitecture() ? "unread" : undefined;
  }

  get #code(): NativeKernel | undefined {
    if (this.#native === "unread") this.#native = NATIVES[this.#target].get();
    return this.#native;
  }

  /** Makes kernels of this machine code from now on. */
  adopt(native: NativeKernel): void {
    for (const kernel of this.#spares.splice(0)) freeKernel(kernel);
    this.#native = native;
  }

  /** Frees the spare kernels that are too large to be kept without a tenant. */
  freeLarge(): void {
    for (const kernel of this.#spares.splice(0)) this.#keepOrFree(kernel);
  }

  #keepOrFree(kernel: Kernel): void {
    const isKept = kernel.memory.size <= KEPT_BYTES || kernel.tenant !== undefined;
    if (isKept && this.#spares.length < MAX_SPARES) this.#spares.push(kernel);
    else freeKernel(kernel);
  }

  /** The form of the next kernel. */
  get form(): KernelForm {
    return this.#code !== undefined ? "native" : this.#source !== undefined ? "typescript" : "wasm";
  }

  /**
   * Runs `action` with exclusive use of a kernel and with a function that creates a second one for another thread.
   * Returns undefined if no kernel can be created.
   */
  use<T>(action: (kernel: Kernel, second: SecondKernel) => T, tenant?: Tenant): T | undefined {
    const kernel = this.#takeSpare(tenant) ?? this.#make();
    if (kernel === undefined) return undefined;
    let other: Kernel | undefined;
    const second = () =>
      other ??= kernel.startBodies !== undefined && processorCount() > 1 ? this.#instantiateNative() : undefined;
    try {
      return action(kernel, second);
    } finally {
      other?.release?.();
      this.#keepOrFree(kernel);
    }
  }

  /** The spare kernel of a tenant, else one without a tenant, else any if there are many. */
  #takeSpare(tenant: Tenant | undefined): Kernel | undefined {
    const spares = this.#spares;
    let at = tenant === undefined ? -1 : spares.findIndex((kernel) => kernel.tenant === tenant);
    if (at < 0) at = spares.findIndex((kernel) => kernel.tenant === undefined);
    if (at < 0 && spares.length === MAX_SPARES) at = 0;
    return at < 0 ? undefined : spares.splice(at, 1)[0];
  }

  #make(): Kernel | undefined {
    return this.#makeNative() ?? this.#makeOther();
  }

  /**
   * A machine-code kernel; undefined if this form is unavailable. After a failure, it counts as unavailable from then
   * on.
   */
  #makeNative(): Kernel | undefined {
    if (this.#code === undefined || makeNative === undefined) return undefined;
    const kernel = this.#instantiateNative();
    if (kernel === undefined) this.#native = undefined;
    return kernel;
  }

  #instantiateNative(): Kernel | undefined {
    const code = this.#code;
    if (code === undefined || !hasAddressSpace(currentHost(), MEMORY_ROOM)) return undefined;
    return makeNative?.(code);
  }

  #makeOther(): Kernel | undefined {
    if (this.#source !== undefined) return this.#source.sourceKernel(fromBase64(OPCODE_TABLE));
    if (HOST_WEB_ASSEMBLY === undefined) return undefined;
    this.#module ??= hostModule(HOST_WEB_ASSEMBLY, this.#target);
    return this.#module && hostKernel(HOST_WEB_ASSEMBLY, this.#module);
  }
}

/** Hosts without WebAssembly load the source before the first compilation. */
const source = HOST_WEB_ASSEMBLY !== undefined ? undefined : await import("./source_kernel.ts");
const makers: Readonly<Record<KernelTarget, KernelMaker>> = {
  x64: new KernelMaker("x64", source),
  arm64: new KernelMaker("arm64", undefined),
};

/** Creates a second kernel for another thread; undefined if that is not possible. */
export type SecondKernel = () => Kernel | undefined;

/** A form of the kernel. */
type KernelForm = "native" | "wasm" | "typescript";

/** The form in which the kernel runs on this host. */
export function kernelForm(): KernelForm {
  return makers[hostArchitecture()].form;
}

/** Uses a kernel as machine code for this processor from now on: tests of a checkout, which has none, build one. */
export function useNativeKernel(native: NativeKernel): void {
  makers[hostArchitecture()].adopt(native);
}

/** Frees the memory of spare kernels for `target` whose tenants have been collected. */
export function freeLargeKernels(target: KernelTarget): void {
  makers[target].freeLarge();
}

/** Whether a kernel exists for the processor `target`. */
export function isKernelTarget(target: string): target is KernelTarget {
  return target in KERNELS;
}

/**
 * Runs `action` with exclusive use of a kernel for `target`, that of `tenant` if there is one, and with a function that
 * creates a second one. Returns undefined if no kernel can be created.
 */
export function withKernel<T>(
  target: KernelTarget,
  action: (kernel: Kernel, second: SecondKernel) => T,
  tenant?: Tenant,
): T | undefined {
  return makers[target].use(action, tenant);
}
