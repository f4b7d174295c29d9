/**
 * Computes the facts about a module that the translation of any of its functions reads (module_facts.ts), once: those
 * of the module's interface (module_interface.ts), location and alias class of each global, memory and table, summaries
 * of all bodies. In: a ValidModule and options. Out: a ModuleEnv, which translation does not modify, except for the
 * optimization statistics.
 *
 * Alias classes: one per memory beyond 0, per own global, per own table. Two imports of one kind may be the same
 * object, so imported mutable globals share a class, imported tables share one, and imported memories share that of
 * memory 0.
 */
import { MODE } from "../settings/code_mode.ts";
import { type CodeSettings, codeSettings, modeOf } from "../settings/code_settings.ts";
import type { NanCode } from "../settings/nans.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import { Statistics } from "../base/statistics.ts";
import { type ContextLayout, GLOBAL_SIZE, MEMORY, TABLE } from "../abi/context_layout.ts";
import { CLASS_CONSTANT, CLASS_FIRST_FREE, CLASS_MEMORY0, CLASS_SIZES, REGION, region } from "../ir/regions.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { pricesOf } from "../wasm/late_fuel_groups.ts";
import { subtypeDepth } from "../wasm/subtype.ts";
import { HEAP, heapOf, I64, isGuardable, isRef, pageBytes } from "../wasm/types.ts";
import { constValue } from "./const_value.ts";
import { BODY_ANALYSIS } from "./late_body_analysis.ts";
import { tyOf } from "../wasm/ir_types.ts";
import { type ConstValue, GLOBAL, type ModuleFacts, NAN_CODE, type TableFacts } from "./module_facts.ts";
import { type ModuleInterface, moduleInterface } from "./module_interface.ts";
import { objectTypes } from "./object_types.ts";
import type { Summaries } from "./summaries.ts";
import { tableFacts } from "./table_facts.ts";

export interface EnvOptions extends Partial<CodeSettings> {
  /** Omits the bounds checks of memory 0, whatever its address type: for intrinsic modules only. */
  unchecked?: boolean;
  /** The NaNs of deterministic code; `canonical` by default. */
  nanCode?: NanCode;
  /** Give positions to pure instructions too: for tools. The code is the same. */
  allPositions?: boolean;
  optimizations: OptimizationSet;
  statistics?: Statistics;
  /** The summaries of the bodies, if they exist already. */
  summaries?: Summaries;
}

export interface ModuleEnv extends ModuleInterface, ModuleFacts {
  readonly valid: ValidModule;
  readonly optimizations: OptimizationSet;
  readonly statistics: Statistics;
  readonly summaries: Summaries;
}

