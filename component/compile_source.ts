/**
 * Compilation of components in both forms. In: bytes or text, and an engine. Out: a compiled component. The command
 * `waft` imports component.ts instead, since its start-up pays for every module that it loads.
 */
import type { Engine } from "@waft/engine";
import { compileBinary, type Component } from "./component.ts";
import { binaryOf } from "./binary_of.ts";

/**
 * Decodes and validates a component, given in binary form or as text, and compiles its core modules with `engine`,
 * whose options (`interruptible`, `fuel`, `limits`, `cache`, `tier`) apply to them.
 *
 * Throws MalformedError, InvalidError or UnsupportedError with the place in the input, and TypeError if `source` is
 * neither bytes nor text.
 *
 * @example
 * ```ts
 * import { NewEngine } from "@waft/engine";
 * import { compileComponent } from "@waft/component";
 *
 * const component = compileComponent(
 *   NewEngine(),
 *   `(component
 *   (core module $m (func (export "add") (param i32 i32) (result i32)
 *     (i32.add (local.get 0) (local.get 1))))
 *   (core instance $i (instantiate $m))
 *   (func (export "add") (param "a" s32) (param "b" s32) (result s32)
 *     (canon lift (core func $i "add"))))`,
 * );
 * const { exports } = component.instantiate<{ add(a: number, b: number): number }>();
 * if (exports.add(2, 3) !== 5) throw new Error("wrong result");
 * ```
 */
export function compileComponent(engine: Engine, source: Uint8Array | ArrayBuffer | string): Component {
  return compileBinary(engine, binaryOf(source));
}
