/**
 * Mutants of machine code, for tests of the verifier: each breaks one instruction so that the code may leave its
 * sandbox. In: proven code. Out: patches of bytes, by kind. The faults are those that a compiler could make: a check
 * left out or off by one, a wrong frame size or offset, a changed register of the convention, a wrong target.
 */
import { TRAP } from "../../base/traps.ts";
import type { MachineModule } from "../machine_module.ts";
import { decodeX64 } from "../x64_decoder.ts";
import { ALU, BASE_RIP, Instructions, KIND, OPERANDS } from "../instructions.ts";
import {
  callsOthers,
  isIndirect,
  isNativeCallNext,
  isOverflowBuffer,
  isRecordCallNext,
  type Mutant,
  otherType as unrelatedType,
  type Patches,
  type Place as CommonPlace,
  SANDBOX_TRAPS,
  trapCalls,
} from "./mutant_places.ts";

const RSP = 4, RBX = 3, RAX = 0, R10 = 10, R11 = 11, R15 = 15;
const NOP = 0x90;

interface Place extends CommonPlace {
  readonly frame: number;
}

/** The patched bytes of the instruction, or undefined if the fault is not possible there. */
type Mutate = (place: Place) => Uint8Array | undefined;

function bytesOf({ module, code, n }: Place): Uint8Array {
  return module.bytes.slice(code.at[n], code.at[n + 1]);
}

function nops(place: Place): Uint8Array {
  return bytesOf(place).fill(NOP);
}

/** Changes the 32-bit word at `end` bytes before the end of the instruction. */
function withWord(place: Place, end: number, value: number): Uint8Array {
  const bytes = bytesOf(place);
  new DataView(bytes.buffer).setInt32(bytes.length - end, value, true);
  return bytes;
}

/** Whether the displacement is a 32-bit word at the end of the instruction. */
function endsInDisplacement({ module, code, n }: Place): boolean {
  if (code.hasImmediate[n] !== 0 || code.rm[n] >= 0 || code.at[n + 1] - code.at[n] < 6) return false;
  const view = new DataView(module.bytes.buffer, module.bytes.byteOffset);
  const word = view.getInt32(code.at[n + 1] - 4, true);
  return word === code.displacement[n] && (word > 127 || word < -128);
}

/**
 * Changes the register that the instruction writes, in its last byte, ModRM. Undefined if it has a memory operand, an
 * immediate or no REX prefix.
 */
function withRegister(place: Place, register: number): Uint8Array | undefined {
  const { code, n } = place;
  const bytes = bytesOf(place);
  if (code.rm[n] < 0 || code.hasImmediate[n] !== 0 || code.rex[n] === 0) return undefined;
  const rex = bytes.findIndex((byte) => (byte & 0xf0) === 0x40);
  const last = bytes.length - 1;
  const isReg = code.operands[n] === OPERANDS.R_M;
  bytes[rex] = (bytes[rex] & (isReg ? ~4 : ~1)) | (register > 7 ? (isReg ? 4 : 1) : 0);
  bytes[last] = isReg ? (bytes[last] & 0xc7) | ((register & 7) << 3) : (bytes[last] & 0xf8) | (register & 7);
  return bytes;
}

function isWrite({ code, n }: Place): boolean {
  return code.kind[n] === KIND.MOVE || code.kind[n] === KIND.ALU;
}

/** Changes the register that the instruction writes. */
function clobber(place: Place, register: number): Uint8Array | undefined {
  const { code, n } = place;
  // MOV of a register to itself changes nothing.
  const source = code.operands[n] === OPERANDS.R_M ? code.rm[n] : code.reg[n];
  return isWrite(place) && source !== register ? withRegister(place, register) : undefined;
}

