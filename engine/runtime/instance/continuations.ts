/**
 * The builtins of continuations (proposal "stack switching"). In: the instance whose code has parked, arguments in the
 * slots, values and tags of handlers in the overflow buffer (abi/builtins.ts). Out: the thread parked in the
 * computation that continues; throws traps and exceptions. The frames are moved by thread/continuations.ts.
 */
import { SWITCH_HANDLERS_SHIFT, THREAD } from "../../abi/context_layout.ts";
import type { TrapError } from "../../base/errors.ts";
import { ExhaustionError } from "../../base/errors.ts";
import { STACK_TRAPS, TRAP, TRAP_MESSAGES } from "../../base/traps.ts";
import type { Sharer } from "../../gc/references.ts";
import type { FuncType } from "../../wasm/types.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import { Exception, type ExceptionBoundary, type Tag } from "../exceptions/exception.ts";
import type { ContextBlock } from "../memory/context_arena.ts";
import type { Continuation, ContinuationStart } from "../thread/continuations.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import type { CaughtException } from "./caught_exception.ts";
import type { ReferenceSweeps } from "./reference_sweeps.ts";
import type { TrapErrors } from "./trap_errors.ts";

/** The services of the store for continuations. */
export interface ContinuationStore extends ExceptionBoundary {
  readonly thread: GuestThread;
  /** How to enter the function of a record, and the instance that has the record. */
  startOf(record: number): { readonly start: ContinuationStart; readonly owner: object };
  continuationOf(word: number): Continuation | undefined;
  readonly caught: CaughtException;
  readonly sweeps: ReferenceSweeps;
  readonly traps: TrapErrors;
}

/** The parts of an instance that continuations need. */
interface ContinuationInstance extends Sharer {
  readonly store: ContinuationStore;
  readonly module: CompiledModule;
  readonly tags: readonly Tag[];
  readonly block: ContextBlock;
  trap(code: number): TrapError;
}

/** The offset of a slot in the thread state. */
function slot(index: number): number {
  return THREAD.SLOTS + index * THREAD.SLOT_SIZE;
}

function int({ store: { thread: { state } } }: ContinuationInstance, index: number): number {
  return state.i32[slot(index) >> 2];
}

function word({ store: { thread: { state } } }: ContinuationInstance, index: number): number {
  return state.word(slot(index));
}

/** The function type of the continuation type with index `index`. */
function typeAt({ module: { valid: { types } } }: ContinuationInstance, index: number): FuncType {
  const { composite } = types[index];
  return types[(composite as { readonly func: number }).func].composite as FuncType;
}

/** Consumes the continuation in a slot; traps if there is none, or if it has been consumed before. */
function consume(instance: ContinuationInstance, index: number): Continuation {
  const { store } = instance;
  const continuation = store.continuationOf(store.thread.state.u32[slot(index) >> 2]);
  if (continuation === undefined) throw store.traps.inBuiltin(STACK_TRAPS.NULL);
  if (continuation.isConsumed) throw store.traps.inBuiltin(STACK_TRAPS.CONSUMED);
  continuation.isConsumed = true;
  return continuation;
}

/** Writes the reference to a continuation, which has 32 bits, at `offset` of the thread state. */
function passReference({ sweeps, thread: { state: { u32 } } }: ContinuationStore, offset: number, made: Continuation) {
  u32[offset >> 2] = sweeps.continuationWord(made);
  u32[(offset >> 2) + 1] = 0;
}

/** Slots: function, type. */
export function newContinuation(instance: ContinuationInstance): void {
  const { store } = instance;
  const record = word(instance, 0);
  if (record === 0) throw instance.trap(TRAP.NULL_FUNCTION);
  store.sweeps.relieveContinuations();
  const { start, owner } = store.startOf(record);
  passReference(store, slot(0), store.thread.continuations.make(start, [owner]));
}

/** Slots: continuation, number of arguments. */
export function bindContinuation(instance: ContinuationInstance): void {
  const { store } = instance;
  const count = int(instance, 1);
  store.sweeps.relieveContinuations();
  const given = consume(instance, 0);
  const { u32 } = store.thread.state;
  const first = THREAD.OVERFLOW >> 2;
  const values = Array.from(u32.subarray(first, first + count * (THREAD.SLOT_SIZE >> 2)));
  const made = store.thread.continuations.rebind(given, [...given.bound, ...values]);
  passReference(store, slot(0), made);
}

