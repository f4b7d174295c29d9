/**
 * Instantiation (specification, 4.7.2): checks and links imports, creates the VM context, runs segments and the start
 * function. In: a CompiledModule and import values. Out: an Instance. Throws LinkError before any code has run,
 * RangeError if there is no memory, the TrapError of a segment, or the errors of the start function.
 */
import { finalizeCollected } from "../../host/finalizers.ts";
import { CONTEXT, MEMORY, RECORD, TAG_SIZE } from "../../abi/context_layout.ts";
import { CELLS } from "../../abi/gc_layout.ts";
import { LinkError, SuspensionError } from "../../base/errors.ts";
import {
  closeFuncType,
  isSubtypeId,
  matchesGlobalType,
  matchesMemoryType,
  matchesTableType,
  topHeap,
} from "../../wasm/subtype.ts";
import type { Import } from "../../wasm/module.ts";
import {
  funcTypeName,
  type GlobalType,
  HEAP,
  heapOf,
  I32,
  I64,
  isGuardable,
  isRef,
  type Limits,
  type MemoryType,
  PAGE_BYTES,
  pageBytes,
  type TableType,
  V128,
  valTypeName,
} from "../../wasm/types.ts";
import { callAsync } from "../suspension/async_call.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import { Tag } from "../exceptions/exception.ts";
import type { Budget } from "../suspension/budget.ts";
import { checkBudget, type ControlContext, underControl } from "../suspension/call_limits.ts";
import { EXTERN, ExternGlobal, ExternTable } from "./externals.ts";
import { funcInfo, hostTypeOf } from "./func.ts";
import { Global } from "./global.ts";
import { STACK_BYTES } from "../thread/guest_thread.ts";
import { Instance, instanceOf, type OwnHeap } from "./instance.ts";
import { applyState, captureStart } from "./instance_state.ts";
import type { InstanceState } from "./captured_state.ts";
import type { BoundaryFunction } from "../suspension/call_recorder.ts";
import type { InstanceGroup } from "../suspension/instance_group.ts";
import { hasBuiltinType } from "../../wasm/string_imports.ts";
import { makeHostService, prepareHostServices, SUSPENDING } from "../boundary/marshal.ts";
import { Memory } from "../memory/memory.ts";
import type { Store } from "./store.ts";
import { memoryImageOf } from "../memory/memory_image.ts";
import { fillTables, initGlobal, runSegments } from "./initial_state.ts";
import { stringBuiltinOf } from "../strings/string_builtins.ts";
import { MAX_TABLE_ELEMENTS, Table } from "./table.ts";
import { writeValue } from "../boundary/values.ts";

/**
 * Import values by module name and import name: functions, objects of the engine, and numbers and bigints for immutable
 * globals.
 */
export type Imports = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Limits that the host sets for an instance. */
export interface InstanceLimits {
  /** Maximum length in pages of 64 KiB of each memory that the instance defines. Default: 16,384 (1 GiB). */
  maxMemoryPages?: number;
  /** Maximum number of elements of each table that the instance defines. Default: 10,000,000. */
  maxTableElements?: number;
  /**
   * Maximum stack depth in bytes at which its functions may be entered; for deterministic code, in abstract units and
   * at most the default. Another value requires the optimization `stack-fence`. Default: 1,048,576.
   */
  maxStackBytes?: number;
  /**
   * Maximum size in bytes of the structures and arrays that its functions have made and that are still referenced, in
   * blocks of 64 KiB. If a collection cannot free enough, the allocation traps. Default: 4 GiB, for all instances with
   * the default together.
   */
  maxHeapBytes?: number;
}

/** The default limits. */
export const DEFAULT_LIMITS: Required<InstanceLimits> = {
  maxMemoryPages: 16_384,
  maxTableElements: MAX_TABLE_ELEMENTS,
  maxStackBytes: STACK_BYTES,
  maxHeapBytes: 4 * 2 ** 30,
};

/**
 * Creates an instance and runs its start function. With `restored`, applies the state that it returns and runs no code;
 * with `startsLater`, leaves the start function to the caller.
 */
