/**
 * Rules for allocation in the collected heap (abi/gc_layout.ts). In: accesses to the allocation cells and to a free
 * slot. Out: proof of each step, and a reference once the header is written.
 *
 *     slot = load [cells + class]     a free slot of the class, or null
 *     link = load [slot]              only if it is not null; a number that equals the link is the link, too
 *     store [cells + class] = link    the slot is taken; no other slot that was loaded may be taken
 *     slot = call allocate(bytes)     a slot that is taken
 *     store [slot] = type id          a structure, if its bytes fit; an array has no length yet
 *     store [slot + 4] = length       an array, if its bytes are those that were asked for
 *
 * A collection may run at any call, so slots without a header are forgotten there.
 */
import { CELLS, OBJECT, SIZE_CLASSES } from "../abi/gc_layout.ts";
import { type Analysis, REASON } from "./analysis.ts";
import { type Facts, PLACE } from "./facts.ts";
import { setAbout, setHeapReference, setObject, setSlot } from "./kind_facts.ts";
import { elementLimit, isProductLimit, limitName, limitShift, productLimit } from "./limits.ts";
import { NO_CLASS, REFERENCE_FACTS, SLOT_FACTS, VALUE } from "./value_kinds.ts";
import { elementOf, elementShift, HEADER_BYTES, structBytes } from "./references.ts";

const { ADDRESS, RESULT } = PLACE;
const { NOT_NULL, TAKEN } = SLOT_FACTS;
/** Bytes added to a size before it is divided by 8, to look up its class. */
const ROUNDING = 7;

/** An access to the allocation cells at a constant distance. */
export function accessCells(a: Analysis, at: number, size: number, isStore: boolean): void {
  const { facts } = a;
  if (!isStore && at === CELLS.TYPES && size === 8) return setObject(facts, RESULT, VALUE.DESCRIPTORS);
  const list = (at - CELLS.FREE) / 8;
  const bytes = SIZE_CLASSES[list];
  if (bytes === undefined || size !== 8) return a.fail(REASON.OBJECT);
  if (isStore) return takeSlot(a, list);
  setSlot(facts, RESULT, list, 0, bytes, a.name());
}

/** Loads or stores the head of the free list of a class that was looked up. */
export function accessClass(a: Analysis, size: number, isStore: boolean): void {
  const { facts } = a;
  if (facts.low[ADDRESS] !== CELLS.FREE || size !== 8) return a.fail(REASON.OBJECT);
  const id = -facts.name[ADDRESS];
  if (isStore) return takeSlot(a, id);
  const { of, room } = facts;
  const bytes = of[ADDRESS] < 0 ? room[ADDRESS] : 0;
  setSlot(facts, RESULT, id, 0, bytes, a.name());
  of[RESULT] = of[ADDRESS];
  room[RESULT] = room[ADDRESS];
}

/** The address of cells plus register `index`: the class of a size, or the list of a class. */
export function addToCells(a: Analysis, index: number, scale: number): void {
  const { facts } = a;
  if (facts.kind[index] === VALUE.SIZE_CLASS && scale === 3) {
    const name = facts.name[index];
    facts.copy(ADDRESS, index);
    facts.kind[ADDRESS] = VALUE.CLASS_CELL;
    facts.name[ADDRESS] = name;
    facts.low[ADDRESS] = facts.high[ADDRESS] = 0;
  } else if (facts.isNumber(index) && scale === 0 && facts.high[index] < CELLS.SIZE - CELLS.CLASS_OF) {
    const isEighth = a.eighthName !== 0 && facts.name[index] === a.eighthName;
    setObject(facts, ADDRESS, VALUE.SIZE_CELL);
    facts.of[ADDRESS] = isEighth ? a.eighthOf : -1;
    facts.room[ADDRESS] = isEighth ? a.eighthRoom : 0;
  } else facts.forget(ADDRESS);
}

