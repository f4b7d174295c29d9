/**
 * Instructions on tables, and sizes and growth of memories. In: the state of a body. Out: instructions.
 */
import { isNullable, type TypeName } from "../value_types.ts";
import type { AddressType, Body } from "./body.ts";
import { OP, WIDE } from "./opcodes.ts";

/** An index or length, usually below `limit`, of the table's address type. */
export function index(b: Body, limit: number, depth: number, table = -1): void {
  const random = b.random;
  const type = tableAddress(b, table);
  const wide = type === "i64" ? WIDE : 0;
  if (table >= 0 && b.has("reference-types") && random.chance(15)) { // the current last element
    b.opcode(OP.tableSize).out.u32(table);
    b.constant(type, random.chance(90) ? 1 : random.below(3));
    b.opcode(0x6b + wide);
    return;
  }
  if (limit > 0 && random.chance(50)) return b.constant(type, random.below(limit));
  if (limit > 0 && random.chance(85)) {
    b.expression(type, depth - 1);
    b.constant(type, limit);
    b.opcode(0x70 + wide); // rem_u
    return;
  }
  if (random.chance(70)) return b.constant(type, limit + random.between(-1, 1));
  b.expression(type, depth - 1);
}

function tableAddress(b: Body, table: number): AddressType {
  return table >= 0 && b.plan.tables[table].is64 ? "i64" : "i32";
}

/** Marks the use of a table with 64-bit indices; called after the instruction. */
export function markTable(b: Body, table: number): void {
  if (b.plan.tables[table].is64) b.mark("table64");
}

export function tableStatement(b: Body, depth: number, wanted = -1): void {
  const random = b.random;
  const { tables, elems } = b.plan;
  const table = wanted >= 0 ? wanted : random.below(tables.length);
  const { type, min } = tables[table];
  const address = tableAddress(b, table);
  const few = (of: AddressType = address) => b.constant(of, random.below(4));
  b.cost += 20 * b.weight;
  switch (random.below(6)) {
    case 0:
    case 1:
      index(b, min, depth - 1, table);
      b.expression(type, depth - 1);
      b.out.byte(OP.tableSet).u32(table);
      return markTable(b, table);
    case 2:
      index(b, min, depth - 1, table);
      b.expression(type, depth - 1);
      few();
      b.opcode(OP.tableFill).out.u32(table);
      return markTable(b, table);
    case 3: {
      const sources = tables.flatMap((t, i) => b.matches(t.type, type) ? [i] : []);
      const source = random.pick(sources);
      index(b, min, depth - 1, table);
      index(b, tables[source].min, depth - 1, source);
      few(address === "i64" && tableAddress(b, source) === "i64" ? "i64" : "i32");
      b.opcode(OP.tableCopy).out.u32(table).u32(source);
      markTable(b, source);
      return markTable(b, table);
    }
    case 4: {
      const fitting = elems.flatMap((e, i) => b.matches(e.type, type) ? [i] : []);
      if (fitting.length === 0) break;
      const elem = random.pick(fitting);
      index(b, min, depth - 1, table);
      index(b, elems[elem].length, depth - 1);
      few("i32");
      b.opcode(OP.tableInit).out.u32(elem).u32(table);
      return markTable(b, table);
    }
    default:
      if (elems.length > 0 && random.chance(20)) {
        b.opcode(OP.elemDrop).out.u32(random.below(elems.length));
        return;
      }
  }
  b.expression(type, depth - 1);
  few();
  b.opcode(OP.tableGrow).out.u32(table).byte(OP.drop);
  markTable(b, table);
}

/** The size of a table, or its growth; leaves a value of its address type. */
export function tableSizeOrGrowth(b: Body, table: number, depth: number): void {
  const random = b.random;
  if (random.chance(50)) b.opcode(OP.tableSize).out.u32(table);
  else {
    b.expression(b.plan.tables[table].type, depth - 1);
    const type = tableAddress(b, table);
    if (type === "i64" && random.chance(8)) b.out.byte(0x42).s64(random.i64());
    else b.constant(type, random.below(4));
    b.opcode(OP.tableGrow).out.u32(table);
    b.cost += 20 * b.weight;
  }
  markTable(b, table);
}

/** An element of a table with a matching element type; false if there is none. */
export function tableElement(b: Body, type: TypeName, depth: number): boolean {
  const tables = b.plan.tables.flatMap((t, i) => b.matches(t.type, type) ? [i] : []);
  const nullable = tables.length > 0
    ? []
    : b.plan.tables.flatMap((t, i) =>
      !isNullable(type) && b.matches(type, t.type) && b.matches(t.type.replace("null ", "") as TypeName, type)
        ? [i]
        : []
    );
  if (tables.length === 0 && (nullable.length === 0 || b.random.chance(70))) return false;
  const table = b.random.pick(tables.length > 0 ? tables : nullable);
  index(b, b.plan.tables[table].min, depth - 1, table);
  b.out.byte(OP.tableGet).u32(table);
  markTable(b, table);
  if (tables.length === 0) b.out.byte(OP.refAsNonNull);
  return true;
}

/** The size of a memory, or its growth; leaves a value of its address type. */
export function sizeOrGrowth(b: Body, memory: number): void {
  const random = b.random;
  if (random.chance(60)) memorySize(b, memory);
  else {
    const type = b.addressType(memory);
    const odd = random.weighted([30, 30, 5, 5]) === 3;
    const { bytePages = false } = b.plan.memories[memory];
    if (odd && type === "i64") b.out.byte(0x42).s64(random.i64());
    else b.constant(type, odd ? random.i32() : random.below(3));
    if (odd && bytePages) b.mask(type, 0xffff); // or counting in bytes would wrap
    const inBytes = bytePages && !b.plan.standard;
    if (inBytes) shift(b, type, OP.i32Shl);
    b.out.byte(OP.memoryGrow).u32(memory);
    if (inBytes) shift(b, type, OP.i32ShrS); // −1 stays −1
    if (bytePages) b.impure++;
  }
  b.markMemory(memory);
}

/** Leaves the size of a memory in 64 KiB. What depends on the form is not duplicated: its length differs. */
export function memorySize(b: Body, memory: number): void {
  b.out.byte(OP.memorySize).u32(memory);
  if (!b.plan.memories[memory].bytePages) return;
  b.impure++;
  if (!b.plan.standard) shift(b, b.addressType(memory), OP.i32ShrU);
}

/** Shifts by the binary logarithm of 64 KiB; `code` is that for i32. */
function shift(b: Body, type: AddressType, code: number): void {
  b.constant(type, 16);
  b.out.byte(code + (type === "i64" ? WIDE : 0));
}
