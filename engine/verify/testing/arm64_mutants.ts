/**
 * Mutants of arm64 code, for tests of the verifier; mutants.ts has those of x64. In: proven code. Out: words that
 * replace an instruction, by kind.
 */
import { TRAP } from "../../base/traps.ts";
import { decodeArm64, registerLocation, STACK, ZERO } from "../arm64_decoder.ts";
import { Instructions, KIND } from "../instructions.ts";
import type { MachineModule } from "../machine_module.ts";
import {
  callsOthers,
  isNativeCallNext,
  isOverflowBuffer,
  isRecordCallNext,
  type Mutant,
  nextTransfer,
  otherType,
  type Patches,
  type Place as CommonPlace,
  SANDBOX_TRAPS,
  trapCalls,
} from "./mutant_places.ts";

const NOP = 0xd503201f;
const MEMORY_BASE = registerLocation(26), CONTEXT = registerLocation(28), SCRATCH = registerLocation(16);
const LINK = registerLocation(30), RECORD = 15;

interface Place extends CommonPlace {
  readonly word: number;
}

/** The word that replaces the instruction, or undefined if the fault is not possible there. */
type Mutate = (place: Place) => number | undefined;

/** CSDB, and CSEL of a register and zero by LO without its registers and size. */
const BARRIER = 0xd503229f, MASK = 0x1a9f3000;

/** The mask of an index, not that of a switch, whose result is the index itself (baseline) or x17. */
function isMask({ module, code, n, word }: Place): boolean {
  const next = new DataView(module.bytes.buffer, module.bytes.byteOffset).getUint32(code.at[n + 1], true);
  const to = word & 31;
  return (word & 0x7ffffc00) === MASK && next === BARRIER && to !== ((word >> 5) & 31) && to !== 17;
}

/** A move (ORR) in place of the mask. */
function unmasked(word: number): number {
  return (word & 0x80000000) | 0x2a0003e0 | (((word >> 5) & 31) << 16) | (word & 31);
}

/** Field d becomes register `r`. */
function withD(word: number, r: number): number {
  return (word & ~31) | r;
}

/** Field n becomes register `r`. */
function withN(word: number, r: number): number {
  return (word & ~(31 << 5)) | (r << 5);
}

/** The 12 bits of an unsigned immediate become `value`. */
function withImmediate(word: number, value: number): number {
  return (word & ~(0xfff << 10)) | (value << 10);
}

const MUTATORS = {
  // A check of bounds, type or stack is left out, or fails to catch equality.
  "drop check": (p) => isCheck(p) ? NOP : undefined,
  "invert check": (p) => isCheck(p) ? inverted(p) : undefined,
  "check off by one": (p) => isUnsignedCheck(p) ? p.word ^ 8 ^ (p.word & 2) : undefined,
  "mask left out": (p) => isMask(p) ? unmasked(p.word) : undefined,
  // The frame.
  "frame too small": (p) => isStackChange(p, -1) ? withImmediate(p.word, immediate(p.word) - 16) : undefined,
  "frame dropped too far": (p) => isStackChange(p, 1) ? withImmediate(p.word, immediate(p.word) + 16) : undefined,
  "frame not dropped": (p) => isStackChange(p, 1) ? NOP : undefined,
  "slot outside": (p) => isSlot(p) ? withImmediate(p.word, 0xfff) : undefined,
  "return address not saved": (p) =>
    p.code.kind[p.n] === KIND.PUSH && p.calls && p.code.rn[p.n] === LINK ? withoutLink(p) : undefined,
  "return address not loaded": (p) => isReload(p) ? withoutLink(p) : undefined,
  // Addresses.
  "memory of another base": (p) => isMemory(p) ? withN(p.word, 0) : undefined,
  "store to the context's header": (p) => isGlobalStore(p) ? withImmediate(p.word, 0) : undefined,
  // Objects.
  "another type": (p) => isTypeId(p) ? withImmediate(p.word, otherType(p) / 4) : undefined,
  "header of another type": (p) => isHeaderType(p) ? withImmediate(p.word, otherType(p) / 4) : undefined,
  "field beyond the object": (p) => isField(p) ? withImmediate(p.word, 0xff8 / p.code.size[p.n]) : undefined,
  "slot of a smaller class": (p) => isFreeList(p) ? withImmediate(p.word, 0) : undefined,
  "link not stored": (p) => isLinkStore(p) ? NOP : undefined,
  // Registers of the convention.
  "clobber context": (p) => isWrite(p) ? withD(p.word, 28) : undefined,
  "clobber memory base": (p) => isWrite(p) ? withD(p.word, 26) : undefined,
  "clobber the platform's register": (p) => isWrite(p) ? withD(p.word, 18) : undefined,
  "clobber stack pointer": (p) => isSum(p) ? withD(p.word, 31) : undefined,
  "clobber return address": (p) => isWrite(p) && isLeft(p) ? withD(p.word, 30) : undefined,
  // Control.
  "call into the middle": (p) => p.code.kind[p.n] === KIND.CALL ? p.word + 1 : undefined,
  "jump outside": (p) => isJump(p) ? outside(p) : undefined,
  "call of another word": (p) => isRecordCode(p) ? withImmediate(p.word, 1) : undefined,
  "return elsewhere": (p) => p.code.kind[p.n] === KIND.RETURN ? withN(p.word, 29) : undefined,
  "foreign word": (p) => p.n % 7 === 1 ? 0xd4000001 : undefined,
} as const satisfies Readonly<Record<string, Mutate>>;

