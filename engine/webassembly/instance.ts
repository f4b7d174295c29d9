/**
 * WebAssembly.Instance (JavaScript API, "Instances"): reads an import object in the order of the module's imports,
 * creates the engine's instance, and exposes its exports. Functions are the engine's own, so that linking one to
 * another instance leaves no JavaScript in between.
 */
import type { ExportValue, ImportDescriptor } from "../api/engine.ts";
import type { Instance as ModuleInstance } from "../api/module.ts";
import { ExternGlobal, ExternTable } from "../runtime/instance/externals.ts";
import { type Imports, UNDEFINED } from "../runtime/instance/instantiate.ts";
import { Memory as RuntimeMemory } from "../runtime/memory/memory.ts";
import { as, LinkError, outward } from "./errors.ts";
import { Tag, TAGS } from "./exception.ts";
import { globalObject, GLOBALS } from "./global.ts";
import { defineInterface, Slot } from "./interface.ts";
import { provideString } from "./js_string.ts";
import { MEMORIES, memoryObject } from "./memory.ts";
import { isProvided, type ModuleInside, MODULES } from "./module.ts";
import { suspendingFunction } from "./suspending.ts";
import { tableObject, TABLES } from "./table.ts";

interface InstanceInside {
  readonly exports: object;
  readonly instance: ModuleInstance;
}

/** The insides of instances. */
export const INSTANCES: Slot<Instance, InstanceInside> = new Slot("Instance");

function nameOf({ module, name }: ImportDescriptor): string {
  return `the import "${module}" "${name}"`;
}

/** The engine's value for an import. Throws LinkError when the program's is of the wrong kind. */
function importValue(entry: ImportDescriptor, value: unknown, where: string): unknown {
  const refuse = (what: string) => new LinkError(`${where}: ${nameOf(entry)} must be ${what}`);
  switch (entry.kind) {
    case "func": {
      const waiting = suspendingFunction(value);
      if (waiting !== undefined) return waiting;
      if (typeof value !== "function") throw refuse("a function");
      return value;
    }
    case "memory":
      return MEMORIES.of(value) ?? fail(refuse("a WebAssembly.Memory"));
    case "table":
      return TABLES.of(value) ?? fail(refuse("a WebAssembly.Table"));
    case "tag":
      return TAGS.of(value) ?? fail(refuse("a WebAssembly.Tag"));
    case "global":
      return GLOBALS.of(value) ?? (value === undefined ? UNDEFINED : value);
  }
}

function fail(error: Error): never {
  throw error;
}

/** Reads the import object in order. Throws TypeError or LinkError. */
export function readImports({ module, strings }: ModuleInside, importObject: unknown, where: string): Imports {
  const { imports } = module;
  const wanted = imports.filter((entry) => !isProvided(strings, entry.module));
  if (
    importObject !== undefined &&
    (typeof importObject !== "object" && typeof importObject !== "function" || importObject === null)
  ) {
    throw new TypeError(`${where}: the import object must be an object`);
  }
  if (importObject === undefined && wanted.length > 0) {
    throw new TypeError(`${where}: the import object is required, since the module has imports`);
  }
  const read: Record<string, Record<string, unknown>> = Object.create(null);
  const queues = new Map<string, unknown[]>();
  for (const entry of imports) {
    let value: unknown;
    if (isProvided(strings, entry.module)) value = provideString(strings, entry.module, entry.name);
    else {
      const namespace = (importObject as Record<string, unknown>)[entry.module];
      if ((typeof namespace !== "object" && typeof namespace !== "function") || namespace === null) {
        throw new TypeError(`${where}: the module of ${nameOf(entry)} must be an object or function`);
      }
      value = importValue(entry, (namespace as Record<string, unknown>)[entry.name], where);
    }
    const names = read[entry.module] ??= Object.create(null) as Record<string, unknown>;
    const key = JSON.stringify([entry.module, entry.name]);
    const queue = queues.get(key);
    if (queue === undefined) {
      queues.set(key, [value]);
      names[entry.name] = value;
    } else {
      // A repeated name: each import gets the value that was read for it, in order.
      if (queue.length === 1) {
        let next = 0;
        Object.defineProperty(names, entry.name, { get: () => queue[next++] });
      }
      queue.push(value);
    }
  }
  return read;
}

function exportObject(value: ExportValue): unknown {
  if (typeof value === "function") return value;
  if (value instanceof RuntimeMemory) return memoryObject(value);
  if (value instanceof ExternTable) return tableObject(value);
  if (value instanceof ExternGlobal) return globalObject(value);
  return TAGS.outerOf(value, Tag.prototype);
}

function instantiate(inside: ModuleInside, imports: Imports, where: string): InstanceInside {
  try {
    const instance = inside.module.instantiate({ promises: "values", errors: outward }, imports);
    const exports: Record<string, unknown> = Object.create(null);
    for (const [name, value] of Object.entries(instance.exports)) exports[name] = exportObject(value);
    return { exports: Object.freeze(exports), instance };
  } catch (error) {
    throw as(LinkError, error, where);
  }
}

/** Lists that get each new instance (checkpoint.ts). */
export const COLLECTORS: Set<Instance[]> = new Set();

/** An instance of a module. */
export class Instance {
  constructor(module: unknown, ...importObject: unknown[]) {
    const where = "WebAssembly.Instance()";
    const inside = MODULES.require(module, `${where}: the first argument`);
    INSTANCES.put(this, instantiate(inside, readImports(inside, importObject[0], where), where));
    for (const list of COLLECTORS) list.push(this);
  }

  /** The exports, by name. */
  get exports(): object {
    return INSTANCES.require(this, "WebAssembly.Instance.exports: the receiver").exports;
  }
}

/** The object for a new instance with the result of `readImports`. */
export function instanceObject(inside: ModuleInside, imports: Imports, where: string): Instance {
  const instance = INSTANCES.outerOf(instantiate(inside, imports, where), Instance.prototype);
  for (const list of COLLECTORS) list.push(instance);
  return instance;
}

defineInterface("Instance", Instance);