/** Computes the environment of a module's functions. */
export function moduleEnv(valid: ValidModule, options: EnvOptions): ModuleEnv {
  const shape = moduleInterface(valid);
  const { layout } = shape;
  const classes = new AliasClasses();
  const summaries = options.summaries ?? BODY_ANALYSIS.get().summarize(valid);
  const memories = placeMemories(valid, layout, classes);
  const globals = placeGlobals(valid, layout, classes);
  const facts = options.optimizations["immutable-table"]
    ? tableFacts(valid, summaries, globals.globalValues)
    : valid.tableTypes.map(() => undefined);
  const tables = placeTables(valid, layout, classes, facts);
  layout.knownTables = [...facts.keys()].filter((k) => facts[k] !== undefined);
  const payloadRegion = region(REGION.POINTER, classes.take());
  const depthRegion = region(REGION.POINTER, classes.take());
  const sharedLengthRegion = region(REGION.POINTER, classes.take());
  const objects = objectTypes(valid, () => classes.take());
  const stringClass = classes.take();
  const { optimizations } = options;
  const settings = codeSettings(options);
  const { fuelPrices, deterministic, stack } = settings;
  return {
    ...shape,
    valid,
    mode: modeOf(settings) | (options.unchecked === true ? MODE.UNCHECKED : 0) |
      (options.allPositions === true ? MODE.ALL_POSITIONS : 0),
    fuelPrices: pricesOf(fuelPrices),
    nans: NAN_CODE[options.nanCode ?? (deterministic ? "canonical" : "any")],
    counted: deterministic ? BODY_ANALYSIS.get().countedFunctions(valid, stack) : new Uint8Array(0),
    choices: {
      inline: optimizations["inline"],
      inlineLoops: optimizations["inline-loop-callees"],
      callFree: optimizations["inline-callfree"],
      untypedTables: optimizations["immutable-table-type"],
      ownRecords: optimizations["immutable-poly-fastpath"],
      maskTables: optimizations["mask-tables"],
      maskMemories: optimizations["mask-memories"],
    },
    importsOffset: layout.importsOffset,
    functionsOffset: layout.functionsOffset,
    typeIdsOffset: layout.typeIdsOffset,
    tagsOffset: layout.tagsOffset,
    sharedLengthsOffset: layout.sharedLengthsOffset,
    stringsOffset: layout.stringsOffset,
    tagSignature: Int32Array.from(valid.tagTypeIndices, (index) => shape.typeSignature[index]),
    importedFuncCount: valid.importedFuncCount,
    importedTagCount: valid.importedTagCount,
    funcTypeIndices: valid.funcTypeIndices,
    ...describeTypes(valid),
    ownSignature: Int32Array.from(valid.types, ({ composite }) => {
      const own = composite.kind === "cont" ? lastParameter(valid, composite.func) : -1;
      return own < 0 ? -1 : shape.typeSignature[own];
    }),
    bodyOffset: Int32Array.from(valid.funcs, ({ body }) => body.offset),
    ...placeHints(valid),
    depthRegion,
    optimizations,
    statistics: options.statistics ?? new Statistics(),
    payloadRegion,
    sharedLengthRegion,
    objectTypes: objects,
    ...memories,
    ...globals,
    ...tables,
    tableFacts: facts,
    summaries,
    stringBuiltin: builtinsByFunction(shape.strings, valid.importedFuncCount),
    stringRegion: region(REGION.POINTER, stringClass),
    stringContextRegion: region(REGION.CONTEXT, stringClass),
  };
}

/** The heap type of the last parameter of function type `index`; −1 if that is no reference to a type. */
function lastParameter({ types }: ValidModule, index: number): number {
  const { composite } = types[index];
  const last = composite.kind === "func" ? composite.params.at(-1) : undefined;
  return last !== undefined && isRef(last) ? Math.max(-1, heapOf(last)) : -1;
}

function describeTypes({ types, canonicalIds }: ValidModule) {
  return {
    canonicalIds,
    typeParent: Int32Array.from(types, ({ supertypes }) => supertypes[0] ?? -1),
    typeDepth: Int32Array.from(canonicalIds, subtypeDepth),
    typeIsFinal: Uint8Array.from(types, ({ final }) => Number(final)),
    typeHeap: Int32Array.from(types, ({ composite }) => HEAP[composite.kind]),
  };
}

/** The hints in ascending order of their branches. */
function placeHints({ branchHints, funcs, importedFuncCount }: ValidModule) {
  const hints: [at: number, hint: number][] = [];
  for (const [func, places] of branchHints) {
    const { body } = funcs[func - importedFuncCount];
    for (const [at, hint] of places) hints.push([body.offset + at, hint]);
  }
  hints.sort(([a], [b]) => a - b);
  return {
    hintAt: Int32Array.from(hints, ([at]) => at),
    hintIsLikely: Uint8Array.from(hints, ([, hint]) => Number(hint === 1)),
  };
}

/** The least number of bytes or elements, as ModuleFacts has it. */
function clipped(minimum: bigint): number {
  return Number(minimum < 1n << 53n ? minimum : 1n << 53n);
}

function builtinsByFunction(strings: Int32Array, importedFuncs: number): Int32Array {
  const found = new Int32Array(importedFuncs).fill(-1);
  strings.forEach((index, k) => {
    if (index >= 0) found[index] = k;
  });
  return found;
}

/** Allocates alias classes. */
class AliasClasses {
  #next = CLASS_FIRST_FREE;

  take(): number {
    return this.#next++;
  }
}

