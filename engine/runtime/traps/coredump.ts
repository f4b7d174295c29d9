/**
 * Core dumps: a trap as a file, for debuggers (tool conventions, Coredump.md). In: a trap and the instance in which it
 * happened. Out: a module in binary form that is never instantiated: the stack in the custom sections "core",
 * "coremodules", "coreinstances" and "corestack", and the state of the instance as its memories, globals and data.
 *
 * Invariants: the dump is a valid module, and equal states give equal bytes. Values of locals and operands are in
 * registers or no longer exist, so they are recorded as missing. References in globals are recorded as null.
 */
import { ByteWriter } from "../../base/bytes.ts";
import { encodeModule } from "../../binary/encode.ts";
import type { TrapFrame } from "../../base/errors.ts";
import type { GuestStack } from "./trap_error.ts";
import { type CustomSection, type DataSegment, emptyModule, type Global, type RawBytes } from "../../wasm/module.ts";
import {
  F32,
  F64,
  FUNCREF,
  type GlobalType,
  HEAP,
  heapOf,
  I32,
  I64,
  isRef,
  type MemoryType,
  refType,
  V128,
  type ValType,
} from "../../wasm/types.ts";

/** Runs of zeros of at least this many bytes are left out of the data. */
const BLOCK_BYTES = 4096;
/** The maximum size of a dump in bytes: the length limit of buffers. */
const MAX_BYTES = 2 ** 31 - 1;
/** Every record of the custom sections begins with this byte, which leaves room for other forms. */
const FORM = 0;
const END = 0x0b;
const REF_NULL = 0xd0;
const V128_CONST = [0xfd, 0x0c] as const;
const CONST: ReadonlyMap<ValType, number> = new Map([[I32, 0x41], [I64, 0x42], [F32, 0x43], [F64, 0x44]]);

/** A global: its type and its cell, at a place in native memory. */
interface DumpedGlobal {
  readonly type: GlobalType;
  readonly region: { readonly u8: Uint8Array; readonly i32: Int32Array };
  readonly offset: number;
}

/** The parts of an instance that a dump contains; its globals and memories include the imported ones. */
export interface DumpedInstance {
  readonly module: {
    readonly valid: { readonly funcs: readonly { readonly body: RawBytes }[] };
    readonly importedFuncCount: number;
  };
  readonly memories: readonly { readonly type: MemoryType; readonly pages: number; readonly bytes: Uint8Array }[];
  readonly globals: readonly DumpedGlobal[];
}

/** A frame with the number of its instance in the dump. */
type PlacedFrame = TrapFrame & { readonly instance: number };

/**
 * Writes the core dump of a trap in `instance` with `stack`, for a program called `name`. Throws a RangeError if the
 * memories hold more than one buffer can.
 */
export function writeCoredump(stack: GuestStack, instance: DumpedInstance, name: string): Uint8Array<ArrayBuffer> {
  const { memories, globals } = instance;
  const dump = emptyModule();
  const datas = memories.flatMap(({ bytes, type }, index) => blocksOf(bytes, index, type.limits.address === I64));
  if (datas.reduce((sum, data) => sum + data.bytes.length, 0) > MAX_BYTES) {
    throw new RangeError(`The memories hold more than the ${MAX_BYTES} bytes that a core dump can have`);
  }
  const modules = [...new Set([instance.module.valid, ...stack.modules])];
  const frames = stack.frames.map((frame, k) => ({ ...frame, instance: modules.indexOf(stack.modules[k]) }));
  const names = modules.map((_, k) => frames.find((frame) => frame.instance === k)?.moduleName ?? "");
  dump.memories = memories.map(({ type, pages }) => ({ ...type, limits: { ...type.limits, min: BigInt(pages) } }));
  dump.globals = globals.map(constantOf);
  dump.datas = datas;
  dump.customs = [
    custom("core", (out) => {
      out.u8(FORM);
      out.name(name);
    }),
    custom("coremodules", (out) => writeModules(out, names)),
    custom("coreinstances", (out) => writeInstances(out, modules.length, memories.length, globals.length)),
    custom("corestack", (out) => writeStack(out, instance, frames)),
  ];
  for (const { funcIndex, funcName } of frames.filter((frame) => frame.instance === 0)) {
    if (funcName !== undefined) dump.names.funcs.set(funcIndex, funcName);
  }
  return new Uint8Array(encodeModule(dump));
}

