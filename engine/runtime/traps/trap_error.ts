/**
 * Errors of traps. In: the thread state at the trap. Out: a TrapError, or an ExhaustionError for a stack overflow, with
 * the specification's message and the guest frames; a Bug for a fault at an address without a trap site. The trap table
 * of the image maps the program counter to the trap; the stack walk follows return addresses through the call-site
 * tables, because compiled code has no frame pointer. `activationsOf` gives the whole stack as numbers.
 */
import { TAIL_FRAME, THREAD } from "../../abi/context_layout.ts";
import { Bug, ExhaustionError, type SourcePlace, TrapError, type TrapFrame } from "../../base/errors.ts";
import type { CodeImage } from "../../link/image.ts";
import { TRAP, TRAP_MESSAGES } from "../../base/traps.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import { STACK_GUARD_BYTES } from "../thread/guest_stack.ts";

/** The maximum number of frames in an error. */
const MAX_FRAMES = 64;

/** The module of an image, as the stack walk uses it. */
export interface ImageOwner {
  image: CodeImage;
  importedFuncCount: number;
  inlineSites: (definedIndex: number) => readonly { parent: number; callPos: number; funcIndex: number }[];
  funcName: (funcIndex: number) => string | undefined;
  moduleName: string | undefined;
  placeOf: (offset: number) => SourcePlace | undefined;
  /** True for intrinsic modules, whose frames are hidden. */
  internal: boolean;
  /** The validated module: the same object for all compilations of a module. */
  readonly valid: object;
}

/** Receives frames of a stack walk, innermost first. */
interface FrameList {
  /** Whether the walk may end. */
  readonly isFull: boolean;
  /** Adds the frame of function `funcIndex` at code offset `offset`. */
  add(owner: ImageOwner, funcIndex: number, offset: number): void;
}

/** The guest's stack, innermost frame first, and the module of each frame as {@linkcode ImageOwner.valid}. */
export class GuestStack implements FrameList {
  readonly frames: TrapFrame[] = [];
  readonly modules: object[] = [];

  /** Whether an error shows no more frames. */
  get isFull(): boolean {
    return this.frames.length >= MAX_FRAMES;
  }

  add(owner: ImageOwner, funcIndex: number, offset: number): void {
    this.frames.push(frameOf(owner, funcIndex, offset));
    this.modules.push(owner.valid);
  }
}

/** Finds the module that owns a code address. */
type ImageLookup = (address: number) => ImageOwner | undefined;

/**
 * The module of the call that returns to `address`. A call of a trap stub may end its function and image, so the return
 * address itself may belong to the next image or to none.
 */
export function callerAt(lookup: ImageLookup, address: number): ImageOwner | undefined {
  return lookup(address - 1);
}

/** Makes the core dump of a trap with a stack, for a program. */
export type StackDump = (stack: GuestStack, program: string) => Uint8Array<ArrayBuffer>;

/** The error of the trap that the thread state describes; `dump` makes its core dump on demand. */
export function trapError(thread: GuestThread, lookup: ImageLookup, dump?: StackDump): Error {
  const found = new GuestStack();
  const { state } = thread;
  const pc = state.word(THREAD.TRAP_PC);
  const sp = state.word(THREAD.TRAP_SP);
  const fault = state.word(THREAD.FAULT_ADDRESS);
  let code = state.i32[THREAD.TRAP_CODE >> 2];
  // The program counter of a fault is in the faulting instruction, all others are return addresses of trap stubs.
  const owner = fault !== 0 ? lookup(pc) : callerAt(lookup, pc);
  const site = owner?.image.trapSiteAt(pc, fault !== 0);
  if (fault !== 0) {
    const low = state.word(THREAD.STACK_LOW);
    if (fault >= low - STACK_GUARD_BYTES && fault < low + thread.host.pageSize) code = TRAP.STACK_EXHAUSTED;
    else if (site !== undefined) code = site.code;
    else {return new Bug(
        `Fault at code address ${pc.toString(16)} without a trap site (data address ${fault.toString(16)})`,
      );}
  } else if (code === 0) {
    code = site?.code ?? 0;
  }
  const message = TRAP_MESSAGES[code] ?? `trap ${code}`;
  if (owner !== undefined && site !== undefined) {
    addFrames(found, owner, fault !== 0 ? pc : pc - 1, site.pos, site.site);
    walk(found, thread, sp + site.frame, lookup);
    walkResumers(found, thread, lookup);
  } else if (owner !== undefined) {
    const defined = owner.image.functionAt(fault !== 0 ? pc : pc - 1);
    if (defined >= 0) {
      found.add(owner, owner.importedFuncCount + defined, 0);
    }
  }
  const { frames } = found;
  const Trap = code === TRAP.STACK_EXHAUSTED ? ExhaustionError : TrapError;
  return new Trap(message, frames, dump === undefined ? undefined : (program) => dump(found, program));
}

