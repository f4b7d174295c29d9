/**
 * The baseline compiler: one pass over each body decodes, validates and emits machine code. In: the module's tables and
 * the bytes of its bodies in the kernel's memory (layout.ts). Out: code, call and trap sites, relocations, and per body
 * the location of its code or the reason why there is none.
 *
 * Each instruction takes three steps. The reader (reader.ts) decodes it. The checks here and in control.ts validate its
 * operand types, in reachable and unreachable code alike. If the instruction is reachable, an emit function
 * (numeric.ts, storage.ts, calls.ts, …) pops its operands and calls the machine (machine.ts). A body that fails leaves
 * no code behind.
 */
import * as accesses from "./accesses.ts";
import * as aggregates from "./aggregates.ts";
import * as calls from "./calls.ts";
import * as code from "./code.ts";
import { emitFragments } from "./out_of_line.ts";
import { beginFragments } from "./fragments.ts";
import {
  CHECK_ATOMIC,
  CHECK_LANE,
  CHECK_LANES,
  CHECK_MEMARG,
  CHECK_MEMORY,
  CHECK_ORDERING,
  CHECK_TABLE,
  FEATURE_ACQUIRE_RELEASE_ATOMICS,
  FEATURE_TYPED_FUNCTION_REFERENCES,
  MAX_LOCALS,
  MODE_INTERRUPTIBLE,
  OVERFLOW_ENTRY,
} from "./constants.ts";
import * as cond from "./conditions.ts";
import { visitContinuation } from "./continuations.ts";
import * as control from "./control.ts";
import { visitDescriptor } from "./descriptors.ts";
import { beginEpilogues, patchEpilogues } from "./epilogue.ts";
import { beginExceptions } from "./exceptions.ts";
import * as exceptions from "./exceptions.ts";
import * as frames from "./frames.ts";
import * as landings from "./landings.ts";
import * as layout from "./layout.ts";
import { linkCode, placeCode, placeRows } from "./link.ts";
import * as machine from "./machine.ts";
import { type i32, load32, load8, store32 } from "./memory.ts";
import * as metering from "./metering.ts";
import * as module from "./module.ts";
import * as numeric from "./numeric.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import * as reader from "./reader.ts";
import { index, index2, instructionOffset } from "./reader.ts";
import * as storage from "./storage.ts";
import * as types from "./types.ts";
import { skim } from "./validate.ts";
import * as vectors from "./vectors.ts";
import { bankOf, BOTTOM, I32, I64, isRef, V128 } from "./types.ts";

const CODE_ALIGNMENT: i32 = 16;
const FILLER: i32 = 0xcc;
/** Maximum number of homes that are zeroed without a loop. */
const MANY_HOMES: i32 = 32;

/**
 * Compiles at most `count` bodies, beginning with body `first`; their results are at RESULTS. Returns the number of
 * bodies with a result, which is smaller if the output is full, or if a body is invalid: that one is then the last.
 */
export function compileBodies(first: i32, count: i32): i32 {
  const done = writeBodies(first, count);
  placeCode(first, done);
  linkCode();
  return done;
}

/** Compiles body `k` alone, to offset `base` of the image; what came of it is at H_RESULT. */
export function compileLazily(k: i32, base: i32): void {
  store32(layout.H_BASE, base);
  compileBodies(k, 1);
  store32(layout.H_RESULT + layout.RESULT_STATUS, load32(layout.RESULT_STATUSES));
  store32(layout.H_RESULT + layout.RESULT_START, load32(layout.RESULT_STARTS));
  store32(layout.H_RESULT + layout.RESULT_END, load32(layout.RESULT_ENDS));
  store32(layout.H_RESULT + layout.RESULT_CALLS_END, code.callsAt);
  store32(layout.H_RESULT + layout.RESULT_TRAPS_END, code.trapsAt);
  store32(layout.H_RESULT + layout.RESULT_RELOCATIONS_END, code.relocationsAt);
}

/**
 * Compiles body `k` alone, to offset `base` of the image, and appends a row to the journal; the rows of the bodies
 * before it stay. Returns the end of its code in the image. Returns 0, and the body has no code, if it is invalid or
 * too large (NEXT_BODY_BYTES), or if there is no space.
 */
export function compileNext(k: i32, base: i32): i32 {
  const row = load32(layout.H_JOURNAL_END);
  const body = load32(layout.H_BODIES) + k * layout.BODY_ROW;
  const bytes = load32(body + layout.BODY_END) - load32(body + layout.BODY_START);
  if (row + layout.JOURNAL_ROW > layout.JOURNAL_END || bytes > layout.NEXT_BODY_BYTES) return 0;
  if (row === layout.JOURNAL) code.beginCode();
  else code.beginNext();
  const calls = code.callsAt;
  const traps = code.trapsAt;
  const status = compileBody(k, 0);
  if (status !== layout.STATUS_DONE) return 0;
  if (base + load32(layout.RESULT_ENDS) > load32(layout.H_CODE_LIMIT)) {
    code.rewind(layout.CODE, calls, traps, layout.RELOCATIONS);
    return 0;
  }
  store32(layout.RESULT_STATUSES, status);
  store32(layout.H_BASE, base);
  placeRows(k, 1, calls, traps);
  linkCode();
  if (code.relocationsAt !== layout.RELOCATIONS) return 0;
  const end = load32(layout.RESULT_ENDS);
  store32(row + layout.JOURNAL_INDEX, k);
  store32(row + layout.JOURNAL_START, load32(layout.RESULT_STARTS));
  store32(row + layout.JOURNAL_CODE_END, end);
  store32(row + layout.JOURNAL_CALLS_END, code.callsAt);
  store32(row + layout.JOURNAL_TRAPS_END, code.trapsAt);
  store32(layout.H_JOURNAL_END, row + layout.JOURNAL_ROW);
  return end;
}

