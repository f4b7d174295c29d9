/**
 * Rules for block ends, traps and calls. Arguments and results beyond the registers go through the overflow buffer: stored right
 * before the call, loaded right after it (abi.ts).
 */
import { BUILTIN_ROWS } from "../builtins.ts";
import { CONTEXT } from "../context_layout.ts";
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { MAX_SMALL_BYTES, sizeClassOf } from "../gc_layout.ts";
import { OP } from "../ir/ops.ts";
import { type Signature, TY, TY_BANK } from "../ir/types.ts";
import { OVERFLOW_ENTRY, paramPlaces, RECORD_REGISTER, resultPlaces } from "./abi.ts";
import { upperBound } from "./addressing.ts";
import { X } from "./instructions.ts";
import { AUX_CODE_SHIFT, AUX_LANDING, MODE, P } from "./machine_ops.ts";
import { CALL_CLOBBERS, XMM0 } from "./registers.ts";
import { NATIVE_CLOBBERS } from "./native_builtins.ts";
import { loadRow } from "./select_memory.ts";
import { selectBranchCompare, selectTrapCompare } from "./select_compare.ts";
import type { Selection } from "./selection.ts";

/** The vregs that edge `e` passes, written into the VCode's pool. */
function edgeArguments(s: Selection, e: number): void {
  const { f, v } = s;
  const to = f.edgeTo[e];
  const n = f.blockParams[to];
  const first = v.allocPool(n);
  const from = f.edgeArgs[e];
  const params = f.blockStart[to];
  for (let i = 0; i < n; i++) v.pool[first + i] = s.regOf(f.pool[from + i], s.ty[f.sched[params + i]]);
  v.edgeFrom[e] = s.block;
  v.edgeTo[e] = to;
  v.argStart[e] = first;
}

/** Declares edge `e` the next successor of the block. */
function successor(s: Selection, e: number): void {
  edgeArguments(s, e);
  s.v.succ[s.v.succTotal++] = e;
}

export function selectJump(s: Selection, id: number): void {
  successor(s, s.a[id]);
  s.plain(P.JUMP, 0, 0, 0);
  s.end();
}

export function selectBranch(s: Selection, id: number): void {
  successor(s, s.b[id]);
  successor(s, s.c[id]);
  if (s.op[s.a[id]] === OP.UNWOUND) selectUnwind(s);
  else selectBranchCompare(s, s.a[id]);
}

export function selectSwitch(s: Selection, id: number): void {
  const n = s.c[id];
  const first = s.b[id];
  for (let i = 0; i < n; i++) successor(s, first + i);
  if (n === 1) {
    s.plain(P.JUMP, 0, 0, 0);
    s.end();
    return;
  }
  const index = s.reg(s.a[id]);
  s.plain(P.SWITCH, n, 0, upperBound(s, s.a[id]) < n ? 1 : 0);
  s.use(index);
  s.temp(TY.I64);
  s.end();
}

export function selectTrap(s: Selection, id: number): void {
  s.plain(P.TRAP, s.imm[id], 0, 0);
  s.end();
}

export function selectTrapIf(s: Selection, id: number): void {
  selectTrapCompare(s, s.a[id], s.imm[id] << AUX_CODE_SHIFT);
}

export function selectPoll(s: Selection, _id: number): void {
  s.plain(P.POLL, 0, 0, 0);
  s.end();
}

/** Allocation in the collected heap: in line but for the slow path, which keeps all registers. */
export function selectAllocation(s: Selection, id: number): void {
  s.v.hasCalls = true;
  const bytes = s.a[id];
  const known = s.op[bytes] === OP.CONST && s.c[bytes] === 0 && s.imm[bytes] >= 0 && s.imm[bytes] <= MAX_SMALL_BYTES;
  if (known) {
    s.plain(P.GC_ALLOC, s.imm[bytes], sizeClassOf(s.imm[bytes]), 0);
    s.def(id);
    s.temp(TY.I64);
  } else {
    const vreg = s.reg(bytes);
    s.plain(P.GC_ALLOC, 0, 0, 1);
    s.def(id);
    s.temp(TY.I64);
    s.temp(TY.I64);
    s.lateUse(vreg);
  }
  s.end();
}

