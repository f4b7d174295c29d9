/**
 * Code between the thread state's SLOTS and the calling convention, per signature: entry thunks (host → wasm), parking
 * thunks (wasm → host functions and builtins), and fast entries with the machine types of the host's own calling
 * convention.
 */
import { hasFastEntry, threadSlot } from "../codegen/thunks.ts";
import { alignImage, FILLER, FUNCTION_ALIGNMENT } from "../codegen/align_image.ts";
import { type MachineCode, RELOC, STUB } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { CONTEXT, RECORD, STATUS, THREAD } from "../abi/context_layout.ts";
import { type Signature, TY, TY_BANK } from "../ir/types.ts";
import { OVERFLOW_ENTRY, paramLocations, RECORD_REGISTER, resultLocations } from "./abi.ts";
import { KIND } from "./emission.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import {
  CONTEXT_REGISTER,
  R10,
  R11,
  R12,
  R14,
  R8,
  R9,
  RAX,
  RBX,
  RCX,
  RDI,
  RDX,
  RSI,
  RSP,
  SCRATCH_VECTOR,
} from "./registers.ts";
import { StubCode } from "./stub_code.ts";

const LOAD_ROWS: Readonly<Record<number, number>> = {
  [TY.I32]: X.MOV32_L,
  [TY.I64]: X.MOV64_L,
  [TY.REF]: X.MOV64_L,
  [TY.F32]: X.MOVSS_L,
  [TY.F64]: X.MOVSD_L,
  [TY.V128]: X.MOVUPS_L,
};

const STORE_ROWS: Readonly<Record<number, number>> = {
  [TY.I32]: X.MOV32_S,
  [TY.I64]: X.MOV64_S,
  [TY.REF]: X.MOV64_S,
  [TY.F32]: X.MOVSS_S,
  [TY.F64]: X.MOVSD_S,
  [TY.V128]: X.MOVUPS_S,
};

/** Stores the values that `locations` keeps in registers to their slots. */
function storeSlots(s: StubCode, types: Uint8Array, locations: Int8Array, thread: number): void {
  for (let i = 0; i < types.length; i++) {
    if (locations[i] >= 0) s.rm(s.vexRow(STORE_ROWS[types[i]]), locations[i] & 15, thread, threadSlot(i));
  }
}

/** Loads the values that `locations` keeps in registers from their slots; the register of the thread comes last. */
function loadSlots(s: StubCode, types: Uint8Array, locations: Int8Array, thread: number): void {
  let last = -1;
  for (let i = 0; i < types.length; i++) {
    if (locations[i] === thread) last = i;
    else if (locations[i] >= 0) s.rm(s.vexRow(LOAD_ROWS[types[i]]), locations[i] & 15, thread, threadSlot(i));
  }
  if (last >= 0) s.rm(LOAD_ROWS[types[last]], thread, thread, threadSlot(last));
}

/**
 * Copies entries between the overflow buffer and the slots, from the first that is not in a register on: both have 16
 * bytes per index, so entries of register values in between are copied too, to no effect. Changes `buffer`, `index` and
 * xmm15.
 */
function copyOverflow(
  s: StubCode,
  locations: Int8Array,
  toSlots: boolean,
  thread: number,
  buffer: number,
  index: number,
): void {
  const first = locations.indexOf(-1);
  if (first < 0) return;
  const loop = s.newLabel();
  s.rm(X.MOV64_L, buffer, CONTEXT_REGISTER, CONTEXT.OVERFLOW);
  s.constant(index, BigInt(first * OVERFLOW_ENTRY));
  s.bind(loop);
  const load = s.vexRow(X.MOVUPS_L);
  const store = s.vexRow(X.MOVUPS_S);
  s.rx(load, SCRATCH_VECTOR, toSlots ? buffer : thread, index, toSlots ? 0 : THREAD.SLOTS);
  s.rx(store, SCRATCH_VECTOR, toSlots ? thread : buffer, index, toSlots ? THREAD.SLOTS : 0);
  s.ri(X.ADD64_I, index, OVERFLOW_ENTRY);
  s.ri(X.CMP32_I, index, locations.length * OVERFLOW_ENTRY);
  s.branch(CC.B, loop);
}

/**
 * Parks with `status` and the number that `number` loads into eax: arguments to slots, and on resumption results from
 * slots. rbx and r14 serve as scratch because resume reloads them.
 */