/** The first step of compileBodies: everything that does not depend on the place of the code in the image. */
export function writeBodies(first: i32, count: i32): i32 {
  code.beginCode();
  const most = layout.RESULT_COLUMN / 4;
  for (let k: i32 = 0; k < count && k < most; k++) {
    const result = k * 4;
    const status = compileBody(first + k, result);
    if (status === layout.STATUS_FULL && k > 0) return k;
    store32(layout.RESULT_STATUSES + result, status === layout.STATUS_FULL ? layout.STATUS_TOO_LARGE : status);
    if (status === layout.STATUS_INVALID) return k + 1;
  }
  return count < most ? count : most;
}

/**
 * Validates at most `count` bodies, beginning with body `first`, as writeBodies does, and emits nothing: their statuses
 * are at RESULT_STATUSES. Returns the number of bodies with a status; if a body is invalid, it is the last.
 */
export function validateBodies(first: i32, count: i32): i32 {
  code.beginCode();
  const most = layout.RESULT_COLUMN / 4;
  for (let k: i32 = 0; k < count && k < most; k++) {
    const status = validateBody(first + k);
    store32(layout.RESULT_STATUSES + k * 4, status);
    if (status === layout.STATUS_INVALID) return k + 1;
  }
  return count < most ? count : most;
}

/** Validates one body and returns its status. To the rules of instructions, all of its code is unreachable. */
function validateBody(k: i32): i32 {
  const body = load32(layout.H_BODIES) + k * layout.BODY_ROW;
  reader.beginReading(
    load32(body + layout.BODY_START),
    load32(body + layout.BODY_END),
    load32(body + layout.BODY_OFFSET),
  );
  const type = types.typeRow(module.typeIndexOf(load32(layout.H_IMPORTED_FUNCS) + k));
  operands.beginOperands();
  frames.beginFrames();
  landings.beginLandings();
  frames.suppressCode();
  declareLocals(type);
  if (reader.status !== layout.STATUS_DONE) return reader.status;
  openBody(type);
  while (frames.isOpen()) {
    skim();
    if (reader.status !== layout.STATUS_DONE) return reader.status;
    if (!frames.isOpen()) break;
    const row = reader.nextInstruction();
    if (reader.status !== layout.STATUS_DONE) return reader.status;
    module.useFeature(load8(row + layout.ROW_FEATURE));
    visit(row);
    if (reader.status !== layout.STATUS_DONE) return reader.status;
  }
  if (reader.pos !== reader.end) reader.fail();
  return reader.status;
}

/** Compiles one body and returns its status; `result` is the offset of its words in the columns of results. */
function compileBody(k: i32, result: i32): i32 {
  const start = code.at;
  const calls = code.callsAt;
  const traps = code.trapsAt;
  const relocations = code.relocationsAt;
  const body = load32(layout.H_BODIES) + k * layout.BODY_ROW;
  const offset = load32(body + layout.BODY_OFFSET);
  reader.beginReading(load32(body + layout.BODY_START), load32(body + layout.BODY_END), offset);
  if (offset === layout.LEFT_OUT) reader.stop(layout.STATUS_TOO_LARGE);
  code.reserveCode(CODE_ALIGNMENT);
  if (reader.status === layout.STATUS_DONE) {
    code.alignCode(CODE_ALIGNMENT, FILLER);
    writeBody(load32(layout.H_IMPORTED_FUNCS) + k, result, calls, traps);
  }
  if (reader.status !== layout.STATUS_DONE) {
    code.rewind(start, calls, traps, relocations);
    store32(layout.RESULT_STARTS + result, -1);
    store32(layout.RESULT_ENDS + result, -1);
    store32(layout.RESULT_FRAMES + result, 0);
  }
  return reader.status;
}

function writeBody(func: i32, result: i32, calls: i32, traps: i32): void {
  const start = code.at;
  const type = types.typeRow(module.typeIndexOf(func));
  beginBody(func, type);
  if (reader.status !== layout.STATUS_DONE) return;
  walk();
  if (reader.status === layout.STATUS_DONE && reader.pos !== reader.end) reader.fail();
  if (reader.status !== layout.STATUS_DONE) return;
  const frame = machine.frameSize(operands.frameBytes());
  emitFragments();
  const isLeaf = code.callsAt === calls;
  addFrame(machine.returnDistance(frame), calls, traps);
  patchEpilogues(frame);
  const entry = machine.finishFrame(frame, isLeaf);
  store32(layout.RESULT_STARTS + result, (isLeaf ? entry : start) - layout.CODE);
  store32(layout.RESULT_ENDS + result, code.at - layout.CODE);
  store32(layout.RESULT_FRAMES + result, frame);
}

/**
 * Completes the rows of call and trap sites, which precede knowledge of the frame: adds `distance`, in bytes from the
 * stack pointer to the return address, and replaces landing slots with offsets.
 */
function addFrame(distance: i32, calls: i32, traps: i32): void {
  for (let row = calls; row < code.callsAt; row += 24) {
    store32(row + 4, load32(row + 4) + distance);
    store32(row + 16, landings.offsetOf(load32(row + 16)));
  }
  for (let row = traps; row < code.trapsAt; row += 20) store32(row + 8, load32(row + 8) + distance);
}

