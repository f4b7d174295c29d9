/**
 * Canonical definitions (CanonicalABI, "Canonical Definitions"): the rules of their options and types. Out: the
 * component function that `lift` defines, or the core function that every other one defines.
 */
import {
  I32,
  I64,
  PAGE_BYTES,
  pageBytes,
  type ValType as CoreValType,
  valTypeName,
} from "@waft/engine/internal/wasm/types";
import {
  type CoreType,
  flattenAll,
  liftShape,
  lowerShape,
  MAX_FLAT_PARAMS,
  paramTypes,
  type PointerType,
  resultTypes,
} from "../abi/layout.ts";
import { type Canon, type CanonName, type CanonOption, type CanonOptions, collectOptions } from "../model/canon.ts";
import type { CoreFuncType, FuncType, ValType } from "../model/types.ts";
import { closedFuncType, coreFuncTypeAt } from "./core_types.ts";
import { CONTEXT_SLOTS } from "./limits.ts";
import type { Scope } from "./scope.ts";
import { factsOf } from "./type_facts.ts";
import { resolveRef } from "./types.ts";

const CORE_TYPES: Readonly<Record<CoreType, CoreValType>> = { i32: I32, i64: I64, f32: 0x7d, f64: 0x7c };

/** Adds the function that a canonical definition defines. */
export function defineCanon(scope: Scope, canon: Canon): void {
  if (canon.name === "lift") scope.spaces.funcs.push(lift(scope, canon));
  else scope.spaces.coreFuncs.push(closedFuncType(coreFunction(scope, canon)));
}

type OptionKind = CanonOption["kind"];

/** Options that each definition takes. */
const ALLOWED: Partial<Record<CanonName, ReadonlySet<OptionKind>>> = {
  "lift": new Set(["string-encoding", "memory", "realloc", "post-return", "async", "callback"]),
  "lower": new Set(["string-encoding", "memory", "realloc", "async"]),
  "task.return": new Set(["string-encoding", "memory"]),
  "stream.read": new Set(["string-encoding", "memory", "realloc", "async"]),
  "stream.write": new Set(["string-encoding", "memory", "realloc", "async"]),
  "future.read": new Set(["string-encoding", "memory", "realloc", "async"]),
  "future.write": new Set(["string-encoding", "memory", "realloc", "async"]),
  "error-context.new": new Set(["string-encoding", "memory", "realloc"]),
  "error-context.debug-message": new Set(["string-encoding", "memory", "realloc"]),
};

/** Options with the type of pointers into their memory. */
interface Options extends CanonOptions {
  readonly pointer: PointerType;
}

function checkOptions(scope: Scope, name: CanonName, options: readonly CanonOption[]): Options {
  checkRepeated(scope, options);
  const allowed = ALLOWED[name];
  for (const { kind } of options) {
    if (allowed?.has(kind)) continue;
    scope.fail(
      `canonical option \`${kind}\` cannot be specified for ${name === "lower" ? "lowerings" : `\`${name}\``}`,
    );
  }
  const collected = collectOptions(options);
  const { memory, realloc } = collected;
  const address = memory === undefined ? I32 : memoryAddress(scope, memory);
  const pointer = address === I64 ? "i64" : "i32";
  if (realloc !== undefined) {
    if (memory === undefined) scope.fail("canonical option `realloc` requires `memory` to also be specified");
    checkFunction(scope, "realloc", realloc, { params: [address, address, address, address], results: [address] });
  }
  return { ...collected, pointer };
}

/** The type of addresses of a memory that canonical functions use. */
function memoryAddress(scope: Scope, index: number): CoreValType {
  const type = scope.at("coreMemories", index);
  const { shared, limits } = type;
  if (shared) {
    scope.fail("mismatch in the shared flag for memories: canonical functions use memories that are not shared");
  }
  if (pageBytes(type) !== PAGE_BYTES) {
    scope.fail("mismatch in page size for memories: canonical functions use memories with pages of 64 KiB");
  }
  return limits.address;
}

function checkRepeated(scope: Scope, options: readonly CanonOption[]): void {
  const seen = new Set<OptionKind>();
  let encoding: string | undefined;
  for (const option of options) {
    if (option.kind === "string-encoding") {
      const name = option.encoding.replace("+", "-");
      if (encoding !== undefined) {
        scope.fail(`canonical encoding option \`${encoding}\` conflicts with option \`${name}\``);
      }
      encoding = name;
    } else if (seen.has(option.kind)) scope.fail(`canonical option \`${option.kind}\` is specified more than once`);
    seen.add(option.kind);
  }
}

type Signature = Pick<CoreFuncType, "params" | "results">;

function sameTypes(a: readonly CoreValType[], b: readonly CoreValType[]): boolean {
  return a.length === b.length && a.every((type, i) => type === b[i]);
}

function checkFunction(scope: Scope, option: string, index: number, expected: Signature): void {
  const { params, results } = scope.at("coreFuncs", index).type;
  if (sameTypes(params, expected.params) && sameTypes(results, expected.results)) return;
  scope.fail(`canonical option \`${option}\` uses a core function with an incorrect signature`);
}

