/**
 * Rules for addresses and memory. In: an instruction with a memory operand. Out: PLACE.ADDRESS has the address, the
 * access is proven or the analysis fails, and for a load PLACE.RESULT has the value.
 *
 *     stack      inside the frame of the function
 *     context    loads of fields by their kind, stores only to globals of the instance and to lengths of memories
 *     memory     distance + displacement + size within the guard reservation (32-bit memory 0 with guard pages), within
 *                room that was compared before, or within the smallest length of the memory
 *     table      an element below a length that was compared before
 *     constants  loads anywhere in the image
 *     others     the fields that compiled code uses, by the layouts of engine/abi/
 */
import {
  CONTEXT,
  GLOBAL_SIZE,
  GUARD_RESERVATION,
  MEMORY,
  RECORD,
  SHARED_LENGTH_SIZE,
  TABLE,
  TAG_SIZE,
  THREAD,
} from "../abi/context_layout.ts";
import { DESCRIPTOR, DISPLAY_LENGTH } from "../abi/gc_layout.ts";
import { type Analysis, REASON } from "./analysis.ts";
import { EXACT, type Facts, lengthPlace, MAX32, PLACE } from "./facts.ts";
import { commonDivisor } from "./joins.ts";
import { setAbout, setAddress, setAncestor, setLength, setObject } from "./kind_facts.ts";
import {
  bytesLimit,
  isArrayLimit,
  isMaskedLimit,
  isMemoryLimit,
  isNamedLimit,
  limitShift,
  memoryLimit,
  productLimit,
  shiftedLimit,
  tableBytesLimit,
  tableLimit,
} from "./limits.ts";
import { REFERENCE_FACTS, VALUE } from "./value_kinds.ts";
import {
  accessCells,
  accessClass,
  accessNewArray,
  accessSizeCell,
  accessSlotHeader,
  addToCells,
} from "./allocation.ts";
import {
  accessElement,
  accessReference,
  isOfType,
  makeElement,
  moveElement,
  NULL_PAGE,
  setReference,
} from "./objects.ts";
import { canonicalType } from "../wasm/subtype.ts";
import { isRef } from "../wasm/types.ts";
import { ALU, BASE_RIP, KIND } from "./instructions.ts";

const OVERFLOW_BYTES = THREAD.SLOT_COUNT * THREAD.SLOT_SIZE;
const { ADDRESS, PAYLOAD, RESULT } = PLACE;

/** Fields of the thread state that code loads and stores: offset, bytes, and whether it may store. */
const THREAD_FIELDS = [
  { at: THREAD.FUEL, bytes: 8, store: true },
  { at: THREAD.DEPTH_LEFT, bytes: 4, store: true },
  { at: THREAD.DEPTH_STOP, bytes: 4, store: false },
  { at: THREAD.CAUGHT_TAG, bytes: 8, store: false },
] as const;

/** Whether memory `m` is one whose accesses the guard pages bound. Such a memory never moves. */
export function isGuarded(a: Analysis, m: number): boolean {
  return m === 0 && !a.module.code.settings.explicitBounds && a.module.memoryIsGuardable[0] === true;
}

/** Evaluates the address of the current instruction, plus `more`, into PLACE.ADDRESS. */
export function evaluateAddress(a: Analysis, more = 0): void {
  const { code, facts, n } = a;
  const base = code.base[n], index = code.index[n], displacement = code.displacement[n] + more;
  // Of an earlier interpretation, with another operand.
  a.exactTypes.delete(a.name());
  if (base >= 0) facts.takeNumber(base);
  if (index >= 0) facts.takeNumber(index);
  if (base === BASE_RIP) {
    const at = code.at[n + 1] + displacement;
    setAddress(facts, ADDRESS, VALUE.IMAGE, at);
    return;
  }
  if (base === a.machine.stackPointer) setAddress(facts, ADDRESS, VALUE.STACK, -a.depth);
  else if (base < 0) facts.number(ADDRESS, 0, 0, 0);
  else facts.copy(ADDRESS, base);
  takeLength(facts, ADDRESS);
  const kind = facts.kind[ADDRESS];
  if (kind === VALUE.REFERENCE) evaluateReference(a, base, index, code.scale[n]);
  else if (kind === VALUE.FREE_SLOT || kind === VALUE.NEW_ARRAY) evaluateSlot(a, base, index);
  else if ((kind === VALUE.CLASS_CELL || kind === VALUE.SIZE_CELL) && index >= 0) facts.forget(ADDRESS);
  else if (kind === VALUE.CELLS && index >= 0) addToCells(a, index, code.scale[n]);
  else if (index >= 0) addIndex(a, index, code.scale[n]);
  addDisplacement(facts, displacement);
}

