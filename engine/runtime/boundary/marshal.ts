/**
 * Marshalling: code that transfers arguments and results between JavaScript and the slots of the thread state, one
 * function per function type, generated as JavaScript source so that the host engine can optimize it for that type.
 * Where `new Function` is forbidden (a content security policy, `--disallow-code-generation-from-strings`), an
 * interpreter does the same.
 *
 * Invariant: all arguments are converted before the first slot is written, because a conversion may run user code that
 * calls into WebAssembly again; for the same reason, results are read immediately after the call. User code may also
 * close the instance or start a call that is preempted, so `enter` comes after it, and before references are converted,
 * which a sweep in `enter` would free.
 *
 * The generated functions are factories that depend on the function type alone. They are cached for the realm, so that
 * all engines share the code that the host engine has optimized.
 */
import { THREAD } from "../../abi/context_layout.ts";
import { REF_TAG, REF_TAG_MASK } from "../../abi/gc_layout.ts";
import { F32, F64, type FuncType, HEAP, heapOf, I32, I64, isRef, V128, type ValType } from "../../wasm/types.ts";
import type { NativeRegion } from "../memory/native_region.ts";
import { Awaited, isPromise, isThenable } from "./suspension.ts";
import { type Boundary, readValue, type ReferenceBoundary, writeValue } from "./values.ts";

const { SLOTS, SLOT_SIZE, CALL_CODE, CALL_CONTEXT, CALL_THUNK, CALL_RECORD } = THREAD;

/**
 * Serves calls of one host function: reads arguments from the slots, calls the function, writes results. Propagates the
 * errors of the function.
 */
export interface HostService {
  /**
   * Returns an object instead of writing results if they must be delivered after it settles: a promise, a Suspension, a
   * Delivery or an Awaited (suspension.ts).
   */
  (): object | undefined;
  /** Converts the value of a fulfilled promise and writes results. */
  deliver(value: unknown): void;
  /** The name of the import for messages. */
  readonly label: string;
  /** Whether the promise itself is a valid result. */
  readonly takesPromise: boolean;
}

/** The environment of calls from JavaScript into one exported function. */
export interface CallInEnv {
  state: NativeRegion;
  boundary: Boundary;
  /** If `closed` is set, or `attention` is and its `needsEntry` says so, `enter` must be called first. */
  instance: { readonly closed: boolean };
  thread: { readonly attention: { readonly isSet: boolean; needsEntry(): boolean } };
  /** Throws if the instance is closed or may not be called now; sweeps if a sweep is due; advances pending work. */
  enter: () => void;
  /** `call` of the guest thread. */
  call: () => number;
  /** Serves a status other than DONE. */
  serve: (status: number) => void;
  /** Addresses of the function record, the code, the context and the entry thunk. */
  record: number;
  code: number;
  context: number;
  thunk: number;
}

/** The environment of calls to one host function. */
interface HostEnv {
  state: NativeRegion;
  boundary: Boundary;
  call: (...args: unknown[]) => unknown;
  /** The name of the import for messages. */
  label: string;
  /** Whether promises are ordinary values (JavaScript API) and do not suspend the call. */
  plainPromises: boolean;
  /** The rules of a function whose caller waits for every result, promise or not. */
  suspending?: Suspending | undefined;
}

/** The rules of a suspending import (JavaScript Promise Integration). */
interface Suspending {
  /** Whether the call in progress can be suspended: an asynchronous call, with no JavaScript frame above it. */
  canSuspend(): boolean;
  /** The error for a call that cannot, which is thrown before the function is called. */
  refusal(): Error;
}

/** A call divided in two parts, for calls that may be suspended (AsyncCall). */
export interface CallHalves {
  /**
   * Converts the arguments, enters the instance, and writes them and the addresses of the function to the thread state.
   */
  begin: (args: readonly unknown[]) => void;
  /** Reads the results; must be called immediately after the call ends. */
  finish: () => unknown;
}

/**
 * Property key of host functions whose callers wait for their results, promises or not, in instances that pass promises
 * as values. Such a function is not called where the call cannot be suspended: the caller gets an exception. If the
 * property is a function, it makes that exception.
 */
export const SUSPENDING: unique symbol = Symbol("waft.suspending");

type CallInFactory = (
  env: CallInEnv,
  types: readonly ValType[],
  asDouble: typeof wordAsDouble,
) => (...args: unknown[]) => unknown;
type HostFactory = (env: HostEnv & { isHeld: (value: object) => boolean }, types: readonly ValType[]) => ServiceParts;

interface ServiceParts {
  service: () => object | undefined;
  deliver: (value: unknown) => void;
}

/** Factories by {@linkcode sourceKey}. */
const callInFactories = new Map<string, CallInFactory>();
const hostFactories = new Map<string, HostFactory>();

