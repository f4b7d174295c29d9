/**
 * Where in the text each part of a module's binary form came from: so that what validation and traps say about a byte
 * offset can be said about a line. Give one to parseModule, then ask it for offsets of `module.bytes`.
 *
 * Columns, two integers per instruction. Invariant: within a function, body offsets ascend, because they are recorded as
 * the bytes are written.
 */
import { grown } from "../base/columns.ts";
import type { SourcePlace } from "../errors.ts";
import type { Module, RawBytes } from "../wasm/module.ts";
import type { Tokens } from "./tokens.ts";

/** Fields whose place is that of their first token, in the order of the module's lists. */
export type PlacedField = "imports" | "tables" | "globals" | "exports" | "elems" | "datas";

/** A run of the binary form that came from one token. */
interface Run {
  start: number;
  end: number;
  token: number;
}

export class TextPlaces {
  readonly #fields: Record<PlacedField, number[]> = {
    imports: [],
    tables: [],
    globals: [],
    exports: [],
    elems: [],
    datas: [],
  };
  /** First entry of each function in the columns, and its field's token. */
  readonly #funcStarts: number[] = [];
  readonly #funcTokens: number[] = [];
  /** Offset in the function's body, and token, of each instruction. */
  #offsets: Int32Array = new Int32Array(256);
  #tokens: Int32Array = new Int32Array(256);
  #count = 0;

  // Known once the module is encoded.
  #source: Tokens | undefined;
  #bodies: RawBytes[] = [];
  #runs: Run[] = [];

  /** The next field of a list begins at `token`. */
  field(list: PlacedField, token: number): void {
    this.#fields[list].push(token);
  }

  /** The instructions recorded from now on are those of the next function, whose field begins at `token`. */
  func(token: number): void {
    this.#funcStarts.push(this.#count);
    this.#funcTokens.push(token);
  }

  /** The instruction about to be written at `offset` of the function's body came from `token`. */
  instruction(offset: number, token: number): void {
    const at = this.#count++;
    if (at === this.#offsets.length) {
      this.#offsets = grown(this.#offsets, at * 2);
      this.#tokens = grown(this.#tokens, at * 2);
    }
    this.#offsets[at] = offset;
    this.#tokens[at] = token;
  }

  /** Connects what was recorded with the module in its final form. */
  finish(module: Module, source: Tokens): void {
    this.#source = source;
    this.#bodies = module.funcs.map((func) => func.body);
    this.#runs = [];
    const { imports, tables, globals, exports, elems, datas } = this.#fields;
    this.#funcStarts.push(this.#count);
    const point = (token: number, offset: number) => this.#runs.push({ start: offset, end: offset + 1, token });
    const run = (token: number, part: RawBytes | undefined) => {
      if (part !== undefined) this.#runs.push({ start: part.offset, end: part.offset + part.bytes.length, token });
    };
    module.imports.forEach(({ offset }, i) => point(imports[i], offset));
    module.tables.forEach(({ init }, i) => run(tables[i], init));
    module.globals.forEach(({ init }, i) => run(globals[i], init));
    module.exports.forEach(({ offset }, i) => point(exports[i], offset));
    module.elems.forEach(({ offset, mode, init }, i) => {
      point(elems[i], offset);
      if (mode.kind === "active") run(elems[i], mode.start);
      if (init.kind === "exprs") { for (const expr of init.exprs) run(elems[i], expr); }
    });
    module.datas.forEach(({ offset, mode }, i) => {
      point(datas[i], offset);
      if (mode.kind === "active") run(datas[i], mode.start);
    });
    this.#runs.sort((a, b) => a.start - b.start);
  }

  /** Line and column of what stands at `offset` of the binary form; undefined where nothing was recorded. */
  placeOf(offset: number): SourcePlace | undefined {
    const token = this.#tokenInBody(offset) ?? this.#tokenInRuns(offset);
    const source = this.#source;
    return token === undefined || source === undefined ? undefined : source.placeOf(source.starts[token]);
  }

  #tokenInBody(offset: number): number | undefined {
    const bodies = this.#bodies;
    const index = lastAtMost(bodies.length, (i) => bodies[i].offset <= offset);
    const body = bodies[index];
    if (body === undefined || offset >= body.offset + body.bytes.length) return undefined;
    const first = this.#funcStarts[index];
    const count = this.#funcStarts[index + 1] - first;
    const at = lastAtMost(count, (i) => body.offset + this.#offsets[first + i] <= offset);
    return at < 0 ? this.#funcTokens[index] : this.#tokens[first + at];
  }

  #tokenInRuns(offset: number): number | undefined {
    const runs = this.#runs;
    const run = runs[lastAtMost(runs.length, (i) => runs[i].start <= offset)];
    return run !== undefined && offset < run.end ? run.token : undefined;
  }
}

/** The last index below `count` that holds, when those that hold come first; −1 for none. */
function lastAtMost(count: number, holds: (index: number) => boolean): number {
  let low = -1;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (holds(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