export function selectContext(s: Selection, id: number): void {
  const i = s.plain(X.LEA64, 0, s.imm[id], MODE.CONTEXT);
  s.def(id);
  s.end();
  s.v.vregRemat[s.vregs[id]] = i + 1;
}

/** The function's parameters: block 0's PARAMs, from registers and from the overflow buffer. */
export function selectEntry(s: Selection): void {
  const { f, v } = s;
  const params = f.signature.params;
  const places = paramPlaces(params);
  const first = f.blockStart[0];
  const count = f.blockParams[0];
  s.plain(P.ENTRY, 0, 0, 0);
  for (let i = 0; i < count; i++) {
    const id = f.sched[first + i];
    const place = places[f.imm[id]];
    if (place < 0) continue;
    s.defFixed(id, place);
    v.vregHint[s.vregs[id]] = place + 1;
  }
  s.end();
  let buffer = 0;
  for (let i = 0; i < count; i++) {
    const id = f.sched[first + i];
    if (places[f.imm[id]] >= 0 || s.uses[id] === 0) continue;
    if (buffer === 0) buffer = overflowBuffer(s);
    overflowLoad(s, buffer, f.imm[id], s.ty[id]);
    s.def(id);
    s.use(buffer);
    s.end();
  }
}

/** Loads the address of the overflow buffer into a new vreg. */
function overflowBuffer(s: Selection): number {
  const { v } = s;
  const buffer = v.newVreg(TY.I64);
  s.plain(X.MOV64_L, 0, CONTEXT.OVERFLOW, MODE.CONTEXT);
  v.operand(operandWord(buffer, ROLE.DEF, CONSTRAINT.REG));
  s.end();
  return buffer;
}

function overflowLoad(s: Selection, _buffer: number, index: number, ty: number): void {
  s.plain(loadRow(s, OP.LOAD, ty), 0, index * OVERFLOW_ENTRY, MODE.POINTER);
}

function overflowStore(s: Selection, buffer: number, index: number, ty: number, vreg: number): void {
  const row = ty === TY.I32
    ? X.MOV32_S
    : TY_BANK[ty] === 1
    ? X.MOV64_S
    : s.vex(ty === TY.F32 ? X.MOVSS_S : ty === TY.F64 ? X.MOVSD_S : X.MOVUPS_S);
  s.plain(row, 0, index * OVERFLOW_ENTRY, MODE.POINTER);
  s.use(buffer);
  s.use(vreg);
  s.end();
}

/** Where the values of one kind (parameters or results) go: vregs by index, then FIXED uses for those in registers. */
function storeOverflow(s: Selection, types: Uint8Array, places: Int8Array, list: number): void {
  let buffer = 0;
  for (let i = 0; i < types.length; i++) {
    if (places[i] >= 0) continue;
    if (buffer === 0) buffer = overflowBuffer(s);
    overflowStore(s, buffer, i, types[i], s.regOf(s.f.pool[list + i], types[i]));
  }
}

const vregsOfList: number[] = [];

/** Puts the list's values that travel in registers into vregs, so that no constant is made after the call is begun. */
function resolveList(s: Selection, types: Uint8Array, places: Int8Array, list: number): void {
  vregsOfList.length = 0;
  for (let i = 0; i < types.length; i++) {
    vregsOfList.push(places[i] >= 0 ? s.regOf(s.f.pool[list + i], types[i]) : 0);
  }
}

function fixedUses(s: Selection, types: Uint8Array, places: Int8Array): void {
  for (let i = 0; i < types.length; i++) if (places[i] >= 0) s.useFixed(vregsOfList[i], places[i]);
}

