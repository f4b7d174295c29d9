/**
 * Throwing and catching, with try_table or with the legacy instructions. In: the state of a body. Out: instructions.
 *
 * Handlers are the labels of blocks around the try_table, so their code is generated inline.
 */
import { isReference, type TypeName } from "../value_types.ts";
import type { Body } from "./body.ts";
import { OP } from "./opcodes.ts";
import { consume } from "./values.ts";

function marked(b: Body): void {
  b.mark("exception-handling");
  if (b.plan.legacy) b.mark("legacy-exceptions");
}

/** Writes code that throws; control does not continue. */
export function throwAny(b: Body, depth: number): void {
  const random = b.random;
  const handlers = b.labels.flatMap((l, i) => l.handler === true ? [b.labels.length - 1 - i] : []);
  marked(b);
  if (handlers.length > 0 && random.chance(40)) {
    b.out.byte(OP.rethrow).u32(random.pick(handlers));
    return;
  }
  const caught = b.plan.legacy ? [] : b.readable("exnref");
  if (caught.length > 0 && random.chance(30)) {
    b.get(random.pick(caught));
    b.out.byte(OP.throwRef);
    return;
  }
  const tag = random.below(b.plan.tags.length);
  for (const type of b.plan.tags[tag].params) b.expression(type, depth - 1);
  b.out.byte(OP.throw).u32(tag);
}

/** Writes a conditional throw, or a construct that catches. */
export function exceptionStatement(b: Body, depth: number): void {
  if (depth > 0 && b.budget > 0 && b.random.chance(65)) return tryExpression(b, [], depth);
  b.impure++;
  b.condition(depth - 1);
  b.out.byte(OP.if).byte(0x40);
  b.labels.push({ types: [] });
  throwAny(b, depth);
  b.labels.pop();
  b.out.byte(OP.end);
}

/** Writes code that leaves `results` and catches some of the exceptions thrown in it. */
export function tryExpression(b: Body, results: readonly TypeName[], depth: number): void {
  b.impure++;
  if (b.plan.legacy) legacyTry(b, results, depth);
  else tryTable(b, results, depth);
}

interface Clause {
  /** 0 catch, 1 catch_ref, 2 catch_all, 3 catch_all_ref */
  readonly kind: number;
  readonly tag: number;
  readonly types: readonly TypeName[];
}

function randomClause(b: Body): Clause {
  const kind = b.random.pick([0, 0, 0, 1, 1, 2, 3]);
  const tag = b.random.below(b.plan.tags.length);
  const types: TypeName[] = kind < 2 ? b.plan.tags[tag].params.slice() : [];
  if (kind === 1 || kind === 3) types.push(b.random.chance(50) || !b.typed ? "exnref" : "(ref exn)");
  return { kind, tag, types };
}

function tryTable(b: Body, results: readonly TypeName[], depth: number): void {
  const { random, out } = b;
  const own = Array.from({ length: random.pick([0, 1, 1, 1, 2, 2, 3]) }, () => randomClause(b));
  out.byte(OP.block);
  b.blockType([], results);
  b.labels.push({ types: results });
  // The first clause's block is the innermost one.
  for (let i = own.length - 1; i >= 0; i--) {
    out.byte(OP.block);
    b.blockType([], own[i].types);
    // Only a catch clause can supply a non-null exception reference.
    b.labels.push({ types: own[i].types.includes("(ref exn)") ? undefined : own[i].types });
  }
  // Additional clauses target existing labels.
  const clauses = own.map((clause, i) => ({ clause, label: i }));
  for (let n = random.below(3); n > 0; n--) {
    const clause = randomClause(b);
    const labels = b.targetsOf(clause.types.map((type) => type === "exnref" ? "(ref exn)" : type));
    if (labels.length === 0) continue;
    clauses.splice(random.below(clauses.length + 1), 0, { clause, label: random.pick(labels) });
  }
  marked(b);
  out.byte(OP.tryTable);
  b.blockType([], results);
  out.u32(clauses.length);
  for (const { clause, label } of clauses) {
    out.byte(clause.kind);
    if (clause.kind < 2) out.u32(clause.tag);
    out.u32(label);
  }
  b.labels.push({ types: results });
  b.sequence(results, depth - 1);
  if (random.chance(30)) exceptionTail(b, results, depth);
  b.labels.pop();
  out.byte(OP.end);
  own.forEach(({ types }, i) => {
    out.byte(OP.br).u32(own.length - i);
    out.byte(OP.end);
    b.labels.pop();
    caught(b, types);
    b.sequence(results, depth - 1);
  });
  out.byte(OP.end);
  b.labels.pop();
}

/** After the results of a try's body: a conditional throw, with the results saved to locals. */
function exceptionTail(b: Body, results: readonly TypeName[], depth: number): void {
  const types = results.filter((type) => !isReference(type));
  if (types.length !== results.length) return;
  const kept = types.map((type) => b.newLocal(type, false));
  for (let i = kept.length - 1; i >= 0; i--) b.out.byte(OP.localSet).u32(kept[i]);
  b.condition(depth - 1);
  b.out.byte(OP.if).byte(0x40);
  b.labels.push({ types: [] });
  throwAny(b, depth - 1);
  b.labels.pop();
  b.out.byte(OP.end);
  for (const local of kept) b.get(local);
}

/** Consumes the operands of a handler; sometimes rethrows. */
function caught(b: Body, types: readonly TypeName[]): void {
  const last = types.at(-1);
  if (last === "exnref" || last === "(ref exn)") {
    if (b.random.chance(15)) {
      const kept = b.newLocal("exnref", true);
      b.out.byte(OP.localTee).u32(kept).byte(OP.drop);
      consume(b, types.slice(0, -1));
      b.condition(1);
      b.out.byte(OP.if).byte(0x40);
      b.get(kept);
      b.out.byte(OP.throwRef).byte(OP.end);
      return;
    }
  }
  consume(b, types);
}

function legacyTry(b: Body, results: readonly TypeName[], depth: number): void {
  const { random, out } = b;
  marked(b);
  out.byte(OP.try);
  b.blockType([], results);
  b.labels.push({ types: results });
  b.sequence(results, depth - 1);
  if (random.chance(30)) exceptionTail(b, results, depth);
  b.labels.pop();
  if (random.chance(20)) {
    out.byte(OP.delegate).u32(random.below(b.labels.length));
    return;
  }
  b.labels.push({ types: results, handler: true });
  const clauses = random.below(3);
  for (let i = 0; i < clauses; i++) {
    const tag = random.below(b.plan.tags.length);
    out.byte(OP.catch).u32(tag);
    consume(b, b.plan.tags[tag].params);
    b.sequence(results, depth - 1);
  }
  if (random.chance(clauses === 0 ? 85 : 40)) {
    out.byte(OP.catchAll);
    b.sequence(results, depth - 1);
  }
  b.labels.pop();
  out.byte(OP.end);
}
