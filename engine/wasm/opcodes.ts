/**
 * The opcode table: the row pages (opcodes_core, _gc, _simd, _threads, _wide, _stacks, _descriptors) parsed at load
 * into records with dense ids, and lookups over them: by prefix and code, by name, and typed columns by id for hot
 * loops.
 *
 * Establishes: ids are 0 … OPCODES.length − 1 in the order of the pages; no two rows share a code or a name; every
 * column has one entry per id. A mistake in a row is a {@linkcode Bug} at load, before any module is read.
 */
import { Bug } from "../base/errors.ts";
import { ALL_FEATURE_ROWS } from "../settings/features.ts";
import { IMMEDIATE_KINDS, type ImmediateKind, type OpcodeRow, SIGNATURE_LETTERS } from "./opcode_row.ts";
import { CORE_ROWS } from "./opcodes_core.ts";
import { DESCRIPTOR_ROWS } from "./opcodes_descriptors.ts";
import { GC_ROWS } from "./opcodes_gc.ts";
import { SIMD_ROWS } from "./opcodes_simd.ts";
import { PAUSE_ROWS, THREADS_ROWS } from "./opcodes_threads.ts";
import { STACK_ROWS } from "./opcodes_stacks.ts";
import { WIDE_ROWS } from "./opcodes_wide.ts";

type RowText =
  | (typeof CORE_ROWS)[number]
  | (typeof GC_ROWS)[number]
  | (typeof SIMD_ROWS)[number]
  | (typeof THREADS_ROWS)[number]
  | (typeof WIDE_ROWS)[number]
  | (typeof STACK_ROWS)[number]
  | (typeof PAUSE_ROWS)[number]
  | (typeof DESCRIPTOR_ROWS)[number];

type NameOf<Row> = Row extends `${string} ${infer Name} ${string}` ? Name : never;
type SpecialNameOf<Row> = Row extends `${string} ${infer Name} ${string} special ${string}` ? Name : never;

/** The name of a row: the text keyword, with a variant in parentheses where several rows share one. */
export type Mnemonic = NameOf<RowText>;
/** Names of the rows whose validation needs a handler. */
export type SpecialMnemonic = SpecialNameOf<RowText>;

const KINDS: ReadonlySet<string> = new Set(IMMEDIATE_KINDS);
const FEATURES: ReadonlySet<string> = new Set(["mvp", ...ALL_FEATURE_ROWS.map((row) => row.name)]);
const NO_IMMEDIATES: readonly ImmediateKind[] = [];

/** There are few distinct lists of immediates: equal lists share one array. */
const immediateLists = new Map<string, readonly ImmediateKind[]>([["-", NO_IMMEDIATES]]);

function parseImmediates(text: string): readonly ImmediateKind[] {
  let list = immediateLists.get(text);
  if (list === undefined) {
    const kinds = text.split(",");
    for (const kind of kinds) if (!KINDS.has(kind)) throw new Bug(`Unknown immediate kind "${kind}"`);
    list = kinds as ImmediateKind[];
    immediateLists.set(text, list);
  }
  return list;
}

/** The access width in a memory instruction's name: `load8_s` 1 byte, `load16x4_u` 8, `i64.store` 8, `wait32` 4. */
const ACCESS = /(?:load|store|rmw|wait)(\d+)?(?:x(\d+))?/;

function log2AccessBytes(mnemonic: string): number {
  if (mnemonic === "memory.atomic.notify") return 2;
  const match = ACCESS.exec(mnemonic);
  if (match === null) throw new Bug(`"${mnemonic}" has a memarg and no access width`);
  const typeBits = mnemonic.startsWith("v128") ? 128 : Number(mnemonic.slice(1, 3));
  const bits = match[1] === undefined ? typeBits : Number(match[1]) * Number(match[2] ?? 1);
  return 31 - Math.clz32(bits >> 3);
}

interface Signature {
  params: string | undefined;
  results: string | undefined;
}

