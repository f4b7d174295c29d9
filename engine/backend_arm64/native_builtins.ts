/**
 * Native builtins: machine code that leaves for the host only between the pieces of very large operations, where the
 * runtime checks the limits of the call. Bounds were checked by the caller, so nothing here faults. Sizes up to 32 use
 * overlapping accesses, all loads before all stores; long ones 32 bytes per iteration, with the remainder read first
 * and written last.
 *
 * Parameters as in abi.ts: x0, x1, x2. Changes x0-x5 and v0-v3 only (NATIVE_CLOBBERS).
 */
import { BUILTIN, NO_BYTES, PIECE_BYTES } from "../abi/builtins.ts";
import { RELOC, STUB } from "../codegen/machine_code.ts";
import { KIND } from "./emission.ts";
import { encode } from "./encoding.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { LINK, SCRATCH, SP, ZERO } from "./registers.ts";
import type { StubCode } from "./stub_code.ts";

/** Registers that the routines here may change. */
export const NATIVE_CLOBBERS = { general: 0x3f, vector: 0xf } as const;

const TO = 0;
const FROM = 1;
const COUNT = 2;
const END = 3;

/** Accesses of halving sizes, for fewer than 16 bytes. */
const WORDS = [
  { bytes: 8, load: X.LDR_X_U, store: X.STR_X_U },
  { bytes: 4, load: X.LDR_W_U, store: X.STR_W_U },
  { bytes: 2, load: X.LDRH_U, store: X.STRH_U },
  { bytes: 1, load: X.LDRB_U, store: X.STRB_U },
];

/** t at [base + COUNT − bytes]; changes x5. */
function atEnd(s: StubCode, row: number, t: number, base: number, bytes: number): void {
  s.rrr(X.ADD64, 5, base, COUNT);
  s.at(row, t, 5, -bytes);
}

/** Branches to `label` if COUNT is more than PIECE_BYTES. Changes x3. */
function branchIfPieces(s: StubCode, label: number): void {
  s.constant(END, BigInt(PIECE_BYTES));
  s.rrr(X.SUBS64, ZERO, COUNT, END);
  s.branch(CC.HI, label);
}

/** Calls this builtin for one piece; x0, x1, x2 and x30 are those before. */
function callForPiece(s: StubCode, builtin: number): void {
  s.pair(X.STP_PRE, COUNT, LINK, SP, -2);
  s.pair(X.STP_PRE, TO, FROM, SP, -2);
  s.constant(COUNT, BigInt(PIECE_BYTES));
  s.callStub(RELOC.STUB, STUB.BUILTIN + builtin);
  s.pair(X.LDP_POST, TO, FROM, SP, 2);
  s.pair(X.LDP_POST, COUNT, LINK, SP, 2);
}

/** Calls the runtime, which traps if the time of the call is up. No register but x16, x17 and v31 changes. */
function checkTime(s: StubCode): void {
  s.pair(X.STP_PRE, ZERO, LINK, SP, -2);
  s.constant(SCRATCH, BigInt(NO_BYTES));
  s.callStub(RELOC.STUB, STUB.ALLOCATE);
  s.fixup(KIND.CALL_SITE, 8, 0, 0, 0);
  s.pair(X.LDP_POST, ZERO, LINK, SP, 2);
}

/** More than PIECE_BYTES: piece by piece, the last one first if the destination begins inside the source. */
function movePieces(s: StubCode, label: number): void {
  const forwards = s.newLabel();
  const backwards = s.newLabel();
  s.bind(label);
  s.rrr(X.SUB64, END, TO, FROM);
  s.rrr(X.SUBS64, ZERO, END, COUNT);
  s.branch(CC.LO, backwards);
  s.bind(forwards);
  callForPiece(s, BUILTIN.memory_move);
  s.add(TO, TO, PIECE_BYTES);
  s.add(FROM, FROM, PIECE_BYTES);
  s.add(COUNT, COUNT, -PIECE_BYTES);
  checkTime(s);
  branchIfPieces(s, forwards);
  s.jumpStub(RELOC.STUB, STUB.BUILTIN + BUILTIN.memory_move);

  s.bind(backwards);
  s.add(COUNT, COUNT, -PIECE_BYTES);
  s.rrr(X.ADD64, TO, TO, COUNT);
  s.rrr(X.ADD64, FROM, FROM, COUNT);
  callForPiece(s, BUILTIN.memory_move);
  s.rrr(X.SUB64, TO, TO, COUNT);
  s.rrr(X.SUB64, FROM, FROM, COUNT);
  checkTime(s);
  branchIfPieces(s, backwards);
  s.jumpStub(RELOC.STUB, STUB.BUILTIN + BUILTIN.memory_move);
}

