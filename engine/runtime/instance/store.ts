/**
 * The store (specification, 4.2.3) of one JavaScript realm: the guest thread and everything alive on it. It knows which image
 * a code address belongs to, which instance a context belongs to, and how references cross the boundary.
 */
import { CONTEXT, RECORD, THREAD } from "../../abi/context_layout.ts";
import type { StringBuiltin } from "../../abi/string_layout.ts";
import type { HostService } from "../boundary/marshal.ts";
import { Bug, TrapError, UNCATCHABLE } from "../../errors.ts";
import { REF_TAG } from "../../abi/gc_layout.ts";
import { type CollectorCode, Heap, HeapFull, type HeapRoots } from "../../gc/heap.ts";
import type { Sharer } from "../../gc/references.ts";
import { currentHost } from "../../host/current.ts";
import type { CodeImage } from "../../link/image.ts";
import { TRAP, TRAP_MESSAGES } from "../../traps.ts";
import { heapMatches, isSubtypeId, topHeap } from "../../wasm/subtype.ts";
import { HEAP, heapOf, type HeapType, isNullable, type ValType } from "../../wasm/types.ts";
import { StringBuiltins, type StringCode } from "../strings/string_builtins.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import { Exception } from "../exceptions/exception.ts";
import { funcInfo } from "./func.ts";
import { GuestThread, type ProcessCode } from "../thread/guest_thread.ts";
import type { Global } from "./global.ts";
import { typeIdAt } from "../boundary/heap_objects.ts";
import type { Instance } from "./instance.ts";
import { PROT } from "../../host/host.ts";
import type { ImageReferences } from "../code/image_references.ts";
import { ModuleMap } from "../code/module_map.ts";
import { NativeRegion } from "../memory/native_region.ts";
import type { Table } from "./table.ts";
import { parkedFrames, trapError } from "../traps/trap_error.ts";
import { unwindToLandingPad } from "../exceptions/unwind.ts";
import { type ReferenceBoundary, referenceMismatch } from "../boundary/values.ts";

/** Machine code of waft's own that a store needs when a program first uses objects or string builtins. */
export interface StoreIntrinsics {
  /** The collector, with its control area at address `control`. */
  collector(store: Store, control: number): CollectorCode;
  /** The string builtins; `services` do what the machine code leaves to the runtime. */
  strings(store: Store, control: number, services: (name: StringBuiltin) => HostService): StringCode;
}

export class Store implements ReferenceBoundary {
  readonly thread: GuestThread;
  readonly #modules = new ModuleMap();
  readonly #instances = new Map<number, WeakRef<Instance>>();
  #nextInstance = 1;
  /** Instances that are neither closed nor collected. */
  openInstances = 0;
  readonly #closed = new Set<number>();
  /** The instance looked up last; forgotten at rest, so that it is not kept alive. */
  #lastContext = 0;
  #lastInstance: Instance | undefined;
  /** The exception that landed last. */
  #caught: Exception | undefined;
  readonly shownExceptions: Set<Exception> = new Set();
  /** Structures and arrays. */
  readonly heap: Heap;
  /** Builtins for strings of JavaScript. */
  readonly strings: StringBuiltins;
  /** Functions that JavaScript gave to compiled code, by record: alive until a sweep finds that nothing holds them. */
  readonly #escaped = new Map<number, Instance>();
  #escapedLimit = 1024;
  /** Tables and globals that the host made: roots of references that no instance need know. */
  readonly #hostObjects: WeakRef<Table | Global>[] = [];

