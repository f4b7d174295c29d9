/**
 * Verification of compiled modules: prepares what engine/verify/ needs. In: a module's machine code and the options it
 * was compiled with. Out: the functions that are not proven. The stubs in front of an image are fixed code of this
 * build, which the verifier compares byte for byte.
 */
import { type CompiledCode, type CompileOptions, compilerState } from "./compile.ts";
import { MachineCode } from "./codegen/machine_code.ts";
import { type MachineModule, machineModule } from "./verify/machine_module.ts";
import { type Finding, verifyX64 } from "./verify/verify_code.ts";

export type { Finding } from "./verify/verify_code.ts";

/** The verifier's view of x64 code that `compileModule` made with the same options. */
export function machineModuleOf(code: CompiledCode, options: CompileOptions): MachineModule {
  const { context } = compilerState(code.valid, options);
  const stubs = new MachineCode(0, 0);
  options.target.emitStubs(context, stubs);
  options.target.relocate(stubs);
  const known = { bytes: stubs.bytes.subarray(0, stubs.length), start: stubs.stubStart };
  return machineModule(code.valid, code.bytes, code.tables, code, known, code.replaceable);
}

/** Verifies x64 code that `compileModule` made with the same options. */
export function verifyCompiled(code: CompiledCode, options: CompileOptions): Finding[] {
  return verifyX64(machineModuleOf(code, options));
}
