/**
 * Vector operations of the IR that take one instruction, as tables: by operation and shape the row, its immediate, and
 * whether the instruction takes the operands in the opposite order. Folding and selection read them.
 */
import { OP, OP_ROWS, type OpName } from "../ir/ops.ts";
import { SHAPE } from "../ir/types.ts";
import { X } from "./instructions.ts";

/**
 * "OPERATION rows for i8x16 i16x8 i32x4 i64x2 f32x4 f64x2"; one row serves all shapes, `-` for none. An operation
 * marked `~` has its operands exchanged; `=n` is the row's immediate.
 */
const BINARY = [
  "VAND PAND",
  "VANDNOT~ PANDN",
  "VOR POR",
  "VXOR PXOR",
  "VADD PADDB PADDW PADDD PADDQ",
  "VSUB PSUBB PSUBW PSUBD PSUBQ",
  "VMUL - PMULLW PMULLD",
  "VADD_SAT_S PADDSB PADDSW",
  "VADD_SAT_U PADDUSB PADDUSW",
  "VSUB_SAT_S PSUBSB PSUBSW",
  "VSUB_SAT_U PSUBUSB PSUBUSW",
  "VMIN_S PMINSB PMINSW PMINSD",
  "VMIN_U PMINUB PMINUW PMINUD",
  "VMAX_S PMAXSB PMAXSW PMAXSD",
  "VMAX_U PMAXUB PMAXUW PMAXUD",
  "VAVGR_U PAVGB PAVGW",
  "VDOT_S PMADDWD",
  "VNARROW_S PACKSSWB PACKSSDW",
  "VNARROW_U PACKUSWB PACKUSDW",
  "VEQ PCMPEQB PCMPEQW PCMPEQD PCMPEQQ",
  "VGT_S PCMPGTB PCMPGTW PCMPGTD",
  "VLT_S~ PCMPGTB PCMPGTW PCMPGTD",
  "VFADD - - - - ADDPS ADDPD",
  "VFSUB - - - - SUBPS SUBPD",
  "VFMUL - - - - MULPS MULPD",
  "VFDIV - - - - DIVPS DIVPD",
  "VFPMIN~ - - - - MINPS MINPD",
  "VFPMAX~ - - - - MAXPS MAXPD",
  "VFEQ=0 - - - - CMPPS CMPPD",
  "VFNE=4 - - - - CMPPS CMPPD",
  "VFLT=1 - - - - CMPPS CMPPD",
  "VFGT~=1 - - - - CMPPS CMPPD",
  "VFLE=2 - - - - CMPPS CMPPD",
  "VFGE~=2 - - - - CMPPS CMPPD",
];

/**
 * The same for operations of one operand. Rounding: bits 0-1 of the immediate are the mode, bit 3 suppresses the
 * inexact exception.
 */
const UNARY = [
  "VABS PABSB PABSW PABSD",
  "VEXTEND_LOW_S - PMOVSXBW PMOVSXWD PMOVSXDQ",
  "VEXTEND_LOW_U - PMOVZXBW PMOVZXWD PMOVZXDQ",
  "VFSQRT - - - - SQRTPS SQRTPD",
  "VFNEAREST=8 - - - - ROUNDPS ROUNDPD",
  "VFFLOOR=9 - - - - ROUNDPS ROUNDPD",
  "VFCEIL=10 - - - - ROUNDPS ROUNDPD",
  "VFTRUNC=11 - - - - ROUNDPS ROUNDPD",
  "VFDEMOTE CVTPD2PS",
  "VFPROMOTE CVTPS2PD",
  "VCONVERT_S - - - - CVTDQ2PS CVTDQ2PD",
];

/** Legacy row at operation × 8 + shape, 0 for none. */
export const BINARY_ROW: Uint16Array = new Uint16Array(OP_ROWS.length * 8);
export const UNARY_ROW: Uint16Array = new Uint16Array(OP_ROWS.length * 8);
/** By operation: the row's immediate; 1 if it takes the operands exchanged. */
export const VECTOR_IMMEDIATE: Uint8Array = new Uint8Array(OP_ROWS.length);
export const EXCHANGED: Uint8Array = new Uint8Array(OP_ROWS.length);

const numbers: Readonly<Record<string, number | undefined>> = X;

function enter(table: Uint16Array, text: string): void {
  const [head, ...rows] = text.split(" ");
  const [name, immediate] = head.split("=");
  const op = OP[name.replace("~", "") as OpName];
  if (name.endsWith("~")) EXCHANGED[op] = 1;
  VECTOR_IMMEDIATE[op] = Number(immediate ?? 0);
  for (let shape = 0; shape < 6; shape++) {
    const key = rows.length === 1 ? rows[0] : rows[shape] ?? "-";
    const row = key === "-" ? 0 : numbers[key];
    if (row === undefined) throw new Error(`No instruction row ${key}`);
    table[op * 8 + shape] = row;
  }
}

for (const text of BINARY) enter(BINARY_ROW, text);
for (const text of UNARY) enter(UNARY_ROW, text);

/**
 * The comparison of which operation `op` on `shape`, which has no instruction, is the inverse; 0 for other operations.
 * A user that needs the inverse of the mask uses that comparison and saves the inversion.
 */
export function invertedComparison(op: number, shape: number): number {
  switch (op) {
    case OP.VNE:
      return OP.VEQ;
    case OP.VGT_U:
      return OP.VLE_U;
    case OP.VLT_U:
      return OP.VGE_U;
    case OP.VGE_S:
      return shape === SHAPE.I64X2 ? OP.VLT_S : 0;
    case OP.VLE_S:
      return shape === SHAPE.I64X2 ? OP.VGT_S : 0;
  }
  return 0;
}

/** Whether the row reads only 8 bytes of its last operand. */
export function readsHalf(row: number): boolean {
  switch (row) {
    case X.PMOVSXBW:
    case X.PMOVSXWD:
    case X.PMOVSXDQ:
    case X.PMOVZXBW:
    case X.PMOVZXWD:
    case X.PMOVZXDQ:
    case X.CVTPS2PD:
    case X.CVTDQ2PD:
      return true;
  }
  return false;
}