const MUTATORS = {
  // A check of bounds, type or stack is left out, or fails to catch equality.
  "drop check": (p) => isCheck(p) ? nops(p) : undefined,
  "invert check": (p) => isCheck(p) ? flipped(p, 1) : undefined,
  "check off by one": (p) => isUnsignedCheck(p) ? flipped(p, 4) : undefined,
  "mask left out": (p) => isMask(p) ? unmasked(p) : undefined,
  // The frame.
  "frame too small": (p) => isStackChange(p, ALU.SUB) ? withImmediate(p, -8) : undefined,
  "frame dropped too far": (p) => isStackChange(p, ALU.ADD) ? withImmediate(p, 8) : undefined,
  "frame not dropped": (p) => isStackChange(p, ALU.ADD) ? nops(p) : undefined,
  "slot outside": (p) => isSlot(p) ? withWord(p, 4, p.frame + 16) : undefined,
  // Addresses.
  "negative displacement": (p) =>
    p.code.base[p.n] === RBX && endsInDisplacement(p) ? withWord(p, 4, -0x80000000) : undefined,
  "memory of another base": (p) => p.code.base[p.n] === RBX && p.code.rm[p.n] < 0 ? withBase(p, RAX) : undefined,
  "store to the context's header": (p) => isGlobalStore(p) ? withWord(p, 4, 0) : undefined,
  // Objects.
  "another type": (p) => isTypeId(p) ? withWord(p, 4, otherType(p)) : undefined,
  "header of another type": (p) => isHeaderType(p) ? withWord(p, 4, otherType(p)) : undefined,
  "field beyond the object": (p) => isField(p) ? withDisplacement(p, FAR_FIELD) : undefined,
  "slot of a smaller class": (p) => isFreeList(p) ? withDisplacement(p, 0) : undefined,
  "link not stored": (p) => isLinkStore(p) ? nops(p) : undefined,
  // Registers of the convention.
  "clobber context": (p) => clobber(p, R15),
  "clobber memory base": (p) => clobber(p, RBX),
  "clobber stack pointer": (p) => clobber(p, RSP),
  // Control.
  "call into the middle": (p) => p.code.kind[p.n] === KIND.CALL ? withWord(p, 4, p.code.immediate[p.n] + 1) : undefined,
  "jump into the middle": (p) => isLongJump(p) ? withWord(p, 4, p.code.immediate[p.n] + 1) : undefined,
  "call of another word": (p) => isRecordCall(p) ? withDisplacement8(p) : undefined,
  "foreign byte": (p) => p.n % 7 === 1 && goesOn(p.code, p.n - 1) ? Uint8Array.of(0xf4) : undefined,
} as const satisfies Readonly<Record<string, Mutate>>;

type MutantKind = keyof typeof MUTATORS;
export const MUTANT_KINDS = Object.keys(MUTATORS) as MutantKind[];

/** SBB and AND that mask an index, not that of a switch, whose table follows. */
function isMask({ code, n }: Place): boolean {
  const isAlu = (k: number, operation: number) => code.kind[k] === KIND.ALU && code.sub[k] === operation;
  const isPair = isAlu(n, ALU.SUBTRACT_BORROW) && isAlu(n + 1, ALU.AND) && code.reg[n] === code.reg[n + 1];
  return isPair && code.rm[n + 1] >= 0 && code.operands[n + 1] === OPERANDS.R_M && code.base[n + 2] !== BASE_RIP;
}

/** A move in place of AND, and nothing in place of SBB. */
function unmasked({ module, code, n }: Place): Uint8Array {
  const move = module.bytes.slice(code.at[n + 1], code.at[n + 2]);
  move[move.length - 2] = 0x8b;
  const bytes = new Uint8Array(code.at[n + 2] - code.at[n]).fill(NOP);
  bytes.set(move);
  return bytes;
}

/** A displacement of one byte that is larger than the objects of programs. */
const FAR_FIELD = 120;

/** Whether a value is compared with a type's id in the context. */
function isTypeId({ module, code, n }: Place): boolean {
  const { layout } = module.code;
  const at = code.displacement[n];
  // The types of functions in a table that nothing writes are known without the test.
  const isObject = module.typeSignature[(at - layout.typeIdsOffset) / 4] === undefined;
  return isObject && code.kind[n] === KIND.COMPARE && code.base[n] === R15 && at >= layout.typeIdsOffset &&
    at < layout.tagsOffset && at > 127;
}

function isHeaderType(place: Place): boolean {
  const { module, code, n } = place;
  const { layout } = module.code;
  const at = code.displacement[n];
  const isLoad = code.kind[n] === KIND.MOVE && code.base[n] === R15;
  if (!isLoad || at < layout.typeIdsOffset || at >= layout.tagsOffset || at <= 127) return false;
  return isStored(place, code.reg[n]);
}

/** Whether register `r` is stored to the start of an object before anything else writes it. */
function isStored({ code, n }: Place, r: number): boolean {
  for (let k = n + 1; k < Math.min(n + 40, code.count); k++) {
    const isStore = code.kind[k] === KIND.MOVE && code.operands[k] === OPERANDS.M_R && code.rm[k] < 0;
    if (isStore && code.reg[k] === r) return code.base[k] !== RSP && code.displacement[k] === 0;
    if (code.kind[k] === KIND.CALL || (code.operands[k] === OPERANDS.R_M && code.reg[k] === r)) return false;
  }
  return false;
}

