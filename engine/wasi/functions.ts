/**
 * Common base of the WASI function groups. In: an object whose methods implement one group's functions, under their
 * names in witx. Out: those methods as imports of a guest, with their types.
 *
 * Invariant: a guest sees an error number, never a WasiError; every other error ends the call.
 */
import type { LinuxCalls } from "../host/calls/linux_calls.ts";
import type { openFlags } from "./abi.ts";
import type { Descriptors } from "./descriptors.ts";
import type { GuestMemory } from "./guest_memory.ts";
import type { PathGuard } from "./path_guard.ts";
import type { PathResolver } from "./paths.ts";
import type { Scratch } from "./scratch.ts";
import type { Waits } from "./waits.ts";
import { declareHostType } from "../runtime/instance/func.ts";
import { type FunctionName, WASI_FUNCTIONS } from "./abi.ts";
import { WasiError } from "./wasi_error.ts";

/** The state of one guest's WASI. */
export interface WasiState {
  readonly sys: LinuxCalls;
  readonly scratch: Scratch;
  readonly memory: GuestMemory;
  readonly descriptors: Descriptors;
  readonly resolver: PathResolver;
  readonly guard: PathGuard;
  readonly open: ReturnType<typeof openFlags>;
  readonly waits: Waits;
}

/** A WASI function: pointers and sizes are signed i32, 64-bit values bigints; returns an error number. */
type WasiFunction = (...args: never[]) => number | void;

/** `fn` as the function `name`: a module that imports it with another type is not linked. */
export function asFunction<F extends object>(name: string, fn: F): F {
  declareHostType(fn, WASI_FUNCTIONS[name as FunctionName].type);
  return fn;
}

/** The methods of `group` that have names of WASI functions, as imports. */
export function functionsOf(group: object): Record<string, WasiFunction> {
  const prototype = Object.getPrototypeOf(group) as Record<string, WasiFunction>;
  const names = Object.getOwnPropertyNames(prototype).filter((name) => Object.hasOwn(WASI_FUNCTIONS, name));
  return Object.fromEntries(names.map((name) => [name, asFunction(name, guarded(prototype[name].bind(group)))]));
}

/** Returns the error number of a thrown WasiError. */
function guarded(fn: WasiFunction): WasiFunction {
  return (...args) => {
    try {
      return fn(...args);
    } catch (error) {
      if (error instanceof WasiError) return error.errno;
      throw error;
    }
  };
}
