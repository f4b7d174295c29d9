/**
 * The parts of messages that are JSON, and the flags of calls. In: what a program asks of its runner. Out: types that
 * both sides share.
 */
import type { Context, EngineOptions } from "../api/engine.ts";
import type { Measure } from "../host/confinement.ts";

/** The first message of a program. */
export interface Setup {
  readonly version: number;
  readonly engine: EngineOptions;
  readonly confinement: "none" | "auto" | "required";
  readonly maxBytes?: number;
  readonly maxMessageBytes: number;
}

/** The answer to it. */
export interface Ready {
  readonly version: number;
  readonly measures: readonly Measure[];
}

/** Imports of an instantiation that are functions of the program. */
interface RemoteImport {
  readonly module: string;
  readonly name: string;
  /** The number of the function in the program. */
  readonly index: number;
}

/** The parts of an instantiation that are sent as JSON. */
export interface InstantiateOptions {
  readonly context: Context;
  readonly functions: readonly RemoteImport[];
  readonly values: readonly { readonly module: string; readonly name: string }[];
}

/** Flags of the fields that precede the arguments of a call. */
export const CALL_FLAG = { DEADLINE: 1, PROCESSOR_TIME: 2, FUEL: 4 } as const;
