/**
 * Canonical built-in functions (Canonical ABI, Canonical Definitions). In: a canonical definition and its operands at
 * run time. Out: a JavaScript function that core code calls. A built-in that blocks returns a suspension.
 */
import type { CoreValue } from "../abi/generated.ts";
import { ABI } from "../abi/layer.ts";
import type { ForeignString } from "../abi/strings.ts";
import { addressOf, MAX_FLAT_PARAMS } from "../abi/layout.ts";
import { trap } from "../abi/traps.ts";
import type { ChannelType } from "../async/channel.ts";
import { cancelCopy, copyElements, copyLayout, dropEnd, newChannel, sameValue } from "../async/channels.ts";
import type { ComponentInstance } from "../async/component_instance.ts";
import {
  ErrorContext,
  EVENT,
  type Event,
  ResourceHandle,
  type RuntimeResource,
  Subtask,
  Waitable,
  WaitableSet,
} from "../async/entries.ts";
import type { CoreFunction } from "../async/core_function.ts";
import { Thread } from "../async/task.ts";
import type { Canon } from "../model/canon.ts";
import type { ValType } from "../model/types.ts";
import { dropResource, resourceAt } from "./codecs.ts";
import { onFirstUse } from "./lift.ts";
import type { RuntimeOptions } from "./options.ts";
import { UnsupportedError } from "@waft/engine";

/** The part of the defining scope that a built-in needs. */
export interface CanonScope {
  readonly instance: ComponentInstance;
  resource(type: number): RuntimeResource;
  channel(type: number): ChannelType;
  value(type: Exclude<Extract<Canon, { name: "task.return" }>["result"], undefined>): ValType;
  options(options: Extract<Canon, { name: "lift" }>["options"]): RuntimeOptions;
  memory(index: number): unknown;
  table(index: number): unknown;
  /** Checks that an element of a table is a function of one parameter without results. */
  startFunction(element: unknown, parameter: "i32" | "i64"): CoreFunction;
}

type Builtin = Exclude<Canon, { name: "lift" | "lower" }>;

/** The core function of a built-in. */
export function builtin(canon: Builtin, scope: CanonScope): CoreFunction {
  const made = resourceBuiltin(canon, scope) ?? taskBuiltin(canon, scope) ?? threadBuiltin(canon, scope) ??
    waitableBuiltin(canon, scope) ??
    channelBuiltin(canon, scope) ?? errorBuiltin(canon, scope);
  if (made !== undefined) return made as CoreFunction;
  throw new UnsupportedError(canon.name, `the canonical function ${canon.name} is not supported`);
}

// Core functions have numbers for i32, bigints for i64.
type AnyFunction = (...args: never[]) => unknown;

function resourceBuiltin(canon: Builtin, { instance, resource }: CanonScope): AnyFunction | undefined {
  switch (canon.name) {
    case "resource.new": {
      const type = resource(canon.type);
      return (rep: number) => {
        instance.requireLeave();
        return instance.handles.add(new ResourceHandle(type, rep, true));
      };
    }
    case "resource.drop": {
      const type = resource(canon.type);
      return (index: number) => dropResource(instance, type, index >>> 0);
    }
    case "resource.rep": {
      const type = resource(canon.type);
      return (index: number) => resourceAt(instance, type, index >>> 0).rep;
    }
  }
}

function taskBuiltin(canon: Builtin, scope: CanonScope): AnyFunction | undefined {
  const { instance } = scope;
  const { store } = instance;
  switch (canon.name) {
    case "context.get": {
      const { slot } = canon;
      const wide = canon.slotType === I64;
      return () => wide ? BigInt(store.thread.storage[slot]) : Number(store.thread.storage[slot]);
    }
    case "context.set": {
      const { slot } = canon;
      return (value: CoreValue) => {
        store.thread.storage[slot] = value;
      };
    }
    case "backpressure.inc":
      return () => {
        if (++instance.backpressure === 2 ** 16) trap("backpressure counter overflow");
      };
    case "backpressure.dec":
      return () => {
        if (--instance.backpressure < 0) trap("backpressure counter underflow");
      };
    case "task.return":
      return taskReturn(canon, scope);
    case "task.cancel":
      return () => {
        const { task } = store;
        instance.requireLeave();
        if (!task.options.isAsync) trap("task.cancel called by a task that is not async");
        task.cancel();
      };
    case "thread.yield": {
      const { cancellable } = canon;
      return () => {
        instance.requireLeave();
        return store.thread.yieldInCore(cancellable, asNumber);
      };
    }
  }
}