export function instantiate(
  store: Store,
  module: CompiledModule,
  imports: Imports,
  limits: Required<InstanceLimits> = DEFAULT_LIMITS,
  context: ControlContext = {},
  restored?: (instance: Instance) => InstanceState,
  startsLater = false,
): Instance {
  const { valid, layout } = module;
  const { thread } = store;
  const { record, errors, promises, resettable, budget } = context;
  if (budget !== undefined) checkBudget(budget);
  finalizeCollected();
  const values = valid.imports.map((entry) => lookUp(imports, entry));
  const refusals = promises === "values" ? values.map(refusalOf) : [];
  // No user code runs between this check and the start function, so the checked imports cannot change.
  checkImports(module, values);
  if (record !== undefined) checkRecordable(module, context, restored !== undefined);

  const block = thread.contexts.allocate(layout.size);
  const usesHeap = valid.hasUnknownFeatures === true || valid.usedFeatures.has("gc");
  const isCounted = budget !== undefined || limits.maxHeapBytes < DEFAULT_LIMITS.maxHeapBytes;
  const own = usesHeap && isCounted ? addHeapOwner(store, budget) : undefined;
  const instance = new Instance(store, module, block, own);
  thread.initContext(
    block.region,
    block.offset,
    instance.number,
    module.countsDepth || record?.isReplay === true ? Infinity : limits.maxStackBytes,
    module.settings.fuel,
  );
  // Code of a replay counts down from zero.
  instance.stackUnits = module.settings.stack === "logged" ? 0 : Math.min(limits.maxStackBytes, STACK_BYTES);
  block.region.setWord(block.offset + CONTEXT.HEAP, instance.heapOwner.cells);
  instance.maxHeapBytes = limits.maxHeapBytes;
  instance.outward = errors;
  instance.recorder = record;
  try {
    store.heap.types.define(valid.canonicalIds, usesHeap);
    addFunctions(instance, values, promises === "values", refusals);
    addMemories(instance, values, limits, budget);
    addTables(instance, values, limits, budget);
    addTags(instance, values);
    addGlobals(instance, values);
    const typeIds = (block.offset + layout.typeIdsOffset) >> 2;
    block.region.i32.set(valid.canonicalIds, typeIds);
    joinGroups(instance);
    if (restored !== undefined) {
      instance.startState = restored(instance);
      applyState(instance, instance.startState);
      return instance;
    }
    return underControl(instance, context, () => {
      const initialize = () => {
        fillTables(instance);
        runSegments(instance, false);
      };
      if (instance.recorder === undefined) initialize();
      else instance.recorder.begin(instance, limits, initialize);
      if (valid.start !== undefined && !startsLater) {
        instance.exportedFunc(valid.start)();
        if (resettable) captureStart(instance);
      }
      return instance;
    });
  } catch (error) {
    store.instances.close(instance.number); // its functions in imported tables remain callable
    throw error;
  }
}

/** Creates an instance and calls its start function asynchronously, as `callAsync` does. */
export async function instantiateAsync(
  store: Store,
  module: CompiledModule,
  imports: Imports,
  limits: Required<InstanceLimits>,
  context: ControlContext,
): Promise<Instance> {
  const instance = instantiate(store, module, imports, limits, context, undefined, true);
  const { start } = module.valid;
  if (start === undefined) return instance;
  try {
    const info = funcInfo(instance.exportedFunc(start))!;
    await callAsync(instanceOf(info), info.funcIndex, context, []);
  } catch (error) {
    store.instances.close(instance.number);
    throw error;
  }
  if (context.resettable) captureStart(instance);
  return instance;
}

/** Refuses a recording that a replay could not repeat. */
function checkRecordable(
  module: CompiledModule,
  { promises, errors, resettable }: ControlContext,
  isRestored: boolean,
): void {
  const conflict = promises === "values"
    ? "promises"
    : errors !== undefined
    ? "errors"
    : resettable === true
    ? "resettable"
    : undefined;
  if (conflict !== undefined) throw new TypeError(`The context fields record and ${conflict} exclude each other`);
  if (isRestored) throw new TypeError("An instance made from a snapshot cannot be recorded");
  if (!module.settings.deterministic) {
    throw new TypeError(
      "A recording requires code that runs the same everywhere: compile the module with { deterministic: true }",
    );
  }
  if (module.settings.interruptible && !module.settings.fuel) {
    throw new TypeError("A recording finds the place of an interruption by its fuel: add { fuel: true } to the engine");
  }
}

/** Groups of mutable globals that the host created: a global has no list of the instances that import it. */
const HOST_GLOBALS: WeakMap<Global, InstanceGroup> = new WeakMap();

/**
 * Merges the instance's group with those of all instances whose state it imports. Throws an Error while a call of such
 * an instance is preempted.
 */
