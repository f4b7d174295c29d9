/**
 * Calls of every kind: direct, through tables, by reference, and the same in tail position. In: the state of a body.
 * Out: instructions.
 *
 * Only functions outside tables call through tables and references, and only functions in tables are callable that way.
 */
import { refType, type Signature, type TypeName } from "../value_types.ts";
import type { Body } from "./body.ts";
import { BINARY_OPS } from "./numbers.ts";
import { OP } from "./opcodes.ts";
import { COST_LIMIT, type PlannedFunction } from "./plan.ts";
import { index, markTable } from "./tables.ts";
import { consume } from "./values.ts";

/**
 * Writes a call whose first result matches `wanted` and drops its other results; with `wanted` undefined, any call,
 * keeping its results. Returns the results, or undefined if no call was possible.
 */
export function callAny(b: Body, depth: number, wanted: TypeName | undefined): readonly TypeName[] | undefined {
  const fits = ({ results }: Signature) =>
    wanted === undefined || (results.length >= 1 && b.matches(results[0], wanted));
  const results = callThrough(b, depth, fits, false) ?? callDirectly(b, depth, fits, false);
  if (results !== undefined && wanted !== undefined) consume(b, results.slice(1));
  return results;
}

/** Writes a call in tail position; returns false if none was possible. */
export function tailCall(b: Body, depth: number): boolean {
  const fits = ({ results }: Signature) => b.allMatch(results, b.self.signature.results);
  return (callThrough(b, depth, fits, true) ?? callDirectly(b, depth, fits, true)) !== undefined;
}

type Fits = (signature: Signature) => boolean;

function room(b: Body): number {
  return (COST_LIMIT - b.cost) / b.weight;
}

/** Writes a call through a table or a reference. */
function callThrough(b: Body, depth: number, fits: Fits, tail: boolean): readonly TypeName[] | undefined {
  const random = b.random;
  const { plan } = b;
  if (b.self.tabled || !random.chance(b.typed ? 50 : 35)) return undefined;
  let most = plan.foreignCost;
  for (const f of plan.functions) if (f.tabled) most = Math.max(most, f.cost ?? Infinity);
  if (most >= room(b)) return undefined;
  const types = plan.definitions.filter((d) => d.kind === "func" && fits(d.signature!));
  const tables = plan.tables.flatMap((t, i) => b.matches(t.type, "funcref") ? [i] : []);
  let results: readonly TypeName[];
  if (types.length > 0 && (tables.length === 0 || random.chance(60))) {
    const { index: definition, signature } = random.pick(types);
    for (const type of signature!.params) b.expression(type, depth - 1);
    b.expression(refType(definition, random.chance(70)), depth - 1);
    b.mark("typed-function-references");
    if (tail) b.mark("tail-call");
    b.out.byte(tail ? OP.returnCallRef : OP.callRef).u32(b.index(definition));
    results = signature!.results;
  } else {
    const targets = plan.functions.filter((f) => f.tabled && fits(f.signature));
    if (targets.length === 0 || tables.length === 0) return undefined;
    const target = random.pick(targets);
    // A table with a function type accepts only calls of that type.
    const table = random.pick(tables);
    for (const type of target.signature.params) b.expression(type, depth - 1);
    index(b, plan.tables[table].min, depth - 1, table);
    if (tail) b.mark("tail-call");
    markTable(b, table);
    b.out.byte(tail ? OP.returnCallIndirect : OP.callIndirect).u32(b.functionType(target)).u32(table);
    results = target.signature.results;
  }
  b.cost += most * b.weight;
  b.impure++;
  return results;
}

function callDirectly(b: Body, depth: number, fits: Fits, tail: boolean): readonly TypeName[] | undefined {
  const falling = b.self.style === "falling" && b.selfCalls === 0 && b.weight === 1;
  const most = room(b);
  const targets = b.plan.functions.filter((f) =>
    fits(f.signature) && (f === b.self ? falling : f.cost !== undefined && f.cost < most)
  );
  if (targets.length === 0) return undefined;
  const target = b.random.pick(targets);
  b.impure++;
  if (target === b.self) b.selfCalls++; // before the arguments: a second call would double the work at each level
  target.signature.params.forEach((type, i) => {
    if (target === b.self && i === 0 && falling) decreased(b);
    else b.expression(type, depth - 1);
  });
  if (tail) b.mark("tail-call");
  b.out.byte(tail ? OP.returnCall : OP.call).u32(target.index);
  if (target !== b.self) b.cost += target.cost! * b.weight;
  return target.signature.results;
}

/** The decremented counter of a falling function. */
function decreased(b: Body): void {
  b.get(0);
  b.out.byte(0x41).s32(1).byte(0x6b);
}

/** Ends a body of style "ring" with a tail call of a ring function. */
export function ringCall(b: Body): void {
  const { plan, random } = b;
  const ring: readonly PlannedFunction[] = plan.functions.filter((f) => f.style === "ring");
  const target = random.pick(ring);
  decreased(b);
  for (const type of target.signature.params.slice(1)) b.expression(type, 1);
  b.mark("tail-call");
  if (plan.ringTable !== undefined && random.chance(45)) {
    b.constant("i32", ring.indexOf(target));
    b.out.byte(OP.returnCallIndirect).u32(plan.typeIndex(target.signature)).u32(plan.ringTable);
  } else b.out.byte(OP.returnCall).u32(target.index);
}

/** Ends a body of style "pair": one or two calls of the other function, combined with each other and with a value. */
export function pairCalls(b: Body): void {
  const { plan, random, self } = b;
  const other = plan.functions.find((f) => f.style === "pair" && f !== self)!;
  const [type] = self.signature.results;
  const call = () => {
    decreased(b);
    for (const param of other.signature.params.slice(1)) b.expression(param, random.below(2));
    b.out.byte(OP.call).u32(other.index);
  };
  call();
  if (random.chance(50)) {
    call();
    b.out.byte(random.pick(BINARY_OPS[type]));
  }
  b.expression(type, random.below(2));
  b.out.byte(random.pick(BINARY_OPS[type]));
  b.impure++;
}
