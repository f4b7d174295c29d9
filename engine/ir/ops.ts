/**
 * The operations of the intermediate representation, one row each: name, operand roles, result type, effects. Later
 * stages (printer, verifier, passes, selectors) derive everything about an operation from its row.
 *
 * Operand columns a, b, c of an instruction (ir/function.ts) are described by `operands`, one letter per column:
 *
 *     v value id · l first index of a list of value ids in the pool (its length is the next column)
 *     n length of the list · e edge id · k plain integer · . unused
 *
 * `result` is a type letter (i i32, I i64, f f32, F f64, v v128, r ref), `t` for the instruction's own `ty` column, `a`
 * for the type of operand a, or `_` for none.
 *
 * `flags`:
 *
 *     p pure (no effects, may be removed, merged and moved) · r reads memory of its region
 *     w writes memory of its region · t may trap · z ends a block · c commutative
 *     x calls or leaves compiled code (reads and writes everything, may grow memory)
 */

import { VECTOR_ROWS } from "./vector_ops.ts";

/** Rows are "NAME operands result flags"; the comment gives the meaning. `imm` is the 32-bit immediate column. */
const ROWS = [
  "UNDEF ... t p", // id 0 only: no value
  "CONST ..k t p", // imm = bits (low half); c = high half of i64 and f64; v128: imm = index into f.vectors; ref: 0 (null)
  "PARAM ... t p", // block parameter number imm, at the start of its block; of block 0: the function's parameters
  "RESULT v.. t p", // result number imm of the call-like instruction a (only for those with several results; see CALL)
  // integer arithmetic; ty is i32 or i64
  "ADD vv. t pc",
  "SUB vv. t p",
  "MUL vv. t pc",
  "AND vv. t pc",
  "OR vv. t pc",
  "XOR vv. t pc",
  "SHL vv. t p", // shift counts are taken modulo the width; the count has the same type as the operand
  "SHR_S vv. t p",
  "SHR_U vv. t p",
  "ROTL vv. t p",
  "ROTR vv. t p",
  "CLZ v.. t p",
  "CTZ v.. t p",
  "POPCNT v.. t p",
  "DIV_S vv. t t", // imm: bit 0 = divisor may be zero (trap), bit 1 = quotient may overflow (trap); 0 = cannot trap
  "DIV_U vv. t t", // imm: bit 0 as above
  "REM_S vv. t t", // imm: bit 0 as above; bit 1 = divisor may be −1 (result 0, must not fault)
  "REM_U vv. t t",
  "MULHI_S vv. I pc", // the high 64 bits of the 128-bit product of two i64
  "MULHI_U vv. I pc",
  "EXTEND8_S v.. t p", // sign-extend the low 8 bits; ty i32 or i64, operand of the same type
  "EXTEND16_S v.. t p",
  "EXTEND32_S v.. I p", // i64.extend32_s: operand i64
  "EXTEND_S v.. I p", // i64.extend_i32_s: operand i32
  "EXTEND_U v.. I p", // i64.extend_i32_u
  "WRAP v.. i p", // i32.wrap_i64
  // integer comparison; operands i32, i64 or ref; result i32 0 or 1
  "EQ vv. i pc",
  "NE vv. i pc",
  "LT_S vv. i p",
  "LT_U vv. i p",
  "GT_S vv. i p",
  "GT_U vv. i p",
  "LE_S vv. i p",
  "LE_U vv. i p",
  "GE_S vv. i p",
  "GE_U vv. i p",
  // floating point; ty is f32 or f64
  "FADD vv. t pc",
  "FSUB vv. t p",
  "FMUL vv. t pc",
  "FDIV vv. t p",
  "FMIN vv. t p", // WebAssembly semantics: NaN wins, −0 < +0
  "FMAX vv. t p",
  "FCOPYSIGN vv. t p",
  "FABS v.. t p",
  "FNEG v.. t p",
  "FSQRT v.. t p",
  "FCEIL v.. t p",
  "FFLOOR v.. t p",
  "FTRUNC v.. t p",
  "FNEAREST v.. t p",
  "FEQ vv. i pc",
  "FNE vv. i pc",
  "FLT vv. i p",
  "FGT vv. i p",
  "FLE vv. i p",
  "FGE vv. i p",
  "FDEMOTE v.. f p",
  "FPROMOTE v.. F p",
  "CONVERT_S v.. t p", // integer (i32 or i64, by operand) → float ty
  "CONVERT_U v.. t p",
  "TRUNC_S v.. t t", // float → integer ty; traps on NaN (invalid conversion) and overflow
  "TRUNC_U v.. t t",
  "TRUNC_SAT_S v.. t p",
  "TRUNC_SAT_U v.. t p",
  "BITCAST v.. t p", // reinterpret between i32/f32, i64/f64 and i64/ref
  "SELECT vvv t p", // c (i32) ≠ 0 ? a : b
  // memory. a = address, imm = unsigned 32-bit static offset, c = region (ir/function.ts: REGION), b of loads = trap
  // code when the address may be unmapped for a reason other than linear memory bounds (TRAP.*), else 0
  "LOAD vkk t rt", // full width of ty
  "LOAD8_S vkk t rt", // ty i32 or i64
  "LOAD8_U vkk t rt",
  "LOAD16_S vkk t rt",
  "LOAD16_U vkk t rt",
  "LOAD32_S vkk I rt",
  "LOAD32_U vkk I rt",
  "STORE vvk _ wt", // full width of the type of value b
  "STORE8 vvk _ wt",
  "STORE16 vvk _ wt",
  "STORE32 vvk _ wt", // low half of an i64
  "BOUNDS v.k _ t", // explicit mode: trap MEMORY_OUT_OF_BOUNDS unless a + imm + boundsBytes(c) ≤ byte length of memory boundsMemory(c) (ir/function.ts); a is i32 (zero-extended) or i64, imm unsigned
  "CONTEXT ... t p", // address of the VM context plus imm; ty i64, or ref for the address of a function record in it
  "TRAP_IF v.. _ t", // trap with code imm when a (i32) ≠ 0
  // trap with code imm unless a + c < b, unsigned and without wrapping; the result is a, and 0 where the processor runs
  // ahead on the wrong path (docs/security.md). a is i32 (zero-extended) or i64, b of the type of the compare
  "CHECK_INDEX vvk t t",
  // calls. List = arguments. ty = type of the single result, or 0 when there are none or several (then RESULT
  // instructions follow)
  "CALL lnk t x", // defined function c (imports not counted); imm = signature id (f.signatures)
  "CALL_RECORD lnk t x", // first list entry = address of a function record (context_layout.ts), rest arguments; imm = signature id;
  //                        c = TRAP code when the record may be null (address 0), else 0; it may belong to another
  //                        instance unless CALL_OWN is added
  "CALL_IMPORT lnk t x", // imported function c (its function index): its record is embedded in the context; imm = signature id
  "CALL_BUILTIN lnk t x", // runtime routine c (engine/abi/builtins.ts); imm = signature id
  "UNWOUND ... i x", // 1 if an exception left the call before it: see ir/function.ts, "Exceptions"
  "POLL ... _ t", // interruption point: traps when the deadline has passed; only in modules compiled to be interruptible
  // takes a (i64, 0 to 2^62) and b, the units that preceding charges owe (which are known to be available), from the
  // thread's fuel; traps OUT_OF_FUEL, with only the owed units taken, if there is less. imm = CHARGE_OWES: only checks
  "CHARGE vk. _ t",
  // atomic accesses, sequentially consistent: no access of memory moves across one. imm = unsigned 32-bit static
  // offset; c = region and width (ir/function.ts: atomicWord); narrow values are zero-extended to ty. Alignment and, in
  // explicit mode, bounds were checked
  "ATOMIC_LOAD v.k t rwt",
  "ATOMIC_STORE vvk _ rwt",
  "ATOMIC_ADD vvk t rwt", // these result in the old value
  "ATOMIC_SUB vvk t rwt",
  "ATOMIC_AND vvk t rwt",
  "ATOMIC_OR vvk t rwt",
  "ATOMIC_XOR vvk t rwt",
  "ATOMIC_XCHG vvk t rwt",
  "ATOMIC_CMPXCHG lnk t rwt", // list = address, expected value (of which the low bytes count), replacement
  "FENCE ... _ rw",
  "PAUSE ... _ rw", // tells the processor that the code spins; stays between the accesses around it
  // collected heap: a = bytes of the object, header included (i64) → its address. All zero except the header, which
  // must be stored before the next possible collection. May collect: memory that the program sees does not change, but
  // the runtime is called if necessary
  "GC_ALLOC v.. r t",
  // block ends
  "JUMP e.. _ z",
  "BRANCH vee _ z", // a (i32) ≠ 0 → edge b, else edge c; imm = BRANCH_HINT of edge b
  "SWITCH vkn _ z", // a (i32, unsigned) selects edge b + min(a, c − 1): edges b … b + c − 1 are consecutive; the last is the default
  "RETURN ln. _ z",
  "TRAP ... _ zt", // trap with code imm; the block ends
  "TAIL_CALL lnk _ zx", // as CALL, results returned to our caller
  "TAIL_CALL_RECORD lnk _ zx",
  "TAIL_CALL_IMPORT lnk _ zx",
  ...VECTOR_ROWS,
] as const;