/** The address is that of an object, whose columns have no distance, or of an element. */
function evaluateReference(a: Analysis, reference: number, index: number, scale: number): void {
  const { facts } = a;
  a.referent = reference;
  if (index >= 0) makeElement(a, ADDRESS, reference, index, scale);
  else facts.low[ADDRESS] = facts.high[ADDRESS] = 0;
}

/** The address of a slot, whose columns have no distance. */
function evaluateSlot(a: Analysis, slot: number, index: number): void {
  const { facts } = a;
  a.referent = slot;
  if (index >= 0) facts.forget(ADDRESS);
  else facts.low[ADDRESS] = facts.high[ADDRESS] = 0;
}

/** Adds location `index`, shifted left by `scale`, to the address. */
function addIndex(a: Analysis, index: number, scale: number): void {
  const { code, facts, n } = a;
  const number = facts.kind[index];
  if (number === VALUE.REFERENCE && scale === 0 && code.base[n] >= 0) {
    return makeElement(a, ADDRESS, index, code.base[n], 0);
  }
  if (number === VALUE.ELEMENT && scale === 0 && code.base[n] >= 0) {
    facts.copy(ADDRESS, index);
    return moveElement(a, ADDRESS, code.base[n], 0);
  }
  if (facts.kind[ADDRESS] === VALUE.NUMBER && number !== VALUE.NUMBER && scale === 0) {
    // The index is the pointer: the sum is the same.
    const low = facts.low[ADDRESS], high = facts.high[ADDRESS];
    const name = facts.name[ADDRESS], delta = facts.delta[ADDRESS], room = facts.room[ADDRESS], of = facts.of[ADDRESS];
    const step = facts.stepOf(ADDRESS);
    facts.copy(ADDRESS, index);
    addNumber(facts, ADDRESS, { low, high, name, delta, step, room, of });
    return;
  }
  if (!isNumberOrLength(facts, index)) {
    const isKnown = number === VALUE.EXPECTED_TYPE, isType = number === VALUE.TYPE_ID || isKnown;
    const isOffset = number === VALUE.DESCRIPTOR_OFFSET ? scale === 0 : isType && scale === 6;
    if (isOffset && facts.isStart(ADDRESS, VALUE.DESCRIPTORS, 0)) {
      // No reference has the name of the type of the module.
      if (isKnown) a.exactTypes.set(a.name(), a.module.typeId[facts.index[index]]);
      setAbout(facts, ADDRESS, VALUE.DESCRIPTOR, isKnown ? a.name() : facts.subject[index]);
    } else facts.forget(ADDRESS);
    return;
  }
  if (facts.kind[ADDRESS] === VALUE.ELEMENT) moveElement(a, ADDRESS, index, scale);
  else addNumber(facts, ADDRESS, scaled(facts, index, scale));
}

function isLength({ kind }: Facts, l: number): boolean {
  return kind[l] === VALUE.LENGTH || kind[l] === VALUE.ARRAY_LENGTH;
}

/** The length at location `l`, if it is one, is used as a number: it loses its meaning, but not bounds and room. */
export function takeLength(facts: Facts, l: number): void {
  if (!isLength(facts, l)) return;
  facts.kind[l] = VALUE.NUMBER;
  facts.traits[l] = 0;
}

/** Whether the value of location `l` is a number, with bounds; a length is one that has a meaning, too. */
export function isNumberOrLength(facts: Facts, l: number): boolean {
  return facts.isNumber(l) || isLength(facts, l);
}

/** Whether the value of location `l` is a number or an address, to which a number can be added. */
export function hasDistance(facts: Facts, l: number): boolean {
  const kind = facts.kind[l];
  return kind <= VALUE.CELL || kind === VALUE.IMAGE;
}

