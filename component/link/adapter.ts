/**
 * Fused adapters: calls between components as generated core modules, which the engine compiles and links like others.
 * In: a lifted function, the canonical options of the caller. Out: a core function with the effects of lifting, calling
 * and lowering; undefined for calls that go through JavaScript. An adapter for more than numbers takes milliseconds to
 * compile, so it replaces the call through JavaScript once that has been used. Invariants: an adapter checks and sets
 * the same flags as a call through JavaScript, and a trap leaves the callee entered; a component cannot observe which
 * of the two it uses.
 */
import type { Module } from "@waft/engine";
import { lowerShape, MAX_FLAT_PARAMS, paramTypes } from "../abi/layout.ts";
import { trap } from "../abi/traps.ts";
import { type ComponentInstance, FLAG } from "../async/component_instance.ts";
import type { CoreFunction } from "../async/core_function.ts";
import { Subtask } from "../async/entries.ts";
import { Task, type Thread } from "../async/task.ts";
import type { FuncType, ValType } from "../model/types.ts";
import { type AdapterText, adapterText } from "./adapter_text.ts";
import { codecOf } from "./codecs.ts";
import type { FuncItem } from "./items.ts";
import type { RuntimeOptions } from "./options.ts";

/** The features of the engine that adapters of some calls use. */
export const ADAPTER_FEATURES = [
  "bulk-memory-operations",
  "memory64",
  "multi-memory",
  "multi-value",
  "reference-types",
  "sign-extension-ops",
  "simd",
] as const;

/** Compiles the text of a core module, once per text. */
type CompileAdapter = (text: string) => Module;

/** The means of making adapters. */
export interface AdapterPolicy {
  readonly compile: CompileAdapter;
  /** The calls through JavaScript that precede the compilation of an adapter for more than numbers. */
  readonly callsBefore: number;
  /** False if adapters would take the instances that core modules may need. */
  hasRoom(): boolean;
}

/** Types whose values are numbers, of which an adapter is as small as a trampoline. */
const SCALARS: ReadonlySet<string> = new Set("bool s8 u8 s16 u16 s32 u32 s64 u64 f32 f64 flags".split(" "));

/**
 * The core function for calls of `item` with the options `caller`: an adapter, or a function that becomes one.
 * Undefined if all calls go through JavaScript, which is `slow`.
 */
export function adapterFor(
  item: FuncItem,
  caller: RuntimeOptions,
  policy: AdapterPolicy,
  slow: () => CoreFunction,
): CoreFunction | undefined {
  const { type } = item;
  const types = [...paramTypes(type), ...(type.result === undefined ? [] : [type.result])];
  const isSmall = types.every(({ kind }) => SCALARS.has(kind)) && types.length <= MAX_FLAT_PARAMS;
  if (!policy.hasRoom()) return undefined;
  if (isSmall || policy.callsBefore === 0) return fuse(item, caller, policy.compile);
  return canFuse(item, caller) ? trampoline(item, caller, policy, slow()) : undefined;
}

/** A function that calls `slow` at first, and an adapter later. */
function trampoline(
  item: FuncItem,
  caller: RuntimeOptions,
  { compile, callsBefore, hasRoom }: AdapterPolicy,
  slow: CoreFunction,
): CoreFunction {
  const { params, results } = lowerShape(item.type, { pointer: caller.pointer, isAsync: false, hasCallback: false });
  const { store } = caller.instance;
  let left = callsBefore;
  const complete = () => {
    left = -1;
    const fused = hasRoom() ? fuse(item, caller, compile) : undefined;
    if (fused !== undefined) table.set(0, fused);
    return fused ?? slow;
  };
  const counted: CoreFunction = (...args) => {
    if (left > 0) left--;
    return (left === 0 ? complete() : slow)(...args);
  };
  const instance = compile(trampolineText(params, results)).instantiate({}, { slow: { f: counted } });
  const table = instance.exports["target"] as { set(index: number, value: CoreFunction): void };
  store.adapters.push(instance);
  store.deferredAdapters.push(() => void (left >= 0 && complete()));
  return instance.exports["f"] as CoreFunction;
}

function trampolineText(params: readonly string[], results: readonly string[]): string {
  const signature = `${params.map((core) => `(param ${core})`).join(" ")} ${
    results.map((core) => `(result ${core})`).join(" ")
  }`;
  return `(module
  (import "slow" "f" (func $slow ${signature}))
  (table (export "target") 1 1 funcref)
  (elem (i32.const 0) func $slow)
  (func (export "f") ${signature} ${params.map((_, k) => `(local.get ${k})`).join(" ")}
    (call_indirect ${signature} (i32.const 0))))`;
}

