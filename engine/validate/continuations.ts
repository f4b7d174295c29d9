/**
 * Rules of continuations (proposal "stack switching", "Instructions"): creating, binding, suspending, resuming and
 * switching.
 */
import type { SpecialMnemonic } from "../wasm/opcodes.ts";
import { EXNREF, type FuncType, heapOf, isRef, refType, type ValType, valTypeName } from "../wasm/types.ts";
import type { Rule } from "./control.ts";
import { MAX_PARAMS } from "./limits.ts";
import { tagAt } from "./lookups.ts";
import type { Walker } from "./walker.ts";

/** The index of the function type of the continuations of type `index`. */
function funcIndexOf(walker: Walker, index: number): number {
  const type = walker.valid.types[index];
  if (type === undefined) walker.fail(`unknown type ${index}`);
  if (type.composite.kind !== "cont") walker.fail(`non-continuation type ${index}`);
  return type.composite.func;
}

/** The function type of the continuations of type `index`. */
function contTypeAt(walker: Walker, index: number): FuncType {
  const { composite } = walker.valid.types[funcIndexOf(walker, index)];
  if (composite.kind !== "func") walker.fail(`non-function type ${funcIndexOf(walker, index)}`);
  return composite;
}

function names(types: readonly ValType[]): string {
  return `[${types.map(valTypeName).join(" ")}]`;
}

function allMatch(walker: Walker, types: readonly ValType[], expected: readonly ValType[]): boolean {
  return types.length === expected.length && types.every((type, i) => walker.matches(type, expected[i]));
}

/** Whether functions from `params` to `results` can be used as those of `type`. */
function matchesFunc(
  walker: Walker,
  params: readonly ValType[],
  results: readonly ValType[],
  type: FuncType,
): boolean {
  return allMatch(walker, type.params, params) && allMatch(walker, results, type.results);
}

function contNew(walker: Walker): void {
  const { index } = walker.imm;
  walker.pop(refType(true, funcIndexOf(walker, index)));
  walker.push(refType(false, index));
}

function contBind(walker: Walker): void {
  const { index, index2 } = walker.imm;
  const from = contTypeAt(walker, index);
  const to = contTypeAt(walker, index2);
  const bound = from.params.length - to.params.length;
  if (bound < 0 || !matchesFunc(walker, from.params.slice(bound), from.results, to)) {
    walker.fail(`type mismatch: no arguments make a continuation of type ${index2} of one of type ${index}`);
  }
  walker.popAll([...from.params.slice(0, bound), refType(true, index)]);
  walker.push(refType(false, index2));
}

function suspend(walker: Walker): void {
  const { params, results } = tagAt(walker, walker.imm.index);
  walker.popAll(params);
  walker.pushAll(results);
}

/** The payload of an exception that resume_throw raises. */
function thrownPayload(walker: Walker, tag: number): readonly ValType[] {
  const { params, results } = tagAt(walker, tag);
  if (results.length > 0) walker.fail(`type mismatch: tag ${tag} has results ${names(results)}, so it is no exception`);
  return params;
}

/** Checks the handlers in the immediates, for a computation that returns `results`. */
function checkHandlers(walker: Walker, operands: number, { results }: FuncType): void {
  const { handlers } = walker.imm;
  const most = MAX_PARAMS - operands;
  if (handlers.length > most) {
    walker.fail(`too many handlers: ${handlers.length}, at most ${most} are possible with ${operands} operands`);
  }
  for (const { tag, label } of handlers) {
    if (label < 0) checkSwitchHandler(walker, tag, results);
    else checkLabelHandler(walker, tag, label, results);
  }
}

/** The label takes the payload of the tag and a continuation from the tag's results to those of the computation. */
function checkLabelHandler(walker: Walker, tag: number, label: number, results: readonly ValType[]): void {
  const type = tagAt(walker, tag);
  const types = walker.labelTypes(walker.frameOf(label));
  const last = types.at(-1);
  if (last === undefined || !isRef(last) || heapOf(last) < 0) {
    walker.fail(
      `type mismatch: instruction requires concrete continuation reference type but label has ${names(types)}`,
    );
  }
  const continued = contTypeAt(walker, heapOf(last));
  const payload = types.slice(0, -1);
  if (!allMatch(walker, type.params, payload)) {
    walker.fail(`type mismatch: tag ${tag} carries ${names(type.params)} but label ${label} takes ${names(payload)}`);
  }
  if (!matchesFunc(walker, type.results, results, continued)) {
    walker.fail(
      `type mismatch: label ${label} takes continuations from ${names(continued.params)} to ` +
        `${names(continued.results)}, not from ${names(type.results)} to ${names(results)}`,
    );
  }
}

/** All computations that run below the handler return its results. */
function checkSwitchHandler(walker: Walker, tag: number, results: readonly ValType[]): void {
  const type = switchTag(walker, tag);
  if (allMatch(walker, type.results, results) && allMatch(walker, results, type.results)) return;
  walker.fail(
    `type mismatch in switch tag ${tag}: it returns ${names(type.results)}, the computation ${names(results)}`,
  );
}

function switchTag(walker: Walker, tag: number): FuncType {
  const type = tagAt(walker, tag);
  if (type.params.length > 0) walker.fail(`type mismatch in switch tag ${tag}: it has parameters`);
  return type;
}

function resume(walker: Walker): void {
  const { index } = walker.imm;
  const type = contTypeAt(walker, index);
  resumeWith(walker, index, type, type.params);
}

/** Pops `operands` and the continuation, and pushes the results of the computation. */
function resumeWith(walker: Walker, index: number, type: FuncType, operands: readonly ValType[]): void {
  checkHandlers(walker, operands.length, type);
  walker.popAll([...operands, refType(true, index)]);
  walker.pushAll(type.results);
}

function resumeThrow(walker: Walker): void {
  const { index, index2 } = walker.imm;
  const type = contTypeAt(walker, index);
  resumeWith(walker, index, type, thrownPayload(walker, index2));
}

function resumeThrowRef(walker: Walker): void {
  const { index } = walker.imm;
  resumeWith(walker, index, contTypeAt(walker, index), [EXNREF]);
}

/** The other computation receives the operands, and the current one as a continuation. */
function switchTo(walker: Walker): void {
  const { index, index2 } = walker.imm;
  const target = contTypeAt(walker, index);
  const tag = switchTag(walker, index2);
  const last = target.params.at(-1);
  if (last === undefined || !isRef(last) || heapOf(last) < 0) {
    walker.fail(`type mismatch: the last parameter of type ${index} is no continuation, but ${names(target.params)}`);
  }
  const own = contTypeAt(walker, heapOf(last));
  if (!allMatch(walker, target.results, tag.results) || !allMatch(walker, tag.results, own.results)) {
    walker.fail(
      `type mismatch in switch tag ${index2}: it returns ${names(tag.results)}, ` +
        `the computations ${names(target.results)} and ${names(own.results)}`,
    );
  }
  walker.popAll([...target.params.slice(0, -1), refType(true, index)]);
  walker.pushAll(own.params);
}

/** Rules by mnemonic. */
export const CONTINUATION_RULES = {
  "cont.new": contNew,
  "cont.bind": contBind,
  "suspend": suspend,
  "resume": resume,
  "resume_throw": resumeThrow,
  "resume_throw_ref": resumeThrowRef,
  "switch": switchTo,
} as const satisfies Partial<Record<SpecialMnemonic, Rule>>;