function custom(name: string, write: (out: ByteWriter) => void): CustomSection {
  const out = new ByteWriter();
  write(out);
  return { name, bytes: out.finish(), offset: 0, after: 0 };
}

function writeModules(out: ByteWriter, modules: readonly string[]): void {
  out.u32(modules.length);
  for (const name of modules) {
    out.u8(FORM);
    out.name(name);
  }
}

/** The first instance is that of the trap, whose state is in the dump; the others appear only in frames. */
function writeInstances(out: ByteWriter, modules: number, memories: number, globals: number): void {
  out.u32(modules);
  for (let module = 0; module < modules; module++) {
    out.u8(FORM);
    out.u32(module);
    for (const count of module === 0 ? [memories, globals] : [0, 0]) {
      out.u32(count);
      for (let index = 0; index < count; index++) out.u32(index);
    }
  }
}

function writeStack(out: ByteWriter, instance: DumpedInstance, frames: readonly PlacedFrame[]): void {
  out.u8(FORM);
  out.name("main");
  out.u32(frames.length);
  for (const frame of frames) {
    out.u8(FORM);
    out.u32(frame.instance);
    out.u32(frame.funcIndex);
    out.u32(frame.instance === 0 ? offsetInFunction(instance, frame) : 0);
    out.u32(0);
    out.u32(0);
  }
}

/**
 * The offset of the instruction from the beginning of its function's body; 0 if the module's bodies are not available.
 */
function offsetInFunction(
  { module: { valid, importedFuncCount } }: DumpedInstance,
  { funcIndex, offset }: TrapFrame,
): number {
  const body = valid.funcs[funcIndex - importedFuncCount]?.body;
  return body === undefined || body.bytes.length === 0 ? 0 : Math.max(0, offset - body.offset);
}

/** The runs of a memory that are not zero, as active segments. */
function blocksOf(bytes: Uint8Array, memory: number, is64: boolean): DataSegment[] {
  const segments: DataSegment[] = [];
  const words = new BigUint64Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.length / 8));
  const isZero = (at: number) => {
    const end = Math.min(words.length, (at + BLOCK_BYTES) / 8);
    for (let k = at / 8; k < end; k++) if (words[k] !== 0n) return false;
    return end < words.length || bytes.subarray(words.length * 8).every((byte) => byte === 0);
  };
  for (let at = 0; at < bytes.length;) {
    while (at < bytes.length && isZero(at)) at += BLOCK_BYTES;
    const from = at;
    while (at < bytes.length && !isZero(at)) at += BLOCK_BYTES;
    if (from === at) break;
    segments.push({
      bytes: bytes.slice(from, at),
      mode: { kind: "active", memory, start: address(from, is64) },
      offset: 0,
    });
  }
  return segments;
}

function address(at: number, is64: boolean): RawBytes {
  const out = new ByteWriter(16);
  out.u8(CONST.get(is64 ? I64 : I32)!);
  if (is64) out.s64(at, Math.floor(at / 2 ** 32));
  else out.s32(at);
  return expression(out);
}

function expression(out: ByteWriter): RawBytes {
  out.u8(END);
  return { bytes: out.finish(), offset: 0 };
}

/** An immutable global with the value of `global`. */
function constantOf({ type: { type }, region, offset }: DumpedGlobal): Global {
  const out = new ByteWriter(24);
  if (isRef(type)) {
    const heap = heapOf(type) < 0 ? heapOf(type) : HEAP.func;
    out.u8(REF_NULL);
    out.s33(heap);
    return { type: { type: heapOf(type) < 0 ? refType(true, heap) : FUNCREF, mutable: false }, init: expression(out) };
  }
  const word = (k: number) => region.i32[(offset >> 2) + k];
  if (type === V128) { for (const byte of V128_CONST) out.u8(byte); }
  else out.u8(CONST.get(type)!);
  if (type === I32) out.s32(word(0));
  else if (type === I64) out.s64(word(0), word(1));
  else out.raw(region.u8.subarray(offset, offset + (type === V128 ? 16 : type === F64 ? 8 : 4)));
  return { type: { type, mutable: false }, init: expression(out) };
}
