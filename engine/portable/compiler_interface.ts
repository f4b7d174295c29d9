/**
 * The interface of the compiled form of the compiler: what its entries (scripts/generate/portable/) and its driver
 * (portable_compiler.ts) must agree on. In: the options and counts of the compiler's stages. Out: bits of options,
 * words of records in the instance's memory, the exports.
 */
import { CodegenCounts, CodegenOptions } from "../codegen/codegen_options.ts";
import { PassCounts, type PassOptions } from "../optimize/pass_options.ts";
import { AllocationCounts, type AllocatorOptions } from "../regalloc/allocator_options.ts";
import { TranslationCounts } from "../translate/module_facts.ts";

/** The exports of the module that compile functions. */
export interface CompilerExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  /** Drops all memory but that of the constants. */
  reset(): void;
  /** Sets the limit of the memory in bytes, constants included; at most 2^31. */
  limitMemory(bytes: number): void;
  /** The end of the used memory in bytes. */
  usedBytes(): number;
  /** After a trap: the failure (translate/failures.ts), its subject, its offset. */
  failed(n: number): number;

  /** Makes room for a description of a module and its bodies; returns the description's address. */
  reserveModule(words: number, bytes: number): number;
  bodiesAddress(): number;
  /** Reads the description. */
  openModule(): void;
  /** Makes room for bodies to scan, at `bodiesAddress`, and their starts; returns the address of these. */
  reserveScan(functions: number, tables: number, bytes: number): number;
  /** Scans them (translate/body_scan.ts), for a module with `imported` imported functions. */
  scanBodies(imported: number): void;
  /** The address of column `n` of {@linkcode SCAN_COLUMNS}, and the length of that of callees. */
  scanColumn(n: number): number;
  scannedCalls(): number;
  /** Fields 0 to 2 of inlined call `n` of the function: parent, callPos, funcIndex. */
  inlineSite(n: number, field: number): number;

  setRegisters(general: number, vector: number): void;
  addRegister(register: number): void;
  addDenial(functions: number, bits: number, general: number, vector: number): void;

  /** Begins the code of a module, for x64 or arm64; `constants` is the offset of the constants in its image. */
  beginModule(arm64: number, bits: number, ...counts: [...offsets: number[], constants: number]): void;
  setShared(memory: number): void;
  addSignature(params: number, results: number): void;
  setSignatureType(id: number, k: number, ty: number): void;
  /** The address of column `n` of {@linkcode KNOWN_COLUMNS}, or of {@linkcode RANK_COLUMN}. */
  knownColumn(n: number): number;

  /**
   * Compiles defined function `index` of the module from its bytes; returns the address of the record of
   * {@linkcode FACT}.
   */
  compileFunction(index: number, passes: number, allocation: number): number;
  /**
   * Compiles defined function `index` from the loop at offset `at` on, as function `as` of the code; 0 if the loop
   * cannot be entered.
   */
  compileLoop(index: number, at: number, as: number, passes: number, allocation: number): number;
  /**
   * Makes room for a list of bodies, rows of {@linkcode LISTED}; returns its address. The list is compiled at once,
   * without any call in between: where no JavaScript can run.
   */
  reserveList(bodies: number): number;
  compileListed(passes: number, allocation: number): void;
  /** The number of bodies of the list that are compiled, or cannot be entered. */
  listedDone(): number;
  /** The address of the record {@linkcode LISTED_RECORD} about body `n` of the list. */
  listedRecord(n: number): number;
  /** The address of the record of counts about the function: those of {@linkcode COUNTS}, then those of denials. */
  counts(): number;
}

/** Words of the record about the function that was compiled last. `_AT`: the address of an array. */
export const FACT = {
  CODE_AT: 0,
  CODE_BYTES: 1,
  CALLS_AT: 2,
  CALL_WORDS: 3,
  TRAPS_AT: 4,
  TRAP_WORDS: 5,
  /** Relocations: offsets, kinds and targets. */
  RELOC_AT: 6,
  RELOC_KIND_AT: 7,
  RELOC_TARGET_AT: 8,
  RELOCATIONS: 9,
  /** Registers that it writes. */
  WRITTEN_GENERAL: 10,
  WRITTEN_VECTOR: 11,
  END: 12,
  FRAME: 13,
  /** As MachineCode.missing: if it is a function, there is no code. */
  MISSING: 14,
  INLINE_SITES: 15,
  ALIGNMENT: 16,
  COUNT: 17,
} as const;

