/**
 * Rules that follow from an opcode row's signature alone: check the immediates, pop the operands, push the result. This
 * is the complete form; code.ts handles the common cases inline and calls it for the rest (operands in unreachable
 * code, 64-bit memories, lanes, atomics, errors).
 *
 * Specification, 3.4: memory accesses 3.4.9 ff., vector lanes 3.4.8.
 */
import { ORDERING } from "../wasm/immediates.ts";
import { LANE_LIMIT, NATURAL_ALIGN, OPCODES } from "../wasm/opcodes.ts";
import { I32, I64, type ValType } from "../wasm/types.ts";
import { ADDRESS, ADDRESSES, CHECK, CHECKS, OPERANDS, RESULT, SECOND, THIRD, TOP } from "./columns.ts";
import { FEATURE } from "./gate.ts";
import { memoryAt, tableAt } from "./lookups.ts";
import type { Walker } from "./walker.ts";

const ORDERINGS = FEATURE["acquire-release-atomics"];

/** Applies the rule of the walker's current instruction, whose row is simple. */
export function applySimple(walker: Walker): void {
  const id = walker.id;
  const address = CHECKS[id] === 0 ? I32 : checkImmediates(walker);
  const wide = address === I64 ? ADDRESSES[id] : 0;
  const top = (wide & ADDRESS.TOP) !== 0 ? I64 : TOP[id];
  const second = (wide & ADDRESS.SECOND) !== 0 ? I64 : SECOND[id];
  const third = (wide & ADDRESS.THIRD) !== 0 ? I64 : THIRD[id];
  switch (OPERANDS[id]) {
    case 1:
      walker.pop(top);
      break;
    case 2:
      walker.pop2(second, top);
      break;
    case 3:
      walker.pop3(third, second, top);
      break;
  }
  const result = (wide & ADDRESS.RESULT) !== 0 ? I64 : RESULT[id];
  if (result !== 0) walker.push(result);
}

/** Makes the checks in CHECKS, and returns the address type of the memory or table. */
function checkImmediates(walker: Walker): ValType {
  const { id, imm } = walker;
  const checks = CHECKS[id];
  let address: ValType = I32;
  if ((checks & CHECK.ORDERING) !== 0) checkOrdering(walker);
  if ((checks & CHECK.MEMARG) !== 0) {
    address = memoryAt(walker, imm.memory).limits.address;
    checkAlignment(walker, (checks & CHECK.ATOMIC) !== 0);
    if (imm.offsetHi !== 0 && address === I32) {
      walker.fail(`offset out of range: ${imm.offsetHi * 2 ** 32 + imm.offsetLo} in a memory with 32-bit addresses`);
    }
  }
  if ((checks & CHECK.MEMORY) !== 0) address = memoryAt(walker, imm.index).limits.address;
  if ((checks & CHECK.TABLE) !== 0) address = tableAt(walker, imm.index).limits.address;
  const lanes = LANE_LIMIT[id];
  if ((checks & CHECK.LANE) !== 0 && imm.lane >= lanes) {
    walker.fail(`invalid lane index ${imm.lane}, must be below ${lanes}`);
  }
  if ((checks & CHECK.LANES) !== 0) {
    for (let i = 0; i < 16; i++) {
      if (imm.bytes[i] >= lanes) walker.fail(`invalid lane index ${imm.bytes[i]}, must be below ${lanes}`);
    }
  }
  return address;
}

/** An ordering that the binary format of the threads proposal lacks is a use of the feature. */
function checkOrdering(walker: Walker): void {
  const { id, at, imm: { ordering }, valid: { gate } } = walker;
  const isOld = ordering === ((CHECKS[id] & CHECK.MEMARG) !== 0 ? ORDERING.ABSENT : ORDERING.SEQUENTIAL);
  if (!isOld && gate.isFirst(ORDERINGS, at)) gate.use(ORDERINGS, at, `${OPCODES[id].mnemonic} with an ordering`);
}

function checkAlignment(walker: Walker, isAtomic: boolean): void {
  const natural = NATURAL_ALIGN[walker.id];
  const align = walker.imm.align;
  if (align > natural) {
    walker.fail(`alignment must not be larger than natural: 2^${align}, natural is ${1 << natural}`);
  }
  if (isAtomic && align !== natural) {
    walker.fail(`atomic alignment must be natural: ${1 << align}, natural is ${1 << natural}`);
  }
}
