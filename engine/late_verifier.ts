/**
 * The verifier of machine code, loaded with the first code that is verified. In: compiled code and its options. Out: an
 * UnprovenCodeError unless every function is proven.
 */
import type { CompiledCode } from "./compile.ts";
import type { CompileOptions } from "./compile_options.ts";
import type { CodegenContext } from "./codegen/target.ts";
import { LateModule, SUFFIX } from "./host/late_module.ts";

const VERIFIER = await new LateModule(
  new URL(`./verify_module.${SUFFIX}`, import.meta.url),
  () => import("./verify_module.ts"),
).prepare();

/** Throws UnprovenCodeError unless all functions of the x64 code are proven; `context` is that of its stubs. */
export function requireProven(code: CompiledCode, options: CompileOptions, context: CodegenContext): void {
  VERIFIER.get().requireProven(code, options, context);
}
