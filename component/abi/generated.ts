/**
 * The generated layer of lifting and lowering. In: types, options. Out: factories of functions, made once per type and
 * pointer type and instantiated per environment. Invariant: the source depends on types only, never on values or on an
 * instance.
 */
import { Delivery } from "@waft/engine";
import type { FuncType, ValType } from "../model/types.ts";
import { Emitter } from "./emitter.ts";
import { CHARGED_COST } from "./guest_memory.ts";
import {
  fieldOffsets,
  flattenAll,
  hasRanges,
  liftCost,
  paramTypes,
  type PointerType,
  resultTypes,
  tupleLayout,
} from "./layout.ts";
import { type AbiEnv, RUNTIME_NAMES, runtimeOf } from "./runtime.ts";
import { trap } from "./traps.ts";

/** A core value as the engine passes it. */
export type CoreValue = number | bigint;

/** Lifts a sequence of values. */
export type Lifter = (flat: readonly CoreValue[]) => unknown[];
/** Lowers a sequence of values; `out` is the pointer for values that do not fit, if the caller provides it. */
export type Lowerer = (values: readonly unknown[], out?: CoreValue) => CoreValue[];

/** Transfers elements of streams and futures. */
export interface ElementCodec {
  load(pointer: number, count: number): ArrayLike<unknown>;
  store(values: ArrayLike<unknown>, pointer: number): void;
}

/** The guest's side of an exported function. */
export interface ExportHooks {
  /** The core function. */
  readonly core: (...args: CoreValue[]) => unknown;
  /** Called with the core results after the result has been lifted. */
  readonly postReturn: ((...results: CoreValue[]) => void) | undefined;
  /** Called before arguments are lowered; traps if the instance cannot be entered. Returns the state of the call. */
  enter(): unknown;
  /** Called once all arguments have been lowered, before the core function. */
  readonly lowered: (() => void) | undefined;
  /** Called once the results have been lifted, before `postReturn`. */
  resolved(call: unknown): void;
  /** Called after the call. */
  leave(call: unknown): void;
  /**
   * Called with an error that the call ended with, and whether the core function was called; returns the error to
   * throw.
   */
  failed(error: unknown, call: unknown, called: boolean): unknown;
}

/** The host's side of an imported function. */
export interface ImportHooks {
  /** The function that implements the import. */
  readonly call: (...args: unknown[]) => unknown;
  /** Called before arguments are lifted. Returns the state of the call. */
  enter(): unknown;
  /** Called after the results have been lowered. */
  leave(call: unknown): void;
}

/** Code for one use of a type, before it is bound to an environment. */
export interface Template<T> {
  /** The types of which `AbiEnv.handles` needs codecs, in order. */
  readonly handles: readonly ValType[];
  bind(env: AbiEnv): T;
}

/** The layer that lifts and lowers; another ABI replaces it. */
export interface AbiLayer {
  lifter(types: readonly ValType[], pointer: PointerType, most: number): Template<Lifter>;
  lowerer(types: readonly ValType[], pointer: PointerType, most: number): Template<Lowerer>;
  elements(type: ValType, pointer: PointerType): Template<ElementCodec>;
  exported(type: FuncType, pointer: PointerType): Template<(hooks: ExportHooks) => (...args: unknown[]) => unknown>;
  imported(type: FuncType, pointer: PointerType): Template<(hooks: ImportHooks) => (...args: CoreValue[]) => unknown>;
}

function build<T>(emitter: Emitter, result: string): Template<T> {
  const source = `"use strict";
const { ${RUNTIME_NAMES.join(", ")} } = r; const m = env.memory; const h = env.handles; let count = 0;
${emitter.declarations}
${result}`;
  const make = new Function("env", "r", "trap", "Delivery", source) as (
    env: AbiEnv,
    r: object,
    fail: typeof trap,
    delivery: typeof Delivery,
  ) => T;
  return { handles: emitter.handles, bind: (env) => make(env, runtimeOf(env), trap, Delivery) };
}

