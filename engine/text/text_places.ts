/**
 * The origin in the text of each part of a module's binary form, so that errors of validation and traps at a byte
 * offset can name a line. In: a parse (give it to parseModule). Out: places of offsets of `module.bytes`.
 *
 * Columns, two integers per instruction. Invariant: body offsets ascend within a function, since they are recorded as
 * the bytes are written.
 */
import { grown } from "../base/columns.ts";
import type { SourcePlace } from "../base/errors.ts";
import type { Module, RawBytes } from "../wasm/module.ts";
import type { Tokens } from "./tokens.ts";

/** Fields that begin at their first token, in the order of the module's lists. */
export type PlacedField = "imports" | "tables" | "globals" | "exports" | "elems" | "datas";

/** A run of the binary form that comes from one token. */
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

  // Set once the module is encoded.
  #source: Tokens | undefined;
  #bodies: RawBytes[] = [];
  #runs: Run[] = [];

  /** Records that the next field of a list begins at `token`. */
  field(list: PlacedField, token: number): void {
    this.#fields[list].push(token);
  }

  /** Begins the next function, whose field begins at `token`; later instructions belong to it. */
  func(token: number): void {
    this.#funcStarts.push(this.#count);
    this.#funcTokens.push(token);
  }

  /** Records that the instruction about to be written at `offset` of the function's body comes from `token`. */
  instruction(offset: number, token: number): void {
    const at = this.#count++;
    if (at === this.#offsets.length) {
      this.#offsets = grown(this.#offsets, at * 2);
      this.#tokens = grown(this.#tokens, at * 2);
    }
    this.#offsets[at] = offset;
    this.#tokens[at] = token;
  }

  /** Connects the records with the module in its final form. */
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
    let segment = 0;
    for (const { offset, mode, init } of module.elems) {
      const token = elems[segment++];
      point(token, offset);
      if (mode.kind === "active") run(token, mode.start);
      if (init.kind === "exprs") { for (const expr of init.exprs) run(token, expr); }
    }
    module.datas.forEach(({ offset, mode }, i) => {
      point(datas[i], offset);
      if (mode.kind === "active") run(datas[i], mode.start);
    });
    this.#runs.sort((a, b) => a.start - b.start);
  }

  /** Line and column of the source of `offset` in the binary form; undefined if nothing was recorded. */
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

/** The last index below `count` for which `holds` is true, given that it is true for a prefix; −1 for none. */
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
