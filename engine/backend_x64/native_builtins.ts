/**
 * Native builtins: machine code that leaves for the host only between the pieces of very large operations, where the
 * runtime checks the limits of the call. Bounds were checked by the caller, so nothing here faults. Short sizes use
 * overlapping accesses, all loads before all stores; long ones 64 bytes per iteration, or the string instructions,
 * which are fastest for very long runs.
 *
 * Parameters as in abi.ts: rax, rcx, rdx. Changes rax, rcx, rdx, rsi, rdi, r8, r9 and xmm0-xmm7 only (NATIVE_CLOBBERS).
 */
import { BUILTIN, NO_BYTES, PIECE_BYTES } from "../abi/builtins.ts";
import { RELOC, STUB } from "../codegen/machine_code.ts";
import { KIND } from "./emission.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { R11, R8, R9, RAX, RCX, RDI, RDX, RSI } from "./registers.ts";
import type { StubCode } from "./stub_code.ts";

/** Registers that the routines here may change. */
export const NATIVE_CLOBBERS = {
  general: (1 << RAX) | (1 << RCX) | (1 << RDX) | (1 << RSI) | (1 << RDI) | (1 << R8) | (1 << R9),
  vector: 0xff,
} as const;

/** The number of bytes from which on the string instructions are used. */
const STRING_FROM = 4096;

interface Access {
  load: number;
  store: number;
}

const WORDS: readonly { bytes: number; rows: Access }[] = [
  { bytes: 8, rows: { load: X.MOV64_L, store: X.MOV64_S } },
  { bytes: 4, rows: { load: X.MOV32_L, store: X.MOV32_S } },
  { bytes: 2, rows: { load: X.MOVZX32_16, store: X.MOV16_S } },
];

/** memory_move(to: rax, from: rcx, count: rdx) */
export function emitMemoryMove(s: StubCode): void {
  const load = s.vexRow(X.MOVUPS_L);
  const store = s.vexRow(X.MOVUPS_S);
  const short = s.newLabel();
  const middle = s.newLabel();
  const long = s.newLabel();
  s.ri(X.CMP64_I, RDX, 16);
  s.branch(CC.B, short);
  s.ri(X.CMP64_I, RDX, 32);
  s.branch(CC.A, middle);
  s.rm(load, 0, RCX, 0);
  s.rx(load, 1, RCX, RDX, -16);
  s.rm(store, 0, RAX, 0);
  s.rx(store, 1, RAX, RDX, -16);
  s.op(X.RET);
  s.bind(middle);
  s.ri(X.CMP64_I, RDX, 64);
  s.branch(CC.A, long);
  s.rm(load, 0, RCX, 0);
  s.rm(load, 1, RCX, 16);
  s.rx(load, 2, RCX, RDX, -32);
  s.rx(load, 3, RCX, RDX, -16);
  s.rm(store, 0, RAX, 0);
  s.rm(store, 1, RAX, 16);
  s.rx(store, 2, RAX, RDX, -32);
  s.rx(store, 3, RAX, RDX, -16);
  s.op(X.RET);
  moveLong(s, long, load, store);
  moveShort(s, short);
}

