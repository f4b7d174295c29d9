/**
 * Module instances (specification, 4.2.10): a VM context, and the memories, tables, globals and segments that it uses.
 * Created by instantiate.ts; builtins.ts serves its code when that parks.
 *
 * Lifetime: an instance keeps its imports alive. An imported table, or an imported mutable global of a reference type,
 * keeps the instance alive, because it may contain functions of the instance. Everything else is collected when
 * JavaScript no longer refers to it.
 */
import { Finalizers, type Weak } from "../../host/finalizers.ts";
import type { HeapOwner } from "../../gc/heap_owner.ts";
import type { Sharer } from "../../gc/references.ts";
import { topHeap } from "../../wasm/subtype.ts";
import { HEAP, heapOf, isRef, type ValType } from "../../wasm/types.ts";
import type { Boundary } from "../boundary/values.ts";
import { MEMORY, RECORD, SHARED_LENGTH_SIZE, TABLE } from "../../abi/context_layout.ts";
import type { TrapError } from "../../base/errors.ts";
import { TRAP, TRAP_MESSAGES } from "../../base/traps.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import type { ConstEnv } from "../code/const_expr.ts";
import type { ContextBlock } from "../memory/context_arena.ts";
import { Tag } from "../exceptions/exception.ts";
import { type FuncInfo, registerFunc } from "./func.ts";
import { Global } from "./global.ts";
import { newFilledArray, newFixedArray, newStruct } from "../boundary/heap_objects.ts";
import type { HostService } from "../boundary/marshal.ts";
import { type InstanceState, visitState } from "./captured_state.ts";
import type { CallRecorder } from "../suspension/call_recorder.ts";
import { InstanceGroup } from "../suspension/instance_group.ts";
import { type CallHalves, callHalves, type CallInEnv, makeCallIn } from "../boundary/marshal.ts";
import type { Memory, MemoryUser } from "../memory/memory.ts";
import type { NativeRegion } from "../memory/native_region.ts";
import { Segments } from "./segments.ts";
import type { Store } from "./store.ts";
import { Table, type TableUser } from "./table.ts";

/** The owner of the objects that one instance makes, and the block of its allocation cells. */
export interface OwnHeap {
  readonly owner: HeapOwner;
  readonly block: ContextBlock;
}

/** A module instance. */
export class Instance implements MemoryUser, TableUser, ConstEnv {
  readonly store: Store;
  /** The module whose code it runs; {@linkcode Instance.adoptCode} replaces it. */
  module: CompiledModule;
  /** The VM context. */
  readonly block: ContextBlock;
  readonly number: number;
  readonly weak: Weak<Instance>;
  readonly memories: Memory[] = [];
  readonly tables: Table[] = [];
  readonly globals: Global[] = [];
  readonly tags: Tag[] = [];
  /** By index of the imported function: the service of a host function. */
  readonly hostServices: HostService[] = [];
  /**
   * By function index: the exported function, created on demand. An imported wasm function has the exported function of
   * its own instance.
   */
  readonly funcs: ((...args: unknown[]) => unknown)[] = [];
  /** Other objects that must live as long as the instance. */
  readonly retained: Set<unknown> = new Set();
  targets: Set<Sharer> | undefined;
  values: Set<object> | undefined;
  /** Conversion of references between JavaScript and its code. */
  readonly boundary: Boundary;
  readonly segments: Segments = new Segments(this);
  /** The owner of the objects that its code makes, and the limit of the owner's bytes. */
  readonly heapOwner: HeapOwner;
  maxHeapBytes = 0;
  /** Maps errors of its calls to the values that callers receive instead, if set. */
  outward: ((error: unknown) => unknown) | undefined;
  /** Records its calls and those of its imports, if set. */
  recorder: CallRecorder | undefined;
  /** The stack budget of its calls in abstract units; for code that counts the depth of calls only. */
  stackUnits = 0;
  closed = false;
  #group: InstanceGroup | undefined;
  /**
   * Set if other instances may use its functions or its state without JavaScript in between, so that its state must
   * outlive `close`.
   */
  isShared = false;
  /** The state that `reset` restores, if it differs from the module's initial state. */
  startState: InstanceState | undefined;
  /** States of it and others that may be restored (checkpoint.ts), as long as JavaScript refers to them. */
  readonly saved: Set<WeakRef<{ visit(visit: (word: number) => void): void }>> = new Set();

