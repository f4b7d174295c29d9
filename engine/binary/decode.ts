/**
 * Decodes modules in binary form (read_module.ts). Function bodies are kept as bytes, of which only the count of locals is looked at: what is
 * malformed inside them surfaces when validation walks them.
 *
 * Relies on nothing about the bytes. Establishes: a Module whose RawBytes are views into `bytes`, which must not change
 * while the module is in use. Failures are MalformedError (or InvalidError for the engine's limits) with an offset.
 */
import { CodeReader } from "../wasm/code_reader.ts";
import type { Module } from "../wasm/module.ts";
import { readModule } from "./read_module.ts";
import { HEADER } from "./section_ids.ts";

/** Decodes a core module in binary form. */
export function decodeModule(bytes: Uint8Array): Module {
  return readModule(new CodeReader(bytes), false);
}

/** Decodes a core module of which the bytes may end behind the code section: for who compiles bodies only (parallel/helper.ts). */
export function decodeModulePrefix(bytes: Uint8Array): Module {
  return readModule(new CodeReader(bytes), false, true);
}

/** Do the bytes begin like a module in binary form? Decides between the binary and the text format. */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && HEADER.subarray(0, 4).every((byte, i) => bytes[i] === byte);
}