/** Register `to` becomes the sum of the cells in register `cells` and a number. */
export function addCells(a: Analysis, to: number, cells: number, number: number): void {
  a.facts.copy(ADDRESS, cells);
  addToCells(a, number, 0);
  a.facts.copy(to, ADDRESS);
}

/** Loads the class of a size from the table of classes. */
export function accessSizeCell(a: Analysis, size: number, isStore: boolean): void {
  const { facts } = a;
  if (isStore || size !== 1 || facts.low[ADDRESS] !== CELLS.CLASS_OF) return a.fail(REASON.OBJECT);
  setObject(facts, RESULT, VALUE.SIZE_CLASS, 0, a.name());
  facts.of[RESULT] = facts.of[ADDRESS];
  facts.room[RESULT] = facts.room[ADDRESS];
}

/** Location `l`, a size plus ROUNDING, is about to be divided by 8: records the size for the quotient named `name`. */
export function noteEighth(a: Analysis, l: number, name: number): void {
  const { facts } = a;
  const { of, room } = bytesOf(facts, l);
  a.eighthName = name;
  a.eighthOf = of;
  a.eighthRoom = of < 0 ? Math.max(room - ROUNDING, 0) : room + ROUNDING;
}

/** The number at location `l` as a product; with `of` < 0, `room` is the number if it is constant, otherwise 0. */
function bytesOf(facts: Facts, l: number): { of: number; room: number } {
  if (!facts.isNumber(l)) return { of: -1, room: 0 };
  if (facts.isConstant(l)) return { of: -1, room: facts.low[l] };
  if (isProductLimit(facts.of[l])) return { of: facts.of[l], room: facts.room[l] };
  return { of: productLimit(facts.name[l], 0), room: -facts.delta[l] };
}

/** A link becomes the head of the list of class `id`: its slot is taken. */
function takeSlot(a: Analysis, id: number): void {
  const { facts, stored } = a;
  if (stored < 0 || facts.kind[stored] !== VALUE.FREE_LINK) return a.fail(REASON.OBJECT);
  const name = facts.subject[stored];
  let isKnown = false;
  for (let l = 0; l < facts.count; l++) {
    const kind = facts.kind[l];
    if (kind === VALUE.FREE_SLOT && facts.name[l] === name) {
      if (facts.slotClass[l] !== id) return a.fail(REASON.OBJECT);
      facts.known[l] |= TAKEN;
      isKnown = true;
    } else if (kind === VALUE.FREE_LINK || (kind === VALUE.FREE_SLOT && (facts.known[l] & TAKEN) === 0)) {
      facts.forget(l);
    }
  }
  if (!isKnown) a.fail(REASON.OBJECT);
}

/**
 * A call of the allocation stub: register `r` holds the requested size in bytes. Returns an action that makes `r` the
 * allocated slot, for after the call's effects on the facts.
 */
export function allocateSlow(a: Analysis, r: number): () => void {
  const { facts } = a;
  const bytes = facts.isConstant(r) ? facts.low[r] : 0;
  const { of, room } = bytesOf(facts, r);
  return () => {
    setSlot(facts, r, NO_CLASS, NOT_NULL | TAKEN, bytes, a.name());
    facts.of[r] = of;
    facts.room[r] = room;
  };
}

/** The free slot named `name` is not null. */
export function noteSlot({ facts }: Analysis, name: number): void {
  for (let l = 0; l < facts.count; l++) {
    if (facts.kind[l] === VALUE.FREE_SLOT && facts.name[l] === name) facts.known[l] |= NOT_NULL;
  }
}

/** The number at location `l`, with the others of its name, is the link in the free slot named `slot`. */
export function noteLink({ facts }: Analysis, slot: number, l: number): void {
  const name = facts.name[l];
  if (name === 0 || facts.delta[l] !== 0) return;
  for (let other = 0; other < facts.count; other++) {
    const isSame = facts.kind[other] === VALUE.NUMBER && facts.name[other] === name && facts.delta[other] === 0;
    if (isSame) setAbout(facts, other, VALUE.FREE_LINK, slot, name);
  }
}