/** Creates a JavaScript function that calls compiled code of `type`. */
export function makeCallIn(type: FuncType, env: CallInEnv): (...args: unknown[]) => unknown {
  if (type.params.includes(V128) || type.results.includes(V128)) {
    return () => {
      throw new TypeError("A v128 cannot be converted to or from a JavaScript value");
    };
  }
  const key = sourceKey(type);
  let factory = callInFactories.get(key);
  if (factory === undefined) {
    factory = compileSource<CallInFactory>(callInSource(type));
    if (factory === undefined) return interpretedCallIn(type, env);
    callInFactories.set(key, factory);
  }
  return factory(env, [...type.params, ...type.results], wordAsDouble);
}

/** Compiles the factories that exported functions of `types` lack together, which is faster than one by one. */
export function prepareCallIns(types: Iterable<FuncType>): void {
  prepareFactories(callInFactories, types, callInSource);
}

/** Compiles the factories that host functions of `types` lack together. */
export function prepareHostServices(types: Iterable<FuncType>): void {
  prepareFactories(hostFactories, types, hostSource);
}

function prepareFactories<T>(
  factories: Map<string, T>,
  types: Iterable<FuncType>,
  sourceOf: (type: FuncType) => string,
): void {
  const sources = new Map<string, string>();
  for (const type of types) {
    if (type.params.includes(V128) || type.results.includes(V128)) continue;
    const key = sourceKey(type);
    if (!factories.has(key) && !sources.has(key)) sources.set(key, sourceOf(type));
  }
  if (sources.size < 2) return;
  const made = compileSource<T[]>(`[${[...sources.values()].join(",\n")}]`);
  if (made === undefined) return;
  let k = 0;
  for (const key of sources.keys()) factories.set(key, made[k++]);
}

/** Creates the two parts of a call of `type`. */
export function callHalves(type: FuncType, env: CallInEnv): CallHalves {
  const { state, boundary } = env;
  const { params, results } = type;
  if (params.includes(V128) || results.includes(V128)) {
    const refuse = () => {
      throw new TypeError("A v128 cannot be converted to or from a JavaScript value");
    };
    return { begin: refuse, finish: refuse };
  }
  const order = conversionOrder(params);
  return {
    begin: (args) => {
      const scratch = convertAll(params, args, boundary, env.enter, order);
      scratch.forEach((value, i) => storeConverted(state, i, params[i], value));
      setCall(env);
    },
    finish: () => readResults(type, state, boundary),
  };
}

function never(): boolean {
  return false;
}

function always(): boolean {
  return true;
}

/** A function that calls `call` only where the call in progress can be suspended, and whose result is waited for. */
function suspendingCall(call: HostEnv["call"], { canSuspend, refusal }: Suspending): HostEnv["call"] {
  return (...args) => {
    if (!canSuspend()) throw refusal();
    return new Awaited(call(...args));
  };
}

/** Creates the service of a host function of `type`. */
export function makeHostService(type: FuncType, env: HostEnv): HostService {
  const { suspending, plainPromises } = env;
  const { service, deliver } = serviceParts(
    type,
    suspending !== undefined
      ? { ...env, call: suspendingCall(env.call, suspending), isHeld: always }
      : { ...env, isHeld: plainPromises ? never : type.results.some(isRef) ? isPromise : isThenable },
  );
  return Object.assign(service, { deliver, label: env.label, takesPromise: takesPromise(type.results) });
}

/** Whether a promise itself is a valid result of a host function with these results. */
export function takesPromise(results: readonly ValType[]): boolean {
  return results.length === 1 && isRef(results[0]) && heapOf(results[0]) === HEAP.extern;
}

function serviceParts(type: FuncType, env: Parameters<HostFactory>[0]): ServiceParts {
  if (type.params.includes(V128) || type.results.includes(V128)) {
    const refuse = () => {
      throw new TypeError("A v128 cannot be converted to or from a JavaScript value");
    };
    return { service: refuse, deliver: refuse };
  }
  const key = sourceKey(type);
  let factory = hostFactories.get(key);
  if (factory === undefined) {
    factory = compileSource<HostFactory>(hostSource(type));
    if (factory === undefined) return interpretedHost(type, env);
    hostFactories.set(key, factory);
  }
  return factory(env, [...type.params, ...type.results]);
}

/**
 * The key of the function types with the same source: the source knows reference types only by whether they take host
 * values, and receives the types themselves.
 */
function sourceKey({ params, results }: FuncType): string {
  const name = (type: ValType) => isRef(type) ? (takesHostValues(type) ? "host" : "ref") : type;
  return `${params.map(name)}>${results.map(name)}`;
}

/** False once the realm has refused `new Function`. */
let sourceAllowed = true;

