/**
 * Instructions on memories: loads, stores and bulk operations at addresses of either type. In: the state of a body.
 * Out: instructions.
 */
import { LOADS, STORES } from "../numeric_rows.ts";
import { isFloat } from "../value_types.ts";
import type { AddressType, Body } from "./body.ts";
import { BINARY_OPS, canonical } from "./numbers.ts";
import { OP, WIDE } from "./opcodes.ts";
import { index, memorySize } from "./tables.ts";
import { leafConstant } from "./values.ts";

/** An offset immediate. */
interface Offset {
  readonly offset: number | bigint;
}

/** An address under construction: the memory's number, type and size, and the size of the access in bytes. */
class Address {
  readonly b: Body;
  readonly depth: number;
  readonly width: number;
  readonly memory: number;
  readonly type: AddressType;
  readonly is64: boolean;
  /** The initial size of the memory, in bytes. */
  readonly end: number;

  constructor(b: Body, depth: number, width: number, memory: number) {
    const { min, is64 } = b.plan.memories[memory];
    this.b = b;
    this.depth = depth;
    this.width = width;
    this.memory = memory;
    this.type = b.addressType(memory);
    this.is64 = is64;
    this.end = min * 65536;
  }

  constant(value: number): void {
    this.b.constant(this.type, value);
  }

  /** An instruction of the address type, by its opcode for i32. */
  op(code: number): void {
    this.b.out.byte(code + (this.is64 ? WIDE : 0));
  }

  /** A masked value. */
  masked(masks: readonly number[], depth: number): void {
    this.b.expression(this.type, depth);
    this.b.mask(this.type, this.b.random.pick(masks));
  }
}

/**
 * Forms of addresses by weight; a form that does not apply returns undefined. The order is part of a seed's meaning.
 */
const ADDRESSES: readonly { readonly weight: number; readonly write: (a: Address) => Offset | undefined }[] = [
  { weight: 30, write: maskedAddress },
  { weight: 12, write: nearInitialEnd },
  { weight: 25, write: byCounter },
  { weight: 6, write: nearUnsignedLimit },
  { weight: 1, write: anyAddress },
  { weight: 1, write: farOutOfBounds },
  { weight: 10, write: () => undefined },
  { weight: 6, write: wrappingSum },
  { weight: 5, write: nearCurrentEnd },
  { weight: 8, write: scaledIndex },
  { weight: 5, write: combinedIndex },
];

/** Writes an address; returns the static offset that goes with it. */
export function address(b: Body, depth: number, width: number, memory: number): Offset {
  const a = new Address(b, depth, width, memory);
  return ADDRESSES[b.random.weighted(ADDRESSES.map(({ weight }) => weight))].write(a) ?? fromLocal(a);
}

function maskedAddress(a: Address): Offset {
  a.masked([0xff, 0xff8, 0x7ff0, 0xfff], a.depth - 1);
  return { offset: a.b.random.pick([0, 0, 4, 8, 16, 1000, 4095]) };
}

/** Just inside the initial end, or sometimes across it. */
function nearInitialEnd(a: Address): Offset | undefined {
  const { random } = a.b;
  const offset = random.pick([0, 1, 8, 100, 65528]);
  const address = a.end - a.width - offset - random.pick([0, 0, 1, 1, 2, 2, 3, -(a.width >> 1)]);
  if (address < 0) return undefined;
  a.constant(address);
  return { offset };
}

/** By a loop counter. */
function byCounter(a: Address): Offset | undefined {
  const { b, type } = a;
  const { random } = b;
  const counters = b.counters.filter((c) => b.locals[c] === type || (a.is64 && b.locals[c] === "i32"));
  if (counters.length === 0) return undefined;
  const counter = random.pick(counters);
  b.get(counter);
  if (b.locals[counter] !== type) b.out.byte(random.pick([0xac, 0xad])); // extended
  b.mask(type, random.pick([0xff, 0xfff]));
  const shift = random.below(4);
  if (random.chance(70)) a.constant(shift), a.op(0x74);
  if (random.chance(40)) a.constant(random.between(0, 64)), a.op(0x6a);
  return { offset: random.pick([0, 0, 4, 8, 256]) };
}

/** An unsigned boundary: address + offset must not wrap around at 2³². */
function nearUnsignedLimit(a: Address): Offset {
  a.constant(a.b.random.below(64));
  return { offset: a.b.random.pick([0, 1, 65528 - 64]) };
}

