/**
 * How the immediates of instructions are read: each row has a plan, up to six 5-bit steps packed into one number
 * (specification, 5.4). In: the opcode rows. Out: the plans by row and by byte, for the readers of bodies
 * (body_reader.ts, and that of the baseline tier's kernel).
 */
import type { ImmediateKind } from "./opcode_row.ts";
import { ID_BY_BYTE, opcodeColumn } from "./opcodes.ts";

/** Steps of a plan. */
export const STEP = {
  INDEX: 1,
  INDEX2: 2,
  MEMARG: 3,
  CONST32: 4,
  BLOCK_TYPE: 5,
  LABELS: 6,
  CONST64: 7,
  BITS32: 8,
  BITS64: 9,
  BYTES16: 10,
  LANE: 11,
  VAL_TYPES: 12,
  HEAP_TYPE: 13,
  REF_TYPE: 14,
  REF_NULL_TYPE: 15,
  CAST_TYPES: 16,
  CATCHES: 17,
  ORDERING: 18,
  NEEDS_DATA_COUNT: 19,
  HANDLERS: 20,
  ATOMIC_ARGUMENT: 21,
  RMW_ARGUMENT: 22,
} as const;

/** Special plans: an illegal byte, and a prefix. */
export const ILLEGAL = -1;
export const PREFIX = -2;

const STEPS = {
  blocktype: STEP.BLOCK_TYPE,
  labels: STEP.LABELS,
  i32: STEP.CONST32,
  i64: STEP.CONST64,
  f32: STEP.BITS32,
  f64: STEP.BITS64,
  v128: STEP.BYTES16,
  memarg: STEP.MEMARG,
  atomicarg: STEP.ATOMIC_ARGUMENT,
  rmwarg: STEP.RMW_ARGUMENT,
  lane: STEP.LANE,
  lanes: STEP.BYTES16,
  valtypes: STEP.VAL_TYPES,
  heaptype: STEP.HEAP_TYPE,
  reftype0: STEP.REF_TYPE,
  reftype1: STEP.REF_NULL_TYPE,
  casttypes: STEP.CAST_TYPES,
  catches: STEP.CATCHES,
  handlers: STEP.HANDLERS,
  ordering: STEP.ORDERING,
  // All other kinds are indices: the first goes into `index`, the second into `index2`.
  label: STEP.INDEX,
  local: STEP.INDEX,
  global: STEP.INDEX,
  func: STEP.INDEX,
  table: STEP.INDEX,
  memory: STEP.INDEX,
  type: STEP.INDEX,
  tag: STEP.INDEX,
  elem: STEP.INDEX,
  data: STEP.INDEX,
  field: STEP.INDEX,
  count: STEP.INDEX,
} as const satisfies Record<ImmediateKind, number>;

/** The plan of a list of immediates: up to six steps of five bits. */
function planOf(immediates: readonly ImmediateKind[]): number {
  let plan = 0;
  let shift = 0;
  let indices = 0;
  for (const kind of immediates) {
    if (kind === "data") {
      plan |= STEP.NEEDS_DATA_COUNT << shift;
      shift += 5;
    }
    plan |= (STEPS[kind] === STEP.INDEX && indices++ > 0 ? STEP.INDEX2 : STEPS[kind]) << shift;
    shift += 5;
  }
  return plan;
}

/** The plans by row id. */
export const PLAN_BY_ID: Int32Array = opcodeColumn(Int32Array, (row) => planOf(row.immediates));
/** The plans by first byte of an opcode. */
export const PLAN_BY_BYTE: Int32Array = Int32Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0xfb && byte <= 0xfe) return PREFIX;
  const id = ID_BY_BYTE[byte];
  return id < 0 ? ILLEGAL : PLAN_BY_ID[id];
});