type Arm64MutantKind = keyof typeof MUTATORS;
export const ARM64_MUTANT_KINDS = Object.keys(MUTATORS) as Arm64MutantKind[];

function immediate(word: number): number {
  return word >>> 10 & 0xfff;
}

/** A branch on a condition, on zero or on a bit, inverted. */
function inverted({ code, n, word }: Place): number {
  return code.sub[n] === 0 ? word ^ 1 : word ^ (1 << 24);
}

/**
 * A branch to a trap on which the sandbox depends: as in mutants.ts, not a compare with a constant, the stack check of
 * a function that calls no other, or the bounds of a copy by loads and stores with guard pages.
 */
function isCheck(place: Place): boolean {
  const { module, code, n, trap, calls } = place;
  if (code.kind[n] !== KIND.BRANCH || !SANDBOX_TRAPS.has(trap) || n === 0) return false;
  const isConstant = code.sub[n] !== 0 || code.kind[n - 1] !== KIND.COMPARE || code.hasImmediate[n - 1] !== 0;
  switch (trap) {
    case TRAP.STACK_EXHAUSTED:
      return calls;
    case TRAP.INDIRECT_CALL_TYPE:
      // The types of functions in a table that nothing writes are known without the test.
      return module.tableType.every((type) => type === 0) && isRecordCallNext(place, RECORD);
    case TRAP.MEMORY_OUT_OF_BOUNDS:
      return !isConstant && (module.code.settings.explicitBounds || isNativeCallNext(place));
  }
  return !isConstant;
}

/** B.HS to a trap that becomes B.HI. */
function isUnsignedCheck({ code, n, trap }: Place): boolean {
  return code.kind[n] === KIND.BRANCH && trap === TRAP.UNDEFINED_ELEMENT && code.sub[n] === 0 &&
    code.condition[n] === 3;
}

/** ADD or SUB of the stack pointer by a constant in one word. `sign`: −1 for a frame that is taken. */
function isStackChange({ code, n, word }: Place, sign: number): boolean {
  const isMove = code.kind[n] === KIND.LEA && code.reg[n] === STACK && code.base[n] === STACK && code.index[n] < 0;
  return isMove && Math.sign(code.displacement[n]) === sign && (word >>> 22 & 1) === 0 && immediate(word) % 16 === 0 &&
    immediate(word) < 0xff0;
}

/** The register of zeros in place of x30. */
function withoutLink({ word }: Place): number {
  return word | (31 << 10);
}

/** A load or store with an unsigned immediate. */
function isAccess({ code, n, word }: Place): boolean {
  const kind = code.kind[n];
  const isMove = kind === KIND.MOVE || kind === KIND.ZERO_EXTEND || kind === KIND.SIGN_EXTEND;
  return isMove && code.base[n] >= 0 && code.index[n] < 0 && (word >>> 24 & 3) === 1 && (word >>> 28 & 3) === 3;
}

