/**
 * The initial state that a module specifies for its instances: values of globals and tables, and active segments
 * (specification, 4.7.2, steps after allocation). In: an instance whose defined memories and tables are empty.
 * `rebuild` repeats this for an idle instance, except for the effects on imports.
 */
import { V128 } from "../../wasm/types.ts";
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

/** Fills the defined tables with their initial values. */
export function fillTables(instance: Instance): void {
  const { tableInits } = instance.module;
  const imported = instance.module.valid.importedTableCount;
  for (let i = 0; i < tableInits.length; i++) {
    const init = tableInits[i];
    if (init === undefined) continue;
    const table = instance.tables[imported + i];
    table.fill(0, table.length, Number(evaluateConst(init, instance)));
  }
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
      instance.initTable(mode.table, i, start, 0, elementCount(segment));
    }
    if (mode.kind !== "passive") instance.dropElem(i);
  }
  for (let i = 0; i < datas.length; i++) {
    const data = datas[i];
    if (!data.active) continue;
    if (!(ownOnly && data.memory < valid.importedMemoryCount) && !instance.memories[data.memory].hasImage) {
      const start = data.at ?? Number(evaluateConst(data.start!, instance));
      instance.initMemory(data.memory, i, start, 0, data.bytes.length);
    }
    instance.dropData(i);
  }
}

/** Initializes the defined globals, and the defined tables and memories, which must be empty. */
export function rebuild(instance: Instance): void {
  for (let i = 0; i < instance.module.globalInits.length; i++) initGlobal(instance, i);
  fillTables(instance);
  runSegments(instance, true);
}