// Entry.

/** Declares the locals and emits the prologue of function `func` of type `type` (a row). */
function beginBody(func: i32, type: i32): void {
  operands.beginOperands();
  frames.beginFrames();
  beginEpilogues();
  landings.beginLandings();
  beginFragments();
  const params = load32(type + layout.TYPE_PARAMS);
  const count = load32(type + layout.TYPE_PARAM_COUNT);
  const declared = declareLocals(type);
  if (reader.status !== layout.STATUS_DONE) return;
  const first = reader.pos;
  const end = operands.homeTop;
  scanBody();
  reader.seek(first);
  metering.beginMetering(func);
  metering.reserveDepth();
  beginExceptions(operands.homeTop, hasRethrow);
  for (let k: i32 = 0; k < mostTries; k++) operands.reserveHome();
  openBody(type);
  machine.prologue();
  takeParameters(params, count);
  zeroLocals(declared, end);
  metering.takeDepth(operands.localCount);
  if (isInterruptible() && hasCalls) emitPoll();
}

/**
 * Declares the parameters and locals of a function of type `type` (a row); returns the end of the parameters' homes.
 */
function declareLocals(type: i32): i32 {
  const params = load32(type + layout.TYPE_PARAMS);
  const count = load32(type + layout.TYPE_PARAM_COUNT);
  for (let k: i32 = 0; k < count; k++) operands.addLocal(load32(params + k * 4));
  const declared = operands.homeTop;
  readLocals();
  return declared;
}

/** Opens the frame of the body of a function of type `type` (a row), whose locals have been declared. */
function openBody(type: i32): void {
  frames.beginInits(layout.LOCALS + operands.localCount * operands.LOCAL, layout.LOCALS_END);
  noteInits(load32(type + layout.TYPE_PARAM_COUNT));
  frames.openFrame(
    frames.IS_BODY,
    0,
    0,
    load32(type + layout.TYPE_RESULTS),
    load32(type + layout.TYPE_RESULT_COUNT),
    0,
  );
}

/** Reads the declarations of locals. */
function readLocals(): void {
  let total: i32 = 0;
  const runs = reader.readU32();
  if (runs < 0 || runs > reader.end - reader.pos) reader.fail();
  let last: i32 = I32;
  for (let run: i32 = 0; run < runs && reader.status === layout.STATUS_DONE; run++) {
    const count = reader.readU32();
    if (count < 0 || count > MAX_LOCALS - total) {
      reader.fail();
      return;
    }
    total = total + count;
    const type = reader.readValType();
    if (count > 0 && type !== last && (type === V128 || isRef(type))) useLocalType(type);
    if (count > 0) last = type;
    for (let k: i32 = 0; k < count && reader.status === layout.STATUS_DONE; k++) operands.addLocal(type);
  }
}

/** Records a feature that a local's type needs, with the offset of the body. */
function useLocalType(type: i32): void {
  module.useType(type);
}

/** Initializes the flags of set locals: only declared locals without a default value are unset. */
function noteInits(params: i32): void {
  for (let k: i32 = 0; k < operands.localCount; k++) {
    const type = operands.localType(k);
    operands.setLocalFlag(k, k < params || !isRef(type) || types.isNullable(type) ? 1 : 0);
  }
}

// A scan over the body before compilation: weighted uses of locals, calls, rethrows, and the nesting of legacy tries.

let hasCalls: boolean = false;
let hasRethrow: boolean = false;
/** Maximum nesting depth of legacy tries. */
let mostTries: i32 = 0;

/** A loop multiplies the weight of the uses in it by 2^LOOP_SHIFT, up to a shift of MAX_LOOP_SHIFT at its entry. */
const LOOP_SHIFT: i32 = 3;
const MAX_LOOP_SHIFT: i32 = 15;

function scanBody(): void {
  hasCalls = false;
  hasRethrow = false;
  mostTries = 0;
  let tries: i32 = 0;
  let shift: i32 = 0;
  // A word per open frame (1: loop, 2: legacy try, 0: other), in the memory of FRAMES, which is not in use yet.
  let depth: i32 = 0;
  while (reader.pos < reader.end && reader.status === layout.STATUS_DONE && depth >= 0) {
    const row = reader.skimInstruction();
    if (row === 0) break;
    // None of the instructions below has operands of fixed types.
    if (load8(row + layout.ROW_OPERANDS) !== layout.SPECIAL) continue;
    const kind = load8(row + layout.ROW_KIND);
    if (kind >= op.KIND_LOCAL_GET && kind <= op.KIND_LOCAL_TEE) {
      if (index >= 0 && index < operands.localCount) operands.useLocal(index, 1 << shift);
    } else if ((kind >= op.KIND_BLOCK && kind <= op.KIND_IF) || kind === op.KIND_TRY_TABLE || kind === op.KIND_TRY) {
      const isLoop = kind === op.KIND_LOOP && shift < MAX_LOOP_SHIFT;
      if (depth < (layout.FRAMES_END - layout.FRAMES) >> 2) {
        store32(layout.FRAMES + depth * 4, isLoop ? 1 : kind === op.KIND_TRY ? 2 : 0);
      }
      if (isLoop) shift = shift + LOOP_SHIFT;
      if (kind === op.KIND_TRY) tries = tries + 1;
      if (tries > mostTries) mostTries = tries;
      depth = depth + 1;
    } else if (kind === op.KIND_END || kind === op.KIND_DELEGATE) {
      depth = depth - 1;
      const isKnown = depth >= 0 && depth < (layout.FRAMES_END - layout.FRAMES) >> 2;
      const what = isKnown ? load32(layout.FRAMES + depth * 4) : 0;
      if (what === 1) shift = shift - LOOP_SHIFT;
      else if (what === 2) tries = tries - 1;
    } else if (kind === op.KIND_RETHROW) {
      hasRethrow = true;
    } else if (isCall(kind)) hasCalls = true;
  }
  // The compilation reports the error, at its position.
  reader.clearStatus();
  operands.pinLocals(0);
  operands.pinLocals(1);
}