function isSlot(place: Place): boolean {
  return isAccess(place) && place.code.base[place.n] === STACK;
}

function isMemory({ code, n }: Place): boolean {
  return code.base[n] === MEMORY_BASE && code.kind[n] !== KIND.LEA;
}

function isGlobalStore(place: Place): boolean {
  const { code, n } = place;
  return isAccess(place) && code.kind[n] === KIND.MOVE && code.sub[n] === 0 && code.base[n] === CONTEXT;
}

/** Whether the instruction loads the id of an object type, which the next instructions compare. */
function isTypeId(place: Place): boolean {
  const { module, code, n } = place;
  const at = code.displacement[n] - module.code.layout.typeIdsOffset;
  if (!isTypeLoad(place) || module.typeSignature[at / 4] !== undefined || otherType(place) < 0) return false;
  for (let k = n + 1; k < Math.min(n + 12, code.count); k++) {
    if (code.kind[k] === KIND.COMPARE && (code.rm[k] === code.reg[n] || code.rn[k] === code.reg[n])) return true;
    if (code.kind[k] >= KIND.BRANCH && code.kind[k] <= KIND.RETURN && code.kind[k] !== KIND.BRANCH) return false;
    if (code.reg[k] === code.reg[n]) return false;
  }
  return false;
}

function isTypeLoad(place: Place): boolean {
  const { module: { code: { layout } }, code, n } = place;
  const at = code.displacement[n];
  const isLoad = isAccess(place) && code.kind[n] === KIND.MOVE && code.sub[n] === 1 && code.size[n] === 4;
  return isLoad && code.base[n] === CONTEXT && at >= layout.typeIdsOffset && at < layout.tagsOffset;
}

/** Whether the id is stored to the start of an object. */
function isHeaderType(place: Place): boolean {
  const { code, n } = place;
  if (!isTypeLoad(place) || otherType(place) < 0) return false;
  const r = code.reg[n];
  for (let k = n + 1; k < Math.min(n + 40, code.count); k++) {
    const isPair = code.kind[k] === KIND.PAIR && code.sub[k] === 0;
    const isStore = isPair || (code.kind[k] === KIND.MOVE && code.base[k] >= 0 && code.sub[k] === 0);
    if (isStore && code.reg[k] === r) return code.base[k] !== STACK && code.displacement[k] === 0;
    if (code.kind[k] === KIND.CALL || (!isStore && code.reg[k] === r)) return false;
  }
  return false;
}

/** Whether a field or a header is accessed. */
function isField(place: Place): boolean {
  const { code, n } = place;
  const base = code.base[n];
  // In a module with memories, the register may hold an address in one.
  const isObject = code.kind[n] !== KIND.SIGN_EXTEND && place.module.memoryIs64.length === 0 && isAccess(place) &&
    base !== STACK && base !== MEMORY_BASE && base !== CONTEXT && base !== 15;
  return isObject && code.displacement[n] >= 8 && code.displacement[n] < 64 && base < 16 && !isFreeList(place) &&
    !isLinkStore(place) && !isOverflowBuffer(place, base, CONTEXT);
}

/** Whether the head of a free list is loaded: it is tested next, and the link is loaded from it. */
function isFreeList(place: Place): boolean {
  const { code, n } = place;
  const isHead = code.kind[n + 1] === KIND.BRANCH && code.sub[n + 1] === 1 && code.rn[n + 1] === code.reg[n] &&
    code.kind[n + 2] === KIND.MOVE && code.base[n + 2] === code.reg[n];
  return isAccess(place) && code.size[n] === 8 && isHead && code.displacement[n] >= 8;
}

function isLinkStore(place: Place): boolean {
  const { code, n } = place;
  if (!isAccess(place) || n < 2 || code.kind[n] !== KIND.MOVE || code.sub[n] !== 0) return false;
  return code.reg[n] === SCRATCH && code.kind[n - 1] === KIND.MOVE && code.reg[n - 1] === SCRATCH &&
    code.displacement[n - 1] === 0 && code.kind[n - 2] === KIND.BRANCH;
}

