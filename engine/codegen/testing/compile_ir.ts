/**
 * Compiles IR functions (objects or text) to an image, for tests of a backend: verifier and allocation checker on.
 */
import { Statistics } from "../../base/statistics.ts";
import { defaultsBut } from "../../testing/optimizations.ts";
import { allocateRegisters } from "../../regalloc/allocate.ts";
import { Allocation } from "../allocation.ts";
import { checkAllocation } from "../../regalloc/check_allocation.ts";
import { MachineCode } from "../machine_code.ts";
import type { CodegenContext, OptimizingTarget } from "../target.ts";
import { VCode } from "../vcode.ts";
import { type ContextShape, layoutContext } from "../../abi/context_layout.ts";
import type { IrFunction } from "../../ir/function.ts";
import { parseFunction } from "../../ir/parse.ts";
import type { Signature } from "../../ir/types.ts";
import { verifyFunction } from "../../ir/verify.ts";

export interface CompileSettings {
  cpu?: ReadonlySet<string>;
  explicitBounds?: boolean;
  fuel?: boolean;
  stackFence?: boolean;
  optimizations?: Record<string, boolean>;
  /** Counts the applications of each key. */
  statistics?: Statistics;
  shape?: Partial<ContextShape>;
  /** Signatures by id; the functions' own are appended. */
  signatures?: Signature[];
}

export interface CompiledIr {
  code: MachineCode;
  context: CodegenContext;
}

function sameTypes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((ty, i) => ty === b[i]);
}

/** Compiles functions for `target`, in order; function k is defined function k. */
export function compileFor(
  target: OptimizingTarget,
  functions: readonly (IrFunction | string)[],
  settings: CompileSettings = {},
): CompiledIr {
  const parsed = functions.map((f) => typeof f === "string" ? parseFunction(f) : f);
  const signatures: Signature[] = [...(settings.signatures ?? [])];
  for (const f of parsed) f.signatures.forEach((signature, id) => signatures[id] ??= signature);
  const ids = parsed.map((f) => {
    const known = signatures.findIndex((s) =>
      s !== undefined && sameTypes(s.params, f.signature.params) && sameTypes(s.results, f.signature.results)
    );
    return known >= 0 ? known : signatures.push(f.signature) - 1;
  });
  const context: CodegenContext = {
    layout: layoutContext({
      memories: 1,
      tables: 0,
      globals: 8,
      importedFuncs: 2,
      definedFuncs: parsed.length,
      types: 4,
      ...settings.shape,
    }),
    explicitBounds: settings.explicitBounds ?? false,
    fuel: settings.fuel ?? false,
    signatures,
    functionSignature: Int32Array.from(ids),
    optimizations: defaultsBut(settings.optimizations ?? {}),
    statistics: settings.statistics ?? new Statistics(),
    cpu: settings.cpu ?? new Set(),
    stackFence: settings.stackFence ?? true,
  };
  const code = new MachineCode(parsed.length, signatures.length);
  target.emitStubs(context, code);
  const backend = target.functionBackend();
  const v = new VCode();
  const allocation = new Allocation();
  const registers = target.registers(context.explicitBounds, context.fuel);
  parsed.forEach((f, index) => {
    verifyFunction(f);
    backend.select(f, v, context, code);
    allocateRegisters(v, registers, context.optimizations, allocation, context.statistics);
    const wrong = checkAllocation(v, registers, allocation);
    if (wrong.length > 0) throw new Error(`Allocation of function ${index}: ${wrong.join("; ")}`);
    backend.emit(v, allocation, context, code, index);
  });
  signatures.forEach((_, id) => {
    target.emitEntryThunk(id, context, code);
    target.emitHostThunk(id, context, code);
  });
  target.relocate(code);
  return { code, context };
}
