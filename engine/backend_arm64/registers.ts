/**
 * Registers of arm64 as this backend uses them. Physical numbers as in codegen/vcode.ts: 0-31 general, 32-63 vector.
 *
 *     sp   guest stack           x26  base of memory 0          x28  VM context
 *     x27  byte length of memory 0 where bounds are checked explicitly, otherwise allocatable
 *     x25  the thread's fuel in modules that charge it, otherwise allocatable
 *     x16, x17, v31  scratch of the emitter: never live across a machine operation
 *     x30  return address: saved by functions that call       x18  the platform's: never touched
 *     all others (x29 too) are allocatable and caller-saved: a call destroys the registers that its callee writes
 */
import type { DeniedRegisters } from "../codegen/target.ts";
import { type RegisterFiles, registerFiles } from "../codegen/register_files.ts";

/** Registers with a fixed role. */
export const FUEL = 25;
export const MEMORY_BASE = 26;
export const MEMORY_LENGTH = 27;
export const CONTEXT_REGISTER = 28;
export const SCRATCH = 16;
export const SCRATCH2 = 17;
export const LINK = 30;
/** Holds the thread state in thunks and stubs: no parameter or result travels in it. */
export const THREAD_REGISTER = 9;
/** The stack pointer or the register of zeros: the instruction decides. */
export const SP = 31;
export const ZERO = 31;
/** Physical number of v0. */
const V0 = 32;
/** Hardware number of the vector scratch register. */
export const SCRATCH_VECTOR = 31;

/** Printable names by physical number. */
const REGISTER_NAMES: readonly string[] = [
  ...Array.from({ length: 31 }, (_, i) => `x${i}`),
  "sp",
  ...Array.from({ length: 32 }, (_, i) => `v${i}`),
];

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

// Argument registers come early so that leaf functions need few moves.
const GENERAL_ORDER = [...range(0, 15), ...range(19, 25), 29];
const VECTOR_ORDER = range(V0, V0 + 30);

function mask(...registers: readonly number[]): number {
  return registers.reduce((bits, r) => bits | (1 << (r & 31)), 0);
}

/** The number of vector registers that long-lived floats have with legacy-fp-pins. */
const LEGACY_FLOATS = 4;

const DENIED: readonly DeniedRegisters[] = [
  { key: "leaf-scratch-pins", when: "off", functions: "leaf", values: "all", general: mask(12, 13, 14), vector: 0 },
  { key: "x8-pin", when: "off", functions: "leaf", values: "all", general: mask(8), vector: 0 },
  { key: "legacy-gp-pins", when: "on", functions: "leaf", values: "long", general: mask(8, 24, 25), vector: 0 },
  {
    key: "legacy-fp-pins",
    when: "on",
    functions: "all",
    values: "long",
    general: 0,
    vector: mask(...VECTOR_ORDER.slice(LEGACY_FLOATS)),
  },
  { key: "deep-fp-pins", when: "off", functions: "calling", values: "long", general: 0, vector: mask(4, 5, 6, 7) },
];

export const registerFile: RegisterFiles = registerFiles({
  generalOrder: GENERAL_ORDER,
  vectorOrder: VECTOR_ORDER,
  names: REGISTER_NAMES,
  memoryLength: MEMORY_LENGTH,
  fuel: FUEL,
  denied: DENIED,
});

const ALL = registerFile(false);
/** Registers that a call to an unknown callee may destroy: all that any compiled function may allocate. */
export const CALL_CLOBBERS = { general: ALL.general, vector: ALL.vector } as const;
