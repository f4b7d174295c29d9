/** Functions of components and of the host. Types alone: lift.ts makes the former. */
import type { ComponentInstance } from "../async/component_instance.ts";
import type { CoreFunction } from "../async/core_function.ts";
import type { RuntimeOptions } from "./options.ts";

/** A function of the host, on values that are meant for JavaScript. */
export type HostFunction = (...args: unknown[]) => unknown;

/** A lifted function, for calls without a task and for adapters. */
export interface LiftedFunction {
  readonly core: CoreFunction;
  readonly options: RuntimeOptions;
  /** The function for callers inside `caller`, or for JavaScript; the call must not block. */
  direct(caller: ComponentInstance | undefined): HostFunction;
}
