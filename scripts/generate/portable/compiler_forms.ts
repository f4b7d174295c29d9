/**
 * The compiled forms of the compiler's parts. In: their module (build_compiler.ts), and a form: WebAssembly on the
 * host's engine, or machine code of one of waft's tiers. Out: the exports of an instance.
 */
import { NewEngine } from "../../../engine/mod.ts";
import type { AllocatorExports } from "./allocator_module.ts";
import type { BackendExports } from "./backend_module.ts";
import type { OptimizerExports } from "./optimizer_module.ts";
import type { TranslatorExports } from "./translator_module.ts";

/** The compiled forms. */
export type CompiledForm = "WebAssembly" | "machine code" | "baseline code";

/** The exports of an instance. */
type CompilerExports = OptimizerExports & AllocatorExports & BackendExports & TranslatorExports;

/** An instance of the module `bytes`; `afterPass` gets the address of a pass's name. */
export function compilerExports(
  form: CompiledForm,
  bytes: Uint8Array<ArrayBuffer>,
  afterPass: (name: number) => void,
): CompilerExports {
  const imports = { env: { afterPass } };
  const instance = form === "WebAssembly"
    ? new WebAssembly.Instance(new WebAssembly.Module(bytes), imports)
    : NewEngine({ tier: form === "machine code" ? "optimizing" : "baseline" }).compile(bytes).instantiate({}, imports);
  return instance.exports as unknown as CompilerExports;
}
