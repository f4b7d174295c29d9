/**
 * Suspending and promising (JavaScript Promise Integration). Suspending marks an imported function so that its caller
 * waits for the promises that it returns; promising wraps an exported function in a form that can wait.
 */
import { funcInfo } from "../runtime/instance/func.ts";
import { instanceOf } from "../runtime/instance/instance.ts";
import { callAsync } from "../runtime/suspension/async_call.ts";
import { SUSPENDING } from "../runtime/boundary/marshal.ts";
import { SuspendError } from "./errors.ts";
import { defineInterface, Slot } from "./interface.ts";

type AnyFunction = (...args: unknown[]) => unknown;

/** The functions of Suspending objects. */
export const FUNCTIONS: Slot<Suspending, AnyFunction> = new Slot("Suspending");

/** An import function whose promises the caller waits for. */
export class Suspending {
  constructor(callable: unknown) {
    if (typeof callable !== "function") {
      throw new TypeError("WebAssembly.Suspending(): the first argument must be a function");
    }
    const call: AnyFunction = (...args) => callable(...args);
    FUNCTIONS.put(this, Object.defineProperty(call, SUSPENDING, { value: refusal }));
  }
}

/** The error of a call of a suspending import that cannot be suspended. */
function refusal(): Error {
  return new SuspendError(
    "WebAssembly.Suspending: the call cannot be suspended: no promising function made it, or JavaScript frames are in " +
      "between",
  );
}

/** The function to import for `value` when that is a Suspending. */
export function suspendingFunction(value: unknown): AnyFunction | undefined {
  return FUNCTIONS.of(value);
}

/** The operation that wraps an exported function to return a promise and suspend where its callees suspend. */
export const PROMISING = {
  promising(exported: unknown): AnyFunction {
    const info = funcInfo(exported);
    if (info === undefined) {
      throw new TypeError("WebAssembly.promising(): the first argument must be a WebAssembly exported function");
    }
    const { type: { params }, funcIndex } = info;
    // A call is never preempted: programs rely on the first part of it having run, and call other exports right after.
    // Errors become those of the namespace where the instance maps them (instance.ts).
    const call = (...args: unknown[]) => callAsync(instanceOf(info), funcIndex, {}, args, false);
    return Object.defineProperties(call, {
      length: { value: params.length, configurable: true },
      name: { value: String(funcIndex), configurable: true },
    });
  },
};

defineInterface("Suspending", Suspending);
