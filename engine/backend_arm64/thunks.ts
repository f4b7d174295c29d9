/**
 * Code between the thread state's SLOTS and the calling convention, per signature: entry thunks (host → wasm), and
 * parking thunks (wasm → host functions and builtins). Out: their parts, of which programs make thunks
 * (codegen/stored_thunks.ts), and whole thunks.
 */
import type { AllThunkParts } from "../codegen/stored_thunks.ts";
import { threadSlot, VALUE_TYPES } from "../codegen/thunks.ts";
import { alignImage, FILLER, FUNCTION_ALIGNMENT } from "../codegen/align_image.ts";
import { type MachineCode, RELOC, STUB } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { CONTEXT, RECORD, STATUS, THREAD } from "../abi/context_layout.ts";
import { type Signature, TY, TY_BYTES } from "../ir/types.ts";
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

/** Moves a value between a register and its slot: each by an instruction of its own, none as a pair. */
function moveValue(s: StubCode, row: number, type: number, register: number, offset: number): void {
  s.rri(row, register, THREAD_REGISTER, offset / TY_BYTES[type]);
}

/** Stores the values that `locations` keeps in registers to their slots. */
function storeSlots(s: StubCode, types: Uint8Array, locations: Int8Array): void {
  for (let i = 0; i < types.length; i++) {
    if (locations[i] >= 0) moveValue(s, STORE_ROWS[types[i]], types[i], locations[i] & 31, threadSlot(i));
  }
}

/** Loads the values that `locations` keeps in registers from their slots. */
function loadSlots(s: StubCode, types: Uint8Array, locations: Int8Array): void {
  for (let i = 0; i < types.length; i++) {
    if (locations[i] >= 0) moveValue(s, LOAD_ROWS[types[i]], types[i], locations[i] & 31, threadSlot(i));
  }
}

/** Begins to copy entries of the overflow buffer, between two offsets. Changes x10, x11, x16 and x17. */
function beginCopy(s: StubCode, first: number, end: number): void {
  s.at(X.LDR_X_U, BUFFER, CONTEXT_REGISTER, CONTEXT.OVERFLOW);
  s.add(SCRATCH2, THREAD_REGISTER, THREAD.SLOTS);
  s.constant(INDEX, BigInt(first));
  s.constant(SCRATCH, BigInt(end));
}