/** The value of an expression; undefined where source may not be compiled. */
function compileSource<T>(source: string): T | undefined {
  if (!sourceAllowed) return undefined;
  try {
    return new Function(`"use strict";\nreturn ${source};`)() as T;
  } catch (error) {
    if (!(error instanceof EvalError)) throw error;
    sourceAllowed = false;
    return undefined;
  }
}

/**
 * The order in which values of `types` are converted: references last. A reference that is not rooted yet must not be
 * pending while the conversion of a number runs user code, which may trigger a collection.
 */
function conversionOrder(types: readonly ValType[]): number[] {
  const indices = [...types.keys()];
  return [...indices.filter((i) => !isRef(types[i])), ...indices.filter((i) => isRef(types[i]))];
}

/** Converts values to `types`, in `order`; calls `enter` after the conversions that may run user code. */
function convertAll(
  types: readonly ValType[],
  values: readonly unknown[],
  boundary: ReferenceBoundary,
  enter: () => void = () => {},
  order: readonly number[] = conversionOrder(types),
): unknown[] {
  const words = new Array<unknown>(types.length);
  let hasEntered = false;
  for (const i of order) {
    if (isRef(types[i]) && !hasEntered) {
      enter();
      hasEntered = true;
    }
    words[i] = converted(types[i], values[i], boundary);
  }
  if (!hasEntered) enter();
  return words;
}

const VIEWS = "const { i32, f32, f64, i64 } = env.state;";

/** JavaScript source that converts the expression `value` to a primitive of `type`, which is `types[index]`. */
function convert(type: ValType, value: string, index: number): string {
  if (type === I32) return `${value} | 0`;
  if (type === I64) return `BigInt.asIntN(64, ${value})`;
  if (type === F32 || type === F64) return `+${value}`;
  // Fast path: strings are the most frequent references and fit every type of host values.
  if (takesHostValues(type)) return `hostText(${value}, types[${index}])`;
  return `boundary.toWord(${value}, types[${index}])`;
}

/** Whether every host value has type `type`. */
function takesHostValues(type: ValType): boolean {
  return isRef(type) && (heapOf(type) === HEAP.extern || heapOf(type) === HEAP.any);
}

function store(type: ValType, slot: number, value: string): string {
  const at = SLOTS + slot * SLOT_SIZE;
  if (type === I32) return `i32[${at >> 2}] = ${value};`;
  if (type === I64) return `i64[${at >> 3}] = ${value};`;
  if (type === F32) return `f32[${at >> 2}] = ${value};`;
  if (type === F64) return `f64[${at >> 3}] = ${value};`;
  return `state.setWord(${at}, ${value});`;
}

function load(type: ValType, slot: number, index: number): string {
  const at = SLOTS + slot * SLOT_SIZE;
  if (type === I32) return `i32[${at >> 2}]`;
  if (type === I64) return `i64[${at >> 3}]`;
  if (type === F32) return `f32[${at >> 2}]`;
  if (type === F64) return `f64[${at >> 3}]`;
  if (takesHostValues(type)) return `hostValue(${at >> 2}, types[${index}])`;
  return `boundary.fromWord(state.word(${at}), types[${index}])`;
}

function usesReferences(type: FuncType): boolean {
  return type.params.some(isRef) || type.results.some(isRef);
}

function references(type: FuncType): string {
  if (!usesReferences(type)) return "";
  return `const { state, boundary } = env; const { u32 } = state;
  function hostValue(at, type) {
    const low = u32[at];
    return (low & ${REF_TAG_MASK}) === ${REF_TAG.HOST} && u32[at + 1] === 0 ? boundary.hostValue(low) : boundary.fromWord(state.word(at * 4), type);
  }
  function hostText(value, type) {
    return typeof value === "string" ? boundary.textWord(value) : boundary.toWord(value, type);
  }`;
}

const WORD = new Uint32Array(2);
const DOUBLE = new Float64Array(WORD.buffer);

/**
 * Reinterprets an address as a double, so that one store writes it. No address is a NaN, whose payload might not
 * survive.
 */
function wordAsDouble(word: number): number {
  WORD[0] = word;
  WORD[1] = word / 0x1_0000_0000;
  return DOUBLE[0];
}