function isCall(kind: i32): boolean {
  return (kind >= op.KIND_CALL && kind <= op.KIND_CALL_REF) || kind === op.KIND_THROW || kind === op.KIND_THROW_REF ||
    (kind >= op.KIND_RETURN_CALL && kind <= op.KIND_RETURN_CALL_REF) ||
    (kind >= op.KIND_SUSPEND && kind <= op.KIND_SWITCH);
}

function isInterruptible(): boolean {
  return (load32(layout.H_MODE) & MODE_INTERRUPTIBLE) !== 0;
}

/** Emits a poll, at which the host can interrupt the code. */
function emitPoll(): void {
  machine.poll(instructionOffset);
  machine.afterPoll();
}

/** Stores the parameters to their homes, and copies pinned ones into their registers. */
function takeParameters(params: i32, count: i32): void {
  operands.beginMoves();
  let general: i32 = 0;
  let vector: i32 = 0;
  for (let k: i32 = 0; k < count; k++) {
    code.reserveCode(64);
    const type = load32(params + k * 4);
    const bank = bankOf(type);
    const register = machine.parameterRegister(bank, bank === 0 ? general : vector);
    if (register !== machine.NO_REGISTER) {
      machine.storeHome(type, register, operands.localHome(k));
      const pin = operands.localPin(k);
      if (pin !== machine.NO_REGISTER) {
        operands.addMove(pin, register);
        operands.noteLocalLoaded(k);
      }
    } else takeOverflow(type, k);
    if (bank === 0) general = general + 1;
    else vector = vector + 1;
  }
  operands.makeMoves();
}

function takeOverflow(type: i32, k: i32): void {
  const as = type === V128 ? V128 : type === I32 ? I32 : machine.WIDE;
  const register = machine.scratchOf(as === V128 ? 1 : 0);
  machine.overflowBuffer(machine.SCRATCH);
  machine.loadFrom(as, register, machine.SCRATCH, k * OVERFLOW_ENTRY);
  machine.storeHome(as, register, operands.localHome(k));
}

/** Zeroes the homes from offset `from` to before `to`. */
function zeroLocals(from: i32, to: i32): void {
  const homes = (to - from) >> 3;
  if (homes > MANY_HOMES) {
    machine.zeroHomes(from, homes);
    return;
  }
  for (let home = from; home < to; home += 8) machine.storeConstant(1, 0, 0, home);
}

// Instructions.

function walk(): void {
  while (frames.isOpen()) {
    code.reserveCode(0);
    const row = reader.nextInstruction();
    if (reader.status !== layout.STATUS_DONE) return;
    module.useFeature(load8(row + layout.ROW_FEATURE));
    if (metering.isMetered()) metering.meter(row);
    visit(row);
    if (reader.status !== layout.STATUS_DONE) return;
    if (frames.live && metering.hasCanonicalNans()) metering.canonicalize(row);
  }
}

function visit(row: i32): void {
  if (load8(row + layout.ROW_OPERANDS) !== layout.SPECIAL) visitSimple(row);
  else visitSpecial(load8(row + layout.ROW_KIND), load8(row + layout.ROW_ARGUMENT));
}

/** Handles an instruction that its row's operand and result types describe. */
function visitSimple(row: i32): void {
  const checks = load8(row + layout.ROW_CHECKS);
  const is64 = checks !== 0 && checkImmediates(row, checks);
  if (reader.status !== layout.STATUS_DONE) return;
  const wide = is64 ? load8(row + layout.ROW_ADDRESSES) : 0;
  const count = load8(row + layout.ROW_OPERANDS);
  for (let k: i32 = 0; k < count; k++) {
    const type = ((wide >> k) & 1) !== 0 ? I64 : load8(row + layout.ROW_TOP + k);
    if (!frames.expect(k, type)) return;
  }
  const result = (wide & 8) !== 0 ? I64 : load8(row + layout.ROW_RESULT);
  if (frames.live) {
    emitSimple(row, result);
    return;
  }
  frames.dropTypes(count);
  if (result !== 0) operands.pushHome(result);
}

/** Checks immediates; returns whether the memory or table has 64-bit addresses. */
function checkImmediates(row: i32, checks: i32): boolean {
  let is64 = false;
  if ((checks & CHECK_ORDERING) !== 0) {
    // What the threads proposal has: accesses without an ordering, and fences with the first.
    const old: i32 = (checks & CHECK_MEMARG) !== 0 ? -1 : 0;
    if (reader.ordering !== old) module.useFeature(FEATURE_ACQUIRE_RELEASE_ATOMICS);
  }
  if ((checks & CHECK_MEMARG) !== 0) {
    if (!module.hasMemory(reader.memory)) return false;
    is64 = storage.isMemory64(reader.memory);
    const natural = load8(row + layout.ROW_WIDTH);
    const isAtomic = (checks & CHECK_ATOMIC) !== 0;
    if (reader.align > natural || (isAtomic && reader.align !== natural)) reader.fail();
    if (reader.high !== 0 && !is64) reader.fail();
  }
  if ((checks & CHECK_MEMORY) !== 0) {
    if (!module.hasMemory(index)) return false;
    is64 = storage.isMemory64(index);
  }
  if ((checks & CHECK_TABLE) !== 0) {
    if (!module.hasTable(index)) return false;
    is64 = storage.isTable64(index);
  }
  const lanes = load8(row + layout.ROW_LANES);
  if ((checks & CHECK_LANE) !== 0 && reader.lane >= lanes) reader.fail();
  if ((checks & CHECK_LANES) !== 0) {
    for (let k: i32 = 0; k < 16; k++) if (load8(reader.literal + k) >= lanes) reader.fail();
  }
  return is64;
}