/** Hint of a BRANCH, in its imm column. */
export const BRANCH_HINT = { NONE: 0, LIKELY: 1, UNLIKELY: 2 } as const;

/** The hint of a BRANCH after its edges have been exchanged. */
export function oppositeHint(hint: number): number {
  return hint === BRANCH_HINT.NONE ? hint : BRANCH_HINT.LIKELY + BRANCH_HINT.UNLIKELY - hint;
}

/**
 * Bits of imm of a division or remainder: the divisor may be zero; the quotient may overflow (the divisor may be −1).
 */
export const DIVISION_CHECK = { ZERO: 1, OVERFLOW: 2 } as const;

/** In column c of calls of a record, besides the trap code: the callee is defined by this instance. */
export const CALL_OWN = 64;
/** Mask of the trap code in that column. */
export const CALL_NULL_CODE = 63;

/**
 * In imm of a CHARGE of a constant below 2^31: the charge has no effect, because the next charge on every path takes
 * its units (optimize/coalesce_fuel.ts).
 */
export const CHARGE_OWES = 1;

type NameOf<Row> = Row extends `${infer Name} ${string}` ? Name : never;
/** The name of an IR operation. */
export type OpName = NameOf<(typeof ROWS)[number]>;

export interface OpRow {
  readonly name: OpName;
  /** Three letters, one per operand column. */
  readonly operands: string;
  readonly result: string;
  readonly flags: string;
}

