/**
 * The roots of a store's references, and the sweeps over them. In: instances, objects of the host, frames of the
 * guest's stack, payloads of exceptions. Out: unreachable handles, exceptions and functions' instances are given back,
 * by sweeps of their tables or, as soon as there are structs or arrays, by the collector of the heap.
 */
import { RECORD, THREAD } from "../../abi/context_layout.ts";
import { REF_TAG, REF_TAG_MASK } from "../../abi/gc_layout.ts";
import type { Heap, HeapRoots } from "../../gc/heap.ts";
import type { Sharer } from "../../gc/references.ts";
import { type Weak, weakTo } from "../../host/finalizers.ts";
import type { Exception, ShownPayload } from "../exceptions/exception.ts";
import type { ContextBlock } from "../memory/context_arena.ts";
import type { NativeRegion } from "../memory/native_region.ts";
import type { Continuation } from "../thread/continuations.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import type { CaughtException } from "./caught_exception.ts";
import { GarbageSweeps } from "./garbage_sweeps.ts";
import type { Global } from "./global.ts";
import { FoundReferences, ReferenceEdges } from "./reference_edges.ts";
import type { Table } from "./table.ts";

/**
 * The number of values for which a sweep is worth its time after a garbage collection of JavaScript: without objects,
 * and with objects, where a sweep marks the whole heap.
 */
const VALUES_TO_SWEEP = 64;
const VALUES_TO_COLLECT = 256;

/** What a reference to an exception or a continuation leads to. */
type HandledObject = Exception | Continuation;

/** An instance, as a holder of references. */
interface RootInstance extends Sharer {
  readonly block: ContextBlock;
  /** Visits every word that may be a reference: those of ranges, and single ones. */
  visitReferences(range: (low: number, high: number) => void, word: (word: number) => void): void;
  /** Marks every reference, with its holder. */
  markReferences(mark: (word: number, holder: Sharer) => void): void;
  /** Marks every reference to an exception or a continuation, with its holder; ignores other references. */
  markExceptions(mark: (word: number, holder: Sharer) => void): void;
}

/** The parts of a store that hold references. */
interface SweptStore {
  readonly thread: GuestThread;
  readonly heap: Heap;
  readonly instances: { live(): Iterable<RootInstance>; ofRecord(address: number): RootInstance; forgetLast(): void };
  readonly caught: CaughtException;
  /** The payloads of exceptions that are represented in JavaScript. */
  readonly shownPayloads: ReadonlySet<ShownPayload>;
}

export class ReferenceSweeps {
  readonly #store: SweptStore;
  /** Keep the instances of functions alive that compiled code refers to. */
  readonly #edges = new ReferenceEdges();
  /** Tables and globals created by the host: roots that may belong to no instance. */
  readonly #hostObjects: Weak<Table | Global>[] = [];
  readonly #garbage: GarbageSweeps;

