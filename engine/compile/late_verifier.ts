/**
 * The verifier of machine code, loaded with the first code that is verified. In: compiled code and its options. Out:
 * the functions that are not proven, and the error about them.
 */
import type { CompiledCode } from "./compile.ts";
import type { CompileOptions } from "./compile_options.ts";
import type { CodegenContext } from "../codegen/target.ts";
import type { UnprovenCodeError } from "../base/errors.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";
import type { Finding } from "../verify/verify_code.ts";

const VERIFIER = new LateModule(
  new URL(`./verify_module.${SUFFIX}`, import.meta.url),
  () => import("./verify_module.ts"),
);
await VERIFIER.prepare();

/** The functions of `code` that are not proven; `context` is that of its stubs. */
export function findUnproven(
  code: CompiledCode,
  options: CompileOptions,
  context: CodegenContext,
): readonly Finding[] {
  return VERIFIER.get().verifyCompiled(code, options, context);
}

export function unprovenError(code: CompiledCode, findings: readonly Finding[]): UnprovenCodeError {
  return VERIFIER.get().unprovenError(code, findings);
}