function need(scope: Scope, options: Options, option: "memory" | "realloc"): void {
  if (options[option] === undefined) scope.fail(`canonical option \`${option}\` is required`);
}

/** Values pass from component to core code: lists need memory, which the component allocates. */
function needForLowering(scope: Scope, options: Options, types: readonly ValType[]): void {
  if (!types.some((type) => factsOf(type).needsMemory)) return;
  need(scope, options, "memory");
  need(scope, options, "realloc");
}

/** Values pass from core code to component: lists are read from memory. */
function needForLifting(scope: Scope, options: Options, types: readonly ValType[]): void {
  if (types.some((type) => factsOf(type).needsMemory)) need(scope, options, "memory");
}

function coreTypes(types: readonly CoreType[]): CoreValType[] {
  return types.map((type) => CORE_TYPES[type]);
}

function checkAsync(scope: Scope, type: FuncType, options: Options): void {
  if (options.async && !type.async) scope.fail("the `async` canonical option requires an async function type");
  if (options.async && options.postReturn !== undefined) {
    scope.fail("canonical option `post-return` cannot be specified with `async`");
  }
  if (options.callback !== undefined) {
    if (!options.async) scope.fail("canonical option `callback` cannot be specified without `async`");
    checkFunction(scope, "callback", options.callback, { params: [I32, I32, I32], results: [I32] });
  }
}

function lift(scope: Scope, canon: Extract<Canon, { name: "lift" }>): FuncType {
  const type = scope.at("types", canon.type);
  if (type.kind !== "func") scope.fail(`type index ${canon.type} is not a function type`);
  const { params, results } = scope.at("coreFuncs", canon.func).type;
  const options = checkOptions(scope, "lift", canon.options);
  checkAsync(scope, type, options);
  needForLowering(scope, options, paramTypes(type));
  needForLifting(scope, options, resultTypes(type));
  const { pointer, async: isAsync, callback } = options;
  const shape = liftShape(type, { pointer, isAsync, hasCallback: callback !== undefined });
  if (shape.flatParams === undefined) {
    need(scope, options, "memory");
    need(scope, options, "realloc");
  }
  const inMemory = isAsync
    ? flattenAll(resultTypes(type), pointer, MAX_FLAT_PARAMS) === undefined
    : shape.flatResults === undefined;
  if (inMemory) need(scope, options, "memory");
  matchSignature(scope, canon.func, { params, results }, {
    params: coreTypes(shape.params),
    results: coreTypes(shape.results),
  });
  if (options.postReturn !== undefined) {
    checkFunction(scope, "post-return", options.postReturn, { params: [...results], results: [] });
  }
  return type;
}

function matchSignature(scope: Scope, func: number, actual: Signature, expected: Signature): void {
  const text = (types: readonly CoreValType[]) =>
    `[${types.map((type) => valTypeName(type).toUpperCase()).join(", ")}]`;
  for (const [key, what] of [["params", "parameter"], ["results", "result"]] as const) {
    if (sameTypes(actual[key], expected[key])) continue;
    const wanted = `lowered ${what} types \`${text(expected[key])}\``;
    scope.fail(`${wanted} do not match ${what} types \`${text(actual[key])}\` of core function ${func}`);
  }
}

function lower(scope: Scope, canon: Extract<Canon, { name: "lower" }>): CoreFuncType {
  const type = scope.at("funcs", canon.func);
  const options = checkOptions(scope, "lower", canon.options);
  checkAsync(scope, type, options);
  needForLifting(scope, options, paramTypes(type));
  needForLowering(scope, options, resultTypes(type));
  const shape = lowerShape(type, { pointer: options.pointer, isAsync: options.async, hasCallback: false });
  if (shape.flatParams === undefined || shape.flatResults === undefined) need(scope, options, "memory");
  return { kind: "func", params: coreTypes(shape.params), results: coreTypes(shape.results) };
}

function signature(params: readonly CoreValType[], results: readonly CoreValType[]): CoreFuncType {
  return { kind: "func", params: [...params], results: [...results] };
}

const NOTHING = signature([], []);
const MAKE = signature([], [I32]);
const TAKE = signature([I32], []);
const TURN = signature([I32], [I32]);

