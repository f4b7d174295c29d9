/**
 * The two engines behind one interface: waft, and the WebAssembly of the JavaScript engine that runs the benchmark
 * (V8). In: a binary module. Out: exports with the same calling interface.
 */
import { type Engine, NewEngine } from "@waft/engine";

/** The exports of a module, by name. */
export type Exports = Readonly<Record<string, unknown>>;
/** An exported function. */
export type Call = (...args: unknown[]) => unknown;
/** Host functions by module and name. */
type HostFunctions = Record<string, Record<string, (...args: never[]) => unknown>>;

/** A compiled module. */
export interface SideModule {
  /** `close` releases the instance; V8 leaves this to its garbage collector. */
  instantiate(imports?: HostFunctions): { exports: Exports; close(): void };
}

/** An engine. */
export interface Side {
  name: string;
  compile(bytes: Uint8Array<ArrayBuffer>): SideModule;
}

/** waft with optimized code, unless `engine` says otherwise. */
export function waftSide(engine: Engine = NewEngine({ tier: "optimizing" })): Side {
  return {
    name: "waft",
    compile: (bytes) => {
      const module = engine.compile(bytes);
      return {
        instantiate: (imports = {}) => {
          const instance = module.instantiate({}, imports);
          return { exports: instance.exports, close: () => instance.close() };
        },
      };
    },
  };
}

/** V8 in its default mode: lazy compilation, two tiers. */
export const V8: Side = {
  name: "V8",
  compile: (bytes) => {
    const module = new WebAssembly.Module(bytes);
    return {
      instantiate: (imports = {}) => {
        const instance = new WebAssembly.Instance(module, imports as WebAssembly.Imports);
        return { exports: instance.exports, close: () => {} };
      },
    };
  },
};
