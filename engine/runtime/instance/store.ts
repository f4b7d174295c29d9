/**
 * The store (specification, 4.2.3) of one JavaScript realm: the guest thread and the objects that live on it. In: code
 * addresses, VM contexts, references. Out: the module of a code address, the instance of a context, and the JavaScript
 * value of a reference and vice versa.
 */
import { CONTEXT, GUARD_RESERVATION, PARKED, RECORD, STATUS, THREAD } from "../../abi/context_layout.ts";
import type { StringBuiltin } from "../../abi/string_layout.ts";
import type { HostService } from "../boundary/marshal.ts";
import { Bug, ExhaustionError, isUncatchable, TrapError } from "../../base/errors.ts";
import { REF_TAG, REF_TAG_MASK } from "../../abi/gc_layout.ts";
import { type CollectorCode, Heap, HeapFull, type HeapRoots } from "../../gc/heap.ts";
import type { Sharer } from "../../gc/references.ts";
import { currentHost } from "../../host/current.ts";
import { setBusy, type Weak, weakTo } from "../../host/finalizers.ts";
import type { CodeImage } from "../../link/image.ts";
import { TRAP, TRAP_MESSAGES } from "../../base/traps.ts";
import { heapMatches, isSubtypeId, topHeap } from "../../wasm/subtype.ts";
import { HEAP, heapOf, type HeapType, isNullable, type ValType } from "../../wasm/types.ts";
import type { CallRecorder } from "../suspension/call_recorder.ts";
import { serveBuiltin } from "./builtins.ts";
import { GarbageSweeps } from "./garbage_sweeps.ts";
import { StringBuiltins, type StringCode } from "../strings/string_builtins.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import { Exception, leaveGuest, type ShownPayload } from "../exceptions/exception.ts";
import { funcInfo } from "./func.ts";
import { GuestThread } from "../thread/guest_thread.ts";
import type { ProcessCode } from "../thread/process_entry.ts";
import type { Global } from "./global.ts";
import { typeIdAt } from "../boundary/heap_objects.ts";
import type { Instance } from "./instance.ts";
import { PROT } from "../../host/host.ts";
import { SystemError } from "../../host/calls/system_error.ts";
import type { ImageReferences } from "../code/image_references.ts";
import { FoundReferences, ReferenceEdges } from "./reference_edges.ts";
import { ModuleMap } from "../code/module_map.ts";
import type { ContextBlock } from "../memory/context_arena.ts";
import type { Memory } from "../memory/memory.ts";
import { NativeRegion } from "../memory/native_region.ts";
import type { Table } from "./table.ts";
import { writeCoredump } from "../traps/coredump.ts";
import { activationsOf, parkedStack, type StackDump, trapError } from "../traps/trap_error.ts";
import { unwindToLandingPad } from "../exceptions/unwind.ts";
import { type ReferenceBoundary, referenceMismatch } from "../boundary/values.ts";

/** Intrinsic modules that a store instantiates when a program uses objects or calls string builtins often. */
interface StoreIntrinsics {
  /** The garbage collector, with its control area at address `control`. */
  collector(store: Store, control: number): CollectorCode;
  /** The string builtins; `services` handle the cases that the machine code leaves to the runtime. */
  strings(store: Store, control: number, services: (name: StringBuiltin) => HostService): StringCode;
}

/**
 * The number of values for which a sweep is worth its time after a garbage collection of JavaScript: without objects,
 * and with objects, where a sweep marks the whole heap.
 */
const VALUES_TO_SWEEP = 64;
const VALUES_TO_COLLECT = 256;

