/**
 * Debugging information that was written to harm the debugger: types that contain themselves, sizes that are negative,
 * parts of the sections to which entries refer again and again. In: sections made here. Each is read to an end, and the
 * other variables are shown; where an attack costs time, its steps are counted or the size alone would not end.
 */
import assert from "node:assert/strict";
import { debugLines } from "@waft/engine/internal/runtime/debug_lines";
import { AT, ATE, FORM, OP, TAG } from "../../project/debug/dwarf/constants.ts";
import { SourceVariables } from "../../project/debug/dwarf/source_variables.ts";
import type { Variable } from "../../project/debug/variable.ts";

const MEMORY = new Uint8Array(65536);
const FRAME = {
  pc: 16,
  local: () => 1n,
  global: () => 1n,
  setLocal: () => {},
  memory: MEMORY,
};
/** The length of a header of a unit of DWARF 4. */
const HEADER = 11;

type Attribute = readonly [name: number, form: number, value?: readonly number[]];

function leb(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...leb(Math.floor(value / 128))];
}

function word(value: number): number[] {
  return [0, 8, 16, 24].map((shift) => (value >>> shift) & 255);
}

function text(value: string): number[] {
  return [...new TextEncoder().encode(value), 0];
}

/** A unit of DWARF 4 under construction: entries with abbreviations of their own. */
class Info {
  readonly #entries: number[] = [];
  readonly #abbreviations: number[] = [];
  #codes = 0;

  constructor() {
    this.entry(TAG.COMPILE_UNIT, [], true);
    this.entry(TAG.SUBPROGRAM, [[AT.LOW_PC, FORM.ADDR, word(1)], [AT.HIGH_PC, FORM.DATA4, word(100)]], true);
  }

  /** The offset in the unit of the entry that is written next. */
  get next(): number {
    return HEADER + this.#entries.length;
  }

  /** The code of an abbreviation. */
  abbreviation(tag: number, attributes: readonly Attribute[], hasChildren = false): number {
    const named = attributes.flatMap(([name, form]) => [...leb(name), ...leb(form)]);
    this.#abbreviations.push(...leb(++this.#codes), ...leb(tag), Number(hasChildren), ...named, 0, 0);
    return this.#codes;
  }

  /** Writes an entry and returns its offset. */
  entry(tag: number, attributes: readonly Attribute[], hasChildren = false): number {
    const at = this.next;
    const code = this.abbreviation(tag, attributes, hasChildren);
    this.bytes([...leb(code), ...attributes.flatMap(([, , value = []]) => value)]);
    return at;
  }

  bytes(bytes: readonly number[]): void {
    for (const byte of bytes) this.#entries.push(byte);
  }

  /** Ends the children of an entry. */
  end(): void {
    this.#entries.push(0);
  }

  /** A variable at address 16 of the type at an offset. */
  variable(name: string, type: number): void {
    const location = [OP.ADDR, ...word(16)];
    this.entry(TAG.VARIABLE, [
      [AT.NAME, FORM.STRING, text(name)],
      [AT.TYPE, FORM.REF4, word(type)],
      [AT.LOCATION, FORM.EXPRLOC, [location.length, ...location]],
    ]);
  }

  /** A base type. */
  base(size: readonly number[], form: number = FORM.DATA1): number {
    return this.entry(TAG.BASE_TYPE, [
      [AT.NAME, FORM.STRING, text("base")],
      [AT.ENCODING, FORM.DATA1, [ATE.SIGNED]],
      [AT.BYTE_SIZE, form, size],
    ]);
  }