function asNumber(cancelled: boolean): number {
  return cancelled ? 1 : 0;
}

function threadBuiltin(canon: Builtin, scope: CanonScope): AnyFunction | undefined {
  const { instance } = scope;
  const { store } = instance;
  const other = (index: number): Thread => instance.threads.get(index >>> 0);
  const suspended = (index: number): Thread => {
    const thread = other(index);
    if (!thread.suspended) trap("cannot resume a thread which is not suspended");
    return thread;
  };
  /** A ready thread stops waiting, so that it can be switched to; no other thread is. */
  const promoted = (index: number): Thread | undefined => {
    const thread = other(index);
    if (!thread.ready) return undefined;
    thread.stopWaiting();
    return thread;
  };
  /** Checks that the built-in may be called, and does `action` with the running thread. */
  const inThread = <A extends unknown[]>(action: (thread: Thread, ...args: A) => unknown) => (...args: A) => {
    instance.requireLeave();
    return action(store.thread, ...args);
  };
  switch (canon.name) {
    case "thread.index":
      return inThread((thread) => thread.index);
    case "thread.new-indirect":
      return newThread(canon, scope);
    case "thread.resume-later":
      return inThread((_, index: number) => suspended(index).resumeLater());
    case "thread.suspend":
      return inThread((thread) => thread.suspendInCore(canon.cancellable, asNumber));
    case "thread.suspend-then-resume":
      return inThread((thread, index: number) => thread.suspendInCore(canon.cancellable, asNumber, suspended(index)));
    case "thread.yield-then-resume":
      return inThread((thread, index: number) => thread.yieldInCore(canon.cancellable, asNumber, suspended(index)));
    case "thread.suspend-then-promote":
      return inThread((thread, index: number) => thread.suspendInCore(canon.cancellable, asNumber, promoted(index)));
    case "thread.yield-then-promote":
      return inThread((thread, index: number) => thread.yieldInCore(canon.cancellable, asNumber, promoted(index)));
  }
}

/** thread.new-indirect: a suspended thread that will call a function of a table. */
function newThread(canon: Extract<Canon, { name: "thread.new-indirect" }>, scope: CanonScope): AnyFunction {
  const { instance } = scope;
  const table = scope.table(canon.table) as { get(index: number): unknown };
  return (index: number, argument: CoreValue) => {
    instance.requireLeave();
    const { task } = instance.store;
    const core = scope.startFunction(table.get(index >>> 0), typeof argument === "bigint" ? "i64" : "i32");
    const thread: Thread = new Thread(task, () => thread.callCore(core, [argument], () => task.unregister(thread)));
    task.register(thread);
    return thread.index;
  };
}

/** The code of the type i64. */
const I64 = 0x7e;

function taskReturn(canon: Extract<Canon, { name: "task.return" }>, scope: CanonScope): AnyFunction {
  const { instance } = scope;
  const types = canon.result === undefined ? [] : [scope.value(canon.result)];
  let bound:
    | { options: RuntimeOptions; lift: (foreign: boolean) => (flat: readonly CoreValue[]) => unknown[] }
    | undefined;
  const prepare = () => {
    const options = scope.options(canon.options);
    const template = ABI.lifter(types, options.pointer, MAX_FLAT_PARAMS);
    return { options, lift: (foreign: boolean) => options.bind(template, foreign) };
  };
  return (...flat: CoreValue[]) => {
    const { task } = instance.store;
    instance.requireLeave();
    if (!task.options.isAsync) trap("task.return called by a task that is not async");
    const { options, lift } = bound ??= prepare();
    if (!sameValue(types[0], task.type.result)) trap("invalid task.return signature: the result has another type");
    const lifted = task.lifted as RuntimeOptions;
    if (options.encoding !== lifted.encoding || (options.memory !== undefined && options.memory !== lifted.memory)) {
      trap("invalid task.return options: they differ from those of the lifted function");
    }
    task.return(lift(task.foreign)(flat));
  };
}

