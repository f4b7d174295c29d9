/**
 * The text of a fused adapter: the protocol of a call from one component to another (Canonical ABI: canon lower, canon
 * lift, without tasks). In: the type of the function and the canonical options of both sides. Out: a core module that
 * exports the adapter `f`, and the list of its imports. Invariant: effects happen in the order of a call through
 * JavaScript, with one exception: the result is lowered before `post-return` is called, as the specification requires,
 * because an adapter reads the callee's memory while it lowers. A call through JavaScript has copied the result before.
 */
import { AdapterModule, AdapterSide, type SideOptions } from "../abi/adapter_module.ts";
import { CHARGED_COST, MAX_LIFT_COST } from "../abi/guest_memory.ts";
import { isTransferable, ValueTransfer } from "../abi/adapter_values.ts";
import {
  type CoreType,
  fieldOffsets,
  hasRanges,
  liftCost,
  liftShape,
  lowerShape,
  paramTypes,
  someType,
  tupleLayout,
} from "../abi/layout.ts";
import type { FuncType, ValType } from "../model/types.ts";

/** The parts of a call that its text depends on. */
interface AdapterCall {
  readonly type: FuncType;
  readonly caller: SideOptions;
  readonly callee: SideOptions;
  readonly hasPostReturn: boolean;
  /** The number of component instances that the call enters. */
  readonly entered: number;
}

/** The text of an adapter and its imports. */
export interface AdapterText {
  readonly text: string;
  /** The messages of `trap.f`, by its argument. */
  readonly messages: readonly string[];
  /** The types of handles among the parameters and in the result: imports `lift-N-SIDE` and `lower-N-SIDE`. */
  readonly handles: { readonly params: readonly ValType[]; readonly result: readonly ValType[] };
  readonly usesMemory: { readonly caller: boolean; readonly callee: boolean };
  readonly usesRealloc: { readonly caller: boolean; readonly callee: boolean };
  /** Whether handles are lent to the callee for the call. */
  readonly lends: boolean;
}

/** Values of more bytes exceed the offsets of an instruction. */
const MAX_VALUE_BYTES = 2 ** 28;
/** An adapter of more functions costs more to compile than it saves. */
const MAX_FUNCTIONS = 100;

/** The text of the adapter; undefined if the call has values that no adapter passes. */
export function adapterText(call: AdapterCall): AdapterText | undefined {
  const { type } = call;
  const types = [...paramTypes(type), ...(type.result === undefined ? [] : [type.result])];
  if (types.some((part) => someType(part, (inner) => !isTransferable(inner)))) return undefined;
  const sizes = [call.caller, call.callee].map(({ pointer }) => tupleLayout(types, pointer).size);
  if (Math.max(...sizes) > MAX_VALUE_BYTES) return undefined;
  return new CallText(call, types).finish();
}

const BEGIN_LIFT = `(global.set $left (i64.const ${MAX_LIFT_COST}))`;

const locals = (prefix: string, types: readonly CoreType[]): string[] => types.map((_, k) => `$${prefix}${k}`);
const get = (name: string): string => `(local.get ${name})`;
const declare = (kind: "param" | "local", names: readonly string[], types: readonly CoreType[]): string =>
  names.map((name, k) => `(${kind} ${name} ${types[k]})`).join(" ");
const signature = (params: readonly CoreType[], results: readonly CoreType[]): string =>
  [...params.map((core) => `(param ${core})`), ...results.map((core) => `(result ${core})`)].join(" ");

class CallText {
  readonly #call: AdapterCall;
  readonly #module = new AdapterModule();
  readonly #caller: AdapterSide;
  readonly #callee: AdapterSide;
  readonly #params: ValueTransfer;
  readonly #result: ValueTransfer;
  readonly #locals: string[] = [];
  readonly #lends: boolean;

  constructor(call: AdapterCall, types: readonly ValType[]) {
    this.#call = call;
    this.#caller = new AdapterSide(this.#module, "caller", call.caller);
    this.#callee = new AdapterSide(this.#module, "callee", call.callee);
    this.#params = new ValueTransfer(this.#caller, this.#callee);
    this.#result = new ValueTransfer(this.#callee, this.#caller);
    this.#lends = types.some((type) => someType(type, ({ kind }) => kind === "borrow"));
  }

