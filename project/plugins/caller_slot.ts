/**
 * `waft:caller@1 memory`: the current caller's exported memory as memory 0 of a plugin.
 *
 * In: the type with which a plugin imports the memory, its instance, and each call into it. Out: nothing. While a
 * call runs, memory 0 of the instance is the memory that the caller exports as `memory`. While no call runs, or if the
 * caller exports none, it is an empty memory, so every access is out of bounds. Calls nest; each return and each trap
 * restores the previous memory, so the memory never changes within one activation. Invariant: code compiled for guard
 * pages never runs with a memory without them.
 */
import { type Instance, TrapError } from "@waft/engine";
import { currentHost } from "@waft/engine/internal/host/current";
import { Memory } from "@waft/engine/internal/runtime/memory";
import { I32, I64, type MemoryType, PAGE_BYTES, pageBytes } from "@waft/engine/internal/wasm/types";
import type { Party } from "./node.ts";

type RuntimeInstance = Instance["internal"];

/** The reason why a memory cannot be imported as the caller's with this type; undefined if it can. */
export function slotFault(type: MemoryType): string | undefined {
  const { limits, shared } = type;
  if (shared) return "the caller's memory cannot be imported as a shared one";
  if (pageBytes(type) !== PAGE_BYTES) return "the caller's memory has pages of 64 KiB";
  return limits.min === 0n && limits.max === undefined
    ? undefined
    : "the caller's memory must be imported with the minimum 0 and no maximum, since callers differ";
}

/** Memory 0 of a plugin that imports it. */
export class CallerSlot {
  /** The memory that the plugin is instantiated with. */
  readonly idle: Memory;
  readonly #address: number;
  #instance: RuntimeInstance | undefined;
  #bound: Memory;
  /** Memories whose moves and growth are reported to the instance. */
  readonly #known = new WeakSet<Memory>();

  constructor(type: MemoryType) {
    this.#address = type.limits.address;
    this.idle = emptyMemory(type);
    this.#bound = this.idle;
    this.#known.add(this.idle);
  }

  /** Connects the instance, which did not exist when its imports were made. */
  attach(instance: Instance): void {
    this.#instance = instance.internal;
  }

  /**
   * Begins a call by `caller`; returns the memory that `leave` restores. Throws TrapError for a memory of another kind.
   */
  enter(caller: Party | undefined): Memory {
    const before = this.#bound;
    const memory = caller?.instance?.exports.memory;
    this.#bind(memory instanceof Memory ? memory : this.idle);
    return before;
  }

  /** Ends a call: binds the memory that `enter` returned. */
  leave(before: Memory): void {
    this.#bind(before);
  }

  #bind(memory: Memory): void {
    const instance = this.#instance;
    if (instance === undefined || memory === this.#bound) return;
    if (!this.#known.has(memory)) {
      const { address } = memory.type.limits;
      if (address !== this.#address) {
        const named = (type: number) => type === I64 ? "64-bit" : "32-bit";
        throw new TrapError(`the caller's memory is a ${named(address)} one, not a ${named(this.#address)} one`);
      }
      if (memory.shared !== undefined) throw new TrapError("the caller's memory is shared");
      if (!instance.module.settings.explicitBounds && address === I32 && !memory.guarded) {
        throw new TrapError("the caller's memory has no guard pages, which the plugin was compiled for");
      }
      // Instances that use the memory must keep it while the plugin may run, and report when it moves.
      for (const user of memory.users()) (user as RuntimeInstance).isShared = true;
      memory.addUser(instance);
      this.#known.add(memory);
    }
    this.#bound = memory;
    instance.replaceMemory(0, memory);
  }
}

function emptyMemory(type: MemoryType): Memory {
  const host = currentHost();
  if (type.limits.address === I64) return new Memory(host, type, { guarded: false });
  try {
    return new Memory(host, type, { guarded: true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // Without address space for guard pages, the plugin's code was compiled for explicit bounds checks.
    return new Memory(host, type, { guarded: false });
  }
}