function joinGroups(instance: Instance): void {
  const { module: { valid } } = instance;
  if (valid.imports.length === 0) return;
  const others = new Set<Instance>();
  for (const object of instance.retained) if (object instanceof Instance) others.add(object);
  for (const memory of instance.memories) for (const user of memory.users()) others.add(user as Instance);
  for (const table of instance.tables) for (const user of table.users) others.add(user as Instance);
  for (const global of instance.globals) {
    if (!global.type.mutable) continue;
    if (global.owner instanceof Instance) others.add(global.owner);
    else {
      const group = HOST_GLOBALS.get(global);
      if (group === undefined) HOST_GLOBALS.set(global, instance.group);
      else instance.group.join(group);
    }
  }
  others.delete(instance);
  for (const other of others) {
    instance.group.join(other.group);
    other.isShared = true;
    instance.isShared = true;
    if (instance.recorder !== undefined || other.recorder !== undefined) {
      throw new LinkError("A recorded instance cannot share memories, tables or mutable globals with another instance");
    }
  }
  if (instance.preempted) {
    throw new Error(
      "A call of an imported instance is preempted: wait until it has ended",
    );
  }
}

function nameOf(entry: Import): string {
  return `"${entry.module}" "${entry.name}"`;
}

/** Represents the value undefined in an import object, where undefined itself means a missing import. */
export const UNDEFINED: unique symbol = Symbol("waft.undefined");

function lookUp(imports: Imports, entry: Import): unknown {
  const namespace = imports[entry.module];
  if (namespace === undefined || namespace === null || !Object.hasOwn(imports, entry.module)) {
    throw new LinkError(`unknown import: ${nameOf(entry)} (nothing provides module "${entry.module}")`, {
      offset: entry.offset,
    });
  }
  const given = namespace[entry.name];
  const value = given instanceof ExternTable || given instanceof ExternGlobal ? given[EXTERN] : given;
  if (value === undefined) throw new LinkError(`unknown import: ${nameOf(entry)}`, { offset: entry.offset });
  return value === UNDEFINED ? undefined : value;
}

function mismatch(entry: Import, wanted: string, got: string): LinkError {
  return new LinkError(`incompatible import type: ${nameOf(entry)} must be ${wanted}, got ${got}`, {
    offset: entry.offset,
  });
}

/** The import values of one kind, in index order. */
function importsOf(module: CompiledModule, values: readonly unknown[], kind: Import["desc"]["kind"]): unknown[] {
  return values.filter((_, i) => module.valid.imports[i].desc.kind === kind);
}

function describe(value: unknown): string {
  if (value instanceof Memory) return "a memory";
  if (value instanceof Table) return "a table";
  if (value instanceof Global) return "a global";
  if (value instanceof Tag) return "a tag";
  return typeof value === "function" ? "a function" : value === null ? "null" : typeof value;
}

/** Limits with the current size as their minimum, as import matching compares them. */
function actualLimits(limits: Limits, size: number): Limits {
  return { ...limits, min: BigInt(size) };
}

function limitsName({ address, min, max }: Limits): string {
  return `${address === I64 ? "i64 " : ""}${min}${max === undefined ? "" : ` ${max}`}`;
}

/** The text of `limits` for a message that compares them with `others`: includes the address type if it differs. */
function comparedName(limits: Limits, others: Limits): string {
  return limits.address === I32 && others.address !== I32 ? `i32 ${limitsName(limits)}` : limitsName(limits);
}

function checkImports(module: CompiledModule, values: readonly unknown[]): void {
  const index = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };
  module.valid.imports.forEach((entry, i) => {
    const value = values[i];
    const kind = entry.desc.kind;
    const at = index[kind]++;
    if (kind === "func") checkFunc(module, entry, at, value);
    else if (kind === "memory") checkMemory(entry, module.valid.memoryTypes[at], value);
    else if (kind === "table") checkTable(entry, module.tableTypes[at], value);
    else if (kind === "global") checkGlobal(entry, module.globalTypes[at], value);
    else checkTag(module, entry, at, value);
  });
}