export function emitParkingThunk(
  s: StubCode,
  signature: Signature,
  status: number,
  number: (register: number) => void,
): void {
  const params = paramLocations(signature.params);
  const results = resultLocations(signature.results);
  const after = s.newLabel();
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  copyOverflow(s, params, true, R11, RBX, R14);
  storeSlots(s, signature.params, params, R11);
  number(RAX);
  s.rm(X.MOV32_S, RAX, R11, THREAD.PARK_INDEX);
  s.address(RBX, after);
  s.push(RBX);
  s.constant(RAX, BigInt(status));
  s.jumpStub(RELOC.STUB, STUB.PARK);
  s.bind(after);
  s.fixup(KIND.CALL_SITE, 0, 0, 0, 0);
  copyOverflow(s, results, false, R11, RSI, RDI);
  loadSlots(s, signature.results, results, R11);
  s.pop(R11);
  s.rr(X.JMP_M, 0, R11);
}

function begin(context: CodegenContext, code: MachineCode): StubCode {
  alignImage(code, FUNCTION_ALIGNMENT, FILLER.x64);
  return new StubCode(context, code);
}

/** Appends the thunk that a host function's record points at. */
export function emitHostThunk(signatureId: number, context: CodegenContext, code: MachineCode): void {
  const s = begin(context, code);
  code.hostThunk[signatureId] = code.length;
  emitParkingThunk(s, context.signatures[signatureId], STATUS.HOST, (to) => {
    s.rm(X.MOV32_L, to, RECORD_REGISTER, RECORD.HOST);
  });
  s.finish();
}

/**
 * Appends the thunk that enters functions of a signature: rdi = thread; CALL_CODE, CALL_RECORD and the slots hold the
 * call.
 */
export function emitEntryThunk(signatureId: number, context: CodegenContext, code: MachineCode): void {
  const s = begin(context, code);
  code.entryThunk[signatureId] = code.length;
  const signature = context.signatures[signatureId];
  const params = paramLocations(signature.params);
  const results = resultLocations(signature.results);
  copyOverflow(s, params, false, RDI, RSI, RCX);
  s.rm(X.MOV64_L, RECORD_REGISTER, RDI, THREAD.CALL_RECORD);
  s.rm(X.MOV64_L, R11, RDI, THREAD.CALL_CODE);
  loadSlots(s, signature.params, params, RDI);
  s.rr(X.CALL_M, 0, R11);
  s.fixup(KIND.CALL_SITE, 0, 0, 0, 0);
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  copyOverflow(s, results, true, R11, RSI, RDI);
  storeSlots(s, signature.results, results, R11);
  s.op(X.RET);
  s.finish();
}

/** Registers of a C function's integer parameters after the first, and the number of registers for floats. */
const HOST_INTEGERS = [RSI, RDX, RCX, R8, R9];
const HOST_FLOATS = 8;

/** The C function described at Target.fastEntry. */
export function buildFastEntry(
  signature: Signature,
  slotsAddress: bigint,
  threadAddress: bigint,
): Uint8Array | undefined {
  const { params, results } = signature;
  if (!hasFastEntry(signature, HOST_INTEGERS.length, HOST_FLOATS)) return undefined;
  const s = new StubCode();
  s.constant(R11, threadAddress);
  s.saveHost(R11);
  s.rm(X.MOV64_L, RSP, R11, THREAD.GUEST_SP);
  // Slot number → record { code, context }.
  s.rr(X.MOV32_L, RDI, RDI);
  s.ri(X.SHL64_I, RDI, 4);
  s.constant(R10, slotsAddress);
  s.rr(X.ADD64_R, R10, RDI);
  s.rm(X.MOV64_L, R12, R10, 0);
  s.rm(X.MOV64_L, CONTEXT_REGISTER, R10, 8);
  s.loadMemory();
  s.loadFuel(R11);
  moveIntegers(s, params);
  s.rr(X.CALL_M, 0, R12);
  s.constant(R11, threadAddress);
  s.storeFuel(R11);
  // The result also goes to its slot: after a park the caller is resume, which cannot pass it on.
  if (results.length === 1) s.rm(STORE_ROWS[results[0]], RAX, R11, threadSlot(0));
  s.rm(X.MOV32_SI, 0, R11, THREAD.STATUS, STATUS.DONE);
  s.returnToHost(R11);
  s.finish();
  return s.code.bytes.slice(0, s.code.length);
}

/** rsi rdx rcx r8 r9 → rax rcx rdx rsi rdi, i32 zero-extended. */
function moveIntegers(s: StubCode, params: Uint8Array): void {
  const types = params.filter((ty) => TY_BANK[ty] === 1);
  const move = (k: number) => types[k] === TY.I32 ? X.MOV32_L : X.MOV64_L;
  const n = types.length;
  if (n > 0) s.rr(move(0), RAX, RSI);
  if (n > 3) s.rr(move(3), RSI, R8);
  if (n > 4) s.rr(move(4), RDI, R9);
  if (n > 2) {
    s.rr(X.MOV64_L, R8, RCX);
    s.rr(move(1), RCX, RDX);
    s.rr(move(2), RDX, R8);
  } else if (n > 1) s.rr(move(1), RCX, RDX);
}
