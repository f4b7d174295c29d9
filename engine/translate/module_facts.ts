/**
 * The facts about a module that the translation of its bodies reads. In: columns by index, which module_env.ts computes
 * from a ValidModule, and which may be read from words elsewhere. Out: offsets, region words, types. Translation
 * modifies none of them.
 */
import { RECORD, STRINGS } from "../abi/context_layout.ts";
import type { Statistics } from "../base/statistics.ts";
import type { Signature } from "../ir/types.ts";

/** The access path of a global. */
export const GLOBAL = {
  /** The value is in the global's slot of the context. */
  SLOT: 0,
  /** The slot holds the address of the value's cell (imported, mutable). */
  POINTER: 1,
  /** The value is known: `globalValues`. */
  KNOWN: 2,
} as const;

/** Numbers of the codes for the bits of NaNs (nans.ts). */
export const NAN_CODE = { any: 0, own: 1, canonical: 2, x64: 3, arm64: 4 } as const;

/** A known constant: number or null bits, or `func` ≥ 0 for a reference to that function. */
export interface ConstValue {
  ty: number;
  lo: number;
  hi: number;
  /** Function index of a function reference, else −1. */
  func: number;
}

/** The content of a table. */
export interface TableFacts {
  /** Function index by element, −1 for null. */
  readonly content: Int32Array;
  /** Some element is null. */
  readonly hasNull: boolean;
  /** All functions are defined by the module, not imported. */
  readonly allDefined: boolean;
  /** By canonical type id: the only function of that type, −1 if there are several. */
  readonly soleFunction: ReadonlyMap<number, number>;
}

/** A structure, or an array, whose single field describes its elements. */
export interface ObjectType {
  /** Size of a structure, header included; log2 of the size of an array's element. */
  readonly bytes: number;
  readonly elementShift: number;
  /** By field: storage type, offset in the object, region word. */
  readonly storage: Int32Array;
  readonly offsets: Int32Array;
  readonly regions: Int32Array;
  /** Offset of the reference to the descriptor; 0 if objects of this type have none. */
  readonly descriptor: number;
}

/** Properties of the bodies, by defined function. */
export interface BodyFacts {
  /** Length of the expression in bytes. */
  readonly bytes: Int32Array;
  /** Number of declared locals; at most 2^31 − 1. */
  readonly locals: Int32Array;
  /** BODY bits. */
  readonly flags: Uint8Array;
  /** Number of direct call sites in the module. */
  readonly callSites: Int32Array;
}

/** The optimizations that translation makes, each by a key of the optimization table. */
export interface TranslationChoices {
  /** inline, inline-loop-callees */
  readonly inline: boolean;
  readonly inlineLoops: boolean;
  /** inline-callfree: a caller whose calls were all inlined is a leaf. */
  readonly callFree: boolean;
  /** immutable-table-type: calls through tables with functions of one type need no check of the type. */
  readonly untypedTables: boolean;
  /** immutable-poly-fastpath */
  readonly ownRecords: boolean;
  readonly maskTables: boolean;
  readonly maskMemories: boolean;
}

export interface ModuleFacts {
  /** Bits of MODE (settings/code_mode.ts). */
  readonly mode: number;
  /** By opcode row: its price plus 1, or 0 for the default; empty if all have the default. */
  readonly fuelPrices: Uint8Array;
  /** One of NAN_CODE. */
  readonly nans: number;
  readonly choices: TranslationChoices;

  // Offsets in the VM context.
  readonly importsOffset: number;
  readonly functionsOffset: number;
  readonly typeIdsOffset: number;
  readonly tagsOffset: number;
  readonly sharedLengthsOffset: number;
  readonly stringsOffset: number;

  /**
   * Signatures by id; ids by type index (−1 for objects), function, tag and builtin number. By type index of a
   * continuation whose last parameter is a continuation: the signature of that one, else −1.
   */
  readonly signatures: readonly Signature[];
  readonly typeSignature: Int32Array;
  readonly ownSignature: Int32Array;
  readonly funcSignature: Int32Array;
  readonly tagSignature: Int32Array;
  readonly builtinSignature: Int32Array;

  /**
   * By type index: canonical id, supertype (a type index, −1 for none), their number, 1 if final, abstract heap type.
   */
  readonly canonicalIds: Int32Array;
  readonly typeParent: Int32Array;
  readonly typeDepth: Int32Array;
  readonly typeIsFinal: Uint8Array;
  readonly typeHeap: Int32Array;
  /** Layout of structures and arrays in memory, by type index. */
  readonly objectTypes: readonly (ObjectType | undefined)[];