function setAt(instance: ComponentInstance, index: number): WaitableSet {
  const set = instance.handles.get(index >>> 0);
  if (!(set instanceof WaitableSet)) trap("handle index is not that of a waitable set");
  return set;
}

function waitableAt(instance: ComponentInstance, index: number): Waitable {
  const waitable = instance.handles.get(index >>> 0);
  if (!(waitable instanceof Waitable)) trap("handle index is not that of a waitable");
  return waitable;
}

function subtaskAt(instance: ComponentInstance, index: number): Subtask {
  const subtask = instance.handles.get(index >>> 0);
  if (!(subtask instanceof Subtask)) trap("handle index is not that of a subtask");
  return subtask;
}

function waitableBuiltin(canon: Builtin, scope: CanonScope): AnyFunction | undefined {
  const { instance } = scope;
  const { store } = instance;
  switch (canon.name) {
    case "waitable-set.new":
      return () => {
        instance.requireLeave();
        return instance.handles.add(new WaitableSet());
      };
    case "waitable-set.wait":
    case "waitable-set.poll": {
      const waits = canon.name === "waitable-set.wait";
      const { cancellable } = canon;
      const store_ = eventWriter(scope, canon.memory);
      return (index: number, pointer: number) => {
        instance.requireLeave();
        const set = setAt(instance, index);
        const { thread } = store;
        if (!waits) {
          if (thread.task.deliverPendingCancel(cancellable)) return store_(pointer, [EVENT.TASK_CANCELLED, 0, 0]);
          return store_(pointer, set.hasPending ? set.takePending() : [EVENT.NONE, 0, 0]);
        }
        set.waiting++;
        return thread.waitInCore(() => set.hasPending, cancellable, (cancelled) => {
          set.waiting--;
          return store_(pointer, cancelled ? [EVENT.TASK_CANCELLED, 0, 0] : set.takePending());
        });
      };
    }
    case "waitable-set.drop":
      return (index: number) => {
        instance.requireLeave();
        setAt(instance, index).drop();
        instance.handles.remove(index >>> 0);
      };
    case "waitable.join":
      return (index: number, setIndex: number) => {
        instance.requireLeave();
        const waitable = waitableAt(instance, index);
        if (waitable.hasSyncWaiter) trap("waitable is waited for synchronously");
        waitable.join(setIndex === 0 ? undefined : setAt(instance, setIndex));
      };
    case "subtask.drop":
      return (index: number) => {
        instance.requireLeave();
        subtaskAt(instance, index).drop();
        instance.handles.remove(index >>> 0);
      };
    case "subtask.cancel":
      return (index: number) => cancelSubtask(instance, canon.async, index);
  }
}

function cancelSubtask(instance: ComponentInstance, isAsync: boolean, index: number): number {
  const { thread } = instance.store;
  instance.requireLeave();
  const subtask = subtaskAt(instance, index);
  if (subtask.resolveDelivered) trap("cannot cancel a subtask that has already been resolved");
  if (subtask.cancellationRequested) trap("cannot cancel a subtask twice");
  if (subtask.set !== undefined && !isAsync) trap("waitable in a waitable set cannot be used synchronously");
  const take = () => {
    subtask.takePending();
    return subtask.state;
  };
  if (!subtask.resolved) {
    subtask.cancellationRequested = true;
    subtask.onCancel!(instance);
    if (!subtask.resolved) return isAsync ? -1 : subtask.waitForPending(thread, take);
  }
  return take();
}

