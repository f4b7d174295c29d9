/**
 * The state of the verifier while it interprets one function: the facts at the current instruction, the stack pointer,
 * the meaning of the flags, and the first reason why the function is not proven. The rules read and change it.
 *
 * The stack pointer is known exactly: `depth` is its distance below the value at entry, where the return address is.
 * Slots of the frame that hold values of general registers are locations, numbered when they are first written.
 */
import { THREAD } from "../abi/context_layout.ts";
import { grown } from "../base/columns.ts";
import { EXACT, Facts, PLACE } from "./facts.ts";
import { VALUE } from "./value_kinds.ts";
import { Ranges } from "./ranges.ts";
import type { CodeType, MachineModule } from "./machine_module.ts";
import { tyOf } from "../wasm/ir_types.ts";
import { canonicalType } from "../wasm/subtype.ts";
import type { HeapType } from "../wasm/types.ts";
import { Instructions } from "./instructions.ts";
import type { Machine } from "./machine.ts";

/** Reasons why code is not proven, in the order of the report. */
export const REASON = {
  DECODE: "bytes that are not an instruction of compiled code",
  TARGET: "a branch to another place than the start of an instruction of its function",
  FALLS: "control reaches the end of the function",
  STACK_POINTER: "the stack pointer differs between two paths, or is not restored",
  STACK_DEPTH: "the frame is larger than the stack check allows",
  FRAME: "an access outside of the frame",
  CONTEXT: "an access to a field of the context that code must not use so",
  CONTEXT_LOST: "the registers of context and memory do not hold those of the instance",
  MEMORY: "an access to memory without a proven bound",
  TABLE: "an access to a table without a proven bound",
  THREAD: "an access to a field of the thread state that code must not use so",
  CONSTANTS: "an access to the code image other than a load from its constant pool",
  OBJECT: "an access to a heap object or record whose type is not proven",
  REFERENCE: "a reference whose type is not proven, where one of another type is expected",
  ADDRESS: "an access through an address of unknown origin",
  CALL_TARGET: "a call or jump to a place other than a function, stub or tested record",
  CALL_SITE: "a call without its entry in the table of call sites",
  ARGUMENT: "an i32 argument or result that may have bits above the lowest 32",
  BULK: "a copy or fill whose range is not proven",
  CONTINUATION: "an instruction of stack switching, for whose values the verifier has no rules",
  TRAP_SITE: "a call of a trap without its entry in the table of traps",
  SWITCH: "an index of a jump table without a proven bound",
  INSTRUCTION: "an instruction that functions must not contain",
  RETURN: "a return address that is lost, or not where stack walks expect it",
  POLL: "a word that will hold the displacement to the poll page, in code other than a poll",
  WORK: "more steps than the limit",
} as const;

/** Reasons that the bounds of loops may remove: where they show that control does not come there. */
export const OF_LOOPS: readonly string[] = [REASON.MEMORY, REASON.TARGET, REASON.DECODE, REASON.INSTRUCTION];
/** Reasons that are passed over while the inductions of loops are found. */
const PASSED_OVER: readonly string[] = [...OF_LOOPS, REASON.ARGUMENT, REASON.BULK];

/** Meanings of the flags. */
export const FLAGS = {
  NONE: 0,
  /** LEFT was compared with RIGHT. */
  COMPARED: 1,
  /** LEFT is the result of an addition of constant RIGHT to a value with the name `flagsName`. */
  ADDED: 2,
  /** The result is the upper half of the value with the name `flagsName`. */
  UPPER_HALF: 3,
  /** The result is LEFT under mask RIGHT, a constant. */
  TESTED: 4,
  /** COMPARED, or the flags in `chainFlags` because the compare was not made. */
  CHAINED: 5,
  /** An addition of constants whose sum has more than 64 bits: the carry is set. */
  CARRIED: 6,
  /** LEFT is the sum of two numbers, one of which is at least EXACT. */
  LARGE_SUM: 7,
  /** LEFT is a sum that wraps if the carry is set (Ranges.mayWrap). */
  SUM: 8,
  /** The carry is clear: a sum of two small numbers, of 64 bits. */
  EXACT_SUM: 9,
  /** The result is LEFT AND RIGHT, the outcomes of two tests (VALUE.TYPE_TEST). */
  BOTH: 10,
} as const;

/** Bytes below the stack limit: for frames without a check, and for the pushes of a call into another instance. */
const UNCHECKED_STACK = 512 + 16;

/** Names per instruction; those of the first follow as many others. */
export const NAMES = 4;

/** Largest number of tracked slots: of the frame and of the overflow buffer together. */
const MAX_SLOTS = 8192;

