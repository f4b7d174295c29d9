/**
 * Rules of control instructions (specification, 3.4.3 and 3.4.4): blocks, branches, calls, tail calls. Each is a
 * function over the walker, whose immediates it reads; special.ts collects them by mnemonic.
 */
import type { SpecialMnemonic } from "../wasm/opcodes.ts";
import { FUNCREF, type FuncType, I32, isRef, refType, V128, type ValType, valTypeName } from "../wasm/types.ts";
import { FEATURE } from "./gate.ts";
import { funcAt, funcTypeAt, tableAt } from "./lookups.ts";
import { KIND, NO_TYPES, typeName, type Walker } from "./walker.ts";

/** The rule of a special row. */
export type Rule = (walker: Walker) => void;

const MULTI_VALUE = FEATURE["multi-value"];
const TYPED_REFERENCES = FEATURE["typed-function-references"];

/** Result lists of shorthand block types, by number or vector type (all below 128). */
const NUMBER_RESULTS: readonly (readonly ValType[])[] = Array.from({ length: 128 }, (_, type) => [type]);

/** Checks the block type in the immediates, pops its parameters, and opens a frame. */
export function enterBlock(walker: Walker, kind: number): void {
  const { imm, valid } = walker;
  const index = imm.blockTypeIndex;
  if (index >= 0) {
    if (walker.at < valid.gate.firstUse[MULTI_VALUE]) valid.gate.use(MULTI_VALUE, walker.at, "a block type index");
    const type = funcTypeAt(walker, index);
    if (kind === KIND.IF) walker.pop(I32);
    walker.popAll(type.params);
    walker.enter(kind, type.params, type.results);
    return;
  }
  const value = imm.blockValue;
  let results = NO_TYPES;
  if (value !== 0) {
    if (value === V128 || isRef(value)) walker.useType(value);
    results = isRef(value) ? refResults(walker, value) : NUMBER_RESULTS[value];
  }
  if (kind === KIND.IF) walker.pop(I32);
  walker.enter(kind, NO_TYPES, results);
}

function refResults(walker: Walker, type: ValType): readonly ValType[] {
  const known = walker.valid.blockResults.get(type);
  if (known !== undefined) return known;
  const results = [type];
  walker.valid.blockResults.set(type, results);
  return results;
}

function otherwise(walker: Walker): void {
  const frame = walker.depth - 1;
  if (walker.kinds[frame] !== KIND.IF) walker.misplaced();
  walker.finishFrame();
  walker.restartFrame(KIND.ELSE, walker.params[frame]);
}

function end(walker: Walker): void {
  walker.finishFrame();
  const frame = walker.depth - 1;
  if (walker.kinds[frame] === KIND.IF) checkEmptyElse(walker, walker.params[frame], walker.results[frame]);
  walker.leave();
}

/** An `if` without `else` returns its parameters as results. */
function checkEmptyElse(walker: Walker, params: readonly ValType[], results: readonly ValType[]): void {
  if (allMatch(walker, params, results)) return;
  const names = (types: readonly ValType[]) => types.map(valTypeName).join(" ");
  walker.fail(`type mismatch: if without else has [${names(params)}] but requires [${names(results)}]`);
}

function allMatch(walker: Walker, types: readonly ValType[], expected: readonly ValType[]): boolean {
  if (types.length !== expected.length) return false;
  return types.every((type, i) => walker.matches(type, expected[i]));
}

function branch(walker: Walker): void {
  walker.popAll(walker.labelTypes(walker.frameOf(walker.imm.index)));
  walker.markDead();
}

function branchIf(walker: Walker): void {
  const types = walker.labelTypes(walker.frameOf(walker.imm.index));
  walker.pop(I32);
  if (types.length === 0) return;
  walker.popAll(types);
  walker.pushAll(types);
}

/** Checks every distinct label once: a frame's stamp marks labels that this br_table has checked. */
function branchTable(walker: Walker): void {
  walker.pop(I32);
  const { labels, labelCount } = walker.imm;
  const stamps = walker.stamps;
  const stamp = ++walker.stamp;
  const height = walker.top;
  const arity = walker.labelTypes(walker.frameOf(labels[labelCount])).length;
  let last: readonly ValType[] | undefined;
  for (let i = labelCount; i >= 0; i--) {
    const frame = walker.frameOf(labels[i]);
    if (stamps[frame] === stamp) continue;
    stamps[frame] = stamp;
    const types = walker.labelTypes(frame);
    if (types === last) continue;
    last = types;
    if (types.length !== arity) {
      walker.fail(`type mismatch: label ${labels[i]} takes ${types.length} values, the default label takes ${arity}`);
    }
    walker.popAll(types);
    walker.top = height;
  }
  walker.markDead();
}

function returnAll(walker: Walker): void {
  walker.popAll(walker.results[0]);
  walker.markDead();
}

function applyCall(walker: Walker, type: FuncType): void {
  walker.popAll(type.params);
  walker.pushAll(type.results);
}

function applyTailCall(walker: Walker, type: FuncType): void {
  const results = walker.results[0];
  if (!allMatch(walker, type.results, results)) {
    const names = (types: readonly ValType[]) => types.map(typeName).join(" ");
    walker.fail(`type mismatch: function requires [${names(results)}] but callee returns [${names(type.results)}]`);
  }
  walker.popAll(type.params);
  walker.markDead();
}

/** Checks table and type of an indirect call and pops the index. */
function indirectCallee(walker: Walker): FuncType {
  const { index, index2 } = walker.imm;
  const table = tableAt(walker, index2);
  if (!walker.matches(table.element, FUNCREF)) {
    walker.fail(`type mismatch: table ${index2} has elements ${valTypeName(table.element)}, funcref is required`);
  }
  const type = funcTypeAt(walker, index);
  walker.pop(table.limits.address);
  return type;
}

/** Pops the callee of call_ref and return_call_ref. */
function referencedCallee(walker: Walker): FuncType {
  const { valid, at, imm } = walker;
  if (at < valid.gate.firstUse[TYPED_REFERENCES]) valid.gate.use(TYPED_REFERENCES, at, "a call through a reference");
  const type = funcTypeAt(walker, imm.index);
  walker.pop(refType(true, imm.index));
  return type;
}

/** Rules by mnemonic. */
export const CONTROL_RULES = {
  "unreachable": (walker) => walker.markDead(),
  "block": (walker) => enterBlock(walker, KIND.BLOCK),
  "loop": (walker) => enterBlock(walker, KIND.LOOP),
  "if": (walker) => enterBlock(walker, KIND.IF),
  "else": otherwise,
  "end": end,
  "br": branch,
  "br_if": branchIf,
  "br_table": branchTable,
  "return": returnAll,
  "call": (walker) => applyCall(walker, funcAt(walker, walker.imm.index)),
  "call_indirect": (walker) => applyCall(walker, indirectCallee(walker)),
  "call_ref": (walker) => applyCall(walker, referencedCallee(walker)),
  "return_call": (walker) => applyTailCall(walker, funcAt(walker, walker.imm.index)),
  "return_call_indirect": (walker) => applyTailCall(walker, indirectCallee(walker)),
  "return_call_ref": (walker) => applyTailCall(walker, referencedCallee(walker)),
} as const satisfies Partial<Record<SpecialMnemonic, Rule>>;