  /** `own` is the owner of the objects that it makes, if that is not the common one. */
  constructor(store: Store, module: CompiledModule, block: ContextBlock, own?: OwnHeap) {
    this.store = store;
    this.module = module;
    this.boundary = new InstanceBoundary(store, this);
    this.block = block;
    const { interruptible, fuel } = module.settings;
    if (!interruptible) store.lacks.interruptible = true;
    if (!fuel) store.lacks.fuel = true;
    this.number = store.instances.newNumber();
    this.heapOwner = own?.owner ?? store.heap.common;
    this.weak = INSTANCES.track(this, { store, number: this.number, block, own });
    store.instances.add(this.number, this.weak);
  }

  get region(): NativeRegion {
    return this.block.region;
  }

  /** The offset in `region` of the record of function `index`. */
  recordOffset(index: number): number {
    const { importsOffset, functionsOffset } = this.module.layout;
    const imported = this.module.importedFuncCount;
    const at = index < imported
      ? importsOffset + index * RECORD.SIZE
      : functionsOffset + (index - imported) * RECORD.SIZE;
    return this.block.offset + at;
  }

  /**
   * The instances whose functions its code can call directly: the owners of its imports, and the users of its tables.
   */
  neighbours(): Instance[] {
    const found: Instance[] = [];
    for (const object of this.retained) if (object instanceof Instance) found.push(object);
    for (const { owner } of this.globals) if (owner instanceof Instance) found.push(owner);
    for (const table of this.tables) for (const user of table.users) if (user instanceof Instance) found.push(user);
    return found;
  }

  memoryMoved(memory: Memory): void {
    this.#memoryIndices ??= indicesByValue(this.memories);
    for (const index of this.#memoryIndices.get(memory) ?? []) this.#writeMemory(index, memory);
  }

  /** Makes `memory` the memory at `index`. No code of the instance may be running. */
  replaceMemory(index: number, memory: Memory): void {
    this.memories[index] = memory;
    this.#memoryIndices = undefined;
    this.#writeMemory(index, memory);
  }

  /** Copies base and length of the memory at `index` into the VM context. */
  #writeMemory(index: number, memory: Memory): void {
    const { region, block: { offset }, module: { layout } } = this;
    const at = offset + layout.memoriesOffset + index * MEMORY.SIZE;
    region.setWord(at + MEMORY.BASE, memory.base);
    region.setWord(at + MEMORY.LENGTH, memory.byteLength);
    if (memory.shared !== undefined) {
      region.setWord(offset + layout.sharedLengthsOffset + index * SHARED_LENGTH_SIZE, memory.shared.lengthAddress);
    }
  }
  #memoryIndices: Map<Memory, number[]> | undefined;

  tableMoved(table: Table): void {
    const { region } = this;
    this.#tableIndices ??= indicesByValue(this.tables);
    for (const index of this.#tableIndices.get(table) ?? []) {
      const at = this.block.offset + this.module.layout.tablesOffset + index * TABLE.SIZE;
      region.setWord(at + TABLE.BASE, table.base);
      region.setWord(at + TABLE.LENGTH, table.length);
    }
  }
  #tableIndices: Map<Table, number[]> | undefined;

  leastLength(table: Table): number {
    return this.tables.reduce(
      (least, other, index) =>
        other === table ? Math.max(least, Number(this.module.tableTypes[index].limits.min)) : least,
      0,
    );
  }