function placeMemories(valid: ValidModule, layout: ContextLayout, classes: AliasClasses) {
  const count = valid.memoryTypes.length;
  const memoryOffset = new Int32Array(count);
  const memoryRegion = new Int32Array(count);
  for (let k = 0; k < count; k++) {
    memoryOffset[k] = layout.memoriesOffset + k * MEMORY.SIZE;
    const shared = k === 0 || k < valid.importedMemoryCount;
    memoryRegion[k] = region(k === 0 ? REGION.MEMORY0 : REGION.POINTER, shared ? CLASS_MEMORY0 : classes.take());
  }
  return {
    memoryOffset,
    memoryRegion,
    memoryIs64: valid.memoryTypes.map(({ limits }) => limits.address === I64),
    memoryIsGuardable: valid.memoryTypes.map(isGuardable),
    memoryPageShift: Uint8Array.from(valid.memoryTypes, (type) => Math.log2(pageBytes(type))),
    memoryMinimum: Float64Array.from(
      valid.memoryTypes,
      (type) => clipped(type.limits.min * BigInt(pageBytes(type))),
    ),
  };
}

function placeGlobals(valid: ValidModule, layout: ContextLayout, classes: AliasClasses) {
  const { globalTypes, importedGlobalCount } = valid;
  const count = globalTypes.length;
  const globalKind = new Uint8Array(count);
  const globalTy = new Uint8Array(count);
  const globalOffset = new Int32Array(count);
  const globalRegion = new Int32Array(count);
  const globalValues: (ConstValue | undefined)[] = [];
  const importedClass = classes.take();
  for (let k = 0; k < count; k++) {
    const { type, mutable } = globalTypes[k];
    globalTy[k] = tyOf(type);
    globalOffset[k] = layout.globalsOffset + k * GLOBAL_SIZE;
    globalRegion[k] = region(REGION.CONTEXT, CLASS_CONSTANT);
    globalValues.push(undefined);
    if (mutable && k < importedGlobalCount) {
      globalKind[k] = GLOBAL.POINTER;
      globalRegion[k] = region(REGION.POINTER, importedClass);
    } else if (mutable) {
      globalRegion[k] = region(REGION.CONTEXT, classes.take());
    } else if (k >= importedGlobalCount) {
      globalValues[k] = constValue(valid.globals[k - importedGlobalCount].init, globalValues);
      if (globalValues[k] !== undefined) globalKind[k] = GLOBAL.KNOWN;
    }
  }
  return { globalKind, globalTy, globalOffset, globalRegion, globalValues };
}

function placeTables(
  valid: ValidModule,
  layout: ContextLayout,
  classes: AliasClasses,
  facts: readonly (TableFacts | undefined)[],
) {
  const { tableTypes, importedTableCount } = valid;
  const count = tableTypes.length;
  const tableOffset = new Int32Array(count);
  const tableRegion = new Int32Array(count);
  const tableSizeRegion = new Int32Array(count);
  const tableFixedLength = new Int32Array(count).fill(-1);
  const importedClass = classes.take();
  for (let k = 0; k < count; k++) {
    const { limits } = tableTypes[k];
    tableOffset[k] = layout.tablesOffset + k * TABLE.SIZE;
    // A table that is never written needs a class too: a load of CLASS_CONSTANT may move above its bounds check.
    tableRegion[k] = region(REGION.POINTER, k < importedTableCount ? importedClass : classes.take());
    // The base and length of a table that cannot grow are constant.
    const fixed = facts[k] !== undefined || limits.max !== undefined && limits.max === limits.min;
    tableSizeRegion[k] = region(REGION.CONTEXT, fixed ? CLASS_CONSTANT : CLASS_SIZES);
    if (fixed && limits.min <= 0x7fffffffn) tableFixedLength[k] = Number(limits.min);
  }
  return {
    tableOffset,
    tableRegion,
    tableSizeRegion,
    tableFixedLength,
    tableIs64: tableTypes.map(({ limits }) => limits.address === I64),
    tableMinimum: Float64Array.from(tableTypes, ({ limits }) => clipped(limits.min)),
  };
}
