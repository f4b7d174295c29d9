/**
 * Runs a component file as a program: compiles it, instantiates it with WASI and calls `run` of wasi:cli. In: bytes with
 * the header of a component, and the inputs of a run. Out: nothing; throws FileFailure, or GuestExit with the program's
 * status.
 */
import { ComponentError } from "../../component/abi/traps.ts";
import { compileBinary } from "../../component/component.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { NewEngine } from "@waft/engine";
import { GuestExit, UsageError } from "../base/failure.ts";
import { protectedPaths } from "../base/protected_paths.ts";
import type { RunOptions } from "./run.ts";
import { inFile } from "./run_module.ts";

/** The function that a command exports. */
const RUN = "wasi:cli/run@0.2.0#run";

/** Runs the command component in `bytes`. */
export function runComponent(file: string, bytes: Uint8Array, args: readonly string[], options: RunOptions): void {
  if (options.invoke !== undefined) throw new UsageError("--invoke is not possible with a component yet");
  const { context, env, preopens, root } = options;
  const engine = NewEngine(options.engine);
  const component = inFile(file, () => compileBinary(engine, bytes));
  const protect = preopens.length === 0 ? {} : { protect: protectedPaths(root) };
  const wasi = inFile(file, () => new ComponentWasi({ args: [file, ...args], env, preopens, ...protect }));
  try {
    const instance = inFile(file, () => component.instantiate(context, wasi.imports));
    if (!instance.has(RUN)) {
      inFile(file, () => {
        throw new Error("the component is not a command: it does not export wasi:cli/run");
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
  } finally {
    wasi.close();
  }
}