/** There are few distinct signatures, too. */
const signatures = new Map<string, Signature>([["special", { params: undefined, results: undefined }]]);

function parseSignature(text: string): Signature {
  let signature = signatures.get(text);
  if (signature === undefined) {
    const bar = text.indexOf("_");
    if (bar < 0) throw new Bug(`Signature "${text}" has no results`);
    signature = { params: text.slice(0, bar), results: text.slice(bar + 1) };
    for (let i = 0; i < text.length; i++) {
      if (i !== bar && !SIGNATURE_LETTERS.includes(text[i])) throw new Bug(`Unknown letter in signature "${text}"`);
    }
    signatures.set(text, signature);
  }
  return signature;
}

/** Parses one row of the notation of opcode_row.ts. Exported for plug-in pages and tests. */
export function parseOpcodeRow(text: string, id: number): OpcodeRow {
  const columns = text.split(" ");
  if (columns.length < 5 || columns.length > 6) throw new Bug(`Opcode row "${text}" has a wrong number of columns`);
  const codeText = columns[0];
  const mnemonic = columns[1];
  const colon = codeText.indexOf(":");
  const prefix = colon < 0 ? 0 : parseInt(codeText.slice(0, colon), 16);
  const code = parseInt(codeText.slice(colon + 1), 16);
  if (Number.isNaN(prefix) || Number.isNaN(code)) throw new Bug(`Opcode row "${text}" has no code`);
  const immediates = parseImmediates(columns[2]);
  const signature = parseSignature(columns[3]);
  const feature = columns[4];
  if (!FEATURES.has(feature)) throw new Bug(`Opcode row "${text}" names an unknown feature`);
  return {
    id,
    prefix,
    code,
    mnemonic,
    immediates,
    params: signature.params,
    results: signature.results,
    feature: feature as OpcodeRow["feature"],
    ir: columns[5],
    naturalAlign: /^(?:mem|atomic|rmw)arg/.test(columns[2]) ? log2AccessBytes(mnemonic) : -1,
  };
}

/** Number of codes that each prefix's lookup covers; a row beyond it is rejected at load. */
export const CODE_LIMIT = 0x200;
/** Lookup table number by prefix byte: 0xfb … 0xfe are 1 … 4, no prefix is 0. */
export function pageOf(prefix: number): number {
  return prefix === 0 ? 0 : prefix >= 0xfb && prefix <= 0xfe ? prefix - 0xfa : -1;
}

const PAGES = [
  CORE_ROWS,
  GC_ROWS,
  SIMD_ROWS,
  THREADS_ROWS,
  WIDE_ROWS,
  STACK_ROWS,
  PAUSE_ROWS,
  DESCRIPTOR_ROWS,
] as const;

function parseRows(): OpcodeRow[] {
  const rows: OpcodeRow[] = [];
  for (const page of PAGES) {
    for (const text of page) rows.push(parseOpcodeRow(text, rows.length));
  }
  return rows;
}

/** All rows; `OPCODES[id].id === id`. */
export const OPCODES: readonly OpcodeRow[] = parseRows();

/** A typed array, which a column is. */
type Column = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array;

/**
 * A column by row id. A loop fills it in a tenth of the time that the array's `from` takes in a fresh process, and
 * importing the engine makes two dozen columns.
 */
export function opcodeColumn<T extends Column>(
  Type: new (length: number) => T,
  valueOf: (row: OpcodeRow) => number,
): T {
  const column = new Type(OPCODES.length);
  for (let id = 0; id < OPCODES.length; id++) column[id] = valueOf(OPCODES[id]);
  return column;
}

/** Every row by name. */
const BY_NAME: ReadonlyMap<string, OpcodeRow> = indexByName(OPCODES);

/** Makes the name index and checks that names are unique. Exported for tests. */
export function indexByName(rows: readonly OpcodeRow[]): Map<string, OpcodeRow> {
  const index = new Map<string, OpcodeRow>();
  for (const row of rows) {
    if (index.has(row.mnemonic)) throw new Bug(`Two opcode rows are named "${row.mnemonic}"`);
    index.set(row.mnemonic, row);
  }
  return index;
}