  constructor(code: ProcessCode, intrinsics: StoreIntrinsics) {
    const moduleAt = (address: number) => this.moduleAt(address);
    this.thread = new GuestThread(currentHost(), code, {
      serveBuiltin: (index, context) => this.instanceOfContext(context).serveBuiltin(index),
      hostService: (context, index) => this.instanceOfContext(context).hostServices[index],
      trapError: () => trapError(this.thread, moduleAt),
      interruption: (parked) =>
        new TrapError(TRAP_MESSAGES[TRAP.INTERRUPTED], parked ? parkedFrames(this.thread, moduleAt) : []),
      hasHandler: (error) => this.#hasHandler(error),
      atSafepoint: (resultsWait = false) => this.#rest(resultsWait),
    });
    this.heap = new Heap(this.thread.host, this.#heapRoots(), (control) => intrinsics.collector(this, control));
    this.strings = new StringBuiltins(
      this,
      (control, services) => intrinsics.strings(this, control, services),
    );
  }

  /** An object of `bytes` for code that is parked; the heap may have `limit` bytes. Traps when there is no room. */
  allocate(bytes: number, limit: number): number {
    if (this.thread.sweepDue) this.collect(); // a program that takes host references for ever has no moment of rest
    return this.#orTrap(() => this.heap.allocate(bytes, limit));
  }

  /** The same for an instance under construction, whose references nobody knows yet: nothing is collected. */
  allocateConstant(bytes: number, limit: number): number {
    return this.#orTrap(() => this.heap.allocateInPeace(bytes, limit));
  }

  /** Frees what nothing holds; compiled code may be parked. */
  collect(): void {
    if (this.heap.isOpen) {
      this.thread.sweepDue = false;
      this.heap.collect();
    } else if (this.thread.depth === 0) {
      this.thread.sweepDue = true;
      this.#sweep();
    }
  }

  #orTrap(allocate: () => number): number {
    try {
      return allocate();
    } catch (error) {
      if (!(error instanceof HeapFull)) throw error;
      throw this.thread.depth > 0 ? this.trapInBuiltin(error.message) : new TrapError(error.message);
    }
  }