/** Whether the instruction writes a general register. */
function isWrite({ code, n }: Place): boolean {
  const kind = code.kind[n];
  const isData = kind === KIND.ALU || kind === KIND.MOVE || kind === KIND.CONSTANT || kind === KIND.BIT_FIELD;
  return isData && code.writes[n] !== 0 && (code.writes[n] & (1 << 30)) === 0;
}

/** ADD or SUB of an immediate to another register than the stack pointer. */
function isSum({ code, n, word }: Place): boolean {
  return code.kind[n] === KIND.LEA && (word >>> 24 & 31) === 17 && code.base[n] !== STACK && code.reg[n] !== STACK;
}

/** Whether the function has no frame and returns after the instruction. */
function isLeft(place: Place): boolean {
  const { code } = place;
  return !code.kind.subarray(0, code.count).includes(KIND.PUSH) && code.kind[nextTransfer(place)] === KIND.RETURN;
}

/** Whether the instruction reloads x30 after a call has changed it. */
function isReload({ code, n }: Place): boolean {
  if (code.kind[n] !== KIND.POP || code.rn[n] !== LINK) return false;
  let k = n - 1;
  while (k > 0 && !(code.kind[k] >= KIND.JUMP && code.kind[k] <= KIND.RETURN)) k--;
  return code.kind[k] === KIND.CALL || code.kind[k] === KIND.CALL_INDIRECT;
}

function isJump({ code, n }: Place): boolean {
  return code.kind[n] === KIND.JUMP || (code.kind[n] === KIND.BRANCH && code.sub[n] === 0);
}

/** The branch leads behind the function, to no start of another. */
function outside({ code, n, word }: Place): number {
  const words = (code.at[code.count] - code.at[n]) / 4 + 1;
  return code.kind[n] === KIND.JUMP ? 0x14000000 | words : (word & ~(0x7ffff << 5)) | (words << 5);
}

/** Whether the instruction loads the code address of the record that is called next. */
function isRecordCode(place: Place): boolean {
  const { code, n } = place;
  const isLoad = isAccess(place) && code.base[n] === 15 && code.displacement[n] === 0 && code.size[n] === 8;
  const end = nextTransfer(place);
  return isLoad && code.reg[n] !== ZERO && code.rm[end] === code.reg[n];
}

/** SVC, and branches to the farthest place in front of them. */
export const ARM64_PATCHES: Patches = {
  nowhere(branch) {
    const view = new DataView(branch.buffer.slice(0));
    const word = view.getInt32(0, true);
    // TBZ and TBNZ have 14 bits, the others 19.
    const bits = (word >>> 25 & 63) === 0b011011 ? 14 : 19;
    view.setInt32(0, (word & ~(((1 << bits) - 1) << 5)) | (1 << (bits + 4)), true);
    return new Uint8Array(view.buffer);
  },
  foreign: new Uint8Array(Int32Array.of(0xd4000001).buffer),
  nothing: (bytes) => new Uint8Array(new Int32Array(bytes / 4).fill(NOP).buffer),
};

/** All mutants of function `index` of proven code. */
export function* arm64MutantsOf(module: MachineModule, index: number): Generator<Mutant<Arm64MutantKind>> {
  const { functionStart, functionEnd } = module.tables;
  const code = new Instructions();
  code.begin(functionStart[index], functionEnd[index]);
  decodeArm64(module.bytes, functionStart[index], functionEnd[index], code);
  const traps = trapCalls(module, code), calls = callsOthers(module, code);
  const view = new DataView(module.bytes.buffer, module.bytes.byteOffset);
  for (let n = 0; n < code.count; n++) {
    if (code.kind[n] === KIND.DATA || code.kind[n] === KIND.FILL) continue;
    const word = view.getInt32(code.at[n], true);
    const trap = code.kind[n] === KIND.BRANCH ? traps.get(code.at[n + 1] + code.immediate[n]) ?? 0 : 0;
    for (const kind of ARM64_MUTANT_KINDS) {
      const mutant = MUTATORS[kind]({ module, code, n, word, trap, calls });
      if (mutant === undefined || mutant === word) continue;
      yield { kind, index, at: code.at[n], bytes: new Uint8Array(Int32Array.of(mutant).buffer) };
    }
  }
}