/** Offset in the context of the id of an unrelated type, or of the first one. */
function otherType(place: Place): number {
  return Math.max(unrelatedType(place), place.module.code.layout.typeIdsOffset);
}

/** An access with a displacement of one byte through another register than those of the convention. */
function isObject({ code, n }: Place): boolean {
  const base = code.base[n];
  const isMove = code.kind[n] === KIND.MOVE && code.hasImmediate[n] === 0 && code.rm[n] < 0 && code.index[n] < 0;
  return isMove && base >= 0 && base !== RSP && base !== RBX && base !== R15 && (base & 7) !== RSP;
}

/** Whether the instruction accesses a field or a header. */
function isField(place: Place): boolean {
  const { code, n } = place;
  return isObject(place) && code.displacement[n] >= 8 && code.displacement[n] < 64 && !isFreeList(place) &&
    !isLinkStore(place) && code.kind[n + 1] !== KIND.TEST && !isOverflowBuffer(place, code.base[n], R15);
}

/** Whether the head of a free list is loaded. */
function isFreeList(place: Place): boolean {
  const { code, n } = place;
  const isTested = code.kind[n + 1] === KIND.TEST && code.rm[n + 1] === code.reg[n] &&
    code.rm[n + 1] === code.reg[n + 1];
  const readsLink = code.kind[n + 3] === KIND.MOVE || code.kind[n + 3] === KIND.LEA;
  const isHead = isTested && code.kind[n + 2] === KIND.BRANCH && readsLink && code.base[n + 3] === code.reg[n];
  return isObject(place) && isHead && code.displacement[n] >= 8 && code.displacement[n] < 128;
}

/** Whether a link becomes the head of a free list. */
function isLinkStore({ code, n }: Place): boolean {
  const isStore = code.kind[n] === KIND.MOVE && code.operands[n] === OPERANDS.M_R && code.rm[n] < 0;
  return isStore && n > 1 && code.base[n] !== RSP && code.reg[n] === R11 && code.kind[n - 1] === KIND.MOVE &&
    code.reg[n - 1] === R11 &&
    code.displacement[n - 1] === 0 && code.kind[n - 2] === KIND.BRANCH;
}

/** The last byte, a displacement, becomes `value`. */
function withDisplacement(place: Place, value: number): Uint8Array | undefined {
  const bytes = bytesOf(place);
  if (bytes[bytes.length - 1] !== place.code.displacement[place.n]) return undefined;
  bytes[bytes.length - 1] = value;
  return bytes;
}

/** Flips bits of the condition: the last byte of the opcode. */
function flipped(place: Place, bits: number): Uint8Array {
  const bytes = bytesOf(place);
  bytes[bytes[0] === 0x0f ? 1 : 0] ^= bits;
  return bytes;
}

/**
 * A branch to a trap on which the sandbox depends. Others may be redundant: a compare with a constant, the stack check
 * of a function that calls no other, the type check in front of a direct call, and with guard pages the bounds of a
 * copy that is loads and stores.
 */
function isCheck(place: Place): boolean {
  const { module, code, n, trap, calls } = place;
  if (code.kind[n] !== KIND.BRANCH || !SANDBOX_TRAPS.has(trap) || n === 0) return false;
  switch (trap) {
    case TRAP.STACK_EXHAUSTED:
      return calls;
    case TRAP.INDIRECT_CALL_TYPE:
      return isRecordCallNext(place, R10);
    case TRAP.MEMORY_OUT_OF_BOUNDS:
      if (code.hasImmediate[n - 1] !== 0) return false;
      return module.code.settings.explicitBounds || isNativeCallNext(place);
  }
  return code.hasImmediate[n - 1] === 0;
}

/** JAE to a trap that becomes JA. */
function isUnsignedCheck({ code, n, trap }: Place): boolean {
  return code.kind[n] === KIND.BRANCH && trap === TRAP.UNDEFINED_ELEMENT && code.condition[n] === 3;
}

function isStackChange({ code, n }: Place, operation: number): boolean {
  return code.kind[n] === KIND.ALU && code.sub[n] === operation && code.rm[n] === RSP && code.immediate[n] !== 0;
}