/** Makes the code index: id + 1 at `page * CODE_LIMIT + code`, 0 for codes without a row. Exported for tests. */
export function indexByCode(rows: readonly OpcodeRow[]): Int16Array {
  const index = new Int16Array(5 * CODE_LIMIT);
  for (const row of rows) {
    const page = pageOf(row.prefix);
    if (page < 0 || row.code >= CODE_LIMIT) throw new Bug(`Opcode of "${row.mnemonic}" is out of range`);
    const at = page * CODE_LIMIT + row.code;
    if (index[at] !== 0) throw new Bug(`"${row.mnemonic}" and "${rows[index[at] - 1].mnemonic}" share a code`);
    index[at] = row.id + 1;
  }
  return index;
}

/** Id + 1 at `page * CODE_LIMIT + code`, 0 for codes without a row. */
export const BY_CODE: Int16Array = indexByCode(OPCODES);

/** Id of the one-byte opcode `byte`, or −1: the table for hot loops. */
export const ID_BY_BYTE: Int16Array = Int16Array.from({ length: 256 }, (_, byte) => BY_CODE[byte] - 1);

/** Id of opcode `code` (below `CODE_LIMIT` or not) after `prefix` (0 for none), or −1. */
export function idOfCode(prefix: number, code: number): number {
  const page = pageOf(prefix);
  if (page < 0 || code >= CODE_LIMIT || code < 0) return -1;
  return BY_CODE[page * CODE_LIMIT + code] - 1;
}

/** The row of opcode `code` after `prefix` (0 for none). */
export function rowOf(prefix: number, code: number): OpcodeRow | undefined {
  return OPCODES[idOfCode(prefix, code)];
}

/**
 * The row of a text keyword such as `i32.add`. Of rows that share a keyword (`select`, `ref.test`, `ref.cast`,
 * `ref.cast_desc_eq`) it is the plain one; the variant's name has a suffix: `select(t)`, `ref.test(null)`,
 * `ref.cast(null)`.
 */
export function rowByMnemonic(name: string): OpcodeRow | undefined {
  return BY_NAME.get(name);
}

/** Id of the row named `name`. The name is checked by the compiler. */
export function idOf(name: Mnemonic): number {
  return BY_NAME.get(name)!.id;
}

/** The text keyword of row `id`: its name without a variant. */
export function keywordOf(id: number): string {
  const name = OPCODES[id].mnemonic;
  const paren = name.indexOf("(");
  return paren < 0 ? name : name.slice(0, paren);
}

/** By id: log2 of the natural alignment of a memory access, −1 for rows without a memory argument. */
export const NATURAL_ALIGN: Int8Array = opcodeColumn(Int8Array, (row) => row.naturalAlign);

/** By id: 1 for rows of prefix 0xfe with a memory argument, whose alignment must equal the natural one. */
export const IS_ATOMIC: Uint8Array = opcodeColumn(
  Uint8Array,
  (row) => Number(row.prefix === 0xfe && row.naturalAlign >= 0),
);

/** By id: 1 if the signature determines validation, 0 for special rows. */
export const IS_SIMPLE: Uint8Array = opcodeColumn(Uint8Array, (row) => Number(row.params !== undefined));

/** By id: lane indices must be below this (32 for i8x16.shuffle, whose lanes select from two vectors); 0: no lanes. */
export const LANE_LIMIT: Uint8Array = opcodeColumn(Uint8Array, laneLimit);

function laneLimit(row: OpcodeRow): number {
  if (row.immediates.includes("lanes")) return 32;
  if (!row.immediates.includes("lane")) return 0;
  if (row.naturalAlign >= 0) return 16 >> row.naturalAlign;
  return Number(row.mnemonic.slice(row.mnemonic.indexOf("x") + 1, row.mnemonic.indexOf(".")));
}
