/**
 * The builtins for which compiled code parks, one row each. In: the instance whose code has parked, and arguments in
 * the slots of the thread state. Out: results in the slots; throws traps and exceptions. The rows of abi/builtins.ts
 * give their types.
 */
import { BUILTIN_ROWS, NO_BYTES } from "../../abi/builtins.ts";
import { THREAD } from "../../abi/context_layout.ts";
import { Bug, markUncatchable, type TrapError } from "../../base/errors.ts";
import { TRAP } from "../../base/traps.ts";
import type { HeapUser } from "../../gc/heap_owner.ts";
import type { Sharer } from "../../gc/references.ts";
import { now } from "../../host/clocks.ts";
import { elementBytes, newArrayOfBytes, newArrayOfWords, writeBytes, writeWords } from "../boundary/heap_objects.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import { Exception, type Tag } from "../exceptions/exception.ts";
import type { ContextBlock } from "../memory/context_arena.ts";
import type { Memory } from "../memory/memory.ts";
import { WAIT } from "../memory/shared_pages.ts";
import type { CallRecorder } from "../suspension/call_recorder.ts";
import type { ContinuationStore } from "./continuations.ts";
import { CONTINUATIONS } from "./late_continuations.ts";
import type { Segments } from "./segments.ts";
import type { Table } from "./table.ts";

/** The services of the store for builtins. */
interface BuiltinStore extends ContinuationStore {
  allocate(bytes: number, instance: HeapUser): number;
  compileBody(index: number): number;
}

/** The parts of an instance that builtins need. */
interface BuiltinInstance extends Sharer, HeapUser {
  readonly store: BuiltinStore;
  readonly module: CompiledModule;
  readonly memories: readonly Memory[];
  readonly tables: readonly Table[];
  readonly tags: readonly Tag[];
  readonly block: ContextBlock;
  readonly segments: Segments;
  readonly recorder: CallRecorder | undefined;
  trap(code: number): TrapError;
}

type Serve = (instance: BuiltinInstance) => void;

/** A builtin. */
interface Builtin {
  readonly serve: Serve;
  /**
   * Its work grows with its operands, or with the body that it compiles: code without loops makes many such calls
   * between two polls, so the time of the call is checked first.
   */
  readonly isWork?: true;
}

/** The names of the builtins without machine code of their own. */
type ParkingName = Extract<(typeof BUILTIN_ROWS)[number], { readonly native: false }>["name"];

const BUILTINS: Readonly<Record<ParkingName, Builtin>> = {
  memory_grow: { isWork: true, serve: (i) => setLong(i, growMemory(i, i.memories[int(i, 0)], word(i, 1))) },
  memory_init: {
    isWork: true,
    serve: (i) => i.segments.initMemory(int(i, 0), int(i, 1), word(i, 2), word(i, 3), word(i, 4)),
  },
  data_drop: { serve: (i) => i.segments.dropData(int(i, 0)) },
  table_grow: { isWork: true, serve: (i) => setLong(i, growTable(i, i.tables[int(i, 0)], word(i, 2), word(i, 1))) },
  table_fill: { isWork: true, serve: (i) => fillTable(i, i.tables[int(i, 0)], word(i, 1), word(i, 2), word(i, 3)) },
  table_copy: { isWork: true, serve: copyTable },
  table_init: {
    isWork: true,
    serve: (i) => i.segments.initTable(int(i, 0), int(i, 1), word(i, 2), word(i, 3), word(i, 4)),
  },
  elem_drop: { serve: (i) => i.segments.dropElem(int(i, 0)) },
  throw: { serve: (i) => i.store.caught.raise(Exception.thrown(i.tags[int(i, 0)], i.store, i)) },
  throw_ref: { serve: throwReference },
  rethrow: { serve: (i) => i.store.caught.rethrow() },
  caught: { serve: (i) => setWord(i, i.store.sweeps.exceptionWord(i.store.caught.take())) },
  memory_wait32: { serve: (i) => setInt(i, wait(i, 4)) },
  memory_wait64: { serve: (i) => setInt(i, wait(i, 8)) },
  memory_notify: { serve: notify },
  gc_allocate: {
    isWork: true,
    serve: (i) => {
      if (word(i, 0) !== NO_BYTES) setWord(i, i.store.allocate(word(i, 0), i));
    },
  },
  array_new_data: { isWork: true, serve: newArrayOfData },
  array_new_elem: { isWork: true, serve: newArrayOfElements },
  array_init_data: { isWork: true, serve: initArrayFromData },
  array_init_elem: { isWork: true, serve: initArrayFromElements },
  compile_body: { isWork: true, serve: (i) => setWord(i, i.store.compileBody(int(i, 0))) },
  cont_new: late("newContinuation"),
  cont_bind: late("bindContinuation"),
  suspend: late("suspend"),
  resume: late("resume"),
  resume_throw: late("resumeThrow"),
  resume_throw_ref: late("resumeThrowReference"),
  switch_to: late("switchTo"),
  check_stack: { serve: (i) => i.store.traps.checkStack(i.recorder) },
};