/** More than 64 bytes: forwards unless the destination begins inside the source. */
function moveLong(s: StubCode, label: number, load: number, store: number): void {
  const forwards = s.newLabel();
  const backwards = s.newLabel();
  const string = s.newLabel();
  const forwardLoop = s.newLabel();
  const pieces = s.newLabel();
  s.bind(label);
  s.ri(X.CMP64_I, RDX, PIECE_BYTES);
  s.branch(CC.A, pieces);
  s.rr(X.MOV64_L, R8, RAX);
  s.rr(X.SUB64_R, R8, RCX);
  s.rr(X.CMP64_R, R8, RDX);
  s.branch(CC.B, backwards);
  s.ri(X.CMP64_I, RDX, STRING_FROM);
  s.branch(CC.AE, string);
  s.bind(forwards);
  // The last 64 bytes are read first: the loop may overwrite them.
  for (let k = 0; k < 4; k++) s.rx(load, 4 + k, RCX, RDX, -64 + k * 16);
  s.rm(X.LEA64, R8, RDX, -64);
  s.rr(X.XOR32_R, R9, R9);
  s.bind(forwardLoop);
  for (let k = 0; k < 4; k++) s.rx(load, k, RCX, R9, k * 16);
  for (let k = 0; k < 4; k++) s.rx(store, k, RAX, R9, k * 16);
  s.ri(X.ADD64_I, R9, 64);
  s.rr(X.CMP64_R, R9, R8);
  s.branch(CC.B, forwardLoop);
  for (let k = 0; k < 4; k++) s.rx(store, 4 + k, RAX, RDX, -64 + k * 16);
  s.op(X.RET);

  s.bind(string);
  // The string move is very slow if the source is a few bytes ahead of the destination.
  s.rr(X.MOV64_L, R8, RCX);
  s.rr(X.SUB64_R, R8, RAX);
  s.ri(X.CMP64_I, R8, 64);
  s.branch(CC.B, forwards);
  s.rr(X.MOV64_L, RDI, RAX);
  s.rr(X.MOV64_L, RSI, RCX);
  s.rr(X.MOV64_L, RCX, RDX);
  s.op(X.REP_MOVSB);
  s.op(X.RET);

  const backwardLoop = s.newLabel();
  s.bind(backwards);
  for (let k = 0; k < 4; k++) s.rm(load, 4 + k, RCX, k * 16);
  s.rm(X.LEA64, R9, RDX, -64);
  s.bind(backwardLoop);
  for (let k = 0; k < 4; k++) s.rx(load, k, RCX, R9, k * 16);
  for (let k = 0; k < 4; k++) s.rx(store, k, RAX, R9, k * 16);
  s.ri(X.SUB64_I, R9, 64);
  s.branch(CC.G, backwardLoop);
  for (let k = 0; k < 4; k++) s.rm(store, 4 + k, RAX, k * 16);
  s.op(X.RET);
  movePieces(s, pieces);
}

/** Calls this builtin for one piece; rax, rcx and rdx are those before. */
function callForPiece(s: StubCode, builtin: number): void {
  for (const register of [RAX, RCX, RDX]) s.push(register);
  s.constant(RDX, BigInt(PIECE_BYTES));
  s.callStub(RELOC.STUB, STUB.BUILTIN + builtin);
  for (const register of [RDX, RCX, RAX]) s.pop(register);
}

/** Calls the runtime, which traps if the time of the call is up. No register but r11 changes. */
function checkTime(s: StubCode): void {
  s.constant(R11, BigInt(NO_BYTES));
  s.callStub(RELOC.STUB, STUB.ALLOCATE);
  s.fixup(KIND.CALL_SITE, 0, 0, 0, 0);
}

/** More than PIECE_BYTES: piece by piece, the last one first if the destination begins inside the source. */
function movePieces(s: StubCode, label: number): void {
  const forwards = s.newLabel();
  const backwards = s.newLabel();
  s.bind(label);
  s.rr(X.MOV64_L, R8, RAX);
  s.rr(X.SUB64_R, R8, RCX);
  s.rr(X.CMP64_R, R8, RDX);
  s.branch(CC.B, backwards);
  s.bind(forwards);
  callForPiece(s, BUILTIN.memory_move);
  s.ri(X.ADD64_I, RAX, PIECE_BYTES);
  s.ri(X.ADD64_I, RCX, PIECE_BYTES);
  s.ri(X.SUB64_I, RDX, PIECE_BYTES);
  checkTime(s);
  s.ri(X.CMP64_I, RDX, PIECE_BYTES);
  s.branch(CC.A, forwards);
  s.jumpStub(RELOC.STUB, STUB.BUILTIN + BUILTIN.memory_move);

  s.bind(backwards);
  s.ri(X.SUB64_I, RDX, PIECE_BYTES);
  s.rr(X.ADD64_R, RAX, RDX);
  s.rr(X.ADD64_R, RCX, RDX);
  callForPiece(s, BUILTIN.memory_move);
  s.rr(X.SUB64_R, RAX, RDX);
  s.rr(X.SUB64_R, RCX, RDX);
  checkTime(s);
  s.ri(X.CMP64_I, RDX, PIECE_BYTES);
  s.branch(CC.A, backwards);
  s.jumpStub(RELOC.STUB, STUB.BUILTIN + BUILTIN.memory_move);
}