function emitSimple(row: i32, result: i32): void {
  const operation = load8(row + layout.ROW_ARGUMENT);
  const type = load8(row + layout.ROW_TOP);
  switch (load8(row + layout.ROW_KIND)) {
    case op.KIND_BINARY:
      numeric.emitBinary(operation, type);
      return;
    case op.KIND_SHIFT:
      numeric.emitShift(operation, type);
      return;
    case op.KIND_DIVIDE:
      numeric.emitDivision(operation, type);
      return;
    case op.KIND_COMPARE:
      numeric.emitCompare(operation, type);
      return;
    case op.KIND_EQZ:
      numeric.emitEqz(type);
      return;
    case op.KIND_UNARY:
      numeric.emitUnary(operation, type, result);
      return;
    case op.KIND_FLOAT_BINARY:
      numeric.emitFloatBinary(operation, type);
      return;
    case op.KIND_FLOAT_UNARY:
      numeric.emitFloatUnary(operation, type);
      return;
    case op.KIND_FLOAT_COMPARE:
      numeric.emitFloatCompare(operation, type);
      return;
    case op.KIND_CONVERT:
      numeric.emitConversion(operation, type, result);
      return;
    case op.KIND_LOAD:
      accesses.emitLoad(load8(row + layout.ROW_WIDTH), operation, result);
      return;
    case op.KIND_STORE:
      accesses.emitStore(load8(row + layout.ROW_WIDTH), type);
      return;
    case op.KIND_CONST32:
      operands.pushConstant(result, reader.low, 0);
      return;
    case op.KIND_CONST64:
      operands.pushConstant(result, reader.low, reader.high);
      return;
    case op.KIND_MEMORY_SIZE:
      storage.emitMemorySize();
      return;
    case op.KIND_MEMORY_GROW:
      storage.emitMemoryGrow();
      return;
    case op.KIND_MEMORY_FILL:
      storage.emitMemoryFill();
      return;
    case op.KIND_TABLE_SIZE:
      storage.emitTableSize();
      return;
    case op.KIND_NOP:
      return;
    case op.KIND_PAUSE:
      machine.pause();
      return;
  }
  if (load8(row + layout.ROW_KIND) >= op.KIND_VECTOR) emitVector(row, operation);
  else emitAtomic(row, operation, result);
}

function emitVector(row: i32, operation: i32): void {
  const width = load8(row + layout.ROW_WIDTH);
  const shape = load8(row + layout.ROW_SHAPE);
  switch (load8(row + layout.ROW_KIND)) {
    case op.KIND_VECTOR:
      vectors.emitVector(operation, shape, load8(row + layout.ROW_OPERANDS));
      return;
    case op.KIND_VECTOR_SHIFT:
      vectors.emitVectorShift(operation, shape);
      return;
    case op.KIND_VECTOR_TEST:
      vectors.emitVectorTest(operation, shape);
      return;
    case op.KIND_SPLAT:
      vectors.emitSplat(shape);
      return;
    case op.KIND_EXTRACT_LANE:
      vectors.emitExtractLane(shape, operation);
      return;
    case op.KIND_REPLACE_LANE:
      vectors.emitReplaceLane(shape);
      return;
    case op.KIND_SHUFFLE:
      vectors.emitShuffle();
      return;
    case op.KIND_CONST128:
      vectors.emitConstant();
      return;
    case op.KIND_VECTOR_LOAD:
      vectors.emitVectorLoad(operation, shape, width);
      return;
    case op.KIND_LOAD_LANE:
      vectors.emitLoadLane(shape, width);
      return;
    case op.KIND_STORE_LANE:
      vectors.emitStoreLane(shape, width);
      return;
  }
  reader.fail();
}

function emitAtomic(row: i32, operation: i32, result: i32): void {
  const width = load8(row + layout.ROW_WIDTH);
  switch (load8(row + layout.ROW_KIND)) {
    case op.KIND_ATOMIC_LOAD:
      accesses.emitAtomicLoad(width, result);
      return;
    case op.KIND_ATOMIC_STORE:
      accesses.emitAtomicStore(width);
      return;
    case op.KIND_ATOMIC_MODIFY:
      accesses.emitAtomicModify(operation, width, result);
      return;
    case op.KIND_COMPARE_EXCHANGE:
      accesses.emitCompareExchange(width, result);
      return;
    case op.KIND_WAITING:
      accesses.emitWaiting(operation, load8(row + layout.ROW_OPERANDS) - 1);
      return;
    case op.KIND_FENCE:
      machine.fence();
      return;
  }
  reader.fail();
}

