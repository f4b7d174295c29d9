/**
 * Writes the description of a module for translation (module_description.ts). In: the environment of a valid module.
 * Out: words, and the bytes of the bodies. Bodies with casts are validated once more, for the static types of their
 * operands.
 */
import { doubled } from "../base/columns.ts";
import { BODY_RULES } from "../validate/late_rules.ts";
import type { CodeVisitor } from "../validate/visitor.ts";
import { BODY } from "../wasm/body_flags.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { IS_CAST } from "./frame_actions.ts";
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
  const { funcs, importedFuncCount } = env.valid;
  const starts = new Int32Array(funcs.length + 1), casts = new CastRecorder();
  for (const [k, { body: { bytes } }] of funcs.entries()) {
    starts[k + 1] = starts[k] + bytes.length;
    if ((env.summaries.flags[k] & BODY.CAST) === 0) continue;
    BODY_RULES.get().validateBody(env.valid, importedFuncCount + k, casts);
  }
  w.words(starts).words(casts.at).words(casts.heap).words(casts.isNullable);
  const bodies = new Uint8Array(starts[funcs.length]);
  for (const [k, { body: { bytes } }] of funcs.entries()) bodies.set(bytes, starts[k]);
  return { words: w.finish(), bodies };
}

/** Records the static types of the operands of casts. */
class CastRecorder implements CodeVisitor {
  readonly at: number[] = [];
  readonly heap: number[] = [];
  readonly isNullable: number[] = [];

  instruction(id: number, imm: Immediates, at: number): void {
    if (IS_CAST[id] === 0) return;
    this.at.push(at);
    this.heap.push(imm.heap2);
    this.isNullable.push(Number(imm.nullable2));
  }

  begin(): void {}
  enter(): void {}
  otherwise(): void {}
  handler(): void {}
  end(): void {}
  finish(): void {}
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
  w.word(env.explicitBounds).word(env.unchecked).word(env.interruptible).word(env.fuel).word(env.deterministic);
  w.word(env.nans).word(env.isLogged).word(env.allPositions);
  w.word(choices.inline).word(choices.inlineLoops).word(choices.callFree).word(choices.untypedTables);
  w.word(choices.ownRecords).word(choices.maskTables).word(choices.maskMemories);
  w.word(env.importsOffset).word(env.functionsOffset).word(env.typeIdsOffset).word(env.tagsOffset);
  w.word(env.sharedLengthsOffset).word(env.stringsOffset);
  w.list(env.signatures, ({ params, results }) => w.words(params).words(results));
  w.words(env.typeSignature).words(env.funcSignature).words(env.tagSignature).words(env.builtinSignature);
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

function writeObjectType(w: DescriptionWriter, { bytes, elementShift, storage, offsets, regions }: ObjectType): void {
  w.word(bytes).word(elementShift).words(storage).words(offsets).words(regions);
}

function writeConstValue(w: DescriptionWriter, { ty, lo, hi, func }: ConstValue): void {
  w.word(ty).word(lo).word(hi).word(func);
}

function writeTableFacts(w: DescriptionWriter, { content, hasNull, allDefined, soleFunction }: TableFacts): void {
  w.words(content).word(hasNull).word(allDefined);
  w.list([...soleFunction], ([id, func]) => w.word(id).word(func));
}
