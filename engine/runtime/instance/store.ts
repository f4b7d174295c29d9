/**
 * The store (specification, 4.2.3) of one JavaScript realm: the guest thread and the objects that live on it. In: code
 * addresses, VM contexts, references. Out: the module of a code address, the instance of a context, and the JavaScript
 * value of a reference and vice versa.
 */
import { PARKED, RECORD, THREAD } from "../../abi/context_layout.ts";
import { REF_TAG, REF_TAG_MASK } from "../../abi/gc_layout.ts";
import type { StringBuiltin } from "../../abi/string_layout.ts";
import { Bug } from "../../base/errors.ts";
import { type CollectorCode, Heap, HeapFull } from "../../gc/heap.ts";
import type { HeapUser } from "../../gc/heap_owner.ts";
import type { Sharer } from "../../gc/references.ts";
import { SystemError } from "../../host/calls/system_error.ts";
import { currentHost } from "../../host/current.ts";
import { setBusy } from "../../host/finalizers.ts";
import { PROT } from "../../host/host.ts";
import { hasDescriptorTypes, heapMatches, isSubtypeId, topHeap } from "../../wasm/subtype.ts";
import { HEAP, heapOf, type HeapType, isNullable, type ValType } from "../../wasm/types.ts";
import { prototypeWord, typeIdAt } from "../boundary/heap_objects.ts";
import type { HostService } from "../boundary/marshal.ts";
import { type ReferenceBoundary, referenceMismatch } from "../boundary/values.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import type { ImageReferences } from "../code/image_references.ts";
import { ModuleMap } from "../code/module_map.ts";
import type { Exception, ShownPayload } from "../exceptions/exception.ts";
import { NativeRegion } from "../memory/native_region.ts";
import { StringBuiltins, type StringCode } from "../strings/string_builtins.ts";
import type { Continuation, ContinuationStart } from "../thread/continuations.ts";
import { GuestThread } from "../thread/guest_thread.ts";
import type { ProcessCode } from "../thread/process_entry.ts";
import { serveBuiltin } from "./builtins.ts";
import { CaughtException } from "./caught_exception.ts";
import { funcInfo } from "./func.ts";
import type { Instance } from "./instance.ts";
import { InstanceTable } from "./instance_table.ts";
import { ReferenceSweeps } from "./reference_sweeps.ts";
import { TrapErrors } from "./trap_errors.ts";

/** Intrinsic modules that a store instantiates when a program uses objects or calls string builtins often. */
interface StoreIntrinsics {
  /** The garbage collector, with its control area at address `control`. */
  collector(store: Store, control: number): CollectorCode;
  /** The string builtins; `services` handle the cases that the machine code leaves to the runtime. */
  strings(store: Store, control: number, services: (name: StringBuiltin) => HostService): StringCode;
}

/** The error of a value of one of the types that JavaScript cannot have. */
function notConvertible(top: HeapType): TypeError {
  const name = top === HEAP.exn ? "An exnref" : "A reference to a continuation";
  return new TypeError(`${name} cannot be converted to or from a JavaScript value`);
}

export class Store implements ReferenceBoundary {
  readonly thread: GuestThread;
  readonly instances: InstanceTable<Instance> = new InstanceTable(currentHost());
  readonly #modules = new ModuleMap();
  /** The heap of structs and arrays. */
  readonly heap: Heap;
  readonly shownPayloads: Set<ShownPayload> = new Set();
  /** The limits that the code of all instances enforces, closed ones included, unless they are true here. */
  readonly lacks = { interruptible: false, fuel: false };
  readonly traps: TrapErrors = new TrapErrors(this);
  readonly caught: CaughtException = new CaughtException(this);
  readonly sweeps: ReferenceSweeps = new ReferenceSweeps(this);
  /** The builtins for JavaScript strings. */
  readonly strings: StringBuiltins;

  constructor(code: ProcessCode, intrinsics: StoreIntrinsics) {
    this.heap = new Heap(currentHost(), this.sweeps.heapRoots(), (control) => intrinsics.collector(this, control));
    // The thread comes last: once its handlers are installed, its memory can no longer be released.
    this.thread = new GuestThread(currentHost(), code, {
      serveBuiltin: (index, context) => serveBuiltin(this.instances.of(context), index),
      hostService: (context, index) => this.instances.of(context).hostServices[index],
      trapError: () => this.traps.ofThread(),
      interruption: (isParked) => this.traps.ofInterruption(isParked),
      hasHandler: (error) => this.caught.hasHandler(error),
      atSafepoint: (resultsWait = false) => this.sweeps.atSafepoint(resultsWait),
    });
    setBusy(() => this.thread.depth > 0);
    this.strings = new StringBuiltins(
      this,
      (control, services) => intrinsics.strings(this, control, services),
    );
  }

