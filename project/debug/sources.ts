/**
 * The sources of a debugged module. In: the module's binary form, its text if it was written as one, and its locations.
 * Out: for each location a source, line and column, and for each line its locations.
 *
 * A location's source is, in this order: the text that the module was written in; the file that its source map or its
 * DWARF line table names; the module's text as `waft print` writes it, which is made when it is first needed.
 */
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { type ReadSourceMap, type SourcePlaces, sourcePlaces } from "@waft/engine/internal/runtime/source_places";
import { printModule, withShortNames } from "@waft/engine/internal/text/print";
import { TextPlaces } from "@waft/engine/internal/text/text_places";
import { parseModule } from "@waft/engine/internal/text_format";
import type { Module } from "@waft/engine/internal/wasm/module";
import { locationOffsets } from "./instrument.ts";

/** A file, or a text that exists in memory only. */
export interface Source {
  /** The displayed name; a path if it is a file. */
  readonly name: string;
  /** Its text, if it is not a file. */
  readonly text: string | undefined;
  /** The text that the source map has of a file, for machines without it. */
  readonly content?: string | undefined;
}

/** A place in a source; line and column are counted from 1. */
export interface Place {
  readonly source: Source;
  readonly line: number;
  readonly column: number;
}

/** Lines and columns of all locations in one or more sources; line 0: the location has no place. */
interface Places {
  readonly sources: readonly Source[];
  /** The index of the location's source. */
  readonly source: Int32Array;
  readonly line: Int32Array;
  readonly column: Int32Array;
}

/** A module as its file has it. */
interface WrittenModule {
  /** The name of the file. */
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The module as it was written, if that is a text. */
  readonly text: string | undefined;
  readonly readMap: ReadSourceMap | undefined;
}

/** The sources and places of one module. */
export class Sources {
  #name: string;
  readonly #bytes: Uint8Array;
  readonly #written: Places;
  readonly #hasPrologues: boolean;
  readonly #firsts: ReadonlySet<number>;
  #printed: Places | undefined;

  /** `offsets` are those of the module's locations, `firsts` the first locations of its functions. */
  constructor({ name, bytes, text, readMap }: WrittenModule, offsets: Int32Array, firsts: readonly number[]) {
    this.#name = name;
    this.#bytes = bytes;
    this.#firsts = new Set(firsts);
    const module = decodeModule(bytes);
    const lines = text === undefined ? sourcePlaces(module, readMap) : undefined;
    this.#hasPrologues = lines?.origin === "line table";
    this.#written = text === undefined
      ? placesOfLines(module, lines, offsets, firsts)
      : placesOfText(text, { name, text: undefined });
  }

  /** The source files that locations are in. */
  get files(): readonly Source[] {
    return this.#written.sources;
  }

  /** Names the text that is made of the module, before that is made. */
  rename(name: string): void {
    this.#name = name;
  }

  /** Whether a source is one of these. Makes no text. */
  has(source: Source): boolean {
    return this.#written.sources.includes(source) || this.#printed?.sources[0] === source;
  }

  /** The module as `waft print` writes it. */
  get disassembly(): Source {
    return this.#disassembly().sources[0];
  }

  /** The place of a location. */
  placeOf(location: number): Place {
    return placeIn(this.#written, location) ?? placeIn(this.#disassembly(), location) ??
      { source: this.disassembly, line: 1, column: 1 };
  }

  /** Whether a function that begins at this location has code before its first line, as DWARF line tables show it. */
  hasPrologue(location: number): boolean {
    return this.#hasPrologues && this.#written.line[location] !== 0;
  }

  /** True unless the module has line tables or text that say nothing of this location. */
  isShown(location: number): boolean {
    return this.#written.line[location] !== 0 || this.#written.sources.length === 0;
  }

  /** Whether a line begins at the location: that of the location before it differs, or there is none. */
  beginsLine(location: number): boolean {
    const places = this.#written.line[location] === 0 ? this.#disassembly() : this.#written;
    return this.#firsts.has(location) || differs(places, location);
  }

  /**
   * The locations at which a line begins; of the next line with code if this one has none. Undefined if no line from
   * there on has code.
   */
  locationsOf(source: Source, line: number): { readonly line: number; readonly locations: number[] } | undefined {
    const places = this.#written.sources.includes(source) ? this.#written : this.#disassembly();
    const index = places.sources.indexOf(source);
    let best = Infinity;
    let locations: number[] = [];
    for (let location = 0; location < places.line.length; location++) {
      const at = places.line[location];
      if (at < line || at > best || places.source[location] !== index) continue;
      if (!this.#firsts.has(location) && !differs(places, location)) continue;
      if (at < best) locations = [];
      best = at;
      locations.push(location);
    }
    return locations.length === 0 ? undefined : { line: best, locations };
  }

  #disassembly(): Places {
    if (this.#printed !== undefined) return this.#printed;
    // The content of segments may be large, and no location is in it.
    const text = printModule(withShortNames({ ...decodeModule(this.#bytes), elems: [], datas: [], customs: [] }));
    return this.#printed = placesOfText(text, { name: `${this.#name}.wat`, text });
  }
}

/** Whether the line of a location is not that of the location before it. */
function differs({ line, source }: Places, location: number): boolean {
  return line[location] !== line[location - 1] || source[location] !== source[location - 1];
}

function placeIn({ sources, source, line, column }: Places, location: number): Place | undefined {
  if ((line[location] ?? 0) === 0) return undefined;
  return { source: sources[source[location]], line: line[location], column: column[location] };
}

function noPlaces(sources: readonly Source[], count: number): Places {
  return { sources, source: new Int32Array(count), line: new Int32Array(count), column: new Int32Array(count) };
}

/** The places of a module in its text. The text has the same instructions as the module, in the same order. */
function placesOfText(text: string, source: Source): Places {
  const origins = new TextPlaces();
  const offsets = locationOffsets(parseModule(text, { places: origins }));
  const places = noPlaces([source], offsets.length);
  offsets.forEach((offset, location) => {
    const place = origins.placeOf(offset);
    places.line[location] = place?.line ?? 0;
    places.column[location] = place?.column ?? 1;
  });
  return places;
}

/** The places of a module in the files that its source map or its line table names. */
function placesOfLines(
  { funcs }: Module,
  lines: SourcePlaces | undefined,
  offsets: Int32Array,
  firsts: readonly number[],
): Places {
  const sources: Source[] = [];
  const places = noPlaces(sources, offsets.length);
  if (lines === undefined) return places;
  const indices = new Map<string, number>();
  funcs.forEach(({ body: { offset: from, bytes } }, k) => {
    for (let location = firsts[k]; location < (firsts[k + 1] ?? offsets.length); location++) {
      const place = lines.placeNear(offsets[location], from, from + bytes.length, "before");
      if (place?.file === undefined || place.line === undefined) continue;
      let index = indices.get(place.file);
      if (index === undefined) {
        index = sources.push({ name: place.file, text: undefined, content: lines.contents.get(place.file) }) - 1;
        indices.set(place.file, index);
      }
      places.source[location] = index;
      places.line[location] = place.line;
      places.column[location] = place.column ?? 1;
    }
  });
  return places;
}
