/**
 * WebAssembly.Memory (JavaScript API, "Memories"). The buffer of an unshared memory is the same object until the memory
 * grows, which detaches it. The buffer of a shared memory is one SharedArrayBuffer that grows with it.
 */
import { realmStore } from "../api/engine.ts";
import { Memory as RuntimeMemory } from "../runtime/memory/memory.ts";
import { hasGuardRoom } from "../runtime/memory/memory_range.ts";
import { I32, I64, PAGE_BYTES } from "../wasm/types.ts";
import { configuredLimits } from "./module.ts";
import { defineInterface, fromAddress, readSizes, requireObject, Slot, toAddress } from "./interface.ts";

/** Internal slots of memories. */
export const MEMORIES: Slot<Memory, RuntimeMemory> = new Slot("Memory");

/** Maximum number of pages in a descriptor; the available memory may be less. */
function mostPages(wide: boolean): bigint {
  return wide ? 2n ** 37n - 1n : 65536n;
}

function isWide(memory: RuntimeMemory): boolean {
  return memory.type.limits.address === I64;
}

/** Linear memory. */
export class Memory {
  constructor(descriptor: unknown) {
    const where = "WebAssembly.Memory()";
    const given = requireObject(descriptor, `${where}: the first argument`);
    const { wide, min, max } = readSizes(given, mostPages, where);
    if (max !== undefined && max > mostPages(wide)) {
      throw new RangeError(`${where}: the property 'maximum' must be at most ${mostPages(wide)}`);
    }
    const shared = Boolean(given.shared);
    if (shared && max === undefined) {
      throw new TypeError(`${where}: the property 'maximum' of a shared memory is required`);
    }
    const { host } = realmStore().thread;
    const limits = { address: wide ? I64 : I32, min, ...(max === undefined ? {} : { max }) };
    const { maxMemoryPages } = configuredLimits();
    const most = maxMemoryPages === undefined ? {} : { maxBytes: maxMemoryPages * PAGE_BYTES };
    const options = { guarded: !wide && hasGuardRoom(host), ...most };
    adoptMemory(this, new RuntimeMemory(host, { limits, shared }, options));
  }

  /** A view of the pages. */
  get buffer(): ArrayBuffer | SharedArrayBuffer {
    return MEMORIES.require(this, "WebAssembly.Memory.buffer: the receiver").buffer;
  }

  /** Grows by `delta` pages; returns the old size in pages. */
  grow(delta: unknown): number | bigint {
    const where = "WebAssembly.Memory.grow()";
    const memory = MEMORIES.require(this, `${where}: the receiver`);
    const wide = isWide(memory);
    const by = toAddress(delta, wide, `${where}: the first argument`);
    const old = by > 2 ** 32 ? -1 : memory.grow(by);
    if (old < 0) throw new RangeError(`${where}: the memory cannot grow by ${by} pages beyond ${memory.pages}`);
    return fromAddress(old, wide);
  }
}

/** Makes `outer` the object of a memory of the engine. */
export function adoptMemory(outer: Memory, inner: RuntimeMemory): void {
  prepare(inner);
  MEMORIES.put(outer, inner);
}

/** Makes the buffer of a memory behave as the JavaScript API prescribes. */
function prepare(inner: RuntimeMemory): void {
  inner.detaches = true;
  if (inner.shared !== undefined) Object.freeze(inner.buffer);
}

/** The object for a memory of the engine. */
export function memoryObject(inner: RuntimeMemory): Memory {
  prepare(inner);
  return MEMORIES.outerOf(inner, Memory.prototype);
}

defineInterface("Memory", Memory);