export class Analysis {
  readonly machine: Machine;
  readonly module: MachineModule;
  readonly code: Instructions = new Instructions();
  /** Those of the current path; another object while the other way of a branch is followed. */
  facts: Facts = new Facts();
  readonly ranges: Ranges = new Ranges();
  /** By table: 1 if its elements are taken to be those of its segments; and 1 if the code may write to it. */
  readonly constantTables: Uint8Array;
  readonly writtenTables: Uint8Array;
  /** Number of the current instruction. */
  n = 0;
  depth = 0;
  /** The deepest stack that has been compared with the limit, −1: none. */
  fence = -1;
  flags: number = FLAGS.NONE;
  /** Bytes of the compared operands. */
  flagsSize = 8;
  /** For FLAGS.ADDED, FLAGS.UPPER_HALF: name and delta of the operand; for FLAGS.ADDED, delta includes the constant. */
  flagsName = 0;
  flagsDelta = 0;
  /** For FLAGS.CHAINED: the other flags, N Z C V from the most significant bit down. */
  chainFlags = 0;
  /** For FLAGS.CHAINED: NE means that the reference with this name is null, or an integer. 0: there is none. */
  chainName = 0;
  /**
   * Types that are known exactly, by the name of the reference: constants, so that they hold everywhere. Records of own
   * functions have such names, and types of the module, to which no reference has the name.
   */
  readonly exactTypes: Map<number, HeapType> = new Map();
  /** The condition that is being assumed cannot hold. */
  isImpossible = false;
  /** The name of a record in the context that a test since the last call proved to be this instance's; 0: none. */
  ownRecord = 0;
  /** The register of the reference in the address that is being evaluated. */
  referent = 0;
  /** The number of the current instruction's result that is being computed. */
  result = 0;
  /** The location of the value that is being stored, −1: unknown. */
  stored = -1;
  /** The number with this name is a size in bytes, rounded up and divided by 8; the size is a product. 0: none. */
  eighthName = 0;
  eighthOf = -1;
  eighthRoom = 0;
  /** The current instruction always faults: control does not continue. */
  faults = false;
  /** Whether words of the frame that the code fills with zeros are tracked as slots. */
  keepsZeros = false;
  /** Whether the code fills words of the frame with zeros. */
  hasZeros = false;
  /** Reasons that bounds of loops may remove are passed over. */
  isExploring = false;
  /** First reason, and the offset of its instruction in the image. */
  reason = "";
  reasonAt = 0;

  /**
   * Location by position × 2 + (1 for eight bytes), 0: none. Position: distance below the entry, in words of 4 bytes.
   */
  #slotAt: Int32Array = new Int32Array(256);
  #slotEnd = 0;
  #slots = 0;
  /** Location by entry of the overflow buffer, 0: none. */
  readonly #overflowAt = new Int32Array(THREAD.SLOT_COUNT);
  #overflowEnd = 0;
  readonly #functionTypes = new Map<HeapType, CodeType>();

  constructor(machine: Machine, module: MachineModule) {
    this.machine = machine;
    this.module = module;
    this.constantTables = Uint8Array.from(module.tableIsPrivate, (isPrivate) => isPrivate ? 1 : 0);
    this.writtenTables = new Uint8Array(this.constantTables.length);
  }

  /** Begins a function. */
  begin(): void {
    this.#slotAt.fill(0, 0, this.#slotEnd);
    this.#slotEnd = 0;
    this.#slots = 0;
    this.#overflowAt.fill(0, 0, this.#overflowEnd);
    this.#overflowEnd = 0;
    this.reason = "";
    this.facts.shrink();
    this.exactTypes.clear();
    this.keepsZeros = this.hasZeros = false;
  }

  /** Whether the elements of table `t` cannot move. */
  isTableFixed(t: number): boolean {
    return this.module.tableIsFixed[t] || this.constantTables[t] === 1;
  }

  /** The signature of functions of closed type `heap`; undefined for other types. */
  functionType(heap: HeapType): CodeType | undefined {
    if (heap < 0) return undefined;
    const known = this.#functionTypes.get(heap);
    if (known !== undefined) return known;
    const { composite } = canonicalType(heap);
    if (composite.kind !== "func") return undefined;
    const { params, results } = composite;
    const type = { params: Uint8Array.from(params, tyOf), results: Uint8Array.from(results, tyOf), type: composite };
    this.#functionTypes.set(heap, type);
    return type;
  }

  /** The value number of result `result` of the current instruction, by default of the first. */
  name(result: number = this.result): number {
    return NAMES + this.n * NAMES + result;
  }

  /** Notes the sum at location `l` of two numbers with these names, unless a constant was added to one of them. */
  noteSum(l: number, x: number, xDelta: number, y: number, yDelta: number): void {
    const { delta, high, name } = this.facts;
    if (name[l] !== this.name() || delta[l] !== 0) return;
    this.ranges.note(this.name(), !(high[l] <= EXACT), x, xDelta, y, yDelta);
  }

  /** The code is not proven. */
  fail(reason: string): void {
    if (this.reason !== "" || (this.isExploring && PASSED_OVER.includes(reason))) return;
    this.reason = reason;
    this.reasonAt = this.code.at[this.n];
  }

