/**
 * Rules of parametric instructions, variables, tables, and the bulk instructions of memories and segments
 * (specification, 3.4.2, 3.4.5 to 3.4.7 and 3.4.9 to 3.4.12), except those that simple.ts derives from a signature.
 */
import type { SpecialMnemonic } from "../wasm/opcodes.ts";
import { type AddressType, BOTTOM, I32, I64, isRef, type ValType, valTypeName } from "../wasm/types.ts";
import type { Rule } from "./control.ts";
import { checkData, elemAt, globalAt, memoryAt, tableAt } from "./lookups.ts";
import { typeName, type Walker } from "./walker.ts";

function select(walker: Walker): void {
  walker.pop(I32);
  const second = walker.popAny();
  const first = walker.popAny();
  if (isRef(first) || isRef(second)) {
    walker.fail(
      `type mismatch: select without a type requires numbers or vectors but stack has [${typeName(first)} ${
        typeName(second)
      }]`,
    );
  }
  if (first !== second && first !== BOTTOM && second !== BOTTOM) {
    walker.fail(`type mismatch: select requires equal types but stack has [${typeName(first)} ${typeName(second)}]`);
  }
  walker.push(first === BOTTOM ? second : first);
}

function selectTyped(walker: Walker): void {
  const types = walker.imm.valTypes;
  if (types.length !== 1) walker.fail(`invalid result arity: select has ${types.length} types, exactly one is allowed`);
  const type = types[0];
  walker.useType(type);
  walker.pop3(type, type, I32);
  walker.push(type);
}

function localAt(walker: Walker): ValType {
  const index = walker.imm.index;
  if (index >= walker.locals.length) walker.fail(`unknown local ${index}`);
  return walker.locals[index];
}

function localGet(walker: Walker): void {
  const type = localAt(walker);
  if (walker.tracksInit && walker.isSet[walker.imm.index] === 0) {
    walker.fail(`uninitialized local ${walker.imm.index} of type ${valTypeName(type)}`);
  }
  walker.push(type);
}

function localSet(walker: Walker): void {
  walker.pop(localAt(walker));
  if (walker.tracksInit) walker.markSet(walker.imm.index);
}

function localTee(walker: Walker): void {
  localSet(walker);
  walker.push(localAt(walker));
}

function globalSet(walker: Walker): void {
  const type = globalAt(walker, walker.imm.index);
  if (!type.mutable) walker.fail(`immutable global ${walker.imm.index}`);
  walker.pop(type.type);
}

function tableGet(walker: Walker): void {
  const table = tableAt(walker, walker.imm.index);
  walker.pop(table.limits.address);
  walker.push(table.element);
}

function tableSet(walker: Walker): void {
  const table = tableAt(walker, walker.imm.index);
  walker.pop2(table.limits.address, table.element);
}

function tableGrow(walker: Walker): void {
  const table = tableAt(walker, walker.imm.index);
  walker.pop2(table.element, table.limits.address);
  walker.push(table.limits.address);
}

function tableFill(walker: Walker): void {
  const table = tableAt(walker, walker.imm.index);
  walker.pop3(table.limits.address, table.element, table.limits.address);
}

/** The length of a copy has the smaller of the two address types. */
function smallerAddress(a: AddressType, b: AddressType): AddressType {
  return a === I64 ? b : a;
}

function tableCopy(walker: Walker): void {
  const to = tableAt(walker, walker.imm.index);
  const from = tableAt(walker, walker.imm.index2);
  checkElements(walker, from.element, to.element, `table ${walker.imm.index2}`);
  const toAddress = to.limits.address;
  const fromAddress = from.limits.address;
  walker.pop3(toAddress, fromAddress, smallerAddress(toAddress, fromAddress));
}

function tableInit(walker: Walker): void {
  const to = tableAt(walker, walker.imm.index2);
  const segment = elemAt(walker, walker.imm.index);
  checkElements(walker, segment.type, to.element, `elem segment ${walker.imm.index}`);
  walker.pop3(to.limits.address, I32, I32);
}

function checkElements(walker: Walker, from: ValType, to: ValType, what: string): void {
  if (walker.matches(from, to)) return;
  walker.fail(`type mismatch: ${what} has elements ${valTypeName(from)}, the table requires ${valTypeName(to)}`);
}

function memoryCopy(walker: Walker): void {
  const to = memoryAt(walker, walker.imm.index).limits.address;
  const from = memoryAt(walker, walker.imm.index2).limits.address;
  walker.pop3(to, from, smallerAddress(to, from));
}

function memoryInit(walker: Walker): void {
  const address = memoryAt(walker, walker.imm.index2).limits.address;
  checkData(walker, walker.imm.index);
  walker.pop3(address, I32, I32);
}

/** Rules by mnemonic. */
export const STORAGE_RULES = {
  "drop": (walker) => void walker.popAny(),
  "select": select,
  "select(t)": selectTyped,
  "local.get": localGet,
  "local.set": localSet,
  "local.tee": localTee,
  "global.get": (walker) => walker.push(globalAt(walker, walker.imm.index).type),
  "global.set": globalSet,
  "table.get": tableGet,
  "table.set": tableSet,
  "table.grow": tableGrow,
  "table.fill": tableFill,
  "table.copy": tableCopy,
  "table.init": tableInit,
  "elem.drop": (walker) => void elemAt(walker, walker.imm.index),
  "memory.copy": memoryCopy,
  "memory.init": memoryInit,
  "data.drop": (walker) => checkData(walker, walker.imm.index),
} as const satisfies Partial<Record<SpecialMnemonic, Rule>>;