function at(pointer: string, offset: number): string {
  return offset === 0 ? pointer : `${pointer} + ${offset}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Statements that lift values into names; returns the names. `flat` are names of core values. */
function liftAll(
  emitter: Emitter,
  types: readonly ValType[],
  most: number,
  flat: readonly string[],
  out: string[],
): string[] {
  if (hasRanges(types)) out.push("m.beginLift();");
  if (flattenAll(types, emitter.pointer, most) !== undefined) {
    let k = 0;
    return types.map((type) => {
      const value = emitter.liftFlat(type, () => flat[k++], out);
      const name = emitter.fresh("a");
      out.push(`const ${name} = ${value};`);
      return name;
    });
  }
  const { size, align } = tupleLayout(types, emitter.pointer);
  const p = emitter.fresh("p");
  const cost = sum(types.map(liftCost));
  out.push(
    `const ${p} = ${emitter.pointerIn(flat[0])}; m.refresh(); m.check(${p}, ${align}, ${size}, "pointer to values");`,
    cost < CHARGED_COST ? "" : `m.beginLift(); m.charge(${cost}); m.spend(${cost});`,
  );
  const offsets = fieldOffsets(types, emitter.pointer);
  return types.map((type, k) => {
    const name = emitter.fresh("a");
    out.push(`const ${name} = ${emitter.load(type, at(p, offsets[k]))};`);
    return name;
  });
}

/** Statements that lower values; returns expressions of the core values. `pointer` is the caller's pointer, if any. */
function lowerAll(
  emitter: Emitter,
  types: readonly ValType[],
  most: number,
  values: readonly string[],
  pointer: string | undefined,
  out: string[],
): string[] {
  if (flattenAll(types, emitter.pointer, most) !== undefined) {
    return types.flatMap((type, k) => emitter.lowerFlat(type, values[k], out));
  }
  const { size, align } = tupleLayout(types, emitter.pointer);
  const p = emitter.fresh("p");
  if (pointer === undefined) out.push(`const ${p} = m.allocate(${align}, ${size});`);
  else {
    out.push(
      `const ${p} = ${
        emitter.pointerIn(pointer)
      }; m.refresh(); m.check(${p}, ${align}, ${size}, "pointer to results");`,
    );
  }
  const offsets = fieldOffsets(types, emitter.pointer);
  types.forEach((type, k) => out.push(emitter.store(type, values[k], at(p, offsets[k]))));
  return pointer === undefined ? [emitter.pointerOut(p)] : [];
}

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, k) => `${prefix}${k}`);
}

function makeLifter(types: readonly ValType[], pointer: PointerType, most: number): Template<Lifter> {
  const emitter = new Emitter(pointer);
  const out: string[] = [];
  const count = flattenAll(types, pointer, most)?.length ?? 1;
  const values = liftAll(emitter, types, most, names("f", count), out);
  return build(
    emitter,
    `return function (flat) { const [${names("f", count).join(", ")}] = flat; ${out.join(" ")} return [${
      values.join(", ")
    }]; };`,
  );
}

function makeLowerer(types: readonly ValType[], pointer: PointerType, most: number): Template<Lowerer> {
  const emitter = new Emitter(pointer);
  const given: string[] = [];
  const own: string[] = [];
  const values = names("x", types.length);
  const allocated = lowerAll(emitter, types, most, values, undefined, own);
  const direct = flattenAll(types, pointer, most) !== undefined;
  if (!direct) lowerAll(emitter, types, most, values, "out", given);
  const head = `const [${values.join(", ")}] = values;`;
  const alternative = direct ? "" : `if (out !== undefined) { ${given.join(" ")} return []; }`;
  return build(
    emitter,
    `return function (values, out) { ${head} ${alternative} m.refresh(); ${own.join(" ")} return [${
      allocated.join(", ")
    }]; };`,
  );
}

function makeElements(type: ValType, pointer: PointerType): Template<ElementCodec> {
  const emitter = new Emitter(pointer);
  const list = { kind: "list", element: type } as const;
  const { load, store } = emitter.elementFunctions(list);
  const cost = liftCost(type);
  return build(
    emitter,
    `return { load(p, n) { m.beginLift(); m.charge(n * ${cost}); m.refresh(); return ${load}(p, n); }, store(v, p) { m.refresh(); ${store}(v, p, v.length); } };`,
  );
}

function makeExported(
  type: FuncType,
  pointer: PointerType,
): Template<(hooks: ExportHooks) => (...args: unknown[]) => unknown> {
  const emitter = new Emitter(pointer);
  const lower: string[] = [];
  const lift: string[] = [];
  const params = names("x", type.params.length);
  const args = lowerAll(emitter, paramTypes(type), 16, params, undefined, lower);
  const results = liftAll(emitter, resultTypes(type), 1, ["f0"], lift);
  const needsMemory = lower.some((line) => line.includes("m.") || line.includes("("));
  const call = `core(${args.join(", ")})`;
  const value = results.length === 0 ? "undefined" : results[0];
  return build(
    emitter,
    `return function (hooks) {
  const { core, postReturn, lowered } = hooks;
  return function (${params.join(", ")}) {
    const scope = hooks.enter();
    let called = false;
    try {
      ${needsMemory ? "m.refresh();" : ""} ${lower.join(" ")}
      called = true;
      if (lowered !== undefined) lowered();
      ${results.length === 0 ? `${call};` : `const f0 = ${call};`}
      ${lift.join(" ")}
      hooks.resolved(scope);
      if (postReturn !== undefined) postReturn(${results.length === 0 ? "" : "f0"});
      hooks.leave(scope);
      return ${value};
    } catch (error) { throw hooks.failed(error, scope, called); }
  };
};`,
  );
}

function makeImported(
  type: FuncType,
  pointer: PointerType,
): Template<(hooks: ImportHooks) => (...args: CoreValue[]) => unknown> {
  const emitter = new Emitter(pointer);
  const types = paramTypes(type);
  const lift: string[] = [];
  const lower: string[] = [];
  const count = flattenAll(types, pointer, 16)?.length ?? 1;
  const flat = names("f", count);
  const args = liftAll(emitter, types, 16, flat, lift);
  const outParam = type.result !== undefined && flattenAll([type.result], pointer, 1) === undefined;
  const results = lowerAll(emitter, resultTypes(type), 1, ["x0"], outParam ? "out" : undefined, lower);
  const tail = `${outParam ? "" : "m.refresh();"} ${lower.join(" ")} hooks.leave(scope); return ${
    results[0] ?? "undefined"
  };`;
  const finish = `function finish(x0, scope${outParam ? ", out" : ""}) { ${tail} }`;
  const state = `scope${outParam ? ", out" : ""}`;
  return build(
    emitter,
    `return function (hooks) {
  const { call } = hooks;
  ${finish}
  return function (${[...flat, ...(outParam ? ["out"] : [])].join(", ")}) {
    const scope = hooks.enter();
    ${lift.join(" ")}
    const x0 = call(${args.join(", ")});
    if (x0 instanceof Promise) return new Delivery(x0, (x0) => finish(x0, ${state}));
    return finish(x0, ${state});
  };
};`,
  );
}

/** Memoizes templates by type and a key. */
function memoize<K extends object, T>(): (type: K, key: string, make: () => T) => T {
  const known = new WeakMap<K, Map<string, T>>();
  return (type, key, make) => {
    let byKey = known.get(type);
    if (byKey === undefined) known.set(type, byKey = new Map());
    let made = byKey.get(key);
    if (made === undefined) byKey.set(key, made = make());
    return made;
  };
}

const exportedTemplates = memoize<FuncType, ReturnType<typeof makeExported>>();
const importedTemplates = memoize<FuncType, ReturnType<typeof makeImported>>();

/** Lifting and lowering by generated source. */
export const GENERATED: AbiLayer = {
  lifter: makeLifter,
  lowerer: makeLowerer,
  elements: makeElements,
  exported: (type, pointer) => exportedTemplates(type, pointer, () => makeExported(type, pointer)),
  imported: (type, pointer) => importedTemplates(type, pointer, () => makeImported(type, pointer)),
};