/** Slots: tag. */
export function suspend(instance: ContinuationInstance): void {
  const { store, store: { thread: { continuations, state } } } = instance;
  const tag = instance.tags[int(instance, 0)];
  store.sweeps.relieveContinuations();
  const prompt = continuations.find(tag.identity, false);
  if (prompt < 0) throw store.traps.inBuiltin(STACK_TRAPS.UNHANDLED);
  const suspended = continuations.capture(prompt, false, instance);
  const at = THREAD.OVERFLOW + tag.type.params.length * THREAD.SLOT_SIZE;
  passReference(store, at, suspended);
  state.i32[slot(0) >> 2] = continuations.found + 1;
}

/** Pushes the handlers of a `resume`: `wanted` are their numbers, `first` is the value after which their tags are. */
function pushHandlers(instance: ContinuationInstance, type: FuncType, first: number, wanted: number): void {
  const { continuations } = instance.store.thread;
  const labels = wanted & ((1 << SWITCH_HANDLERS_SHIFT) - 1);
  continuations.push(first, labels, wanted >>> SWITCH_HANDLERS_SHIFT, type.results.length);
}

/** Traps if the stack has no room for the frames of a continuation. */
function requireRoom({ store, block: { region, offset } }: ContinuationInstance, continuation: Continuation): void {
  if (store.thread.continuations.hasRoom(continuation, region, offset)) return;
  throw store.traps.inBuiltin(TRAP_MESSAGES[TRAP.STACK_EXHAUSTED], ExhaustionError);
}

/** Slots: continuation, type, handlers. */
export function resume(instance: ContinuationInstance): void {
  const { continuations } = instance.store.thread;
  const continuation = consume(instance, 0);
  requireRoom(instance, continuation);
  const type = typeAt(instance, int(instance, 1));
  const count = type.params.length;
  pushHandlers(instance, type, count, int(instance, 2));
  continuations.enter(continuation, count);
}

/** Slots: continuation, type, tag, handlers. */
export function resumeThrow(instance: ContinuationInstance): void {
  const tag = instance.tags[int(instance, 2)];
  const continuation = consume(instance, 0);
  const exception = Exception.thrown(tag, instance.store, instance);
  raiseIn(instance, continuation, exception, tag.type.params.length, int(instance, 3));
}

/** Slots: continuation, type, exception, handlers. */
export function resumeThrowReference(instance: ContinuationInstance): void {
  const continuation = consume(instance, 0);
  const exception = instance.store.exceptionOf(word(instance, 2));
  if (exception === undefined) throw instance.trap(TRAP.NULL_EXCEPTION);
  raiseIn(instance, continuation, exception, 0, int(instance, 3));
}

/** Throws an exception where a computation has suspended; one that has not begun ends by it at once. */
function raiseIn(
  instance: ContinuationInstance,
  continuation: Continuation,
  exception: Exception,
  first: number,
  wanted: number,
): void {
  const { store, store: { thread: { continuations } } } = instance;
  if (continuation.start === undefined) {
    requireRoom(instance, continuation);
    pushHandlers(instance, typeAt(instance, int(instance, 1)), first, wanted);
    continuations.restore(continuation);
  }
  store.caught.raise(exception);
}

/** Slots: continuation, number of its parameters, tag. */
export function switchTo(instance: ContinuationInstance): void {
  const { store, store: { thread: { continuations } } } = instance;
  const count = int(instance, 1);
  const tag = instance.tags[int(instance, 2)];
  store.sweeps.relieveContinuations();
  const continuation = consume(instance, 0);
  const prompt = continuations.find(tag.identity, true);
  if (prompt < 0) throw store.traps.inBuiltin(STACK_TRAPS.UNHANDLED);
  const suspended = continuations.capture(prompt, true, instance);
  passReference(store, THREAD.OVERFLOW + (count - 1) * THREAD.SLOT_SIZE, suspended);
  requireRoom(instance, continuation);
  continuations.enter(continuation, count);
}