  /** The exported function of function `index`. */
  exportedFunc(index: number): (...args: unknown[]) => unknown {
    const known = this.funcs[index];
    if (known !== undefined) return known;
    const { module, region } = this;
    const record = this.recordOffset(index);
    const type = module.funcType(index);
    let fn = makeCallIn(type, this.#callInEnv(index));
    if (module.countsDepth) {
      const plain = fn;
      fn = (...args) => this.store.thread.withDepth(this.stackUnits, () => plain(...args));
    }
    if (this.recorder !== undefined) fn = this.recorder.exportedFunction(index, fn);
    registerFunc(fn, {
      owner: this,
      funcIndex: index,
      record: region.address + record,
      type,
      typeId: region.u32[(record + RECORD.TYPE_ID) >> 2],
    });
    this.funcs[index] = fn;
    return fn;
  }

  /** A call of function `index` in two parts. */
  callHalves(index: number): CallHalves {
    return this.#halves[index] ??= callHalves(this.module.funcType(index), this.#callInEnv(index));
  }
  readonly #halves: CallHalves[] = [];

  #callInEnv(index: number): CallInEnv {
    const { module, store, region } = this;
    const { thread } = store;
    const record = this.recordOffset(index);
    const contextLo = this.block.address | 0;
    const contextHi = (this.block.address / 0x1_0000_0000) | 0;
    const serve = (status: number) => thread.serve(status, contextLo, contextHi, this.hostServices);
    const { outward } = this;
    return {
      state: thread.state,
      boundary: this.boundary,
      instance: this,
      thread,
      enter: () => this.enter(),
      call: thread.call,
      serve: outward === undefined ? serve : (status) => {
        try {
          serve(status);
        } catch (error) {
          throw outward(error);
        }
      },
      record: region.address + record,
      code: region.word(record + RECORD.CODE),
      context: region.word(record + RECORD.CONTEXT),
      thunk: module.entryThunk(index),
    };
  }

  /** Throws unless the instance may be called now; sweeps if a sweep is due. */
  enter(): void {
    if (this.closed) throw new Error("The instance is closed");
    const { thread } = this.store;
    if (thread.attention.preempted > 0 && this.preempted) {
      throw new Error("An asynchronous call of the instance is preempted: callAsync waits for it");
    }
    if (thread.depth === 0 && thread.attention.sweepDue) thread.services.atSafepoint();
    thread.attention.look();
    if (thread.depth === 0) thread.limits.enterWork();
  }

  /**
   * Runs the code of `module`, another compilation of the same module, from the next call of each function on. Frames
   * on the stack and existing exported functions still refer to the previous code, so the instance retains it.
   */
  adoptCode(module: CompiledModule): void {
    this.retained.add(this.module);
    this.module = module;
    this.#halves.length = 0;
    const { image } = module;
    const { functionStart } = image.tables;
    for (let k = 0; k < functionStart.length; k++) {
      this.region.setWord(this.recordOffset(module.importedFuncCount + k) + RECORD.CODE, image.base + functionStart[k]);
    }
  }

  /** The group of instances that can reach the state of this one. */
  get group(): InstanceGroup {
    return this.#group ??= new InstanceGroup();
  }

  /** The group, if it has been created; without it, no call of this instance is preempted. */
  get maybeGroup(): InstanceGroup | undefined {
    return this.#group;
  }

  /** Whether a call of its group is preempted. */
  get preempted(): boolean {
    return this.#group?.preempted !== undefined;
  }

  globalWord(index: number): bigint {
    const { region, offset } = this.globals[index];
    return BigInt.asUintN(64, region.i64[offset >> 3]);
  }

  globalVector(index: number): Uint8Array {
    const { region, offset } = this.globals[index];
    return region.u8.slice(offset, offset + 16);
  }

  funcWord(index: number): bigint {
    return BigInt(this.recordAddress(index));
  }

  /** The address of the record of function `index`. */
  recordAddress(index: number): number {
    return this.region.address + this.recordOffset(index);
  }

