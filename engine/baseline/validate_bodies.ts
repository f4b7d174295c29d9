/**
 * Validates all bodies of a module with the baseline tier's kernel, which compiles nothing. In: a ValidModule whose
 * bodies have not been validated. Out: nothing; the error of the first invalid body is thrown, and the features that
 * bodies use are noted. Invariant: a body passes here exactly if `validateBody` accepts it.
 *
 * The bodies pass through the kernel's memory in windows, so that its size does not depend on the module's.
 */
import type { ContextLayout } from "../abi/context_layout.ts";
import { validateDefined } from "../validate/module.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { lengthOf } from "../wasm/module.ts";
import { invalidBody, noteFeatureUses, PAIR_BYTES, startThread } from "./compile_bodies.ts";
import { evictTenant, type Kernel, type SecondKernel } from "./kernel_forms.ts";
import * as layout from "./kernel/layout.ts";
import { copyTables, type KernelOptions, wordsAt, writeBodies, writeTables } from "./module_tables.ts";

/** Size in bytes of the bodies that one kernel validates at a time. */
const WINDOW_BYTES = 1 << 21;

/** Validates the bodies; a second kernel takes half of them if there are many. Throws validation errors. */
export function validateBodies(
  kernel: Kernel,
  valid: ValidModule,
  context: ContextLayout,
  options: KernelOptions,
  second: SecondKernel,
): void {
  evictTenant(kernel);
  const at = writeTables(kernel.memory, valid, context, options);
  const windows = new Windows(valid, at);
  const { funcs } = valid;
  let other: Kernel | undefined;
  for (let first = 0; first < funcs.length;) {
    const middle = windows.endOf(first);
    const end = windows.endOf(middle);
    if (end > middle && windows.bytes >= PAIR_BYTES && other === undefined) {
      other = second();
      if (other !== undefined) copyTables(kernel.memory, other.memory, at);
    }
    const wait = other && windows.start(other, middle, end);
    try {
      windows.run(kernel, first, middle);
    } finally {
      wait?.();
    }
    if (wait === undefined) first = middle;
    else {
      windows.take(other!, middle, end);
      first = end;
    }
  }
  noteFeatureUses(valid, other === undefined ? [kernel] : [kernel, other]);
}

/** The bodies of a module, a window of which is in a kernel's memory. */
class Windows {
  readonly #valid: ValidModule;
  /** The address of the window. */
  readonly #at: number;
  /** Size in bytes of the last window. */
  bytes = 0;

  constructor(valid: ValidModule, at: number) {
    this.#valid = valid;
    this.#at = at;
  }

  /** The end of the window that begins with body `first`. */
  endOf(first: number): number {
    const { funcs } = this.#valid;
    const MAX_BODIES = layout.RESULT_COLUMN / 4;
    const last = Math.min(funcs.length, first + MAX_BODIES);
    let end = first;
    this.bytes = 0;
    while (end < last && this.bytes < WINDOW_BYTES) this.bytes += lengthOf(funcs[end++].body);
    return end;
  }

  /** Validates the bodies from `first` to before `end`. */
  run(kernel: Kernel, first: number, end: number): void {
    if (first === end) return;
    writeBodies(kernel.memory, this.#valid, this.#at, { first, end });
    kernel.validateBodies(first, end - first);
    this.take(kernel, first, end);
  }

  /** Starts the same in a thread; undefined if the window is empty, or if there is no thread. */
  start(kernel: Kernel, first: number, end: number): (() => void) | undefined {
    if (first === end) return undefined;
    writeBodies(kernel.memory, this.#valid, this.#at, { first, end });
    return startThread(() => kernel.startValidation?.(first, end - first));
  }

  /** Reads the statuses of the bodies from `first` to before `end`. Throws the error of the first invalid body. */
  take(kernel: Kernel, first: number, end: number): void {
    const statuses = wordsAt(kernel.memory, layout.RESULT_STATUSES, (end - first) * 4);
    for (let k = 0; k < statuses.length; k++) {
      const status = statuses[k];
      if (status === layout.STATUS_DONE) continue;
      if (status === layout.STATUS_INVALID) throw invalidBody(this.#valid, first + k);
      // The kernel has no room for the body.
      validateDefined(this.#valid, first + k);
    }
  }
}
