/**
 * The kernel as TypeScript, for tests, debugging and hosts without WebAssembly.
 */
import * as source from "./kernel/kernel.ts";
import { kernelMemory } from "./kernel/memory.ts";
import type { Kernel } from "./kernel_forms.ts";
import * as layout from "./kernel/layout.ts";

/** The kernel with `table` as its opcode table. All callers share one kernel, because its state is module-level. */
export function sourceKernel(table: Uint8Array): Kernel {
  kernelMemory(layout.MODULE).set(table, layout.OPCODES);
  return {
    ...source,
    memory: {
      size: layout.MODULE,
      view: (from, bytes) => kernelMemory(from + bytes).subarray(from, from + bytes),
    },
  };
}