/** Forgets slots without a complete header, and links: a collection may reuse them. */
export function forgetSlots({ facts }: Analysis): void {
  for (let l = 0; l < facts.count; l++) {
    const kind = facts.kind[l];
    if (kind === VALUE.FREE_SLOT || kind === VALUE.FREE_LINK || kind === VALUE.NEW_ARRAY) facts.forget(l);
  }
}

/** An access to a slot at distance `at`; the slot is in register `a.referent`. */
export function accessSlotHeader(a: Analysis, at: number, size: number, isStore: boolean): void {
  const { facts, referent } = a;
  const known = facts.known[referent];
  if (!isStore) {
    if (at !== 0 || size !== 8 || (known & NOT_NULL) === 0) return a.fail(REASON.OBJECT);
    return setAbout(facts, RESULT, VALUE.FREE_LINK, facts.name[referent], a.name());
  }
  const type = expectedType(a);
  const isTaken = known === (NOT_NULL | TAKEN);
  if (!isTaken || type < 0 || at !== OBJECT.TYPE_ID) return a.fail(REASON.OBJECT);
  if (size === 8) {
    const bytes = structBytes(type);
    if (bytes === 0 || bytes > facts.slotBytes[referent]) return a.fail(REASON.OBJECT);
    return becomeReference(a, type, 0);
  }
  if (size !== 4 || elementOf(type) === undefined) return a.fail(REASON.OBJECT);
  const name = facts.name[referent];
  for (let l = 0; l < facts.count; l++) {
    if (facts.kind[l] !== VALUE.FREE_SLOT || facts.name[l] !== name) continue;
    facts.kind[l] = VALUE.NEW_ARRAY;
    facts.arrayType[l] = type;
  }
}

/** The canonical type id that is being stored; −1 if the stored value is not a type id of the module. */
function expectedType({ facts, module, stored }: Analysis): number {
  return stored >= 0 && facts.kind[stored] === VALUE.EXPECTED_TYPE ? module.typeId[facts.index[stored]] : -1;
}

/** Proves the store of a new array's length, which completes its header. */
export function accessNewArray(a: Analysis, at: number, size: number, isStore: boolean): void {
  const { facts, referent, stored } = a;
  const element = elementOf(facts.arrayType[referent]);
  if (!isStore || at !== OBJECT.LENGTH || size !== 4 || stored < 0 || element === undefined) {
    return a.fail(REASON.OBJECT);
  }
  const shift = elementShift(element.storage);
  const isConstant = facts.isConstant(stored) &&
    HEADER_BYTES + facts.low[stored] * 2 ** shift <= facts.slotBytes[referent];
  const of = facts.of[referent];
  const isLength = facts.isNumber(stored) && limitName(of) === facts.name[stored] && facts.delta[stored] === 0 &&
    limitShift(of) === shift && facts.room[referent] === -HEADER_BYTES && facts.name[stored] !== 0;
  if (!isConstant && !isLength) return a.fail(REASON.OBJECT);
  const { name } = facts, length = elementLimit(name[referent], 0);
  becomeReference(a, facts.arrayType[referent], isConstant ? facts.low[stored] : 0);
  if (!isConstant && length >= 0) a.ranges.noteBound(name[stored], 0, length);
}

/** The slot has its header: an object of type `type`, an array with at least `length` elements. */
function becomeReference({ facts, referent }: Analysis, type: number, length: number): void {
  const kind = facts.kind[referent], name = facts.name[referent];
  for (let l = 0; l < facts.count; l++) {
    if (facts.kind[l] !== kind || facts.name[l] !== name) continue;
    setHeapReference(facts, l, type, REFERENCE_FACTS.NOT_NULL | REFERENCE_FACTS.FRESH, length, name);
  }
}
