/**
 * Module instances (specification, 4.2.10): a VM context, the memories, tables and globals that it uses, and the
 * builtins that its code requests when it parks. Created by instantiate.ts.
 *
 * Lifetime: an instance keeps its imports alive. An imported table, or an imported mutable global of a reference type,
 * keeps the instance alive, because it may contain functions of the instance. Everything else is collected when
 * JavaScript no longer refers to it.
 */
import { now } from "../../host/clocks.ts";
import { Finalizers, type Weak } from "../../host/finalizers.ts";
import { BUILTIN_ROWS, type BuiltinName, NO_BYTES } from "../../abi/builtins.ts";
import type { Sharer } from "../../gc/references.ts";
import { IndexSet } from "../../base/index_set.ts";
import { soleFunction } from "../../wasm/constant_reader.ts";
import type { ElementSegment } from "../../wasm/module.ts";
import type { ValType } from "../../wasm/types.ts";
import type { Boundary } from "../boundary/values.ts";
import { MEMORY, RECORD, SHARED_LENGTH_SIZE, TABLE, THREAD } from "../../abi/context_layout.ts";
import { Bug, markUncatchable, TrapError } from "../../base/errors.ts";
import { TRAP, TRAP_MESSAGES } from "../../base/traps.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import { type ConstEnv, evaluateConst, prepareConst } from "../code/const_expr.ts";
import type { ContextBlock } from "../memory/context_arena.ts";
import { Exception, isException, Tag } from "../exceptions/exception.ts";
import { type FuncInfo, registerFunc } from "./func.ts";
import { Global } from "./global.ts";
import {
  elementBytes,
  newArrayOfBytes,
  newArrayOfWords,
  newFilledArray,
  newFixedArray,
  newStruct,
  writeBytes,
  writeWords,
} from "../boundary/heap_objects.ts";
import type { HostService } from "../boundary/marshal.ts";
import { type InstanceState, visitState } from "./captured_state.ts";
import type { CallRecorder } from "../suspension/call_recorder.ts";
import { InstanceGroup } from "../suspension/instance_group.ts";
import { type CallHalves, callHalves, type CallInEnv, makeCallIn } from "../boundary/marshal.ts";
import type { Memory, MemoryUser } from "../memory/memory.ts";
import { WAIT } from "../memory/shared_pages.ts";
import type { NativeRegion } from "../memory/native_region.ts";
import type { Store } from "./store.ts";
import { Table, type TableUser } from "./table.ts";

const SLOT = (index: number) => THREAD.SLOTS + index * THREAD.SLOT_SIZE;

/**
 * Builtins whose work grows with their operands, or with the body that they compile: code without loops makes many of
 * them between two polls.
 */
