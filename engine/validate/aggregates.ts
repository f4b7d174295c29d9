/**
 * Rules of structures and arrays (specification, 3.4.2, "Aggregate Reference Instructions").
 */
import type { SpecialMnemonic } from "../wasm/opcodes.ts";
import {
  type FieldType,
  HEAP,
  I32,
  isDefaultable,
  isPacked,
  isRef,
  refType,
  type ValType,
  valTypeName,
} from "../wasm/types.ts";
import type { Rule } from "./control.ts";
import { newRef } from "./exact_types.ts";
import { MAX_FIXED_ELEMENTS } from "./limits.ts";
import { arrayTypeAt, checkData, elemAt, structTypeAt } from "./lookups.ts";
import type { Walker } from "./walker.ts";

const ARRAYREF = refType(true, HEAP.array);

/** The type of a field's value on the operand stack. */
function unpacked(field: FieldType): ValType {
  return isPacked(field.storage) ? I32 : field.storage;
}

function checkDefault(walker: Walker, field: FieldType, what: string): void {
  if (!isDefaultable(field.storage)) {
    walker.fail(`type mismatch: ${what} of type ${valTypeName(field.storage)} is not defaultable`);
  }
}

/** Requires `get` for whole fields, `get_s` and `get_u` for packed ones. */
function checkPacking(walker: Walker, field: FieldType, extends_: boolean, what: string): void {
  if (isPacked(field.storage) !== extends_) {
    walker.fail(`type mismatch: ${what} is ${extends_ ? "not packed" : "packed"}`);
  }
}

/** Pushes a reference to a new object of type `index`. */
export function pushNew(walker: Walker, index: number): void {
  walker.push(newRef(walker.valid, index));
}

/** The fields of type `index`, whose objects are made without a descriptor. */
function plainFields(walker: Walker, index: number): readonly FieldType[] {
  const { fields } = structTypeAt(walker, index);
  if (walker.valid.types[index].descriptor !== undefined) {
    walker.fail(`type with descriptor requires descriptor allocation: type ${index}`);
  }
  return fields;
}

/** Pops the values of the fields of a new object. */
export function popFields(walker: Walker, fields: readonly FieldType[]): void {
  const height = walker.top;
  for (let i = fields.length - 1; i >= 0; i--) {
    if (!walker.tryPop(unpacked(fields[i]))) walker.mismatch(fields.map(unpacked), height);
  }
}

function structNew(walker: Walker): void {
  const index = walker.imm.index;
  popFields(walker, plainFields(walker, index));
  pushNew(walker, index);
}

/** Requires default values of all fields. */
export function checkDefaults(walker: Walker, fields: readonly FieldType[]): void {
  fields.forEach((field, i) => checkDefault(walker, field, `field ${i}`));
}

function structNewDefault(walker: Walker): void {
  const index = walker.imm.index;
  checkDefaults(walker, plainFields(walker, index));
  pushNew(walker, index);
}

function fieldAt(walker: Walker): FieldType {
  const { index, index2 } = walker.imm;
  const field = structTypeAt(walker, index).fields[index2];
  if (field === undefined) walker.fail(`unknown field ${index2} of type ${index}`);
  return field;
}

function structGet(walker: Walker, extends_: boolean): void {
  const field = fieldAt(walker);
  checkPacking(walker, field, extends_, `field ${walker.imm.index2}`);
  walker.pop(refType(true, walker.imm.index));
  walker.push(unpacked(field));
}

function structSet(walker: Walker): void {
  const field = fieldAt(walker);
  if (!field.mutable) walker.fail(`immutable field ${walker.imm.index2} of type ${walker.imm.index}`);
  walker.pop2(refType(true, walker.imm.index), unpacked(field));
}

function elementAt(walker: Walker): FieldType {
  return arrayTypeAt(walker, walker.imm.index).field;
}

function mutableElementAt(walker: Walker): FieldType {
  const field = elementAt(walker);
  if (!field.mutable) walker.fail(`immutable array type ${walker.imm.index}`);
  return field;
}

function arrayNew(walker: Walker): void {
  walker.pop2(unpacked(elementAt(walker)), I32);
  pushNew(walker, walker.imm.index);
}

function arrayNewDefault(walker: Walker): void {
  checkDefault(walker, elementAt(walker), "element");
  walker.pop(I32);
  pushNew(walker, walker.imm.index);
}

