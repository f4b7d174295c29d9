/**
 * The kernel as TypeScript: for tests, for debugging, and where there is no WebAssembly.
 */
import * as source from "./kernel/kernel.ts";
import { kernelMemory } from "./kernel/memory.ts";
import type { Kernel } from "./kernel_forms.ts";
import * as layout from "./kernel/layout.ts";

/** The kernel with `table` as its opcode table. There is one only: its state is that of its modules. */
export function sourceKernel(table: Uint8Array): Kernel {
  kernelMemory(layout.MODULE).set(table, layout.OPCODES);
  return { ...source, memory: { bytes: kernelMemory } };
}