  readonly importedFuncCount: number;
  /** Type index by function index, imports included. */
  readonly funcTypeIndices: Int32Array;
  /** By defined function: absolute offset of its body; whether it counts calls, empty unless deterministic. */
  readonly bodyOffset: Int32Array;
  readonly counted: Uint8Array;
  readonly summaries: BodyFacts;
  /** By imported function: number of the string builtin that the import names, −1 for other imports. */
  readonly stringBuiltin: Int32Array;
  /** Absolute offsets of hinted branches, ascending, and 1 for those that are likely taken. */
  readonly hintAt: Int32Array;
  readonly hintIsLikely: Uint8Array;

  /** GLOBAL kind, IR type, slot offset in the context and region word of the value, by global index. */
  readonly globalKind: Uint8Array;
  readonly globalTy: Uint8Array;
  readonly globalOffset: Int32Array;
  readonly globalRegion: Int32Array;
  readonly globalValues: readonly (ConstValue | undefined)[];

  /** Context offset of a memory's base, and region word of its bytes, by memory index. */
  readonly memoryOffset: Int32Array;
  readonly memoryRegion: Int32Array;
  /** By memory index: 64-bit addresses; guard pages can bound its accesses; shared; log2 of the bytes of a page. */
  readonly memoryIs64: readonly boolean[];
  readonly memoryIsGuardable: readonly boolean[];
  readonly memoryIsShared: readonly boolean[];
  readonly memoryPageShift: Uint8Array;
  /** Bytes that the memory has at least; at most 2^53. */
  readonly memoryMinimum: Float64Array;

  /**
   * Context offset of a table's base, region word of its elements and of its base and length, length when fixed or −1.
   */
  readonly tableOffset: Int32Array;
  readonly tableRegion: Int32Array;
  readonly tableSizeRegion: Int32Array;
  readonly tableFixedLength: Int32Array;
  /** By table index: 64-bit indices; elements that the table has at least, at most 2^53. */
  readonly tableIs64: readonly boolean[];
  readonly tableMinimum: Float64Array;
  /** Facts about a table's content, by table index; only with `immutable-table`. */
  readonly tableFacts: readonly (TableFacts | undefined)[];

  /** Number of imported tags. */
  readonly importedTagCount: number;

  /** Region words: the thread's remaining stack, a caught exception, lengths of shared memories. */
  readonly depthRegion: number;
  readonly payloadRegion: number;
  readonly sharedLengthRegion: number;
  /** Region words of the string table's entries and of its address; calls write both. */
  readonly stringRegion: number;
  readonly stringContextRegion: number;
}

/** How often each optimization was applied. */
export class TranslationCounts {
  inlined = 0;
  inlinedLoops = 0;
  callFree = 0;
  knownTables = 0;
  untypedTables = 0;
  ownRecords = 0;

  reset(): void {
    this.inlined = 0;
    this.inlinedLoops = 0;
    this.callFree = 0;
    this.knownTables = 0;
    this.untypedTables = 0;
    this.ownRecords = 0;
  }
}

/** Adds `counts` to `statistics`. */
export function countTranslation(counts: TranslationCounts, statistics: Statistics): void {
  statistics.count("inline", counts.inlined);
  statistics.count("inline-loop-callees", counts.inlinedLoops);
  statistics.count("inline-callfree", counts.callFree);
  statistics.count("immutable-table", counts.knownTables);
  statistics.count("immutable-table-type", counts.untypedTables);
  statistics.count("immutable-poly-fastpath", counts.ownRecords);
}

/** Context offset of the record of function `index`: the embedded copy of an import, or the function's own. */
export function recordOffset(env: ModuleFacts, index: number): number {
  const imported = env.importedFuncCount;
  return index < imported
    ? env.importsOffset + index * RECORD.SIZE
    : env.functionsOffset + (index - imported) * RECORD.SIZE;
}

/** The function index by which code calls string builtin `k`, as if it were an import. */
export function builtinImport(env: ModuleFacts, k: number): number {
  return (((env.stringsOffset + STRINGS.RECORDS - env.importsOffset) / RECORD.SIZE) | 0) + k;
}

/** The parameters of function `index`. */
export function paramCount(env: ModuleFacts, index: number): number {
  return env.signatures[env.funcSignature[index]].params.length;
}

/** The results of function `index`. */
export function resultCount(env: ModuleFacts, index: number): number {
  return env.signatures[env.funcSignature[index]].results.length;
}