/** The facts about a number, apart from a location. */
interface Addend {
  low: number;
  high: number;
  name: number;
  delta: number;
  step: number;
  room: number;
  of: number;
}

const ADDEND: Addend = { low: 0, high: 0, name: 0, delta: 0, step: 1, room: 0, of: -1 };

/** Location `l`, a number, shifted left by `scale`. The result is valid until the next call. */
export function scaled(facts: Facts, l: number, scale: number): Addend {
  const factor = 1 << scale;
  const of = facts.of[l];
  ADDEND.low = facts.low[l] * factor;
  ADDEND.high = facts.high[l] * factor;
  ADDEND.name = scale === 0 ? facts.name[l] : 0;
  ADDEND.delta = facts.delta[l];
  ADDEND.step = facts.stepOf(l) * factor;
  ADDEND.room = facts.room[l] * factor;
  ADDEND.of = scale === 0 ? of : scale === 3 ? bytesLimit(of) : -1;
  if (isNamedLimit(of) || scale !== 0) scaleLimit(facts, l, scale);
  return ADDEND;
}

/** The limit of an index of elements that is shifted left, or the product that it becomes. */
function scaleLimit(facts: Facts, l: number, scale: number): void {
  const of = facts.of[l];
  const isIndex = isArrayLimit(of) && limitShift(of) === 0;
  if (isIndex) {
    ADDEND.of = shiftedLimit(of, scale);
    ADDEND.room = facts.room[l];
  } else if (of < 0 && facts.delta[l] === 0 && facts.high[l] <= MAX32 && facts.low[l] !== facts.high[l]) {
    ADDEND.of = productLimit(facts.name[l], scale);
    ADDEND.room = 0;
  } else if (isNamedLimit(of)) ADDEND.of = -1;
}

/** Adds a number to the value of location `l`, a number or an address; forgets the sum where it may wrap. */
export function addNumber(facts: Facts, l: number, addend: Addend): void {
  const { low, high, name, delta, step, room, of } = addend;
  const constant = facts.low[l], most = facts.high[l];
  const isConstant = constant === most;
  if (low === high && !(isConstant && of >= 0)) return shiftExactly(facts, l, low);
  const sumLow = constant + low, sumHigh = most + high;
  const isInside = isMemoryLimit(facts.of[l]) && facts.room[l] >= high;
  if (facts.kind[l] === VALUE.NUMBER && !(sumHigh <= EXACT) && !isInside) return facts.forget(l);
  facts.setStep(l, commonDivisor(facts.stepOf(l), step));
  // An odd number plus another need not be odd.
  if (facts.kind[l] === VALUE.NUMBER) facts.traits[l] = 0;
  const own = facts.of[l];
  facts.low[l] = sumLow;
  facts.high[l] = sumHigh;
  facts.name[l] = isConstant ? name : 0;
  facts.delta[l] = delta + constant;
  if (!isConstant) return addRoom(facts, l, own, high, of, room - most);
  facts.room[l] = room - constant;
  facts.of[l] = constant === 0 || !isNamedLimit(of) || limitShift(of) === 0 ? of : -1;
}

/**
 * The room below the length of a memory that the sum of two numbers leaves: that of one, less the largest value of the
 * other. `own`: the limit of location `l` before the sum; `high`: the largest value that was added; `of`, `room`: the
 * limit of that value, and its room below it with the largest value at `l`.
 */
function addRoom(facts: Facts, l: number, own: number, high: number, of: number, room: number): void {
  const isOwn = isMemoryLimit(own);
  facts.of[l] = isOwn ? own : isMemoryLimit(of) ? of : -1;
  facts.room[l] = isOwn ? facts.room[l] - high : room;
}

function shiftExactly(facts: Facts, l: number, amount: number): void {
  if (facts.kind[l] === VALUE.NUMBER && !(facts.high[l] + amount <= EXACT && facts.low[l] + amount >= 0)) {
    return facts.forget(l);
  }
  facts.shift(l, amount);
}

