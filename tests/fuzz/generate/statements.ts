/**
 * Statements: code that leaves the stack unchanged. In: the state of a body and the maximum nesting depth. Out:
 * instructions.
 */
import { isReference } from "../value_types.ts";
import { atomicStatement } from "./atomics.ts";
import type { Body } from "./body.ts";
import { callAny } from "./calls.ts";
import { block, ifElse, multiValueBlock, switchOver } from "./control.ts";
import { exceptionStatement } from "./exceptions.ts";
import { loop } from "./loops.ts";
import { accessRun, bulkMemory, store, updateMemory } from "./memories.ts";
import { BINARY_OPS } from "./numbers.ts";
import { OP } from "./opcodes.ts";
import { nullBranch } from "./references.ts";
import { structureStatement } from "./structures.ts";
import { tableStatement } from "./tables.ts";
import { vectorStore, vectorUpdate } from "./vectors.ts";
import { consume, leafConstant } from "./values.ts";
import { wideStatement } from "./wide.ts";

/** A kind of statement: its weight in a body, where `deep` tells whether it may nest, and its generator. */
interface StatementRow {
  readonly weight: number | ((b: Body, deep: boolean) => number);
  readonly write: (b: Body, depth: number) => void;
}

const hasMemory = (b: Body) => b.plan.memories.length > 0;
/** The weight of statements that access memory. */
const ifMemory = (weight: number, feature?: string) => (b: Body) =>
  hasMemory(b) && (feature === undefined || b.has(feature)) ? weight : 0;
/** The weight of statements that contain others. */
const ifDeep = (weight: number) => (_: Body, deep: boolean) => deep ? weight : 0;

/** The order of the rows is part of a seed's meaning. */
const STATEMENTS: readonly StatementRow[] = [
  { weight: 30, write: localSet },
  { weight: 8, write: globalSet },
  { weight: ifMemory(18), write: (b, depth) => store(b, depth) },
  { weight: 3, write: dropped },
  { weight: ifDeep(10), write: (b, depth) => ifElse(b, [], depth) },
  { weight: ifDeep(4), write: (b, depth) => block(b, [], depth) },
  { weight: (b, deep) => deep && b.weight < 1000 ? 9 : 0, write: (b, depth) => loop(b, [], depth) },
  { weight: 5, write: branchIf },
  { weight: 8, write: callStatement },
  { weight: ifMemory(3, "bulk-memory-operations"), write: bulkMemory },
  {
    weight: (b) => b.has("reference-types") && b.plan.tables.length > 0 ? 4 : 0,
    write: (b, d) => tableStatement(b, d),
  },
  { weight: 1, write: (b) => void b.out.byte(OP.nop) },
  { weight: ifDeep(2), write: switchOver },
  { weight: ifDeep(2), write: multiValueBlock },
  { weight: 1, write: earlyReturn },
  { weight: 4, write: permute },
  { weight: ifMemory(5), write: accessRun },
  { weight: 14, write: accumulate },
  { weight: ifMemory(6), write: updateMemory },
  { weight: ifMemory(5, "simd"), write: vectorStore },
  { weight: (b) => b.plan.tags.length > 0 ? 7 : 0, write: exceptionStatement },
  { weight: (b) => b.has("gc") ? 8 : 0, write: structureStatement },
  { weight: ifMemory(7, "threads"), write: atomicStatement },
  { weight: (b) => b.typed ? 4 : 0, write: nullBranch },
  { weight: (b) => b.has("wide-arithmetic") ? 12 : 0, write: wideStatement },
];

export function statement(b: Body, depth: number): void {
  b.step();
  const deep = depth > 0 && b.budget > 0;
  const weights = STATEMENTS.map(({ weight }) => typeof weight === "number" ? weight : weight(b, deep));
  STATEMENTS[b.random.weighted(weights)].write(b, depth);
}

function globalSet(b: Body, depth: number): void {
  const globals = b.plan.globals.flatMap((g, i) => g.mutable ? [i] : []);
  if (globals.length === 0) return localSet(b, depth);
  const index = b.random.pick(globals);
  b.expression(b.plan.globals[index].type, depth);
  b.out.byte(OP.globalSet).u32(index);
}

function dropped(b: Body, depth: number): void {
  b.expression(b.anyType(), depth);
  b.out.byte(OP.drop);
}

function branchIf(b: Body, depth: number): void {
  const labels = b.targetsOf([]);
  if (labels.length === 0) return localSet(b, depth);
  b.condition(depth - 1);
  b.out.byte(OP.brIf).u32(b.random.pick(labels));
}

function callStatement(b: Body, depth: number): void {
  const results = callAny(b, depth, undefined);
  if (results === undefined) return localSet(b, depth);
  consume(b, results);
}

/** A conditional return, rarely unreachable. */
function earlyReturn(b: Body, depth: number): void {
  const { out, random } = b;
  b.condition(depth - 1);
  out.byte(OP.if).byte(0x40);
  b.labels.push({ types: [] });
  if (random.chance(6)) out.byte(OP.unreachable);
  else {
    for (const type of b.self.signature.results) b.expression(type, depth - 2);
    out.byte(OP.return);
  }
  out.byte(OP.end);
  b.labels.pop();
}

function localSet(b: Body, depth: number): void {
  const choices = b.writable.flatMap((writable, i) => writable ? [i] : []);
  const local = choices.length === 0 || (choices.length < 4 && b.random.chance(20))
    ? b.newLocal(b.anyType(), true)
    : b.random.pick(choices);
  b.expression(b.locals[local], depth);
  b.out.byte(OP.localSet).u32(local);
}

/** Combines a local or global with a value, as loops do. */
function accumulate(b: Body, depth: number): void {
  const random = b.random;
  const locals = b.locals.flatMap((t, i) => !isReference(t) && b.writable[i] ? [i] : []);
  const globals = b.plan.globals.flatMap((g, i) => g.mutable && !isReference(g.type) ? [i] : []);
  const global = globals.length > 0 && random.chance(40);
  if (!global && locals.length === 0) return localSet(b, depth);
  const index = random.pick(global ? globals : locals);
  const type = global ? b.plan.globals[index].type : b.locals[index];
  if (type === "v128") return vectorUpdate(b, global, index, depth);
  const ops = BINARY_OPS[type];
  const swapped = random.chance(20);
  if (swapped) b.expression(type, depth - 1);
  b.out.byte(global ? OP.globalGet : OP.localGet).u32(index);
  if (!swapped) random.chance(25) ? leafConstant(b, type) : b.expression(type, depth - 1);
  b.out.byte(random.pick(ops)).byte(global ? OP.globalSet : OP.localSet).u32(index);
}

/** Permutes locals of one type, which produces cycles of moves at loop ends. */
function permute(b: Body): void {
  const random = b.random;
  const type = b.anyType();
  const locals = random.shuffled(b.locals.flatMap((t, i) => t === type && b.writable[i] ? [i] : [])).slice(
    0,
    6,
  );
  for (const local of locals) b.get(local);
  const shift = random.below(locals.length || 1);
  locals.forEach((_, i) => b.out.byte(OP.localSet).u32(locals[(i + shift) % locals.length]));
  if (locals.length === 0) b.out.byte(OP.nop);
}