/** memory_move(to: x0, from: x1, count: x2) */
export function emitMemoryMove(s: StubCode): void {
  const short = s.newLabel();
  const pieces = s.newLabel();
  const long = s.newLabel();
  const backwards = s.newLabel();
  const forwardLoop = s.newLabel();
  const backwardLoop = s.newLabel();
  s.compare(COUNT, 16);
  s.branch(CC.LO, short);
  s.compare(COUNT, 32);
  s.branch(CC.HI, long);
  s.at(X.LDR_Q_U, 0, FROM, 0);
  atEnd(s, X.LDR_Q_U, 1, FROM, 16);
  s.at(X.STR_Q_U, 0, TO, 0);
  atEnd(s, X.STR_Q_U, 1, TO, 16);
  s.ret();

  s.bind(long);
  branchIfPieces(s, pieces);
  // Forwards unless the destination begins inside the source.
  s.rrr(X.SUB64, END, TO, FROM);
  s.rrr(X.SUBS64, ZERO, END, COUNT);
  s.branch(CC.LO, backwards);
  // The last 32 bytes are read first: the loop may overwrite them.
  atEnd(s, X.LDR_Q_U, 2, FROM, 32);
  atEnd(s, X.LDR_Q_U, 3, FROM, 16);
  s.rrr(X.ADD64, END, TO, COUNT);
  s.add(4, END, -32);
  s.bind(forwardLoop);
  s.pair(X.LDP_Q, 0, 1, FROM, 0);
  s.add(FROM, FROM, 32);
  s.pair(X.STP_Q, 0, 1, TO, 0);
  s.add(TO, TO, 32);
  s.rrr(X.SUBS64, ZERO, TO, 4);
  s.branch(CC.LO, forwardLoop);
  s.pair(X.STP_Q, 2, 3, END, -2);
  s.ret();

  s.bind(backwards);
  s.pair(X.LDP_Q, 2, 3, FROM, 0);
  s.rrr(X.ADD64, FROM, FROM, COUNT);
  s.rrr(X.ADD64, END, TO, COUNT);
  s.add(4, TO, 32);
  s.bind(backwardLoop);
  s.pair(X.LDP_Q, 0, 1, FROM, -2);
  s.add(FROM, FROM, -32);
  s.pair(X.STP_Q, 0, 1, END, -2);
  s.add(END, END, -32);
  s.rrr(X.SUBS64, ZERO, END, 4);
  s.branch(CC.HI, backwardLoop);
  s.pair(X.STP_Q, 2, 3, TO, 0);
  s.ret();

  movePieces(s, pieces);

  // Fewer than 16 bytes: the first and the last word, which overlap.
  s.bind(short);
  for (const { bytes, load, store } of WORDS) {
    const less = s.newLabel();
    s.compare(COUNT, bytes);
    s.branch(CC.LO, less);
    s.at(load, 3, FROM, 0);
    atEnd(s, load, 4, FROM, bytes);
    s.at(store, 3, TO, 0);
    atEnd(s, store, 4, TO, bytes);
    s.ret();
    s.bind(less);
  }
  s.ret();
}

/** memory_set(to: x0, byte: w1, count: x2) */
export function emitMemorySet(s: StubCode): void {
  const short = s.newLabel();
  const loop = s.newLabel();
  const end = s.newLabel();
  const pieces = s.newLabel();
  branchIfPieces(s, pieces);
  s.rrr(X.DUP_R_16B, 0, FROM, 0);
  s.rrr(X.FMOV_XD, 3, 0, 0);
  s.compare(COUNT, 16);
  s.branch(CC.LO, short);
  s.rrr(X.ADD64, 4, TO, COUNT);
  s.add(5, 4, -16);
  s.bind(loop);
  s.rrr(X.SUBS64, ZERO, TO, 5);
  s.branch(CC.HS, end);
  s.at(X.STR_Q_U, 0, TO, 0);
  s.add(TO, TO, 16);
  s.jump(loop);
  s.bind(end);
  s.at(X.STR_Q_U, 0, 4, -16);
  s.ret();

  s.bind(pieces);
  callForPiece(s, BUILTIN.memory_set);
  s.add(TO, TO, PIECE_BYTES);
  s.add(COUNT, COUNT, -PIECE_BYTES);
  checkTime(s);
  branchIfPieces(s, pieces);
  s.jumpStub(RELOC.STUB, STUB.BUILTIN + BUILTIN.memory_set);

  s.bind(short);
  for (const { bytes, store } of WORDS) {
    const less = s.newLabel();
    s.compare(COUNT, bytes);
    s.branch(CC.LO, less);
    s.at(store, 3, TO, 0);
    atEnd(s, store, 3, TO, bytes);
    s.ret();
    s.bind(less);
  }
  s.ret();
}

/**
 * void maintain(first: x0, end: x1): makes freshly written code visible to instruction fetch: clean the data cache to
 * the point of unification, invalidate the instruction cache, each by its own line size (CTR_EL0), and synchronize.
 */
export function emitCacheMaintenance(s: StubCode): void {
  const lines = (shift: number, row: number) => {
    const loop = s.newLabel();
    // x3 = bytes of a line, x4 = first line.
    s.rri(X.UBFM64, 3, 2, shift, shift + 3);
    s.constant(4, 4n);
    s.rrr(X.LSLV64, 3, 4, 3);
    s.rri(X.SUB_I64, 4, 3, 1);
    s.rrr(X.BIC64, 4, 0, 4);
    s.bind(loop);
    s.asm.reserve(64);
    s.asm.word(encode(row, 4, 0, 0, 0, 0, 0, 0, 0));
    s.rrr(X.ADD64, 4, 4, 3);
    s.rrr(X.SUBS64, ZERO, 4, 1);
    s.branch(CC.LO, loop);
    s.rrr(X.DSB_ISH, 0, 0, 0);
  };
  s.rrr(X.MRS_CTR, 2, 0, 0);
  lines(16, X.DC_CVAU);
  lines(0, X.IC_IVAU);
  s.rrr(X.ISB, 0, 0, 0);
  s.ret();
}
