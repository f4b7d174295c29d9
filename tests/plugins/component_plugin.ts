/**
 * Component plugins for tests. In: core modules in text form, and worlds in WIT. Out: components in binary form,
 * plugins that provide the interface `t:p/x@1.0.0`, and a plugin with a module that calls it.
 */
import { newComponent } from "../../component/build/new_component.ts";
import { parseWit } from "../../component/wit/parse.ts";
import { resolveWit } from "../../component/wit/resolve.ts";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import { CONTRACT, type TestPlugin } from "./plugin_project.ts";

/** The interface that the plugins provide. */
export const INTERFACE = "t:p/x@1.0.0";

/** A memory, and an allocator that only advances. */
export const MEMORY = `(memory (export "memory") 1)
  (global $free (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at))`;

/** A component of a core module and of the world `w` of `wit`, whose package is `t:p@1.0.0`. */
export function componentOf(wit: string, wat: string): Uint8Array {
  const syntax = parseWit({ file: "w.wit", text: `package t:p@1.0.0; ${wit}` });
  const world = resolveWit([syntax]).root.worlds.get("w")!;
  return newComponent(assemble(wat), { world });
}

/** A plugin that provides the interface `x` of `functions` in WIT; `imports` are further items of its world. */
export function componentPlugin(
  functions: string,
  wat: string,
  more: Partial<TestPlugin> & { readonly imports?: string; readonly packages?: string } = {},
): TestPlugin {
  const { imports = "", packages = "", ...rest } = more;
  const bytes = componentOf(`interface x { ${functions} } world w { ${imports} export x; } ${packages}`, wat);
  return { wat: bytes, interface: INTERFACE, ...rest };
}

/** Functions with texts, lists and results, their forms for core modules, and a module that has them. */
const TEXTS = `add: func(a: u32, b: s32) -> u32; twice: func(s: string) -> string;
  half: func(n: u32) -> result<u32, string>; last: func(l: list<u16>) -> u16;`;
const TEXT_FUNCTIONS = ["add i32,i32->i32", "half i32,i32->", "last i32,i32->i32", "twice i32,i32,i32->"];
export const TEXT_WAT = `(module ${MEMORY}
  (data (i32.const 100) "odd")
  (func (export "${INTERFACE}#add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "${INTERFACE}#last") (param i32 i32) (result i32)
    (i32.load16_u (i32.add (local.get 0) (i32.mul (i32.const 2) (i32.sub (local.get 1) (i32.const 1))))))
  (func (export "${INTERFACE}#half") (param i32) (result i32)
    (if (i32.and (local.get 0) (i32.const 1)) (then
      (i32.store8 (i32.const 16) (i32.const 1))
      (i32.store (i32.const 20) (i32.const 100))
      (i32.store (i32.const 24) (i32.const 3))
      (return (i32.const 16))))
    (i32.store8 (i32.const 16) (i32.const 0))
    (i32.store (i32.const 20) (i32.div_u (local.get 0) (i32.const 2)))
    (i32.const 16))
  (func (export "${INTERFACE}#twice") (param i32 i32) (result i32)
    (memory.copy (i32.const 1024) (local.get 0) (local.get 1))
    (memory.copy (i32.add (i32.const 1024) (local.get 1)) (local.get 0) (local.get 1))
    (i32.store (i32.const 16) (i32.const 1024))
    (i32.store (i32.const 20) (i32.mul (local.get 1) (i32.const 2)))
    (i32.const 16)))`;

/** Calls each function with values in its memory, and reads results from address 8 on. */
export const CALLER = `(module
  (import "${CONTRACT}@1" "add" (func (param i32 i32) (result i32)))
  (import "${CONTRACT}@1" "twice" (func $twice (param i32 i32 i32)))
  (import "${CONTRACT}@1" "half" (func $half (param i32 i32)))
  (import "${CONTRACT}@1" "last" (func $last (param i32 i32) (result i32)))
  ${MEMORY}
  (data (i32.const 100) "w\\c3\\a4ft")
  (data (i32.const 200) "\\01\\00\\02\\00\\ff\\ff")
  (export "add" (func 0))
  (func (export "twice") (param i32 i32) (call $twice (local.get 0) (local.get 1) (i32.const 8)))
  (func (export "half") (param i32) (call $half (local.get 0) (i32.const 8)))
  (func (export "last") (result i32) (call $last (i32.const 200) (i32.const 3)))
  (func (export "word") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "byte") (param i32) (result i32) (i32.load8_u (local.get 0))))`;

/** The plugin with these functions. */
export function textPlugin(more: Partial<TestPlugin> = {}): TestPlugin {
  return componentPlugin(TEXTS, TEXT_WAT, { provides: TEXT_FUNCTIONS, ...more });
}