function anyAddress(a: Address): Offset {
  a.b.expression(a.type, a.depth - 1);
  return { offset: a.b.random.below(16) };
}

function farOutOfBounds({ b, type, depth, is64, end }: Address): Offset {
  const { random } = b;
  b.expression(type, depth - 1);
  if (is64 && random.chance(60)) {
    return { offset: random.pick([2n ** 32n, 2n ** 48n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 64n - 8n, 2n ** 40n - 1n]) };
  }
  return { offset: random.pick([0xffffffff, 0x80000000, 0x7fffffff, 0xfffffff8, Math.max(end - 1, 0), end]) };
}

/** A sum that wraps around at 2³² or 2⁶⁴ and so differs from a wider sum. */
function wrappingSum(a: Address): Offset {
  const { b, type } = a;
  const { random } = b;
  const part = a.is64
    ? random.pick([-4n, -64n, 0x7fffffffn, 0x100000000n, -0x8000000000000000n, random.i64()])
    : random.pick([-4, -64, 0x7fffffff, -0x80000000, random.i32()]);
  const place = () => typeof part === "bigint" ? b.out.byte(0x42).s64(part) : b.out.byte(0x41).s32(part);
  a.masked([0xff, 0xff8], a.depth - 1);
  place();
  a.op(0x6b);
  if (random.chance(30) && a.depth > 1) {
    const local = b.newLocal(type, true);
    b.out.byte(OP.localSet).u32(local);
    b.impure++;
    b.get(local);
  }
  place();
  a.op(0x6a);
  return { offset: random.pick([0, 4, 16]) };
}

/** Just inside the current end. */
function nearCurrentEnd(a: Address): Offset | undefined {
  if (a.end === 0) return undefined;
  const { random } = a.b;
  memorySize(a.b, a.memory);
  a.constant(16);
  a.op(0x74);
  a.constant(a.width + random.below(20));
  a.op(0x6b);
  return { offset: random.pick([0, 0, 0, 1]) };
}

/** base + index × scale. */
/** Bits of two values, or of one and a constant, scaled: bits that the scale shifts out are not part of the address. */
function combinedIndex(a: Address): Offset {
  const { b, depth, is64 } = a;
  const { random } = b;
  const shift = random.between(1, 3);
  a.masked([0xff, 0xfff], depth - 2);
  if (random.chance(40)) a.constant(random.below(256) | (!is64 && random.chance(60) ? 1 << (32 - shift) : 0));
  else a.masked([0xf, 0xff, 0xfff], depth - 2);
  a.op(random.pick([0x72, 0x73])); // or, xor
  a.constant(shift);
  a.op(0x74);
  return { offset: random.pick([0, 0, 4, 100]) };
}

function scaledIndex(a: Address): Offset {
  const { b, depth } = a;
  const { random } = b;
  a.masked([0xff, 0xfff], depth - 2);
  if (a.is64 && random.chance(40)) { // an index of 32 bits, extended
    b.expression("i32", depth - 2);
    b.mask("i32", random.pick([0xf, 0xff]));
    b.out.byte(random.pick([0xac, 0xad]));
  } else a.masked([0xf, 0xff], depth - 2);
  if (random.chance(30)) a.constant(random.pick([3, 5, 8, 12])), a.op(0x6c);
  else a.constant(random.below(5)), a.op(0x74);
  a.op(0x6a);
  return { offset: random.pick([0, 0, 4, 100]) };
}

/** A masked local, or a constant. */
function fromLocal(a: Address): Offset {
  const { b, type } = a;
  const { random } = b;
  const locals = b.locals.flatMap((t, i) => t === type ? [i] : []);
  if (locals.length > 0) b.get(random.pick(locals));
  else a.constant(random.below(1000));
  b.mask(type, 0x3ff8);
  return { offset: random.pick([0, 0, 0, 1, 2, 4, 8, 12, 64]) };
}

export function store(b: Body, depth: number, memory = b.memory()!): void {
  const random = b.random;
  const op = random.pick(STORES);
  const { offset } = address(b, depth, 1 << op.align, memory);
  if (isFloat(op.type)) {
    if (random.chance(15)) { // copying preserves the bits of a NaN in memory
      const load = LOADS.find((l) => l.type === op.type)!;
      const other = b.memory()!;
      const from = address(b, depth, 8, other);
      b.access(load.code, load.align, from.offset, other);
    } else canonical(b, op.type, depth - 1);
  } else b.expression(op.type, depth - 1);
  b.access(op.code, op.align, offset, memory);
}

