/**
 * A writer of the instructions that instrumentation adds. In: mnemonics and indices. Out: bytes of a function body.
 * Invariant: accesses are to one memory, that of the instrumentation, and assume no alignment.
 */
import { ByteWriter } from "../base/bytes.ts";
import { writeValType } from "../binary/types.ts";
import { idOf, type Mnemonic, OPCODES } from "../wasm/opcodes.ts";
import type { ValType } from "../wasm/types.ts";

/** A writer of instructions. */
export class Assembler extends ByteWriter {
  readonly #memory: number;

  constructor(memory: number, capacity = 64) {
    super(capacity);
    this.#memory = memory;
  }

  /** An instruction and its indices. */
  op(name: Mnemonic, ...indices: number[]): this {
    const { prefix, code } = OPCODES[idOf(name)];
    if (prefix === 0) this.u8(code);
    else {
      this.u8(prefix);
      this.u32(code);
    }
    for (const index of indices) this.u32(index);
    return this;
  }

  /** `i32.const`. */
  constant(value: number): this {
    this.op("i32.const").s32(value);
    return this;
  }

  /** `i64.const` of a 32-bit integer. */
  wide(value: number): this {
    this.op("i64.const").s64(value, value < 0 ? -1 : 0);
    return this;
  }

  /** An access to the added memory at `offset` from the address on the stack. */
  access(name: Mnemonic, offset: number): this {
    return this.op(name, 0x40, this.#memory, offset);
  }

  /** `if` without parameters or results. */
  when(): this {
    this.op("if").u8(0x40);
    return this;
  }

  /** Declarations of locals. */
  locals(types: readonly ValType[]): void {
    const runs: { type: ValType; count: number }[] = [];
    for (const type of types) {
      const last = runs.at(-1);
      if (last?.type === type) last.count++;
      else runs.push({ type, count: 1 });
    }
    this.u32(runs.length);
    for (const { type, count } of runs) {
      this.u32(count);
      writeValType(this, type);
    }
  }
}
