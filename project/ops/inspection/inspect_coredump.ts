/**
 * Facts about a core dump (tool conventions, Coredump.md): the stack and the values that it has. In: a decoded module.
 * Out: plain data; undefined if the module is not a core dump. Errors are MalformedError with the offset in the file.
 */
import { ByteReader } from "@waft/engine/internal/base/bytes";
import type { decodeModule } from "@waft/engine/internal/binary/decode";
import { valTypeName } from "@waft/engine/internal/wasm/types";

/** A value of a local, an operand or a global; undefined if the dump lacks it. */
export type DumpedValue = { readonly type: string; readonly value: string } | undefined;

/** A frame of a stack. */
interface DumpedFrame {
  readonly instance: number;
  readonly func: number;
  readonly name?: string;
  /** Offset of the instruction in the function's body. */
  readonly offset: number;
  readonly locals: readonly DumpedValue[];
  readonly stack: readonly DumpedValue[];
}

/** Facts about a core dump. */
export interface CoredumpFacts {
  readonly bytes: number;
  /** The program that trapped. */
  readonly program: string;
  readonly modules: readonly string[];
  /** Innermost frame first. */
  readonly threads: readonly { readonly name: string; readonly frames: readonly DumpedFrame[] }[];
  /** Pages, and the number of their bytes in the dump. */
  readonly memories: readonly { readonly pages: string; readonly bytes: number }[];
  readonly globals: readonly DumpedValue[];
}

type Module = ReturnType<typeof decodeModule>;

/** Codes of the types of values: those of the binary format, and that of a missing value. */
const MISSING = 0x01;
const I32 = 0x7f;
const I64 = 0x7e;
const F32 = 0x7d;
const F64 = 0x7c;

/** The opcodes of constants by their types, and of the end of an expression. */
const CONSTANTS: Readonly<Record<string, number>> = { i32: 0x41, i64: 0x42, f32: 0x43, f64: 0x44, v128: 0xfd };
const END = 0x0b;

/** The facts about a dump of `module`; undefined if it is not a core dump. */
export function coredumpFacts(module: Module): CoredumpFacts | undefined {
  const readers = (name: string) => {
    return module.customs.filter((custom) => custom.name === name).map(({ bytes, offset }) => {
      return new ByteReader(bytes, 0, bytes.length, offset);
    });
  };
  const [core] = readers("core");
  if (core === undefined || readers("corestack").length === 0) return undefined;
  requireForm(core);
  /** Bytes by memory; the segments of a crafted file may name other ones. */
  const dumped = new Float64Array(module.memories.length);
  for (const { bytes, mode } of module.datas) if (mode.kind === "active") dumped[mode.memory] += bytes.length;
  return {
    bytes: module.bytes.length,
    program: core.name(),
    modules: readers("coremodules").flatMap((reader) => list(reader, () => (requireForm(reader), reader.name()))),
    threads: readers("corestack").map((reader) => {
      requireForm(reader);
      return { name: reader.name(), frames: list(reader, () => readFrame(reader, module)) };
    }),
    memories: module.memories.map(({ limits }, index) => ({ pages: String(limits.min), bytes: dumped[index] })),
    globals: module.globals.map(({ type, init }) => globalValue(valTypeName(type.type), init)),
  };
}

function requireForm(reader: ByteReader): void {
  const at = reader.pos;
  if (reader.u8() !== 0) reader.fail("unknown form of a record in a core dump", at);
}

function list<T>(reader: ByteReader, read: () => T): T[] {
  const items: T[] = [];
  for (let count = reader.count(); count > 0; count--) items.push(read());
  return items;
}

function readFrame(reader: ByteReader, { names }: Module): DumpedFrame {
  requireForm(reader);
  const instance = reader.u32();
  const func = reader.u32();
  const name = instance === 0 ? names.funcs.get(func) : undefined;
  return {
    instance,
    func,
    ...(name === undefined ? {} : { name }),
    offset: reader.u32(),
    locals: list(reader, () => readValue(reader)),
    stack: list(reader, () => readValue(reader)),
  };
}

function readValue(reader: ByteReader): DumpedValue {
  const at = reader.pos;
  switch (reader.u8()) {
    case MISSING:
      return undefined;
    case I32:
      return { type: "i32", value: String(reader.s32()) };
    case I64:
      return { type: "i64", value: readI64(reader) };
    case F32:
      return { type: "f32", value: String(floats(reader, 4).getFloat32(0, true)) };
    case F64:
      return { type: "f64", value: String(floats(reader, 8).getFloat64(0, true)) };
    default:
      return reader.fail("unknown type of a value in a core dump", at);
  }
}

function readI64(reader: ByteReader): string {
  reader.s64();
  return String(BigInt(reader.hi) << 32n | BigInt(reader.lo >>> 0));
}

function floats(reader: ByteReader, bytes: number): DataView {
  const taken = reader.take(bytes);
  return new DataView(taken.buffer, taken.byteOffset, bytes);
}

/** The value of a constant expression of one instruction; undefined for others, which no dump of waft has. */
function globalValue(type: string, { bytes }: { readonly bytes: Uint8Array }): DumpedValue {
  const reader = new ByteReader(bytes, 1);
  const value = constantValue(type, bytes, reader);
  return reader.pos === bytes.length || bytes[reader.pos] === END ? value : undefined;
}

function constantValue(type: string, bytes: Uint8Array, reader: ByteReader): DumpedValue {
  if (bytes[0] !== CONSTANTS[type]) return undefined;
  switch (type) {
    case "i32":
      return { type, value: String(reader.s32()) };
    case "i64":
      return { type, value: readI64(reader) };
    case "f32":
      return { type, value: String(floats(reader, 4).getFloat32(0, true)) };
    case "f64":
      return { type, value: String(floats(reader, 8).getFloat64(0, true)) };
    case "v128":
      reader.u8();
      return { type, value: `0x${[...reader.take(16)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}` };
    default:
      return undefined;
  }
}