/** Stores the payload of an event and returns its code. */
function eventWriter(scope: CanonScope, memoryIndex: number): (pointer: number, event: Event) => number {
  const memory = scope.memory(memoryIndex) as { readonly buffer: ArrayBuffer };
  return (pointer, [code, first, second]) => {
    const at = pointer >>> 0;
    const view = new DataView(memory.buffer);
    if (at % 4 !== 0 || at + 8 > view.byteLength) trap("pointer to an event is not aligned or out of bounds");
    view.setUint32(at, first, true);
    view.setUint32(at + 4, second, true);
    return code;
  };
}

function channelBuiltin(canon: Builtin, scope: CanonScope): AnyFunction | undefined {
  const { instance } = scope;
  switch (canon.name) {
    case "stream.new":
    case "future.new": {
      const type = scope.channel(canon.type);
      return () => newChannel(instance, type);
    }
    case "stream.read":
    case "stream.write":
    case "future.read":
    case "future.write":
      return copyBuiltin(canon, scope);
    case "stream.cancel-read":
    case "stream.cancel-write":
    case "future.cancel-read":
    case "future.cancel-write": {
      const type = scope.channel(canon.type);
      const reads = canon.name.endsWith("read");
      return (index: number) => cancelCopy(instance, type, reads, canon.async, index >>> 0);
    }
    case "stream.drop-readable":
    case "stream.drop-writable":
    case "future.drop-readable":
    case "future.drop-writable": {
      const type = scope.channel(canon.type);
      const reads = canon.name.endsWith("readable");
      return (index: number) => dropEnd(instance, type, reads, index >>> 0);
    }
  }
}

function copyBuiltin(
  canon: Extract<Canon, { name: "stream.read" | "stream.write" | "future.read" | "future.write" }>,
  scope: CanonScope,
): AnyFunction {
  const { instance } = scope;
  const type = scope.channel(canon.type);
  const options = scope.options(canon.options);
  const reads = canon.name.endsWith("read");
  const { element } = type;
  const codec = element === undefined
    ? undefined
    : onFirstUse((foreign) => options.bind(ABI.elements(element, options.pointer), foreign));
  const { size, align } = copyLayout(type, options.pointer);
  const copy = {
    isAsync: options.isAsync,
    codec,
    size,
    align,
    memoryBytes: () => options.memory?.byteLength ?? 0,
  };
  return (index: number, pointer: CoreValue, count: CoreValue = 1) =>
    copyElements(instance, type, reads, copy, index >>> 0, unsigned(pointer), unsigned(count));
}

function unsigned(value: CoreValue): number {
  return typeof value === "number" ? value >>> 0 : addressOf(value);
}

/** Longer messages are dropped, as the specification allows, since a context keeps its message as long as it exists. */
const MAX_MESSAGE_UNITS = 1024;
const NO_MESSAGE: ForeignString = { text: "", encoding: "utf8", units: 0 };

function errorBuiltin(canon: Builtin, scope: CanonScope): AnyFunction | undefined {
  const { instance } = scope;
  const contextAt = (index: number): ErrorContext => {
    const context = instance.handles.get(index >>> 0);
    if (!(context instanceof ErrorContext)) trap("handle index is not that of an error context");
    return context;
  };
  switch (canon.name) {
    case "error-context.new": {
      const options = scope.options(canon.options);
      const lift = options.bind(ABI.lifter([{ kind: "string" }], options.pointer, MAX_FLAT_PARAMS), true);
      return (pointer: CoreValue, units: CoreValue) => {
        instance.requireLeave();
        const message = lift([pointer, units])[0] as ForeignString;
        return instance.handles.add(new ErrorContext(message.units > MAX_MESSAGE_UNITS ? NO_MESSAGE : message));
      };
    }
    case "error-context.debug-message": {
      const options = scope.options(canon.options);
      const lower = options.bind(ABI.lowerer([{ kind: "string" }], options.pointer, 0), true);
      return (index: number, pointer: CoreValue) => {
        instance.requireLeave();
        lower([contextAt(index).message], pointer);
      };
    }
    case "error-context.drop":
      return (index: number) => {
        instance.requireLeave();
        contextAt(index);
        instance.handles.remove(index >>> 0);
      };
  }
}