function coreFunction(scope: Scope, canon: Exclude<Canon, { name: "lift" }>): CoreFuncType {
  switch (canon.name) {
    case "lower":
      return lower(scope, canon);
    case "resource.new":
      return signature([localResource(scope, canon.type)], [I32]);
    case "resource.rep":
      return signature([I32], [localResource(scope, canon.type)]);
    case "resource.drop":
      scope.resourceAt(canon.type);
      return TAKE;
    case "task.return":
      return taskReturn(scope, canon);
    case "context.get":
      return signature([], [contextSlot(scope, canon)]);
    case "context.set":
      return signature([contextSlot(scope, canon)], []);
    case "task.cancel":
    case "backpressure.inc":
    case "backpressure.dec":
      return NOTHING;
    case "subtask.drop":
    case "waitable-set.drop":
    case "thread.resume-later":
    case "error-context.drop":
      return TAKE;
    case "waitable-set.new":
    case "thread.index":
    case "thread.yield":
    case "thread.suspend":
      return MAKE;
    case "subtask.cancel":
    case "thread.suspend-then-resume":
    case "thread.yield-then-resume":
    case "thread.suspend-then-promote":
    case "thread.yield-then-promote":
      return TURN;
    case "waitable.join":
      return signature([I32, I32], []);
    case "waitable-set.wait":
    case "waitable-set.poll":
      return signature([I32, memoryAddress(scope, canon.memory)], [I32]);
    case "error-context.new":
    case "error-context.debug-message":
      return errorContext(scope, canon);
    case "thread.new-indirect":
      return newThread(scope, canon.coreType, canon.table);
    case "thread.spawn-ref":
    case "thread.spawn-indirect":
    case "thread.available-parallelism":
      return scope.fail(`\`${canon.name}\` is not supported: shared threads are an unfinished feature`);
    default:
      return channelFunction(scope, canon);
  }
}

function localResource(scope: Scope, index: number): CoreValType {
  const { id } = scope.resourceAt(index);
  if (!scope.local.has(id)) scope.fail(`type index ${index} is not a local resource`);
  return id.rep ?? I32;
}

function contextSlot(scope: Scope, { slotType, slot }: { slotType: CoreValType; slot: number }): CoreValType {
  if (slotType !== I32 && slotType !== I64) scope.fail("a context slot must be of type i32 or i64");
  if (slot >= CONTEXT_SLOTS) scope.fail(`context slot ${slot} is out of bounds: there are ${CONTEXT_SLOTS}`);
  scope.contextType ??= slotType;
  if (scope.contextType !== slotType) {
    scope.fail("all `context.get` and `context.set` of a component must have the same type, i32 or i64");
  }
  return slotType;
}

function taskReturn(scope: Scope, canon: Extract<Canon, { name: "task.return" }>): CoreFuncType {
  const types = canon.result === undefined ? [] : [resolveRef(scope, canon.result)];
  if (types.some((type) => factsOf(type).borrows)) scope.fail("function result cannot contain a `borrow` type");
  const options = checkOptions(scope, "task.return", canon.options);
  needForLifting(scope, options, types);
  const flat = flattenAll(types, options.pointer, MAX_FLAT_PARAMS);
  if (flat === undefined) need(scope, options, "memory");
  return signature(coreTypes(flat ?? [options.pointer]), []);
}

function errorContext(
  scope: Scope,
  canon: Extract<Canon, { name: "error-context.new" | "error-context.debug-message" }>,
): CoreFuncType {
  const options = checkOptions(scope, canon.name, canon.options);
  need(scope, options, "memory");
  const pointer = CORE_TYPES[options.pointer];
  if (canon.name === "error-context.new") return signature([pointer, pointer], [I32]);
  need(scope, options, "realloc");
  return signature([I32, pointer], []);
}

function newThread(scope: Scope, coreType: number, table: number): CoreFuncType {
  const { params, results } = coreFuncTypeAt(scope, coreType);
  if (params.length !== 1 || (params[0] !== I32 && params[0] !== I64) || results.length > 0) {
    scope.fail("the start function of a thread must take one i32 or i64 and return nothing");
  }
  const { element, limits } = scope.at("coreTables", table);
  if (valTypeName(element) !== "funcref") scope.fail("the table of a thread's start functions must be of type funcref");
  return signature([limits.address, params[0]], [I32]);
}

type ChannelCanon = Extract<Canon, { name: `stream.${string}` | `future.${string}` }>;

function channelFunction(scope: Scope, canon: ChannelCanon): CoreFuncType {
  const kind = canon.name.startsWith("stream.") ? "stream" : "future";
  const type = scope.at("types", canon.type);
  if (type.kind !== kind) return scope.fail(`type index ${canon.type} is not a ${kind} type`);
  switch (canon.name) {
    case "stream.new":
    case "future.new":
      return signature([], [I64]);
    case "stream.drop-readable":
    case "stream.drop-writable":
    case "future.drop-readable":
    case "future.drop-writable":
      return TAKE;
    case "stream.cancel-read":
    case "stream.cancel-write":
    case "future.cancel-read":
    case "future.cancel-write":
      return TURN;
  }
  const options = checkOptions(scope, canon.name, canon.options);
  checkTransfer(scope, canon.name, options, type.element);
  const pointer = CORE_TYPES[options.pointer];
  return kind === "stream" ? signature([I32, pointer, pointer], [pointer]) : signature([I32, pointer], [I32]);
}

function checkTransfer(scope: Scope, name: CanonName, options: Options, element: ValType | undefined): void {
  if (element === undefined) return;
  if (name.endsWith(".read")) needForLowering(scope, options, [element]);
  else needForLifting(scope, options, [element]);
  need(scope, options, "memory");
}