export function selectReturn(s: Selection, id: number): void {
  const types = s.f.signature.results;
  const places = resultPlaces(types);
  const list = s.a[id];
  storeOverflow(s, types, places, list);
  resolveList(s, types, places, list);
  s.plain(P.RETURN, 0, 0, 0);
  fixedUses(s, types, places);
  s.end();
}

/** Is the call at the place in hand followed by UNWOUND? */
function hasLanding(s: Selection): boolean {
  const { sched } = s.f;
  let p = s.place + 1;
  while (s.op[sched[p]] === OP.RESULT) p++;
  return s.op[sched[p]] === OP.UNWOUND;
}

/**
 * Nothing but the call's results may be in a register behind the call, or the landing might look for it there: registers are as the
 * unwinder leaves them.
 */
function selectUnwind(s: Selection): void {
  const i = s.plain(P.UNWIND, 0, 0, 0);
  // With stack-reg off values come back right after calls, into the results' registers too.
  const kept = s.context.optimizations["stack-reg"] !== false;
  const general = kept ? ALL_GENERAL & ~s.resultGeneral : ALL_GENERAL;
  s.v.clobbers[i] = s.v.addClobbers(general, kept ? ALL_VECTOR & ~s.resultVector : ALL_VECTOR);
  s.end();
}

/** Emits call operation `op` of `signature`; `record` is the value of a record operand, or −1. */
function call(
  s: Selection,
  id: number,
  op: number,
  signature: Signature,
  record: number,
  generalClobbers: number,
  vectorClobbers: number,
): void {
  const { v } = s;
  const params = paramPlaces(signature.params);
  const results = resultPlaces(signature.results);
  const list = s.a[id] + (record >= 0 ? 1 : 0);
  v.hasCalls = true;
  const recordVreg = record >= 0 ? s.reg(record) : 0;
  storeOverflow(s, signature.params, params, list);
  resolveList(s, signature.params, params, list);
  const nullCode = op === P.CALL_RECORD ? s.c[id] : 0;
  const landing = hasLanding(s);
  if (landing) {
    generalClobbers = ALL_GENERAL;
    vectorClobbers = ALL_VECTOR;
  }
  const i = s.plain(op, s.c[id], s.imm[id], landing ? nullCode | AUX_LANDING : nullCode);
  s.resultGeneral = s.resultVector = 0;
  for (let k = 0; k < results.length; k++) {
    if (results[k] >= XMM0) s.resultVector |= 1 << (results[k] - XMM0);
    else if (results[k] >= 0) s.resultGeneral |= 1 << results[k];
  }
  generalClobbers &= ~s.resultGeneral;
  vectorClobbers &= ~s.resultVector;
  v.clobbers[i] = v.addClobbers(generalClobbers, vectorClobbers);
  // A single result belongs to the call; of several, RESULT instructions name consecutive vregs.
  const n = signature.results.length;
  const firstVreg = v.vregCount;
  for (let k = 0; k < n; k++) v.newVreg(signature.results[k]);
  s.vregs[id] = firstVreg;
  for (let k = 0; k < n; k++) {
    if (results[k] >= 0) v.operand(operandWord(firstVreg + k, ROLE.DEF, CONSTRAINT.FIXED, results[k]));
  }
  if (record >= 0) s.useFixed(recordVreg, RECORD_REGISTER);
  fixedUses(s, signature.params, params);
  s.end();
  let buffer = 0;
  for (let k = 0; k < n; k++) {
    if (results[k] >= 0) continue;
    if (buffer === 0) buffer = overflowBuffer(s);
    overflowLoad(s, buffer, k, signature.results[k]);
    v.operand(operandWord(firstVreg + k, ROLE.DEF, CONSTRAINT.REG));
    s.use(buffer);
    s.end();
  }
}

