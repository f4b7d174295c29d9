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
import { encode } from "./encoding.ts";
import { KIND } from "./emission.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { CONTEXT_REGISTER, LINK, SCRATCH, SCRATCH2, SCRATCH_VECTOR, SP, THREAD_REGISTER, ZERO } from "./registers.ts";
import { StubCode } from "./stub_code.ts";

const BUFFER = 10;
const INDEX = 11;
const CODE = 12;

const LOAD_ROWS: Readonly<Record<number, number>> = {
  [TY.I32]: X.LDR_W_U,
  [TY.I64]: X.LDR_X_U,
  [TY.REF]: X.LDR_X_U,
  [TY.F32]: X.LDR_S_U,
  [TY.F64]: X.LDR_D_U,
  [TY.V128]: X.LDR_Q_U,
};

const STORE_ROWS: Readonly<Record<number, number>> = {
  [TY.I32]: X.STR_W_U,
  [TY.I64]: X.STR_X_U,
  [TY.REF]: X.STR_X_U,
  [TY.F32]: X.STR_S_U,
  [TY.F64]: X.STR_D_U,
  [TY.V128]: X.STR_Q_U,
};

/** Stores the values that `locations` keeps in registers to their slots. */
function storeSlots(s: StubCode, types: Uint8Array, locations: Int8Array): void {
  for (let i = 0; i < types.length; i++) {
    if (locations[i] >= 0) s.at(STORE_ROWS[types[i]], locations[i] & 31, THREAD_REGISTER, threadSlot(i));
  }
}

/** Loads the values that `locations` keeps in registers from their slots. */
function loadSlots(s: StubCode, types: Uint8Array, locations: Int8Array): void {
  for (let i = 0; i < types.length; i++) {
    if (locations[i] >= 0) s.at(LOAD_ROWS[types[i]], locations[i] & 31, THREAD_REGISTER, threadSlot(i));
  }
}

/**
 * Copies entries between the overflow buffer and the slots, from the first that is not in a register on: both have 16
 * bytes per index, so entries of register values in between are copied too, to no effect. Changes x10, x11, x16, x17
 * and v31.
 */
function copyOverflow(s: StubCode, locations: Int8Array, toSlots: boolean): void {
  const first = locations.indexOf(-1);
  if (first < 0) return;
  const loop = s.newLabel();
  s.at(X.LDR_X_U, BUFFER, CONTEXT_REGISTER, CONTEXT.OVERFLOW);
  s.add(SCRATCH2, THREAD_REGISTER, THREAD.SLOTS);
  s.constant(INDEX, BigInt(first * OVERFLOW_ENTRY));
  s.constant(SCRATCH, BigInt(locations.length * OVERFLOW_ENTRY));
  s.bind(loop);
  const indexed = (row: number, base: number) => {
    s.asm.reserve(64);
    s.asm.word(encode(row, SCRATCH_VECTOR, base, INDEX, 0, 0, 3, 0, 0));
  };
  indexed(X.LDR_Q_X, toSlots ? BUFFER : SCRATCH2);
  indexed(X.STR_Q_X, toSlots ? SCRATCH2 : BUFFER);
  s.add(INDEX, INDEX, OVERFLOW_ENTRY);
  s.rrr(X.SUBS64, ZERO, INDEX, SCRATCH);
  s.branch(CC.LO, loop);
}

/**
 * Parks with `status` and the number that `number` loads into the register it is given: arguments to slots, and on
 * resumption results from slots.
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
  s.pair(X.STP_PRE, ZERO, LINK, SP, -2);
  s.at(X.LDR_X_U, THREAD_REGISTER, CONTEXT_REGISTER, CONTEXT.THREAD);
  copyOverflow(s, params, true);
  storeSlots(s, signature.params, params);
  number(BUFFER);
  s.at(X.STR_W_U, BUFFER, THREAD_REGISTER, THREAD.PARK_INDEX);
  s.address(SCRATCH2, after);
  s.constant(0, BigInt(status));
  s.jumpStub(RELOC.STUB, STUB.PARK);
  s.bind(after);
  s.fixup(KIND.CALL_SITE, 8, 0, 0, 0);
  // Resuming leaves the thread in x9.
  copyOverflow(s, results, false);
  loadSlots(s, signature.results, results);
  s.pair(X.LDP_POST, ZERO, LINK, SP, 2);
  // Not a return: the return stack has no entry for this call.
  s.rrr(X.BR, 0, LINK, 0);
}

function begin(context: CodegenContext, code: MachineCode): StubCode {
  alignImage(code, FUNCTION_ALIGNMENT, FILLER.arm64);
  return new StubCode(context, code);
}

/** Appends the thunk that a host function's record points at. */
export function emitHostThunk(signatureId: number, context: CodegenContext, code: MachineCode): void {
  const s = begin(context, code);
  code.hostThunk[signatureId] = code.length;
  emitParkingThunk(s, context.signatures[signatureId], STATUS.HOST, (to) => {
    s.at(X.LDR_W_U, to, RECORD_REGISTER, RECORD.HOST);
  });
  s.finish();
}