function withImmediate(place: Place, more: number): Uint8Array | undefined {
  const { code, n } = place;
  const bytes = bytesOf(place);
  const value = code.immediate[n] + more;
  if (bytes.length > 4) return withWord(place, 4, value);
  if (value < -128 || value > 127) return undefined;
  bytes[3] = value;
  return bytes;
}

function isSlot(place: Place): boolean {
  const { code, n } = place;
  return code.base[n] === RSP && code.index[n] < 0 && code.kind[n] === KIND.MOVE && endsInDisplacement(place);
}

/** Replaces the base rbx; only without an extension of the base. */
function withBase(place: Place, register: number): Uint8Array | undefined {
  const bytes = bytesOf(place);
  const { code, n } = place;
  if (code.kind[n] !== KIND.MOVE || code.hasImmediate[n] !== 0 || bytes[0] === 0x66) return undefined;
  const at = code.rex[n] !== 0 ? 2 : 1;
  const hasSib = (bytes[at] & 7) === 4;
  if (hasSib) bytes[at + 1] = (bytes[at + 1] & 0xf8) | register;
  else bytes[at] = (bytes[at] & 0xf8) | register;
  return bytes;
}

function isGlobalStore(place: Place): boolean {
  const { code, n } = place;
  const isStore = code.kind[n] === KIND.MOVE && code.operands[n] === OPERANDS.M_R;
  return isStore && code.base[n] === R15 && code.index[n] < 0 && endsInDisplacement(place);
}

function isLongJump({ code, n }: Place): boolean {
  const isJump = code.kind[n] === KIND.JUMP || code.kind[n] === KIND.BRANCH;
  if (!isJump || code.at[n + 1] - code.at[n] < 5) return false;
  const target = code.at.subarray(0, code.count).indexOf(code.at[n + 1] + code.immediate[n]);
  // An instruction of one byte has no middle; without a way from above, the middle may begin other code that is proven.
  return target > 0 && code.at[target + 1] > code.at[target] + 1 && goesOn(code, target - 1);
}

/** Whether instruction `n` goes on to the next one. */
function goesOn({ kind }: Instructions, n: number): boolean {
  return kind[n] !== KIND.DATA && (kind[n] < KIND.JUMP || kind[n] > KIND.RETURN || kind[n] === KIND.CALL_INDIRECT);
}

function isRecordCall({ code, n }: Place): boolean {
  return isIndirect(code.kind[n]) && code.rm[n] < 0 && code.displacement[n] === 0;
}

/** The base r10 becomes r11, in ModRM, the last byte; or a displacement of one byte grows by 1. */
function withDisplacement8(place: Place): Uint8Array {
  const bytes = bytesOf(place);
  bytes[bytes.length - 1] += 1;
  return bytes;
}

/** Largest frame of the function. */
function frameOf(code: Instructions): number {
  let frame = 0;
  for (let n = 0; n < code.count; n++) {
    const isSub = code.kind[n] === KIND.ALU && code.sub[n] === ALU.SUB && code.rm[n] === RSP;
    if (isSub) frame = Math.max(frame, code.immediate[n]);
  }
  return frame;
}

/** HLT, and a branch to its own last byte. */
export const X64_PATCHES: Patches = {
  nowhere: (branch) => branch.map((byte, k) => k < (branch[0] === 0x0f ? 2 : 1) ? byte : 0xff),
  foreign: Uint8Array.of(0xf4),
  nothing: (bytes) => new Uint8Array(bytes).fill(NOP),
};

/** All mutants of function `index` of proven code. */
export function* mutantsOf(module: MachineModule, index: number): Generator<Mutant<MutantKind>> {
  const { functionStart, functionEnd } = module.tables;
  const code = new Instructions();
  code.begin(functionStart[index], functionEnd[index]);
  decodeX64(module.bytes, functionStart[index], functionEnd[index], code);
  const traps = trapCalls(module, code);
  const frame = frameOf(code);
  const calls = callsOthers(module, code);
  for (let n = 0; n < code.count; n++) {
    if (code.kind[n] === KIND.DATA) continue;
    const trap = traps.get(code.at[n + 1] + code.immediate[n]) ?? 0;
    for (const kind of MUTANT_KINDS) {
      const bytes = MUTATORS[kind]({ module, code, n, trap, frame, calls });
      if (bytes !== undefined) yield { kind, index, at: code.at[n], bytes };
    }
  }
}