function addDisplacement(facts: Facts, displacement: number): void {
  if (displacement === 0) return;
  facts.low[ADDRESS] += displacement;
  facts.high[ADDRESS] += displacement;
  const kind = facts.kind[ADDRESS];
  if (kind === VALUE.NUMBER) facts.traits[ADDRESS] = 0;
  else if (!hasDistance(facts, ADDRESS)) return;
  facts.delta[ADDRESS] += displacement;
  facts.moveRoom(ADDRESS, displacement);
}

/** Proves a load of `size` bytes at the current instruction's address plus `more`; its value is in PLACE.RESULT. */
export function load(a: Analysis, size: number, more = 0): void {
  evaluateAddress(a, more);
  const { facts } = a;
  facts.number(RESULT, 0, size < 8 ? 2 ** (size * 8) - 1 : Infinity, a.name());
  access(a, size, false);
}

/**
 * Proves a store of `size` bytes at the current instruction's address plus `more`; `from`: the location of the value,
 * −1 for none.
 */
export function store(a: Analysis, size: number, from: number, more = 0): void {
  evaluateAddress(a, more);
  const { facts } = a;
  const isStack = facts.kind[ADDRESS] === VALUE.STACK;
  const position = -facts.low[ADDRESS];
  a.stored = from;
  access(a, size, true);
  if (!isStack || a.reason !== "") return;
  a.forgetSlots(position, size);
  if (from < 0 || size < 4 || size > 8) return;
  const slot = a.newSlot(position, size);
  if (slot === 0) return;
  if (size === 8 || facts.isShort(from)) facts.copy(slot, from);
  else facts.number(slot, 0, MAX32, 0);
  if (size === 4 && facts.isConstant(from) && facts.low[from] === 0) joinHalves(a, position + 4);
}

/** The upper half of the word at `position` is zero now: a number of 32 bits in the lower half is that of the word. */
function joinHalves(a: Analysis, position: number): void {
  const { facts } = a;
  const half = a.slot(position, 4);
  if (half === 0 || !facts.isNumber(half) || facts.high[half] > MAX32) return;
  const word = a.newSlot(position, 8);
  if (word !== 0) facts.copy(word, half);
}

/** Proves a read-modify-write access of `size` bytes. */
export function modify(a: Analysis, size: number): void {
  if (isFence(a)) return;
  load(a, size);
  a.stored = -1;
  access(a, size, true);
  if (a.facts.kind[ADDRESS] === VALUE.STACK && a.reason === "") a.forgetSlots(-a.facts.low[ADDRESS], size);
}

/**
 * Whether the instruction is a locked OR of the word at the stack pointer with zero, which orders accesses and changes
 * nothing.
 */
function isFence({ code, machine, n }: Analysis): boolean {
  const isOr = code.kind[n] === KIND.ALU && code.sub[n] === ALU.OR && code.locked[n] !== 0;
  const isNothing = code.hasImmediate[n] !== 0 && code.immediate[n] === 0;
  return isOr && isNothing && code.base[n] === machine.stackPointer && code.index[n] < 0 &&
    code.displacement[n] === 0;
}

/** Proves the access at PLACE.ADDRESS, or fails. */
function access(a: Analysis, size: number, isStore: boolean): void {
  const { facts } = a;
  const at = facts.low[ADDRESS];
  const isFixed = at === facts.high[ADDRESS];
  switch (facts.kind[ADDRESS]) {
    case VALUE.STACK:
      return accessStack(a, at, size, isFixed, isStore);
    case VALUE.MEMORY:
      return accessMemory(a, facts.index[ADDRESS], size);
    case VALUE.TABLE:
      return accessTable(a, facts.index[ADDRESS], size, isStore);
    case VALUE.IMAGE:
      return accessImage(a, at, facts.high[ADDRESS], size, isStore);
    case VALUE.REFERENCE:
      return accessReference(a, at, size, isStore);
    case VALUE.ELEMENT:
      return accessElement(a, size, isStore);
    case VALUE.NUMBER:
      if (!isNull(a) || at < 0 || at + size > NULL_PAGE) return a.fail(REASON.ADDRESS);
      a.requireContext();
      a.faults = true;
      return;
  }
  if (!isFixed) return a.fail(REASON.ADDRESS);
  accessFixed(a, at, size, isStore);
}

