/**
 * A namespace with the interface of the global `WebAssembly`, on waft's engine: for programs that were written for it.
 *
 * @example
 * ```ts
 * import { WebAssembly } from "@waft/engine/webassembly";
 *
 * const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
 * const { instance } = await WebAssembly.instantiate(bytes) as { instance: { exports: object } };
 * console.log(instance.exports); // [Object: null prototype] {}
 * ```
 *
 * @module
 */
import { OPERATIONS } from "./compile.ts";
import { CompileError, LinkError, RuntimeError, SuspendError } from "./errors.ts";
import { Exception, JSTag, Tag } from "./exception.ts";
import { Global } from "./global.ts";
import { Instance } from "./instance.ts";
import { Memory } from "./memory.ts";
import { checkpoint, type Collected, collectInstances, type InstanceCheckpoint } from "./checkpoint.ts";
import { limit, type WorkLimits } from "./limit.ts";
import { type CompileOptions, configureModules, Module } from "./module.ts";
import { patchWebMessages } from "./patches.ts";
import { PROMISING, Suspending } from "./suspending.ts";
import { Table } from "./table.ts";
import { reflectTypes } from "./type_reflection.ts";

const INTERFACES = {
  Module,
  Instance,
  Memory,
  Table,
  Global,
  Tag,
  Exception,
  CompileError,
  LinkError,
  RuntimeError,
  Suspending,
  SuspendError,
};

/** The type of the global `WebAssembly`. */
export type Namespace = typeof globalThis.WebAssembly;

function makeNamespace(): Namespace {
  const namespace = {};
  for (const [name, value] of Object.entries({ ...OPERATIONS, ...PROMISING })) {
    Object.defineProperty(namespace, name, { value, writable: true, enumerable: true, configurable: true });
  }
  for (const [name, value] of Object.entries(INTERFACES)) {
    Object.defineProperty(namespace, name, { value, writable: true, enumerable: false, configurable: true });
  }
  Object.defineProperty(namespace, "JSTag", { value: JSTag, configurable: true });
  Object.defineProperty(namespace, Symbol.toStringTag, { value: "WebAssembly", configurable: true });
  return namespace as Namespace;
}

patchWebMessages();

export { checkpoint, collectInstances, limit };
export type { Collected, CompileOptions, InstanceCheckpoint, WorkLimits };

/**
 * Sets the options for the modules of the namespace, such as the cache directory and the features, and their limits,
 * such as `maxMemoryPages`, which memories and tables that JavaScript makes later have, too. Throws an Error once a
 * module exists, and the errors of NewEngine.
 *
 * @example
 * ```ts
 * import { configure, WebAssembly } from "@waft/engine/webassembly";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 *
 * configure({ cache: { directory: join(tmpdir(), "waft-example-cache") } });
 * new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)); // compiled once, for all processes of this user
 * ```
 */
export function configure(wanted: CompileOptions): void {
  configureModules(wanted);
  if (wanted.features?.["js-types"] === true) reflectTypes(WebAssembly);
}

/**
 * The replacement for the global `WebAssembly`. Assign it to `globalThis.WebAssembly` for packages that use only the
 * global.
 */
export const WebAssembly: Namespace = makeNamespace();
export default WebAssembly;
