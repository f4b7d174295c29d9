/**
 * The opcodes of a module. In: a parsed module. Out: the mnemonics of its bodies, in order.
 */
import type { Module } from "../../engine/wasm/module.ts";
import { CodeReader } from "../../engine/wasm/code_reader.ts";
import { OPCODES } from "../../engine/wasm/opcodes.ts";

/** The mnemonics in the bodies of a module. */
export function* opcodesOf({ funcs }: Pick<Module, "funcs">): Generator<string> {
  for (const { body: { bytes, offset } } of funcs) {
    const reader = new CodeReader(bytes, 0, bytes.length, offset);
    reader.locals([]);
    while (!reader.done) yield OPCODES[reader.next()].mnemonic;
  }
}
