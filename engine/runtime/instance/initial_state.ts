/**
 * The initial state that a module specifies for its instances: values of globals and tables, and active segments
 * (specification, 4.7.2, steps after allocation). In: an instance whose defined memories and tables are empty.
 * `rebuild` repeats this for an idle instance, except for the effects on imports.
 *
 * Invariant: everything that may fail for lack of memory precedes the change of the first table, so that at no time a
 * table has an element that code does not expect, such as null in a table of non-null references.
 */
import { V128 } from "../../wasm/types.ts";
import type { Table } from "./table.ts";
import { evaluateConst, prepareConst } from "../code/const_expr.ts";
import { elementCount } from "../../wasm/module.ts";
import type { Instance } from "./instance.ts";

/** Evaluates the initial value of defined global `i` into its cell. */
export function initGlobal(instance: Instance, i: number): void {
  const { module, region, block } = instance;
  const index = module.valid.importedGlobalCount + i;
  const at = block.offset + module.layout.globalsOffset + index * 16;
  const init = module.globalInits[i];
  if (init.kind === "vector") region.u8.set(init.bytes, at);
  else if (module.globalTypes[index].type === V128 && init.kind === "global") {
    region.u8.set(instance.globalVector(init.index), at);
  } else region.i64[at >> 3] = BigInt.asIntN(64, evaluateConst(init, instance));
}

/** The initial elements of the defined tables: null or the value of an expression. */
function initialElements(instance: Instance): number[] {
  return instance.module.tableInits.map((init) => init === undefined ? 0 : Number(evaluateConst(init, instance)));
}

/** Fills the defined tables, which are empty, with their initial elements. */
export function fillTables(instance: Instance): void {
  const tables = definedTables(instance);
  initialElements(instance).forEach((word, i) => {
    if (word !== 0) tables[i].fill(0, tables[i].length, word);
  });
}

function definedTables(instance: Instance): readonly Table[] {
  return instance.tables.slice(instance.module.valid.importedTableCount);
}

/**
 * Runs the active segments, or only those for defined tables and memories. Throws TrapError if one is out of bounds.
 */
export function runSegments(instance: Instance, ownOnly: boolean): void {
  const { datas, valid } = instance.module;
  for (let i = 0; i < valid.elems.length; i++) {
    const segment = valid.elems.at(i)!;
    const { mode } = segment;
    if (mode.kind === "active" && !(ownOnly && mode.table < valid.importedTableCount)) {
      const start = Number(evaluateConst(prepareConst(mode.start), instance));
      instance.segments.initTable(mode.table, i, start, 0, elementCount(segment));
    }
    if (mode.kind !== "passive") instance.segments.dropElem(i);
  }
  for (let i = 0; i < datas.length; i++) {
    const data = datas[i];
    if (!data.active) continue;
    if (!(ownOnly && data.memory < valid.importedMemoryCount) && !instance.memories[data.memory].hasImage) {
      const start = data.at ?? Number(evaluateConst(data.start!, instance));
      instance.segments.initMemory(data.memory, i, start, 0, data.bytes.length);
    }
    instance.segments.dropData(i);
  }
}

/** Initializes the defined globals, memories and tables. No code of the instance may be running. */
export function rebuild(instance: Instance): void {
  const { valid } = instance.module;
  instance.segments.reset();
  for (const memory of instance.memories.slice(valid.importedMemoryCount)) memory.reset();
  for (let i = 0; i < instance.module.globalInits.length; i++) initGlobal(instance, i);
  const elements = initialElements(instance);
  const first = valid.importedTableCount;
  for (let i = 0; i < valid.elems.length; i++) {
    const { mode } = valid.elems.at(i)!;
    if (mode.kind === "active" && mode.table >= first) instance.segments.prepareElem(i);
  }
  for (let i = 0; i < elements.length; i++) instance.tables[first + i].reset(elements[i]);
  runSegments(instance, true);
}