export class Store implements ReferenceBoundary {
  readonly thread: GuestThread;
  readonly #modules = new ModuleMap();
  readonly #instances = new Map<number, Weak<Instance>>();
  #nextInstance = 1;
  /** The number of instances that are neither closed nor collected. */
  openInstances = 0;
  readonly #closed = new Set<number>();
  /** Cache of the last instance lookup; cleared at safepoints, so that it does not keep the instance alive. */
  #lastContext = 0;
  #lastInstance: Instance | undefined;
  /** The number of the instance that was found last. Unlike #lastInstance it is kept across safepoints. */
  #lastNumber = 0;
  /** The most recently caught exception. */
  #caught: Exception | undefined;
  readonly shownPayloads: Set<ShownPayload> = new Set();
  /** The heap of structs and arrays. */
  readonly heap: Heap;
  /** The builtins for JavaScript strings. */
  readonly strings: StringBuiltins;
  /** Keep the instances of functions alive that compiled code refers to. */
  readonly #edges = new ReferenceEdges();
  readonly #garbage = new GarbageSweeps({
    count: () => this.thread.handles.identities + this.thread.exceptions.identities,
    added: () => this.thread.handles.added + this.thread.exceptions.added,
    least: () => this.heap.isOpen ? VALUES_TO_COLLECT : VALUES_TO_SWEEP,
    sweep: () => this.#sweepAll(),
  });
  /** Tables and globals created by the host: roots that may belong to no instance. */
  readonly #hostObjects: Weak<Table | Global>[] = [];

  constructor(code: ProcessCode, intrinsics: StoreIntrinsics) {
    const moduleAt = (address: number) => this.moduleAt(address);
    this.heap = new Heap(currentHost(), this.#heapRoots(), (control) => intrinsics.collector(this, control));
    // The thread comes last: once its handlers are installed, its memory can no longer be released.
    this.thread = new GuestThread(currentHost(), code, {
      serveBuiltin: (index, context) => serveBuiltin(this.instanceOfContext(context), index),
      hostService: (context, index) => this.instanceOfContext(context).hostServices[index],
      trapError: () => this.#trapError(),
      interruption: (parked) =>
        new TrapError(TRAP_MESSAGES[TRAP.INTERRUPTED], parked ? parkedStack(this.thread, moduleAt).frames : []),
      hasHandler: (error) => this.#hasHandler(error),
      atSafepoint: (resultsWait = false) => this.#atSafepoint(resultsWait),
    });
    setBusy(() => this.thread.depth > 0);
    this.strings = new StringBuiltins(
      this,
      (control, services) => intrinsics.strings(this, control, services),
    );
  }

  /** Allocates an object of `bytes` for parked code, in a heap of at most `limit` bytes. Traps if there is no space. */
  allocate(bytes: number, limit: number): number {
    // an endless loop that receives host references reaches no other safepoint
    if (this.thread.attention.sweepDue) this.collect();
    return this.#orTrap(() => this.heap.allocate(bytes, limit));
  }

  /** Allocates for an instance under construction, whose references are not rooted yet: never collects. */
  allocateConstant(bytes: number, limit: number): number {
    return this.#orTrap(() => this.heap.allocateWithoutCollecting(bytes, limit));
  }

  /** Frees unreachable objects and handles; compiled code may be parked. */
  collect(): void {
    if (this.heap.isOpen) {
      this.thread.attention.sweepDue = false;
      this.heap.collect();
    } else if (this.thread.depth === 0) {
      this.thread.attention.sweepDue = true;
      this.#sweep();
    }
  }

  #orTrap(allocate: () => number): number {
    try {
      return allocate();
    } catch (error) {
      if (!(error instanceof HeapFull || error instanceof SystemError)) throw error;
      const reason = error instanceof HeapFull ? error.message : `out of memory: ${error.message}`;
      throw this.thread.depth > 0 ? this.trapInBuiltin(reason) : new TrapError(reason);
    }
  }

  /** The payloads of exceptions that JavaScript holds. */
  *#heldPayloads(): Generator<ShownPayload> {
    for (const payload of this.shownPayloads) if (payload.shown.deref() !== undefined) yield payload;
  }

  #heapRoots(): HeapRoots {
    return {
      handleCounts: () => ({ host: this.thread.handles.count, exceptions: this.thread.exceptions.count }),
      visit: (range, word) => {
        const { thread } = this;
        for (const { region, offset, bytes } of thread.stack.frames()) {
          range(region.address + offset, region.address + offset + bytes);
        }
        if (thread.depth > 0) {
          const { address } = thread.state;
          range(address + THREAD.SLOTS, address + THREAD.SIZE);
        }
        for (const ref of this.#instances.values()) ref.deref()?.visitReferences(range, word);
        for (const ref of this.#hostObjects) ref.deref()?.visitReferences(range, word);
        this.#caught?.visitReferences(word);
        for (const { words } of this.#heldPayloads()) words.forEach(word);
      },
      // A word on the stack may look like the number of a freed exception.
      visitException: (number, word) =>
        (this.thread.exceptions.valueAt(number) as Exception | undefined)?.visitReferences(word),
      marked: (host, exceptions) => {
        this.thread.handles.strengthenAll();
        this.thread.exceptions.strengthenAll();
        this.#edges.releaseValues();
        this.thread.handles.sweepUnmarked(host, this.heap.statistics.liveBytes);
        this.thread.records.visitRoots((word) => this.thread.exceptions.keep(exceptions, word));
        this.thread.exceptions.sweepUnmarked(exceptions);
        this.#forgetHostObjects();
      },
    };
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

  newInstanceNumber(): number {
    return this.#nextInstance++;
  }

  addInstance(number: number, instance: Weak<Instance>): void {
    this.openInstances++;
    this.#instances.set(number, instance);
  }

  /** The instances that run the code of `module`. */
  instancesOf(module: CompiledModule): Instance[] {
    return [...this.#instances.values()].map((ref) => ref.deref()).filter((instance) =>
      instance?.module === module
    ) as Instance[];
  }

  dropInstance(number: number): void {
    if (this.#instances.delete(number) && !this.#closed.delete(number)) this.openInstances--;
  }

  /** Records that the instance was closed: it no longer counts as open. */
  closeInstance(number: number): void {
    if (this.#closed.has(number)) return;
    this.#closed.add(number);
    this.openInstances--;
  }

  /** The instance of a VM context. */
  instanceOfContext(context: number): Instance {
    if (context === this.#lastContext) return this.#lastInstance!;
    const instance = this.#instanceAt(context);
    if (instance === undefined) throw new Bug(`Context ${context.toString(16)} has no instance`);
    this.#lastContext = context;
    this.#lastInstance = instance;
    return instance;
  }

  /**
   * Converts a value to the word of a reference. `receiver` obtains the reference; without it, nothing may. It keeps
   * the instance of a function alive; it and the other holders of an object keep each other alive, because the object
   * may contain their functions. Throws TypeError if the value does not have type `type`.
   */
  toWord(value: unknown, type: ValType, receiver?: Sharer): number {
    const heap = heapOf(type);
    // This includes null (JavaScript API, "ToWebAssemblyValue").
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
      if (receiver !== undefined) this.#edges.connect(receiver, owner, info.typeId);
      if (this.#edges.full && !this.heap.isOpen) this.thread.attention.sweepDue = true;
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
    const { handles } = this.thread;
    const word = handles.handleOf(value);
    if (handles.full) this.thread.attention.sweepDue = true;
    this.#garbage.await();
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
    if (top === HEAP.exn) throw new TypeError("An exnref cannot be converted to or from a JavaScript value");
    if (word === 0) return null;
    if (top === HEAP.func) return this.funcOfRecord(word);
    if ((word & 1) !== 0) return (word | 0) >> 1;
    return (word & REF_TAG_MASK) !== 0 ? this.thread.handles.valueOf(word) : this.heap.references.objectAt(word, giver);
  }

  /** The exported function of a function record. */
  funcOfRecord(address: number): (...args: unknown[]) => unknown {
    const record = new NativeRegion(this.thread.host, address, RECORD.SIZE);
    const instance = this.instanceOfContext(record.word(RECORD.CONTEXT));
    return instance.exportedFunc(record.i32[RECORD.HANDLE >> 2]);
  }

  /**
   * Adds the address, relative to the memory, and the memory's size to the trap of an access that hit its guard pages.
   */
  #withAccess(error: Error): Error {
    const fault = this.thread.state.word(THREAD.FAULT_ADDRESS);
    if (!(error instanceof TrapError) || error.code !== "memory-out-of-bounds" || fault === 0) return error;
    const memory = this.#memoryAround(fault);
    if (memory === undefined) return error;
    error.access = { address: fault - memory.base, bytes: memory.byteLength };
    error.detail = `address ${error.access.address} of a memory of ${error.access.bytes} bytes`;
    return error;
  }

  /** The instance of the context at an address; undefined if that context has none. */
  #instanceAt(context: number): Instance | undefined {
    if (context === this.#lastContext) return this.#lastInstance;
    // Creating a view of the context is the slowest step, so the instance that was found last is tried first.
    const last = this.#instances.get(this.#lastNumber)?.deref();
    if (last !== undefined && last.block.address === context) return last;
    this.#lastNumber = new NativeRegion(this.thread.host, context, CONTEXT.SIZE).i32[CONTEXT.INSTANCE >> 2];
    return this.#instances.get(this.#lastNumber)?.deref();
  }

  /** The error of the trap that the thread state describes. */
  #trapError(): Error {
    const error = this.#withAccess(trapError(this.thread, (address) => this.moduleAt(address), this.#dump()));
    const recorder = error instanceof ExhaustionError ? this.#currentInstance()?.recorder : undefined;
    recorder?.exhausted(error, () => activationsOf(this.thread, (address) => this.moduleAt(address), false));
    return error;
  }

  /** Traps if the parked code of a replay has reached the call at which the recorded run exhausted its stack. */
  checkStack(recorder: CallRecorder | undefined): void {
    const path = (most?: number) => activationsOf(this.thread, (address) => this.moduleAt(address), true, most);
    if (recorder?.isExhaustedAt(path) === true) {
      throw this.trapInBuiltin(TRAP_MESSAGES[TRAP.STACK_EXHAUSTED], ExhaustionError);
    }
  }

  /** The instance whose code trapped or is parked. */
  #currentInstance(): Instance | undefined {
    const { state } = this.thread;
    const hasTrapped = state.u32[THREAD.STATUS >> 2] === STATUS.TRAP;
    return this.#instanceAt(state.word(hasTrapped ? THREAD.TRAP_CONTEXT : THREAD.PARK_CONTEXT));
  }

  /** A function that dumps the state of the instance whose code ran; undefined if there is none. */
  #dump(): StackDump | undefined {
    const instance = this.#currentInstance();
    if (instance === undefined || instance.module.internal) return undefined;
    return (stack, program) => writeCoredump(stack, instance, program);
  }

  /** The guarded memory of the current instance whose reservation contains `address`. */
  #memoryAround(address: number): Memory | undefined {
    return this.#currentInstance()?.memories.find((memory) =>
      memory.guarded && address >= memory.base && address < memory.base + GUARD_RESERVATION
    );
  }

  /** The error of a trap raised by a builtin; its frames are those of the code that parked for it. */
  trapInBuiltin(message: string, Trap: typeof TrapError = TrapError): TrapError {
    const stack = parkedStack(this.thread, (address) => this.moduleAt(address));
    const dump = this.#dump();
    return new Trap(message, stack.frames, dump === undefined ? undefined : (program) => dump(stack, program));
  }

  /** Makes a table or global of the host a root. */
  addHostObject(object: Table | Global): void {
    this.#hostObjects.push(weakTo(object));
  }

  /**
   * Throws `exception` in the parked code. When this returns, resuming continues at the handler; if there is none,
   * throws the exception to JavaScript.
   */
  raise(exception: Exception): void {
    if (this.#unwind(exception)) return;
    const { outgoing } = exception;
    leaveGuest(outgoing, () => parkedStack(this.thread, (address) => this.moduleAt(address)).frames);
    throw outgoing;
  }

  /** Rethrows the most recently caught exception. */
  rethrow(): void {
    this.raise(this.#takeCaught());
  }

  /** The exception of an exnref; undefined for null. */
  exceptionOf(word: number): Exception | undefined {
    this.thread.records.settle();
    return word === 0 ? undefined : this.thread.exceptions.valueOf(word) as Exception;
  }

  /** The exnref of the most recently caught exception. */
  caughtWord(): number {
    // An endless loop that catches exceptions reaches no safepoint, so the sweep happens here.
    const caught = this.#takeCaught();
    this.#sweepExceptions();
    const word = this.thread.exceptions.handleOf(caught);
    this.#garbage.await();
    if (this.thread.code.stubs.unwinds) this.thread.records.expose(caught);
    return word;
  }

  /** The most recently caught exception, whether the runtime or machine code caught it. */
  #takeCaught(): Exception {
    return this.#caught = this.thread.records.take(this) ?? this.#caught!;
  }

  /**
   * Whether compiled code handles an error thrown by a host function. Traps and errors marked as uncatchable pass
   * through. Reads no property of the error, which may be a Proxy.
   */
  #hasHandler(error: unknown): boolean {
    if (TrapError.is(error) || Bug.is(error) || isUncatchable(error)) return false;
    return this.#unwind(Exception.of(error));
  }

  #unwind(exception: Exception): boolean {
    if (!unwindToLandingPad(this.thread, this.#imageAt)) return false;
    const { thread } = this;
    const receiver = this.#instanceAt(thread.stack.wordAt(thread.state.word(THREAD.GUEST_SP) + PARKED.CONTEXT));
    const delivered = this.#deliver(exception, receiver);
    if (delivered === undefined) return false;
    this.#caught = delivered;
    // An exception without an exnref receives none here, because no sweep happens here.
    if (this.thread.code.stubs.unwinds && this.thread.exceptions.has(delivered)) this.thread.records.expose(delivered);
    return true;
  }

  /**
   * Gives a landing pad the exception or, if its payload cannot be passed to code any more, the error that says so.
   * Returns which; undefined if there is no room for either.
   */
  #deliver(exception: Exception, receiver: Instance | undefined): Exception | undefined {
    try {
      exception.deliver(this, receiver);
      return exception;
    } catch (error) {
      const instead = Exception.of(error);
      try {
        instead.deliver(this, receiver);
        return instead;
      } catch {
        return undefined;
      }
    }
  }

  readonly #imageAt = (address: number): CodeImage | undefined => this.moduleAt(address)?.image;

  /**
   * Frees unreachable exceptions, also while compiled code is parked: its live references are on its stack, because no
   * register survives a call. A word that happens to equal an exnref may retain an unreachable exception.
   */
  #sweepExceptions(found?: FoundReferences): void {
    const { exceptions } = this.thread;
    if (found === undefined && !exceptions.full) return;
    if (this.heap.isOpen) return this.heap.collect();
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
      for (const ref of this.#instances.values()) ref.deref()?.markExceptions(mark);
      this.#caught?.visitReferences(root);
      this.thread.records.visitRoots(root);
      for (const { words, tag } of this.#heldPayloads()) words.forEach((word) => mark(word, tag.deref()));
      for (const { region: { u32 }, offset, bytes } of this.thread.stack.frames()) {
        for (let at = offset >> 2, end = (offset + bytes) >> 2; at < end; at += 2) {
          if (u32[at + 1] === 0) mark(u32[at]);
        }
      }
      // The iteration includes words that it adds to the set.
      for (const word of marked) {
        const exception = exceptions.valueAt((word - REF_TAG.EXCEPTION) / 8) as Exception | undefined;
        exception?.visitReferences((word) => mark(word, exception.tag));
      }
    });
  }

  /**
   * Called at a safepoint: no compiled code is running or parked. Results in the slots are not roots; while they wait
   * there, the sweep is deferred to the next call.
   */
  #atSafepoint(resultsWait: boolean): void {
    this.#lastContext = 0;
    this.#lastInstance = undefined;
    this.#caught = undefined;
    this.thread.records.dropCaught();
    if (!this.thread.attention.sweepDue && !this.thread.exceptions.full) return;
    if (resultsWait) this.thread.attention.sweepDue = true;
    else this.#sweep();
  }

  /** Sweeps outside of calls, or at the end of the running one. */
  #sweepAll(): void {
    this.thread.attention.sweepDue = true;
    if (this.thread.depth === 0) this.#sweep();
  }

  /** Called before JavaScript itself stores a reference: frees unreachable values if there are too many. */
  relieveHost(): void {
    if (this.thread.depth > 0) this.relieve();
    else if (this.thread.attention.sweepDue) this.#atSafepoint(false);
  }

  /**
   * Frees unreachable host handles if there are too many, while compiled code is parked for a host function whose
   * arguments are in the slots. The stack is scanned conservatively: any word that looks like a handle is a root.
   */
  relieve(): void {
    const { thread, heap } = this;
    if (!thread.handles.full) return;
    if (!this.#edges.full) thread.attention.sweepDue = false;
    if (heap.isOpen) return heap.collect();
    thread.handles.sweep((mark) => {
      const range = ({ u32 }: NativeRegion, offset: number, bytes: number) => {
        for (let at = offset >> 2, end = (offset + bytes) >> 2; at < end; at += 2) {
          if (u32[at + 1] === 0) mark(u32[at]);
        }
      };
      for (const { region, offset, bytes } of thread.stack.frames()) range(region, offset, bytes);
      range(thread.state, THREAD.SLOTS, THREAD.SIZE - THREAD.SLOTS);
      for (const ref of this.#instances.values()) ref.deref()?.markReferences(mark);
      for (const ref of this.#hostObjects) ref.deref()?.markReferences(mark);
      this.#caught?.visitReferences(mark);
      for (const { words } of this.#heldPayloads()) words.forEach(mark);
      for (const value of thread.exceptions.values()) (value as Exception | undefined)?.visitReferences(mark);
    });
  }

  /**
   * Frees unreachable host handles, and the instances of unreachable functions. Only at a safepoint, where the roots
   * are globals, tables and the frames of suspended calls. Those frames are scanned conservatively for handles but not
   * for functions; instead, all instances are kept while calls are suspended. Otherwise values that globals, tables and
   * exceptions refer to are left to them, so that their cycles with the program's objects are collected.
   */
  #sweep(): void {
    if (this.heap.isOpen) {
      this.thread.attention.sweepDue = false;
      this.heap.collect();
      return;
    }
    if (!this.thread.attention.sweepDue) return this.#sweepExceptions();
    this.thread.attention.sweepDue = false;
    const { stack: { suspended }, exceptions, handles } = this.thread;
    const found = suspended.size === 0 ? new FoundReferences() : undefined;
    if (found !== undefined) this.#edges.clear();
    this.#sweepExceptions(found);
    handles.sweep((mark) => {
      const markWord = (word: number, holder: Sharer | undefined) => {
        if (handles.owns(word)) {
          mark(word);
          found?.add(word, holder);
        } else if ((word & REF_TAG_MASK) === 0 && word !== 0 && holder !== undefined) this.#connectRecord(holder, word);
      };
      for (const ref of this.#instances.values()) ref.deref()?.markReferences(markWord);
      for (const ref of this.#hostObjects) ref.deref()?.markReferences(markWord);
      for (const { words, tag } of this.#heldPayloads()) words.forEach((word) => markWord(word, tag.deref()));
      for (const value of exceptions.values()) {
        const exception = value as Exception | undefined;
        exception?.visitReferences((word) => markWord(word, exception.tag));
      }
      for (const { block: { region: { u32 }, offset }, bytes } of suspended) {
        for (let at = offset >> 2, end = (offset + bytes) >> 2; at < end; at += 2) {
          if (u32[at + 1] === 0) mark(u32[at]);
        }
      }
    });
    for (const table of [handles, exceptions]) found?.leaveToHolders(table, this.#edges);
    this.#edges.settle();
    this.#forgetHostObjects();
  }

  /** Makes `holder` keep the instance of the function record at `address` alive. */
  #connectRecord(holder: Sharer, address: number): void {
    // References of one holder are mostly to functions of one instance: creating a view is the slowest step.
    let owner = this.#instances.get(this.#lastNumber)?.deref();
    if (owner === undefined || !contains(owner.block, address)) {
      this.#lastNumber = new Uint32Array(this.thread.host.view(address, RECORD.SIZE))[RECORD.OWNER >> 2];
      owner = this.#instances.get(this.#lastNumber)?.deref();
      if (owner === undefined) throw new Bug(`The function record at ${address.toString(16)} has no instance`);
    }
    const { address: start, region: { u32 }, offset } = owner.block;
    this.#edges.connect(holder, owner, u32[(offset + address - start + RECORD.TYPE_ID) >> 2]);
  }

  /** Forgets the host's tables and globals that have been collected. */
  #forgetHostObjects(): void {
    const live = this.#hostObjects.filter((ref) => ref.deref() !== undefined);
    this.#hostObjects.splice(0, this.#hostObjects.length, ...live);
  }
}

function contains({ address: start, size }: ContextBlock, address: number): boolean {
  return address >= start && address < start + size;
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
