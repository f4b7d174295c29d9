/**
 * Working columns that the passes share, so that compiling a function allocates nothing: by value, by block and by
 * edge. They belong to the ControlFlow of one compilation (cfg.ts). A pass owns a column from its start to its end and
 * expects no contents unless its own header says so.
 *
 * Columns grow only between passes: `ensure` first, then hoist them into locals.
 */
import type { IrFunction } from "../ir/function.ts";

export class Scratch {
  /** By value. */
  values: Int32Array = new Int32Array(1024);
  values2: Int32Array = new Int32Array(1024);
  marks: Uint8Array = new Uint8Array(1024);
  /** A new order of instructions while it is being built. */
  order: Int32Array = new Int32Array(1024);
  /** A stack of values. */
  stack: Int32Array = new Int32Array(1024);
  /** By block. */
  blocks: Int32Array = new Int32Array(64);
  blocks2: Int32Array = new Int32Array(64);
  blocks3: Int32Array = new Int32Array(64);
  blocks4: Int32Array = new Int32Array(64);
  blocks5: Int32Array = new Int32Array(64);
  blocks6: Int32Array = new Int32Array(64);
  blocks7: Int32Array = new Int32Array(64);
  /** By edge. */
  edges: Int32Array = new Int32Array(128);

  /** Makes room for the values (`extra` more than there are), blocks and edges of `f`. */
  ensure(f: IrFunction, extra = 0): void {
    const values = f.count + extra;
    if (values > this.values.length) {
      const size = values + (values >> 1);
      this.values = new Int32Array(size);
      this.values2 = new Int32Array(size);
      this.marks = new Uint8Array(size);
      this.order = new Int32Array(size);
      this.stack = new Int32Array(size);
    }
    if (f.blockCount >= this.blocks.length) {
      const size = f.blockCount * 2;
      this.blocks = new Int32Array(size);
      this.blocks2 = new Int32Array(size);
      this.blocks3 = new Int32Array(size);
      this.blocks4 = new Int32Array(size);
      this.blocks5 = new Int32Array(size);
      this.blocks6 = new Int32Array(size);
      this.blocks7 = new Int32Array(size);
    }
    if (f.edgeCount > this.edges.length) this.edges = new Int32Array(f.edgeCount * 2);
  }
}