function arrayNewFixed(walker: Walker): void {
  const { index, index2: count } = walker.imm;
  const type = unpacked(elementAt(walker));
  if (count > MAX_FIXED_ELEMENTS) {
    walker.fail(`too many array elements: ${count}, at most ${MAX_FIXED_ELEMENTS} are possible`);
  }
  const height = walker.top;
  for (let i = 0; i < count && !(walker.top === walker.base && walker.isDead()); i++) {
    if (!walker.tryPop(type)) walker.mismatch(new Array<ValType>(count).fill(type), height);
  }
  pushNew(walker, index);
}

function checkNumericElement(walker: Walker, field: FieldType): void {
  if (isRef(field.storage)) walker.fail(`array type is not numeric or vector: type ${walker.imm.index}`);
}

function checkElemSegment(walker: Walker, field: FieldType): void {
  const { index, index2 } = walker.imm;
  const segment = elemAt(walker, index2);
  if (walker.matches(segment.type, field.storage)) return;
  walker.fail(
    `type mismatch: elem segment ${index2} has elements ${valTypeName(segment.type)}, array type ${index} requires ${
      valTypeName(field.storage)
    }`,
  );
}

function arrayNewData(walker: Walker): void {
  checkNumericElement(walker, elementAt(walker));
  checkData(walker, walker.imm.index2);
  walker.pop2(I32, I32);
  pushNew(walker, walker.imm.index);
}

function arrayNewElem(walker: Walker): void {
  checkElemSegment(walker, elementAt(walker));
  walker.pop2(I32, I32);
  pushNew(walker, walker.imm.index);
}

function arrayGet(walker: Walker, extends_: boolean): void {
  const field = elementAt(walker);
  checkPacking(walker, field, extends_, "element");
  walker.pop2(refType(true, walker.imm.index), I32);
  walker.push(unpacked(field));
}

function arraySet(walker: Walker): void {
  const field = mutableElementAt(walker);
  walker.pop3(refType(true, walker.imm.index), I32, unpacked(field));
}

function arrayLen(walker: Walker): void {
  walker.pop(ARRAYREF);
  walker.push(I32);
}

function arrayFill(walker: Walker): void {
  const field = mutableElementAt(walker);
  walker.pop(I32);
  walker.pop3(refType(true, walker.imm.index), I32, unpacked(field));
}

function arrayCopy(walker: Walker): void {
  const { index, index2 } = walker.imm;
  const to = mutableElementAt(walker).storage;
  const from = arrayTypeAt(walker, index2).field.storage;
  if (!walker.matches(from, to)) {
    walker.fail(`array types do not match: elements ${valTypeName(from)} into ${valTypeName(to)}`);
  }
  walker.pop3(refType(true, index2), I32, I32);
  walker.pop2(refType(true, index), I32);
}

function arrayInitData(walker: Walker): void {
  checkNumericElement(walker, mutableElementAt(walker));
  checkData(walker, walker.imm.index2);
  popSegmentRange(walker);
}

function arrayInitElem(walker: Walker): void {
  checkElemSegment(walker, mutableElementAt(walker));
  popSegmentRange(walker);
}

/** Pops an array, an index into it, an offset in the segment, and a length. */
function popSegmentRange(walker: Walker): void {
  walker.pop3(I32, I32, I32);
  walker.pop(refType(true, walker.imm.index));
}

/** Rules by mnemonic. */
export const AGGREGATE_RULES = {
  "struct.new": structNew,
  "struct.new_default": structNewDefault,
  "struct.get": (walker) => structGet(walker, false),
  "struct.get_s": (walker) => structGet(walker, true),
  "struct.get_u": (walker) => structGet(walker, true),
  "struct.set": structSet,
  "array.new": arrayNew,
  "array.new_default": arrayNewDefault,
  "array.new_fixed": arrayNewFixed,
  "array.new_data": arrayNewData,
  "array.new_elem": arrayNewElem,
  "array.get": (walker) => arrayGet(walker, false),
  "array.get_s": (walker) => arrayGet(walker, true),
  "array.get_u": (walker) => arrayGet(walker, true),
  "array.set": arraySet,
  "array.len": arrayLen,
  "array.fill": arrayFill,
  "array.copy": arrayCopy,
  "array.init_data": arrayInitData,
  "array.init_elem": arrayInitElem,
} as const satisfies Partial<Record<SpecialMnemonic, Rule>>;
