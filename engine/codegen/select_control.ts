/**
 * Rules for block ends, traps and calls, the same for all backends. Arguments and results beyond the registers go
 * through the overflow buffer: stored right before the call, loaded right after it (the backend's abi.ts).
 */
import { lowWord, unsigned } from "../base/numbers.ts";
import { boundsBytes, boundsMemory } from "../ir/regions.ts";
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import { CONTEXT } from "../abi/context_layout.ts";
import { MAX_SMALL_BYTES, sizeClassOf } from "../abi/gc_layout.ts";
import { CALL_NULL_CODE, CHARGE_OWES, OP } from "../ir/ops.ts";
import { type Signature, TY } from "../ir/types.ts";
import { FIRST_VECTOR } from "./abi_locations.ts";
import { upperBound } from "./folding.ts";
import { AUX_CODE_SHIFT, AUX_LANDING, PSEUDO } from "./pseudo_ops.ts";
import type { LoweringContext } from "./lowering_context.ts";
import { CONSTRAINT, operandWord, ROLE } from "./vcode.ts";

export function selectNothing(_s: LoweringContext, _id: number): void {}

/** Constants that `pinConstants` marked get a register here; others are materialized at their uses. */
export function selectConstant(s: LoweringContext, id: number): void {
  if (s.constantBlock[id] === -1) s.constant(id, s.ty[id], -1);
}

