/**
 * The messages about components between a program and its runner, on top of those of the engine: operations, which are
 * requests of the program, and notices of the runner. In: numbers. Out: their meaning. Invariant: both sides use these
 * rows alone.
 */

import type { Context } from "@waft/engine";

/** The name by which a program asks for a runner with components. */
export const EXTENSION = "components";

/** Requests; the payload begins with the id of the component or instance that they concern. */
export const OPERATION = {
  /** The component has the id of the request. */
  COMPILE: 1,
  /** The instance has the id of the request. */
  INSTANTIATE: 2,
  CALL: 3,
  RESET: 4,
  /** Closes an instance. */
  CLOSE: 5,
  /** Forgets a component. */
  FORGET: 6,
  /** Runs a command of WASI. */
  RUN: 7,
  /** The output and the files of an instance with WASI. */
  OUTPUT: 8,
  /** Disposes of a resource of the component. */
  DROP: 9,
  /** Asks for the next part of a stream, or the value of a future, that the component passed to the program. */
  PULL: 10,
  /** Ends such a stream. */
  CANCEL: 11,
  /** The next part of a stream, or the value of a future, that the program passed to the component. */
  SUPPLY: 12,
} as const;

/** Notices; the subject is the instance. */
export const NOTICE = {
  /** The component has dropped an object of the program. */
  DROPPED: 1,
  /** The component asks for the next part of a stream, or the value of a future, of the program. */
  WANTED: 2,
  /** The component no longer reads such a stream. */
  UNWANTED: 3,
} as const;

/** The states of a channel that a part of it reports. */
export const PART = { END: 0, VALUE: 1, ERROR: 2 } as const;

/** The parts of an instantiation that are sent as JSON. */
export interface InstantiateOptions {
  readonly context: Context;
  /** The functions of the program, by the paths of the component's imports. */
  readonly functions: readonly { readonly path: readonly string[]; readonly index: number }[];
  readonly hasWasi: boolean;
}