/** Handles an instruction with special validation rules. */
function visitSpecial(kind: i32, argument: i32): void {
  switch (kind) {
    case op.KIND_LOCAL_GET:
      visitLocalGet();
      return;
    case op.KIND_LOCAL_SET:
      visitLocalSet(false);
      return;
    case op.KIND_LOCAL_TEE:
      visitLocalSet(true);
      return;
    case op.KIND_GLOBAL_GET:
      visitGlobalGet();
      return;
    case op.KIND_GLOBAL_SET:
      visitGlobalSet();
      return;
    case op.KIND_BLOCK:
      control.visitBlock();
      return;
    case op.KIND_LOOP:
      control.visitLoop();
      if (frames.live && isInterruptible() && reader.status === layout.STATUS_DONE) emitPoll();
      return;
    case op.KIND_IF:
      control.visitIf();
      return;
    case op.KIND_ELSE:
      control.visitElse();
      return;
    case op.KIND_END:
      control.visitEnd();
      return;
    case op.KIND_BR:
      control.visitBranch();
      return;
    case op.KIND_BR_IF:
      control.visitBranchIf();
      return;
    case op.KIND_BR_TABLE:
      control.visitBranchTable();
      return;
    case op.KIND_RETURN:
      control.visitReturn();
      return;
    case op.KIND_UNREACHABLE:
      control.visitUnreachable();
      return;
    case op.KIND_CALL:
      visitCall();
      return;
    case op.KIND_CALL_INDIRECT:
      visitCallIndirect();
      return;
    case op.KIND_CALL_REF:
      visitCallRef();
      return;
    case op.KIND_RETURN_CALL:
      visitReturnCall();
      return;
    case op.KIND_RETURN_CALL_INDIRECT:
      visitReturnCallIndirect();
      return;
    case op.KIND_RETURN_CALL_REF:
      visitReturnCallRef();
      return;
    case op.KIND_TRY_TABLE:
      exceptions.visitTryTable();
      return;
    case op.KIND_TRY:
      exceptions.visitTry();
      return;
    case op.KIND_CATCH:
      exceptions.visitCatch(false);
      return;
    case op.KIND_CATCH_ALL:
      exceptions.visitCatch(true);
      return;
    case op.KIND_DELEGATE:
      control.visitDelegate();
      return;
    case op.KIND_THROW:
      exceptions.visitThrow();
      return;
    case op.KIND_THROW_REF:
      exceptions.visitThrowRef();
      return;
    case op.KIND_RETHROW:
      exceptions.visitRethrow();
      return;
    case op.KIND_WIDE_SUM:
    case op.KIND_WIDE_PRODUCT:
      visitWide(kind, argument);
      return;
    case op.KIND_DROP:
      visitDrop();
      return;
    case op.KIND_SELECT:
      visitSelect();
      return;
    case op.KIND_SELECT_TYPED:
      visitSelectTyped();
      return;
  }
  visitReference(kind, argument);
}

function visitReference(kind: i32, argument: i32): void {
  switch (kind) {
    case op.KIND_MEMORY_COPY:
      visitMemoryCopy();
      return;
    case op.KIND_MEMORY_INIT:
      visitMemoryInit();
      return;
    case op.KIND_DATA_DROP:
      if (module.hasData(index) && frames.live) storage.emitDataDrop();
      return;
    case op.KIND_TABLE_GET:
      visitTableGet();
      return;
    case op.KIND_TABLE_SET:
      visitTableSet();
      return;
    case op.KIND_TABLE_GROW:
      visitTableGrow();
      return;
    case op.KIND_TABLE_FILL:
      visitTableFill();
      return;
    case op.KIND_TABLE_COPY:
      visitTableCopy();
      return;
    case op.KIND_TABLE_INIT:
      visitTableInit();
      return;
    case op.KIND_ELEM_DROP:
      if (module.hasElem(index) && frames.live) storage.emitElemDrop();
      return;
    case op.KIND_REF_NULL:
      visitRefNull();
      return;
    case op.KIND_REF_IS_NULL:
      control.referenceOnTop();
      if (reader.status !== layout.STATUS_DONE) return;
      if (frames.live) storage.emitRefIsNull();
      else frames.replaceTypes(1, I32);
      return;
    case op.KIND_REF_FUNC:
      visitRefFunc();
      return;
    case op.KIND_REF_AS_NON_NULL: {
      const type = control.referenceOnTop();
      if (reader.status !== layout.STATUS_DONE) return;
      if (frames.live) storage.emitRefAsNonNull();
      else frames.replaceTypes(1, types.nonNull(type));
      return;
    }
    case op.KIND_BR_ON_NULL:
      control.visitBranchOnNull();
      return;
    case op.KIND_BR_ON_NON_NULL:
      control.visitBranchOnNonNull();
      return;
    case op.KIND_REF_EQ: {
      const type = types.refType(1, types.HEAP_EQ);
      if (!frames.expect(0, type) || !frames.expect(1, type)) return;
      if (frames.live) numeric.emitCompare(cond.EQ, type);
      else frames.replaceTypes(2, I32);
      return;
    }
  }
  if (kind >= op.KIND_CONT_NEW && kind <= op.KIND_SWITCH) visitContinuation(kind);
  else if (!visitDescriptor(kind, argument)) aggregates.visitAggregate(kind, argument);
}

// Locals and globals.

function visitLocalGet(): void {
  if (!module.isIndex(index, operands.localCount)) return;
  if (!operands.isLocalSet(index)) {
    reader.fail();
    return;
  }
  if (frames.live) operands.pushLocal(index);
  else operands.pushHome(operands.localType(index));
}

