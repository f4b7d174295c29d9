/**
 * CompileError, LinkError and RuntimeError of the JavaScript API, which are native errors like TypeError, and the
 * translation of engine errors. In: an error of the engine or a guest. Out: the error that a program expects from
 * `WebAssembly`: RuntimeError for traps, JavaScript's RangeError for stack exhaustion, WebAssembly.Exception for
 * exceptions; other errors are unchanged.
 *
 * Invariant: WebAssembly code does not catch an error made from a trap.
 */
import { defineGuestStack } from "../base/guest_stack.ts";
import {
  describeTrap,
  ExhaustionError,
  markUncatchable,
  SuspensionError,
  TrapError,
  WaftError,
} from "../base/errors.ts";
import { isWasmException } from "../runtime/exceptions/exception.ts";
import { dressException } from "./exception.ts";

/** The constructor of a kind of error. */
interface ErrorClass {
  new (message?: unknown, options?: unknown): Error;
  (message?: unknown, options?: unknown): Error;
  readonly prototype: Error;
}

function nativeError(name: string): ErrorClass {
  const make = function (this: unknown, ...given: unknown[]): Error {
    return Reflect.construct(Error, given, new.target ?? make) as Error;
  };
  const hidden = { writable: true, enumerable: false, configurable: true };
  const prototype = Object.create(Error.prototype, {
    constructor: { ...hidden, value: make },
    name: { ...hidden, value: name },
    message: { ...hidden, value: "" },
  }) as Error;
  Object.setPrototypeOf(make, Error);
  Object.defineProperties(make, {
    prototype: { value: prototype, writable: false },
    name: { value: name, configurable: true },
    length: { value: 1, configurable: true },
  });
  return make as unknown as ErrorClass;
}

/** The bytes are not a valid module. */
export const CompileError: ErrorClass = nativeError("CompileError");
/** An import is missing or does not match. */
export const LinkError: ErrorClass = nativeError("LinkError");
/** A call cannot wait for a promise: a promising function did not make it, or JavaScript frames are in between. */
export const SuspendError: ErrorClass = nativeError("SuspendError");
/** A trap. `frames` (not in the specification) says where, innermost first. */
export const RuntimeError: ErrorClass = nativeError("RuntimeError");

/** The error for a trap. */
function runtimeError(trap: TrapError): Error {
  const { message, frames, code } = trap;
  const error = new RuntimeError(message);
  defineGuestStack(error, () => `RuntimeError: ${describeTrap(trap)}`, () => frames);
  Object.defineProperties(error, {
    code: { value: code, writable: true, enumerable: false, configurable: true },
    frames: { value: frames, writable: true, enumerable: false, configurable: true },
  });
  TRAPS.set(error, trap);
  return markUncatchable(error);
}

/** The traps of errors. */
const TRAPS = new WeakMap<object, TrapError>();

/** Adds `limit` to the message of an error that a deadline or lack of fuel has caused; returns the error. */
export function withLimitOfWork(error: unknown, limit: string): unknown {
  const trap = typeof error === "object" && error !== null ? TRAPS.get(error) : undefined;
  if (trap === undefined || trap.code !== "interrupted" || trap.detail !== undefined) return error;
  trap.detail = limit;
  (error as Error).message = describeTrap(trap);
  return error;
}

/** Translates an error that ended a guest call for the caller. */
export function outward(error: unknown): unknown {
  if (ExhaustionError.is(error)) return markUncatchable(new RangeError("Maximum call stack size exceeded"));
  if (SuspensionError.is(error)) return new SuspendError(error.message);
  if (TrapError.is(error)) return runtimeError(error);
  if (isWasmException(error)) return dressException(error);
  return error;
}

/** Converts an engine error to `kind`; returns other errors unchanged. */
export function as(kind: ErrorClass, error: unknown, where: string): unknown {
  if (!WaftError.is(error) || TrapError.is(error)) return outward(error);
  const place = error.where === "" ? "" : ` (${error.where})`;
  return new kind(`${where}: ${error.message}${place}`);
}
