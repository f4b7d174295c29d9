/**
 * Sequences of statements and the structured instructions: blocks, conditionals, switches, branches. In: the state of a
 * body and the maximum nesting depth. Out: instructions.
 */
import { NUMERIC_OPS } from "../numeric_rows.ts";
import { isReference, type TypeName } from "../value_types.ts";
import type { Body } from "./body.ts";
import { tailCall } from "./calls.ts";
import { throwAny } from "./exceptions.ts";
import { OP } from "./opcodes.ts";
import { consume } from "./values.ts";

/** Writes code after which control does not continue, sometimes followed by dead code. */
function leave(b: Body, depth: number): void {
  const random = b.random;
  const out = b.out;
  const labels = b.branchTargets();
  if (b.has("tail-call") && random.chance(20) && tailCall(b, depth - 2)) {
    // control does not continue
  } else if (b.plan.tags.length > 0 && random.chance(25)) throwAny(b, depth - 2);
  else if (labels.length === 0 || random.chance(4)) {
    if (random.chance(10)) out.byte(OP.unreachable);
    else {
      for (const type of b.self.signature.results) b.expression(type, depth - 2);
      out.byte(OP.return);
    }
  } else {
    const label = random.pick(labels);
    const types = b.labelTypes(label);
    for (const type of types) b.expression(type, depth - 2);
    if (random.chance(40)) {
      const same = labels.filter((l) => b.labelTypes(l).join() === types.join());
      b.expression("i32", depth - 2);
      out.byte(OP.brTable);
      const count = random.below(8);
      out.u32(count);
      for (let i = 0; i < count; i++) out.u32(random.pick(same));
      out.u32(label);
    } else out.byte(OP.br).u32(label);
  }
  b.impure++;
  if (random.chance(15)) {
    const op = random.pick(NUMERIC_OPS);
    b.opcode(op.code);
    out.byte(OP.drop);
    if (random.chance(30)) b.expression("i32", 1), out.byte(OP.drop);
  }
}

export function select(b: Body, type: TypeName, depth: number): void {
  b.expression(type, depth - 1);
  b.expression(type, depth - 1);
  b.condition(depth - 1);
  if (isReference(type) || (b.has("reference-types") && b.random.chance(20))) {
    b.out.byte(OP.selectTyped).u32(1);
    b.type(type);
  } else b.out.byte(OP.select);
}

export function ifElse(b: Body, results: readonly TypeName[], depth: number): void {
  b.impure++;
  b.condition(depth - 1);
  b.out.byte(OP.if);
  b.blockType([], results);
  b.labels.push({ types: results });
  b.sequence(results, depth - 1);
  if (results.length > 0 || b.random.chance(50)) {
    b.out.byte(OP.else);
    b.sequence(results, depth - 1);
  }
  b.labels.pop();
  b.out.byte(OP.end);
}

export function block(b: Body, results: readonly TypeName[], depth: number): void {
  b.impure++;
  b.out.byte(OP.block);
  b.blockType([], results);
  b.labels.push({ types: results });
  b.sequence(results, depth - 1);
  b.labels.pop();
  b.out.byte(OP.end);
}

/** A block with parameters and results; the results go to locals. */
export function multiValueBlock(b: Body, depth: number): void {
  if (!b.has("multi-value")) return block(b, [], depth);
  const random = b.random;
  const params = Array.from({ length: random.below(4) }, () => b.anyType());
  const results = Array.from({ length: random.below(4) }, () => b.anyType());
  for (const type of params) b.expression(type, depth - 1);
  const conditional = random.chance(35);
  if (conditional) b.condition(depth - 1);
  b.impure++;
  b.out.byte(conditional ? OP.if : OP.block);
  b.blockType(params, results);
  b.labels.push({ types: results });
  consume(b, params);
  b.sequence(results, depth - 1);
  if (conditional) {
    b.out.byte(OP.else);
    if (params.join() !== results.join() || random.chance(60)) {
      consume(b, params);
      b.sequence(results, depth - 1);
    }
  }
  b.labels.pop();
  b.out.byte(OP.end);
  consume(b, results);
}

/** Nested blocks with a br_table inside, as compilers translate a switch. */
export function switchOver(b: Body, depth: number): void {
  const random = b.random;
  const out = b.out;
  const cases = random.between(1, 5);
  b.impure++;
  for (let i = 0; i <= cases; i++) {
    out.byte(OP.block).byte(0x40);
    b.labels.push({ types: [] });
  }
  b.expression("i32", depth - 1);
  if (random.chance(60)) out.byte(0x41).s32(random.pick([3, 7])).byte(0x71);
  const entries = random.chance(10) ? random.between(20, 120) : random.below(12);
  out.byte(OP.brTable).u32(entries);
  for (let i = 0; i <= entries; i++) out.u32(random.below(cases + 1));
  for (let i = 0; i < cases; i++) {
    out.byte(OP.end);
    b.labels.pop();
    if (random.chance(85)) b.statement(depth - 1);
    if (random.chance(60)) out.byte(OP.br).u32(cases - 1 - i);
  }
  out.byte(OP.end);
  b.labels.pop();
}

/** Statements, then `results` on the stack; or statements and a branch. */
export function sequence(b: Body, results: readonly TypeName[], depth: number): void {
  const count = b.random.below(depth + 2);
  for (let i = 0; i < count && b.budget > 0; i++) b.statement(depth);
  if (b.labels.length > 1 && b.random.chance(12)) leave(b, depth);
  else for (const type of results) b.expression(type, depth);
}
