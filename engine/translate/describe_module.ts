/**
 * Writes the description of a module for translation (module_description.ts). In: the environment of a valid module.
 * Out: words, and the bytes of the bodies.
 */
import { doubled } from "../base/columns.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { castTypes } from "./cast_types.ts";
import type { ModuleEnv } from "./module_env.ts";
import type { ConstValue, ModuleFacts, ObjectType, TableFacts } from "./module_facts.ts";

/** A module as translation reads it in another memory. */
export interface ModuleDescription {
  readonly words: Int32Array;
  readonly bodies: Uint8Array;
}

/** Describes the module of `env`. */
export function describeModule(env: ModuleEnv): ModuleDescription {
  const w = new DescriptionWriter();
  writeFacts(w, env);
  const { starts, bodies } = joinBodies(env.valid);
  const casts = castTypes(env);
  w.words(starts).words(casts.at).words(casts.heap).words(casts.isNullable);
  return { words: w.finish(), bodies };
}

/** The bytes of all bodies; defined function k has those from starts[k] to before starts[k + 1]. */
export function joinBodies({ funcs }: ValidModule): { readonly starts: Int32Array; readonly bodies: Uint8Array } {
  const starts = new Int32Array(funcs.length + 1);
  for (const [k, { body: { bytes } }] of funcs.entries()) starts[k + 1] = starts[k] + bytes.length;
  const bodies = new Uint8Array(starts[funcs.length]);
  for (const [k, { body: { bytes } }] of funcs.entries()) bodies.set(bytes, starts[k]);
  return { starts, bodies };
}

/** Writes words in order. */
class DescriptionWriter {
  #words = new Int32Array(1024);
  #count = 0;

  word(value: number | boolean): this {
    this.#reserve(1);
    this.#words[this.#count++] = Number(value);
    return this;
  }

  words(values: ArrayLike<number | boolean>): this {
    this.word(values.length);
    this.#reserve(values.length);
    this.#words.set(values as ArrayLike<number>, this.#count);
    this.#count += values.length;
    return this;
  }

  #reserve(more: number): void {
    if (this.#count + more > this.#words.length) this.#words = doubled(this.#words, this.#count + more);
  }

  numbers(values: Float64Array): this {
    this.word(values.length);
    for (const value of values) this.word(value % 2 ** 32 | 0).word(Math.floor(value / 2 ** 32));
    return this;
  }

  /** A list whose items `write` writes. */
  list<Item>(items: Iterable<Item> & { readonly length: number }, write: (item: Item) => void): this {
    this.word(items.length);
    for (const item of items) write(item);
    return this;
  }

  /** A list with a flag before each item: whether there is one. */
  options<Item>(items: readonly (Item | undefined)[], write: (item: Item) => void): this {
    return this.list(items, (item) => {
      this.word(item !== undefined);
      if (item !== undefined) write(item);
    });
  }

  finish(): Int32Array {
    return this.#words.subarray(0, this.#count);
  }
}

/** Writes the facts, in the order in which readModuleFacts reads them. */
function writeFacts(w: DescriptionWriter, env: ModuleFacts): void {
  const { choices, summaries } = env;
  w.word(env.mode).words(env.fuelPrices).word(env.nans);
  w.word(choices.inline).word(choices.inlineLoops).word(choices.callFree).word(choices.untypedTables);
  w.word(choices.ownRecords).word(choices.maskTables).word(choices.maskMemories);
  w.word(env.importsOffset).word(env.functionsOffset).word(env.typeIdsOffset).word(env.tagsOffset);
  w.word(env.sharedLengthsOffset).word(env.stringsOffset);
  w.list(env.signatures, ({ params, results }) => w.words(params).words(results));
  w.words(env.typeSignature).words(env.ownSignature).words(env.funcSignature).words(env.tagSignature).words(
    env.builtinSignature,
  );
  w.words(env.canonicalIds).words(env.typeParent).words(env.typeDepth).words(env.typeIsFinal).words(env.typeHeap);
  w.options(env.objectTypes, (type) => writeObjectType(w, type));
  w.word(env.importedFuncCount).words(env.funcTypeIndices).words(env.bodyOffset).words(env.counted);
  w.words(summaries.bytes).words(summaries.locals).words(summaries.flags).words(summaries.callSites);
  w.words(env.stringBuiltin).words(env.hintAt).words(env.hintIsLikely);
  w.words(env.globalKind).words(env.globalTy).words(env.globalOffset).words(env.globalRegion);
  w.options(env.globalValues, (value) => writeConstValue(w, value));
  w.words(env.memoryOffset).words(env.memoryRegion).words(env.memoryIs64).words(env.memoryIsGuardable);
  w.words(env.memoryIsShared).words(env.memoryPageShift).numbers(env.memoryMinimum);
  w.words(env.tableOffset).words(env.tableRegion).words(env.tableSizeRegion).words(env.tableFixedLength);
  w.words(env.tableIs64).numbers(env.tableMinimum);
  w.options(env.tableFacts, (facts) => writeTableFacts(w, facts));
  w.word(env.importedTagCount).word(env.depthRegion).word(env.payloadRegion).word(env.sharedLengthRegion);
  w.word(env.stringRegion).word(env.stringContextRegion);
}

function writeObjectType(w: DescriptionWriter, type: ObjectType): void {
  w.word(type.bytes).word(type.elementShift).words(type.storage).words(type.offsets).words(type.regions);
  w.word(type.descriptor);
}

function writeConstValue(w: DescriptionWriter, { ty, lo, hi, func }: ConstValue): void {
  w.word(ty).word(lo).word(hi).word(func);
}

function writeTableFacts(w: DescriptionWriter, { content, hasNull, allDefined, soleFunction }: TableFacts): void {
  w.words(content).word(hasNull).word(allDefined);
  w.list([...soleFunction], ([id, func]) => w.word(id).word(func));
}
