/**
 * A module as plain data under the specification's field names (chapter 2.5). The binary decoder and the text parser
 * produce it, the encoder and the printer consume it, validation turns it into a ValidModule.
 *
 * Expressions stay in binary form: the text parser emits the bytes that a decoder would have read, so later stages have
 * one input format. `offset` fields are absolute byte offsets in the module's binary form (for a module from text: in
 * the binary that the encoder writes, which parseModule computes by encoding; see text/parse_module.ts).
 *
 * Index spaces: imports come first. `module.funcs[i]` is function index `importedFuncCount + i`.
 */
import type { GlobalType, MemoryType, SubType, TableType, TagType } from "./types.ts";

/** A run of raw bytes of the binary format and its offset in the whole. */
export interface RawBytes {
  readonly bytes: Uint8Array;
  readonly offset: number;
}

/**
 * A view of part of `source`, whose first byte has the offset `base` in the whole. The typed array is made on demand: a
 * module may have ten million expressions, and a typed array takes several times the memory of these four fields.
 */
export class BytesView implements RawBytes {
  readonly source: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly offset: number;

  constructor(source: Uint8Array, start: number, end: number, base: number) {
    this.source = source;
    this.start = start;
    this.end = end;
    this.offset = base + start;
  }

  get bytes(): Uint8Array {
    return this.source.subarray(this.start, this.end);
  }
}

/** The length of `raw` in bytes, without a typed array. */
export function lengthOf(raw: RawBytes): number {
  return raw instanceof BytesView ? raw.end - raw.start : raw.bytes.length;
}

/** A constant or function-body expression in binary form, its final `end` (0x0b) included. */
export type Expr = RawBytes;

/** External kinds and their codes in the binary format. */
export const EXTERN_KIND = { func: 0, table: 1, memory: 2, global: 3, tag: 4 } as const;
/** The code of imported functions of an exact type. */
export const EXACT_FUNC = 0x20;
export type ExternKind = keyof typeof EXTERN_KIND;

export type ImportDesc =
  /** With `exact`, the function is of that type itself, not of a subtype (custom descriptors). */
  | { kind: "func"; typeIndex: number; exact?: true }
  | { kind: "table"; type: TableType }
  | { kind: "memory"; type: MemoryType }
  | { kind: "global"; type: GlobalType }
  | { kind: "tag"; type: TagType };

export interface Import {
  module: string;
  name: string;
  desc: ImportDesc;
  offset: number;
}

/**
 * Imports `start` to `start + count − 1`, which share the name of their module in the compact form (proposal "Compact
 * Import Section"). There may be none.
 */
export interface ImportGroup {
  readonly module: string;
  readonly start: number;
  readonly count: number;
  /** Whether they share their type, too. */
  readonly sameType: boolean;
  /** The type of a group with `sameType` that may have no imports. */
  readonly desc?: ImportDesc;
  readonly offset: number;
}

/**
 * A function defined in the module. `body` is the content of the code entry: local declarations (vec of count and type)
 * and expression.
 */
export interface Func {
  typeIndex: number;
  body: RawBytes;
}

export interface Table {
  type: TableType;
  /** Initial value; absent means ref.null. */
  init?: Expr;
}

export interface Global {
  type: GlobalType;
  init: Expr;
}

export interface Export {
  name: string;
  kind: ExternKind;
  index: number;
  offset: number;
}

/** Entries in order: an array, or columns that make an entry when it is asked for. */
export interface Sequence<T> extends Iterable<T> {
  readonly length: number;
  /** The entry at `index`, from 0; undefined from `length` on. */
  at(index: number): T | undefined;
}

export interface ElementSegment {
  /** The element type. */
  type: number;
  /** Either function indices (compact form) or one constant expression per element. */
  init: { readonly kind: "funcs"; readonly indices: Sequence<number> } | {
    readonly kind: "exprs";
    readonly exprs: Sequence<Expr>;
  };
  mode: { readonly kind: "passive" | "declarative" } | {
    readonly kind: "active";
    readonly table: number;
    readonly start: Expr;
  };
  offset: number;
}

/** The number of elements of a segment. */
export function elementCount({ init }: ElementSegment): number {
  return (init.kind === "funcs" ? init.indices : init.exprs).length;
}

export interface DataSegment {
  bytes: Uint8Array;
  mode: { kind: "passive" } | { kind: "active"; memory: number; start: Expr };
  offset: number;
}

export interface CustomSection {
  name: string;
  bytes: Uint8Array;
  offset: number;
  /** Id of the last non-custom section before it (0: none), so that encoding puts it back. */
  after: number;
}

/** The content of the name section. Decoding is lenient: it leaves out damaged names, as the specification requires. */
export interface Names {
  module?: string;
  funcs: Map<number, string>;
  locals: Map<number, Map<number, string>>;
  labels: Map<number, Map<number, string>>;
  types: Map<number, string>;
  tables: Map<number, string>;
  memories: Map<number, string>;
  globals: Map<number, string>;
  elems: Map<number, string>;
  datas: Map<number, string>;
  fields: Map<number, Map<number, string>>;
  tags: Map<number, string>;
}

export interface Module {
  types: SubType[];
  /** Recursive groups in order: each covers `count` consecutive entries of `types`. */
  recGroups: { start: number; count: number }[];
  imports: Import[];
  /** The groups of `imports` in the compact form, in order. */
  importGroups: ImportGroup[];
  funcs: Func[];
  tables: Table[];
  memories: MemoryType[];
  tags: TagType[];
  globals: Global[];
  exports: Export[];
  start?: number;
  elems: Sequence<ElementSegment>;
  datas: DataSegment[];
  /** Content of the data count section, if there is one. */
  dataCount?: number;
  customs: CustomSection[];
  names: Names;
  /** The binary form; all RawBytes are views into it. */
  bytes: Uint8Array;
}

/** An empty module whose binary form is `bytes`. */
export function emptyModule(bytes: Uint8Array = new Uint8Array(0)): Module & { elems: ElementSegment[] } {
  return {
    types: [],
    recGroups: [],
    imports: [],
    importGroups: [],
    funcs: [],
    tables: [],
    memories: [],
    tags: [],
    globals: [],
    exports: [],
    elems: [],
    datas: [],
    customs: [],
    names: emptyNames(),
    bytes,
  };
}

/** An empty set of names. */
export function emptyNames(): Names {
  return {
    funcs: new Map(),
    locals: new Map(),
    labels: new Map(),
    types: new Map(),
    tables: new Map(),
    memories: new Map(),
    globals: new Map(),
    elems: new Map(),
    datas: new Map(),
    fields: new Map(),
    tags: new Map(),
  };
}
