/**
 * Source locations of a binary module: from the source map that it names, or else from its DWARF line tables. In: the
 * module's custom sections, and a function that reads the file at the map's address. Out: locations by offset in the
 * module. Invariant: damaged debugging information gives no location, and no error.
 */
import { metadataOf } from "../../artifact/module_metadata.ts";
import type { SourcePlace } from "../../base/errors.ts";
import type { CustomSection } from "../../wasm/module.ts";
import { debugLines } from "./debug_lines.ts";
import { type SourceMapFile, sourceMapOf } from "./source_map.ts";

/** Reads the source map at the address that a module names; undefined if there is no such file. */
export type ReadSourceMap = (url: string) => string | undefined;

/** The locations of a module's instructions, and the kind of debugging information that they come from. */
export interface SourcePlaces extends SourceMapFile {
  readonly origin: "source map" | "line table";
}

/** The parts of a module that lead to its sources. */
interface SourcedModule {
  readonly customs: readonly CustomSection[];
  readonly bytes: Uint8Array;
}

/** The locations of a module; undefined if it has no readable debugging information. */
export function sourcePlaces({ customs, bytes }: SourcedModule, readMap?: ReadSourceMap): SourcePlaces | undefined {
  const map = sourceMapOf(customs, readMap);
  if (map !== undefined) return { ...map, origin: "source map" };
  const lines = debugLines(customs);
  if (lines === undefined) return undefined;
  const { codeOffset } = metadataOf(bytes);
  const placeOf = (offset: number): SourcePlace | undefined => lines(offset - codeOffset);
  return { placeOf, placeNear: placeOf, contents: new Map(), origin: "line table" };
}