  finish(): AdapterText | undefined {
    const body = this.#body();
    if (this.#module.size > MAX_FUNCTIONS) return undefined;
    const { usesMemory: callerMemory, usesRealloc: callerRealloc } = this.#caller;
    const { usesMemory: calleeMemory, usesRealloc: calleeRealloc } = this.#callee;
    return {
      text: `(module\n  ${this.#imports().join("\n  ")}\n  (global $left (mut i64) (i64.const 0))
  ${body}\n  ${this.#module.functions})`,
      messages: this.#module.messages,
      handles: { params: this.#params.handles, result: this.#result.handles },
      usesMemory: { caller: callerMemory, callee: calleeMemory },
      usesRealloc: { caller: callerRealloc, callee: calleeRealloc },
      lends: this.#lends,
    };
  }

  get #flags(): string[] {
    return Array.from({ length: this.#call.entered }, (_, k) => `$e${k}`);
  }

  #imports(): string[] {
    const { params, results } = this.#calleeShape;
    return [
      `(import "callee" "f" (func $f ${signature(params, results)}))`,
      this.#call.hasPostReturn ? `(import "callee" "post" (func $post ${signature(results, [])}))` : "",
      `(import "store" "flags" (memory $flags 1))`,
      ...[this.#caller, this.#callee].flatMap((side) => sideImports(side)),
      ...this.#flags.map((global) => `(import "at" "${global.slice(1)}" (global ${global} i32))`),
      `(import "trap" "f" (func $trap (param i32)))`,
      ...handleImports(this.#params, "caller"),
      ...handleImports(this.#result, "callee"),
      ...(this.#lends
        ? [
          `(import "lend" "begin" (func $lend (result externref)))`,
          `(import "lend" "end" (func $unlend (param externref)))`,
          `(import "task" "begin" (func $begin-task (result externref)))`,
          `(import "task" "check" (func $check-task))`,
          `(import "task" "end" (func $end-task (param externref)))`,
        ]
        : []),
    ].filter((line) => line !== "");
  }

  get #calleeShape() {
    return liftShape(this.#call.type, { pointer: this.#callee.pointer, isAsync: false, hasCallback: false });
  }

  #each(text: (global: string) => string): string {
    return this.#flags.map(text).join(" ");
  }

  #body(): string {
    const { type, hasPostReturn } = this.#call;
    const lowered = lowerShape(type, { pointer: this.#caller.pointer, isAsync: false, hasCallback: false });
    const lifted = this.#calleeShape;
    const given = locals("x", lowered.params);
    const args = locals("y", lifted.params);
    const returned = locals("r", lifted.results);
    const results = locals("z", lowered.results);
    const lines = [
      this.#require("$leave-caller", "cannot leave component instance"),
      this.#lends ? "(local.set $scope (call $lend))" : "",
      this.#checkParams(lowered.flatParams === undefined, given),
      this.#each((global) => this.#require(global, "cannot enter component instance")),
      this.#each((global) => `(i32.store8 $flags (global.get ${global}) (i32.const 0))`),
      this.#lends ? "(local.set $before (call $begin-task))" : "",
      this.#copyParams(lowered.flatParams === undefined, given, args),
      `(call $f ${args.map(get).join(" ")}) ${returned.map((name) => `(local.set ${name})`).join(" ")}`,
      ...this.#results(lifted.flatResults === undefined, given[given.length - 1], returned, results),
      hasPostReturn
        ? `${this.#callee.setLeave(false)} (call $post ${returned.map(get).join(" ")}) ${this.#callee.setLeave(true)}`
        : "",
      this.#each((global) => `(i32.store8 $flags (global.get ${global}) (i32.const 1))`),
      this.#lends ? `(call $end-task ${get("$before")}) (call $unlend ${get("$scope")})` : "",
      results.map(get).join(" "),
    ];
    return `(func (export "f") ${declare("param", given, lowered.params)} ${signature([], lowered.results)}
    ${declare("local", args, lifted.params)} ${declare("local", returned, lifted.results)}
    ${declare("local", results, lowered.results)} ${this.#locals.join(" ")}
    (local $a i64) (local $n i64) (local $p i64) (local $q i64)
    ${this.#lends ? "(local $scope externref) (local $before externref)" : ""}
    ${lines.filter((line) => line !== "").join("\n    ")})`;
  }

  /** Traps unless the flag at the address in `global` is set. */
  #require(global: string, message: string): string {
    return this.#module.trapIf(`(i32.eqz (i32.load8_u $flags (global.get ${global})))`, message);
  }

  /** Instructions that begin to lift values of `types`: their cost is unspent, and no handle has been lifted. */
  #begin(transfer: ValueTransfer, side: string, types: readonly ValType[]): string {
    const start = transfer.handles.length > 0 ? `(call $start-${side})` : "";
    return `${start} ${hasRanges(types) ? BEGIN_LIFT : ""}`;
  }

  /** Charges for values in memory that are large themselves. */
  #charge(types: readonly ValType[]): string {
    const cost = types.reduce((sum, type) => sum + liftCost(type), 0);
    if (cost < CHARGED_COST) return "";
    return `${BEGIN_LIFT} ${this.#module.charge(`(i64.const ${cost})`)}`;
  }

  #checkParams(inMemory: boolean, given: readonly string[]): string {
    const types = paramTypes(this.#call.type);
    const check = inMemory
      ? this.#checkTuple(this.#params, this.#caller, types, given[0])
      : this.#params.checkAllFlat(types, given.map(get));
    return `${this.#begin(this.#params, "caller", types)} ${check}`;
  }

  /** Checks values in memory, whose address is the flat pointer in `pointer`. */
  #checkTuple(transfer: ValueTransfer, side: AdapterSide, types: readonly ValType[], pointer: string): string {
    const { size, align } = tupleLayout(types, side.pointer);
    const offsets = fieldOffsets(types, side.pointer);
    return `(local.set $p ${side.in(get(pointer))})
    ${side.check(get("$p"), align, `(i64.const ${size})`, "pointer to values")}
    ${this.#charge(types)}
    ${types.map((type, k) => transfer.check(type, "$p", offsets[k])).join(" ")}`;
  }

  #copyTuple(transfer: ValueTransfer, from: AdapterSide, to: AdapterSide, types: readonly ValType[]): string {
    const at = fieldOffsets(types, from.pointer);
    const target = fieldOffsets(types, to.pointer);
    return types.map((type, k) => transfer.copy(type, "$p", at[k], "$q", target[k])).join(" ");
  }