  #heapRoots(): HeapRoots {
    return {
      handleCounts: () => ({ host: this.thread.handles.count, exceptions: this.thread.exceptions.count }),
      visit: (range, word) => {
        const { thread } = this;
        for (const { region, offset, bytes } of thread.guestFrames()) {
          range(region.address + offset, region.address + offset + bytes);
        }
        if (thread.depth > 0) {
          const { address } = thread.state;
          range(address + THREAD.SLOTS, address + THREAD.SIZE);
        }
        for (const ref of this.#instances.values()) ref.deref()?.visitReferences(range, word);
        for (const ref of this.#hostObjects) ref.deref()?.visitReferences(range, word);
        this.#caught?.visitReferences(word);
        for (const exception of this.shownExceptions) exception.visitReferences(word);
      },
      // A word on the stack may be the number of one that is gone.
      visitException: (number, word) =>
        (this.thread.exceptions.valueAt(number) as Exception | undefined)?.visitReferences(word),
      marked: (host, exceptions, epoch) => {
        this.thread.handles.sweepUnmarked(host, this.heap.statistics.liveBytes);
        this.thread.records.visitRoots((word) => this.thread.exceptions.keep(exceptions, word));
        this.thread.exceptions.sweepUnmarked(exceptions);
        if (this.thread.depth === 0) this.#sweepEscaped(epoch);
      },
    };
  }

  addModule(module: CompiledModule): void {
    const base = module.image.base;
    this.#modules.add(module);
    MODULES.register(module, { store: this, base, size: module.image.size, references: module.references });
  }

  /** The module's image is unreachable in this realm: its code can go unless others use it. */
  dropImage(base: number, size: number, references: ImageReferences): void {
    this.#modules.drop(base);
    this.thread.unwindTable.forget(base);
    if (!references.drop()) return;
    if (references.own) this.thread.arena.release(base, size);
    else this.thread.host.replace(base, size, PROT.NONE);
  }

  /** The module whose image holds a code address. */
  moduleAt(address: number): CompiledModule | undefined {
    return this.#modules.moduleAt(address);
  }

  addInstance(instance: Instance): number {
    const number = this.#nextInstance++;
    this.openInstances++;
    this.#instances.set(number, new WeakRef(instance));
    return number;
  }

  dropInstance(number: number): void {
    if (this.#instances.delete(number) && !this.#closed.delete(number)) this.openInstances--;
  }

  /** The instance was closed: it counts no longer. */
  closeInstance(number: number): void {
    if (this.#closed.has(number)) return;
    this.#closed.add(number);
    this.openInstances--;
  }

  /** The instance that a VM context belongs to. */
  instanceOfContext(context: number): Instance {
    if (context === this.#lastContext) return this.#lastInstance!;
    const number = new NativeRegion(this.thread.host, context, CONTEXT.SIZE).i32[CONTEXT.INSTANCE >> 2]!;
    const instance = this.#instances.get(number)?.deref();
    if (instance === undefined) throw new Bug(`Context ${context.toString(16)} has no instance`);
    this.#lastContext = context;
    this.#lastInstance = instance;
    return instance;
  }

  /** `receiver`: who gets the reference, so that it lives as long as the functions in what it refers to. */
  toWord(value: unknown, type: ValType, receiver?: Sharer): number {
    const heap = heapOf(type);
    // Not even null (JavaScript API, "ToWebAssemblyValue").
    if (heap === HEAP.exn || heap === HEAP.noexn) {
      throw new TypeError("An exnref cannot be converted to or from a JavaScript value");
    }
    if (value === null && isNullable(type)) return 0;
    const top = topHeap(heap);
    if (top !== HEAP.func) {
      const word = value === null ? 0 : this.#wordOf(value);
      if (word === 0 || !this.wordMatches(word, top === HEAP.extern && heap !== HEAP.noextern ? HEAP.any : heap)) {
        throw referenceMismatch(value, type);
      }
      if (receiver !== undefined && (word & 7) === 0 && word !== 0) {
        this.heap.references.lend(value as object, receiver);
      }
      return word;
    }
    const info = funcInfo(value);
    if (info === undefined) throw referenceMismatch(value, type);
    if (heap === HEAP.func || (heap >= 0 && isSubtypeId(info.typeId, heap))) {
      const owner = info.owner as Instance;
      if (owner.closed) throw new TypeError("Cannot pass a function of a closed instance");
      owner.lent = true;
      this.#escaped.set(info.record, owner);
      if (this.#escaped.size >= this.#escapedLimit) this.thread.sweepDue = true;
      return info.record;
    }
    throw referenceMismatch(value, type);
  }

  /** The reference to any JavaScript value but null, as anyref and externref share it (JavaScript API, "ToWebAssemblyValue"). */
  #wordOf(value: unknown): number {
    if (typeof value === "number" && (value << 1 >> 1) === value && !Object.is(value, -0)) {
      return ((value << 1) | REF_TAG.I31) >>> 0;
    }
    const address = this.heap.references.addressOf(value);
    if (address !== undefined) return address;
    const { handles } = this.thread;
    const word = handles.handleOf(value);
    if (handles.full) this.thread.sweepDue = true;
    return word;
  }

  /** Does a reference of the hierarchy of any, not null, belong to closed heap type `heap`? */
  wordMatches(word: number, heap: HeapType): boolean {
    if ((word & 1) !== 0) return heapMatches(HEAP.i31, heap);
    if ((word & 7) !== 0) return heap === HEAP.any;
    return heap === HEAP.any || heapMatches(typeIdAt(word), heap);
  }

  /** `giver`: whom the reference comes from. */
  fromWord(word: number, type: ValType, giver?: Sharer): unknown {
    const top = topHeap(heapOf(type));
    if (top === HEAP.exn) throw new TypeError("An exnref cannot be converted to or from a JavaScript value");
    if (word === 0) return null;
    if (top === HEAP.func) return this.funcOfRecord(word);
    if ((word & 1) !== 0) return (word | 0) >> 1;
    return (word & 7) !== 0 ? this.thread.handles.valueOf(word) : this.heap.references.objectAt(word, giver);
  }

  /** The instance that a function record belongs to. */
  ownerOfRecord(address: number): Instance {
    return this.instanceOfContext(new NativeRegion(this.thread.host, address, RECORD.SIZE).word(RECORD.CONTEXT));
  }

  /** The exported function of a function record. */
  funcOfRecord(address: number): (...args: unknown[]) => unknown {
    const record = new NativeRegion(this.thread.host, address, RECORD.SIZE);
    const instance = this.instanceOfContext(record.word(RECORD.CONTEXT));
    return instance.exportedFunc(record.i32[RECORD.HANDLE >> 2]!);
  }

  /** The error of a trap that a builtin raises: the frames are those of the code that parked for it. */
  trapInBuiltin(message: string): TrapError {
    return new TrapError(message, parkedFrames(this.thread, (address) => this.moduleAt(address)));
  }

  /** A table or global of the host is a root from now on. */
  addHostObject(object: Table | Global): void {
    this.#hostObjects.push(new WeakRef(object));
  }

  /** Throws `exception` in the code that is parked: when this returns, resuming continues where it is caught. */
  raise(exception: Exception): void {
    if (!this.#land(exception)) throw exception.outgoing;
  }

  /** Throws the exception that landed last once more. */
  raiseAgain(): void {
    this.raise(this.#takeCaught());
  }

  /** The exception of an exnref, undefined for null. */
  exceptionOf(word: number): Exception | undefined {
    this.thread.records.settle();
    return word === 0 ? undefined : this.thread.exceptions.valueOf(word) as Exception;
  }

  /** The exnref of the exception that landed last. */
  caughtWord(): number {
    // A loop that catches may go on for ever, without a moment of rest.
    const caught = this.#takeCaught();
    this.#sweepExceptions();
    const word = this.thread.exceptions.handleOf(caught);
    if (this.thread.code.stubs.unwinds) this.thread.records.expose(caught);
    return word;
  }

  /** The exception that landed last, wherever that is known. */
  #takeCaught(): Exception {
    return this.#caught = this.thread.records.take(this) ?? this.#caught!;
  }

  /** Does compiled code catch what a host function threw? Traps, and what says so itself, pass through. */
  #hasHandler(error: unknown): boolean {
    if (error instanceof TrapError || error instanceof Bug) return false;
    if (typeof error === "object" && error !== null && UNCATCHABLE in error) return false;
    return this.#land(Exception.of(error));
  }

  #land(exception: Exception): boolean {
    if (!unwindToLandingPad(this.thread, this.#imageAt)) return false;
    exception.deliver(this);
    this.#caught = exception;
    // Without an exnref it gets none here, where nothing sweeps.
    if (this.thread.code.stubs.unwinds && this.thread.exceptions.has(exception)) this.thread.records.expose(exception);
    return true;
  }

  readonly #imageAt = (address: number): CodeImage | undefined => this.moduleAt(address)?.image;

  /**
   * Forgets exceptions that nothing holds, also while compiled code is parked: what it still wants is on its stack, since no
   * register survives a call. A number there that only looks like an exnref keeps one exception too many.
   */
  #sweepExceptions(): void {
    const { exceptions } = this.thread;
    if (!exceptions.full) return;
    if (this.heap.isOpen) return this.heap.collect();
    exceptions.sweep((keep) => {
      const marked = new Set<number>();
      const mark = (word: number) => {
        if (!exceptions.owns(word) || marked.has(word)) return;
        marked.add(word);
        keep(word);
      };
      for (const ref of this.#instances.values()) ref.deref()?.markExceptions(mark);
      this.#caught?.visitReferences(mark);
      this.thread.records.visitRoots(mark);
      for (const exception of this.shownExceptions) exception.visitReferences(mark);
      for (const { region: { u32 }, offset, bytes } of this.thread.guestFrames()) {
        for (let at = offset >> 2, end = (offset + bytes) >> 2; at < end; at += 2) {
          if (u32[at + 1] === 0) mark(u32[at]!);
        }
      }
      // What it adds to the set, this loop comes to as well.
      for (const word of marked) (exceptions.valueOf(word) as Exception | undefined)?.visitReferences(mark);
    });
  }

  /** No compiled code is running or parked. Results in the slots are no roots: while they wait there, a sweep is left to the next call. */
  #rest(resultsWait: boolean): void {
    this.#lastContext = 0;
    this.#lastInstance = undefined;
    this.#caught = undefined;
    this.thread.records.dropCaught();
    if (!this.thread.sweepDue && !this.thread.exceptions.full) return;
    if (resultsWait) this.thread.sweepDue = true;
    else this.#sweep();
  }

  /**
   * Frees host handles that nothing holds when there are too many, while compiled code is parked for a host function whose arguments are still in
   * the slots. Any word on the stack that looks like a handle is taken for one.
   */
  relieve(): void {
    const { thread, heap } = this;
    if (!thread.handles.full) return;
    if (this.#escaped.size < this.#escapedLimit) thread.sweepDue = false;
    if (heap.isOpen) return heap.collect();
    thread.handles.sweep((mark) => {
      const range = ({ u32 }: NativeRegion, offset: number, bytes: number) => {
        for (let at = offset >> 2, end = (offset + bytes) >> 2; at < end; at += 2) {
          if (u32[at + 1]! === 0) mark(u32[at]!);
        }
      };
      for (const { region, offset, bytes } of thread.guestFrames()) range(region, offset, bytes);
      range(thread.state, THREAD.SLOTS, THREAD.SIZE - THREAD.SLOTS);
      for (const ref of this.#instances.values()) ref.deref()?.markReferences(mark);
      for (const ref of this.#hostObjects) ref.deref()?.markReferences(mark);
      this.#caught?.visitReferences(mark);
      for (const exception of this.shownExceptions) exception.visitReferences(mark);
      for (const exception of thread.exceptions.values()) (exception as Exception).visitReferences(mark);
    });
  }

  /**
   * Frees host handles and functions that nothing holds; only at rest, when globals and tables are the only roots, and frames of
   * suspended calls: any word there that looks like a handle is taken for one, and functions are not looked for.
   */
  #sweep(): void {
    if (this.heap.isOpen) {
      this.thread.sweepDue = false;
      this.heap.collect();
      return;
    }
    this.#sweepExceptions();
    if (!this.thread.sweepDue) return;
    this.thread.sweepDue = false;
    const held = new Map<number, Instance>();
    this.thread.handles.sweep((mark) => {
      const markWord = (word: number) => {
        const owner = this.#escaped.get(word);
        if (owner === undefined) mark(word);
        else held.set(word, owner);
      };
      for (const ref of this.#instances.values()) ref.deref()?.markReferences(markWord);
      for (const ref of this.#hostObjects) ref.deref()?.markReferences(markWord);
      for (const exception of this.shownExceptions) exception.visitReferences(markWord);
      for (const exception of this.thread.exceptions.values()) (exception as Exception).visitReferences(markWord);
      for (const { block: { region: { u32 }, offset }, bytes } of this.thread.suspended) {
        for (let at = offset >> 2, end = (offset + bytes) >> 2; at < end; at += 2) {
          if (u32[at + 1]! < 8) mark(u32[at]! + u32[at + 1]! * 0x1_0000_0000);
        }
      }
    });
    this.#keepEscaped(held);
  }

  /** Forgets functions that JavaScript gave away and nothing holds, after a collection, which has marked those in objects. */
  #sweepEscaped(epoch: number): void {
    const held = new Map<number, Instance>();
    for (const [record, owner] of this.#escaped) {
      const { region } = owner;
      if (region.u32[(record - region.address + RECORD.MARK) >> 2] === epoch) held.set(record, owner);
    }
    const markWord = (word: number) => {
      const owner = this.#escaped.get(word);
      if (owner !== undefined) held.set(word, owner);
    };
    for (const ref of this.#instances.values()) ref.deref()?.markReferences(markWord);
    for (const ref of this.#hostObjects) ref.deref()?.markReferences(markWord);
    for (const exception of this.shownExceptions) exception.visitReferences(markWord);
    for (const exception of this.thread.exceptions.values()) (exception as Exception).visitReferences(markWord);
    this.#keepEscaped(held);
  }

  #keepEscaped(held: ReadonlyMap<number, Instance>): void {
    if (this.thread.suspended.size === 0) this.#escaped.clear();
    for (const [record, owner] of held) this.#escaped.set(record, owner);
    this.#escapedLimit = Math.max(1024, this.#escaped.size * 2);
    const live = this.#hostObjects.filter((ref) => ref.deref() !== undefined);
    this.#hostObjects.splice(0, this.#hostObjects.length, ...live);
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
