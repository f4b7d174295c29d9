/**
 * canon lift: component functions from core functions. In: a core function, a function type and canonical options. Out:
 * a function item, which can be called in two ways: as a task that may block, and directly if nothing in the component
 * can. Invariant: a call that traps leaves its instance entered, so that the instance cannot be called again.
 */
import type { CoreValue } from "../abi/generated.ts";
import { ABI } from "../abi/layer.ts";
import { MAX_FLAT_PARAMS, MAX_FLAT_RESULTS, paramTypes, resultTypes, someType } from "../abi/layout.ts";
import { leaving } from "../abi/core_exceptions.ts";
import { trap } from "../abi/traps.ts";
import { type ComponentInstance, enterAll, leaveAll } from "../async/component_instance.ts";
import { EVENT, type Event, WaitableSet } from "../async/entries.ts";
import type { CoreFunction } from "../async/core_function.ts";
import { type FuncInst, TASK, Task, type Thread } from "../async/task.ts";
import type { FuncType, ValType } from "../model/types.ts";
import type { FuncItem } from "./items.ts";
import type { HostFunction, LiftedFunction, ValueCodecs } from "./lifted_function.ts";
import { completePassing, undoPassing } from "./codecs.ts";
import type { RuntimeOptions } from "./options.ts";

/** Codes that a callback returns. */
const CALLBACK = { EXIT: 0, YIELD: 1, WAIT: 2 } as const;

/** Lifts `core`. */
export function liftFunction(core: CoreFunction, type: FuncType, options: RuntimeOptions): FuncItem {
  const codecs = valueCodecs(type, options);
  const lifted: LiftedFunction = { core, options, codecs, direct: (caller) => directCall(core, type, options, caller) };
  return { sort: "func", type, lifted, start: startFunction(core, type, options, codecs) };
}

function directCall(
  core: CoreFunction,
  type: FuncType,
  options: RuntimeOptions,
  caller: ComponentInstance | undefined,
): HostFunction {
  const { instance, postReturn, guest } = options;
  const { store } = instance;
  const entering = instance.enteringSet(caller);
  const taskOptions = { isAsync: false, hasCallback: false };
  const nothing = () => NO_VALUES;
  const needsTask = type.params.some((param) => someType(param.type, ({ kind }) => kind === "borrow")) ||
    store.needsTasks;
  // A call of the host that cannot be made leaves its handles with the host.
  const passes = caller === undefined && type.params.some((param) => someType(param.type, isHandle));
  return options.bind(ABI.exported(type, options.pointer), caller !== undefined)({
    core,
    lowered: passes ? () => completePassing(store) : undefined,
    postReturn: postReturn === undefined ? undefined : (...results) => {
      instance.mayLeave = false;
      postReturn(...results);
      instance.mayLeave = true;
    },
    enter: () => {
      enterAll(entering);
      guest.reallocating = false;
      store.active++;
      const before = store.current;
      if (passes) store.passing.push([]);
      if (!needsTask) return before ?? null;
      store.current = new Task(instance, type, taskOptions, nothing, () => {}).thread;
      return before ?? null;
    },
    resolved: () => {
      if (needsTask && store.task.borrows > 0) trap("borrow handles still remain at the end of the call");
    },
    leave: (before) => {
      leaveAll(entering);
      store.active--;
      if (needsTask) store.current = (before as Thread | null) ?? undefined;
    },
    failed: (error, before, called) => {
      store.active--;
      if (passes && !called) undoPassing(store);
      // An argument that JavaScript passed cannot be lowered: the component is not at fault.
      if (!called && !guest.reallocating) leaveAll(entering);
      // The code of an adapter that would have restored it has been skipped.
      store.current = (before as Thread | null) ?? undefined;
      return leaving(error);
    },
  });
}

/** True for types whose values JavaScript gets back when a later argument is refused. */
function isHandle({ kind }: ValType): boolean {
  return kind === "own" || kind === "borrow" || kind === "stream" || kind === "future";
}

const NO_VALUES: readonly unknown[] = [];

/** Values passed to and from JavaScript, or another component, are bound on first use. */
export function onFirstUse<T>(make: (foreign: boolean) => T): (foreign: boolean) => T {
  const made: (T | undefined)[] = [undefined, undefined];
  return (foreign) => made[foreign ? 1 : 0] ??= make(foreign);
}

