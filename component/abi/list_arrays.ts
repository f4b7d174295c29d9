/** The element types of lists that are typed arrays in JavaScript, and the classes of these. */

/** What all typed arrays have. */
interface NumberArray extends ArrayLike<unknown> {
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** A class of typed arrays. */
interface NumberArrayType {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): NumberArray;
  from(values: ArrayLike<never>): NumberArray;
}

/** Classes by the kind of the element type. */
export const LIST_ARRAYS: Readonly<Record<string, NumberArrayType>> = {
  s8: Int8Array,
  u8: Uint8Array,
  s16: Int16Array,
  u16: Uint16Array,
  s32: Int32Array,
  u32: Uint32Array,
  s64: BigInt64Array,
  u64: BigUint64Array,
  f32: Float32Array,
  f64: Float64Array,
};