/** Whether the address is a displacement from null. */
function isNull({ code, facts, n }: Analysis): boolean {
  const base = code.base[n];
  return base >= 0 && code.index[n] < 0 && facts.low[base] === 0 && facts.high[base] === 0;
}

/** Proves the access at PLACE.ADDRESS, the constant distance `at` from the start of its object, or fails. */
function accessFixed(a: Analysis, at: number, size: number, isStore: boolean): void {
  const { facts } = a;
  const index = facts.index[ADDRESS], subject = facts.subject[ADDRESS];
  switch (facts.kind[ADDRESS]) {
    case VALUE.CONTEXT:
      return isStore ? storeContext(a, at, size) : loadContext(a, at, size);
    case VALUE.RECORD_CONTEXT:
      return accessOtherContext(a, subject, at, size, isStore);
    case VALUE.OVERFLOW:
      return accessOverflow(a, at, size, isStore);
    case VALUE.THREAD:
      return accessThread(a, at, size, isStore);
    case VALUE.CELL:
      return at >= 0 && at + size <= GLOBAL_SIZE ? accessGlobal(a, index, at, size, isStore) : a.fail(REASON.ADDRESS);
    case VALUE.LENGTH_CELL:
      if (at !== 0 || size !== 8 || isStore) return a.fail(REASON.ADDRESS);
      return setLength(facts, RESULT, memoryLimit(index), longest(a, index), a.name());
    case VALUE.CELLS:
      return accessCells(a, at, size, isStore);
    case VALUE.CLASS_CELL:
      return accessClass(a, size, isStore);
    case VALUE.SIZE_CELL:
      return accessSizeCell(a, size, isStore);
    case VALUE.FREE_SLOT:
      return accessSlotHeader(a, at, size, isStore);
    case VALUE.NEW_ARRAY:
      return accessNewArray(a, at, size, isStore);
    case VALUE.DESCRIPTOR:
      return accessDescriptor(a, subject, at, size, isStore);
    case VALUE.POLL_PLACE:
      return at === 4 && size === 4 && !isStore ? a.requireContext() : a.fail(REASON.ADDRESS);
    case VALUE.DISPLAY:
      if (at % 4 !== 0 || at < 0 || size !== 4 || isStore) return a.fail(REASON.OBJECT);
      return setAncestor(facts, RESULT, subject, at / 4);
  }
  a.fail(REASON.ADDRESS);
}

/** An access to the overflow buffer, which passes the parameters and results of calls beyond the registers. */
function accessOverflow(a: Analysis, at: number, size: number, isStore: boolean): void {
  const { facts } = a;
  if (at < 0 || at + size > OVERFLOW_BYTES) return a.fail(REASON.THREAD);
  const entry = Math.floor(at / THREAD.SLOT_SIZE);
  const isWhole = at % THREAD.SLOT_SIZE === 0 && size === 8;
  if (isStore) return storeOverflow(a, at, size, isWhole);
  if (isWhole && a.overflowSlot(entry) > 0) facts.copy(RESULT, a.overflowSlot(entry));
}

function storeOverflow(a: Analysis, at: number, size: number, isWhole: boolean): void {
  const { facts } = a;
  facts.forget(PAYLOAD);
  const first = Math.floor(at / THREAD.SLOT_SIZE);
  for (let entry = first; entry * THREAD.SLOT_SIZE < at + size; entry++) {
    if (a.overflowSlot(entry) > 0) facts.forget(a.overflowSlot(entry));
  }
  if (!isWhole || a.stored < 0) return;
  const l = a.newOverflowSlot(first);
  if (l > 0) facts.copy(l, a.stored);
  else a.fail(REASON.WORK);
}

/** The value of global `g`, in the context or its cell. */
function accessGlobal(a: Analysis, g: number, at: number, size: number, isStore: boolean): void {
  const type = a.module.globalType[g];
  if (type === undefined || !isRef(type)) return;
  const isWhole = at === 0 && size === 8;
  if (!isStore) {
    if (isWhole) setReference(a, RESULT, type, a.name());
  } else if (!isWhole || a.stored < 0 || !isOfType(a, a.stored, type)) a.fail(REASON.REFERENCE);
}

