/**
 * Atomic instructions: loads, stores, read-modify-write, waiting and notifying. In: the state of a body. Out:
 * instructions.
 *
 * Only one thread runs, so every wait has a timeout of at most a microsecond.
 */
import type { AccessOp } from "../numeric_rows.ts";
import type { Body } from "./body.ts";
import { OP } from "./opcodes.ts";
import { consume } from "./values.ts";

/** The widths in the order in which each group of atomic instructions lists them. */
const WIDTHS: readonly Omit<AccessOp, "code">[] = [
  { type: "i32", align: 2 },
  { type: "i64", align: 3 },
  { type: "i32", align: 0 },
  { type: "i32", align: 1 },
  { type: "i64", align: 0 },
  { type: "i64", align: 1 },
  { type: "i64", align: 2 },
];
const LOAD = 0xfe10;
const STORE = 0xfe17;
/** add, sub, and, or, xor, xchg; then cmpxchg. */
const MODIFY = [0xfe1e, 0xfe25, 0xfe2c, 0xfe33, 0xfe3a, 0xfe41];
const EXCHANGE = 0xfe48;

/** The bytes of orderings: sequentially consistent, acquire-release of a load or store, and of both. */
const ORDERINGS = [0, 1] as const;
const MODIFY_ORDERINGS = [0, 0x11] as const;

/** The ordering of an access, undefined if it has none; the standard form never has one. */
function ordering(b: Body, orderings: readonly [number, number]): number | undefined {
  if (!b.has("acquire-release-atomics")) return undefined;
  const drawn = b.random.pick([undefined, ...orderings, orderings[1]]);
  return b.plan.standard ? undefined : drawn;
}

/** Marks an atomic access; called after the instruction. */
function markAtomic(b: Body): void {
  b.mark("threads");
  if (b.has("acquire-release-atomics")) b.mark("acquire-release-atomics");
}

/** An address, usually aligned; returns its offset immediate. */
function place(b: Body, depth: number, align: number, memory: number): number {
  const type = b.addressType(memory);
  b.expression(type, depth - 1);
  const width = 1 << align;
  b.mask(type, b.random.chance(97) ? 0xfff & -width : 0xfff);
  return b.random.chance(97) ? b.random.pick([0, 0, 8, 64, 4096]) : b.random.below(9);
}

/** An atomic instruction that leaves a value. */
export function atomicValue(b: Body, type: "i32" | "i64", depth: number): void {
  const random = b.random;
  if (type === "i32" && random.chance(12)) return waitOrNotify(b, depth);
  const memory = b.memory()!;
  const width = random.pick(WIDTHS.map((w, i) => ({ ...w, i })).filter((w) => w.type === type));
  const kind = random.pick(["load", "modify", "modify", "exchange"]);
  const offset = place(b, depth, width.align, memory);
  b.impure++;
  let code = LOAD;
  if (kind === "modify") {
    b.expression(type, depth - 1);
    code = random.pick(MODIFY);
  } else if (kind === "exchange") {
    // The expected value often equals the actual one: zero, or an earlier read of the same location.
    if (random.chance(50)) b.constant(type, 0);
    else b.expression(type, depth - 1);
    b.expression(type, depth - 1);
    code = EXCHANGE;
  }
  const order = ordering(b, kind === "load" ? ORDERINGS : MODIFY_ORDERINGS);
  b.access(code + width.i, width.align, offset, memory, true, order);
  markAtomic(b);
}

export function atomicStatement(b: Body, depth: number): void {
  const random = b.random;
  if (random.chance(8)) {
    if (b.has("acquire-release-atomics") && random.chance(50) && !b.plan.standard) b.opcode(OP.pause);
    b.opcode(OP.fence).out.byte(ordering(b, ORDERINGS) ?? 0);
    return markAtomic(b);
  }
  if (random.chance(55)) {
    const type = random.pick(["i32", "i64"] as const);
    atomicValue(b, type, depth);
    return consume(b, [type]);
  }
  const memory = b.memory()!;
  const i = random.below(WIDTHS.length);
  const { type, align } = WIDTHS[i];
  const offset = place(b, depth, align, memory);
  b.expression(type, depth - 1);
  b.impure++;
  b.access(STORE + i, align, offset, memory, true, ordering(b, ORDERINGS));
  markAtomic(b);
}

function waitOrNotify(b: Body, depth: number): void {
  const random = b.random;
  b.impure++;
  const wide = random.chance(40);
  const memory = b.memory((m) => m.shared);
  if (memory === undefined || random.chance(50)) { // waiting on a memory that is not shared traps
    const any = b.memory()!;
    const offset = place(b, depth, 2, any);
    b.expression("i32", depth - 1);
    b.access(OP.notify, 2, offset, any, true);
    return b.mark("threads");
  }
  const offset = place(b, depth, wide ? 3 : 2, memory);
  b.expression(wide ? "i64" : "i32", depth - 1);
  b.constant("i64", random.pick([0, 0, 1, 1000]));
  b.cost += 100 * b.weight;
  b.access(wide ? OP.wait64 : OP.wait32, wide ? 3 : 2, offset, memory, true);
  b.mark("threads");
}