  sections(more: Readonly<Record<string, Uint8Array>> = {}): SourceVariables {
    return variablesOf({
      ".debug_info": this.unit(),
      ".debug_abbrev": Uint8Array.from([...this.#abbreviations, 0]),
      ...more,
    });
  }

  unit(): Uint8Array {
    const body = [4, 0, ...word(0), 4, ...this.#entries, 0, 0];
    return Uint8Array.from([...word(body.length), ...body]);
  }
}

function variablesOf(sections: Readonly<Record<string, Uint8Array>>): SourceVariables {
  const found = SourceVariables.of(
    Object.entries(sections).map(([name, bytes]) => ({ name, bytes, place: "end", offset: 0 }) as never),
  );
  assert.ok(found !== undefined);
  return found;
}

function locals(of: SourceVariables): readonly Variable[] {
  return of.locals(FRAME, () => MEMORY) ?? [];
}

Deno.test("an array, a string slice and a vector of themselves have an end", () => {
  const info = new Info();
  const array = info.next;
  info.entry(TAG.ARRAY_TYPE, [[AT.TYPE, FORM.REF4, word(array)]], true);
  info.entry(TAG.SUBRANGE_TYPE, [[AT.COUNT, FORM.DATA1, [3]]]);
  info.end();
  const slice = info.next;
  info.entry(TAG.STRUCTURE_TYPE, [[AT.NAME, FORM.STRING, text("&str")]], true);
  for (const name of ["data_ptr", "length"]) {
    info.entry(TAG.MEMBER, [[AT.NAME, FORM.STRING, text(name)], [AT.TYPE, FORM.REF4, word(slice)]]);
  }
  info.end();
  const vector = info.next;
  info.entry(TAG.STRUCTURE_TYPE, [[AT.NAME, FORM.STRING, text("Vec<u8>")]], true);
  for (const name of ["buf", "len", ...Array.from({ length: 40 }, () => "more")]) {
    info.entry(TAG.MEMBER, [[AT.NAME, FORM.STRING, text(name)], [AT.TYPE, FORM.REF4, word(vector)]]);
  }
  info.end();
  info.variable("array", array);
  info.variable("slice", slice);
  info.variable("vector", vector);
  info.variable("number", info.base([4]));
  const found = locals(info.sections());
  assert.deepEqual(found.map(({ name, text }) => [name, text]), [
    ["array", "[3]"],
    ["slice", "{…}"],
    ["vector", "{…}"],
    ["number", "0"],
  ]);
  const [first] = found[0].parts!();
  assert.equal(first!.text, "[3]");
});

Deno.test("sizes and widths that are impossible do not hide the other variables", () => {
  const info = new Info();
  info.variable("negative", info.base([0x78], FORM.SDATA));
  info.variable("huge", info.base([255, 255, 255, 255, 255, 255, 255, 255], FORM.DATA8));
  const base = info.base([4]);
  const fields = info.next;
  info.entry(TAG.STRUCTURE_TYPE, [[AT.NAME, FORM.STRING, text("fields")]], true);
  for (const width of [0x78, 0]) {
    info.entry(TAG.MEMBER, [[AT.TYPE, FORM.REF4, word(base)], [AT.BIT_SIZE, FORM.SDATA, [width]]]);
  }
  info.entry(TAG.MEMBER, [[AT.TYPE, FORM.REF4, word(base)], [AT.DATA_MEMBER_LOCATION, FORM.SDATA, [0x40]]]);
  info.end();
  info.variable("fields", fields);
  const found = locals(info.sections());
  assert.deepEqual(found.map(({ name }) => name), ["negative", "huge", "fields"]);
  assert.deepEqual(found[2].parts!().map(({ text }) => text), ["0", "0", "(outside of the memory)"]);
});

Deno.test("an array has a limited number of dimensions", () => {
  const info = new Info();
  const base = info.base([1]);
  const array = info.next;
  info.entry(TAG.ARRAY_TYPE, [[AT.TYPE, FORM.REF4, word(base)]], true);
  const code = info.abbreviation(TAG.SUBRANGE_TYPE, [[AT.COUNT, FORM.DATA1]]);
  for (let k = 0; k < 50_000; k++) info.bytes([code, 2]);
  info.end();
  info.variable("deep", array);
  const [deep] = locals(info.sections());
  assert.ok(deep!.type.length < 200, `a type of ${deep!.type.length} characters`);
});

Deno.test("blocks and names may be nested deeper than the stack", () => {
  for (const tag of [TAG.LEXICAL_BLOCK, TAG.NAMESPACE]) {
    const info = new Info();
    if (tag === TAG.NAMESPACE) info.end();
    const code = info.abbreviation(tag, [[AT.LOW_PC, FORM.ADDR], [AT.HIGH_PC, FORM.DATA1]], true);
    for (let k = 0; k < 200_000; k++) info.bytes([code, ...word(1), 100]);
    const found = info.sections();
    assert.deepEqual(locals(found), []);
    assert.deepEqual(found.statics(FRAME, () => MEMORY), []);
  }
});

Deno.test("a constant of a megabyte is a number of the size of a number", () => {
  const info = new Info();
  const base = info.base([8]);
  const bytes = 1 << 20;
  info.entry(TAG.VARIABLE, [[AT.NAME, FORM.STRING, text("large")], [AT.TYPE, FORM.REF4, word(base)], [
    AT.LOCATION,
    FORM.EXPRLOC,
    [...leb(bytes + 4), OP.IMPLICIT_VALUE, ...leb(bytes)],
  ]]);
  info.bytes(new Array(bytes).fill(1));
  const [large] = locals(info.sections());
  assert.equal(large!.text, String(0x0101010101010101n));
});

/** Bytes that count the reads of ranges of them. */
class CountedBytes extends Uint8Array<ArrayBuffer> {
  reads = 0;

  override subarray(from?: number, to?: number): Uint8Array<ArrayBuffer> {
    this.reads++;
    return new Uint8Array(this.buffer, this.byteOffset + (from ?? 0), (to ?? this.length) - (from ?? 0));
  }
}

Deno.test("variables that share one long list of locations take the steps of one look at a frame", () => {
  const info = new Info();
  const code = info.abbreviation(TAG.VARIABLE, [[AT.NAME, FORM.STRING], [AT.LOCATION, FORM.SEC_OFFSET]]);
  for (let k = 0; k < 1000; k++) info.bytes([code, ...text(`v${k}`), ...word(0)]);
  // Empty ranges, without an end.
  const list = new CountedBytes(new ArrayBuffer(10 * 50_000));
  for (let at = 0; at < list.length; at += 10) list[at] = 1;
  const found = locals(info.sections({ ".debug_loc": list }));
  assert.equal(found.length, 1000);
  assert.ok(found.every(({ text }) => text === "(optimized out)"));
  assert.ok(list.reads > 0 && list.reads < 20_000_000, `${list.reads} reads`);
});

Deno.test("strings, abbreviations and attributes that all entries share are not read for each of them", () => {
  const long = new Uint8Array(1 << 20).fill(0x61);
  const info = new Info();
  const code = info.abbreviation(TAG.VARIABLE, [[AT.NAME, FORM.STRP]]);
  for (let k = 0; k < 50_000; k++) info.bytes([code, ...word(k)]);
  assert.ok(locals(info.sections({ ".debug_str": long })).every(({ name }) => name.length < 2000));

  const flags = new Info();
  const many = flags.abbreviation(
    TAG.VARIABLE,
    Array.from({ length: 20_000 }, (_, k): Attribute => [0x2000 + k, FORM.FLAG_PRESENT]),
  );
  for (let k = 0; k < 200_000; k++) flags.bytes([many]);
  assert.deepEqual(locals(flags.sections()), []);

  const unit = new Info().unit();
  const units = new Uint8Array(unit.length * 20_000);
  for (let at = 0; at < units.length; at += unit.length) units.set(unit, at);
  const abbreviations: number[] = [];
  for (let k = 1; k < 60_000; k++) abbreviations.push(...leb(k), TAG.COMPILE_UNIT, 0, 0, 0);
  variablesOf({ ".debug_info": units, ".debug_abbrev": Uint8Array.from([...abbreviations, 0]) });
});

/** A line table of DWARF 4 with many files in one directory, and a row of the first one. */
function lineTable(directory: string): ReturnType<typeof debugLines> {
  // Lengths and factors; then operands of the two standard opcodes.
  const header = [1, 1, 1, 0, 1, 3, 0, 1];
  const program = [0, 5, 2, ...word(16), 1, 2, 50, 1, 0, 1, 1];
  const fields: number[] = [];
  const add = (bytes: readonly number[]) => bytes.forEach((byte) => fields.push(byte));
  add([...header]);
  add(text(directory));
  add([0]);
  for (let k = 0; k < 50_000; k++) add([...text("f"), 1, 0, 0]);
  add([0]);
  const size = fields.length;
  add(program);
  const bytes = Uint8Array.from([...word(size + program.length + 6), 4, 0, ...word(size)].concat(fields));
  return debugLines([{ name: ".debug_line", bytes, offset: 0, after: 0 }]);
}

Deno.test("files of a line table that share a long directory do not each have a copy of it", () => {
  assert.deepEqual(lineTable("src")?.(20), { file: "src/f", line: 1 });
  const lines = lineTable("d".repeat(1 << 20));
  assert.ok(lines !== undefined);
  assert.equal(lines(20), undefined);
});
