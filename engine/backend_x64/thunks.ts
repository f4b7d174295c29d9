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
import { type Signature, TY, TY_BANK } from "../ir/types.ts";
import { OVERFLOW_ENTRY, paramLocations, RECORD_REGISTER, resultLocations } from "./abi.ts";
import { KIND } from "./emission.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { CONTEXT_REGISTER, R11, R14, R8, RAX, RBX, RCX, RDI, RSI, SCRATCH_VECTOR } from "./registers.ts";
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

/** The registers that copying entries of the overflow buffer changes, besides xmm15. */
interface CopyRegisters {
  readonly thread: number;
  readonly buffer: number;
  readonly index: number;
}

/** Loads the address of the overflow buffer and the offset of its first entry that is copied. */
function beginCopy(s: StubCode, { buffer, index }: CopyRegisters, first: number): void {
  s.rm(X.MOV64_L, buffer, CONTEXT_REGISTER, CONTEXT.OVERFLOW);
  s.constant(index, BigInt(first));
}

/** Copies entries up to the offset `end`. */
function copyLoop(s: StubCode, { thread, buffer, index }: CopyRegisters, toSlots: boolean, end: number): void {
  const loop = s.newLabel();
  s.bind(loop);
  const load = s.vexRow(X.MOVUPS_L);
  const store = s.vexRow(X.MOVUPS_S);
  s.rx(load, SCRATCH_VECTOR, toSlots ? buffer : thread, index, toSlots ? 0 : THREAD.SLOTS);
  s.rx(store, SCRATCH_VECTOR, toSlots ? thread : buffer, index, toSlots ? THREAD.SLOTS : 0);
  s.ri(X.ADD64_I, index, OVERFLOW_ENTRY);
  s.ri(X.CMP32_I, index, end);
  s.branch(CC.B, loop);
}

/**
 * Copies entries between the overflow buffer and the slots, from the first that is not in a register on: both have 16
 * bytes per index, so entries of register values in between are copied too, to no effect.
 */
function copyOverflow(s: StubCode, locations: Int8Array, toSlots: boolean, registers: CopyRegisters): void {
  const first = locations.indexOf(-1);
  if (first < 0) return;
  beginCopy(s, registers, first * OVERFLOW_ENTRY);
  copyLoop(s, registers, toSlots, locations.length * OVERFLOW_ENTRY);
}

/** Parameters at entry, arguments when parking, and results. rbx and r14 are scratch because resume reloads them. */
const ENTRY_COPY: CopyRegisters = { thread: RDI, buffer: RSI, index: RCX };
const PARKING_COPY: CopyRegisters = { thread: R11, buffer: RBX, index: R14 };
const RESULT_COPY: CopyRegisters = { thread: R11, buffer: RSI, index: RDI };

function loadThread(s: StubCode): void {
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
}

/** Parks with `status` and the number that `number` loads into eax; continues behind the jump. */
export function park(s: StubCode, status: number, number: (register: number) => void): void {
  const after = s.newLabel();
  number(RAX);
  s.rm(X.MOV32_S, RAX, R11, THREAD.PARK_INDEX);
  s.address(RBX, after);
  s.push(RBX);
  s.constant(RAX, BigInt(status));
  s.jumpStub(RELOC.STUB, STUB.PARK);
  s.bind(after);
}

function endParking(s: StubCode): void {
  s.pop(R11);
  s.rr(X.JMP_M, 0, R11);
}

/** Leaves for the host by `leave`: arguments to slots, and on resumption results from slots. */
export function emitParkingThunk(s: StubCode, signature: Signature, leave: (s: StubCode) => void): void {
  const params = paramLocations(signature.params);
  const results = resultLocations(signature.results);
  loadThread(s);
  copyOverflow(s, params, true, PARKING_COPY);
  storeSlots(s, signature.params, params, R11);
  leave(s);
  s.fixup(KIND.CALL_SITE, 0, 0, 0, 0);
  copyOverflow(s, results, false, RESULT_COPY);
  loadSlots(s, signature.results, results, R11);
  endParking(s);
}

function begin(context: CodegenContext, code: MachineCode): StubCode {
  alignImage(code, FUNCTION_ALIGNMENT, FILLER.x64);
  return new StubCode(context, code);
}

function parkForHost(s: StubCode): void {
  park(s, STATUS.HOST, (to) => s.rm(X.MOV32_L, to, RECORD_REGISTER, RECORD.HOST));
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
  s.rm(X.MOV64_L, RECORD_REGISTER, RDI, THREAD.CALL_RECORD);
  s.rm(X.MOV64_L, R11, RDI, THREAD.CALL_CODE);
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
  copyOverflow(s, params, false, ENTRY_COPY);
  loadCallee(s);
  loadSlots(s, signature.params, params, RDI);
  s.rr(X.CALL_M, 0, R11);
  s.fixup(KIND.CALL_SITE, 0, 0, 0, 0);
  loadThread(s);
  copyOverflow(s, results, true, RESULT_COPY);
  storeSlots(s, signature.results, results, R11);
  s.op(X.RET);
  s.finish();
}

/** The parts of thunks in which target.ts fills in registers and offsets: those here are the largest. */
export function thunkParts(context: CodegenContext): AllThunkParts<Uint8Array> {
  const bytesOf = (emit: (s: StubCode) => void): Uint8Array => {
    const s = new StubCode(context);
    emit(s);
    s.finish();
    return s.code.bytes.slice(0, s.code.length);
  };
  const nothing = new Uint8Array(0);
  const MAX_INT = 0x7fffffff, MAX_BYTE = 0x7f;
  const values = (rows: Readonly<Record<number, number>>, registers: CopyRegisters, toSlots: boolean) => ({
    range: bytesOf((s) => beginCopy(s, registers, MAX_INT)),
    loops: [MAX_INT, MAX_BYTE].map((end) => bytesOf((s) => copyLoop(s, registers, toSlots, end))),
    moves: VALUE_TYPES.map((type) =>
      bytesOf((s) => s.rm(s.vexRow(rows[type]), TY_BANK[type] === 1 ? R8 : 0, registers.thread, MAX_INT))
    ),
  });
  return {
    entry: {
      start: nothing,
      ready: bytesOf(loadCallee),
      leave: bytesOf((s) => s.rr(X.CALL_M, 0, R11)),
      resume: bytesOf(loadThread),
      end: bytesOf((s) => s.op(X.RET)),
      params: values(LOAD_ROWS, ENTRY_COPY, false),
      results: values(STORE_ROWS, RESULT_COPY, true),
    },
    host: {
      start: bytesOf(loadThread),
      ready: nothing,
      leave: bytesOf(parkForHost),
      resume: nothing,
      end: bytesOf(endParking),
      params: values(STORE_ROWS, PARKING_COPY, true),
      results: values(LOAD_ROWS, RESULT_COPY, false),
    },
  };
}