/** A builtin of continuations, whose module is loaded by its first call. */
function late(name: keyof ReturnType<typeof CONTINUATIONS.get>): Builtin {
  const builtin: { serve: Serve } = {
    serve: (instance) => {
      builtin.serve = CONTINUATIONS.get()[name];
      builtin.serve(instance);
    },
  };
  return builtin;
}

/** By row of abi/builtins.ts; undefined for native routines. */
const BY_ROW: readonly (Builtin | undefined)[] = BUILTIN_ROWS.map(({ name }) =>
  (BUILTINS as Readonly<Record<string, Builtin>>)[name]
);

/** Runs the builtin for which the code of `instance` has parked. */
export function serveBuiltin(instance: BuiltinInstance, row: number): void {
  const builtin = BY_ROW[row];
  if (builtin === undefined) throw new Bug(`Builtin ${BUILTIN_ROWS[row].name} is native and never parks`);
  if (builtin.isWork) requireTime(instance);
  builtin.serve(instance);
}

/** The offset of a slot in the thread state. */
function slot(index: number): number {
  return THREAD.SLOTS + index * THREAD.SLOT_SIZE;
}

/** The low word of an argument. */
function int({ store: { thread: { state } } }: BuiltinInstance, index: number): number {
  return state.i32[slot(index) >> 2];
}

/** An argument as a 64-bit word. */
function word({ store: { thread: { state } } }: BuiltinInstance, index: number): number {
  return state.word(slot(index));
}

function setInt({ store: { thread: { state } } }: BuiltinInstance, result: number): void {
  state.i32[slot(0) >> 2] = result;
}

/** Sets a result that may be negative. */
function setLong({ store: { thread: { state } } }: BuiltinInstance, result: number): void {
  state.i64[slot(0) >> 3] = BigInt(result);
}

function setWord({ store: { thread: { state } } }: BuiltinInstance, result: number): void {
  state.setWord(slot(0), result);
}

/**
 * Traps if the time of the call is up. Not in deterministic code, where recordings reproduce only interruptions at
 * polls.
 */
function requireTime(instance: BuiltinInstance): void {
  const { limits } = instance.store.thread;
  if (limits.interruption === Infinity && limits.processorDeadline === Infinity) return;
  if (instance.module.settings.deterministic) return;
  if (now() >= limits.interruption || limits.processorTimeIsUp) throw instance.trap(TRAP.INTERRUPTED);
}

function growMemory({ module }: BuiltinInstance, memory: Memory, delta: number): number {
  const old = memory.grow(delta);
  if (old < 0 && module.settings.deterministic && memory.pages + delta <= memory.maxPages) throw outOfMemory();
  return old;
}

function growTable({ module }: BuiltinInstance, table: Table, delta: number, reference: number): number {
  const old = table.grow(delta, reference);
  if (old < 0 && module.settings.deterministic && table.length + delta <= table.maxElements) throw outOfMemory();
  return old;
}

/**
 * The error that ends deterministic code whose outcome would depend on the available memory; guest code cannot catch
 * it.
 */
function outOfMemory(): Error {
  return markUncatchable(new RangeError("Out of memory: the limit allows more than the system has"));
}

function fillTable(instance: BuiltinInstance, table: Table, from: number, reference: number, count: number): void {
  if (from + count > table.length) throw instance.trap(TRAP.TABLE_OUT_OF_BOUNDS);
  table.fill(from, count, reference);
}