function checkFunc(module: CompiledModule, entry: Import, index: number, value: unknown): void {
  const type = module.funcType(index);
  if (typeof value !== "function") throw mismatch(entry, `a function ${funcTypeName(type)}`, describe(value));
  const info = funcInfo(value);
  if (info === undefined) {
    const declared = hostTypeOf(value);
    if (declared !== undefined && funcTypeName(declared) !== funcTypeName(type)) {
      throw mismatch(entry, `a function ${funcTypeName(type)}`, `one of type ${funcTypeName(declared)}`);
    }
    return checkBuiltin(module, entry, value);
  }
  if (instanceOf(info).closed) {
    throw mismatch(entry, `a function ${funcTypeName(type)}`, "a function of a closed instance");
  }
  const wanted = module.valid.canonicalIds[module.valid.funcTypeIndices[index]];
  const isExact = module.valid.exactImports.has(index);
  if (isExact ? info.typeId !== wanted : !isSubtypeId(info.typeId, wanted)) {
    const kind = isExact ? "a function of exactly the type" : "a function";
    throw mismatch(entry, `${kind} ${funcTypeName(type)}`, `one of type ${funcTypeName(info.type)}`);
  }
}

/**
 * Refuses a string builtin for an import of another type: the builtin's service trusts the types of its arguments.
 * Intrinsic code passes references as words.
 */
function checkBuiltin(module: CompiledModule, entry: Import, value: unknown): void {
  const builtin = stringBuiltinOf(value);
  if (builtin === undefined || module.internal || hasBuiltinType(module.valid, entry, builtin)) return;
  throw new LinkError(`The import ${nameOf(entry)} has another type than the builtin ${builtin}`, {
    offset: entry.offset,
  });
}

function checkMemory(entry: Import, type: MemoryType, value: unknown): void {
  const wanted = (limits: Limits) =>
    `a${type.shared ? " shared" : ""} memory of ${comparedName(type.limits, limits)} pages`;
  if (!(value instanceof Memory)) throw mismatch(entry, wanted(type.limits), describe(value));
  if (value.pageBytes !== pageBytes(type)) {
    const sized = (bytes: number) => bytes === 1 ? "pages of one byte" : "pages of 64 KiB";
    const got = `one with ${sized(value.pageBytes)}: memory types incompatible`;
    throw mismatch(entry, `a memory with ${sized(pageBytes(type))}`, got);
  }
  const actual = { ...value.type, limits: actualLimits(value.type.limits, value.pages) };
  if (!matchesMemoryType(actual, type)) {
    throw mismatch(entry, wanted(actual.limits), `one of ${comparedName(actual.limits, type.limits)}`);
  }
}

function checkTable(entry: Import, type: TableType, value: unknown): void {
  const wanted = (limits: Limits) => `a table of ${comparedName(type.limits, limits)} ${valTypeName(type.element)}`;
  if (!(value instanceof Table)) throw mismatch(entry, wanted(type.limits), describe(value));
  const actual = { ...value.type, limits: actualLimits(value.type.limits, value.length) };
  if (!matchesTableType(actual, type)) {
    const got = `one of ${comparedName(actual.limits, type.limits)} ${valTypeName(actual.element)}`;
    throw mismatch(entry, wanted(actual.limits), got);
  }
}

function checkTag(module: CompiledModule, entry: Import, index: number, value: unknown): void {
  const wanted = `a tag ${funcTypeName(module.valid.tagTypes[index])}`;
  if (!(value instanceof Tag)) throw mismatch(entry, wanted, describe(value));
  const { canonicalIds, tagTypeIndices } = module.valid;
  if (value.typeId !== canonicalIds[tagTypeIndices[index]]) {
    throw mismatch(entry, wanted, `one of type ${funcTypeName(value.type)}`);
  }
}

function checkGlobal(entry: Import, type: GlobalType, value: unknown): void {
  const wanted = `a global of type ${type.mutable ? "mut " : ""}${valTypeName(type.type)}`;
  if (value instanceof Global) {
    if (!matchesGlobalType(value.type, type)) {
      throw mismatch(entry, wanted, `one of type ${value.type.mutable ? "mut " : ""}${valTypeName(value.type.type)}`);
    }
    return;
  }
  if (type.mutable) throw mismatch(entry, wanted, describe(value));
  const fits = isRef(type.type)
    ? topHeap(heapOf(type.type)) !== HEAP.func || value === null || funcInfo(value) !== undefined
    : type.type === I64
    ? typeof value === "bigint"
    : typeof value === "number";
  if (!fits || type.type === V128) throw mismatch(entry, wanted, describe(value));
}