function callInSource(type: FuncType): string {
  const names = type.params.map((_, i) => `a${i}`);
  const conversions = (isReference: boolean) =>
    conversionOrder(type.params).filter((i) => isRef(type.params[i]) === isReference)
      .map((i) => `const v${i} = ${convert(type.params[i], `a${i}`, i)};`).join(" ");
  const stored = type.params.map((t, i) => store(t, i, `v${i}`));
  const loads = type.results.map((t, i) => load(t, i, type.params.length + i));
  const result = loads.length === 0 ? "" : loads.length === 1 ? `return ${loads[0]};` : `return [${loads.join(", ")}];`;
  const put = (field: number, name: string) => `f64[${field >> 3}] = ${name};`;
  return `(function (env, types, wordAsDouble) {
  ${VIEWS} ${references(type)}
  const { instance, thread: { attention }, enter, call: run, serve } = env;
  const code = wordAsDouble(env.code), context = wordAsDouble(env.context);
  const thunk = wordAsDouble(env.thunk), record = wordAsDouble(env.record);
  return { call(${names.join(", ")}) {
    ${conversions(false)}
    if (instance.closed || attention.isSet && attention.needsEntry()) enter();
    ${conversions(true)}
    ${stored.join(" ")}
    ${put(CALL_CODE, "code")} ${put(CALL_CONTEXT, "context")} ${put(CALL_THUNK, "thunk")} ${put(CALL_RECORD, "record")}
    const status = run();
    if (status !== 0) serve(status);
    ${result}
  } }.call; // a method: no constructor, as the JavaScript API says
})`;
}

function interpretedCallIn(type: FuncType, env: CallInEnv): (...args: unknown[]) => unknown {
  const { state, boundary } = env;
  const { params } = type;
  return (...args) => {
    const scratch = convertAll(params, args, boundary, env.enter);
    scratch.forEach((value, i) => storeConverted(state, i, params[i], value));
    setCall(env);
    const status = env.call();
    if (status !== 0) env.serve(status);
    return readResults(type, state, boundary);
  };
}

function setCall(env: CallInEnv): void {
  const { state } = env;
  state.setWord(CALL_CODE, env.code);
  state.setWord(CALL_CONTEXT, env.context);
  state.setWord(CALL_THUNK, env.thunk);
  state.setWord(CALL_RECORD, env.record);
}

function readResults({ results }: FuncType, state: NativeRegion, boundary: ReferenceBoundary): unknown {
  if (results.length === 0) return undefined;
  if (results.length === 1) return readValue(state, SLOTS, results[0], boundary);
  return results.map((t, i) => readValue(state, SLOTS + i * SLOT_SIZE, t, boundary));
}

function converted(type: ValType, value: unknown, boundary: ReferenceBoundary): unknown {
  if (type === I32) return (value as number) | 0;
  if (type === I64) return BigInt.asIntN(64, value as bigint);
  if (type === F32 || type === F64) return +(value as number);
  return boundary.toWord(value, type);
}

function storeConverted(state: NativeRegion, slot: number, type: ValType, value: unknown): void {
  const at = SLOTS + slot * SLOT_SIZE;
  if (isRef(type)) state.setWord(at, value as number);
  else writeValue(state, at, type, value, NO_REFERENCES);
}

const NO_REFERENCES: ReferenceBoundary = {
  toWord: () => 0,
  fromWord: () => null,
};

function hostSource(type: FuncType): string {
  const args = type.params.map((t, i) => load(t, i, i)).join(", ");
  const base = type.params.length;
  let deliver: string;
  if (type.results.length === 0) deliver = "";
  else if (type.results.length === 1) {
    const t = type.results[0];
    deliver = `const v0 = ${convert(t, "r", base)}; ${store(t, 0, "v0")}`;
  } else {
    deliver = `r = [...r];
    if (r.length !== ${type.results.length}) throw new TypeError("Host function returned " + r.length + " values instead of ${type.results.length}");
    ${
      conversionOrder(type.results).map((i) => `const v${i} = ${convert(type.results[i], `r[${i}]`, base + i)};`).join(
        " ",
      )
    }
    ${type.results.map((t, i) => store(t, i, `v${i}`)).join(" ")}`;
  }
  return `(function (env, types) {
  ${VIEWS} ${references(type)}
  const { call, isHeld } = env;
  function deliver(r) { ${deliver} }
  function service() {
    ${usesReferences(type) ? "boundary.relieve();" : ""}
    const r = call(${args});
    if (typeof r === "object" && r !== null && isHeld(r)) return r;
    ${type.results.length === 0 ? "" : "deliver(r);"}
  }
  return { service, deliver };
})`;
}

function interpretedHost(type: FuncType, env: Parameters<HostFactory>[0]): ServiceParts {
  const { state, boundary } = env;
  const { params, results } = type;
  const deliver = (result: unknown) => {
    if (results.length === 0) return;
    const list = results.length === 1 ? [result] : [...result as Iterable<unknown>];
    if (list.length !== results.length) {
      throw new TypeError(`Host function returned ${list.length} values instead of ${results.length}`);
    }
    const scratch = convertAll(results, list, boundary);
    scratch.forEach((value, i) => storeConverted(state, i, results[i], value));
  };
  const service = () => {
    if (usesReferences(type)) env.boundary.relieve();
    const result = env.call(...params.map((t, i) => readValue(state, SLOTS + i * SLOT_SIZE, t, boundary)));
    if (typeof result === "object" && result !== null && env.isHeld(result)) return result;
    deliver(result);
  };
  return { service, deliver };
}
