/**
 * Bytes → the part of a module before its first fault, for tools that show damaged modules. In: untrusted bytes. Out:
 * the entries of all sections up to the fault, which may be within a section, and the error. Other readers refuse such
 * a module (decode.ts).
 */
import { WaftError } from "../base/errors.ts";
import { emptyModule, type Module } from "../wasm/module.ts";
import { SECTION } from "../wasm/section_ids.ts";
import { binaryReader } from "./decode.ts";
import { readHeader, readSection } from "./read_module.ts";
import type { Decoding } from "./sections.ts";

/** A part of a module; `fault` is the error that ends it, undefined for a whole module. */
export interface ModulePrefix {
  readonly module: Module;
  /** Type indices of the function section; `module.funcs` has those whose bodies have been read. */
  readonly funcTypes: readonly number[];
  readonly fault?: WaftError;
}

/** Decodes a core module up to its first fault. Throws no errors of the format. */
export function decodeUntilFault(bytes: Uint8Array): ModulePrefix {
  const reader = binaryReader(bytes);
  const module = emptyModule(bytes);
  const decoding: Decoding = {
    module,
    funcTypes: [],
    bodies: [],
    locals: 0,
    named: false,
    metadata: false,
    prefix: false,
  };
  let fault: WaftError | undefined;
  try {
    readHeader(reader);
    for (let last: number = SECTION.custom; reader.left > 0;) last = readSection(reader, decoding, last) || last;
  } catch (error) {
    if (!(error instanceof WaftError)) throw error;
    fault = error;
  }
  const { funcTypes, bodies } = decoding;
  const paired = Math.min(funcTypes.length, bodies.length);
  for (let k = 0; k < paired; k++) module.funcs.push({ typeIndex: funcTypes[k], body: bodies[k] });
  return { module, funcTypes, ...(fault === undefined ? {} : { fault }) };
}
