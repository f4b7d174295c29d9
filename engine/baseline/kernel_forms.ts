/**
 * The kernel in the form that runs here. In: nothing. Out: its functions and its memory.
 */
import * as source from "./kernel/kernel.ts";
import * as layout from "./kernel/layout.ts";
import { kernelMemory } from "./kernel/memory.ts";
import type { KernelMemory } from "./module_tables.ts";
import { opcodeTable } from "./opcode_table.ts";

/** The kernel (kernel/kernel.ts) as its driver sees it. */
export interface Kernel {
  readonly memory: KernelMemory;
  compileBodies(first: number, count: number): number;
  /** Addresses behind the last rows that came out. */
  callsEnd(): number;
  trapsEnd(): number;
  relocationsEnd(): number;
}

/** The kernel as TypeScript. */
export function sourceKernel(): Kernel {
  const bytes = kernelMemory(layout.MODULE);
  bytes.set(opcodeTable(), layout.OPCODES);
  return { ...source, memory: { bytes: kernelMemory } };
}