/** Reads, modifies and writes back one location of the memory. */
export function updateMemory(b: Body, depth: number): void {
  const random = b.random;
  const out = b.out;
  const store = random.pick(STORES.filter((op) => !isFloat(op.type)));
  const load = random.pick(LOADS.filter((op) => op.type === store.type && op.align === store.align));
  const memory = b.memory()!;
  const type = b.addressType(memory);
  const bases = b.settable(type);
  const base = bases.length === 0 ? b.newLocal(type, true) : random.pick(bases);
  b.expression(type, depth - 1);
  b.mask(type, random.pick([0xff, 0xff8]));
  out.byte(OP.localSet).u32(base);
  const offset = random.below(40);
  b.get(base);
  b.get(base);
  b.access(load.code, load.align, random.chance(90) ? offset : offset + 1, memory);
  random.chance(40) ? leafConstant(b, store.type) : b.expression(store.type, depth - 1);
  out.byte(random.pick(BINARY_OPS[store.type]));
  b.access(store.code, store.align, offset, memory);
}

/**
 * Loads and stores of all widths relative to one base, adjacent or overlapping, sometimes across the end of the memory.
 */
export function accessRun(b: Body, depth: number): void {
  const random = b.random;
  const out = b.out;
  const memory = b.memory()!;
  const type = b.addressType(memory);
  const bases = b.settable(type);
  const base = bases.length === 0 || random.chance(10) ? b.newLocal(type, true) : random.pick(bases);
  const end = b.plan.memories[memory].min * 65536;
  if (random.chance(12)) b.constant(type, end - random.between(0, 40));
  else {
    b.expression(type, depth - 1);
    b.mask(type, random.pick([0xff, 0xfff8]));
  }
  out.byte(OP.localSet).u32(base);
  const near = random.pick([8, 16, 64]);
  for (let n = random.between(2, 6); n > 0 && b.budget > 0; n--) {
    const offset = random.below(near);
    if (random.chance(50)) {
      const op = random.pick(STORES);
      b.get(base);
      if (isFloat(op.type)) canonical(b, op.type, depth - 2);
      else b.expression(op.type, depth - 2);
      b.access(op.code, op.align, offset, memory);
    } else {
      const op = random.pick(LOADS);
      const targets = b.locals.flatMap((t, i) => t === op.type && b.writable[i] && i !== base ? [i] : []);
      b.get(base);
      b.access(op.code, op.align, offset, memory);
      if (targets.length > 0) out.byte(OP.localSet).u32(random.pick(targets));
      else out.byte(OP.drop);
    }
    if (random.chance(15)) b.statement(depth - 2);
    b.step();
  }
}

export function bulkMemory(b: Body, depth: number): void {
  const random = b.random;
  const memory = b.memory()!;
  const type = b.addressType(memory);
  const place = (address: AddressType) => {
    b.expression(address, depth - 2);
    b.mask(address, random.pick([0xff, 0xffff, 0xfff]));
  };
  const length = (address: AddressType) => {
    if (random.chance(60)) b.constant(address, random.pick([0, 1, 2, 3, 4, 7, 8, 16, 17, 31, 64, 100]));
    else {
      b.expression(address, depth - 2);
      b.mask(address, random.pick([0xf, 0xff]));
    }
  };
  const segments = b.plan.dataLengths;
  b.cost += 20 * b.weight;
  switch (random.below(segments.length > 0 ? 4 : 2)) {
    case 0: {
      const source = b.memory()!;
      place(type);
      place(b.addressType(source));
      length(type === "i64" && b.addressType(source) === "i64" ? "i64" : "i32");
      b.opcode(OP.memoryCopy).out.u32(memory).u32(source);
      b.markMemory(source);
      return b.markMemory(memory);
    }
    case 1:
      place(type);
      b.expression("i32", depth - 2);
      length(type);
      b.opcode(OP.memoryFill).out.u32(memory);
      return b.markMemory(memory);
    case 2: {
      const segment = random.below(segments.length);
      place(type);
      index(b, segments[segment], depth - 2);
      b.constant("i32", random.below(4));
      b.opcode(OP.memoryInit).out.u32(segment).u32(memory);
      return b.markMemory(memory);
    }
    default:
      if (random.chance(20)) b.opcode(OP.dataDrop).out.u32(random.below(segments.length));
      else b.out.byte(OP.nop);
  }
}