function visitLocalSet(isTee: boolean): void {
  if (!module.isIndex(index, operands.localCount)) return;
  const type = operands.localType(index);
  if (!frames.expect(0, type)) return;
  frames.markSet(index);
  if (!frames.live) {
    frames.replaceTypes(1, isTee ? type : 0);
    return;
  }
  if (isTee) operands.teeLocal(index, operands.popEntry());
  else operands.setLocal(index, operands.popEntry());
}

function visitGlobalGet(): void {
  if (!module.hasGlobal(index)) return;
  if (frames.live) storage.emitGlobalGet();
  else operands.pushHome(load32(storage.globalRow(index) + layout.GLOBAL_TYPE));
}

function visitGlobalSet(): void {
  if (!module.hasGlobal(index)) return;
  const row = storage.globalRow(index);
  if ((load32(row + layout.GLOBAL_FLAGS) & layout.GLOBAL_IS_MUTABLE) === 0) reader.fail();
  if (!frames.expect(0, load32(row + layout.GLOBAL_TYPE)) || reader.status !== layout.STATUS_DONE) return;
  if (frames.live) storage.emitGlobalSet();
  else frames.dropTypes(1);
}

// 128-bit arithmetic: four or two operands, two results.

function visitWide(kind: i32, argument: i32): void {
  const count: i32 = kind === op.KIND_WIDE_SUM ? 4 : 2;
  for (let k: i32 = 0; k < count; k++) if (!frames.expect(k, I64)) return;
  if (!frames.live) {
    frames.replaceTypes(count, I64);
    operands.pushHome(I64);
  } else if (kind === op.KIND_WIDE_SUM) numeric.emitWideSum(argument);
  else numeric.emitWideProduct(argument);
}

// Operands of any type.

function visitDrop(): void {
  frames.typeAt(0);
  if (reader.status !== layout.STATUS_DONE) return;
  if (frames.live) operands.release(operands.popEntry());
  else frames.dropTypes(1);
}

function visitSelect(): void {
  if (!frames.expect(0, I32)) return;
  const second = frames.typeAt(1);
  const first = frames.typeAt(2);
  if (isRef(first) || isRef(second)) reader.fail();
  if (first !== second && first !== BOTTOM && second !== BOTTOM) reader.fail();
  finishSelect(first === BOTTOM ? second : first);
}

function visitSelectTyped(): void {
  if (reader.valTypeCount !== 1) {
    reader.fail();
    return;
  }
  const type = reader.valType;
  module.useType(type);
  if (reader.status !== layout.STATUS_DONE) return;
  if (!frames.expect(0, I32) || !frames.expect(1, type) || !frames.expect(2, type)) return;
  finishSelect(type);
}

function finishSelect(type: i32): void {
  if (reader.status !== layout.STATUS_DONE) return;
  if (frames.live) {
    numeric.emitSelect(type);
    return;
  }
  frames.dropTypes(3);
  operands.pushHome(type);
}

// Calls.

/**
 * Checks the arguments for type `type` (a row); returns whether the call is reachable and valid. In unreachable code,
 * replaces the arguments by the results.
 */
function isCallable(type: i32): boolean {
  const params = load32(type + layout.TYPE_PARAMS);
  const count = load32(type + layout.TYPE_PARAM_COUNT);
  if (!frames.expectList(params, count, 0)) return false;
  if (frames.live) return true;
  frames.dropTypes(count);
  frames.pushTypes(load32(type + layout.TYPE_RESULTS), load32(type + layout.TYPE_RESULT_COUNT));
  return false;
}

function visitCall(): void {
  const type = module.functionAt(index);
  if (type !== 0 && isCallable(type)) calls.emitCall(index, type);
}

/** Checks table, type and operands of a call through a table; returns the row of the type, or 0 after a failure. */
function indirectType(): i32 {
  if (!module.hasTable(index2)) return 0;
  if (!types.matches(elementType(index2), types.FUNCREF)) {
    reader.fail();
    return 0;
  }
  const type = module.funcTypeAt(index);
  if (type === 0 || !frames.expect(0, tableAddressType(index2))) return 0;
  return hasArguments(type, 1) ? type : 0;
}

function hasArguments(type: i32, below: i32): boolean {
  return frames.expectList(load32(type + layout.TYPE_PARAMS), load32(type + layout.TYPE_PARAM_COUNT), below);
}

function visitCallIndirect(): void {
  const type = indirectType();
  if (type === 0) return;
  if (frames.live) {
    calls.emitCallIndirect(index, index2);
    return;
  }
  frames.dropTypes(1);
  isCallable(type);
}

/** Checks type and operands of a call through a reference; returns the row of the type, or 0 after a failure. */
function referencedType(): i32 {
  module.useFeature(FEATURE_TYPED_FUNCTION_REFERENCES);
  const type = module.funcTypeAt(index);
  if (type === 0 || !frames.expect(0, types.refType(1, index))) return 0;
  return hasArguments(type, 1) ? type : 0;
}

function visitCallRef(): void {
  const type = referencedType();
  if (type === 0) return;
  if (frames.live) {
    calls.emitCallRef(index);
    return;
  }
  frames.dropTypes(1);
  isCallable(type);
}

/** Checks that the results of type `type` (a row), of a tail call's callee, match those of this function. */
function returnsOurs(type: i32): boolean {
  const body = frames.bodyFrame();
  const count = load32(type + layout.TYPE_RESULT_COUNT);
  const theirs = load32(type + layout.TYPE_RESULTS);
  const ours = load32(body + frames.FRAME_RESULTS);
  let same = count === load32(body + frames.FRAME_RESULT_COUNT);
  for (let k: i32 = 0; k < count && same; k++) same = types.matches(load32(theirs + k * 4), load32(ours + k * 4));
  if (!same) reader.fail();
  return same;
}