function addFunctions(
  instance: Instance,
  values: readonly unknown[],
  plainPromises: boolean,
  refusals: readonly (Refusal | undefined)[],
): void {
  const { module, region, block, store } = instance;
  const { valid, image, layout } = module;
  const { canonicalIds, funcTypeIndices } = valid;
  const entries = valid.imports.filter(({ desc }) => desc.kind === "func");
  const functions = importsOf(module, values, "func");
  const functionRefusals = importsOf(module, refusals, "func") as (Refusal | undefined)[];
  const isHosted = (value: unknown) => funcInfo(value) === undefined && stringBuiltinOf(value) === undefined;
  prepareHostServices(functions.flatMap((value, index) => isHosted(value) ? module.funcType(index) : []));
  functions.forEach((value, index) => {
    const record = instance.recordOffset(index);
    const info = funcInfo(value);
    // Calls between a recorded instance and others pass through JavaScript.
    const isDirect = instance.recorder === undefined && (info === undefined || instanceOf(info).recorder === undefined);
    if (info !== undefined && isDirect) {
      const source = instanceOf(info).region;
      const from = info.record - source.address;
      region.u8.set(source.u8.subarray(from, from + RECORD.SIZE), record);
      region.i32[(record + RECORD.OWNER) >> 2] = instance.number;
      instance.funcs[index] = value as (...args: unknown[]) => unknown;
      instance.retained.add(instanceOf(info));
      if (info.type.params.some(isRef) || info.type.results.some(isRef)) instanceOf(info).retained.add(instance);
      return;
    }
    const type = module.funcType(index);
    const builtin = stringBuiltinOf(value);
    instance.hostServices[index] = builtin !== undefined ? store.strings.service(builtin) : makeHostService(type, {
      state: store.thread.state,
      boundary: instance.boundary,
      call: instance.recorder?.hostFunction(index, value as BoundaryFunction) ?? value as BoundaryFunction,
      label: nameOf(entries[index]),
      plainPromises,
      suspending: suspendingRules(store, functionRefusals[index], entries[index]),
    });
    region.setWord(record + RECORD.CODE, image.base + image.tables.hostThunk[module.signatureIds[index]]);
    region.setWord(record + RECORD.CONTEXT, block.address);
    region.i32[(record + RECORD.TYPE_ID) >> 2] = canonicalIds[funcTypeIndices[index]];
    region.i32[(record + RECORD.HOST) >> 2] = index;
    region.i32[(record + RECORD.HANDLE) >> 2] = index;
    region.i32[(record + RECORD.OWNER) >> 2] = instance.number;
  });
  if (layout.strings === true) {
    store.strings.link(instance, (index, name) => stringBuiltinOf(functions[index]) === name);
  }
  // The records of defined functions, written by index because large modules have thousands.
  const { u32 } = region;
  const { functionStart } = image.tables;
  const imported = module.importedFuncCount;
  const contextLo = block.address >>> 0;
  const contextHi = (block.address / 0x1_0000_0000) >>> 0;
  let at = (block.offset + layout.functionsOffset) >> 2;
  for (let i = 0; i < layout.definedFuncs; i++, at += RECORD.SIZE >> 2) {
    const code = image.base + functionStart[i];
    u32[at] = code;
    u32[at + 1] = code / 0x1_0000_0000;
    u32[at + 2] = contextLo;
    u32[at + 3] = contextHi;
    u32[at + 4] = canonicalIds[funcTypeIndices[imported + i]];
    u32[at + 6] = imported + i;
    u32[at + 7] = instance.number;
  }
}

/** The value of the property SUSPENDING. */
interface Refusal {
  readonly value: unknown;
}

/** The property SUSPENDING of an imported function, if it has that. */
function refusalOf(value: unknown): Refusal | undefined {
  return typeof value === "function" && SUSPENDING in value ? { value: value[SUSPENDING] } : undefined;
}

/** The rules of an imported function with the property SUSPENDING; undefined for other functions. */
function suspendingRules({ thread }: Store, refusal: Refusal | undefined, entry: Import) {
  if (refusal === undefined) return undefined;
  const { value } = refusal;
  const message = `The import ${nameOf(entry)} suspends its caller: call the instance with callAsync to wait for it`;
  return {
    canSuspend: () => thread.depth === thread.suspendableDepth,
    refusal: () => typeof value === "function" ? value() as Error : new SuspensionError(message),
  };
}

/** An owner for the objects of one instance, with allocation cells of its own. */
function addHeapOwner({ heap, thread }: Store, budget: Budget | undefined): OwnHeap {
  const block = thread.contexts.allocate(CELLS.SIZE);
  const { address, region: { u32 }, offset } = block;
  const words = u32.subarray(offset >> 2, (offset + CELLS.SIZE) >> 2);
  return { block, owner: heap.addOwner({ address, words }, budget) };
}