/** Fewer than 16 bytes: the first and the last word, which overlap. */
function moveShort(s: StubCode, label: number): void {
  s.bind(label);
  for (const { bytes, rows } of WORDS) {
    const less = s.newLabel();
    s.ri(X.CMP32_I, RDX, bytes);
    s.branch(CC.B, less);
    s.rm(rows.load, R8, RCX, 0);
    s.rx(rows.load, R9, RCX, RDX, -bytes);
    s.rm(rows.store, R8, RAX, 0);
    s.rx(rows.store, R9, RAX, RDX, -bytes);
    s.op(X.RET);
    s.bind(less);
  }
  const none = s.newLabel();
  s.rr(X.TEST32_M, RDX, RDX);
  s.branch(CC.E, none);
  s.rm(X.MOVZX32_8, R8, RCX, 0);
  s.rm(X.MOV8_S, R8, RAX, 0);
  s.bind(none);
  s.op(X.RET);
}

/** memory_set(to: rax, byte: ecx, count: rdx) */
export function emitMemorySet(s: StubCode): void {
  const store = s.vexRow(X.MOVUPS_S);
  const short = s.newLabel();
  const middle = s.newLabel();
  const long = s.newLabel();
  const string = s.newLabel();
  const loop = s.newLabel();
  const pieces = s.newLabel();
  s.rr(X.MOVZX32_8, RCX, RCX);
  s.constant(R8, 0x0101010101010101n);
  s.rr(X.IMUL64_R, R8, RCX);
  s.ri(X.CMP64_I, RDX, 16);
  s.branch(CC.B, short);
  s.rr(s.vexRow(X.MOVQ_X), 0, R8);
  s.vectorTied(X.MOVLHPS, 0, 0);
  s.ri(X.CMP64_I, RDX, 32);
  s.branch(CC.A, middle);
  s.rm(store, 0, RAX, 0);
  s.rx(store, 0, RAX, RDX, -16);
  s.op(X.RET);
  s.bind(middle);
  s.ri(X.CMP64_I, RDX, 64);
  s.branch(CC.A, long);
  s.rm(store, 0, RAX, 0);
  s.rm(store, 0, RAX, 16);
  s.rx(store, 0, RAX, RDX, -32);
  s.rx(store, 0, RAX, RDX, -16);
  s.op(X.RET);

  s.bind(long);
  s.ri(X.CMP64_I, RDX, STRING_FROM);
  s.branch(CC.AE, string);
  s.rm(X.LEA64, R8, RDX, -64);
  s.rr(X.XOR32_R, R9, R9);
  s.bind(loop);
  for (let k = 0; k < 4; k++) s.rx(store, 0, RAX, R9, k * 16);
  s.ri(X.ADD64_I, R9, 64);
  s.rr(X.CMP64_R, R9, R8);
  s.branch(CC.B, loop);
  for (let k = 0; k < 4; k++) s.rx(store, 0, RAX, RDX, -64 + k * 16);
  s.op(X.RET);

  s.bind(string);
  s.ri(X.CMP64_I, RDX, PIECE_BYTES);
  s.branch(CC.A, pieces);
  s.rr(X.MOV64_L, RDI, RAX);
  s.rr(X.MOV32_L, RAX, RCX);
  s.rr(X.MOV64_L, RCX, RDX);
  s.op(X.REP_STOSB);
  s.op(X.RET);

  s.bind(pieces);
  callForPiece(s, BUILTIN.memory_set);
  s.ri(X.ADD64_I, RAX, PIECE_BYTES);
  s.ri(X.SUB64_I, RDX, PIECE_BYTES);
  checkTime(s);
  s.ri(X.CMP64_I, RDX, PIECE_BYTES);
  s.branch(CC.A, pieces);
  s.jumpStub(RELOC.STUB, STUB.BUILTIN + BUILTIN.memory_set);

  s.bind(short);
  for (const { bytes, rows } of WORDS) {
    const less = s.newLabel();
    s.ri(X.CMP32_I, RDX, bytes);
    s.branch(CC.B, less);
    s.rm(rows.store, R8, RAX, 0);
    s.rx(rows.store, R8, RAX, RDX, -bytes);
    s.op(X.RET);
    s.bind(less);
  }
  const none = s.newLabel();
  s.rr(X.TEST32_M, RDX, RDX);
  s.branch(CC.E, none);
  s.rm(X.MOV8_S, R8, RAX, 0);
  s.bind(none);
  s.op(X.RET);
}