  /** Allocates an object of `bytes` for parked code of `user`. Traps if there is no space. */
  allocate(bytes: number, { maxHeapBytes, heapOwner }: HeapUser): number {
    // an endless loop that receives host references reaches no other safepoint
    if (this.thread.attention.sweepDue) this.sweeps.collect();
    return this.#orTrap(() => this.heap.allocate(bytes, maxHeapBytes, heapOwner));
  }

  /** Allocates for an instance under construction, whose references are not rooted yet: never collects. */
  allocateConstant(bytes: number, { maxHeapBytes, heapOwner }: HeapUser): number {
    return this.#orTrap(() => this.heap.allocateWithoutCollecting(bytes, maxHeapBytes, heapOwner));
  }

  #orTrap(allocate: () => number): number {
    try {
      return allocate();
    } catch (error) {
      if (!(error instanceof HeapFull || error instanceof SystemError)) throw error;
      const reason = error instanceof HeapFull ? error.message : `out of memory: ${error.message}`;
      throw this.traps.withMessage(reason);
    }
  }

  addModule(module: CompiledModule): void {
    const base = module.image.base;
    this.#modules.add(module);
    MODULES.register(module, { store: this, base, size: module.image.capacity, references: module.references });
  }

  /** Called when the module's image is unreachable in this realm: releases its code unless other realms use it. */
  dropImage(base: number, size: number, references: ImageReferences): void {
    this.#modules.drop(base);
    this.thread.unwindTable.forget(base);
    if (!references.drop()) return;
    if (references.own) this.thread.arena.release(base, size);
    else this.thread.host.replace(base, size, PROT.NONE);
  }

  /**
   * The address of the code of a defined function that has been called without any. It is a function of the image whose
   * code has parked.
   */
  compileBody(index: number): number {
    const { thread } = this;
    const resume = thread.stack.wordAt(thread.state.word(THREAD.GUEST_SP) + PARKED.RESUME);
    const module = this.moduleAt(resume);
    if (module?.lazy === undefined) throw new Bug("The code without this function belongs to no module");
    // The compiler's own code may use the buffer in which arguments of the function wait.
    const { state: { u8 } } = thread;
    const { params } = module.funcType(module.importedFuncCount + index);
    const waiting = u8.slice(THREAD.OVERFLOW, THREAD.OVERFLOW + params.length * THREAD.SLOT_SIZE);
    const address = module.lazy.compile(index);
    u8.set(waiting, THREAD.OVERFLOW);
    return address;
  }

  /** The module whose image contains a code address. */
  moduleAt(address: number): CompiledModule | undefined {
    return this.#modules.moduleAt(address);
  }

  /**
   * Converts a value to the word of a reference. `receiver` obtains the reference; without it, nothing may. It keeps
   * the instance of a function alive; it and the other holders of an object keep each other alive, because the object
   * may contain their functions. Throws TypeError if the value does not have type `type`.
   */
  toWord(value: unknown, type: ValType, receiver?: Sharer): number {
    const heap = heapOf(type);
    // This includes null (JavaScript API, "ToWebAssemblyValue").
    if (heap === HEAP.exn || heap === HEAP.noexn) throw notConvertible(HEAP.exn);
    if (heap === HEAP.nocont || topHeap(heap) === HEAP.cont) throw notConvertible(HEAP.cont);
    if (value === null && isNullable(type)) return 0;
    const top = topHeap(heap);
    if (top !== HEAP.func) {
      const word = value === null ? 0 : this.#wordOf(value);
      if (word === 0 || !this.wordMatches(word, top === HEAP.extern && heap !== HEAP.noextern ? HEAP.any : heap)) {
        throw referenceMismatch(value, type);
      }
      if (receiver !== undefined && (word & REF_TAG_MASK) === 0 && word !== 0) {
        this.heap.references.lend(value as object, receiver);
      }
      return word;
    }
    const info = funcInfo(value);
    if (info === undefined) throw referenceMismatch(value, type);
    if (heap === HEAP.func || (heap >= 0 && isSubtypeId(info.typeId, heap))) {
      const owner = info.owner as Instance;
      if (owner.closed) throw new TypeError("Cannot pass a function of a closed instance");
      owner.isShared = true;
      if (receiver !== undefined) this.sweeps.connect(receiver, owner, info.typeId);
      this.sweeps.noteFunction();
      return info.record;
    }
    throw referenceMismatch(value, type);
  }

  /**
   * The reference to a JavaScript value other than null; anyref and externref share it (JavaScript API,
   * "ToWebAssemblyValue").
   */
  #wordOf(value: unknown): number {
    if (typeof value === "number" && (value << 1 >> 1) === value && !Object.is(value, -0)) {
      return ((value << 1) | REF_TAG.I31) >>> 0;
    }
    const address = this.heap.references.addressOf(value);
    if (address !== undefined) return address;
    const word = this.thread.handles.handleOf(value);
    this.sweeps.noteValue();
    return word;
  }

  /** Whether a non-null reference of the any hierarchy has the closed heap type `heap`. */
  wordMatches(word: number, heap: HeapType): boolean {
    if ((word & 1) !== 0) return heapMatches(HEAP.i31, heap);
    if ((word & REF_TAG_MASK) !== 0) return heap === HEAP.any;
    return heap === HEAP.any || heapMatches(typeIdAt(word), heap);
  }

  /**
   * Converts the word of a reference to a JavaScript value. `giver` is the origin of the reference. Throws TypeError
   * for an exnref.
   */
  fromWord(word: number, type: ValType, giver?: Sharer): unknown {
    const top = topHeap(heapOf(type));
    if (top === HEAP.exn || top === HEAP.cont) throw notConvertible(top);
    if (word === 0) return null;
    if (top === HEAP.func) return this.funcOfRecord(word);
    if ((word & 1) !== 0) return (word | 0) >> 1;
    return (word & REF_TAG_MASK) !== 0 ? this.thread.handles.valueOf(word) : this.#objectAt(word, giver);
  }

  /** The object of JavaScript for a reference to the heap. */
  #objectAt(address: number, giver: Sharer | undefined): object {
    const { references } = this.heap;
    if (!hasDescriptorTypes()) return references.objectAt(address, giver);
    // A prototype can be a heap object with a prototype of its own. The chain has no cycle: descriptors are immutable
    // fields, so each object on it was allocated before the one that refers to it.
    const chain: number[] = [];
    let next = address;
    for (; next !== 0 && (next & REF_TAG_MASK) === 0; next = references.has(next) ? 0 : prototypeWord(next)) {
      chain.push(next);
    }
    const host = next !== 0 && this.thread.handles.owns(next) ? this.thread.handles.valueOf(next) : null;
    let object = typeof host === "object" || typeof host === "function" ? host : null;
    for (const at of chain.reverse()) object = references.objectAt(at, giver, object);
    return object!;
  }

  /** The exception of an exnref; undefined for null. */
  exceptionOf(word: number): Exception | undefined {
    this.thread.records.settle();
    return word === 0 ? undefined : this.thread.exceptions.valueOf(word) as Exception;
  }

  /** The continuation of a reference; undefined for null. */
  continuationOf(word: number): Continuation | undefined {
    return word === 0 ? undefined : this.thread.exceptions.valueOf(word) as Continuation;
  }

  /** How to enter the function of a record, and the instance of its code. */
  startOf(record: number): { readonly start: ContinuationStart; readonly owner: Instance } {
    const { block: { address, region, offset } } = this.instances.ofRecord(record);
    const at = offset + record - address;
    const owner = this.instances.of(region.word(at + RECORD.CONTEXT));
    const thunk = owner.module.entryThunk(region.i32[(at + RECORD.HANDLE) >> 2]);
    return { owner, start: { region, code: at + RECORD.CODE, context: at + RECORD.CONTEXT, record, thunk } };
  }

  /** The exported function of a function record. */
  funcOfRecord(address: number): (...args: unknown[]) => unknown {
    const record = new NativeRegion(this.thread.host, address, RECORD.SIZE);
    const instance = this.instances.of(record.word(RECORD.CONTEXT));
    return instance.exportedFunc(record.i32[RECORD.HANDLE >> 2]);
  }
}

interface HeldImage {
  store: Store;
  base: number;
  size: number;
  references: ImageReferences;
}

const MODULES = new FinalizationRegistry<HeldImage>(({ store, base, size, references }) => {
  store.dropImage(base, size, references);
});
