/**
 * The test that a cast needs at run time, given the static type of its operand. In: the types of a cast (casts.ts).
 * Out: the kind of test.
 */

/** Tests of a reference that is not null. */
export const CAST_TEST = {
  /** No test: the cast always succeeds. */
  ALWAYS: 0,
  /** No test: the cast always fails. */
  NEVER: 1,
  /** The low bits of the reference. */
  BY_TAG: 2,
  /** The type in the header of the object. */
  BY_TYPE: 3,
} as const;

/** The cast under translation. */
export class CastState {
  /** One of CAST_TEST. */
  kind: number = CAST_TEST.ALWAYS;
  /** For BY_TYPE: the reference may be an i31, which has no header. */
  tagged = false;
  sourceNullable = false;
}
