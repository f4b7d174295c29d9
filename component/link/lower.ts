/**
 * canon lower: core functions from component functions. In: a function item, its type as the caller sees it and
 * canonical options. Out: a JavaScript function that core code calls. Invariant: handles that the caller lends are lent
 * until the call has returned to it.
 */
import type { CoreValue } from "../abi/generated.ts";
import { ABI } from "../abi/layer.ts";
import {
  lowerShape,
  MAX_FLAT_ASYNC_PARAMS,
  MAX_FLAT_PARAMS,
  paramTypes,
  resultTypes,
  someType,
} from "../abi/layout.ts";
import { SUBTASK, Subtask } from "../async/entries.ts";
import { type CoreFunction, HOST_FUNCTIONS } from "../async/core_function.ts";
import type { OnResolve } from "../async/task.ts";
import type { FuncType } from "../model/types.ts";
import type { FuncItem } from "./items.ts";
import type { HostFunction } from "./lifted_function.ts";
import type { RuntimeOptions } from "./options.ts";

/** Lowers `item`, whose type in the terms of the caller is `type`. */
export function lowerFunction(item: FuncItem, type: FuncType, options: RuntimeOptions): CoreFunction {
  const { store } = options.instance;
  const core = store.usesAsync ? taskCall(item, type, options) : directCall(item, type, options);
  HOST_FUNCTIONS.add(core);
  return core;
}

/** The function of an item for a caller that cannot block. */
function implementation(item: FuncItem, options: RuntimeOptions): HostFunction {
  return item.host ?? item.lifted!.direct(options.instance);
}

function directCall(item: FuncItem, type: FuncType, options: RuntimeOptions): CoreFunction {
  const { instance } = options;
  const { store } = instance;
  const lends = type.params.some((param) => someType(param.type, ({ kind }) => kind === "borrow"));
  let core: CoreFunction | undefined;
  return (...args) => {
    core ??= options.bind(ABI.imported(type, options.pointer), item.host === undefined)({
      call: implementation(item, options),
      enter: () => {
        instance.requireLeave();
        return lends ? store.lending = new Subtask() : undefined;
      },
      leave: (scope) => {
        if (lends) (scope as Subtask).deliverResolve();
      },
    });
    return core(...args);
  };
}

/** A call with a subtask, which may block. */
function taskCall(item: FuncItem, type: FuncType, options: RuntimeOptions): CoreFunction {
  const { instance, isAsync, pointer } = options;
  const { store } = instance;
  const foreign = item.host === undefined;
  const maxParams = isAsync ? MAX_FLAT_ASYNC_PARAMS : MAX_FLAT_PARAMS;
  const maxResults = isAsync ? 0 : 1;
  const shape = lowerShape(type, { pointer, isAsync, hasCallback: false });
  const hasPointer = type.result !== undefined && shape.flatResults === undefined;
  let bound: {
    lift: (flat: readonly CoreValue[]) => unknown[];
    lower: (values: readonly unknown[], out?: CoreValue) => CoreValue[];
  } | undefined;
  const codecs = () =>
    bound ??= {
      lift: options.bind(ABI.lifter(paramTypes(type), pointer, maxParams), foreign),
      lower: options.bind(ABI.lowerer(resultTypes(type), pointer, maxResults), foreign),
    };
  return (...flat) => {
    const { thread } = store;
    instance.requireLeave();
    const { lift, lower } = codecs();
    const out = hasPointer ? flat[flat.length - 1] : undefined;
    const subtask = new Subtask();
    let onProgress = () => {};
    const onStart = () => {
      onProgress();
      subtask.state = SUBTASK.STARTED;
      store.lending = subtask;
      return lift(flat);
    };
    const onResolve: OnResolve = (values) => {
      onProgress();
      if (values !== undefined) return subtask.resolve(SUBTASK.RETURNED, lower(values, out));
      const early = subtask.state === SUBTASK.STARTING;
      subtask.resolve(early ? SUBTASK.CANCELLED_BEFORE_STARTED : SUBTASK.CANCELLED_BEFORE_RETURNED, []);
    };
    subtask.onCancel = item.start(onStart, onResolve, instance);
    if (!isAsync) {
      const finish = () => {
        subtask.deliverResolve();
        return subtask.flatResults[0];
      };
      return subtask.resolved ? finish() : thread.waitInCore(() => subtask.resolved, false, finish);
    }
    if (subtask.resolved) {
      subtask.deliverResolve();
      return SUBTASK.RETURNED;
    }
    const index = instance.handles.add(subtask);
    onProgress = () =>
      subtask.setPending(() => {
        if (subtask.resolved) subtask.deliverResolve();
        return [1, index, subtask.state];
      });
    return subtask.state | (index << 4);
  };
}
