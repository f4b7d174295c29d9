/**
 * Functions of components for core modules outside of components, such as the applications that call a plugin. In: the
 * type of a function, its implementation in JavaScript, and the caller's memory and `cabi_realloc`. Out: the core
 * function that the caller imports, with the signature of `canon lower`. Invariant: the caller's memory is accessed
 * only at the addresses that the call passes, and at those that its `cabi_realloc` returns for the result.
 */
import type { Memory } from "@waft/engine";
import type { CoreValue } from "../abi/generated.ts";
import { GuestMemory } from "../abi/guest_memory.ts";
import { ABI } from "../abi/layer.ts";
import { hasRanges, lowerShape, paramTypes, resultTypes, someType } from "../abi/layout.ts";
import { trap } from "../abi/traps.ts";
import type { FuncType, ValType } from "../model/types.ts";
import type { HostFunction } from "./lifted_function.ts";

/** The kinds of types whose values belong to a component instance, which a core module is not. */
const INSTANCE_KINDS: ReadonlySet<string> = new Set(["own", "borrow", "stream", "future", "error-context"]);

/** The signature with which a core module imports a function, and the exports that the module needs for it. */
export interface CoreSignature {
  readonly params: readonly string[];
  readonly results: readonly string[];
  /** Values are passed in the module's memory, exported as `memory`. */
  readonly needsMemory: boolean;
  /** The result is written to places that the module's `cabi_realloc` allocates. */
  readonly needsRealloc: boolean;
}

/** The signature of a function for core modules with 32-bit memories; a text says why there is none. */
export function coreSignature(type: FuncType): CoreSignature | string {
  if (type.async) return "it is asynchronous";
  const values = [...paramTypes(type), ...resultTypes(type)];
  let kind: string | undefined;
  const isBound = (part: ValType) => INSTANCE_KINDS.has(part.kind) && (kind ??= part.kind) !== undefined;
  if (values.some((value) => someType(value, isBound))) return `its type contains a ${noun(kind!)}`;
  const shape = lowerShape(type, { pointer: "i32", isAsync: false, hasCallback: false });
  const isFlat = shape.flatParams !== undefined && shape.flatResults !== undefined || type.result === undefined;
  return {
    params: shape.params,
    results: shape.results,
    needsMemory: !isFlat || shape.flatParams === undefined || hasRanges(values),
    needsRealloc: hasRanges(resultTypes(type)),
  };
}

function noun(kind: string): string {
  return kind === "own" || kind === "borrow" ? "resource" : kind.replace("-", " ");
}

/** The part of a core module's instance that values pass through. */
export interface CoreCaller {
  readonly memory: Memory;
  /** Calls `cabi_realloc`: the old address and size, the alignment and the new size. */
  realloc(old: number, oldBytes: number, align: number, bytes: number): number;
}

/**
 * The core function by which a module calls `call`, whose type has a CoreSignature. `call` takes and returns values in
 * their form in JavaScript, a `result` as `{ tag, val }`; it may return a promise. `caller` gives the instance of the
 * module, undefined while there is none. Throws TrapError for values at addresses outside of the caller's memory.
 */
export function forCoreCaller(
  type: FuncType,
  caller: () => CoreCaller | undefined,
  call: HostFunction,
): (...args: CoreValue[]) => unknown {
  const template = ABI.imported(type, "i32");
  const bind = (instance: CoreCaller | undefined) => {
    const realloc = instance === undefined ? undefined : allocator(instance);
    const env = {
      memory: new GuestMemory(instance?.memory, "i32", realloc),
      encoding: "utf8",
      foreign: false,
      handles: [],
    } as const;
    return template.bind(env)({ call, enter: () => undefined, leave: () => {} });
  };
  let bound: ReturnType<typeof bind> | undefined;
  return (...args) => {
    if (bound !== undefined) return bound(...args);
    const instance = caller();
    const made = bind(instance);
    if (instance !== undefined) bound = made;
    return made(...args);
  };
}

/** `cabi_realloc` of a caller. It may not call itself through an import. */
function allocator(caller: CoreCaller): CoreCaller["realloc"] {
  let running = false;
  return (old, oldBytes, align, bytes) => {
    if (running) trap("cabi_realloc calls a function that allocates");
    running = true;
    try {
      return caller.realloc(old, oldBytes, align, bytes) >>> 0;
    } finally {
      running = false;
    }
  };
}
