/**
 * Source locations for the frames of a module in binary form: from its source map, or else from its DWARF line tables.
 * In: the module, and a function that reads its map. Out: locations by offset. Invariant: both are read when the first
 * location is asked for; damaged debugging information gives no location, and no error.
 */
import { metadataOf } from "../../artifact/module_metadata.ts";
import type { SourcePlace } from "../../base/errors.ts";
import type { CustomSection } from "../../wasm/module.ts";
import { debugLines } from "./debug_lines.ts";
import { sourceMapOf } from "./source_map.ts";

/** The parts of a module that lead to its sources. */
interface SourcedModule {
  readonly customs: readonly CustomSection[];
  readonly bytes: Uint8Array;
}

export class DebugPlaces {
  readonly #module: SourcedModule;
  readonly #codeOffset: number | undefined;
  #readMap: ((url: string) => string | undefined) | undefined;
  #placeOf: ((offset: number) => SourcePlace | undefined) | undefined;

  /** `codeOffset` is that of the code section's contents, if `module` has only its metadata. */
  constructor(module: SourcedModule, codeOffset: number | undefined) {
    this.#module = module;
    this.#codeOffset = codeOffset;
  }

  /** Sets the function that reads the source map at the address which the module names. */
  setSourceMap(read: (url: string) => string | undefined): void {
    this.#readMap = read;
    this.#placeOf = undefined;
  }

  /** The location of an offset in the binary form. */
  placeOf(offset: number): SourcePlace | undefined {
    return (this.#placeOf ??= this.#read())(offset);
  }

  #read(): (offset: number) => SourcePlace | undefined {
    const { customs, bytes } = this.#module;
    const map = sourceMapOf(customs, this.#readMap);
    if (map !== undefined) return map.placeOf;
    const lines = debugLines(customs);
    if (lines === undefined) return () => undefined;
    const start = this.#codeOffset ?? metadataOf(bytes).codeOffset;
    return (at) => lines(at - start);
  }
}
