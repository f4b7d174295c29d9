/**
 * WebAssembly.Table (JavaScript API, "Tables") over the engine's tables.
 */
import { realmStore } from "../api/engine.ts";
import { EXTERN, ExternTable } from "../runtime/instance/externals.ts";
import { MAX_TABLE_ELEMENTS, Table as RuntimeTable } from "../runtime/instance/table.ts";
import { defaultValue } from "../runtime/boundary/values.ts";
import { I32, I64, isNullable } from "../wasm/types.ts";
import { configuredLimits } from "./module.ts";
import { defineInterface, fromAddress, readSizes, requireObject, Slot, toAddress } from "./interface.ts";
import { referenceType } from "./value_types.ts";

/** Internal slots of tables. */
export const TABLES: Slot<Table, ExternTable> = new Slot("Table");

function isWide(table: ExternTable): boolean {
  return table[EXTERN].type.limits.address === I64;
}

/** The given element, or the default for a missing argument. Throws TypeError when the type has no default. */
function elementOr(table: ExternTable, given: readonly unknown[], where: string): unknown {
  if (given.length > 0) return given[0];
  const { element } = table[EXTERN].type;
  if (!isNullable(element)) throw new TypeError(`${where}: a value is required, since elements cannot be null`);
  return defaultValue(element);
}

/** References by number. */
export class Table {
  constructor(descriptor: unknown, ...value: unknown[]) {
    const where = "WebAssembly.Table()";
    const given = requireObject(descriptor, `${where}: the first argument`);
    const element = referenceType(given.element, `${where}: the property 'element'`);
    const { wide, min, max } = readSizes(given, (wide) => wide ? 2n ** 64n - 1n : 2n ** 32n - 1n, where);
    if (min > BigInt(MAX_TABLE_ELEMENTS)) {
      throw new RangeError(`${where}: a table of ${min} elements is larger than the limit of ${MAX_TABLE_ELEMENTS}`);
    }
    const store = realmStore();
    const limits = { address: wide ? I64 : I32, min, ...(max === undefined ? {} : { max }) };
    const { maxTableElements } = configuredLimits();
    const inner = new RuntimeTable(store.thread.contexts, { limits, element }, maxTableElements);
    store.sweeps.addHostObject(inner);
    const table = ExternTable.of(store, inner);
    const first = value.length > 0 && value[0] !== undefined ? value[0] : defaultValue(element);
    if (min > 0n && first !== null) {
      table.set(0, first);
      inner.fill(0, Number(min), inner.get(0));
    } else if (first !== null) store.toWord(first, element);
    TABLES.put(this, table);
  }

  /** Number of elements. */
  get length(): number | bigint {
    const table = TABLES.require(this, "WebAssembly.Table.length: the receiver");
    return fromAddress(table.length, isWide(table));
  }

  /** Grows by `delta` elements; returns the old length. */
  grow(delta: unknown, ...value: unknown[]): number | bigint {
    const where = "WebAssembly.Table.grow()";
    const table = TABLES.require(this, `${where}: the receiver`);
    const wide = isWide(table);
    const by = toAddress(delta, wide, `${where}: the first argument`);
    const element = elementOr(table, value, where);
    if (by > 2 ** 32) throw new RangeError(`${where}: the table cannot grow by ${by} elements`);
    const old = table.grow(by, element === undefined ? null : element); // for `grow`, undefined is a missing value
    if (element === undefined && by > 0) {
      table.set(old, undefined);
      table[EXTERN].fill(old, by, table[EXTERN].get(old));
    }
    return fromAddress(old, wide);
  }

  /** Sets the element at `index`. */
  set(index: unknown, ...value: unknown[]): void {
    const where = "WebAssembly.Table.set()";
    const table = TABLES.require(this, `${where}: the receiver`);
    const at = toAddress(index, isWide(table), `${where}: the index`);
    table.set(at, elementOr(table, value, where));
  }

  /** The element at `index`. */
  get(index: unknown): unknown {
    const where = "WebAssembly.Table.get()";
    const table = TABLES.require(this, `${where}: the receiver`);
    return table.get(toAddress(index, isWide(table), `${where}: the index`));
  }
}

/** The object for a table of the engine. */
export function tableObject(inner: ExternTable): Table {
  return TABLES.outerOf(inner, Table.prototype);
}

defineInterface("Table", Table);
