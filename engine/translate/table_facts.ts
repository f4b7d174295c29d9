/**
 * Tables whose content is known at compile time: tables of the module that are not exported, that no instruction
 * writes, and whose segments are constant and in bounds. Calls through them need fewer checks (`immutable-table`,
 * `immutable-table-type`). In: a ValidModule and the summaries of its bodies. Out: the content of each table, or
 * undefined.
 *
 * An instance whose instantiation trapped half-way may still be called through a table that it imports, before its own
 * tables are filled. So a module with a segment for an imported table has no facts at all.
 */
import type { ValidModule } from "../validate/valid_module.ts";
import { constValue } from "./const_value.ts";
import type { ConstValue, TableFacts } from "./module_facts.ts";
import type { Summaries } from "./summaries.ts";

/** Larger tables are not analyzed. */
const MAX_ELEMENTS = 1 << 16;

/** Facts by table, undefined for tables whose content is not known. `globals` holds the values of known globals. */
export function tableFacts(
  valid: ValidModule,
  summaries: Summaries,
  globals: readonly (ConstValue | undefined)[],
): (TableFacts | undefined)[] {
  return tableContents(valid, summaries, globals).map((content) => content && factsOf(valid, content));
}

function tableContents(
  valid: ValidModule,
  summaries: Summaries,
  globals: readonly (ConstValue | undefined)[],
): (Int32Array | undefined)[] {
  const contents: (Int32Array | undefined)[] = valid.tableTypes.map(({ limits }, k) => {
    const own = k >= valid.importedTableCount;
    if (!own || summaries.tableWritten[k] === 1 || limits.min > BigInt(MAX_ELEMENTS)) return undefined;
    if (valid.tables[k - valid.importedTableCount].init !== undefined) return undefined;
    return new Int32Array(Number(limits.min)).fill(-1);
  });
  for (const { kind, index } of valid.exports) if (kind === "table") contents[index] = undefined;
  for (const { mode, init } of valid.elems) {
    if (mode.kind !== "active") continue;
    if (mode.table < valid.importedTableCount) return contents.map(() => undefined);
    const content = contents[mode.table];
    if (content === undefined) continue;
    const start = constValue(mode.start, globals);
    const functions = init.kind === "funcs"
      ? [...init.indices]
      : Array.from(init.exprs, (expr) => functionOf(constValue(expr, globals)));
    const at = start === undefined ? -1 : start.lo >>> 0;
    if (at < 0 || start!.hi !== 0 || at + functions.length > content.length || functions.includes(UNKNOWN)) {
      contents[mode.table] = undefined;
    } else {
      content.set(functions, at);
    }
  }
  return contents;
}

const UNKNOWN = -2;

function functionOf(value: ConstValue | undefined): number {
  if (value === undefined) return UNKNOWN;
  if (value.func >= 0) return value.func;
  return value.lo === 0 && value.hi === 0 ? -1 : UNKNOWN;
}

function factsOf(valid: ValidModule, content: Int32Array): TableFacts {
  const soleFunction = new Map<number, number>();
  let hasNull = false;
  let allDefined = true;
  for (const func of content) {
    if (func < 0) {
      hasNull = true;
      continue;
    }
    if (func < valid.importedFuncCount) allDefined = false;
    const typeId = valid.canonicalIds[valid.funcTypeIndices[func]];
    const known = soleFunction.get(typeId);
    soleFunction.set(typeId, known === undefined || known === func ? func : -1);
  }
  return { content, hasNull, allDefined, soleFunction };
}
