/**
 * Locations of variables (DWARF 5, sections 2.5 and 2.6, and "DWARF for WebAssembly"). In: an expression or a list of
 * them, and the frame that it is evaluated in. Out: an address in the first memory, or a value that is in no memory;
 * undefined for a variable that the compiler has removed, or whose location has an unknown form.
 */
import { ByteReader } from "@waft/engine/internal/base/bytes";
import { fixed } from "@waft/engine/internal/runtime/debug_lines";
import { AT, OP } from "./constants.ts";
import { type Entry, signed, type Unit, unsigned } from "./entries.ts";

/** A place of a variable. */
type Location =
  | { readonly kind: "address"; readonly address: number }
  | { readonly kind: "value"; readonly value: bigint; readonly set?: (text: string) => void };

/** A frame for expressions. */
export interface FrameAccess {
  /** The address of its instruction: an offset in the contents of the code section. */
  readonly pc: number;
  /** The bits of a local, or of a global; undefined for a reference. */
  readonly local: (index: number) => bigint | undefined;
  readonly global: (index: number) => bigint | undefined;
  /** Changes a local. */
  readonly setLocal: (index: number, text: string) => void;
  readonly memory: Uint8Array;
}

/** The most bytes of a value in an expression: no base type is larger. */
const MAX_VALUE = 16;
/** Kinds of places that OP.WASM_LOCATION names. */
const PLACE = { LOCAL: 0, GLOBAL: 1, GLOBAL_FIXED: 3 } as const;
/** Kinds of entries in lists of locations (7.7.3). */
const LLE = {
  END: 0,
  BASE_ADDRESSX: 1,
  STARTX_ENDX: 2,
  STARTX_LENGTH: 3,
  OFFSET_PAIR: 4,
  DEFAULT: 5,
  BASE_ADDRESS: 6,
  START_END: 7,
  START_LENGTH: 8,
} as const;

/** The location of a variable in a frame. `owner` is the function, which has the frame's base. */
export function locate(
  unit: Unit,
  variable: Entry,
  owner: Entry | undefined,
  frame: FrameAccess,
): Location | undefined {
  const expression = expressionOf(unit, variable, AT.LOCATION, frame.pc);
  return expression === undefined ? undefined : evaluateSafely(unit, expression, owner, frame);
}

function evaluateSafely(
  unit: Unit,
  bytes: Uint8Array,
  owner: Entry | undefined,
  frame: FrameAccess,
): Location | undefined {
  try {
    return new Expression(unit, owner, frame).evaluate(bytes);
  } catch {
    return undefined; // a damaged expression
  }
}

/** The expression of an attribute that is valid at `pc`. */
function expressionOf(unit: Unit, entry: Entry, attribute: number, pc: number): Uint8Array | undefined {
  const value = entry.attributes.get(attribute);
  if (value instanceof Uint8Array) return value;
  if (typeof value !== "number") return undefined;
  try {
    return unit.version === 5 ? inList(unit, value, pc) : inOldList(unit, value, pc);
  } catch {
    return undefined;
  }
}

function inList(unit: Unit, at: number, pc: number): Uint8Array | undefined {
  const reader = new ByteReader(unit.section(".debug_loclists"), at);
  let base = Number(unit.root.attributes.get(AT.LOW_PC) ?? 0);
  let fallback: Uint8Array | undefined;
  for (;;) {
    unit.limits.countStep();
    const kind = reader.u8();
    if (kind === LLE.END) return fallback;
    if (kind === LLE.BASE_ADDRESSX) base = unit.addressAt(reader.u32());
    else if (kind === LLE.BASE_ADDRESS) base = fixed(reader, unit.addressBytes);
    else {
      const [from, to] = rangeOf(unit, reader, kind, base);
      const expression = reader.take(reader.u32());
      if (kind === LLE.DEFAULT) fallback = expression;
      else if (pc >= from && pc < to) return expression;
    }
  }
}

function rangeOf(unit: Unit, reader: ByteReader, kind: number, base: number): [from: number, to: number] {
  switch (kind) {
    case LLE.STARTX_ENDX:
      return [unit.addressAt(reader.u32()), unit.addressAt(reader.u32())];
    case LLE.STARTX_LENGTH: {
      const from = unit.addressAt(reader.u32());
      return [from, from + reader.u32()];
    }
    case LLE.OFFSET_PAIR:
      return [base + reader.u32(), base + reader.u32()];
    case LLE.START_END:
      return [fixed(reader, unit.addressBytes), fixed(reader, unit.addressBytes)];
    case LLE.START_LENGTH: {
      const from = fixed(reader, unit.addressBytes);
      return [from, from + reader.u32()];
    }
    case LLE.DEFAULT:
      return [0, 0];
  }
  return reader.fail(`entry ${kind} of a list of locations`);
}

