/**
 * Fused adapters: calls between components as core code of ours, which the engine compiles and links like any other.
 * In: a lifted function, the options of the caller. Out: a core function with the effects of lifting, calling and
 * lowering; undefined for functions that need more than numbers. Invariant: an adapter checks and sets the same flags
 * as a call through JavaScript, and a trap leaves the callee entered.
 */
import type { Module } from "@waft/engine";
import { liftShape } from "../abi/layout.ts";
import { trap } from "../abi/traps.ts";
import { type ComponentInstance, FLAG } from "../async/component_instance.ts";
import type { CoreFunction } from "../async/core_function.ts";
import type { FuncType, ValType } from "../model/types.ts";
import type { FuncItem } from "./items.ts";

/** Instructions that bring a flat value of each type into its range. */
const NORMALIZE: Readonly<Record<string, string>> = {
  bool: "i32.const 0 i32.ne",
  s8: "i32.extend8_s",
  u8: "i32.const 255 i32.and",
  s16: "i32.extend16_s",
  u16: "i32.const 65535 i32.and",
  s32: "",
  u32: "",
  s64: "",
  u64: "",
  f32: "",
  f64: "",
};

/** Compiles the text of a core module, once per text. */
type CompileAdapter = (text: string) => Module;

/** The adapter for calls of `item` by `caller`; undefined if the function needs more than numbers. */
export function fuse(
  item: FuncItem,
  type: FuncType,
  caller: ComponentInstance,
  compile: CompileAdapter,
): CoreFunction | undefined {
  const { lifted } = item;
  const types = [...type.params.map((param) => param.type), ...(type.result === undefined ? [] : [type.result])];
  if (lifted === undefined || lifted.options.postReturn !== undefined) return undefined;
  if (caller.store.usesAsync || caller.store.needsTasks || types.some(({ kind }) => NORMALIZE[kind] === undefined)) {
    return undefined;
  }
  const shape = liftShape(type, { pointer: "i32", isAsync: false, hasCallback: false });
  if (shape.flatParams === undefined) return undefined;
  const entering = lifted.options.instance.enteringSet(caller);
  const module = compile(adapterText(type, shape.params, shape.results, entering.length));
  const globals = Object.fromEntries(entering.map(({ flags }, k) => [`e${k}`, flags + FLAG.ENTER]));
  const instance = module.instantiate({}, {
    callee: { f: lifted.core },
    store: { flags: caller.store.flagsMemory },
    at: { leave: caller.flags + FLAG.LEAVE, ...globals },
    trap: {
      leave: () => trap("cannot leave component instance"),
      enter: () => trap("cannot enter component instance"),
    },
  });
  caller.store.adapters.push(instance);
  return instance.exports["f"] as CoreFunction;
}

function normalized(type: ValType): string {
  return NORMALIZE[type.kind];
}

function adapterText(
  type: FuncType,
  params: readonly string[],
  results: readonly string[],
  entered: number,
): string {
  const signature = `${params.map((core) => `(param ${core})`).join(" ")} ${
    results.map((core) => `(result ${core})`).join(" ")
  }`;
  const each = (text: (global: string) => string) =>
    Array.from({ length: entered }, (_, k) => text(`$e${k}`)).join(" ");
  const check = (global: string, trap: string) =>
    `(if (i32.eqz (i32.load8_u (global.get ${global}))) (then (call ${trap}) unreachable))`;
  const args = type.params.map((param, k) => `local.get ${k} ${normalized(param.type)}`).join(" ");
  return `(module
  (import "callee" "f" (func $callee ${signature}))
  (import "store" "flags" (memory 1))
  (import "at" "leave" (global $leave i32))
  ${Array.from({ length: entered }, (_, k) => `(import "at" "e${k}" (global $e${k} i32))`).join(" ")}
  (import "trap" "leave" (func $cannot-leave))
  (import "trap" "enter" (func $cannot-enter))
  (func (export "f") ${signature}
    ${check("$leave", "$cannot-leave")}
    ${each((global) => check(global, "$cannot-enter"))}
    ${each((global) => `(i32.store8 (global.get ${global}) (i32.const 0))`)}
    ${args} call $callee ${type.result === undefined ? "" : normalized(type.result)}
    ${each((global) => `(i32.store8 (global.get ${global}) (i32.const 1))`)}))`;
}
