/**
 * The engine in a process of its own. The program needs no permission for machine code, a crash or a lack of memory
 * costs the runner alone, and the operating system confines the runner where it can.
 *
 * @example
 * ```ts
 * import { Runner } from "@waft/engine/runner";
 *
 * const runner = await Runner.start();
 * const module = await runner.compile(`(module
 *   (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))`);
 * const instance = await module.instantiate();
 * if (await instance.call({ deadline: 100 }, "add", 2, 3) !== 5) throw new Error("wrong result");
 * await runner.close();
 * ```
 *
 * @module
 */
export type { Measure } from "../host/confinement.ts";
export { RunnerError } from "./failures.ts";
export type { RunnerContext } from "./limits.ts";
export type { RunnerEngineOptions, RunnerOptions } from "./open_runner.ts";
export type { RunnerProgram } from "./programs.ts";
export { Runner, type RunnerImports, RunnerInstance, type RunnerInstantiation, RunnerModule } from "./runner.ts";
