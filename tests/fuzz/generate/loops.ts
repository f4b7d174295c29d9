/**
 * Loops; each terminates because it counts with a dedicated local. In: the state of a body. Out: instructions.
 */
import type { TypeName } from "../value_types.ts";
import type { Body } from "./body.ts";
import { OP } from "./opcodes.ts";
import { consume, leaf } from "./values.ts";

/** Writes a loop that leaves `results`, with a dedicated counter. */
export function loop(b: Body, results: readonly TypeName[], depth: number): void {
  const random = b.random;
  const most = Math.max(1, Math.min(24, Math.floor(3000 / b.weight)));
  const trips = random.between(1, most);
  const wide = random.chance(25);
  const counter = b.newLocal(wide ? "i64" : "i32", false);
  const down = random.chance(30);
  const step = random.pick([1, 1, 1, 2, 3, 4, 8]);
  const first = random.pick([0, 0, 0, 1, -5, 100, 0x7ffff000]);
  b.impure++;
  b.constant(wide ? "i64" : "i32", first);
  b.out.byte(OP.localSet).u32(counter);
  b.counters.push(counter);
  const outer = b.weight;
  b.weight *= trips + 1;
  const sign = down ? -1 : 1;
  if (random.chance(50)) {
    headLoop(b, results, depth, { counter, wide, last: first + sign * step * trips, step: sign * step });
  } else tailLoop(b, results, depth, { counter, wide, last: first + sign * step * trips, step: sign * step });
  b.weight = outer;
  b.counters.pop();
}

function advance(b: Body, { counter, wide, step }: { counter: number; wide: boolean; step: number }): void {
  b.get(counter);
  if (step < 0 && b.random.chance(50)) {
    b.constant(wide ? "i64" : "i32", -step);
    b.out.byte(wide ? 0x7d : 0x6b);
  } else {
    b.constant(wide ? "i64" : "i32", step);
    b.out.byte(wide ? 0x7c : 0x6a);
  }
  b.out.byte(OP.localSet).u32(counter);
}

/** Tests whether the counter has not reached `last` (or, negated, has reached it): by order or by inequality. */
function compareCounter(
  b: Body,
  { counter, wide, last, step }: { counter: number; wide: boolean; last: number; step: number },
  more: boolean,
) {
  const type = wide ? "i64" : "i32";
  b.get(counter);
  b.constant(type, last);
  // The counter reaches `last` exactly, so inequality is equivalent to order.
  const base = wide ? 0x51 : 0x46;
  const order = step > 0 ? (more ? 2 : 8) : (more ? 4 : 6); // lt_s, ge_s, gt_s, le_s
  b.opcode(b.random.chance(25) ? base + (more ? 1 : 0) : base + order);
}

/** A loop that exits at the top when the count is reached, so that nested code may branch back. */
function headLoop(
  b: Body,
  results: readonly TypeName[],
  depth: number,
  count: { counter: number; wide: boolean; last: number; step: number },
) {
  const random = b.random;
  const out = b.out;
  const params = b.has("multi-value") && random.chance(25)
    ? Array.from(
      { length: random.chance(20) ? random.between(4, 12) : random.between(1, 3) },
      () => b.anyType(),
    )
    : [];
  out.byte(OP.block);
  b.blockType([], results);
  b.labels.push({ types: results });
  for (const type of params) b.expression(type, depth - 2);
  out.byte(OP.loop);
  b.blockType(params, results);
  b.labels.push({ types: params });
  consume(b, params);
  compareCounter(b, count, false);
  if (results.length === 0) out.byte(OP.brIf).u32(1);
  else {
    out.byte(OP.if).byte(0x40);
    b.labels.push({ types: undefined });
    for (const type of results) leaf(b, type);
    out.byte(OP.br).u32(2).byte(OP.end);
    b.labels.pop();
  }
  advance(b, count);
  const statements = random.between(1, 4);
  for (let i = 0; i < statements && b.budget > 0; i++) b.statement(depth - 1);
  if (random.chance(75)) {
    for (const type of params) b.expression(type, depth - 2);
    out.byte(OP.br).u32(0);
  } else for (const type of results) b.expression(type, depth - 2);
  out.byte(OP.end);
  b.labels.pop();
  out.byte(OP.end);
  b.labels.pop();
}

/** A loop that tests at the bottom; nothing else branches back. */
function tailLoop(
  b: Body,
  results: readonly TypeName[],
  depth: number,
  count: { counter: number; wide: boolean; last: number; step: number },
) {
  const random = b.random;
  const out = b.out;
  out.byte(OP.loop);
  b.blockType([], results);
  b.labels.push({ types: undefined });
  const statements = random.between(1, 4);
  for (let i = 0; i < statements && b.budget > 0; i++) b.statement(depth - 1);
  advance(b, count);
  compareCounter(b, count, true);
  out.byte(OP.brIf).u32(0);
  for (const type of results) b.expression(type, depth - 2);
  out.byte(OP.end);
  b.labels.pop();
}
