/**
 * Constant expressions: values of globals, elements and offsets (specification, 3.4.17). In: a type and the scope. Out:
 * bytes, including the end opcode.
 */
import type { Bytes } from "../module_bytes.ts";
import type { Random } from "../random.ts";
import {
  type Definition,
  definitionOf,
  heapOf,
  isNullable,
  isReference,
  matches,
  refType,
  type TypeName,
  unpacked,
  writeHeap,
} from "../value_types.ts";

export interface ConstantScope {
  readonly random: Random;
  readonly features: ReadonlySet<string>;
  readonly definitions: readonly Definition[];
  readonly shift: number;
  readonly globals: { type: TypeName; mutable: boolean }[];
  /** Functions that ref.func may name, with the definitions of their types. */
  readonly functions: readonly { index: number; definition: number | undefined }[];
  /** Set if arithmetic was written: the module then uses extended constant expressions. */
  extended: boolean;
}

/** A constant expression of `type`. */
export function writeConstant(out: Bytes, type: TypeName, scope: ConstantScope): void {
  value(out, type, scope, 2);
  out.byte(0x0b);
}

function value(out: Bytes, type: TypeName, scope: ConstantScope, depth: number): void {
  const { random, features, globals, definitions } = scope;
  const usable = globals.flatMap((g, i) => !g.mutable && matches(g.type, type, definitions) ? [i] : []);
  const arithmetic = features.has("extended-const-expressions") && (type === "i32" || type === "i64") && depth > 0;
  if (arithmetic && random.chance(usable.length > 0 ? 40 : 20)) {
    value(out, type, scope, depth - 1);
    value(out, type, scope, depth - 1);
    out.byte(random.pick([0x6a, 0x6b, 0x6c]) + (type === "i64" ? 0x12 : 0));
    scope.extended = true;
    return;
  }
  if (usable.length > 0 && random.chance(60)) out.byte(0x23).u32(random.pick(usable));
  else if (type === "i32") out.byte(0x41).s32(random.i32());
  else if (type === "i64") out.byte(0x42).s64(random.i64());
  else if (type === "f32") out.byte(0x43).f32(random.float(true));
  else if (type === "f64") out.byte(0x44).f64(random.float(false));
  else if (type === "v128") {
    out.byte(0xfd).u32(12);
    for (let i = 0; i < 16; i++) out.byte(random.pick([0, 1, 128, 255, random.bits() & 255]));
  } else reference(out, type, scope, depth);
}

function reference(out: Bytes, type: TypeName, scope: ConstantScope, depth: number): void {
  const { random, features, definitions, shift, functions } = scope;
  const heap = heapOf(type);
  const named = definitionOf(heap, definitions);
  const fitting = heap === "func"
    ? functions
    : functions.filter((f) => f.definition !== undefined && matches(refType(f.definition, false), type, definitions));
  if (isNullable(type) && (depth < 0 || random.chance(30) || heap === "exn")) {
    writeHeap(out.byte(0xd0), heap, shift);
  } else if (heap === "func" || named?.kind === "func") {
    if (fitting.length > 0) out.byte(0xd2).u32(random.pick(fitting).index);
    else writeHeap(out.byte(0xd0), heap, shift);
  } else if (heap === "extern") {
    if (features.has("gc") && random.chance(50)) {
      reference(out, "(ref any)", scope, depth);
      out.byte(0xfb).byte(0x1b);
    } else writeHeap(out.byte(0xd0), heap, shift);
  } else if (heap === "i31" || ((heap === "any" || heap === "eq") && random.chance(50))) {
    value(out, "i32", scope, 0);
    out.byte(0xfb).byte(0x1c);
  } else {
    const choices = definitions.filter((d) =>
      d.kind === heap || (heap === "any" || heap === "eq") && d.kind !== "func"
    );
    const definition = named ?? choices[0];
    const { fields, kind, index } = definition;
    const defaults = fields.every((f) => {
      const t = unpacked(f.storage);
      return !isReference(t) || isNullable(t);
    });
    if (kind === "struct") {
      if (!defaults || random.chance(60)) {
        for (const { storage } of fields) value(out, unpacked(storage), scope, depth - 1 < 0 ? -1 : depth - 2);
        out.byte(0xfb).byte(0).u32(index + shift);
      } else out.byte(0xfb).byte(1).u32(index + shift);
    } else if (defaults && random.chance(30)) {
      out.byte(0x41).s32(random.below(6)).byte(0xfb).byte(7).u32(index + shift);
    } else if (random.chance(40)) {
      value(out, unpacked(fields[0].storage), scope, -1);
      out.byte(0x41).s32(random.below(6)).byte(0xfb).byte(6).u32(index + shift);
    } else {
      for (let i = 0; i < 3; i++) value(out, unpacked(fields[0].storage), scope, -1);
      out.byte(0xfb).byte(8).u32(index + shift).u32(3);
    }
  }
}

/** The offset expression of an active segment. */
export function writeOffset(out: Bytes, at: number, wide: boolean, scope: ConstantScope): void {
  const { features, random } = scope;
  const constant = (n: number) => wide ? out.byte(0x42).s64(BigInt(n)) : out.byte(0x41).s32(n);
  if (features.has("extended-const-expressions") && random.chance(20)) {
    const part = random.i32();
    constant(at - part);
    constant(part);
    out.byte(wide ? 0x7c : 0x6a).byte(0x0b);
    scope.extended = true;
  } else {
    constant(at);
    out.byte(0x0b);
  }
}