function visitReturnCall(): void {
  const type = module.functionAt(index);
  if (type === 0 || !returnsOurs(type) || !hasArguments(type, 0)) return;
  if (frames.live) calls.emitTailCall(index, type);
  frames.markDead();
}

function visitReturnCallIndirect(): void {
  const type = indirectType();
  if (type === 0 || !returnsOurs(type)) return;
  if (frames.live) calls.emitTailCallIndirect(index, index2);
  frames.markDead();
}

function visitReturnCallRef(): void {
  const type = referencedType();
  if (type === 0 || !returnsOurs(type)) return;
  if (frames.live) calls.emitTailCallRef(index);
  frames.markDead();
}

// Bulk operations and tables.

function memoryAddressType(k: i32): i32 {
  return storage.isMemory64(k) ? I64 : I32;
}

function tableAddressType(k: i32): i32 {
  return storage.isTable64(k) ? I64 : I32;
}

/** The length of a copy has the smaller of the two address types. */
function smaller(a: i32, b: i32): i32 {
  return a === I64 ? b : a;
}

function visitMemoryCopy(): void {
  if (!module.hasMemory(index) || !module.hasMemory(index2)) return;
  const to = memoryAddressType(index);
  const from = memoryAddressType(index2);
  if (!frames.expect(0, smaller(to, from)) || !frames.expect(1, from) || !frames.expect(2, to)) return;
  if (frames.live) storage.emitMemoryCopy();
  else frames.dropTypes(3);
}

function visitMemoryInit(): void {
  if (!module.hasMemory(index2) || !module.hasData(index)) return;
  if (!frames.expect(0, I32) || !frames.expect(1, I32) || !frames.expect(2, memoryAddressType(index2))) return;
  if (frames.live) storage.emitMemoryInit();
  else frames.dropTypes(3);
}

function elementType(table: i32): i32 {
  return load32(storage.tableRow(table) + layout.TABLE_ELEMENT);
}

function visitTableGet(): void {
  if (!module.hasTable(index) || !frames.expect(0, tableAddressType(index))) return;
  if (frames.live) storage.emitTableGet();
  else frames.replaceTypes(1, elementType(index));
}

function visitTableSet(): void {
  if (!module.hasTable(index)) return;
  if (!frames.expect(0, elementType(index)) || !frames.expect(1, tableAddressType(index))) return;
  if (frames.live) storage.emitTableSet();
  else frames.dropTypes(2);
}

function visitTableGrow(): void {
  if (!module.hasTable(index)) return;
  const address = tableAddressType(index);
  if (!frames.expect(0, address) || !frames.expect(1, elementType(index))) return;
  if (frames.live) storage.emitTableGrow();
  else frames.replaceTypes(2, address);
}

function visitTableFill(): void {
  if (!module.hasTable(index)) return;
  const address = tableAddressType(index);
  if (!frames.expect(0, address) || !frames.expect(1, elementType(index)) || !frames.expect(2, address)) return;
  if (frames.live) storage.emitTableFill();
  else frames.dropTypes(3);
}

function visitTableCopy(): void {
  if (!module.hasTable(index) || !module.hasTable(index2)) return;
  if (!types.matches(elementType(index2), elementType(index))) reader.fail();
  const to = tableAddressType(index);
  const from = tableAddressType(index2);
  if (!frames.expect(0, smaller(to, from)) || !frames.expect(1, from) || !frames.expect(2, to)) return;
  if (reader.status !== layout.STATUS_DONE) return;
  if (frames.live) storage.emitTableCopy();
  else frames.dropTypes(3);
}

function visitTableInit(): void {
  if (!module.hasTable(index2) || !module.hasElem(index)) return;
  if (!types.matches(module.elemType(index), elementType(index2))) reader.fail();
  if (!frames.expect(0, I32) || !frames.expect(1, I32) || !frames.expect(2, tableAddressType(index2))) return;
  if (reader.status !== layout.STATUS_DONE) return;
  if (frames.live) storage.emitTableInit();
  else frames.dropTypes(3);
}

// References.

function visitRefNull(): void {
  const type = types.refType(1, reader.heap);
  module.useType(type);
  if (reader.status !== layout.STATUS_DONE) return;
  if (frames.live) operands.pushConstant(type, 0, 0);
  else operands.pushHome(type);
}

function visitRefFunc(): void {
  if (!module.isIndex(index, load32(layout.H_FUNC_COUNT))) return;
  if (!module.isDeclared(index)) {
    reader.fail();
    return;
  }
  const type = module.funcRef(index);
  if (frames.live) storage.emitRefFunc(type);
  else operands.pushHome(type);
}

// The kernel's other exports: steps of compileBodies, and end addresses of the output tables.

/** The second step of compileBodies: places the code of `done` bodies from `first` on at H_BASE. */
export function placeBodies(first: i32, done: i32): void {
  placeCode(first, done);
}

/** The last step of compileBodies: resolves references to bodies that have been placed. */
export function linkBodies(): void {
  linkCode();
}

export function callsEnd(): i32 {
  return code.callsAt;
}

export function trapsEnd(): i32 {
  return code.trapsAt;
}

export function relocationsEnd(): i32 {
  return code.relocationsAt;
}