/** The vregs that edge `e` passes, written into the VCode's pool. */
function edgeArguments(s: LoweringContext, e: number): void {
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
function successor(s: LoweringContext, e: number): void {
  edgeArguments(s, e);
  s.v.succ[s.v.succTotal++] = e;
}

export function selectJump(s: LoweringContext, id: number): void {
  successor(s, s.a[id]);
  s.plain(PSEUDO.JUMP, 0, 0, 0);
  s.end();
}

export function selectBranch(s: LoweringContext, id: number): void {
  successor(s, s.b[id]);
  successor(s, s.c[id]);
  if (s.op[s.a[id]] === OP.UNWOUND) selectUnwind(s);
  else s.branchCompare(s.a[id]);
}

export function selectSwitch(s: LoweringContext, id: number): void {
  const n = s.c[id];
  const first = s.b[id];
  for (let i = 0; i < n; i++) successor(s, first + i);
  if (n === 1) {
    s.plain(PSEUDO.JUMP, 0, 0, 0);
    s.end();
    return;
  }
  const index = s.reg(s.a[id]);
  s.plain(PSEUDO.SWITCH, n, 0, upperBound(s, s.a[id]) < unsigned(n) ? 1 : 0);
  s.use(index);
  s.switchOperands();
  s.end();
}

export function selectTrap(s: LoweringContext, id: number): void {
  s.plain(PSEUDO.TRAP, s.imm[id], 0, 0);
  s.end();
}

export function selectTrapIf(s: LoweringContext, id: number): void {
  s.trapCompare(s.a[id], s.imm[id] << AUX_CODE_SHIFT);
}

export function selectPoll(s: LoweringContext, _id: number): void {
  s.plain(PSEUDO.POLL, 0, 0, 0);
  s.end();
}

/** The units stay in their register: if there is less fuel, they are given back. */
export function selectCharge(s: LoweringContext, id: number): void {
  const units = s.a[id];
  if (s.isImmediate(units) && s.imm[units] >= 0) {
    s.plain(PSEUDO.CHARGE, s.imm[units], s.b[id], s.imm[id] === CHARGE_OWES ? 2 : 0);
  } else {
    const vreg = s.reg(units);
    s.plain(PSEUDO.CHARGE, 0, 0, 1);
    s.lateUse(vreg);
  }
  s.end();
}

/** Allocation in the collected heap: in line except for the slow path, which keeps all registers. */
export function selectAllocation(s: LoweringContext, id: number): void {
  s.v.hasCalls = true;
  const bytes = s.a[id];
  const known = s.op[bytes] === OP.CONST && s.c[bytes] === 0 && s.imm[bytes] >= 0 && s.imm[bytes] <= MAX_SMALL_BYTES;
  if (known) {
    s.plain(PSEUDO.GC_ALLOC, s.imm[bytes], sizeClassOf(s.imm[bytes]), 0);
    s.def(id);
    s.temp(TY.I64);
  } else {
    const vreg = s.reg(bytes);
    s.plain(PSEUDO.GC_ALLOC, 0, 0, 1);
    s.def(id);
    s.temp(TY.I64);
    s.temp(TY.I64);
    s.lateUse(vreg);
  }
  s.end();
}

export function selectContext(s: LoweringContext, id: number): void {
  const i = s.beginContextAddress(id);
  s.def(id);
  s.end();
  s.v.vregRemat[s.vregs[id]] = i + 1;
}

/** The function's parameters: block 0's PARAMs, from registers and from the overflow buffer. */
export function selectEntry(s: LoweringContext): void {
  const { f, v } = s;
  const params = f.signature.params;
  const locations = s.paramLocations = s.convention.params.locate(params, s.paramLocations);
  const first = f.blockStart[0];
  const count = f.blockParams[0];
  s.plain(PSEUDO.ENTRY, 0, 0, 0);
  for (let i = 0; i < count; i++) {
    const id = f.sched[first + i];
    const location = locations[f.imm[id]];
    if (location < 0) continue;
    s.defFixed(id, location);
    v.vregHint[s.vregs[id]] = location + 1;
  }
  s.end();
  let buffer = 0;
  for (let i = 0; i < count; i++) {
    const id = f.sched[first + i];
    if (locations[f.imm[id]] >= 0 || s.uses[id] === 0) continue;
    if (buffer === 0) buffer = s.loadContext(CONTEXT.OVERFLOW);
    s.loadFrom(s.defVreg(id), buffer, f.imm[id] * s.convention.overflowEntry, s.ty[id]);
  }
}

/** Stores those of the list's values that have no register at `locations` into the overflow buffer. */
function storeOverflow(s: LoweringContext, types: Uint8Array, locations: Int8Array, list: number): void {
  let buffer = 0;
  for (let i = 0; i < types.length; i++) {
    if (locations[i] >= 0) continue;
    if (buffer === 0) buffer = s.loadContext(CONTEXT.OVERFLOW);
    const value = s.regOf(s.f.pool[list + i], types[i]);
    s.storeTo(value, buffer, i * s.convention.overflowEntry, types[i]);
  }
}

/** Puts the list's values that travel in registers into vregs, before the instruction that uses them is begun. */
function resolveList(s: LoweringContext, types: Uint8Array, locations: Int8Array, list: number): void {
  s.listVregs.length = 0;
  for (let i = 0; i < types.length; i++) {
    s.listVregs.push(locations[i] >= 0 ? s.regOf(s.f.pool[list + i], types[i]) : 0);
  }
}

function fixedUses(s: LoweringContext, types: Uint8Array, locations: Int8Array): void {
  for (let i = 0; i < types.length; i++) if (locations[i] >= 0) s.useFixed(s.listVregs[i], locations[i]);
}

export function selectReturn(s: LoweringContext, id: number): void {
  const types = s.f.signature.results;
  const locations = s.resultLocations = s.convention.results.locate(types, s.resultLocations);
  const list = s.a[id];
  storeOverflow(s, types, locations, list);
  resolveList(s, types, locations, list);
  s.plain(PSEUDO.RETURN, 0, 0, 0);
  fixedUses(s, types, locations);
  s.end();
}

/** Whether UNWOUND follows the current call. */
function hasLanding(s: LoweringContext): boolean {
  const { sched } = s.f;
  let p = s.scheduled + 1;
  while (s.op[sched[p]] === OP.RESULT) p++;
  return s.op[sched[p]] === OP.UNWOUND;
}

/**
 * Only the call's results may be in registers after the call, or the landing pad would expect other values there:
 * registers are as the unwinder leaves them.
 */
function selectUnwind(s: LoweringContext): void {
  const i = s.plain(PSEUDO.UNWIND, 0, 0, 0);
  // With stack-reg off values come back right after calls, into the results' registers too.
  const kept = s.options.lazyReloads;
  const { generalClobbers, vectorClobbers } = s.convention;
  s.v.clobbers[i] = s.v.addClobbers(
    kept ? generalClobbers & ~s.resultGeneral : generalClobbers,
    kept ? vectorClobbers & ~s.resultVector : vectorClobbers,
  );
  s.end();
}

/** Emits call operation `op` of `signature`; `record` is the value of a record operand, or −1. */
function call(
  s: LoweringContext,
  id: number,
  op: number,
  signature: Signature,
  record: number,
  generalClobbers: number,
  vectorClobbers: number,
): void {
  const { v } = s;
  const { convention } = s;
  const params = s.paramLocations = convention.params.locate(signature.params, s.paramLocations);
  const results = s.resultLocations = convention.results.locate(signature.results, s.resultLocations);
  const list = s.a[id] + (record >= 0 ? 1 : 0);
  v.hasCalls = true;
  // The callee may move the memory.
  s.region++;
  const recordVreg = record >= 0 ? s.reg(record) : 0;
  storeOverflow(s, signature.params, params, list);
  resolveList(s, signature.params, params, list);
  const nullCode = op === PSEUDO.CALL_RECORD ? s.c[id] & CALL_NULL_CODE : 0;
  const landing = hasLanding(s);
  if (landing) {
    generalClobbers = convention.generalClobbers;
    vectorClobbers = convention.vectorClobbers;
  }
  const i = s.plain(op, s.c[id], s.imm[id], landing ? nullCode | AUX_LANDING : nullCode);
  const n = signature.results.length;
  s.resultGeneral = s.resultVector = 0;
  for (let k = 0; k < n; k++) {
    if (results[k] >= FIRST_VECTOR) s.resultVector |= 1 << (results[k] - FIRST_VECTOR);
    else if (results[k] >= 0) s.resultGeneral |= 1 << results[k];
  }
  generalClobbers &= ~s.resultGeneral;
  vectorClobbers &= ~s.resultVector;
  v.clobbers[i] = v.addClobbers(generalClobbers, vectorClobbers);
  // A single result belongs to the call; of several, RESULT instructions name consecutive vregs.
  const firstVreg = v.vregCount;
  for (let k = 0; k < n; k++) v.newVreg(signature.results[k]);
  s.vregs[id] = firstVreg;
  for (let k = 0; k < n; k++) {
    if (results[k] >= 0) v.operand(operandWord(firstVreg + k, ROLE.DEF, CONSTRAINT.FIXED, results[k]));
  }
  if (record >= 0) s.useFixed(recordVreg, s.convention.record);
  fixedUses(s, signature.params, params);
  s.end();
  let buffer = 0;
  for (let k = 0; k < n; k++) {
    if (results[k] >= 0) continue;
    if (buffer === 0) buffer = s.loadContext(CONTEXT.OVERFLOW);
    s.loadFrom(firstVreg + k, buffer, k * convention.overflowEntry, signature.results[k]);
  }
}

export function selectCall(s: LoweringContext, id: number): void {
  const callee = s.c[id];
  const known = s.code.knows(callee, s.f.funcIndex - s.options.importedFuncs);
  const { generalClobbers, vectorClobbers } = s.convention;
  const general = known ? s.code.writtenGeneral[callee] : generalClobbers;
  const vector = known ? s.code.writtenVector[callee] : vectorClobbers;
  call(s, id, PSEUDO.CALL, s.options.signatures[s.imm[id]], -1, general, vector);
}

export function selectCallRecord(s: LoweringContext, id: number): void {
  const { generalClobbers, vectorClobbers } = s.convention;
  call(s, id, PSEUDO.CALL_RECORD, s.options.signatures[s.imm[id]], s.f.pool[s.a[id]], generalClobbers, vectorClobbers);
}

export function selectCallImport(s: LoweringContext, id: number): void {
  const { generalClobbers, vectorClobbers } = s.convention;
  call(s, id, PSEUDO.CALL_IMPORT, s.options.signatures[s.imm[id]], -1, generalClobbers, vectorClobbers);
}

/** By builtin: 1 for native ones, the numbers of parameters and of results; their types, one builtin after another. */
const BUILTIN_NATIVE = Uint8Array.from(BUILTIN_ROWS, ({ native }) => native ? 1 : 0);
const BUILTIN_PARAMS = Uint8Array.from(BUILTIN_ROWS, ({ params }) => params.length);
const BUILTIN_RESULTS = Uint8Array.from(BUILTIN_ROWS, ({ results }) => results.length);
const BUILTIN_TYPES = Uint8Array.from(BUILTIN_ROWS.flatMap(({ params, results }) => [...params, ...results]));

/** The signature of builtin `n`. */
function builtinSignature(n: number): Signature {
  let at = 0;
  for (let k = 0; k < n; k++) at += BUILTIN_PARAMS[k] + BUILTIN_RESULTS[k];
  const params = new Uint8Array(BUILTIN_PARAMS[n]), results = new Uint8Array(BUILTIN_RESULTS[n]);
  for (let k = 0; k < params.length; k++) params[k] = BUILTIN_TYPES[at++];
  for (let k = 0; k < results.length; k++) results[k] = BUILTIN_TYPES[at++];
  return { params, results };
}

export function selectCallBuiltin(s: LoweringContext, id: number): void {
  const n = s.c[id];
  const { generalClobbers, vectorClobbers, nativeGeneral, nativeVector } = s.convention;
  const signature = builtinSignature(n);
  if (BUILTIN_NATIVE[n] !== 0) call(s, id, PSEUDO.CALL_NATIVE, signature, -1, nativeGeneral, nativeVector);
  else call(s, id, PSEUDO.CALL_PARKING, signature, -1, generalClobbers, vectorClobbers);
}

export function selectResult(s: LoweringContext, id: number): void {
  s.vregs[id] = s.vregs[s.a[id]] + s.imm[id];
}

/**
 * A tail call destroys no live value of this function, but the caller has to know which registers it writes: they count
 * as written by this function.
 */
function tailCall(
  s: LoweringContext,
  id: number,
  op: number,
  record: number,
  generalClobbers: number,
  vectorClobbers: number,
): void {
  const signature = s.options.signatures[s.imm[id]];
  const locations = s.paramLocations = s.convention.params.locate(signature.params, s.paramLocations);
  const list = s.a[id] + (record >= 0 ? 1 : 0);
  s.v.hasCalls = true;
  const recordVreg = record >= 0 ? s.reg(record) : 0;
  storeOverflow(s, signature.params, locations, list);
  resolveList(s, signature.params, locations, list);
  const i = s.plain(op, s.c[id], s.imm[id], op === PSEUDO.TAIL_CALL_RECORD ? s.c[id] & CALL_NULL_CODE : 0);
  if ((generalClobbers | vectorClobbers) !== 0) s.v.clobbers[i] = s.v.addClobbers(generalClobbers, vectorClobbers);
  if (record >= 0) s.useFixed(recordVreg, s.convention.record);
  fixedUses(s, signature.params, locations);
  s.end();
}

export function selectTailCall(s: LoweringContext, id: number): void {
  const callee = s.c[id];
  const caller = s.f.funcIndex - s.options.importedFuncs;
  const known = s.code.knows(callee, caller);
  // A call of the function itself: its writes are counted anyway.
  const self = callee === caller;
  const { generalClobbers, vectorClobbers } = s.convention;
  const general = self ? 0 : known ? s.code.writtenGeneral[callee] : generalClobbers;
  const vector = self ? 0 : known ? s.code.writtenVector[callee] : vectorClobbers;
  tailCall(s, id, PSEUDO.TAIL_CALL, -1, general, vector);
}

export function selectTailCallRecord(s: LoweringContext, id: number): void {
  const { generalClobbers, vectorClobbers } = s.convention;
  tailCall(s, id, PSEUDO.TAIL_CALL_RECORD, s.f.pool[s.a[id]], generalClobbers, vectorClobbers);
}

export function selectTailCallImport(s: LoweringContext, id: number): void {
  const { generalClobbers, vectorClobbers } = s.convention;
  tailCall(s, id, PSEUDO.TAIL_CALL_IMPORT, -1, generalClobbers, vectorClobbers);
}

/** Explicit mode: the address plus its static offset plus the access size must not exceed the memory's length. */
export function selectBounds(s: LoweringContext, id: number): void {
  const address = s.a[id];
  const memory = boundsMemory(s.c[id]);
  const size = boundsBytes(s.c[id]);
  const wide = s.ty[address] === TY.I64 ? 1 : 0;
  if (s.op[address] === OP.CONST && (wide === 0 || s.c[address] === 0)) {
    const extent = unsigned(s.imm[address]) + unsigned(s.imm[id]) + size;
    if (extent <= 0x7fffffff) {
      s.plain(PSEUDO.BOUNDS, 0, lowWord(extent), (memory << 8) | 2);
      s.end();
      return;
    }
  }
  const vreg = s.reg(address);
  s.plain(PSEUDO.BOUNDS, s.imm[id], size, (memory << 8) | wide);
  s.use(vreg);
  s.end();
}

/** The check of an index, whose result is masked: one instruction, so that nothing comes between check and mask. */
export function selectCheckIndex(s: LoweringContext, id: number): void {
  const index = s.a[id], limit = s.b[id];
  const isConstant = s.isImmediate(limit) && s.imm[limit] >= 0;
  const vreg = s.reg(index), other = isConstant ? 0 : s.reg(limit);
  const wide = s.wide(limit) | (s.wide(index) << 1) | (isConstant ? 4 : 0);
  s.plain(PSEUDO.CHECK_INDEX, isConstant ? s.imm[limit] : 0, s.c[id], wide | (s.imm[id] << 8));
  s.def(id);
  s.lateUse(vreg);
  if (!isConstant) s.use(other);
  s.end();
}
