/**
 * Decodes modules in binary form (read_module.ts). In: untrusted bytes, which must not change while the module is in
 * use. Out: a Module whose RawBytes are views into the bytes. Throws MalformedError, or InvalidError for the engine's
 * limits, with an offset. Function bodies stay bytes, of which only the local declarations are read: validation finds
 * errors inside a body.
 */
import type { CodeReader } from "../wasm/code_reader.ts";
import { ConstantReader } from "../wasm/constant_reader.ts";
import { codeReader } from "../wasm/late_code_reader.ts";
import type { Module } from "../wasm/module.ts";
import { readModule } from "./read_module.ts";
import { HEADER } from "../wasm/section_ids.ts";
import type { ModuleReader } from "./sections.ts";

/**
 * Decodes constant instructions itself. Other instructions are errors here, so a CodeReader is loaded only for them.
 */
class BinaryReader extends ConstantReader {
  #code: CodeReader | undefined;

  protected override other(): void {
    const code = this.#code ??= codeReader(this.bytes);
    code.reset(this.bytes, this.at - this.base, this.end, this.base);
    code.next();
    this.pos = code.pos;
  }
}

/** A reader of all instructions. */
export function binaryReader(bytes: Uint8Array): ModuleReader {
  return new BinaryReader(bytes);
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

/** Whether the bytes begin like a module in binary form. Distinguishes the binary from the text format. */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && HEADER.subarray(0, 4).every((byte, i) => bytes[i] === byte);
}
