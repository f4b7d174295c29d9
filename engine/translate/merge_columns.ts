/**
 * Scratch columns for joining edges (block_parameters.ts). In: the number of local slots or operands of the join. Out:
 * columns with room for them. Invariant: `count` and `parameter` are 0 for every slot between merges.
 */
export class MergeColumns {
  /** By slot: the number of edges with a pair for it, the value they agree on, its parameter number + 1. */
  count: Int32Array = new Int32Array(64);
  value: Int32Array = new Int32Array(64);
  parameter: Int32Array = new Int32Array(64);
  /** Slots with pairs, in order of appearance. */
  touched: Int32Array = new Int32Array(64);
  /** By operand: the value that all edges agree on. */
  operands: Int32Array = new Int32Array(16);

  /** Makes room for `slots` local slots and `arity` operands. Old contents are dropped: no merge is in progress. */
  reserve(slots: number, arity: number): void {
    if (this.count.length < slots) {
      this.count = new Int32Array(slots * 2);
      this.value = new Int32Array(slots * 2);
      this.parameter = new Int32Array(slots * 2);
      this.touched = new Int32Array(slots * 2);
    }
    if (this.operands.length < arity) this.operands = new Int32Array(arity * 2);
  }
}
