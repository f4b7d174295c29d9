/**
 * Verification of compiled modules: prepares the input of engine/verify/. In: a module's machine code, the options it
 * was compiled with, and the context of its stubs. Out: the functions that are not proven. The stubs in front of an
 * image are fixed code of this build, which the verifier compares byte for byte.
 *
 * Invariant: this file imports no part of the compiler, because synchronous code loads it late (late_verifier.ts).
 */
import { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenContext, Target } from "../codegen/target.ts";
import type { CompiledCode } from "./compile.ts";
import type { CompileOptions } from "./compile_options.ts";
import { displayName } from "../base/guest_stack.ts";
import { UnprovenCodeError } from "../base/errors.ts";
import { ARM64_MACHINE } from "../verify/arm64_machine.ts";
import { type MachineModule, machineModule } from "../verify/machine_module.ts";
import { X64_MACHINE } from "../verify/x64_machine.ts";
import { type Finding, verifyCode } from "../verify/verify_code.ts";
import type { Machine } from "../verify/machine.ts";

export type { Finding } from "../verify/verify_code.ts";

/** Machine code that can be verified: of a compilation, or of an artifact. */
export type VerifiableCode = Omit<CompiledCode, "statistics" | "inlineSites" | "signatureIds">;

/** The verifier's architecture for code of `target`. */
export function machineOf({ name }: Pick<Target, "name">): Machine {
  return name === "arm64" ? ARM64_MACHINE : X64_MACHINE;
}

/** The verifier's view of code that was compiled with `options`; `context` is that of its stubs. */
export function machineModuleOf(
  code: VerifiableCode,
  { target, optimizations }: Pick<CompileOptions, "target" | "optimizations">,
  context: CodegenContext,
): MachineModule {
  const stubs = new MachineCode(0, 0);
  target.emitStubs(context, stubs);
  target.relocate(stubs);
  const known = { bytes: stubs.bytes.subarray(0, stubs.length), start: stubs.stubStart };
  const masks = { masksTables: optimizations["mask-tables"], masksMemories: optimizations["mask-memories"] };
  return machineModule(code.valid, code.bytes, code.tables, code, known, masks, code.replaceable);
}

/** Verifies code that was compiled with `options`; `context` is that of its stubs. */
export function verifyCompiled(
  code: VerifiableCode,
  options: Pick<CompileOptions, "target" | "optimizations">,
  context: CodegenContext,
): Finding[] {
  return verifyCode(machineOf(options.target), machineModuleOf(code, options, context));
}

/** The error about code with these findings, of which there is at least one. */
export function unprovenError(code: CompiledCode, findings: readonly Finding[]): UnprovenCodeError {
  const [{ index, at, reason }, ...more] = findings;
  const { valid: { importedFuncCount, names }, tables: { functionStart } } = code;
  if (index < 0) return new UnprovenCodeError(`The machine code is not proven: ${reason}`, -1, 0, reason);
  const func = index + importedFuncCount;
  const offset = at - functionStart[index];
  const name = names.funcs.get(func);
  const label = name === undefined ? `function ${func}` : `function ${func} ($${displayName(name)})`;
  const others = more.length === 0 ? "" : `, and ${more.length} more`;
  return new UnprovenCodeError(
    `The machine code of ${label} at offset ${offset} is not proven${others}: ${reason}`,
    func,
    offset,
    reason,
  );
}
