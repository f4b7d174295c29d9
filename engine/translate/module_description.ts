/**
 * The description of a module for translation, in words that every thread reads. In: words (describe_module.ts writes
 * them). Out: the facts about the module, and the places of its bodies.
 *
 * A list is its length and its items, one word each; a number that may exceed 32 bits is its low and its high half.
 */
import { type f64, unsigned } from "../base/numbers.ts";
import type { Signature } from "../ir/types.ts";
import type { BodyFacts, ConstValue, ModuleFacts, ObjectType, TableFacts, TranslationChoices } from "./module_facts.ts";
import type { CastTypes, ValidBodies } from "./valid_body.ts";

/** Reads words in order. */
export class DescriptionReader {
  readonly #words: Int32Array;
  #at = 0;

  constructor(words: Int32Array) {
    this.#words = words;
  }

  word(): number {
    return this.#words[this.#at++];
  }

  flag(): boolean {
    return this.word() !== 0;
  }

  words(): Int32Array {
    const count = this.word();
    const start = this.#at;
    this.#at = start + count;
    return this.#words.subarray(start, start + count);
  }

  bytes(): Uint8Array {
    const words = this.words();
    const bytes = new Uint8Array(words.length);
    for (let k = 0; k < words.length; k++) bytes[k] = words[k];
    return bytes;
  }

  flags(): boolean[] {
    const flags: boolean[] = [];
    for (let left = this.word(); left > 0; left--) flags.push(this.flag());
    return flags;
  }

  numbers(): Float64Array {
    const numbers = new Float64Array(this.word());
    for (let k = 0; k < numbers.length; k++) {
      const low: f64 = unsigned(this.word());
      numbers[k] = unsigned(this.word()) * 4294967296 + low;
    }
    return numbers;
  }
}

/** Reads the facts about a module. */
export function readModuleFacts(r: DescriptionReader): ModuleFacts {
  return {
    mode: r.word(),
    fuelPrices: r.bytes(),
    nans: r.word(),
    choices: readChoices(r),
    importsOffset: r.word(),
    functionsOffset: r.word(),
    typeIdsOffset: r.word(),
    tagsOffset: r.word(),
    sharedLengthsOffset: r.word(),
    stringsOffset: r.word(),
    signatures: readSignatures(r),
    typeSignature: r.words(),
    ownSignature: r.words(),
    funcSignature: r.words(),
    tagSignature: r.words(),
    builtinSignature: r.words(),
    canonicalIds: r.words(),
    typeParent: r.words(),
    typeDepth: r.words(),
    typeIsFinal: r.bytes(),
    typeHeap: r.words(),
    objectTypes: readObjectTypes(r),
    importedFuncCount: r.word(),
    funcTypeIndices: r.words(),
    bodyOffset: r.words(),
    counted: r.bytes(),
    summaries: readBodyFacts(r),
    stringBuiltin: r.words(),
    hintAt: r.words(),
    hintIsLikely: r.bytes(),
    globalKind: r.bytes(),
    globalTy: r.bytes(),
    globalOffset: r.words(),
    globalRegion: r.words(),
    globalValues: readConstValues(r),
    memoryOffset: r.words(),
    memoryRegion: r.words(),
    memoryIs64: r.flags(),
    memoryIsGuardable: r.flags(),
    memoryIsShared: r.flags(),
    memoryPageShift: r.bytes(),
    memoryMinimum: r.numbers(),
    tableOffset: r.words(),
    tableRegion: r.words(),
    tableSizeRegion: r.words(),
    tableFixedLength: r.words(),
    tableIs64: r.flags(),
    tableMinimum: r.numbers(),
    tableFacts: readTableFacts(r),
    importedTagCount: r.word(),
    depthRegion: r.word(),
    payloadRegion: r.word(),
    sharedLengthRegion: r.word(),
    stringRegion: r.word(),
    stringContextRegion: r.word(),
  };
}

function readChoices(r: DescriptionReader): TranslationChoices {
  return {
    inline: r.flag(),
    inlineLoops: r.flag(),
    callFree: r.flag(),
    untypedTables: r.flag(),
    ownRecords: r.flag(),
    maskTables: r.flag(),
    maskMemories: r.flag(),
  };
}

function readSignatures(r: DescriptionReader): Signature[] {
  const signatures: Signature[] = [];
  for (let left = r.word(); left > 0; left--) signatures.push({ params: r.bytes(), results: r.bytes() });
  return signatures;
}

function readBodyFacts(r: DescriptionReader): BodyFacts {
  return { bytes: r.words(), locals: r.words(), flags: r.bytes(), callSites: r.words() };
}

/** A flag per type: whether it has a layout, which follows. */
function readObjectTypes(r: DescriptionReader): (ObjectType | undefined)[] {
  const types: (ObjectType | undefined)[] = [];
  for (let left = r.word(); left > 0; left--) types.push(r.flag() ? readObjectType(r) : undefined);
  return types;
}

function readObjectType(r: DescriptionReader): ObjectType {
  return {
    bytes: r.word(),
    elementShift: r.word(),
    storage: r.words(),
    offsets: r.words(),
    regions: r.words(),
    descriptor: r.word(),
  };
}

function readConstValues(r: DescriptionReader): (ConstValue | undefined)[] {
  const values: (ConstValue | undefined)[] = [];
  for (let left = r.word(); left > 0; left--) values.push(r.flag() ? readConstValue(r) : undefined);
  return values;
}

function readConstValue(r: DescriptionReader): ConstValue {
  return { ty: r.word(), lo: r.word(), hi: r.word(), func: r.word() };
}

function readTableFacts(r: DescriptionReader): (TableFacts | undefined)[] {
  const tables: (TableFacts | undefined)[] = [];
  for (let left = r.word(); left > 0; left--) tables.push(r.flag() ? readTable(r) : undefined);
  return tables;
}

function readTable(r: DescriptionReader): TableFacts {
  return { content: r.words(), hasNull: r.flag(), allDefined: r.flag(), soleFunction: readSoleFunctions(r) };
}

/** Pairs of a canonical type id and a function. */
function readSoleFunctions(r: DescriptionReader): Map<number, number> {
  const functions = new Map<number, number>();
  for (let left = r.word(); left > 0; left--) {
    const id = r.word();
    functions.set(id, r.word());
  }
  return functions;
}

/** Reads the places of the bodies in `bytes`, and the casts in them. */
export function readBodies(r: DescriptionReader, bytes: Uint8Array): ValidBodies {
  const start = r.words();
  const casts: CastTypes = { at: r.words(), heap: r.words(), isNullable: r.bytes() };
  return { bytes, start, casts };
}