function accessStack(a: Analysis, at: number, size: number, isFixed: boolean, isStore: boolean): void {
  if (!isFixed || at < -a.depth) return a.fail(REASON.FRAME);
  const { facts } = a;
  if (at + size <= 0) {
    if (isStore) return;
    const slot = a.slot(-at, size);
    if (slot !== 0 && (size === 8 || size === 4)) facts.copy(RESULT, slot);
    if (slot === 0 && size === 4) loadHalf(a, -at);
    return;
  }
  // The return address: a tail call into another instance compares it with the stub for such returns.
  if (isStore || at !== 0 || size !== 8) return a.fail(REASON.FRAME);
  setObject(facts, RESULT, VALUE.RETURN_ADDRESS);
}

/** The lower half of the word at `position` is loaded: it is the word's number if that has 32 bits. */
function loadHalf(a: Analysis, position: number): void {
  const { facts } = a;
  const word = a.slot(position, 8);
  if (word !== 0 && facts.isNumber(word) && facts.high[word] <= MAX32) facts.copy(RESULT, word);
}

/** Proves that the address is inside of memory `m`. */
function accessMemory(a: Analysis, m: number, size: number): void {
  const { facts } = a;
  const last = facts.high[ADDRESS] + size;
  if (facts.low[ADDRESS] < 0 || m >= a.module.memoryIs64.length) return a.fail(REASON.MEMORY);
  if (isGuarded(a, m) && last <= GUARD_RESERVATION) return a.requireContext();
  if (facts.of[ADDRESS] === memoryLimit(m) && facts.room[ADDRESS] >= size) return;
  const { masksMemories, memoryBytes } = a.module;
  if (last <= memoryBytes[m] && (!masksMemories || isMasked(facts))) return;
  // A compare of a constant with the length does not mask it.
  if (!masksMemories && isBelow(facts, last, memoryLimit(m))) return;
  a.fail(REASON.MEMORY);
}

/** Whether the distance in PLACE.ADDRESS is a constant or was masked. */
function isMasked({ low, high, of }: Facts): boolean {
  return low[ADDRESS] === high[ADDRESS] || isMaskedLimit(of[ADDRESS]);
}

/** Whether `last` is at most the lower bound of length `limit`. */
export function isBelow(facts: Facts, last: number, limit: number): boolean {
  const place = lengthPlace(limit);
  return place !== 0 && last <= facts.low[place];
}

function accessTable(a: Analysis, t: number, size: number, isStore: boolean): void {
  const { facts, module } = a;
  const isBounded = facts.of[ADDRESS] === tableBytesLimit(t) && facts.room[ADDRESS] >= size;
  const last = facts.high[ADDRESS] + size;
  const isShort = last <= module.tableLength[t] * 8 && (!module.masksTables || isMasked(facts));
  const isInside = isBounded || isShort || (!module.masksTables && isBelow(facts, last / 8, tableLimit(t)));
  if (!isInside) return a.fail(REASON.TABLE);
  if (facts.low[ADDRESS] < 0 || size !== 8) return a.fail(REASON.TABLE);
  const element = module.tableElement[t];
  if (isStore) {
    a.writtenTables[t] = 1;
    if (a.stored < 0 || !isOfType(a, a.stored, element)) a.fail(REASON.REFERENCE);
    return;
  }
  setReference(a, RESULT, element, a.name());
  if (a.constantTables[t] !== 1) return;
  if (module.tableType[t] !== 0) facts.heap[RESULT] = module.tableType[t];
  if (module.tableIsOwn[t]) facts.known[RESULT] |= REFERENCE_FACTS.OWN;
}

function accessImage(a: Analysis, low: number, high: number, size: number, isStore: boolean): void {
  if (isStore || low < 0 || high + size > a.module.bytes.length) a.fail(REASON.CONSTANTS);
}

function accessThread(a: Analysis, at: number, size: number, isStore: boolean): void {
  const field = THREAD_FIELDS.find((row) => row.at === at && row.bytes === size);
  if (field === undefined || (isStore && !field.store)) return a.fail(REASON.THREAD);
  if (at === THREAD.CAUGHT_TAG) setObject(a.facts, RESULT, VALUE.CAUGHT_TAG, 0, a.name());
}