/** Words of a row of the list of bodies. */
export const LISTED = {
  /** The defined function. */
  INDEX: 0,
  /** Offset of the loop from which on it is compiled; −1: the whole function. */
  LOOP_AT: 1,
  /** The number of the code that begins with a loop. */
  AS: 2,
  WORDS: 3,
} as const;

/** The columns that a scan of bodies fills, by number: those of Summaries (translate/summaries.ts). */
export const SCAN_COLUMNS = [
  ...["bytes", "locals", "flags", "callSites", "tableWritten", "calleeStart", "callees"] as const,
  "calleesFirst",
] as const;

/** The columns of facts about the functions that are compiled already, by number. */
export const KNOWN_COLUMNS = ["writtenGeneral", "writtenVector", "writtenKnown"] as const;
/** The number of the column `rank`, which exists once it has been requested. */
export const RANK_COLUMN: number = KNOWN_COLUMNS.length;

/** The names of the numbers among the fields of `counts`. */
function fieldsOf<Counts extends object>(counts: Counts): readonly NumberField<Counts>[] {
  return Object.keys(counts) as NumberField<Counts>[];
}

type NumberField<T> = { [Name in keyof T]: T[Name] extends number ? Name : never }[keyof T];

/** The counts of each stage, in the order of the record. */
export const COUNTS = {
  translation: fieldsOf(new TranslationCounts()),
  passes: fieldsOf(new PassCounts()),
  allocation: fieldsOf(new AllocationCounts()),
  codegen: fieldsOf(new CodegenCounts()),
} as const;

/** Word of the record of counts where those of denied registers begin; the maximum number of their rows. */
export const FIRST_DENIAL: number = Object.values(COUNTS).reduce((sum, { length }) => sum + length, 0);
export const MAX_DENIALS = 16;

/** Words of the record about a body of the list. It begins with the words of FACT. */
export const LISTED_RECORD = {
  /** The address of the inline sites, three words each. */
  SITES_AT: FACT.COUNT,
  /** 1; 0 for a loop that cannot be entered. */
  IS_COMPILED: FACT.COUNT + 1,
  /** Counts, as in the record of `counts`. */
  COUNTS: FACT.COUNT + 2,
  WORDS: FACT.COUNT + 2 + FIRST_DENIAL + MAX_DENIALS,
} as const;

/** The truth values of CodegenOptions, by bit of `beginModule`. */
export const OPTION_FLAGS = Object.entries(new CodegenOptions())
  .filter(([, value]) => typeof value === "boolean").map(([name]) => name) as readonly OptionFlag[];

type OptionFlag = { [Name in keyof CodegenOptions]: CodegenOptions[Name] extends boolean ? Name : never }[
  keyof CodegenOptions
];

/** The freedoms of the register allocator, by bit of `allocation`; the bit above them is for halves of slots. */
export const FREEDOMS = [
  ...["lateStores", "lazyReloads", "mergeInRegisters", "vectorPins", "loopRegions", "teeHints"] as const,
  ...["unaryHints", "vectorHints", "sharedSlots", "compactSlots", "entryArguments", "allFloats"] as const,
] satisfies readonly (keyof AllocatorOptions)[];
export const HALVES_BIT: number = 1 << FREEDOMS.length;

/** The parts of GVN and the other passes, by bit of `passes`. */
export const GVN_FLAGS = ["simplify", "storeForward", "boundsFacts", "manyBounds"] as const;
export const PASS_FLAGS = ["hoistConstants", "versionLoops", "chainTrees", "orderTrees", "reduceNans"] as const;

/** A number whose bit `n` is set if `flags[n]` is true. */
export function bitsOf(flags: readonly boolean[]): number {
  return flags.reduce((bits, on, n) => on ? bits | (1 << n) : bits, 0);
}

/** The bits for `options`, as the entry of the optimizer reads them. */
export function passBits(options: PassOptions): number {
  return bitsOf([...GVN_FLAGS.map((name) => options.gvn[name]), ...PASS_FLAGS.map((name) => options[name])]);
}
