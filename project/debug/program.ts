/**
 * A program for the debugger: a valid module with its instrumented form, its names and its sources. In: the module's
 * binary form, and its text if it was written as one. Out: functions, locations and names by their numbers.
 */
import { metadataOf } from "@waft/engine/internal/artifact/module_metadata";
import { displayName } from "@waft/engine/internal/base/guest_stack";
import { decodeModule } from "@waft/engine/internal/binary/decode";
import type { ReadSourceMap } from "@waft/engine/internal/runtime/source_places";
import type { Names } from "@waft/engine/internal/wasm/module";
import { SourceVariables } from "./dwarf/source_variables.ts";
import { type DebuggedFunction, instrument, type Instrumented } from "./instrument.ts";
import { Sources } from "./sources.ts";

/** A program. */
export class Program {
  #name: string;
  readonly instrumented: Instrumented;
  readonly sources: Sources;
  /** The variables that the module's debugging information describes, if it has some. */
  readonly sourceVariables: SourceVariables | undefined;
  /** The offset of the code section's contents, where the addresses of debugging information begin. */
  readonly codeOffset: number;
  readonly #names: Names;
  /** Function index → name of an export, for functions without a name. */
  readonly #exported: ReadonlyMap<number, string>;
  readonly #firsts: readonly number[];

  /**
   * Throws an Error for a module that cannot be debugged. `text` is the module as it was written, and `readMap` reads
   * its source map; `isPart` tells a core module of a component.
   */
  constructor(name: string, bytes: Uint8Array, text?: string, readMap?: ReadSourceMap, isPart = false) {
    const module = decodeModule(bytes);
    this.#name = name;
    this.#names = module.names;
    this.#exported = new Map(
      module.exports.filter(({ kind }) => kind === "func").map(({ index, name }) => [index, name]),
    );
    this.instrumented = instrument(bytes, isPart);
    this.#firsts = this.instrumented.functions.map(({ firstLocation }) => firstLocation);
    this.sourceVariables = SourceVariables.of(module.customs);
    this.codeOffset = metadataOf(bytes).codeOffset;
    this.sources = new Sources(
      { name, bytes, text, readMap },
      this.instrumented.offsets,
      this.#firsts,
    );
  }

  /** The name of the module's file, or that of a core module of a component. */
  get name(): string {
    return this.#name;
  }

  /** Changes the name, also that of the text which is made of the module later. */
  rename(name: string): void {
    this.#name = name;
    this.sources.rename(name);
  }

  /** The number of locations. */
  get locations(): number {
    return this.instrumented.offsets.length;
  }

  /** The function that a location is in. */
  functionAt(location: number): DebuggedFunction {
    return this.instrumented.functions[lastAtMost(this.#firsts, location)];
  }

  /** The function with this index; undefined for one that the module imports or does not have. */
  functionWithIndex(index: number): DebuggedFunction | undefined {
    const { functions } = this.instrumented;
    return functions[index - (functions[0]?.index ?? 0)];
  }

  /**
   * The functions with this name, which may be a symbol; if there are none with source lines, those whose name ends
   * with it after a slash (AssemblyScript), `::` (Rust and C++) or `#` (functions of WIT), arguments of generic
   * functions aside.
   */
  functionsNamed(name: string): DebuggedFunction[] {
    const { functions } = this.instrumented;
    const exact = functions.filter(({ index }) => this.#symbol(index) === name || this.functionName(index) === name);
    if (exact.some((func) => this.#hasSource(func))) return exact;
    const within = functions.filter(({ index }) => {
      const path = withoutArguments(this.functionName(index));
      const isEnd = ["/", "::", "#"].some((separator) => path.endsWith(`${separator}${name}`));
      return path === name || (isEnd && !path.startsWith("cabi_post_"));
    });
    return exact.length === 0 || within.some((func) => this.#hasSource(func)) ? within : exact;
  }

  #hasSource({ firstLocation }: DebuggedFunction): boolean {
    return this.sources.isShown(firstLocation);
  }

  /** The number of the location after the last one of a function. */
  endOf(func: DebuggedFunction): number {
    return this.functionWithIndex(func.index + 1)?.firstLocation ?? this.locations;
  }

  /**
   * The location at which a function's body begins, after the code that its language puts before its first line, and
   * after code of other files that the compiler has inlined there.
   */
  bodyOf(func: DebuggedFunction): number {
    const { sources } = this;
    if (!sources.hasPrologue(func.firstLocation)) return func.firstLocation;
    const end = this.endOf(func);
    const { source } = sources.placeOf(func.firstLocation);
    for (let location = func.firstLocation + 1; location < end; location++) {
      if (!sources.isShown(location) || !sources.beginsLine(location)) continue;
      if (sources.placeOf(location).source === source) return location;
    }
    return func.firstLocation;
  }

  /** The name of a function, without the mangling of its language. */
  functionName(index: number): string {
    return displayName(this.#symbol(index));
  }

  /** The name of a function in the module: from the name section, from an export, or `$funcN`. */
  #symbol(index: number): string {
    return this.#names.funcs.get(index) ?? this.#exported.get(index) ?? `$func${index}`;
  }

  /** The name of a local, or `$varN`. */
  localName({ index }: DebuggedFunction, local: number): string {
    return this.#names.locals.get(index)?.get(local) ?? `$var${local}`;
  }

  /** The name of a global, or `$globalN`. */
  globalName(index: number): string {
    return this.#names.globals.get(index) ?? `$global${index}`;
  }

  /** The location of the instruction at `offset` in the binary form, or of the last one before it. */
  locationAt(offset: number): number {
    return lastAtMost(this.instrumented.offsets, offset);
  }

  /** The location of the code at `position` in the instrumented binary form. */
  locationAtPosition(position: number): number {
    return lastAtMost(this.instrumented.positions, position);
  }
}

/** A path without the arguments of generic functions and types at its end: `a::f::<u8>` is `a::f`. */
function withoutArguments(path: string): string {
  let depth = 0;
  for (let k = path.length - 1; k >= 0 && path.endsWith(">"); k--) {
    if (path[k] === ">" && path[k - 1] !== "-") depth++;
    else if (path[k] === "<" && --depth === 0) return path.slice(0, k).replace(/::$/, "");
  }
  return path;
}

/** The index of the last number that is at most `limit`, among ascending numbers; −1 if there is none. */
function lastAtMost(numbers: ArrayLike<number>, limit: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