function accessDescriptor(a: Analysis, name: number, at: number, size: number, isStore: boolean): void {
  const { facts } = a;
  if (isStore) return a.fail(REASON.OBJECT);
  const depth = (at - DESCRIPTOR.DISPLAY) / 4;
  if (size === 4 && depth >= 0 && depth < DISPLAY_LENGTH && Number.isInteger(depth)) {
    return setAncestor(facts, RESULT, name, depth);
  }
  if (at === DESCRIPTOR.DEEP && size === 8) return setAbout(facts, RESULT, VALUE.DISPLAY, name);
  if (at !== DESCRIPTOR.KIND || size !== 4) return a.fail(REASON.OBJECT);
  setAbout(facts, RESULT, VALUE.TYPE_KIND, name, a.name());
}

/** A load from the context of a record that may belong to another instance: the fields that a call needs. */
function accessOtherContext(a: Analysis, name: number, at: number, size: number, isStore: boolean): void {
  const { facts } = a;
  if (isStore) return a.fail(REASON.CONTEXT);
  const memory = a.module.code.layout.memoriesOffset;
  if (at === CONTEXT.THREAD && size === 8) return setObject(facts, RESULT, VALUE.THREAD);
  if (at === CONTEXT.METERED && size === 4) return;
  if (at === memory + MEMORY.BASE && size === 8) return setAbout(facts, RESULT, VALUE.RECORD_MEMORY, name);
  if (at === memory + MEMORY.LENGTH && size === 8) return setAbout(facts, RESULT, VALUE.RECORD_LENGTH, name);
  a.fail(REASON.CONTEXT);
}

/** Pointers in the header of the context, by offset. */
const HEADER = new Map<number, number>([
  [CONTEXT.THREAD, VALUE.THREAD],
  [CONTEXT.STACK_LIMIT, VALUE.STACK_LIMIT],
  [CONTEXT.OVERFLOW, VALUE.OVERFLOW],
  [CONTEXT.HEAP, VALUE.CELLS],
  [CONTEXT.TAIL_RETURN, VALUE.TAIL_RETURN],
]);

function loadContext(a: Analysis, at: number, size: number): void {
  const { facts } = a;
  const { layout } = a.module.code;
  if (at < 0 || at + size > layout.size) return a.fail(REASON.CONTEXT);
  const kind = HEADER.get(at);
  if (at < CONTEXT.SIZE) {
    if (kind !== undefined && size === 8) return setObject(facts, RESULT, kind);
    return at === CONTEXT.METERED || at === CONTEXT.INSTANCE ? undefined : a.fail(REASON.CONTEXT);
  }
  if (at < layout.tablesOffset) return loadMemoryField(a, at - layout.memoriesOffset, size);
  if (at < layout.globalsOffset) return loadTableField(a, at - layout.tablesOffset, size);
  if (at < layout.importsOffset) return loadGlobal(a, at - layout.globalsOffset, size);
  if (at < layout.typeIdsOffset) return loadRecordField(a, at - layout.importsOffset, size);
  if (at < layout.tagsOffset) return loadTypeId(a, at - layout.typeIdsOffset, size);
  if (at < layout.tagsOffset + a.module.tagPayload.length * TAG_SIZE) return loadTag(a, at - layout.tagsOffset, size);
  if (at >= layout.sharedLengthsOffset && layout.shared === true) {
    loadSharedLength(a, at - layout.sharedLengthsOffset, size);
  }
}

function loadMemoryField(a: Analysis, at: number, size: number): void {
  const { facts } = a;
  const m = Math.floor(at / MEMORY.SIZE);
  if (at % 8 !== 0 || size !== 8) return;
  if (at % MEMORY.SIZE === MEMORY.BASE) setObject(facts, RESULT, VALUE.MEMORY, m);
  else setLength(facts, RESULT, memoryLimit(m), longest(a, m), a.name());
}

/** The largest length of memory `m`. */
function longest(a: Analysis, m: number): number {
  return a.module.memoryIs64[m] === false ? 2 ** 32 : Infinity;
}

