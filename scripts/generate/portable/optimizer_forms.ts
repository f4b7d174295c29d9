/**
 * The compiled forms of the optimizer. In: its module, and a form: WebAssembly on the host's engine, or machine code of
 * one of waft's tiers. Out: the exports of an instance.
 */
import { NewEngine } from "../../../engine/mod.ts";
import type { OptimizerExports } from "./optimizer_module.ts";

/** The compiled forms. */
export type CompiledForm = "WebAssembly" | "machine code" | "baseline code";

/** An instance of the module `bytes`; `afterPass` gets the address of a pass's name. */
export function optimizerExports(
  form: CompiledForm,
  bytes: Uint8Array<ArrayBuffer>,
  afterPass: (name: number) => void,
): OptimizerExports {
  const imports = { env: { afterPass } };
  const instance = form === "WebAssembly"
    ? new WebAssembly.Instance(new WebAssembly.Module(bytes), imports)
    : NewEngine({ tier: form === "machine code" ? "optimizing" : "baseline" }).compile(bytes).instantiate({}, imports);
  return instance.exports as unknown as OptimizerExports;
}
