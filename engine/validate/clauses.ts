/**
 * Rules of the clauses `describes` and `descriptor` of types (proposal "custom descriptors", "Custom Descriptor
 * Definitions"): a type and that of its descriptors refer to each other, within one recursive group, the described type
 * first. In: types. Out: the message about a fault; undefined if there is none. Loaded with the first such type.
 */
import { isSubtypeId } from "../wasm/subtype.ts";
import type { SubType } from "../wasm/types.ts";

/** The fault of the clauses of type `index`, whose recursive group is from `start` to before `end`. */
export function clauseFault(types: readonly SubType[], index: number, start: number, end: number): string | undefined {
  const { describes, descriptor, composite } = types[index];
  const isInside = (other: number) => other >= start && other < end;
  if (describes !== undefined) {
    if (!isInside(describes)) return `described type is outside rec group: type ${describes}`;
    if (describes >= index) {
      return `forward use of described type ${describes}: it must precede its descriptor ${index}`;
    }
    if (composite.kind !== "struct") return `described type must be a struct, as type ${index}`;
    if (types[describes].descriptor !== index) {
      return `described type is not described by descriptor: type ${describes} by type ${index}`;
    }
  }
  if (descriptor === undefined) return undefined;
  if (!isInside(descriptor)) return `descriptor type is outside rec group: type ${descriptor}`;
  if (composite.kind !== "struct") return `descriptor type must be a struct, as type ${index}`;
  if (types[descriptor].describes === index) return undefined;
  return `type is not described by its descriptor: type ${index} by type ${descriptor}`;
}

/**
 * The fault of the clauses of a closed type, `own` in its module, in relation to those of its declared supertype, whose
 * index is `above`.
 */
export function superClauseFault(
  closed: SubType,
  superType: SubType,
  own: SubType,
  above: number,
): string | undefined {
  if (superType.describes !== undefined && !isDeclaredBelow(closed.describes!, superType.describes)) {
    return `described type ${own.describes} does not match that of super type ${above}`;
  }
  if (superType.descriptor !== undefined && !isDeclaredBelow(closed.descriptor!, superType.descriptor)) {
    return `descriptor type ${own.descriptor} does not match that of super type ${above}`;
  }
  return undefined;
}

/** Whether canonical type `id` has the declared supertype `above`. */
function isDeclaredBelow(id: number, above: number): boolean {
  return id !== above && isSubtypeId(id, above);
}
