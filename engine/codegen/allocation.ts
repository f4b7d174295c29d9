/**
 * The result of register allocation for one VCode: a location per operand, and an ordered list of edits (moves,
 * reloads, spills, repeated constants) between instructions and on edges. The checker (regalloc/check_allocation.ts)
 * verifies it in tests.
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
   * 1 per instruction that need not be emitted: a repeatable one (VCode.vregRemat) whose result is not read at that
   * point. Its def has a register of its own there, so that emitting it is merely wasteful.
   */
  skip: Uint8Array = new Uint8Array(1024);
  /** Number of slots in the frame: of 8 bytes, except for the halves. */
  slotCount = 0;
  /** Slots that are halves of cells; none where the registers' target has none (RegisterFile.halfSlots). */
  halfFirst = 0;
  halfCount = 0;
  /** The lowest so many slots hold references, the others never do. */
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
   * target then uses its scratch register, as it does to repeat an instruction whose result belongs in a slot.
   */
  editAt: Int32Array = new Int32Array(1024);
  /** Source location, meaningless when editRemat is not 0. */
  editFrom: Int32Array = new Int32Array(1024);
  /** Instruction (of VCode) to repeat with its def in editTo, plus one; 0 = a plain move. */
  editRemat: Int32Array = new Int32Array(1024);
  editTo: Int32Array = new Int32Array(1024);
  /** TY of the moved value (decides width and bank). */
  editTy: Uint8Array = new Uint8Array(1024);
  editCount = 0;

  /**
   * Edits of edge e: edits [edgeFirst[e], edgeFirst[e + 1]) of the same columns, after all instruction edits; editAt is
   * −1. They form a sequence (already ordered; cycles broken with `swap` edits: editRemat −1 means exchange the two
   * registers).
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