  #copyParams(inMemory: boolean, given: readonly string[], args: readonly string[]): string {
    const types = paramTypes(this.#call.type);
    if (!inMemory) return this.#params.copyAllFlat(types, given.map(get), args, this.#locals);
    const callee = this.#callee;
    const { size, align } = tupleLayout(types, callee.pointer);
    return `(local.set $q ${callee.allocate(align, `(i64.const ${size})`)})
    (local.set ${args[0]} ${callee.out(get("$q"))})
    ${this.#copyTuple(this.#params, this.#caller, callee, types)}`;
  }

  /** `out` is the caller's pointer to a result that is in memory. */
  #results(inMemory: boolean, out: string, returned: readonly string[], results: readonly string[]): string[] {
    const { result } = this.#call.type;
    const checkTask = this.#lends ? "(call $check-task)" : "";
    if (result === undefined) return [checkTask];
    const types = [result];
    const [callee, caller] = [this.#callee, this.#caller];
    if (!inMemory) {
      const flat = returned.map(get);
      const check = this.#result.checkAllFlat(types, flat);
      const begin = this.#begin(this.#result, "callee", types);
      return [begin, check, checkTask, this.#result.copyAllFlat(types, flat, results, this.#locals)];
    }
    const check = this.#checkTuple(this.#result, callee, types, returned[0]);
    const begin = this.#begin(this.#result, "callee", types);
    const { size, align } = tupleLayout(types, caller.pointer);
    const place = `(local.set $q ${caller.in(get(out))})
    ${caller.check(get("$q"), align, `(i64.const ${size})`, "pointer to results")}`;
    return [begin, check, checkTask, place, this.#copyTuple(this.#result, callee, caller, types)];
  }
}

function sideImports(side: AdapterSide): string[] {
  const { name, pointer, usesMemory, usesRealloc } = side;
  const address = pointer === "i64" ? "i64 " : "";
  return [
    `(import "at" "leave-${name}" (global $leave-${name} i32))`,
    usesMemory ? `(import "${name}" "memory" (memory ${side.memory} ${address}0))` : "",
    usesRealloc
      ? `(import "${name}" "realloc" (func $realloc-${name} ${
        signature([pointer, pointer, pointer, pointer], [pointer])
      }))`
      : "",
  ];
}

function handleImports({ handles }: ValueTransfer, side: string): string[] {
  if (handles.length === 0) return [];
  const each = handles.flatMap((_, k) => [
    `(import "handle" "lift-${k}-${side}" (func $lift-${k}-${side} (param i32)))`,
    `(import "handle" "lower-${k}-${side}" (func $lower-${k}-${side} (result i32)))`,
  ]);
  return [`(import "handle" "start-${side}" (func $start-${side}))`, ...each];
}