  newStruct(typeIndex: number, fields?: readonly bigint[], descriptor?: bigint): bigint {
    if (descriptor === 0n) throw this.trap(TRAP.NULL_DESCRIPTOR);
    return BigInt(newStruct(this.#allocateConstant, this.module.valid.canonicalIds[typeIndex], fields, descriptor));
  }

  newArray(typeIndex: number, length: number, fill = 0n): bigint {
    return BigInt(newFilledArray(this.#allocateConstant, this.module.valid.canonicalIds[typeIndex], length, fill));
  }

  newFixedArray(typeIndex: number, elements: readonly bigint[]): bigint {
    return BigInt(newFixedArray(this.#allocateConstant, this.module.valid.canonicalIds[typeIndex], elements));
  }

  fieldCount(typeIndex: number): number {
    const { composite } = this.module.valid.types[typeIndex];
    return composite.kind === "struct" ? composite.fields.length : 0;
  }

  readonly #allocateConstant = (bytes: number): number => this.store.allocateConstant(bytes, this);

  /**
   * Marks every reference in its globals, its tables, its element segments and the state that `reset` restores, each
   * with the object that holds it.
   */
  markReferences(mark: (word: number, holder: Sharer) => void): void {
    for (const global of this.globals) global.markReferences(mark);
    for (const table of this.tables) table.markReferences(mark);
    const own = (word: number) => mark(word, this);
    for (const words of this.segments.elemWords.values()) words.forEach(own);
    this.#visitSaved(own);
  }

  /** Visits every reference in the states that can be restored. */
  #visitSaved(visit: (word: number) => void): void {
    if (this.startState !== undefined) visitState(this.module, this.startState, visit);
    for (const reference of this.saved) {
      const state = reference.deref();
      if (state === undefined) this.saved.delete(reference);
      else state.visit(visit);
    }
  }

  /** Whether an object that it can reach may be reachable from an instance other than `own`, or belong to it. */
  sharesReferences(own: ReadonlySet<Instance> = new Set([this])): boolean {
    const isOther = (sharer: unknown) => sharer instanceof Instance && !own.has(sharer);
    for (const holders of [this.globals, this.tables, this.tags, this.retained, this.targets ?? []]) {
      for (const holder of holders) {
        if (holder instanceof Instance) {
          // References pass in both directions, or in none.
          if (!own.has(holder) && (holder.retained.has(this) || holder.targets?.has(this) === true)) return true;
        } else if (holder instanceof Global || holder instanceof Table || holder instanceof Tag) {
          for (const sharer of holder.sharers()) if (isOther(sharer)) return true;
        }
      }
    }
    return false;
  }

  keepAlive(other: Sharer): void {
    this.retained.add(other);
  }

  keepsAlive(other: Sharer): boolean {
    return this === other || this.retained.has(other);
  }

  /** Visits every reference that may be to an object, a host value or an exception. */
  visitReferences(range: (low: number, high: number) => void, word: (word: number) => void): void {
    for (const global of this.globals) global.markReferences(word);
    for (const table of this.tables) table.visitReferences(range);
    for (const words of this.segments.elemWords.values()) words.forEach(word);
    this.#visitSaved(word);
  }

  /**
   * Marks every reference to an exception or a continuation in its globals, its tables and the state that `reset`
   * restores; ignores other references.
   */
  markExceptions(mark: (word: number, holder: Sharer) => void): void {
    this.#visitSaved((word) => mark(word, this));
    for (const global of this.globals) if (holdsHandles(global.type.type)) global.markReferences(mark);
    for (const table of this.tables) if (holdsHandles(table.type.element)) table.markReferences(mark);
  }

  /** The error of trap `code`, with the guest's frames if code is running. */
  trap(code: number): TrapError {
    return this.store.traps.withMessage(TRAP_MESSAGES[code]);
  }

  /**
   * Closes the instance: its exports throw from now on. Its memories are released immediately, unless its code is
   * running or others may use them; everything else is collected when JavaScript no longer refers to it.
   */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.startState = undefined;
    this.store.instances.close(this.number);
    if (this.isShared || this.isActive) return;
    const { importedMemoryCount, importedTableCount } = this.module.valid;
    for (let i = importedMemoryCount; i < this.memories.length; i++) this.memories[i].close();
    for (let i = importedTableCount; i < this.tables.length; i++) this.tables[i].releaseBudget();
    this.store.heap.removeOwner(this.heapOwner);
  }

  /**
   * Whether its code is on the stack, or in a continuation. Every activation stores its context there: in the parked
   * frame, or next to the return address of a call into another instance.
   */
  get isActive(): boolean {
    const { thread } = this.store;
    return (thread.depth > 0 || thread.continuations.live.length > 0) && thread.stack.holdsWord(this.block.address);
  }

  /**
   * Throws unless the instance is idle: no call of its code is in progress, suspended ones included, and neither is a
   * call of code that uses its memories or tables, which may have checked an address against a length that a reset
   * reduces.
   */
  requireIdle(): void {
    if (this.closed) throw new Error("The instance is closed");
    const { thread } = this.store;
    if (thread.continuations.live.length > 0) this.store.sweeps.sweepContinuations();
    if (thread.depth === 0 && !thread.stack.hasSavedFrames) return;
    if (thread.stack.holdsWord(this.block.address)) {
      throw new Error("The instance is not idle: one of its calls is in progress");
    }
    const { importedMemoryCount, importedTableCount } = this.module.valid;
    const users = new Set<unknown>();
    for (const memory of this.memories.slice(importedMemoryCount)) for (const user of memory.users()) users.add(user);
    for (const table of this.tables.slice(importedTableCount)) for (const user of table.users) users.add(user);
    users.delete(this);
    for (const user of users) {
      if (!(user instanceof Instance) || !thread.stack.holdsWord(user.block.address)) continue;
      throw new Error(
        "The instance is not idle: a call of another instance that uses its memory or table is in progress",
      );
    }
  }
}

/** Whether references of `type` are to exceptions or continuations. */
function holdsHandles(type: ValType): boolean {
  if (!isRef(type)) return false;
  const top = topHeap(heapOf(type));
  return top === HEAP.exn || top === HEAP.cont;
}

/** The instance whose VM context an exported function uses. */
export function instanceOf(info: FuncInfo): Instance {
  return info.owner as Instance;
}

/**
 * The indices at which each value occurs. `values` must be complete: an instance adds no imports or definitions after
 * it is created.
 */
function indicesByValue<T>(values: readonly T[]): Map<T, number[]> {
  const indices = new Map<T, number[]>();
  values.forEach((value, index) => {
    const known = indices.get(value);
    if (known === undefined) indices.set(value, [index]);
    else known.push(index);
  });
  return indices;
}

/** The store's boundary for one instance, which receives and gives the references. */
class InstanceBoundary implements Boundary {
  readonly #store: Store;
  readonly #instance: Instance;

  constructor(store: Store, instance: Instance) {
    this.#store = store;
    this.#instance = instance;
  }

  toWord(value: unknown, type: ValType): number {
    return this.#store.toWord(value, type, this.#instance);
  }

  fromWord(word: number, type: ValType): unknown {
    return this.#store.fromWord(word, type, this.#instance);
  }

  relieve(): void {
    this.#store.sweeps.relieve();
  }

  hostValue(word: number): unknown {
    return this.#store.thread.handles.valueOf(word);
  }

  textWord(value: string): number {
    const { thread } = this.#store;
    const word = thread.handles.handleOf(value);
    if (thread.handles.full) thread.attention.sweepDue = true;
    return word;
  }
}

/** The registered data of an instance. */
interface HeldInstance {
  store: Store;
  number: number;
  block: ContextBlock;
  own: OwnHeap | undefined;
}

const INSTANCES = new Finalizers<HeldInstance>(({ store, number, block, own }) => {
  store.instances.drop(number);
  store.thread.contexts.release(block);
  if (own === undefined) return;
  store.heap.removeOwner(own.owner);
  store.thread.contexts.release(own.block);
});
