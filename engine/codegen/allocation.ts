/**
 * The result of register allocation for one VCode: a location per operand, and an ordered list of edits (moves,
 * reloads, spills, rematerialized constants) between instructions and on edges. The checker
 * (regalloc/check_allocation.ts) verifies it in tests.
 *
 * Locations: ≥ 0 a physical register (0-31 general, 32-63 vector); < 0 the stack slot −1 − location. Slots are 8-byte
 * cells (a v128 takes two, aligned to 16); slot s is s × 8 bytes above the frame's lowest slot. Only the slots from
 * `halfFirst` on, `halfCount` of them, are halves of cells, for values of 4 bytes; `slotOffset` gives the offset of any
 * slot.
 */
export class Allocation {
  /** Location per operand word, parallel to VCode.operands. A tied USE has its REUSE def's register. */
  location: Int32Array = new Int32Array(4096);
  /**
   * 1 per instruction that need not be emitted: a rematerializable one (VCode.vregRemat) whose result is not read from
   * its register. The def still has a register that no other value uses, so emitting it is correct but useless.
   */
  skip: Uint8Array = new Uint8Array(1024);
  /** Number of slots in the frame: of 8 bytes, except for the halves. */
  slotCount = 0;
  /** Slots that are halves of cells; none where the registers' target has none (RegisterFile.halfSlots). */
  halfFirst = 0;
  halfCount = 0;
  /** Number of slots for references, which are the lowest. Other slots hold a reference only within a parallel move. */
  refSlotCount = 0;
  /**
   * Masks of the physical registers written anywhere in the function (defs, temps, edits, clobbers): for clobber masks
   * of callers.
   */
  writtenGeneral = 0;
  writtenVector = 0;

  /**
   * Edits, in execution order. Those of instructions are sorted by `editAt` = 2 × instruction (before it) or + 1 (after
   * it; never after a block's last instruction; the linear scan makes only the former). Both ends may be slots: the
   * target then uses its scratch register, as it does to rematerialize an instruction into a slot.
   */
  editAt: Int32Array = new Int32Array(1024);
  /** Source location, meaningless when editRemat is not 0. */
  editFrom: Int32Array = new Int32Array(1024);
  /** VCode instruction to rematerialize with its def in editTo, plus one; 0 = a plain move, −1 = an exchange. */
  editRemat: Int32Array = new Int32Array(1024);
  editTo: Int32Array = new Int32Array(1024);
  /** TY of the moved value (decides width and bank). */
  editTy: Uint8Array = new Uint8Array(1024);
  editCount = 0;

  /**
   * Edits of edge e: edits [edgeFirst[e], edgeFirst[e + 1]) of the same columns, after all instruction edits; editAt is
   * −1. They are an ordered sequence: cycles of registers are broken by exchanges (editRemat −1).
   */
  edgeFirst: Int32Array = new Int32Array(129);

  /** Byte offset of slot `slot` in the frame; of slot `slotCount`, the size of all slots. */
  slotOffset(slot: number): number {
    const halves = Math.min(slot - this.halfFirst, this.halfCount);
    if (halves <= 0) return slot * 8;
    if (halves < this.halfCount) return this.halfFirst * 8 + halves * 4;
    return (slot - (this.halfCount >> 1)) * 8;
  }

  /** Whether the slot is half a cell. */
  isHalf(slot: number): boolean {
    return slot >= this.halfFirst && slot < this.halfFirst + this.halfCount;
  }

  reset(): void {
    this.slotCount = 0;
    this.halfFirst = 0;
    this.halfCount = 0;
    this.refSlotCount = 0;
    this.writtenGeneral = 0;
    this.writtenVector = 0;
    this.editCount = 0;
  }
}
