/**
 * Checkpoints of instances of the namespace, for programs that know nothing of them: a loaded interpreter is back in
 * the state that it had, with the JavaScript around it. In: instances, or a function that makes them. Out: an object
 * that restores their state.
 */
import { Checkpoint } from "../runtime/instance/checkpoint.ts";
import { COLLECTORS, type Instance, INSTANCES } from "./instance.ts";

/** A recorded state of instances; see {@linkcode checkpoint}. */
export interface InstanceCheckpoint {
  /**
   * Writes the state back, also after a trap. Buffers, functions and exports stay valid; what memories and tables have
   * grown by stays, as zeros and nulls. Throws an Error if an instance has a call in progress, suspended ones included.
   */
  restore(): void;
}

/**
 * Records the state of instances: their memories, tables, mutable globals, segments and objects, those that they import
 * included. Give all instances of a program that consists of several, such as one that loads libraries.
 *
 * JavaScript is not recorded: variables of the program's JavaScript part that depend on the state must be as they were,
 * or not matter.
 *
 * Throws TypeError for other values, and an Error if an instance has a call in progress or a shared memory, or shares
 * objects with instances that are not given.
 *
 * @example
 * ```ts
 * import { checkpoint, WebAssembly } from "@waft/engine/webassembly";
 *
 * // (module (global (export "n") (mut i32) (i32.const 0)))
 * const bytes = Uint8Array.from(atob("AGFzbQEAAAAGBgF/AUEACwcFAQFuAwA="), (c) => c.charCodeAt(0));
 * const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes));
 * const { n } = instance.exports as { n: WebAssembly.Global };
 * n.value = 1;
 * const loaded = checkpoint(instance);
 * n.value = 2;
 * loaded.restore();
 * console.log(n.value); // 1
 * ```
 */
export function checkpoint(...instances: readonly WebAssembly.Instance[]): InstanceCheckpoint {
  if (instances.length === 0) throw new TypeError("checkpoint() takes the instances whose state it records");
  const insides = instances.map((instance, k) => INSTANCES.require(instance, `checkpoint(): argument ${k + 1}`));
  const recorded = new Checkpoint(insides.map(({ instance }) => instance.internal));
  return { restore: () => recorded.restore() };
}

/** What a function has returned, and the instances that were made meanwhile; see {@linkcode collectInstances}. */
export interface Collected<T> {
  /** The function's result, or what its promise has fulfilled with. */
  readonly result: T;
  /** In the order in which they were made. */
  readonly instances: WebAssembly.Instance[];
}

/**
 * Runs `action`, which loads a package, and returns its result and all instances of the namespace that were made in
 * this thread until it returned; or until the promise that it returned has settled, as a promise. For packages that do
 * not give their instances away.
 *
 * Throws, or rejects with, the errors of `action`.
 *
 * @example
 * ```ts
 * import { checkpoint, collectInstances, WebAssembly } from "@waft/engine/webassembly";
 *
 * // As a package loads its program.
 * async function load(): Promise<object> {
 *   const { instance } = await WebAssembly.instantiate(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
 *   return instance.exports;
 * }
 * const { result, instances } = await collectInstances(load);
 * const loaded = checkpoint(...instances);
 * console.log(result, instances.length); // [Object: null prototype] {} 1
 * loaded.restore();
 * ```
 */
export function collectInstances<T>(action: () => Promise<T>): Promise<Collected<T>>;
/** The same for a function that returns no promise. */
export function collectInstances<T>(action: () => T): Collected<T>;
export function collectInstances(action: () => unknown): Collected<unknown> | Promise<Collected<unknown>> {
  const made: Instance[] = [];
  const instances = made as unknown as WebAssembly.Instance[];
  COLLECTORS.add(made);
  let isOver = true;
  try {
    const result = action();
    if (!(result instanceof Promise)) return { result, instances };
    isOver = false;
    return result.then((value) => ({ result: value, instances })).finally(() => COLLECTORS.delete(made));
  } finally {
    if (isOver) COLLECTORS.delete(made);
  }
}
