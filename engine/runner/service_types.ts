/**
 * The parts of messages that are JSON, and the interface of packages on top of the engine. In: requests of a program.
 * Out: types that both sides share.
 */
import type { Context, Engine, EngineOptions } from "../api/engine.ts";
import type { Measure } from "../host/confinement.ts";
import type { PayloadReader, PayloadWriter } from "./values.ts";

/** The first message of a program. */
export interface Setup {
  readonly version: number;
  readonly engine: EngineOptions;
  readonly confinement: "none" | "auto" | "required";
  readonly maxBytes?: number;
  readonly maxMessageBytes: number;
  /** The name of the package on top of the engine that the program uses. */
  readonly extension?: string;
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

/** Writes the payload of an answer. */
export type WriteAnswer = (writer: PayloadWriter) => void;

/** A request of a package on top of the engine. */
export interface ExtendedRequest {
  readonly operation: number;
  readonly id: number;
  readonly reader: PayloadReader;
  /** Whether a call waits for a host function meanwhile, so that the request cannot wait for promises. */
  readonly isNested: boolean;
}

/** The functions of a runner's process for a package on top of the engine. */
export interface ExtensionServices {
  readonly engine: Engine;
  /** Calls the host function `index` of the program, and waits for its answer. Throws HostFunctionError if it threw. */
  readonly callProgram: <T>(
    index: number,
    write: (writer: PayloadWriter) => void,
    read: (reader: PayloadReader) => T,
  ) => T;
  /** Sends a notice about `subject`. */
  readonly notify: (subject: number, write: (writer: PayloadWriter) => void) => void;
}

/** A package on top of the engine, in a runner's process. */
export interface RunnerExtension {
  /** Serves a request; returns the function that writes its answer. A FuelledError carries the remaining fuel. */
  serve(request: ExtendedRequest): WriteAnswer | Promise<WriteAnswer>;
}

export type MakeExtension = (services: ExtensionServices) => RunnerExtension;

/** A package on top of the engine that has been loaded. */
export interface LoadedExtension {
  readonly make: MakeExtension;
  /** Loads all code that the package may need later, since the process is confined afterwards. */
  readonly warmUp: (engine: Engine) => Promise<void>;
}