  /**
   * The stack pointer moves down by `bytes`, or up. Fails unless the stack has room for the frame and a callee. Slots
   * that are below it now are forgotten, because calls and signals write there.
   */
  moveStack(bytes: number): void {
    this.depth += bytes;
    // The stack pointer's name would be that of another address.
    this.facts.forget(this.machine.stackPointer);
    if (this.depth < 0 || (this.depth & 3) !== 0) return this.fail(REASON.STACK_POINTER);
    if (bytes > 0 && this.depth > Math.max(this.fence, 0) + UNCHECKED_STACK) this.fail(REASON.STACK_DEPTH);
    if (bytes < 0) { for (let key = (this.depth >> 1) + 2; key < this.#slotEnd; key++) this.#forgetKey(key); }
  }

  /**
   * The frame of a tail call from another instance, `bytes`, counts as pushed: distances on the stack are counted from
   * above it, and the return address is that of its caller.
   */
  enterTailFrame(bytes: number): void {
    this.depth = bytes;
    const { facts } = this;
    for (let l = 0; l < facts.count; l++) {
      if (facts.kind[l] === VALUE.RETURN_ADDRESS || facts.kind[l] === VALUE.STACK) facts.forget(l);
    }
  }

  /** Fails unless the handler of a fault can find the instance, through the register of the context. */
  requireContext(): void {
    if (!this.facts.isStart(this.machine.context, VALUE.CONTEXT, 0)) this.fail(REASON.CONTEXT_LOST);
  }

  /** The location of the slot of `size` bytes at `position`, 0 if it has none. */
  slot(position: number, size: number): number {
    if ((position & 3) !== 0) return 0;
    const key = (position >> 1) | (size === 8 ? 1 : 0);
    const l = key < this.#slotEnd ? this.#slotAt[key] : 0;
    return l < this.facts.count ? l : 0;
  }

  /** The same; makes a location, or returns 0 if there are too many. */
  newSlot(position: number, size: number): number {
    if ((position & 3) !== 0) return 0;
    const key = (position >> 1) | (size === 8 ? 1 : 0);
    if (key >= this.#slotEnd) this.#reserveSlots(key + 1);
    if (this.#slotAt[key] === 0) {
      if (this.#slots >= MAX_SLOTS) return 0;
      this.#slotAt[key] = this.machine.firstSlot + this.#slots++;
    }
    const l = this.#slotAt[key];
    this.#extend(l + 1);
    return l;
  }

  #reserveSlots(end: number): void {
    if (end > this.#slotAt.length) this.#slotAt = grown(this.#slotAt, end * 2);
    this.#slotEnd = end;
  }

  #extend(count: number): void {
    const { facts } = this;
    facts.reserve(count);
    for (; facts.count < count; facts.count++) facts.forget(facts.count);
  }

  /** The location of entry `k` of the overflow buffer, −1 if it has none. */
  overflowSlot(k: number): number {
    const l = k < this.#overflowEnd ? this.#overflowAt[k] : 0;
    return l !== 0 && l < this.facts.count ? l : -1;
  }

  /** The same; makes a location, or returns 0 if there are too many. */
  newOverflowSlot(k: number): number {
    if (this.#overflowAt[k] === 0) {
      if (this.#slots >= MAX_SLOTS) return 0;
      this.#overflowAt[k] = this.machine.firstSlot + this.#slots++;
      this.#overflowEnd = Math.max(this.#overflowEnd, k + 1);
    }
    this.#extend(this.#overflowAt[k] + 1);
    return this.#overflowAt[k];
  }

  /** Forgets the overflow buffer. */
  forgetOverflow(): void {
    this.facts.forget(PLACE.PAYLOAD);
    for (let k = 0; k < this.#overflowEnd; k++) {
      const l = this.overflowSlot(k);
      if (l > 0) this.facts.forget(l);
    }
  }

  /** Forgets all slots that overlap `size` bytes at `position`. */
  forgetSlots(position: number, size: number): void {
    const first = Math.max(Math.ceil((position - size + 1) / 4), 0);
    for (let word = first; word * 4 <= position + 7; word++) {
      if (word * 4 <= position + 3) this.#forgetKey(word * 2);
      this.#forgetKey(word * 2 + 1);
    }
  }

  /** `bytes` bytes at `position` become zero: null references. */
  fillSlots(position: number, bytes: number): void {
    this.forgetSlots(position, bytes);
    this.hasZeros = true;
    if (!this.keepsZeros) return;
    for (let at = 0; at + 8 <= bytes; at += 8) {
      const slot = this.newSlot(position - at, 8);
      if (slot !== 0) this.facts.number(slot, 0, 0, 0);
    }
  }

  #forgetKey(key: number): void {
    const l = key < this.#slotEnd ? this.#slotAt[key] : 0;
    if (l !== 0 && l < this.facts.count) this.facts.forget(l);
  }
}
