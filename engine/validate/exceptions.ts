/**
 * Rules of exceptions: throw, throw_ref and try_table (specification, 3.4.4), and the legacy instructions try, catch,
 * catch_all, delegate and rethrow (the exception-handling proposal's "legacy" document).
 */
import { passesException } from "../wasm/immediates.ts";
import type { SpecialMnemonic } from "../wasm/opcodes.ts";
import { EXNREF, HEAP, refType, type ValType, valTypeName } from "../wasm/types.ts";
import { enterBlock, type Rule } from "./control.ts";
import { tagAt } from "./lookups.ts";
import { KIND, NO_TYPES, type Walker } from "./walker.ts";

/** The type that catch_ref and catch_all_ref add to the payload. */
const CAUGHT: ValType = refType(false, HEAP.exn);

function throwTag(walker: Walker): void {
  const { index } = walker.imm;
  const { params, results } = tagAt(walker, index);
  if (results.length > 0) walker.fail(`type mismatch: tag ${index} has results, so it is no exception`);
  walker.popAll(params);
  walker.markDead();
}

function throwRef(walker: Walker): void {
  walker.pop(EXNREF);
  walker.markDead();
}

/** Labels of catch clauses are relative to the frame outside the block. */
function tryTable(walker: Walker): void {
  for (const { kind, tag, label } of walker.imm.catches) {
    const payload = tag < 0 ? NO_TYPES : tagAt(walker, tag).params;
    const carried = passesException(kind) ? [...payload, CAUGHT] : payload;
    const types = walker.labelTypes(walker.frameOf(label));
    if (carried.length === types.length && carried.every((type, i) => walker.matches(type, types[i]))) continue;
    const names = (list: readonly ValType[]) => list.map(valTypeName).join(" ");
    walker.fail(`type mismatch: catch clause carries [${names(carried)}] but label ${label} takes [${names(types)}]`);
  }
  enterBlock(walker, KIND.TRY_TABLE);
}

/** Ends the part before a catch or catch_all of a legacy try. */
function finishTryPart(walker: Walker): void {
  const kind = walker.kinds[walker.depth - 1];
  if (kind !== KIND.TRY && kind !== KIND.CATCH) walker.misplaced();
  walker.finishFrame();
}

function catchTag(walker: Walker): void {
  finishTryPart(walker);
  walker.restartFrame(KIND.CATCH, tagAt(walker, walker.imm.index).params);
}

function catchAll(walker: Walker): void {
  finishTryPart(walker);
  walker.restartFrame(KIND.CATCH_ALL, NO_TYPES);
}

/** The label of delegate is relative to the frame outside the try that it ends. */
function delegate(walker: Walker): void {
  if (walker.kinds[walker.depth - 1] !== KIND.TRY) walker.misplaced();
  walker.finishFrame();
  if (walker.imm.index >= walker.depth - 1) walker.fail(`unknown label ${walker.imm.index}`);
  walker.leave();
}

function rethrow(walker: Walker): void {
  const kind = walker.kinds[walker.frameOf(walker.imm.index)];
  if (kind !== KIND.CATCH && kind !== KIND.CATCH_ALL) {
    walker.fail(`invalid rethrow label ${walker.imm.index}: not a catch block`);
  }
  walker.markDead();
}

/** Rules by mnemonic. */
export const EXCEPTION_RULES = {
  "throw": throwTag,
  "throw_ref": throwRef,
  "try_table": tryTable,
  "try": (walker) => enterBlock(walker, KIND.TRY),
  "catch": catchTag,
  "catch_all": catchAll,
  "delegate": delegate,
  "rethrow": rethrow,
} as const satisfies Partial<Record<SpecialMnemonic, Rule>>;
