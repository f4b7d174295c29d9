/**
 * Vector operations of the IR that take one instruction, as tables: by operation and shape the row, and whether the
 * instruction takes the operands in the opposite order.
 */
import { OP, OP_ROWS, type OpName } from "../ir/ops.ts";
import { X } from "./instructions.ts";

/**
 * "OPERATION row sizes": the row's name without its arrangement, and for which of the shapes i8x16 i16x8 i32x4 i64x2
 * f32x4 f64x2 it exists (letters of BHSDFG); no sizes: the row's name is whole and serves all shapes. An operation
 * marked `~` has its operands exchanged.
 */
const BINARY = [
  "VAND AND_16B",
  "VANDNOT BIC_16B",
  "VOR ORR_16B",
  "VXOR EOR_16B",
  "VADD ADD BHSD",
  "VSUB SUB BHSD",
  "VMUL MUL BHS",
  "VADD_SAT_S SQADD BH",
  "VADD_SAT_U UQADD BH",
  "VSUB_SAT_S SQSUB BH",
  "VSUB_SAT_U UQSUB BH",
  "VMIN_S SMIN BHS",
  "VMIN_U UMIN BHS",
  "VMAX_S SMAX BHS",
  "VMAX_U UMAX BHS",
  "VAVGR_U URHADD BH",
  "VQ15MULR_S SQRDMULH H",
  "VSWIZZLE TBL_16B",
  "VEQ CMEQ BHSD",
  "VGT_S CMGT BHSD",
  "VGT_U CMHI BHSD",
  "VGE_S CMGE BHSD",
  "VGE_U CMHS BHSD",
  "VLT_S~ CMGT BHSD",
  "VLT_U~ CMHI BHSD",
  "VLE_S~ CMGE BHSD",
  "VLE_U~ CMHS BHSD",
  "VFADD FADD FG",
  "VFSUB FSUB FG",
  "VFMUL FMUL FG",
  "VFDIV FDIV FG",
  "VFMIN FMIN FG",
  "VFMAX FMAX FG",
  "VFEQ FCMEQ FG",
  "VFGT FCMGT FG",
  "VFGE FCMGE FG",
  "VFLT~ FCMGT FG",
  "VFLE~ FCMGE FG",
];

/** The same for operations of one operand. */
const UNARY = [
  "VNOT NOT_16B",
  "VNEG NEG BHSD",
  "VABS ABS BHSD",
  "VPOPCNT CNT_16B",
  "VFABS FABS FG",
  "VFNEG FNEG FG",
  "VFSQRT FSQRT FG",
  "VFCEIL FRINTP FG",
  "VFFLOOR FRINTM FG",
  "VFTRUNC FRINTZ FG",
  "VFNEAREST FRINTN FG",
  "VFDEMOTE FCVTN_2S",
  "VFPROMOTE FCVTL_2D",
  "VCONVERT_S SCVTF F",
  "VCONVERT_U UCVTF F",
  "VTRUNC_SAT_S FCVTZS F",
  "VTRUNC_SAT_U FCVTZU F",
];

/**
 * For operations whose result has lanes twice as wide: the shape is the result's, the row's arrangement that of the
 * operands.
 */
const WIDENING = [
  "VEXTEND_LOW_S SSHLL",
  "VEXTEND_LOW_U USHLL",
  "VEXTEND_HIGH_S SSHLL2",
  "VEXTEND_HIGH_U USHLL2",
  "VEXTADD_S SADDLP",
  "VEXTADD_U UADDLP",
  "VEXTMUL_LOW_S SMULL",
  "VEXTMUL_LOW_U UMULL",
  "VEXTMUL_HIGH_S SMULL2",
  "VEXTMUL_HIGH_U UMULL2",
];

const SHAPES = "BHSDFG";
const ARRANGEMENTS = ["16B", "8H", "4S", "2D", "4S", "2D"];

/** Row at operation × 8 + shape, 0 for none. */
export const BINARY_ROW: Uint16Array = new Uint16Array(OP_ROWS.length * 8);
export const UNARY_ROW: Uint16Array = new Uint16Array(OP_ROWS.length * 8);
/** 1: the operation's row takes the operands exchanged. */
export const EXCHANGED: Uint8Array = new Uint8Array(OP_ROWS.length);

const numbers: Readonly<Record<string, number | undefined>> = X;

function rowOf(key: string): number {
  const row = numbers[key];
  if (row === undefined) throw new Error(`No instruction row ${key}`);
  return row;
}

function enter(table: Uint16Array, text: string): void {
  const [name, key, shapes] = text.split(" ");
  const op = OP[name.replace("~", "") as OpName];
  if (name.endsWith("~")) EXCHANGED[op] = 1;
  for (let shape = 0; shape < 6; shape++) {
    if (shapes === undefined) table[op * 8 + shape] = rowOf(key);
    else if (shapes.includes(SHAPES[shape])) table[op * 8 + shape] = rowOf(`${key}_${ARRANGEMENTS[shape]}`);
  }
}

for (const text of BINARY) enter(BINARY_ROW, text);
for (const text of UNARY) enter(UNARY_ROW, text);
for (const text of WIDENING) {
  const [name, key] = text.split(" ");
  const op = OP[name as OpName];
  const table = name.startsWith("VEXTMUL") ? BINARY_ROW : UNARY_ROW;
  for (let shape = 1; shape < 4; shape++) table[op * 8 + shape] = rowOf(`${key}_${ARRANGEMENTS[shape - 1]}`);
}