/**
 * Appends the thunk that enters functions of a signature: x9 = thread; CALL_CODE, CALL_RECORD and the slots hold the
 * call.
 */
export function emitEntryThunk(signatureId: number, context: CodegenContext, code: MachineCode): void {
  const s = begin(context, code);
  code.entryThunk[signatureId] = code.length;
  const signature = context.signatures[signatureId];
  s.pair(X.STP_PRE, ZERO, LINK, SP, -2);
  copyOverflow(s, paramLocations(signature.params), false);
  s.at(X.LDR_X_U, RECORD_REGISTER, THREAD_REGISTER, THREAD.CALL_RECORD);
  s.at(X.LDR_X_U, CODE, THREAD_REGISTER, THREAD.CALL_CODE);
  loadSlots(s, signature.params, paramLocations(signature.params));
  s.rrr(X.BLR, 0, CODE, 0);
  s.fixup(KIND.CALL_SITE, 8, 0, 0, 0);
  s.at(X.LDR_X_U, THREAD_REGISTER, CONTEXT_REGISTER, CONTEXT.THREAD);
  copyOverflow(s, resultLocations(signature.results), true);
  storeSlots(s, signature.results, resultLocations(signature.results));
  s.pair(X.LDP_POST, ZERO, LINK, SP, 2);
  s.ret();
  s.finish();
}

/** Integer parameters after the first, and floats, that a C function receives in registers. */
const HOST_INTEGERS = 6;
const HOST_FLOATS = 8;

/** The C function described at Target.fastEntry. */
export function buildFastEntry(
  signature: Signature,
  slotsAddress: bigint,
  threadAddress: bigint,
): Uint8Array | undefined {
  const { params, results } = signature;
  if (!hasFastEntry(signature, HOST_INTEGERS, HOST_FLOATS)) return undefined;
  const s = new StubCode();
  s.constant(THREAD_REGISTER, threadAddress);
  s.saveHost(THREAD_REGISTER);
  s.enterStack(THREAD_REGISTER);
  // Slot number → record { code, context }.
  s.constant(BUFFER, slotsAddress);
  s.asm.rrri(X.ADD_E64, BUFFER, BUFFER, 0, 4, 2);
  s.at(X.LDR_X_U, CODE, BUFFER, 0);
  s.at(X.LDR_X_U, CONTEXT_REGISTER, BUFFER, 8);
  s.loadMemory();
  s.loadFuel(THREAD_REGISTER);
  // Integers move one register down, i32 zero-extended; floats are where they belong.
  const types = params.filter((ty) => TY_BANK[ty] === 1);
  types.forEach((ty, k) => s.rrr(ty === TY.I32 ? X.ORR32 : X.ORR64, k, ZERO, k + 1));
  s.rrr(X.BLR, 0, CODE, 0);
  s.constant(THREAD_REGISTER, threadAddress);
  s.storeFuel(THREAD_REGISTER);
  // The result also goes to its slot: after a park the caller is resume, which cannot pass it on.
  if (results.length === 1) s.at(STORE_ROWS[results[0]], 0, THREAD_REGISTER, threadSlot(0));
  s.at(X.STR_W_U, ZERO, THREAD_REGISTER, THREAD.STATUS);
  s.returnToHost(THREAD_REGISTER);
  s.finish();
  return s.code.bytes.slice(0, s.code.length);
}