const WORK: ReadonlySet<BuiltinName> = new Set([
  "compile_body",
  "memory_grow",
  "memory_init",
  "table_grow",
  "table_fill",
  "table_copy",
  "table_init",
  "gc_allocate",
  "array_new_data",
  "array_new_elem",
  "array_init_data",
  "array_init_elem",
]);

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
  /** By index of an element segment that is neither active nor dropped: its references, once evaluated. */
  readonly elemWords: Map<number, number[]> = new Map();
  /** The limit in bytes of the garbage-collected heap when its code allocates. */
  maxHeapBytes = 0;
  /** Maps errors of its calls to the values that callers receive instead, if set. */
  outward: ((error: unknown) => unknown) | undefined;
  /** Records its calls and those of its imports, if set. */
  recorder: CallRecorder | undefined;
  /** The stack budget of its calls in abstract units; for code that counts the depth of calls only. */
  stackUnits = 0;
  closed = false;
  #group: InstanceGroup | undefined;
  readonly droppedElems: IndexSet = new IndexSet();
  readonly droppedDatas: IndexSet = new IndexSet();
  /**
   * Set if other instances may use its functions or its state without JavaScript in between, so that its state must
   * outlive `close`.
   */
  isShared = false;
  /** The state that `reset` restores, if it differs from the module's initial state. */
  startState: InstanceState | undefined;
  /** States of it and others that may be restored (checkpoint.ts), as long as JavaScript refers to them. */
  readonly saved: Set<WeakRef<{ visit(visit: (word: number) => void): void }>> = new Set();

  constructor(store: Store, module: CompiledModule, block: ContextBlock) {
    this.store = store;
    this.module = module;
    this.boundary = new InstanceBoundary(store, this);
    this.block = block;
    this.number = store.newInstanceNumber();
    this.weak = INSTANCES.track(this, { store, number: this.number, block });
    store.addInstance(this.number, this.weak);
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
  *neighbours(): Generator<Instance> {
    for (const object of this.retained) if (object instanceof Instance) yield object;
    for (const { owner } of this.globals) if (owner instanceof Instance) yield owner;
    for (const table of this.tables) for (const user of table.users) if (user instanceof Instance) yield user;
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
    return BigInt(this.#recordAddress(index));
  }

  #recordAddress(index: number): number {
    return this.region.address + this.recordOffset(index);
  }

  newStruct(typeIndex: number, fields?: readonly bigint[]): bigint {
    return BigInt(newStruct(this.#allocateConstant, this.module.valid.canonicalIds[typeIndex], fields));
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

  readonly #allocateConstant = (bytes: number): number => this.store.allocateConstant(bytes, this.maxHeapBytes);

  /**
   * Marks every reference in its globals, its tables, its element segments and the state that `reset` restores, each
   * with the object that holds it.
   */
  markReferences(mark: (word: number, holder: Sharer) => void): void {
    for (const global of this.globals) global.markReferences(mark);
    for (const table of this.tables) table.markReferences(mark);
    const own = (word: number) => mark(word, this);
    for (const words of this.elemWords.values()) words.forEach(own);
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
    for (const holder of [...this.globals, ...this.tables, ...this.tags, ...this.retained, ...this.targets ?? []]) {
      if (holder instanceof Instance) {
        // References pass in both directions, or in none.
        if (!own.has(holder) && (holder.retained.has(this) || holder.targets?.has(this) === true)) return true;
      } else if (holder instanceof Global || holder instanceof Table || holder instanceof Tag) {
        for (const sharer of holder.sharers()) if (isOther(sharer)) return true;
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
    for (const words of this.elemWords.values()) words.forEach(word);
    this.#visitSaved(word);
  }

  /** Marks every exnref in its globals, its tables and the state that `reset` restores; ignores other references. */
  markExceptions(mark: (word: number, holder: Sharer) => void): void {
    this.#visitSaved((word) => mark(word, this));
    for (const global of this.globals) if (isException(global.type.type)) global.markReferences(mark);
    for (const table of this.tables) if (isException(table.type.element)) table.markReferences(mark);
  }

  /** Runs the builtin for which compiled code parked. Arguments and results are in the slots. */
  serveBuiltin(row: number): void {
    const { state } = this.store.thread;
    const name: BuiltinName = BUILTIN_ROWS[row].name;
    const int = (slot: number) => this.#int(slot);
    const word = (slot: number) => this.#word(slot);
    if (WORK.has(name)) this.#requireTime();
    switch (name) {
      case "memory_grow":
        state.i64[SLOT(0) >> 3] = BigInt(this.#growMemory(this.memories[int(0)], word(1)));
        return;
      case "memory_init":
        this.initMemory(int(0), int(1), word(2), word(3), word(4));
        return;
      case "data_drop":
        this.droppedDatas.add(int(0));
        return;
      case "table_grow":
        state.i64[SLOT(0) >> 3] = BigInt(this.#growTable(this.tables[int(0)], word(2), word(1)));
        return;
      case "table_fill":
        this.#fillTable(this.tables[int(0)], word(1), word(2), word(3));
        return;
      case "table_copy":
        this.#copyTable(this.tables[int(0)], this.tables[int(1)], word(2), word(3), word(4));
        return;
      case "table_init":
        this.initTable(int(0), int(1), word(2), word(3), word(4));
        return;
      case "elem_drop":
        this.dropElem(int(0));
        return;
      case "throw":
        this.store.raise(Exception.thrown(this.tags[int(0)], this.store, this));
        return;
      case "throw_ref":
        this.#throwReference(word(0));
        return;
      case "rethrow":
        this.store.rethrow();
        return;
      case "caught":
        state.setWord(SLOT(0), this.store.caughtWord());
        return;
      case "memory_wait32":
        state.i32[SLOT(0) >> 2] = this.#wait(int(0), word(1), 4, state.i64[SLOT(2) >> 3], state.i64[SLOT(3) >> 3]);
        return;
      case "memory_wait64":
        state.i32[SLOT(0) >> 2] = this.#wait(int(0), word(1), 8, state.i64[SLOT(2) >> 3], state.i64[SLOT(3) >> 3]);
        return;
      case "memory_notify":
        // A memory that is not shared has no waiters.
        state.i32[SLOT(0) >> 2] = this.#atomicRange(int(0), word(1), 4).shared?.notify(word(1), int(2) >>> 0) ?? 0;
        return;
      case "gc_allocate":
        if (word(0) !== NO_BYTES) state.setWord(SLOT(0), this.store.allocate(word(0), this.maxHeapBytes));
        return;
      case "array_new_data":
      case "array_new_elem":
        state.setWord(SLOT(0), this.#newArray(name));
        return;
      case "array_init_data":
      case "array_init_elem":
        this.#initArray(name);
        return;
      case "compile_body":
        state.setWord(SLOT(0), this.store.compileBody(int(0)));
        return;
      case "check_stack":
        this.store.checkStack(this.recorder);
        return;
      case "memory_move":
      case "memory_set":
        throw new Bug(`Builtin ${name} is native and never parks`);
    }
  }

  /**
   * Traps if the time of the call is up. Not in deterministic code, where recordings reproduce only interruptions at
   * polls.
   */
  #requireTime(): void {
    const { thread } = this.store;
    if (thread.limits.interruption === Infinity && thread.limits.processorDeadline === Infinity) return;
    if (this.module.settings.deterministic) return;
    if (now() >= thread.limits.interruption || thread.limits.processorTimeIsUp) throw this.#trap(TRAP.INTERRUPTED);
  }

  /** The low word of a slot of the thread state. */
  #int(slot: number): number {
    return this.store.thread.state.i32[SLOT(slot) >> 2];
  }

  /** A slot of the thread state, as a word. */
  #word(slot: number): number {
    return this.store.thread.state.word(SLOT(slot));
  }

  #fillTable(table: Table, from: number, value: number, count: number): void {
    if (from + count > table.length) throw this.#trap(TRAP.TABLE_OUT_OF_BOUNDS);
    table.fill(from, count, value);
  }

  #copyTable(target: Table, source: Table, to: number, from: number, count: number): void {
    if (to + count > target.length || from + count > source.length) throw this.#trap(TRAP.TABLE_OUT_OF_BOUNDS);
    target.copy(to, source, from, count);
  }

  #throwReference(word: number): void {
    const exception = this.store.exceptionOf(word);
    if (exception === undefined) throw this.#trap(TRAP.NULL_EXCEPTION);
    this.store.raise(exception);
  }

  /** Slots: type, segment, first byte or element of the segment, count. Returns the address of the array. */
  #newArray(name: "array_new_data" | "array_new_elem"): number {
    const typeId = this.module.valid.canonicalIds[this.#int(0)];
    const [segment, from, count] = [this.#int(1), this.#int(2) >>> 0, this.#int(3) >>> 0];
    // Read the segment before anything allocates, because an allocation uses the slots.
    if (name === "array_new_data") {
      const bytes = this.#dataBytes(segment, from, count * elementBytes(typeId));
      return newArrayOfBytes(this.#allocate, typeId, count, bytes);
    }
    return newArrayOfWords(this.#allocate, typeId, this.#elemRange(segment, from, count));
  }

  /** Slots: type, segment, array, its first element, first byte or element of the segment, count. */
  #initArray(name: "array_init_data" | "array_init_elem"): void {
    const [segment, array, first] = [this.#int(1), this.#word(2), this.#int(3) >>> 0];
    const [from, count] = [this.#int(4) >>> 0, this.#int(5) >>> 0];
    if (name === "array_init_elem") return writeWords(array, first, this.#elemRange(segment, from, count));
    const size = elementBytes(this.module.valid.canonicalIds[this.#int(0)]);
    writeBytes(array, first * size, this.#dataBytes(segment, from, count * size));
  }

  /** The memory of an atomic access; traps if the access is out of bounds. */
  #atomicRange(memoryIndex: number, at: number, bytes: number): Memory {
    const memory = this.memories[memoryIndex];
    if (at + bytes > memory.byteLength) throw this.#trap(TRAP.MEMORY_OUT_OF_BOUNDS);
    return memory;
  }

  /**
   * memory.atomic.wait: waits up to `nanoseconds` (negative: without a limit). Returns one of WAIT. Traps if the
   * deadline of the call passes first.
   */
  #wait(memoryIndex: number, at: number, bytes: number, expected: bigint, nanoseconds: bigint): number {
    const { shared } = this.#atomicRange(memoryIndex, at, bytes);
    if (shared === undefined) throw this.#trap(TRAP.EXPECTED_SHARED_MEMORY);
    const wanted = nanoseconds < 0n ? Infinity : Number(nanoseconds) / 1e6;
    const left = Math.max(this.store.thread.limits.interruption - now(), 0);
    const time = Math.min(wanted, left);
    const outcome = bytes === 4
      ? shared.wait32(at, Number(BigInt.asIntN(32, expected)), time)
      : shared.wait64(at, expected, time);
    if (outcome === WAIT.TIMED_OUT && left < wanted) throw this.#trap(TRAP.INTERRUPTED);
    return outcome;
  }

  readonly #allocate = (bytes: number): number => this.store.allocate(bytes, this.maxHeapBytes);

  /** A range of a data segment; traps if it is out of bounds. */
  #dataBytes(segment: number, from: number, count: number): Uint8Array {
    const bytes = this.droppedDatas.has(segment) ? EMPTY : this.module.datas[segment].bytes;
    if (from + count > bytes.length) throw this.#trap(TRAP.MEMORY_OUT_OF_BOUNDS);
    return bytes.subarray(from, from + count);
  }

  /** A range of the references of an element segment; traps if it is out of bounds. */
  #elemRange(segment: number, from: number, count: number): number[] {
    const words = this.#wordsOf(segment);
    if (from + count > words.length) throw this.#trap(TRAP.TABLE_OUT_OF_BOUNDS);
    return words.slice(from, from + count);
  }

  /** The references of an element segment, evaluated only once, because each expression may create an object. */
  #wordsOf(segment: number): number[] {
    if (this.droppedElems.has(segment)) return NO_WORDS;
    let words = this.elemWords.get(segment);
    if (words === undefined) {
      words = this.evaluateElem(this.module.valid.elems.at(segment)!);
      this.elemWords.set(segment, words);
    }
    return words;
  }

  /** Evaluates the references of an element segment that is not dropped, before they are needed. */
  prepareElem(segment: number): void {
    this.#wordsOf(segment);
  }

  /** Evaluates the references of an element segment to words; expressions may create new objects. */
  evaluateElem({ init }: ElementSegment): number[] {
    const words: number[] = [];
    if (init.kind === "funcs") {
      for (let i = 0; i < init.indices.length; i++) words.push(this.#recordAddress(init.indices.at(i)!));
      return words;
    }
    for (let i = 0; i < init.exprs.length; i++) {
      const expr = init.exprs.at(i)!;
      const func = soleFunction(expr);
      words.push(func >= 0 ? this.#recordAddress(func) : Number(evaluateConst(prepareConst(expr), this)));
    }
    return words;
  }

  /** memory.init: copies `count` bytes of data segment `segment`; traps if either range is out of bounds. */
  initMemory(memoryIndex: number, segment: number, to: number, from: number, count: number): void {
    const bytes = this.droppedDatas.has(segment) ? EMPTY : this.module.datas[segment].bytes;
    const memory = this.memories[memoryIndex];
    if (from + count > bytes.length || to + count > memory.byteLength) throw this.#trap(TRAP.MEMORY_OUT_OF_BOUNDS);
    if (count > 0) memory.bytes.set(bytes.subarray(from, from + count), to);
  }

  #growMemory(memory: Memory, delta: number): number {
    const old = memory.grow(delta);
    if (old < 0 && this.module.settings.deterministic && memory.pages + delta <= memory.maxPages) throw outOfMemory();
    return old;
  }

  #growTable(table: Table, delta: number, word: number): number {
    const old = table.grow(delta, word);
    if (old < 0 && this.module.settings.deterministic && table.length + delta <= table.maxElements) throw outOfMemory();
    return old;
  }

  dropData(segment: number): void {
    this.droppedDatas.add(segment);
  }

  /** table.init; traps if either range is out of bounds. */
  initTable(tableIndex: number, segment: number, to: number, from: number, count: number): void {
    const words = this.#wordsOf(segment);
    const table = this.tables[tableIndex];
    if (from + count > words.length || to + count > table.length) throw this.#trap(TRAP.TABLE_OUT_OF_BOUNDS);
    for (let i = 0; i < count; i++) table.set(to + i, words[from + i]);
  }

  dropElem(segment: number): void {
    this.droppedElems.add(segment);
    this.elemWords.delete(segment);
  }

  #trap(code: number): TrapError {
    return this.store.thread.depth > 0
      ? this.store.trapInBuiltin(TRAP_MESSAGES[code])
      : new TrapError(TRAP_MESSAGES[code]);
  }

  /**
   * Closes the instance: its exports throw from now on. Its memories are released immediately, unless its code is
   * running or others may use them; everything else is collected when JavaScript no longer refers to it.
   */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.startState = undefined;
    this.store.closeInstance(this.number);
    if (this.isShared || this.isActive) return;
    const { importedMemoryCount, importedTableCount } = this.module.valid;
    for (let i = importedMemoryCount; i < this.memories.length; i++) this.memories[i].close();
    for (let i = importedTableCount; i < this.tables.length; i++) this.tables[i].releaseBudget();
  }

  /**
   * Whether its code is on the stack. Every activation stores its context there: in the parked frame, or next to the
   * return address of a call into another instance.
   */
  get isActive(): boolean {
    const { thread } = this.store;
    return thread.depth > 0 && thread.stack.holdsWord(this.block.address);
  }

  /**
   * Throws unless the instance is idle: no call of its code is in progress, suspended ones included, and neither is a
   * call of code that uses its memories or tables, which may have checked an address against a length that a reset
   * reduces.
   */
  requireIdle(): void {
    if (this.closed) throw new Error("The instance is closed");
    const { thread } = this.store;
    if (thread.depth === 0 && thread.stack.suspended.size === 0) return;
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
    this.#store.relieve();
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

/**
 * The error that ends deterministic code whose outcome would depend on the available memory; guest code cannot catch
 * it.
 */
function outOfMemory(): Error {
  return markUncatchable(new RangeError("Out of memory: the limit allows more than the system has"));
}

const EMPTY = new Uint8Array(0);
const NO_WORDS: number[] = [];

const INSTANCES = new Finalizers<{ store: Store; number: number; block: ContextBlock }>((held) => {
  held.store.dropInstance(held.number);
  held.store.thread.contexts.release(held.block);
});