/** Maximum number of words between a parked stack pointer and the return address of the parked call. */
const PARK_WORDS = 16;

/** The frames of parked code, starting at the first known return address above the parked stack pointer. */
export function parkedStack(thread: GuestThread, lookup: ImageLookup): GuestStack {
  const found = new GuestStack();
  walkParked(found, thread, lookup);
  return found;
}

function walkParked(found: FrameList, thread: GuestThread, lookup: ImageLookup): void {
  walkParkedAt(found, thread, thread.state.word(THREAD.GUEST_SP), lookup);
  walkResumers(found, thread, lookup);
}

/** Adds the frames of the code that has resumed the current computation, and so on. */
function walkResumers(found: FrameList, thread: GuestThread, lookup: ImageLookup): void {
  for (const sp of thread.continuations.parked()) if (!found.isFull) walkParkedAt(found, thread, sp, lookup);
}

/** Adds the frames of code that is parked at `sp`. */
function walkParkedAt(found: FrameList, thread: GuestThread, sp: number, lookup: ImageLookup): void {
  const words = Math.min(PARK_WORDS, (thread.stack.high - sp) >> 3);
  for (let i = 0; i < words; i++) {
    const pc = thread.stack.wordAt(sp + i * 8);
    if (callerAt(lookup, pc)?.image.callSiteAt(pc) !== undefined) {
      return walk(found, thread, sp + i * 8, lookup);
    }
  }
}

/** The functions of a stack and the offsets of their calls. */
class Activations implements FrameList {
  readonly numbers: number[] = [];
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get isFull(): boolean {
    return this.numbers.length >= this.#most;
  }

  add(_owner: ImageOwner, funcIndex: number, offset: number): void {
    // The offset in the innermost function differs between tiers, so it is left out.
    if (this.numbers.length > 0) this.numbers.push(offset);
    this.numbers.push(funcIndex);
  }
}

/**
 * All activations of the innermost call from JavaScript, inlined ones included, innermost first: a function index, and
 * for each further activation the offset of its call and its function index. The code has trapped, or it `isParked`.
 * For code without tail calls, the numbers do not depend on the tier. The walk ends when there are `most` numbers.
 */
export function activationsOf(
  thread: GuestThread,
  lookup: ImageLookup,
  isParked: boolean,
  most = Infinity,
): readonly number[] {
  const found = new Activations(most);
  if (isParked) walkParked(found, thread, lookup);
  else {
    const pc = thread.state.word(THREAD.TRAP_PC);
    const owner = callerAt(lookup, pc);
    const site = owner?.image.trapSiteAt(pc, false);
    if (owner !== undefined && site !== undefined) {
      addFrames(found, owner, pc - 1, site.pos, site.site);
      walk(found, thread, thread.state.word(THREAD.TRAP_SP) + site.frame, lookup);
      walkResumers(found, thread, lookup);
    }
  }
  return found.numbers;
}

/** A frame of function `funcIndex` at code offset `offset`. */
function frameOf(owner: ImageOwner, funcIndex: number, offset: number): TrapFrame {
  const funcName = owner.funcName(funcIndex);
  const place = owner.placeOf(offset);
  return {
    funcIndex,
    offset,
    ...(funcName === undefined ? {} : { funcName }),
    ...(owner.moduleName === undefined ? {} : { moduleName: owner.moduleName }),
    ...(place?.file === undefined ? {} : { file: place.file }),
    ...(place?.line === undefined ? {} : { line: place.line, column: place.column ?? 1 }),
  };
}

/** Adds the frames of a call or trap site, innermost inlined call first. */
function addFrames(found: FrameList, owner: ImageOwner, pc: number, pos: number, site: number): void {
  const defined = owner.image.functionAt(pc);
  if (defined < 0 || owner.internal) return;
  const sites = owner.inlineSites(defined);
  let offset = pos;
  for (let s = site; s > 0 && !found.isFull; s = sites[s].parent) {
    const inlined = sites[s];
    found.add(owner, inlined.funcIndex, offset);
    offset = inlined.callPos;
  }
  found.add(owner, owner.importedFuncCount + defined, offset);
}

/** Adds frames by following return addresses, starting with the one stored at `at`, while they belong to images. */
function walk(found: FrameList, thread: GuestThread, at: number, lookup: ImageLookup): void {
  const { low, high, region } = thread.stack;
  while (!found.isFull && at >= low && at + 8 <= high) {
    const pc = region.word(at - low);
    if (pc === thread.tailReturn) {
      at += TAIL_FRAME.SIZE;
      continue;
    }
    const owner = callerAt(lookup, pc);
    const site = owner?.image.callSiteAt(pc);
    if (owner === undefined || site === undefined) return;
    addFrames(found, owner, pc - 1, site.pos, site.site);
    at += 8 + site.frame;
  }
}
