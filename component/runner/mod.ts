/**
 * Components in a process of their own: {@linkcode Runner} is the runner of `@waft/engine/runner`, which also compiles,
 * instantiates and calls components. Functions and classes of the program run in the program; the component has handles
 * of their objects.
 *
 * @example
 * ```ts
 * import { Runner } from "@waft/component/runner";
 *
 * const runner = await Runner.start();
 * const component = await runner.compileComponent(`(component
 *   (core module $m (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
 *   (core instance $i (instantiate $m))
 *   (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add"))))`);
 * const instance = await component.instantiate();
 * if (await instance.call({ deadline: 100 }, "add", 2, 3) !== 5) throw new Error("wrong result");
 * await runner.close();
 * ```
 *
 * @module
 */
export { RunnerError } from "@waft/engine/runner";
export type {
  RunnerContext,
  RunnerEngineOptions,
  RunnerInstantiation,
  RunnerOptions,
  RunnerProgram,
} from "@waft/engine/runner";
export { RunnerResource } from "./program_handles.ts";
export {
  Runner,
  RunnerComponent,
  type RunnerComponentContext,
  RunnerComponentInstance,
  type RunnerOutput,
  type RunnerWasi,
} from "./runner.ts";
