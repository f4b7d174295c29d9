/**
 * Compiles IR functions (objects or text) to an image for x64, with all features of a modern processor unless the
 * settings say otherwise.
 */
import { type CompiledIr, compileFor, type CompileSettings } from "../../codegen/testing/compile_ir.ts";
import type { IrFunction } from "../../ir/function.ts";
import { OPTIMIZING_X64 as X64 } from "../optimizing_target.ts";

export type { CompiledIr, CompileSettings } from "../../codegen/testing/compile_ir.ts";

/** CPUs to test on: the minimum that the backend supports, and all features. */
export const BASELINE: ReadonlySet<string> = new Set();
export const MODERN: ReadonlySet<string> = new Set(["avx", "bmi1", "bmi2", "lzcnt", "popcnt"]);

/** Compiles functions, in order; function k is defined function k. */
export function compileIr(functions: readonly (IrFunction | string)[], settings: CompileSettings = {}): CompiledIr {
  return compileFor(X64, functions, { cpu: MODERN, ...settings });
}