  constructor(store: SweptStore) {
    this.#store = store;
    this.#garbage = new GarbageSweeps({
      count: () => store.thread.handles.identities + store.thread.exceptions.identities,
      added: () => store.thread.handles.added + store.thread.exceptions.added,
      least: () => store.heap.isOpen ? VALUES_TO_COLLECT : VALUES_TO_SWEEP,
      sweep: () => {
        store.thread.attention.sweepDue = true;
        if (store.thread.depth === 0) this.#sweep();
      },
    });
  }

  /** Makes a table or global of the host a root. */
  addHostObject(object: Table | Global): void {
    this.#hostObjects.push(weakTo(object));
  }

  /** Records that `receiver` has obtained a reference to a function of `owner` with the canonical type id `typeId`. */
  connect(receiver: Sharer, owner: Sharer, typeId: number): void {
    this.#edges.connect(receiver, owner, typeId);
  }

  /** Called when a value has been passed to compiled code: plans the next sweep. */
  noteValue(): void {
    if (this.#store.thread.handles.full) this.#store.thread.attention.sweepDue = true;
    this.#garbage.await();
  }

  /** Called when a reference to a function has been passed to compiled code: plans the next sweep. */
  noteFunction(): void {
    if (this.#edges.full && !this.#store.heap.isOpen) this.#store.thread.attention.sweepDue = true;
  }

  /** The word of the exnref of an exception that compiled code has caught. */
  exceptionWord(exception: Exception): number {
    // An endless loop that catches exceptions reaches no safepoint, so the sweep happens here.
    const { thread } = this.#store;
    this.#sweepExceptions();
    const word = thread.exceptions.handleOf(exception);
    this.#garbage.await();
    if (thread.code.stubs.unwinds) thread.records.expose(exception);
    return word;
  }

  /** The word of the reference to a continuation. */
  continuationWord(continuation: Continuation): number {
    this.#garbage.await();
    return this.#store.thread.exceptions.enter(continuation);
  }

  /** Frees unreachable continuations if there are many, while compiled code is parked for a builtin. */
  relieveContinuations(): void {
    const { exceptions, continuations } = this.#store.thread;
    if (!exceptions.full && !continuations.isCrowded) return;
    this.sweepContinuations();
    continuations.noteSweep();
  }

  /** Frees unreachable continuations and exceptions; values in the slots and the overflow buffer are roots. */
  sweepContinuations(): void {
    const { heap } = this.#store;
    if (heap.isOpen) heap.collect();
    else this.#sweepHandled(undefined, true);
  }

  /** Frees unreachable objects and handles; compiled code may be parked. */
  collect(): void {
    const { heap, thread } = this.#store;
    if (heap.isOpen) {
      thread.attention.sweepDue = false;
      heap.collect();
    } else if (thread.depth === 0) {
      thread.attention.sweepDue = true;
      this.#sweep();
    }
  }

  /**
   * Called at a safepoint: no compiled code is running or parked. Results in the slots are not roots; while they wait
   * there, the sweep is deferred to the next call.
   */
  atSafepoint(resultsWait: boolean): void {
    const { instances, caught, thread } = this.#store;
    instances.forgetLast();
    caught.drop();
    if (!thread.attention.sweepDue && !thread.exceptions.full) return;
    if (resultsWait) thread.attention.sweepDue = true;
    else this.#sweep();
  }

  /** Called before JavaScript itself stores a reference: frees unreachable values if there are too many. */
  relieveHost(): void {
    if (this.#store.thread.depth > 0) this.relieve();
    else if (this.#store.thread.attention.sweepDue) this.atSafepoint(false);
  }

  /**
   * Frees unreachable host handles if there are too many, while compiled code is parked for a host function whose
   * arguments are in the slots. The stack is scanned conservatively: any word that looks like a handle is a root.
   */
  relieve(): void {
    const { thread } = this.#store;
    if (!thread.handles.full) return;
    const { heap, instances, caught } = this.#store;
    if (!this.#edges.full) thread.attention.sweepDue = false;
    if (heap.isOpen) return heap.collect();
    thread.handles.sweep((mark) => {
      for (const { region, offset, bytes } of thread.stack.frames()) markCells(region, offset, bytes, mark);
      markCells(thread.state, THREAD.SLOTS, THREAD.SIZE - THREAD.SLOTS, mark);
      for (const instance of instances.live()) instance.markReferences(mark);
      for (const object of this.#liveHostObjects()) object.markReferences(mark);
      caught.visitReferences(mark);
      for (const { words } of this.#heldPayloads()) words.forEach(mark);
      for (const value of thread.exceptions.values()) (value as HandledObject | undefined)?.visitReferences(mark);
    });
  }

  /** The roots of the collector of structs and arrays. */
  heapRoots(): HeapRoots {
    const store = this.#store;
    return {
      handleCounts: () => ({ host: store.thread.handles.count, exceptions: store.thread.exceptions.count }),
      visit: (range, word) => {
        const { thread } = store;
        for (const { region, offset, bytes } of thread.stack.frames()) {
          range(region.address + offset, region.address + offset + bytes);
        }
        if (thread.depth > 0) {
          const { address } = thread.state;
          range(address + THREAD.SLOTS, address + THREAD.SIZE);
        }
        for (const instance of store.instances.live()) instance.visitReferences(range, word);
        for (const object of this.#liveHostObjects()) object.visitReferences(range, word);
        store.caught.visitReferences(word);
        for (const { words } of this.#heldPayloads()) words.forEach(word);
      },
      // A word on the stack may look like the number of a freed exception.
      visitException: (number, word) =>
        (store.thread.exceptions.valueAt(number) as HandledObject | undefined)?.visitReferences(word),
      marked: (host, exceptions) => {
        const { thread } = store;
        thread.handles.strengthenAll();
        thread.exceptions.strengthenAll();
        this.#edges.releaseValues();
        thread.handles.sweepUnmarked(host, store.heap.statistics.liveBytes);
        thread.records.visitRoots((word) => thread.exceptions.keep(exceptions, word));
        thread.exceptions.sweepUnmarked(exceptions);
        this.#forgetHostObjects();
      },
    };
  }

  /** The payloads of exceptions that JavaScript holds. */
  *#heldPayloads(): Generator<ShownPayload> {
    for (const payload of this.#store.shownPayloads) if (payload.shown.deref() !== undefined) yield payload;
  }

  *#liveHostObjects(): Generator<Table | Global> {
    for (const reference of this.#hostObjects) {
      const object = reference.deref();
      if (object !== undefined) yield object;
    }
  }

  /**
   * Frees unreachable exceptions, also while compiled code is parked: its live references are on its stack, because no
   * register survives a call. A word that happens to equal an exnref may retain an unreachable exception.
   */
  #sweepExceptions(found?: FoundReferences): void {
    const { thread, heap } = this.#store;
    if (found === undefined && !thread.exceptions.full) return;
    if (heap.isOpen) return heap.collect();
    this.#sweepHandled(found, false);
  }

  /** Frees unreachable exceptions and continuations. Without objects only. */
  #sweepHandled(found: FoundReferences | undefined, hasArguments: boolean): void {
    const { thread, instances, caught } = this.#store;
    const { exceptions } = thread;
    exceptions.sweep((keep) => {
      const marked = new Set<number>();
      const mark = (word: number, holder?: Sharer) => {
        if (!exceptions.owns(word)) return;
        found?.add(word, holder);
        if (marked.has(word)) return;
        marked.add(word);
        keep(word);
      };
      const root = (word: number) => mark(word);
      for (const instance of instances.live()) instance.markExceptions(mark);
      caught.visitReferences(root);
      thread.records.visitRoots(root);
      for (const { words, tag } of this.#heldPayloads()) words.forEach((word) => mark(word, tag.deref()));
      for (const { region, offset, bytes } of thread.stack.frames()) markCells(region, offset, bytes, root);
      if (hasArguments) markCells(thread.state, THREAD.SLOTS, THREAD.SIZE - THREAD.SLOTS, root);
      // The iteration includes words that it adds to the set.
      for (const word of marked) {
        const object = exceptions.valueAt((word - REF_TAG.EXCEPTION) / 8) as HandledObject | undefined;
        object?.visitReferences((word) => mark(word, object.tag));
      }
    });
  }

  /**
   * Frees unreachable host handles, and the instances of unreachable functions. Only at a safepoint, where the roots
   * are globals, tables and the frames of suspended calls. Those frames are scanned conservatively for handles but not
   * for functions; instead, all instances are kept while calls are suspended. Otherwise values that globals, tables and
   * exceptions refer to are left to them, so that their cycles with the program's objects are collected.
   */
  #sweep(): void {
    const { thread, heap, instances } = this.#store;
    if (heap.isOpen) {
      thread.attention.sweepDue = false;
      heap.collect();
      return;
    }
    if (!thread.attention.sweepDue) return this.#sweepExceptions();
    thread.attention.sweepDue = false;
    const { stack, stack: { suspended }, exceptions, handles } = thread;
    const found = !stack.hasSavedFrames ? new FoundReferences() : undefined;
    if (found !== undefined) this.#edges.clear();
    this.#sweepExceptions(found);
    handles.sweep((mark) => {
      const markWord = (word: number, holder: Sharer | undefined) => {
        if (handles.owns(word)) {
          mark(word);
          found?.add(word, holder);
        } else if ((word & REF_TAG_MASK) === 0 && word !== 0 && holder !== undefined) this.#connectRecord(holder, word);
      };
      for (const instance of instances.live()) instance.markReferences(markWord);
      for (const object of this.#liveHostObjects()) object.markReferences(markWord);
      for (const { words, tag } of this.#heldPayloads()) words.forEach((word) => markWord(word, tag.deref()));
      for (const value of exceptions.values()) {
        const object = value as HandledObject | undefined;
        object?.visitReferences((word) => markWord(word, object.tag));
      }
      for (const { block: { region, offset }, bytes } of suspended) markCells(region, offset, bytes, mark);
    });
    for (const table of [handles, exceptions]) found?.leaveToHolders(table, this.#edges);
    this.#edges.settle();
    this.#forgetHostObjects();
  }

  /** Makes `holder` keep the instance of the function record at `address` alive. */
  #connectRecord(holder: Sharer, address: number): void {
    const owner = this.#store.instances.ofRecord(address);
    const { address: start, region: { u32 }, offset } = owner.block;
    this.#edges.connect(holder, owner, u32[(offset + address - start + RECORD.TYPE_ID) >> 2]);
  }

  /** Forgets the host's tables and globals that have been collected. */
  #forgetHostObjects(): void {
    const live = this.#hostObjects.filter((reference) => reference.deref() !== undefined);
    this.#hostObjects.splice(0, this.#hostObjects.length, ...live);
  }
}

/** Marks the words of a range of 8-byte cells whose high half is 0, except null: only those may be references. */
function markCells({ u32 }: NativeRegion, offset: number, bytes: number, mark: (word: number) => void): void {
  for (let at = offset >> 2, end = (offset + bytes) >> 2; at < end; at += 2) {
    const word = u32[at];
    if (word !== 0 && u32[at + 1] === 0) mark(word);
  }
}