/**
 * Whether the callee is the function of a component, no call of the store can block, and no exception can leave the
 * callee, which is a trap.
 */
function canFuse({ lifted }: FuncItem, { instance: { store } }: RuntimeOptions): boolean {
  return lifted !== undefined && !store.usesAsync && !store.needsTasks && !lifted.options.instance.throws;
}

/** The adapter for calls of `item` with the options `caller`; undefined if the call goes through JavaScript. */
export function fuse(item: FuncItem, caller: RuntimeOptions, compile: CompileAdapter): CoreFunction | undefined {
  const { lifted, type } = item;
  const { store } = caller.instance;
  if (lifted === undefined || !canFuse(item, caller)) return undefined;
  const callee = lifted.options;
  const entering = callee.instance.enteringSet(caller.instance);
  const made = adapterText({
    type,
    caller: sideOf(caller),
    callee: sideOf(callee),
    hasPostReturn: callee.postReturn !== undefined,
    entered: entering.length,
  });
  if (made === undefined || !canShareMemories(made, caller, callee)) return undefined;
  const instance = compile(made.text).instantiate({}, {
    callee: { f: lifted.core, post: callee.postReturn, ...importsOf(callee) },
    caller: importsOf(caller),
    store: { flags: store.flagsMemory },
    at: {
      "leave-caller": caller.instance.flags + FLAG.LEAVE,
      "leave-callee": callee.instance.flags + FLAG.LEAVE,
      ...Object.fromEntries(entering.map(({ flags }, k) => [`e${k}`, flags + FLAG.ENTER])),
    },
    trap: { f: (message: number) => trap(made.messages[message]) },
    handle: {
      ...handleFunctions(made.handles.params, "caller", caller.instance, callee.instance),
      ...handleFunctions(made.handles.result, "callee", callee.instance, caller.instance),
    },
    ...lendFunctions(type, callee.instance),
  });
  store.adapters.push(instance);
  return instance.exports["f"] as CoreFunction;
}

function sideOf({ pointer, encoding, realloc }: RuntimeOptions) {
  return { pointer, encoding, hasRealloc: realloc !== undefined };
}

function importsOf({ memory, realloc }: RuntimeOptions) {
  return { memory, realloc };
}

/**
 * Whether the memories can be imported. Code of the callee could change the values between the two passes of a transfer
 * if both sides had one memory, which only functions of one instance can have, or one that threads share.
 */
function canShareMemories({ usesMemory }: AdapterText, caller: RuntimeOptions, callee: RuntimeOptions): boolean {
  if ([caller, callee].some(({ memory }) => memory?.type.shared)) return false;
  if (usesMemory.caller && caller.memory === undefined) return false;
  if (usesMemory.callee && callee.memory === undefined) return false;
  return !(usesMemory.caller && usesMemory.callee) || caller.instance !== callee.instance;
}

/**
 * The functions that pass handles: `lift` takes a handle from the table of `from`, `lower` puts the next one that was
 * lifted into that of `to`.
 */
function handleFunctions(types: readonly ValType[], side: string, from: ComponentInstance, to: ComponentInstance) {
  const lifted: unknown[] = [];
  let next = 0;
  const functions: Record<string, CoreFunction> = {
    [`start-${side}`]: () => {
      lifted.length = next = 0;
    },
  };
  types.forEach((type, k) => {
    const source = codecOf(type, from, true);
    const target = codecOf(type, to, true);
    functions[`lift-${k}-${side}`] = (index) => {
      lifted.push(source.lift((index as number) >>> 0));
    };
    functions[`lower-${k}-${side}`] = () => target.lower(lifted[next++]);
  });
  return functions;
}

/** The functions by which a call lends handles: it has a subtask on the caller's side and a task on the callee's. */
function lendFunctions(type: FuncType, callee: ComponentInstance) {
  const { store } = callee;
  return {
    lend: {
      begin: () => store.lending = new Subtask(),
      end: (scope: Subtask) => scope.deliverResolve(),
    },
    task: {
      begin: () => {
        const before = store.current;
        store.current = new Task(callee, type, { isAsync: false, hasCallback: false }, () => [], () => {}).thread;
        return before ?? null;
      },
      check: () => {
        if (store.task.borrows > 0) trap("borrow handles still remain at the end of the call");
      },
      end: (before: Thread | null) => {
        store.current = before ?? undefined;
      },
    },
  };
}
