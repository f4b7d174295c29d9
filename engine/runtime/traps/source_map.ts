/**
 * Source maps of modules (ECMA-426; the custom section sourceMappingURL of the WebAssembly tool conventions). In: the
 * JSON of a map. Out: source locations by byte offset in the module, which the map gives as columns of its first line.
 *
 * The input is untrusted: a malformed map is ignored as a whole. Invariant: work and memory are bounded by a small
 * multiple of the map's size.
 */
import { fromBase64 } from "../../base/base64.ts";
import { ByteReader } from "../../base/bytes.ts";
import type { SourcePlace } from "../../base/errors.ts";
import type { CustomSection } from "../../wasm/module.ts";

/** A source map. */
export interface SourceMapFile {
  /** The location of the last segment that begins at or before an offset. */
  readonly placeOf: (offset: number) => SourcePlace | undefined;
  /**
   * The location of an offset in a function whose body is from `from` to `to`. If it has none: that of the next
   * instruction with one, or else of the last one before it; the other way round if `prefer` is `before`. Compilers map
   * no source to the beginnings of loops and to branches.
   */
  readonly placeNear: (offset: number, from: number, to: number, prefer: "before" | "after") => SourcePlace | undefined;
  /** The source texts that the map embeds, by file name as in source locations. */
  readonly contents: ReadonlyMap<string, string>;
}

/** The address in the custom section sourceMappingURL. */
function sourceMapUrl(customs: readonly CustomSection[]): string | undefined {
  const section = customs.find(({ name }) => name === "sourceMappingURL");
  if (section === undefined) return undefined;
  try {
    const reader = new ByteReader(section.bytes);
    return new TextDecoder().decode(reader.take(reader.u32()));
  } catch {
    return undefined;
  }
}

/**
 * The source map of a module; undefined if it has none, or an unreadable one. `read` returns the text of a map that is
 * not in the address itself.
 */
export function sourceMapOf(
  customs: readonly CustomSection[],
  read: ((url: string) => string | undefined) | undefined,
): SourceMapFile | undefined {
  const url = sourceMapUrl(customs);
  const text = url === undefined ? undefined : inlineText(url) ?? read?.(url);
  return text === undefined ? undefined : readSourceMap(text);
}

/** The text of a `data:` URL of JSON; undefined for other addresses, and for one that is malformed. */
function inlineText(url: string): string | undefined {
  const [, base64, data] = /^data:application\/json(?:;charset=utf-8)?(;base64)?,(.*)$/is.exec(url) ?? [];
  if (data === undefined) return undefined;
  try {
    return base64 === undefined ? decodeURIComponent(data) : new TextDecoder().decode(fromBase64(data));
  } catch {
    return undefined;
  }
}

/** Reads a source map; undefined if it is malformed. */
export function readSourceMap(text: string): SourceMapFile | undefined {
  try {
    const map: unknown = JSON.parse(text);
    const { mappings, sources, sourceRoot, sourcesContent } = map as Record<string, unknown>;
    if (typeof mappings !== "string" || !isTexts(sources)) return undefined;
    const root = typeof sourceRoot === "string" ? sourceRoot.replace(/[^/]$/, "$&/") : "";
    const names = sources.map((source) => `${root}${source ?? ""}`);
    const texts: unknown[] = Array.isArray(sourcesContent) ? sourcesContent : [];
    const known = names.flatMap((name, k): [string, string][] => {
      const content = texts[k];
      return typeof content === "string" ? [[name, content]] : [];
    });
    return { ...placesOf(readSegments(mappings), names), contents: new Map(known) };
  } catch {
    return undefined;
  }
}

function isTexts(value: unknown): value is (string | null)[] {
  return Array.isArray(value) && value.every((item) => item === null || typeof item === "string");
}

/** Maximum number of segments that a search for one with a source examines. */
const MAX_UNMAPPED = 64;
/** Words per segment: column in the generated code; source, −1 for none; line and column in the source. All from 0. */
const SEGMENT = 4;
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The segments of the first line, ascending by column. */
function readSegments(mappings: string): Int32Array {
  const [line] = mappings.split(";", 1);
  const words: number[] = [];
  let [column, source, row, start] = [0, 0, 0, 0];
  for (const segment of line.split(",")) {
    const values = readValues(segment);
    if (values.length === 0) continue;
    column += values[0];
    const isMapped = values.length >= 4;
    if (isMapped) [source, row, start] = [source + values[1], row + values[2], start + values[3]];
    if (words.length > 0 && column < words[words.length - SEGMENT]) throw new RangeError("segments are not in order");
    if (![column, source, row, start].every(isNumber)) throw new RangeError("not a source map");
    words.push(column, isMapped ? source : -1, row, start);
  }
  return Int32Array.from(words);
}

/** True for valid columns, sources and lines; 1 is added to some of them, and the sum must fit in 31 bits. */
function isNumber(value: number): boolean {
  return value >= 0 && value < 0x7fffffff;
}

/** The numbers of a segment: base-64 digits, least significant first, the sign in the lowest bit. */
function readValues(segment: string): number[] {
  const values: number[] = [];
  let [value, shift] = [0, 0];
  for (const letter of segment) {
    const digit = DIGITS.indexOf(letter);
    if (digit < 0 || shift > 30) throw new RangeError("not a source map");
    value |= (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) !== 0) continue;
    values.push((value & 1) === 0 ? value >>> 1 : -(value >>> 1));
    [value, shift] = [0, 0];
  }
  return values;
}

function placesOf(segments: Int32Array, names: readonly string[]): Pick<SourceMapFile, "placeOf" | "placeNear"> {
  const count = segments.length / SEGMENT;
  const place = (segment: number): SourcePlace | undefined => {
    const at = segment * SEGMENT;
    const file = segment < 0 || segment >= count ? undefined : names[segments[at + 1]];
    return file === undefined ? undefined : { file, line: segments[at + 2] + 1, column: segments[at + 3] + 1 };
  };
  const segmentOf = (offset: number): number => {
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (segments[middle * SEGMENT] <= offset) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  };
  const isInside = (segment: number, from: number, to: number): boolean => {
    const column = segment < 0 || segment >= count ? -1 : segments[segment * SEGMENT];
    return column >= from && column < to;
  };
  return {
    placeOf: (offset) => place(segmentOf(offset)),
    placeNear(offset, from, to, prefer) {
      const found = segmentOf(offset);
      const search = (first: number, step: 1 | -1): SourcePlace | undefined => {
        for (let k = first; Math.abs(k - first) < MAX_UNMAPPED && isInside(k, from, to); k += step) {
          if (place(k) !== undefined) return place(k);
        }
        return undefined;
      };
      const after = () => search(isInside(found, from, to) ? found : found + 1, 1);
      const before = () => search(found, -1);
      return prefer === "after" ? after() ?? before() : before() ?? after();
    },
  };
}
