/**
 * The layout of a module's structures and arrays in memory, and the alias class of each field. In: a ValidModule. Out:
 * a row per type index, which translation reads.
 *
 * A field has the class of the topmost supertype that declares it, so all its names share one class; types are
 * identified by canonical id, since a module may declare the same type twice. Fields that are never written after
 * creation have CLASS_CONSTANT: there is no reference to an object before it is complete.
 */
import { layoutFields } from "../abi/gc_layout.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/regions.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { canonicalType, fieldsBeforeDescriptor, supertypeId } from "../wasm/subtype.ts";
import { byteSize, type CompositeType } from "../wasm/types.ts";
import type { ObjectType } from "./module_facts.ts";

/** Accesses of null at smaller offsets fault: the first page is not mapped. */
const FIRST_PAGE = 4096;

/**
 * Computes the rows by type index; undefined for types of functions and continuations. `take` allocates alias classes.
 */
export function objectTypes(valid: ValidModule, take: () => number): (ObjectType | undefined)[] {
  const classes = new Map<string, number>();
  const classOf = (id: number, field: number) => {
    let owner = id;
    for (let above = supertypeId(owner); above !== 0; above = supertypeId(above)) {
      if (fieldCount(canonicalType(above).composite) <= field) break;
      owner = above;
    }
    const key = `${owner}.${field}`;
    let known = classes.get(key);
    if (known === undefined) classes.set(key, known = take());
    return known;
  };
  return valid.types.map(({ composite }, index) => {
    const id = valid.canonicalIds[index];
    if (composite.kind === "func" || composite.kind === "cont") return undefined;
    if (composite.kind === "array") {
      const { storage, mutable } = composite.field;
      return {
        bytes: 0,
        elementShift: Math.log2(byteSize(storage)),
        storage: Int32Array.of(storage),
        offsets: Int32Array.of(0),
        regions: Int32Array.of(region(REGION.POINTER, mutable ? classOf(id, 0) : CLASS_CONSTANT)),
        descriptor: 0,
      };
    }
    const { fields } = composite;
    const sizes = fields.map(({ storage }) => byteSize(storage));
    const { offsets, descriptor, bytes } = layoutFields(sizes, fieldsBeforeDescriptor(id));
    const regions = Int32Array.from(fields, ({ mutable }, field) => {
      const kind = offsets[field] < FIRST_PAGE ? REGION.STRUCT : REGION.POINTER;
      return region(kind, mutable ? classOf(id, field) : CLASS_CONSTANT);
    });
    return {
      bytes,
      elementShift: 0,
      storage: Int32Array.from(fields, ({ storage }) => storage),
      offsets: Int32Array.from(offsets),
      regions,
      descriptor,
    };
  });
}

function fieldCount(type: CompositeType): number {
  return type.kind === "struct" ? type.fields.length : 1;
}