function valueCodecs(type: FuncType, options: RuntimeOptions): ValueCodecs {
  const { pointer } = options;
  return {
    lowerParams: onFirstUse((foreign) => {
      return options.bind(ABI.lowerer(paramTypes(type), pointer, MAX_FLAT_PARAMS), foreign);
    }),
    liftResult: onFirstUse((foreign) => {
      return options.bind(ABI.lifter(resultTypes(type), pointer, MAX_FLAT_RESULTS), foreign);
    }),
  };
}

function startFunction(
  core: CoreFunction,
  type: FuncType,
  options: RuntimeOptions,
  { lowerParams, liftResult }: ValueCodecs,
): FuncInst {
  const { instance, postReturn, callback, isAsync } = options;
  const taskOptions = { isAsync, hasCallback: callback !== undefined };
  return (onStart, onResolve, caller) => {
    if (!instance.mayEnterFrom(caller)) trap("cannot enter component instance");
    instance.enterFrom(caller);
    const foreign = caller !== undefined;
    const task = new Task(instance, type, taskOptions, onStart, onResolve);
    task.foreign = foreign;
    task.lifted = options;
    const lower = lowerParams(foreign);
    task.thread.run(() =>
      task.enter(() => {
        const args = foreign ? lower(task.start()) : lowerHostArguments(task, options, lower);
        if (args === undefined) return;
        if (isAsync) {
          task.thread.callCore(core, args, (packed) => {
            if (callback === undefined) task.exit();
            else continueCallback(task, callback, packed as number);
          });
          return;
        }
        task.thread.callCore(core, args, (result) => {
          const flat = result === undefined ? [] : [result as CoreValue];
          task.return(liftResult(foreign)(flat));
          if (postReturn === undefined) return task.exit();
          instance.mayLeave = false;
          task.thread.callCore(postReturn, flat, () => {
            instance.mayLeave = true;
            task.exit();
          });
        });
      })
    );
    if (!type.async && task.mayWait && !task.hasExited) task.hold(instance.enteringSet(caller));
    else {
      if (!type.async) runUntilResolved(task);
      instance.leaveTo(caller);
    }
    return (from) => task.requestCancellation(from);
  };
}

/** Lowers arguments of JavaScript. Ends the task alone if it cannot, because the component is not at fault. */
function lowerHostArguments(
  task: Task,
  { guest }: RuntimeOptions,
  lower: (values: readonly unknown[]) => CoreValue[],
): CoreValue[] | undefined {
  const { passing } = task.store;
  guest.reallocating = false;
  passing.push([]);
  try {
    const flat = lower(task.start());
    completePassing(task.store);
    return flat;
  } catch (error) {
    undoPassing(task.store);
    if (guest.reallocating) throw error;
    task.abandon(error);
    return undefined;
  }
}

/**
 * A synchronous function that blocks lets other threads of its instance run; traps if none can. A thread that needs the
 * instance for itself cannot, because the blocked function has not finished.
 */
function runUntilResolved(task: Task): void {
  const { instance } = task;
  while (task.state !== TASK.RESOLVED) {
    let next: Thread | undefined;
    for (const candidate of instance.threads) {
      if (!needsInstance(candidate) && candidate.ready) {
        next = candidate;
        break;
      }
    }
    if (next === undefined) trap("cannot block a synchronous task before returning");
    next.resume();
  }
}

function needsInstance(thread: Thread): boolean {
  const { task } = thread;
  return thread === task.instance.exclusive || (thread === task.thread && task.type.async && task.needsExclusive);
}

/** Continues after the core function or its callback returned `packed`. */
function continueCallback(task: Task, callback: CoreFunction, packed: number): void {
  const code = packed & 0xf;
  const { instance } = task;
  if (code === CALLBACK.EXIT) return task.exit();
  const deliver = ([kind, index, payload]: Event) => {
    instance.exclusive = task.thread;
    task.thread.callCore(callback, [kind, index, payload], (next) => continueCallback(task, callback, next as number));
  };
  if (code === CALLBACK.YIELD) {
    instance.exclusive = undefined;
    task.thread.wait(() => instance.exclusive === undefined, true, (cancelled) => {
      deliver([cancelled ? EVENT.TASK_CANCELLED : EVENT.NONE, 0, 0]);
    });
    return;
  }
  if (code !== CALLBACK.WAIT) trap("unsupported callback code");
  const set = instance.handles.get(packed >>> 4);
  if (!(set instanceof WaitableSet)) trap("callback returned an index that is not that of a waitable set");
  instance.exclusive = undefined;
  set.waiting++;
  task.thread.wait(() => instance.exclusive === undefined && set.hasPending, true, (cancelled) => {
    set.waiting--;
    deliver(cancelled ? [EVENT.TASK_CANCELLED, 0, 0] : set.takePending());
  });
}
