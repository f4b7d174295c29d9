/**
 * Runs a component file as a program: compiles it, instantiates it with WASI and calls `run` of wasi:cli, or the
 * function that `--invoke` names. In: bytes with the header of a component, and the inputs of a run. Out: lines to
 * print; throws FileFailure, or GuestExit with the program's status.
 */
import { ComponentError } from "../../component/abi/traps.ts";
import { compileBinary, type ComponentInstance } from "../../component/component.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { type Context, NewEngine } from "@waft/engine";
import { writeText } from "@waft/engine/internal/host/process";
import { GuestExit } from "../base/failure.ts";
import { protectedPaths } from "../base/protected_paths.ts";
import type { RunOptions } from "./run.ts";
import { inFile } from "./run_module.ts";

/** The function that a command exports. */
const RUN = "wasi:cli/run@0.2.0#run";

/** Runs the command component in `bytes`. */
export async function runComponent(
  file: string,
  bytes: Uint8Array,
  args: readonly string[],
  options: RunOptions,
): Promise<string[]> {
  const { context, env, preopens, root } = options;
  const engine = NewEngine(options.engine);
  const component = inFile(file, () => compileBinary(engine, bytes));
  const protect = preopens.length === 0 ? {} : { protect: protectedPaths(root) };
  const wasi = inFile(file, () => new ComponentWasi({ args: [file, ...args], env, preopens, ...protect }));
  try {
    const instance = inFile(file, () => component.instantiate(context, wasi.imports));
    if (options.invoke !== undefined) return await invokeFunction(file, instance, options.invoke, context);
    if (!instance.has(RUN)) {
      inFile(file, () => {
        throw new Error(
          "the component is not a command: it does not export wasi:cli/run; call one of its functions with --invoke",
        );
      });
    }
    const succeeded = inFile(file, () => {
      try {
        instance.call(context, RUN);
        return true;
      } catch (error) {
        if (error instanceof ComponentError) return false;
        throw error;
      }
    });
    if (!succeeded) throw new GuestExit(1);
    return [];
  } finally {
    wasi.close();
  }
}

/** Calls the function that `--invoke` names. The error case of a `result` is printed, too, and the status is 1. */
async function invokeFunction(
  file: string,
  instance: ComponentInstance,
  text: string,
  context: Context,
): Promise<string[]> {
  // Loaded only for --invoke, since the start of a program pays for every module.
  const { invoke, planInvocation } = await import("./invoke_component.ts");
  const plan = planInvocation(file, instance, text);
  const { lines, isError } = await inFile(file, () => invoke(instance, context, plan));
  if (!isError) return lines;
  writeText(1, `${lines.join("\n")}\n`);
  throw new GuestExit(1);
}
