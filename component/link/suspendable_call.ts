/**
 * Calls of components without async functions that wait for promises of the host. In: a lifted function, the context of
 * the call and its arguments. Out: a promise. The frames of the component are suspended while a function of the host is
 * in progress. Invariant: the instance stays entered meanwhile, so calls are made one after the other.
 */
import { type Context, startCall, underLimits } from "@waft/engine";
import { dateNow } from "@waft/engine/internal/host/clocks";
import type { CoreValue } from "../abi/generated.ts";
import { leaving } from "../abi/core_exceptions.ts";
import { trap } from "../abi/traps.ts";
import { enterAll, leaveAll, type Store } from "../async/component_instance.ts";
import { Task } from "../async/task.ts";
import { completePassing, undoPassing } from "./codecs.ts";
import { unwrapResult } from "./host_exports.ts";
import type { FuncItem } from "./items.ts";
import type { LiftedFunction } from "./lifted_function.ts";

/** Calls `item`, which has been lifted, once the calls before have ended. */
export function callSuspendable(
  item: FuncItem,
  store: Store,
  context: Context,
  args: readonly unknown[],
): Promise<unknown> {
  return store.inTurn(async () => unwrapResult(item.type, await run(item, item.lifted!, store, context, args)));
}

async function run(
  { type }: FuncItem,
  { core, options, codecs: { lowerParams, liftResult } }: LiftedFunction,
  store: Store,
  context: Context,
  args: readonly unknown[],
): Promise<unknown> {
  for (const complete of store.deferredAdapters.splice(0)) complete();
  const { instance, postReturn } = options;
  const limits = absolute(context);
  const entering = instance.enteringSet(undefined);
  const task = new Task(instance, type, { isAsync: false, hasCallback: false }, () => args, () => {});
  const before = store.current;
  let entered = false;
  let called = false;
  try {
    const flat = underLimits(core, limits, () => {
      enterAll(entering);
      entered = true;
      store.active++;
      store.current = task.thread;
      return lowerAll(store, () => lowerParams(false)(args));
    });
    called = true;
    const result = await new Promise((resolve, reject) => startCall(core, limits, flat, resolve, reject, true));
    const results = result === undefined ? [] : [result as CoreValue];
    const finish = () => {
      const [lifted] = liftResult(false)(results);
      if (task.borrows > 0) trap("borrow handles still remain at the end of the call");
      instance.mayLeave = false;
      postReturn?.(...results);
      instance.mayLeave = true;
      return lifted;
    };
    const runsCode = type.result !== undefined || postReturn !== undefined;
    const value = runsCode ? underLimits(core, limits, finish) : finish();
    leaveAll(entering);
    return value;
  } catch (error) {
    if (!entered) throw error;
    // An argument that JavaScript passed cannot be lowered: the component is not at fault.
    if (!called && error instanceof TypeError) leaveAll(entering);
    throw leaving(error);
  } finally {
    if (entered) {
      store.active--;
      store.current = before;
    }
    if (limits.fuel !== undefined) context.fuel = limits.fuel;
  }
}

/** Lowers arguments; if one is refused, those before it are given back. */
function lowerAll<T>(store: Store, lower: () => T): T {
  store.passing.push([]);
  let flat: T;
  try {
    flat = lower();
  } catch (error) {
    undoPassing(store);
    throw error;
  }
  completePassing(store);
  return flat;
}

/** A context whose deadline is a point in time, since several calls share it. */
function absolute(context: Context): Context {
  const { deadline } = context;
  return typeof deadline === "number" ? { ...context, deadline: new Date(dateNow() + deadline) } : { ...context };
}