function addMemories(
  instance: Instance,
  values: readonly unknown[],
  limits: Required<InstanceLimits>,
  budget: Budget | undefined,
): void {
  const { module, store } = instance;
  for (const value of importsOf(module, values, "memory")) {
    const memory = value as Memory;
    if (!module.settings.explicitBounds && !memory.guarded && isGuardable(memory.type)) {
      throw new LinkError("A memory without guard pages cannot be imported by a module compiled for guard pages");
    }
    instance.memories.push(memory);
    memory.addUser(instance);
  }
  module.valid.memories.forEach((type, i) => {
    const memory = new Memory(store.thread.host, type, {
      image: memoryImageOf(store.thread.host, module, module.valid.importedMemoryCount + i),
      guarded: !module.settings.explicitBounds && isGuardable(type),
      maxBytes: limits.maxMemoryPages * PAGE_BYTES,
      budget,
    });
    instance.memories.push(memory);
    memory.addUser(instance);
  });
  for (const memory of new Set(instance.memories)) instance.memoryMoved(memory);
  if (instance.memories.length === 0) {
    const at = instance.block.offset + module.layout.memoriesOffset;
    instance.region.setWord(at + MEMORY.BASE, 0);
    instance.region.setWord(at + MEMORY.LENGTH, 0);
  }
}

function addTables(
  instance: Instance,
  values: readonly unknown[],
  limits: Required<InstanceLimits>,
  budget: Budget | undefined,
): void {
  const { module, store } = instance;
  for (const value of importsOf(module, values, "table")) instance.tables.push(value as Table);
  const imported = instance.tables.length;
  for (const type of module.tableTypes.slice(imported)) {
    instance.tables.push(new Table(store.thread.contexts, type, limits.maxTableElements, budget));
  }
  for (const table of new Set(instance.tables)) {
    table.users.add(instance);
    instance.tableMoved(table);
  }
}

function addTags(instance: Instance, values: readonly unknown[]): void {
  const { module, region, block, store } = instance;
  const { canonicalIds, tagTypes, tagTypeIndices } = module.valid;
  for (const value of importsOf(module, values, "tag")) {
    instance.tags.push(value as Tag);
  }
  for (let k = instance.tags.length; k < tagTypes.length; k++) {
    const type = closeFuncType(tagTypes[k], canonicalIds);
    instance.tags.push(new Tag(type, canonicalIds[tagTypeIndices[k]], store));
  }
  // Its code can read the payload of every exception with the tag, which may contain references of the others.
  for (const tag of instance.tags) if (tag.hasReferences) tag.keepAlive(instance);
  const at = block.offset + module.layout.tagsOffset;
  instance.tags.forEach((tag, k) => region.setWord(at + k * TAG_SIZE, tag.identity));
}

function addGlobals(instance: Instance, values: readonly unknown[]): void {
  const { module, region, block } = instance;
  const cell = (index: number) => block.offset + module.layout.globalsOffset + index * 16;
  const entries = module.valid.imports.filter(({ desc }) => desc.kind === "global");
  importsOf(module, values, "global").forEach((value, index) => {
    const type = module.globalTypes[index];
    const at = cell(index);
    if (value instanceof Global) {
      instance.globals.push(value);
      // An object that the global refers to, as externref too, may later contain functions of the instance.
      if (isRef(type.type) && (type.mutable || topHeap(heapOf(type.type)) !== HEAP.func)) {
        value.keepAlive(instance);
        if (value.owner instanceof Instance) value.owner.keepAlive(instance);
      }
      if (type.mutable) {
        region.setWord(at, value.address);
        if (isRef(type.type) && value.owner instanceof Instance) value.owner.retained.add(instance);
      } else {
        region.u8.set(value.region.u8.subarray(value.offset, value.offset + 16), at);
      }
    } else {
      try {
        writeValue(region, at, type.type, value, instance.boundary);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        throw mismatch(entries[index], `a global of type ${valTypeName(type.type)}`, describe(value));
      }
      instance.globals.push(new Global(type, region, at, instance));
    }
  });
  const imported = instance.globals.length;
  for (let i = 0; i < module.globalInits.length; i++) {
    initGlobal(instance, i);
    instance.globals.push(new Global(module.globalTypes[imported + i], region, cell(imported + i), instance));
  }
}