/** Rows by operation number. */
export const OP_ROWS: readonly OpRow[] = ROWS.map((row) => {
  const [name, operands, result, flags] = row.split(" ") as [OpName, string, string, string];
  return { name, operands, result, flags };
});

/** Operation numbers by name: `OP.ADD`. */
export const OP: Readonly<Record<OpName, number>> = Object.freeze(
  Object.fromEntries(OP_ROWS.map((row, index) => [row.name, index])) as Record<OpName, number>,
);

/** Bits of {@linkcode OP_FLAGS}. */
export const FLAG = { PURE: 1, READS: 2, WRITES: 4, TRAPS: 8, CALLS: 16, ENDS: 32, COMMUTES: 64 } as const;

const FLAG_LETTERS = "prwtxzc";

/** Effect bits by operation number. */
export const OP_FLAGS: Uint8Array = Uint8Array.from(OP_ROWS, (row) => {
  let bits = 0;
  for (const letter of row.flags) bits |= 1 << FLAG_LETTERS.indexOf(letter);
  return bits;
});

/** By operation: 1 if which of two NaNs the result is made from depends on the order of the operands. */
const ORDERS_NANS: Uint8Array = Uint8Array.from(OP_ROWS, ({ name }) => Number(/^V?F(ADD|MUL)$/.test(name)));

/** Whether the operands of operation `op` may be exchanged; `keepsNans` is that of the function (IrFunction). */
export function commutes(keepsNans: boolean, op: number): boolean {
  return (OP_FLAGS[op] & FLAG.COMMUTES) !== 0 && !(keepsNans && ORDERS_NANS[op] !== 0);
}

/** The operand columns of operation `op` that are values: bit 0 for a, 1 for b, 2 for c. */
export const OP_VALUE_MASK: Uint8Array = Uint8Array.from(OP_ROWS, (row) => {
  let bits = 0;
  for (let i = 0; i < 3; i++) if (row.operands[i] === "v") bits |= 1 << i;
  return bits;
});

/** Whether operation `op` has a list of values in the pool (columns a = first, b = length). */
export const OP_HAS_LIST: Uint8Array = Uint8Array.from(OP_ROWS, (row) => row.operands.startsWith("ln") ? 1 : 0);

/** By operation: bytes that a narrow load or store accesses; 0 for those whose type determines the width. */
export const ACCESS_BYTES: Uint8Array = Uint8Array.from(
  OP_ROWS,
  ({ name }) => Number(/^(?:LOAD|STORE)(8|16|32)(?:_[SU])?$/.exec(name)?.[1] ?? 0) / 8,
);

/**
 * By operation: the comparison that is true exactly when this one is false; 0 for ordered float comparisons, which are
 * false for a NaN either way, and for other operations.
 */
export const INVERSE: Uint8Array = new Uint8Array(256);
/** By operation: the comparison with its operands exchanged, `x op y` = `y op' x`; 0 for other operations. */
export const MIRROR: Uint8Array = new Uint8Array(256);
for (
  const [name, inverse, mirror] of [
    ["EQ", "NE", "EQ"],
    ["NE", "EQ", "NE"],
    ["LT_S", "GE_S", "GT_S"],
    ["LT_U", "GE_U", "GT_U"],
    ["GT_S", "LE_S", "LT_S"],
    ["GT_U", "LE_U", "LT_U"],
    ["LE_S", "GT_S", "GE_S"],
    ["LE_U", "GT_U", "GE_U"],
    ["GE_S", "LT_S", "LE_S"],
    ["GE_U", "LT_U", "LE_U"],
    ["FEQ", "FNE", "FEQ"],
    ["FNE", "FEQ", "FNE"],
    ["FLT", 0, "FGT"],
    ["FGT", 0, "FLT"],
    ["FLE", 0, "FGE"],
    ["FGE", 0, "FLE"],
  ] as const
) {
  INVERSE[OP[name]] = inverse === 0 ? 0 : OP[inverse];
  MIRROR[OP[name]] = OP[mirror];
}
