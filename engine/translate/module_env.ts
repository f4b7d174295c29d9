/**
 * Facts about a module that the translation of any of its functions reads, computed once: those of the module's
 * interface (module_interface.ts), location and alias class of each global, memory and table, summaries of all bodies.
 * In: a ValidModule and options. Out: a ModuleEnv, which translation does not modify, except for the optimization
 * statistics.
 *
 * Alias classes: one per memory beyond 0, per own global, per own table. Two imports of one kind may be the same
 * object, so imported mutable globals share a class, imported tables share one, and imported memories share that of
 * memory 0.
 */
import { type CodeSettings, codeSettings } from "../settings/code_settings.ts";
import type { NanCode } from "../settings/nans.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import { Statistics } from "../base/statistics.ts";
import { type ContextLayout, GLOBAL_SIZE, MEMORY, RECORD, TABLE } from "../abi/context_layout.ts";
import { CLASS_CONSTANT, CLASS_FIRST_FREE, CLASS_MEMORY0, CLASS_SIZES, REGION, region } from "../ir/function.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { I64, isGuardable } from "../wasm/types.ts";
import { type ConstValue, constValue } from "./const_value.ts";
import { countedFunctions } from "./counted_functions.ts";
import { tyOf } from "../wasm/ir_types.ts";
import { type ModuleInterface, moduleInterface } from "./module_interface.ts";
import { type ObjectType, objectTypes } from "./object_types.ts";
import { type Summaries, summarize } from "./summaries.ts";
import { type TableFacts, tableFacts } from "./table_facts.ts";

/** The access path of a global. */
export const GLOBAL = {
  /** The value is in the global's slot of the context. */
  SLOT: 0,
  /** The slot holds the address of the value's cell (imported, mutable). */
  POINTER: 1,
  /** The value is known: `globalValues`. */
  KNOWN: 2,
} as const;

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

export interface ModuleEnv extends ModuleInterface, CodeSettings {
  readonly valid: ValidModule;
  readonly unchecked: boolean;
  readonly nanCode: NanCode;
  /** By defined function: whether it counts the depth of calls (counted_functions.ts); empty unless deterministic. */
  readonly counted: Uint8Array;
  readonly allPositions: boolean;
  /** Region word of the thread's remaining stack. */
  readonly depthRegion: number;
  readonly optimizations: OptimizationSet;
  readonly statistics: Statistics;
  /** Region word of the exception that a throw passes to a landing pad. */
  readonly payloadRegion: number;
  /** Layout of structures and arrays in memory, by type index. */
  readonly objectTypes: readonly (ObjectType | undefined)[];
  /** GLOBAL kind, IR type, slot offset in the context and region word of the value, by global index. */
  readonly globalKind: Uint8Array;
  readonly globalTy: Uint8Array;
  readonly globalOffset: Int32Array;
  readonly globalRegion: Int32Array;
  readonly globalValues: readonly (ConstValue | undefined)[];
  /** Context offset of a memory's base, and region word of its bytes, by memory index. */
  readonly memoryOffset: Int32Array;
  readonly memoryRegion: Int32Array;
  /** By memory index: true for 64-bit addresses. */
  readonly memoryIs64: readonly boolean[];
  /** By memory index: whether guard pages can bound its accesses. */
  readonly memoryIsGuardable: readonly boolean[];
  /** Region word of the length of shared memories. */
  readonly sharedLengthRegion: number;
  /**
   * Context offset of a table's base, region word of its elements and of its base and length, length when fixed or −1.
   */
  readonly tableOffset: Int32Array;
  readonly tableRegion: Int32Array;
  readonly tableSizeRegion: Int32Array;
  readonly tableFixedLength: Int32Array;
  /** Facts about a table's content, by table index; only with `immutable-table`. */
  readonly tableFacts: readonly (TableFacts | undefined)[];
  readonly summaries: Summaries;
  /**
   * By imported function index: number of the string builtin that the import names (string_layout.ts), −1 for other
   * imports.
   */
  readonly stringBuiltin: Int8Array;
  /** Region words of the string table's entries and of its address; calls write both. */
  readonly stringRegion: number;
  readonly stringContextRegion: number;
}

/** Computes the environment of a module's functions. */
export function moduleEnv(valid: ValidModule, options: EnvOptions): ModuleEnv {
  const shape = moduleInterface(valid);
  const { layout } = shape;
  const classes = new AliasClasses();
  const summaries = options.summaries ?? summarize(valid);
  const memories = placeMemories(valid, layout, classes);
  const globals = placeGlobals(valid, layout, classes);
  const facts = options.optimizations["immutable-table"] ? tableFacts(valid, summaries, globals.globalValues) : [];
  const tables = placeTables(valid, layout, classes, facts);
  layout.knownTables = [...facts.keys()].filter((k) => facts[k] !== undefined);
  const payloadRegion = region(REGION.POINTER, classes.take());
  const depthRegion = region(REGION.POINTER, classes.take());
  const sharedLengthRegion = region(REGION.POINTER, classes.take());
  const objects = objectTypes(valid, () => classes.take());
  const stringClass = classes.take();
  return {
    ...shape,
    ...codeSettings(options),
    valid,
    unchecked: options.unchecked ?? false,
    nanCode: options.nanCode ?? (options.deterministic === true ? "canonical" : "any"),
    counted: options.deterministic === true ? countedFunctions(valid, options.stack) : new Uint8Array(0),
    allPositions: options.allPositions ?? false,
    depthRegion,
    optimizations: options.optimizations,
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

function builtinsByFunction(strings: Int32Array, importedFuncs: number): Int8Array {
  const found = new Int8Array(importedFuncs).fill(-1);
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
  const memoryIs64 = valid.memoryTypes.map(({ limits }) => limits.address === I64);
  return { memoryOffset, memoryRegion, memoryIs64, memoryIsGuardable: valid.memoryTypes.map(isGuardable) };
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
  return { tableOffset, tableRegion, tableSizeRegion, tableFixedLength };
}

/** Context offset of the record of function `index`: the embedded copy of an import, or the function's own. */
export function recordOffset(env: ModuleEnv, index: number): number {
  const { layout, valid } = env;
  const imported = valid.importedFuncCount;
  return index < imported
    ? layout.importsOffset + index * RECORD.SIZE
    : layout.functionsOffset + (index - imported) * RECORD.SIZE;
}
