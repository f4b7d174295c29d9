/**
 * A plugin inside a guest instance graph, as its host functions see it.
 *
 * In: a loaded plugin and its graph. Out: the plugin's own memory with every range checked, its current caller,
 * and the resources to release when the graph ends. Invariant: host functions reach only the plugin's first defined
 * memory, and reach the caller only through `callers`.
 */
import type { Instance } from "@waft/engine";
import { Memory } from "@waft/engine/internal/runtime/memory";
import { STATUS } from "../definitions/authorities.ts";
import type { Digest } from "../base/integrity.ts";
import type { JsonObject } from "../base/json_read.ts";
import type { PluginServices } from "./component_part.ts";
import type { LoadedPlugin } from "./loaded.ts";
import type { CallerSlot } from "./caller_slot.ts";
import { pay } from "./system.ts";

/** Maximum elements of all tables of a plugin together. */
export const MAX_TABLE_ELEMENTS = 1_000_000;
/** Bytes of structs and arrays in the whole process beyond which those of plugins are refused. */
export const MAX_HEAP_BYTES: number = 256 * 2 ** 20;

/** A plugin of a host. It records whether calls of it can wait, for the network or for its callees. */
export interface HostedPlugin extends LoadedPlugin {
  readonly waits: boolean;
}

/** A host function's failure: becomes the status it returns. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: number;

  constructor(status: number) {
    super(`status ${status}`);
    this.status = status;
  }
}

/** An instance that calls plugins: the guest, or another plugin. */
export interface Party {
  /** The plugin's name in traps and logs. */
  readonly label: string;
  readonly digest: Digest;
  /** The instance of a module. Undefined until instantiation ends: start functions run before. */
  instance: Instance | undefined;
  /** Types of an exported function, in the engine's numbers. */
  functionType(name: string): { readonly params: readonly number[]; readonly results: readonly number[] } | undefined;
  /** Calls an exported function on behalf of a plugin: the result, or a promise of it where that may wait. */
  callExport(name: string, args: readonly unknown[]): unknown;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Longest text that a host function takes: paths, names, hosts. */
const MAX_TEXT = 4096;

/** Checked access of host functions to the memory of their plugin. */
export class PluginMemory {
  #memory: Memory | undefined;

  /** Connects the first defined memory: the one after the imported memories. */
  attach(instance: Instance, imported: number): void {
    this.#memory = instance.internal.memories[imported];
  }

  /** `length` bytes at `at`; both as compiled code passes them. */
  bytes(at: number, length: number): Uint8Array<ArrayBuffer> {
    this.#check(at >>> 0, length >>> 0);
    return new Uint8Array(this.#memory!.buffer, at >>> 0, length >>> 0);
  }

  /** The address of `length` bytes at `at`, for a system call that runs at once. */
  address(at: number, length: number): number {
    this.#check(at >>> 0, length >>> 0);
    return this.#memory!.base + (at >>> 0);
  }

  /** A short UTF-8 string. */
  text(at: number, length: number, most: number = MAX_TEXT): string {
    const bytes = this.bytes(at, length);
    if (bytes.length > most) throw new StatusError(STATUS.invalid);
    try {
      return UTF8.decode(bytes);
    } catch {
      throw new StatusError(STATUS.invalid);
    }
  }

  /** Copies as much of `from` as fits into `room` bytes at `at`; the number of bytes. */
  fill(at: number, room: number, from: Uint8Array): number {
    const to = this.bytes(at, room);
    const count = Math.min(to.length, from.length);
    pay(count);
    to.set(from.subarray(0, count));
    return count;
  }

  #check(at: number, length: number): void {
    if (this.#memory === undefined) throw new StatusError(STATUS.noMemory);
    if (at + length > this.#memory.byteLength) throw new StatusError(STATUS.bounds);
  }
}

/** The services that the graph offers to host functions. */
export interface GraphServices extends PluginServices {
  /** Whether the current call is asynchronous, so that host functions may return promises. */
  readonly mayWait: boolean;
  /** The subject of the running hook: the name of an export, or a module's digest. */
  readonly subject: string | undefined;
  /** Compiles and instantiates a child module of a plugin, without imports. */
  instantiateChild(bytes: Uint8Array, maxMemoryPages: number): Child;
}

/** A child instance that a plugin made. */
export interface Child {
  readonly instance: Instance;
  functionType(name: string): { readonly params: readonly number[]; readonly results: readonly number[] } | undefined;
}

/** A plugin in a graph. */
export class PluginNode {
  readonly plugin: HostedPlugin;
  readonly services: GraphServices;
  readonly memory: PluginMemory = new PluginMemory();
  /** The callers, innermost last; undefined for the engine itself, which calls `init`, `stop` and hooks. */
  readonly callers: (Party | undefined)[] = [];
  /** Run when the graph ends, to close the resources that host functions hold. */
  readonly closers: (() => void)[] = [];
  /** The caller's memory, if the plugin imports it. */
  readonly slot: CallerSlot | undefined;

  constructor(plugin: HostedPlugin, services: GraphServices, slot?: CallerSlot) {
    this.plugin = plugin;
    this.services = services;
    this.slot = slot;
  }

  /** The instance that made the innermost call into this plugin. */
  get caller(): Party | undefined {
    return this.callers.at(-1);
  }

  /** The memory that the caller exports as `memory`; no other is ever reachable. */
  get callerMemory(): Memory {
    const memory = this.caller?.instance?.exports.memory;
    if (memory instanceof Memory) return memory;
    throw new StatusError(STATUS.noMemory);
  }
}

/**
 * The body of a host function, before status conversion: throws StatusError, or returns the plugin's result, or a
 * promise of it if it may wait.
 */
export type HostBody = (...args: never[]) => number | bigint | void | Promise<number>;

/** The functions of a namespace for a plugin, by name. `grants` are the scopes that opened them. */
export type HostFunctionGroup = (
  node: PluginNode,
  grants: { readonly [authority: string]: JsonObject },
) => { readonly [name: string]: HostBody };
