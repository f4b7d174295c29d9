/**
 * Random type definitions: function types, structures and arrays in recursion groups, some with supertypes. In:
 * features. Out: the definitions that all modules of a case share, and their bytes.
 *
 * A non-nullable reference refers only to an earlier definition, so a value of every type can be constructed in
 * finitely many steps.
 */
import { Bytes } from "../module_bytes.ts";
import type { Random } from "../random.ts";
import { type Definition, type Field, refType, type Signature, type TypeName, writeType } from "../value_types.ts";

const NUMBERS: readonly TypeName[] = ["i32", "i32", "i64", "f32", "f64"];

/** The definitions of a case. */
export function generateDefinitions(random: Random, features: ReadonlySet<string>): Definition[] {
  const list: Definition[] = [];
  const gc = features.has("gc");
  const typed = gc || features.has("typed-function-references");
  if (!typed) return list;
  const count = gc ? random.between(4, 9) : random.between(1, 3);
  let group = 0;
  for (let groupEnd = 0; list.length < count; group++) {
    const first = list.length;
    groupEnd = gc ? Math.min(count, first + random.pick([1, 1, 1, 2, 3])) : first + 1;
    // The kinds of a group's members are determined before their contents, since members may refer to each other.
    const kinds: Definition["kind"][] = [];
    for (let i = first; i < groupEnd; i++) {
      if (!gc) kinds.push("func");
      else kinds.push(i === 0 ? "struct" : i === 1 ? "array" : random.pick(["struct", "struct", "array", "func"]));
    }
    const anyType = (nullableOnly: boolean): TypeName => {
      if (random.chance(55)) {
        return features.has("simd") && random.chance(15) ? "v128" : random.pick(NUMBERS);
      }
      if (random.chance(25)) return random.pick(["funcref", "externref"]);
      if (gc && random.chance(35)) return refType(random.pick(["any", "eq", "i31", "struct", "array"]), true);
      const nullable = nullableOnly || first === 0 || random.chance(65);
      const end = nullable && gc ? groupEnd : first;
      return end === 0 ? "i32" : refType(random.below(end), nullable);
    };
    for (let i = first; i < groupEnd; i++) {
      const kind = kinds[i - first];
      const open = list.filter((d) => d.kind === kind && !d.final);
      const above = gc && open.length > 0 && random.chance(50) ? random.pick(open) : undefined;
      const final = !gc || random.chance(45);
      const field = (): Field => ({
        storage: gc && random.chance(25) ? random.pick(["i8", "i16"]) : anyType(false),
        mutable: random.chance(70),
      });
      let fields: readonly Field[] = [];
      let signature: Signature | undefined;
      if (kind === "struct") {
        fields = [...above?.fields ?? [], ...Array.from({ length: random.below(above === undefined ? 6 : 3) }, field)];
      } else if (kind === "array") fields = above?.fields ?? [{ ...field(), mutable: random.chance(85) }];
      else {
        const params = Array.from({ length: random.below(4) }, () => anyType(false));
        const results = Array.from({ length: random.pick([0, 1, 1, 1, 2]) }, () => anyType(false));
        signature = above?.signature ??
          { params, results: features.has("multi-value") ? results : results.slice(0, 1) };
      }
      list.push({ index: i, kind, fields, signature, final, above: above?.index, group });
    }
  }
  return list;
}

/** One entry of the type section for every group; the first definition has type index `shift`. */
export function writeDefinitions(definitions: readonly Definition[], shift: number, gc: boolean): Bytes[] {
  const entries: Bytes[] = [];
  for (let at = 0; at < definitions.length;) {
    const members = definitions.filter((d) => d.group === definitions[at].group);
    const parts = members.map((d) => writeDefinition(d, shift, gc));
    entries.push(parts.length === 1 ? parts[0] : new Bytes().byte(0x4e).vector(parts));
    at += members.length;
  }
  return entries;
}

function writeDefinition(d: Definition, shift: number, gc: boolean): Bytes {
  const out = new Bytes();
  if (gc && !(d.final && d.above === undefined)) {
    out.byte(d.final ? 0x4f : 0x50);
    if (d.above === undefined) out.byte(0);
    else out.byte(1).u32(d.above + shift);
  }
  if (d.kind === "func") return writeSignature(out, d.signature!, shift);
  out.byte(d.kind === "struct" ? 0x5f : 0x5e);
  if (d.kind === "struct") out.u32(d.fields.length);
  for (const { storage, mutable } of d.fields) {
    writeType(out, storage, shift);
    out.byte(mutable ? 1 : 0);
  }
  return out;
}

/** A function type. */
export function writeSignature(out: Bytes, { params, results }: Signature, shift: number): Bytes {
  out.byte(0x60).u32(params.length);
  for (const type of params) writeType(out, type, shift);
  out.u32(results.length);
  for (const type of results) writeType(out, type, shift);
  return out;
}