function loadTableField(a: Analysis, at: number, size: number): void {
  const { facts } = a;
  const t = Math.floor(at / TABLE.SIZE);
  const isBase = at % TABLE.SIZE === TABLE.BASE;
  if (isBase && size === 8) setObject(facts, RESULT, VALUE.TABLE, t);
  // The length of a table with 32-bit indices is below 2^32.
  else if (at % TABLE.SIZE === TABLE.LENGTH && (size === 8 || (size === 4 && !a.module.tableIs64[t]))) {
    setLength(facts, RESULT, tableLimit(t), size === 4 ? MAX32 : Infinity, a.name());
  }
}

function loadGlobal(a: Analysis, at: number, size: number): void {
  const g = Math.floor(at / GLOBAL_SIZE);
  if (!a.module.globalIsCell[g]) return accessGlobal(a, g, at % GLOBAL_SIZE, size, false);
  if (at % GLOBAL_SIZE === 0 && size === 8) setObject(a.facts, RESULT, VALUE.CELL, g);
}

/** A load from a function record in the context. */
function loadRecordField(a: Analysis, at: number, size: number): void {
  // The context of an import's record is read to compare it, its code to call it.
  const name = recordName(at - at % RECORD.SIZE), field = at % RECORD.SIZE;
  if (field === RECORD.CONTEXT && size === 8) setAbout(a.facts, RESULT, VALUE.RECORD_CONTEXT, name, a.name());
  if (field === RECORD.CODE && size === 8) setAbout(a.facts, RESULT, VALUE.RECORD_CODE, name, a.name());
  if (field === RECORD.TYPE_ID && size === 4) loadTypeOfRecord(a, (at - field) / RECORD.SIZE);
}

/** A load of the type of function `index`: own functions are of their type exactly, imports if that has no subtypes. */
function loadTypeOfRecord(a: Analysis, index: number): void {
  const type = a.module.functionTypeId[index];
  if (type === undefined) return;
  // No reference has the name.
  if (index >= a.module.importedFunctions || canonicalType(type).final) a.exactTypes.set(a.name(), type);
  else a.exactTypes.delete(a.name());
  setAbout(a.facts, RESULT, VALUE.TYPE_ID, a.name(), a.name(1));
}

/** The name of the record at distance `at` from the first import's: negative value numbers are reserved for records. */
export function recordName(at: number): number {
  return -1 - at / RECORD.SIZE;
}

function loadTypeId(a: Analysis, at: number, size: number): void {
  if (at % 4 === 0 && size === 4 && at / 4 < a.module.typeDepth.length) {
    setObject(a.facts, RESULT, VALUE.EXPECTED_TYPE, at / 4);
  }
}

function loadTag(a: Analysis, at: number, size: number): void {
  if (at % TAG_SIZE === 0 && size === 8) setObject(a.facts, RESULT, VALUE.TAG, at / TAG_SIZE, a.name());
}

function loadSharedLength(a: Analysis, at: number, size: number): void {
  const m = at / SHARED_LENGTH_SIZE;
  if (Number.isInteger(m) && size === 8 && m < a.module.memoryIs64.length) {
    setObject(a.facts, RESULT, VALUE.LENGTH_CELL, m);
  }
}

/** Stores to the context: values of globals that it holds, and lengths of memories as they were loaded. */
function storeContext(a: Analysis, at: number, size: number): void {
  const { layout } = a.module.code;
  const { facts, stored } = a;
  const global = Math.floor((at - layout.globalsOffset) / GLOBAL_SIZE);
  if (at >= layout.globalsOffset && at < layout.importsOffset) {
    const within = (at - layout.globalsOffset) % GLOBAL_SIZE;
    if (within + size <= GLOBAL_SIZE && !a.module.globalIsCell[global]) {
      return accessGlobal(a, global, within, size, true);
    }
  }
  const memory = (at - layout.memoriesOffset - MEMORY.LENGTH) / MEMORY.SIZE;
  if (Number.isInteger(memory) && at < layout.tablesOffset && size === 8) {
    if (stored >= 0 && facts.kind[stored] === VALUE.LENGTH && facts.lengthLimit[stored] === memoryLimit(memory)) return;
  }
  a.fail(REASON.CONTEXT);
}