function inOldList(unit: Unit, at: number, pc: number): Uint8Array | undefined {
  const reader = new ByteReader(unit.section(".debug_loc"), at);
  let base = Number(unit.root.attributes.get(AT.LOW_PC) ?? 0);
  for (;;) {
    unit.limits.countStep();
    const from = fixed(reader, unit.addressBytes);
    const to = fixed(reader, unit.addressBytes);
    if (from === 0 && to === 0) return undefined;
    if (from === 2 ** (8 * unit.addressBytes) - 1) base = to;
    else {
      const expression = reader.take(fixed(reader, 2));
      if (pc >= base + from && pc < base + to) return expression;
    }
  }
}

class Expression {
  readonly #unit: Unit;
  readonly #owner: Entry | undefined;
  readonly #frame: FrameAccess;
  readonly #stack: bigint[] = [];
  #setter: ((text: string) => void) | undefined;

  constructor(unit: Unit, owner: Entry | undefined, frame: FrameAccess) {
    this.#unit = unit;
    this.#owner = owner;
    this.#frame = frame;
  }

  evaluate(bytes: Uint8Array): Location | undefined {
    const reader = new ByteReader(bytes);
    let isValue = false;
    while (reader.left > 0) {
      this.#unit.limits.countStep();
      const op = reader.u8();
      if (op === OP.STACK_VALUE) isValue = true;
      else if (op === OP.WASM_LOCATION) {
        this.#place(reader);
        isValue ||= reader.left === 0;
      } else if (op === OP.IMPLICIT_VALUE) {
        const value = reader.take(reader.u32());
        this.#stack.push(bitsIn(value.subarray(0, MAX_VALUE)));
        isValue = true;
      } else if (!this.#operate(op, reader)) return undefined;
    }
    const top = this.#stack.pop();
    if (top === undefined) return undefined;
    if (!isValue) return { kind: "address", address: Number(BigInt.asUintN(32, top)) };
    return { kind: "value", value: top, ...(this.#setter === undefined ? {} : { set: this.#setter }) };
  }

  #place(reader: ByteReader): void {
    const kind = reader.u8();
    const index = kind === PLACE.GLOBAL_FIXED ? fixed(reader, 4) : reader.u32();
    const { local, global, setLocal } = this.#frame;
    const value = kind === PLACE.LOCAL
      ? local(index)
      : kind === PLACE.GLOBAL || kind === PLACE.GLOBAL_FIXED
      ? global(index)
      : undefined;
    if (value === undefined) reader.fail("a place that is not known");
    this.#setter = kind === PLACE.LOCAL ? (text) => setLocal(index, text) : undefined;
    this.#stack.push(value);
  }

  /** Executes one operation; returns false if it is unknown. */
  #operate(op: number, reader: ByteReader): boolean {
    const stack = this.#stack;
    this.#setter = undefined;
    if (op >= OP.LIT0 && op <= OP.LIT31) stack.push(BigInt(op - OP.LIT0));
    else if (op >= OP.CONST1U && op <= OP.CONST8S) stack.push(constant(reader, op));
    else if (op === OP.ADDR) stack.push(BigInt(fixed(reader, this.#unit.addressBytes)));
    else if (op === OP.ADDRX) stack.push(BigInt(this.#unit.addressAt(reader.u32())));
    else if (op === OP.CONSTU) stack.push(BigInt(unsigned(reader)));
    else if (op === OP.CONSTS) stack.push(BigInt(signed(reader)));
    else if (op === OP.PLUS_UCONST) stack.push(this.#pop() + BigInt(reader.u32()));
    else if (op === OP.PLUS) stack.push(this.#pop() + this.#pop());
    else if (op === OP.MINUS) stack.push(-this.#pop() + this.#pop());
    else if (op === OP.FBREG) stack.push(this.#frameBase() + BigInt(reader.s32()));
    else if (op === OP.DEREF) stack.push(this.#load(Number(BigInt.asUintN(32, this.#pop()))));
    else return false;
    return true;
  }

  #pop(): bigint {
    return this.#stack.pop() ?? 0n;
  }

  #load(address: number): bigint {
    return BigInt(fixed(new ByteReader(this.#frame.memory, address), this.#unit.addressBytes));
  }

  #frameBase(): bigint {
    const base = this.#owner?.attributes.get(AT.FRAME_BASE);
    const found = base instanceof Uint8Array ? evaluateSafely(this.#unit, base, undefined, this.#frame) : undefined;
    if (found === undefined) throw new RangeError("no frame base");
    return found.kind === "value" ? found.value : BigInt(found.address);
  }
}

/** A little-endian number. */
function bitsIn(bytes: Uint8Array): bigint {
  return bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

/** `DW_OP_const1u` … `DW_OP_const8s`: pairs of unsigned and signed constants of 1, 2, 4 and 8 bytes. */
function constant(reader: ByteReader, op: number): bigint {
  const bytes = 1 << ((op - OP.CONST1U) >> 1);
  const bits = bitsIn(reader.take(bytes));
  return ((op - OP.CONST1U) & 1) === 0 ? bits : BigInt.asIntN(8 * bytes, bits);
}