/** Copies them. Changes x11 and v31. */
function copyLoop(s: StubCode, toSlots: boolean): void {
  const loop = s.newLabel();
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
 * Copies entries between the overflow buffer and the slots, from the first that is not in a register on: both have 16
 * bytes per index, so entries of register values in between are copied too, to no effect.
 */
function copyOverflow(s: StubCode, locations: Int8Array, toSlots: boolean): void {
  const first = locations.indexOf(-1);
  if (first < 0) return;
  beginCopy(s, first * OVERFLOW_ENTRY, locations.length * OVERFLOW_ENTRY);
  copyLoop(s, toSlots);
}

function saveLink(s: StubCode): void {
  s.pair(X.STP_PRE, ZERO, LINK, SP, -2);
}

function loadThread(s: StubCode): void {
  s.at(X.LDR_X_U, THREAD_REGISTER, CONTEXT_REGISTER, CONTEXT.THREAD);
}

function beginParking(s: StubCode): void {
  saveLink(s);
  loadThread(s);
}

/**
 * Parks with `status` and the number that `number` loads into the register it is given; continues behind the jump, with
 * the thread in x9.
 */
export function park(s: StubCode, status: number, number: (register: number) => void): void {
  const after = s.newLabel();
  number(BUFFER);
  s.at(X.STR_W_U, BUFFER, THREAD_REGISTER, THREAD.PARK_INDEX);
  s.address(SCRATCH2, after);
  s.constant(0, BigInt(status));
  s.jumpStub(RELOC.STUB, STUB.PARK);
  s.bind(after);
}

function endParking(s: StubCode): void {
  s.pair(X.LDP_POST, ZERO, LINK, SP, 2);
  // Not a return: the return stack has no entry for this call.
  s.rrr(X.BR, 0, LINK, 0);
}

/** Leaves for the host by `leave`: arguments to slots, and on resumption results from slots. */
export function emitParkingThunk(s: StubCode, signature: Signature, leave: (s: StubCode) => void): void {
  const params = paramLocations(signature.params);
  const results = resultLocations(signature.results);
  beginParking(s);
  copyOverflow(s, params, true);
  storeSlots(s, signature.params, params);
  leave(s);
  s.fixup(KIND.CALL_SITE, 8, 0, 0, 0);
  copyOverflow(s, results, false);
  loadSlots(s, signature.results, results);
  endParking(s);
}

function begin(context: CodegenContext, code: MachineCode): StubCode {
  alignImage(code, FUNCTION_ALIGNMENT, FILLER.arm64);
  return new StubCode(context, code);
}

function parkForHost(s: StubCode): void {
  park(s, STATUS.HOST, (to) => s.at(X.LDR_W_U, to, RECORD_REGISTER, RECORD.HOST));
}

/** Appends the thunk that a host function's record points at. */
export function emitHostThunk(signatureId: number, context: CodegenContext, code: MachineCode): void {
  const s = begin(context, code);
  code.hostThunk[signatureId] = code.length;
  emitParkingThunk(s, context.signatures[signatureId], parkForHost);
  s.finish();
}

/** Loads the record and the code of the callee. */
function loadCallee(s: StubCode): void {
  s.at(X.LDR_X_U, RECORD_REGISTER, THREAD_REGISTER, THREAD.CALL_RECORD);
  s.at(X.LDR_X_U, CODE, THREAD_REGISTER, THREAD.CALL_CODE);
}

function call(s: StubCode): void {
  s.rrr(X.BLR, 0, CODE, 0);
}

function endEntry(s: StubCode): void {
  s.pair(X.LDP_POST, ZERO, LINK, SP, 2);
  s.ret();
}

/**
 * Appends the thunk that enters functions of a signature: x9 = thread; CALL_CODE, CALL_RECORD and the slots hold the
 * call.
 */
export function emitEntryThunk(signatureId: number, context: CodegenContext, code: MachineCode): void {
  const s = begin(context, code);
  code.entryThunk[signatureId] = code.length;
  const signature = context.signatures[signatureId];
  const params = paramLocations(signature.params);
  const results = resultLocations(signature.results);
  saveLink(s);
  copyOverflow(s, params, false);
  loadCallee(s);
  loadSlots(s, signature.params, params);
  call(s);
  s.fixup(KIND.CALL_SITE, 8, 0, 0, 0);
  loadThread(s);
  copyOverflow(s, results, true);
  storeSlots(s, signature.results, results);
  endEntry(s);
  s.finish();
}

/** The parts of thunks in which target.ts fills in registers and offsets, which are 0 here. */
export function thunkParts(context: CodegenContext): AllThunkParts<Uint8Array> {
  const bytesOf = (emit: (s: StubCode) => void): Uint8Array => {
    const s = new StubCode(context);
    emit(s);
    s.finish();
    return s.code.bytes.slice(0, s.code.length);
  };
  const nothing = new Uint8Array(0);
  const values = (rows: Readonly<Record<number, number>>, toSlots: boolean) => ({
    range: bytesOf((s) => beginCopy(s, 0, 0)),
    loops: [bytesOf((s) => copyLoop(s, toSlots))],
    moves: VALUE_TYPES.map((type) => bytesOf((s) => moveValue(s, rows[type], type, 0, 0))),
  });
  return {
    entry: {
      start: bytesOf(saveLink),
      ready: bytesOf(loadCallee),
      leave: bytesOf(call),
      resume: bytesOf(loadThread),
      end: bytesOf(endEntry),
      params: values(LOAD_ROWS, false),
      results: values(STORE_ROWS, true),
    },
    host: {
      start: bytesOf(beginParking),
      ready: nothing,
      leave: bytesOf(parkForHost),
      resume: nothing,
      end: bytesOf(endParking),
      params: values(STORE_ROWS, true),
      results: values(LOAD_ROWS, false),
    },
  };
}
