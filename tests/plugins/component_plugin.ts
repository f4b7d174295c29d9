/**
 * Component plugins for tests. In: core modules in text form, and worlds in WIT. Out: components in binary form, and
 * plugins that provide the interface `t:p/x@1.0.0`.
 */
import { newComponent } from "../../component/build/new_component.ts";
import { parseWit } from "../../component/wit/parse.ts";
import { resolveWit } from "../../component/wit/resolve.ts";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import type { TestPlugin } from "./plugin_project.ts";

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
