/**
 * Statements: code that leaves the stack unchanged. In: the state of a body and the maximum nesting depth. Out:
 * instructions.
 */
import { isReference, type TypeName } from "../value_types.ts";
import { atomicStatement } from "./atomics.ts";
import type { Body } from "./body.ts";
import { callAny } from "./calls.ts";
import { block, ifElse, multiValueBlock, switchOver } from "./control.ts";
import { exceptionStatement } from "./exceptions.ts";
import { condition, expression, leafConstant } from "./expressions.ts";
import { loop } from "./loops.ts";
import { accessRun, bulkMemory, store, updateMemory } from "./memories.ts";
import { BINARY_OPS } from "./numbers.ts";
import { OP } from "./opcodes.ts";
import { nullBranch } from "./references.ts";
import { structureStatement } from "./structures.ts";
import { tableStatement } from "./tables.ts";
import { vectorStore, vectorUpdate } from "./vectors.ts";

const NUMBERS: readonly TypeName[] = ["i32", "i64", "f32", "f64"];

export function statement(b: Body, depth: number): void {
  b.step();
  const random = b.random;
  const out = b.out;
  const deep = depth > 0 && b.budget > 0;
  const memory = b.plan.memories.length > 0;
  const bulk = b.has("bulk-memory-operations");
  const references = b.has("reference-types") && b.plan.tables.length > 0;
  switch (
    random.weighted([
      30, // local.set
      8, // global.set
      memory ? 18 : 0, // store
      3, // drop
      deep ? 10 : 0, // if
      deep ? 4 : 0, // block
      deep && b.weight < 1000 ? 9 : 0, // loop
      5, // br_if
      8, // call
      memory && bulk ? 3 : 0,
      references ? 4 : 0,
      1, // nop
      deep ? 2 : 0, // switch
      deep ? 2 : 0, // multi-value block
      1, // early return, rarely unreachable
      4, // locals change places
      memory ? 5 : 0, // accesses by one base
      14, // local or global op= expression
      memory ? 6 : 0, // memory op= expression
      b.has("simd") && memory ? 5 : 0,
      b.plan.tags.length > 0 ? 7 : 0,
      b.has("gc") ? 8 : 0,
      b.has("threads") && memory ? 7 : 0,
      b.typed ? 4 : 0,
    ])
  ) {
    case 0:
      return localSet(b, depth);
    case 1: {
      const globals = b.plan.globals.flatMap((g, i) => g.mutable ? [i] : []);
      if (globals.length === 0) return localSet(b, depth);
      const index = random.pick(globals);
      expression(b, b.plan.globals[index]!.type, depth);
      out.byte(OP.globalSet).u32(index);
      return;
    }
    case 2:
      return store(b, depth);
    case 3:
      expression(b, b.anyType(), depth);
      out.byte(OP.drop);
      return;
    case 4:
      return ifElse(b, [], depth);
    case 5:
      return block(b, [], depth);
    case 6:
      return loop(b, [], depth);
    case 7: {
      const labels = b.targetsOf([]);
      if (labels.length === 0) return localSet(b, depth);
      condition(b, depth - 1);
      out.byte(OP.brIf).u32(random.pick(labels));
      return;
    }
    case 8: {
      const results = callAny(b, depth, undefined);
      if (results === undefined) return localSet(b, depth);
      consume(b, results);
      return;
    }
    case 9:
      return bulkMemory(b, depth);
    case 10:
      return tableStatement(b, depth);
    case 11:
      out.byte(OP.nop);
      return;
    case 12:
      return switchOver(b, depth);
    case 13:
      return multiValueBlock(b, depth);
    case 15:
      return permute(b);
    case 16:
      return accessRun(b, depth);
    case 17:
      return accumulate(b, depth);
    case 18:
      return updateMemory(b, depth);
    case 19:
      return vectorStore(b, depth);
    case 20:
      return exceptionStatement(b, depth);
    case 21:
      return structureStatement(b, depth);
    case 22:
      return atomicStatement(b, depth);
    case 23:
      return nullBranch(b, depth);
    default:
      condition(b, depth - 1);
      out.byte(OP.if).byte(0x40);
      b.labels.push({ types: [] });
      if (random.chance(6)) out.byte(OP.unreachable);
      else {
        for (const type of b.self.signature.results) expression(b, type, depth - 2);
        out.byte(OP.return);
      }
      out.byte(OP.end);
      b.labels.pop();
  }
}

export function localSet(b: Body, depth: number): void {
  const choices = b.writable.flatMap((writable, i) => writable ? [i] : []);
  const local = choices.length === 0 || (choices.length < 4 && b.random.chance(20))
    ? b.newLocal(b.anyType(), true)
    : b.random.pick(choices);
  expression(b, b.locals[local]!, depth);
  b.out.byte(OP.localSet).u32(local);
}

/** Combines a local or global with a value, as loops do. */
export function accumulate(b: Body, depth: number): void {
  const random = b.random;
  const locals = b.locals.flatMap((t, i) => !isReference(t) && b.writable[i]! ? [i] : []);
  const globals = b.plan.globals.flatMap((g, i) => g.mutable && !isReference(g.type) ? [i] : []);
  const global = globals.length > 0 && random.chance(40);
  if (!global && locals.length === 0) return localSet(b, depth);
  const index = random.pick(global ? globals : locals);
  const type = global ? b.plan.globals[index]!.type : b.locals[index]!;
  if (type === "v128") return vectorUpdate(b, global, index, depth);
  const ops = BINARY_OPS[type]!;
  const swapped = random.chance(20);
  if (swapped) expression(b, type, depth - 1);
  b.out.byte(global ? OP.globalGet : OP.localGet).u32(index);
  if (!swapped) random.chance(25) ? leafConstant(b, type) : expression(b, type, depth - 1);
  b.out.byte(random.pick(ops)).byte(global ? OP.globalSet : OP.localSet).u32(index);
}

/** Permutes locals of one type, which produces cycles of moves at loop ends. */
export function permute(b: Body): void {
  const random = b.random;
  const type = b.anyType();
  const locals = random.shuffled(b.locals.flatMap((t, i) => t === type && b.writable[i]! ? [i] : [])).slice(
    0,
    6,
  );
  for (const local of locals) b.get(local);
  const shift = random.below(locals.length || 1);
  locals.forEach((_, i) => b.out.byte(OP.localSet).u32(locals[(i + shift) % locals.length]!));
  if (locals.length === 0) b.out.byte(OP.nop);
}

/** Consumes `results` from the stack. */
export function consume(b: Body, results: readonly TypeName[]): void {
  const stack = results.slice();
  while (stack.length > 0) {
    const type = stack.pop()!;
    if (stack.length > 0 && stack[stack.length - 1] === type && NUMBERS.includes(type) && b.random.chance(40)) {
      b.opcode({ i32: 0x6a, i64: 0x7d, f32: 0x92, f64: 0xa1 }[type as "i32"]);
      continue;
    }
    const locals = b.settable(type);
    if (locals.length > 0 && b.random.chance(80)) {
      b.out.byte(OP.localSet).u32(b.random.pick(locals));
    } else b.out.byte(OP.drop);
  }
  b.impure++;
}
