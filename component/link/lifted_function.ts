/** Functions of components and of the host. Types alone: lift.ts makes the former. */
import type { Lifter, Lowerer } from "../abi/generated.ts";
import type { ComponentInstance } from "../async/component_instance.ts";
import type { CoreFunction } from "../async/core_function.ts";
import type { RuntimeOptions } from "./options.ts";

/** A function of the host, on values that are meant for JavaScript. */
export type HostFunction = (...args: unknown[]) => unknown;

/** The functions that lift and lower the values of a function, for other components (`foreign`) or JavaScript. */
export interface ValueCodecs {
  readonly lowerParams: (foreign: boolean) => Lowerer;
  readonly liftResult: (foreign: boolean) => Lifter;
}

/** A lifted function, for calls without a task and for adapters. */
export interface LiftedFunction {
  readonly core: CoreFunction;
  readonly options: RuntimeOptions;
  /** For calls by tasks. They are made once, because their code is generated. */
  readonly codecs: ValueCodecs;
  /** The function for callers inside `caller`, or for JavaScript; the call must not block. */
  direct(caller: ComponentInstance | undefined): HostFunction;
}