const ALL_GENERAL = CALL_CLOBBERS.general;
const ALL_VECTOR = CALL_CLOBBERS.vector;

export function selectCall(s: Selection, id: number): void {
  const callee = s.c[id];
  const known = s.code.writtenKnown[callee] !== 0;
  const general = known ? s.code.writtenGeneral[callee] : ALL_GENERAL;
  const vector = known ? s.code.writtenVector[callee] : ALL_VECTOR;
  call(s, id, P.CALL, s.context.signatures[s.imm[id]], -1, general, vector);
}

export function selectCallRecord(s: Selection, id: number): void {
  call(s, id, P.CALL_RECORD, s.context.signatures[s.imm[id]], s.f.pool[s.a[id]], ALL_GENERAL, ALL_VECTOR);
}

export function selectCallImport(s: Selection, id: number): void {
  call(s, id, P.CALL_IMPORT, s.context.signatures[s.imm[id]], -1, ALL_GENERAL, ALL_VECTOR);
}

/** Signatures of the builtins, made once: the places of arguments are remembered by their lists. */
const BUILTIN_SIGNATURES: readonly Signature[] = BUILTIN_ROWS.map((row) => (
  { params: Uint8Array.from(row.params), results: Uint8Array.from(row.results) }
));

export function selectCallBuiltin(s: Selection, id: number): void {
  const row = BUILTIN_ROWS[s.c[id]];
  const signature = BUILTIN_SIGNATURES[s.c[id]];
  if (row.native) call(s, id, P.CALL_NATIVE, signature, -1, NATIVE_CLOBBERS.general, NATIVE_CLOBBERS.vector);
  else call(s, id, P.CALL_PARKING, signature, -1, ALL_GENERAL, ALL_VECTOR);
}

export function selectResult(s: Selection, id: number): void {
  s.vregs[id] = s.vregs[s.a[id]] + s.imm[id];
}

/** A tail call destroys nothing that we still want, but our caller has to know what it writes: that counts as ours. */
function tailCall(
  s: Selection,
  id: number,
  op: number,
  record: number,
  generalClobbers: number,
  vectorClobbers: number,
): void {
  const signature = s.context.signatures[s.imm[id]];
  const places = paramPlaces(signature.params);
  const list = s.a[id] + (record >= 0 ? 1 : 0);
  s.v.hasCalls = true;
  const recordVreg = record >= 0 ? s.reg(record) : 0;
  storeOverflow(s, signature.params, places, list);
  resolveList(s, signature.params, places, list);
  const i = s.plain(op, s.c[id], s.imm[id], op === P.TAIL_CALL_RECORD ? s.c[id] : 0);
  if ((generalClobbers | vectorClobbers) !== 0) s.v.clobbers[i] = s.v.addClobbers(generalClobbers, vectorClobbers);
  if (record >= 0) s.useFixed(recordVreg, RECORD_REGISTER);
  fixedUses(s, signature.params, places);
  s.end();
}

export function selectTailCall(s: Selection, id: number): void {
  const callee = s.c[id];
  const known = s.code.writtenKnown[callee] !== 0;
  // Ourselves: what we write is counted anyway.
  const self = callee + s.context.layout.importedFuncs === s.f.funcIndex;
  const general = self ? 0 : known ? s.code.writtenGeneral[callee] : ALL_GENERAL;
  const vector = self ? 0 : known ? s.code.writtenVector[callee] : ALL_VECTOR;
  tailCall(s, id, P.TAIL_CALL, -1, general, vector);
}

export function selectTailCallRecord(s: Selection, id: number): void {
  tailCall(s, id, P.TAIL_CALL_RECORD, s.f.pool[s.a[id]], ALL_GENERAL, ALL_VECTOR);
}

export function selectTailCallImport(s: Selection, id: number): void {
  tailCall(s, id, P.TAIL_CALL_IMPORT, -1, ALL_GENERAL, ALL_VECTOR);
}
