/**
 * Decodes modules in binary form (read_module.ts). Function bodies stay bytes, of which only the local declarations are
 * read: errors inside a body are found when validation walks it.
 *
 * Relies on nothing about the bytes. Establishes: a Module whose RawBytes are views into `bytes`, which must not change
 * while the module is in use. Errors are MalformedError (or InvalidError for the engine's limits) with an offset.
 */
import type { CodeReader } from "../wasm/code_reader.ts";
import { ConstantReader } from "../wasm/constant_reader.ts";
import { codeReader } from "../wasm/late_code_reader.ts";
import type { Module } from "../wasm/module.ts";
import { readModule } from "./read_module.ts";
import { HEADER } from "./section_ids.ts";

/** Reads constant instructions by itself, and others with a CodeReader: those belong to errors. */
class BinaryReader extends ConstantReader {
  #code: CodeReader | undefined;

  protected override other(): void {
    const code = this.#code ??= codeReader(this.bytes);
    code.reset(this.bytes, this.at - this.base, this.end, this.base);
    code.next();
    this.pos = code.pos;
  }
}

/** Decodes a core module in binary form. */
export function decodeModule(bytes: Uint8Array): Module {
  return readModule(new BinaryReader(bytes), false);
}

/**
 * Decodes a core module whose bytes may end after the code section: for threads that compile bodies only
 * (parallel/helper.ts).
 */
export function decodeModulePrefix(bytes: Uint8Array): Module {
  return readModule(new BinaryReader(bytes), false, true);
}

/** True if the bytes begin like a module in binary form. Distinguishes the binary from the text format. */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && HEADER.subarray(0, 4).every((byte, i) => bytes[i] === byte);
}