/** Slots: target, source, first element of each, count. */
function copyTable(instance: BuiltinInstance): void {
  const [target, source] = [instance.tables[int(instance, 0)], instance.tables[int(instance, 1)]];
  const [to, from, count] = [word(instance, 2), word(instance, 3), word(instance, 4)];
  if (to + count > target.length || from + count > source.length) throw instance.trap(TRAP.TABLE_OUT_OF_BOUNDS);
  target.copy(to, source, from, count);
}

function throwReference(instance: BuiltinInstance): void {
  const exception = instance.store.exceptionOf(word(instance, 0));
  if (exception === undefined) throw instance.trap(TRAP.NULL_EXCEPTION);
  instance.store.caught.raise(exception);
}

/** Slots: type, segment, first byte of the segment, count. The segment is read before an allocation uses the slots. */
function newArrayOfData(instance: BuiltinInstance): void {
  const typeId = instance.module.valid.canonicalIds[int(instance, 0)];
  const count = int(instance, 3) >>> 0;
  const bytes = instance.segments.dataBytes(int(instance, 1), int(instance, 2) >>> 0, count * elementBytes(typeId));
  setWord(instance, newArrayOfBytes(allocator(instance), typeId, count, bytes));
}

/** Slots: type, segment, first element of the segment, count. */
function newArrayOfElements(instance: BuiltinInstance): void {
  const typeId = instance.module.valid.canonicalIds[int(instance, 0)];
  const words = instance.segments.elemRange(int(instance, 1), int(instance, 2) >>> 0, int(instance, 3) >>> 0);
  setWord(instance, newArrayOfWords(allocator(instance), typeId, words));
}

function allocator(instance: BuiltinInstance): (bytes: number) => number {
  return (bytes) => instance.store.allocate(bytes, instance);
}

/** Slots: type, segment, array, its first element, first byte of the segment, count. */
function initArrayFromData(instance: BuiltinInstance): void {
  const size = elementBytes(instance.module.valid.canonicalIds[int(instance, 0)]);
  const [first, from, count] = [int(instance, 3) >>> 0, int(instance, 4) >>> 0, int(instance, 5) >>> 0];
  writeBytes(word(instance, 2), first * size, instance.segments.dataBytes(int(instance, 1), from, count * size));
}

/** Slots: type, segment, array, its first element, first element of the segment, count. */
function initArrayFromElements(instance: BuiltinInstance): void {
  const words = instance.segments.elemRange(int(instance, 1), int(instance, 4) >>> 0, int(instance, 5) >>> 0);
  writeWords(word(instance, 2), int(instance, 3) >>> 0, words);
}

/** The memory of an atomic access, in slots 0 and 1; traps if the access is out of bounds. */
function atomicRange(instance: BuiltinInstance, bytes: number): Memory {
  const memory = instance.memories[int(instance, 0)];
  if (word(instance, 1) + bytes > memory.byteLength) throw instance.trap(TRAP.MEMORY_OUT_OF_BOUNDS);
  return memory;
}

/**
 * memory.atomic.wait: slots: memory, address, expected value, nanoseconds (negative: without a limit). Returns one of
 * WAIT. Traps if the deadline of the call passes first.
 */
function wait(instance: BuiltinInstance, bytes: number): number {
  const { shared } = atomicRange(instance, bytes);
  if (shared === undefined) throw instance.trap(TRAP.EXPECTED_SHARED_MEMORY);
  const { limits, state: { i64 } } = instance.store.thread;
  const at = word(instance, 1), expected = i64[slot(2) >> 3], nanoseconds = i64[slot(3) >> 3];
  const wanted = nanoseconds < 0n ? Infinity : Number(nanoseconds) / 1e6;
  const left = Math.max(limits.interruption - now(), 0);
  const time = Math.min(wanted, left);
  const outcome = bytes === 4
    ? shared.wait32(at, Number(BigInt.asIntN(32, expected)), time)
    : shared.wait64(at, expected, time);
  if (outcome === WAIT.TIMED_OUT && left < wanted) throw instance.trap(TRAP.INTERRUPTED);
  return outcome;
}

/** memory.atomic.notify: slots: memory, address, count. */
function notify(instance: BuiltinInstance): void {
  // A memory that is not shared has no waiters.
  const { shared } = atomicRange(instance, 4);
  setInt(instance, shared?.notify(word(instance, 1), int(instance, 2) >>> 0) ?? 0);
}
