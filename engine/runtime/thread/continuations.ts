/**
 * Continuations (proposal "stack switching"): computations whose frames are off the guest stack, and the stack of the
 * computations that run. In: parked guest code. Out: the thread parked elsewhere, so that resuming it continues another
 * computation.
 *
 * Each computation is an activation of its own: its frames begin where those of the code that has resumed it end, which
 * is parked in `resume`. A computation that suspends takes the frames down to that place along, those of computations
 * that it has resumed included:
 *
 *     entry from JavaScript … resume | computation … resume | computation … suspend
 *                                    └ prompt 0             └ prompt 1
 *
 * Frames contain no address of the stack except the first word of parked frames (context_layout.ts, PARKED), which
 * leads to the previous activation.
 *
 * Invariant: the prompts from `base` on belong to the innermost call from JavaScript; no computation is captured beyond
 * them.
 */
import { CONTEXT, PARKED, THREAD } from "../../abi/context_layout.ts";
import { Bug } from "../../base/errors.ts";
import type { ContextArena, ContextBlock } from "../memory/context_arena.ts";
import { copyWords, type NativeRegion } from "../memory/native_region.ts";
import type { GuestStack } from "./guest_stack.ts";
import type { Prompt } from "./prompts.ts";

/** Words of 32 bits per value in the overflow buffer and in slots. */
const VALUE_WORDS = THREAD.SLOT_SIZE >> 2;
const OVERFLOW = THREAD.OVERFLOW >> 2;
const SLOTS = THREAD.SLOTS >> 2;
const GUEST_SP = THREAD.GUEST_SP >> 2;
const DEPTH_LEFT = THREAD.DEPTH_LEFT >> 2;
/** The binary logarithm of the size of the smallest block. */
const LEAST_BLOCK_LOG = 6;

/** The function of a computation that has not begun: its record, and the thunk that enters it. */
export interface ContinuationStart {
  readonly region: NativeRegion;
  /** Offset of the code address and of the VM context in the region. */
  readonly code: number;
  readonly context: number;
  /** The address of the record. */
  readonly record: number;
  readonly thunk: number;
}

/**
 * A computation that does not run. It is resumed at most once. The object is used again for another computation when no
 * reference to this one exists any more.
 */
export class Continuation {
  /** The function; undefined once the computation has begun. */
  start: ContinuationStart | undefined;
  /** The saved frames: the first `bytes` bytes of the block; undefined if there are none. */
  block: ContextBlock | undefined = undefined;
  bytes = 0;
  /** The prompts among the frames, outermost first; `sp` is the distance from the end of the frames. */
  prompts: readonly Prompt[] = NO_PROMPTS;
  /** The arguments that cont.bind has given, VALUE_WORDS words each. */
  bound: readonly number[] = NO_WORDS;
  /** Objects that must live as long as the computation: the instances of its code. */
  holders: readonly object[];
  /** Index in {@linkcode Continuations.live} while it has frames. */
  slot = -1;
  /** Whether it has been resumed, or bound to another continuation. */
  isConsumed = false;
  /** No tag keeps its references alive, unlike those of exceptions. */
  readonly tag: undefined = undefined;

  constructor(start: ContinuationStart | undefined, holders: readonly object[]) {
    this.start = start;
    this.holders = holders;
  }

  /** Visits the words that may be references: any word of its frames, and of the bound arguments. */
  visitReferences(visit: (word: number) => void): void {
    const { bound, block } = this;
    for (let k = 0; k < bound.length; k += 2) visit(bound[k] + bound[k + 1] * 0x1_0000_0000);
    if (block === undefined) return;
    const { region: { u32 }, offset } = block;
    for (let at = offset >> 2, end = (offset + this.bytes) >> 2; at < end; at += 2) {
      visit(u32[at] + u32[at + 1] * 0x1_0000_0000);
    }
  }
}

const NO_PROMPTS: readonly Prompt[] = [];
const NO_WORDS: readonly number[] = [];
/** The maximum number of unused objects that are kept. */
const MAX_SPARE = 8192;
/** Minimum threshold for a sweep: the number of computations with saved frames. */
const MIN_CROWD = 1024;

/** The computations of a thread. */
export class Continuations {
  /** Those with saved frames, in no order. */
  readonly live: Continuation[];
  /** The prompts of computations in progress, outermost first, and unused ones after the first `#count`. */
  readonly #prompts: Prompt[] = [];
  #count = 0;
  /** The index, among the tags of its prompt, of the handler that {@linkcode find} has found. */
  found = 0;
  /** Continuations to which no reference exists. */
  readonly #spare: Continuation[] = [];
  /** The index of the first prompt of the innermost call from JavaScript. */
  #base = 0;
  /** Whether parked code is to be continued by beginning the call in the thread state. */
  #starts = false;
  readonly #state: NativeRegion;
  readonly #stack: GuestStack;
  /** The halves of the lowest address of the stack. */
  readonly #low: number;
  readonly #lowUpper: number;
  readonly #contexts: ContextArena;
  /** The threshold for a sweep. */
  #crowd = MIN_CROWD;
  /** Unused blocks by the binary logarithm of their size. */
  readonly #blocks: ContextBlock[][] = Array.from({ length: 32 }, () => []);

  constructor(state: NativeRegion, stack: GuestStack, contexts: ContextArena) {
    this.#state = state;
    this.#stack = stack;
    this.#low = stack.low >>> 0;
    this.#lowUpper = Math.floor(stack.low / 0x1_0000_0000);
    this.live = [];
    stack.continued = this.live;
    this.#contexts = contexts;
  }

  // Calls from JavaScript.

  /** Begins to serve a call from JavaScript. Returns a value for {@linkcode end}. */
  begin(): number {
    const outer = this.#base;
    this.#base = this.#count;
    return outer;
  }

  /** Ends it: drops computations that it has left, with their frames. */
  end(outer: number): void {
    if (this.isInside) this.drop();
    this.#base = outer;
  }

  /** Whether a computation of the innermost call from JavaScript runs. */
  get isInside(): boolean {
    return this.#count > this.#base;
  }

  /** The address where the innermost call from JavaScript has entered the stack; its code is parked. */
  get entry(): number {
    const parked = this.isInside ? this.#prompts[this.#base].sp : this.#sp();
    return this.#stack.wordAt(this.#stack.low + parked + PARKED.ENTRY_SP);
  }

  /** Drops all frames of the innermost call from JavaScript. */
  drop(): void {
    this.#state.setWord(THREAD.GUEST_SP, this.entry);
    this.#count = this.#base;
    this.#starts = false;
  }

  /** The stack pointers of code that is parked in `resume`, of the innermost call from JavaScript, innermost first. */
  *parked(): Generator<number> {
    for (let k = this.#count - 1; k >= this.#base; k--) yield this.#stack.low + this.#prompts[k].sp;
  }

  /** Takes the prompts of the innermost call from JavaScript away, whose frames leave the stack. */
  takePrompts(): readonly Prompt[] | undefined {
    return this.isInside ? this.#cut(this.#base, this.entry - this.#stack.low) : undefined;
  }

  /** Puts them back: the frames are on the stack again, from `entry` downwards. */
  putPrompts(prompts: readonly Prompt[], entry: number): void {
    this.#place(prompts, entry - this.#stack.low);
  }

  /** Whether a call must be begun to continue; asked once after each request of parked code. */
  takeStart(): boolean {
    const starts = this.#starts;
    this.#starts = false;
    return starts;
  }

  /**
   * Ends the computation that has returned: its results are in the slots. Returns false if it is no computation, but
   * the function that JavaScript has called; else resuming continues the code that has resumed it.
   */
  leave(): boolean {
    if (!this.isInside) return false;
    const { u32 } = this.#state;
    const words = this.#prompts[--this.#count].results * VALUE_WORDS;
    for (let n = 0; n < words; n++) u32[OVERFLOW + n] = u32[SLOTS + n];
    u32[SLOTS] = 0;
    return true;
  }

  /**
   * Drops the innermost computation, which an exception leaves: its resumer is parked. Returns false if there is none.
   */
  unwind(): boolean {
    if (!this.isInside) return false;
    this.#setSp(this.#prompts[--this.#count].sp);
    return true;
  }

  // Requests of parked code.

  /**
   * Pushes the handlers that parked code has written to the overflow buffer, from value `first` on: `labels` ones with
   * labels and `switches` others, for a computation with so many results.
   */
  push(first: number, labels: number, switches: number, results: number): void {
    const prompt = this.#prompts[this.#count] ??= {
      sp: 0,
      tags: [],
      labels,
      handlers: 0,
      results,
      depth: 0,
      holders: NO_HOLDERS,
    };
    this.#count++;
    prompt.sp = this.#sp();
    prompt.labels = labels;
    prompt.handlers = labels + switches;
    prompt.results = results;
    prompt.depth = this.#state.i32[DEPTH_LEFT];
    for (let k = 0; k < prompt.handlers; k++) {
      prompt.tags[k] = this.#state.word(THREAD.OVERFLOW + (first + k) * THREAD.SLOT_SIZE);
    }
  }

  /**
   * The prompt with the innermost handler of a tag, for suspensions or for switches; its number is in `found` then. −1
   * if there is none.
   */
  find(tag: number, forSwitch: boolean): number {
    for (let k = this.#count - 1; k >= this.#base; k--) {
      const { tags, labels, handlers } = this.#prompts[k];
      const end = forSwitch ? handlers : labels;
      for (let n = forSwitch ? labels : 0; n < end; n++) {
        if (tags[n] !== tag) continue;
        this.found = n;
        return k;
      }
    }
    return -1;
  }

  /** Whether a sweep is due, because many computations have saved frames. */
  get isCrowded(): boolean {
    return this.live.length >= this.#crowd;
  }

  /** Called after a sweep. */
  noteSweep(): void {
    this.#crowd = Math.max(MIN_CROWD, this.live.length * 2);
  }

  /** A continuation without frames. */
  make(start: ContinuationStart | undefined, holders: readonly object[]): Continuation {
    const spare = this.#spare.pop();
    if (spare === undefined) return new Continuation(start, holders);
    spare.start = start;
    spare.holders = holders;
    spare.isConsumed = false;
    return spare;
  }

  /** Takes back a continuation to which no reference exists any more. */
  drain(continuation: Continuation): void {
    this.free(continuation);
    continuation.start = undefined;
    continuation.holders = NO_HOLDERS;
    continuation.prompts = NO_PROMPTS;
    continuation.bound = NO_WORDS;
    if (this.#spare.length < MAX_SPARE) this.#spare.push(continuation);
  }

  /**
   * Captures the computation below a prompt, which parked code of `instance` suspends: the code that has resumed it is
   * parked then. Removes the prompt unless it is `kept`, for another computation that takes its place: the depth left
   * to that is the same.
   */
  capture(prompt: number, kept: boolean, instance: object): Continuation {
    const { sp, holders } = this.#prompts[prompt];
    const from = this.#sp();
    const bytes = sp - from;
    const captured = this.make(undefined, holders.includes(instance) ? holders : [...holders, instance]);
    const block = this.#takeBlock(bytes);
    copyWords(this.#stack.region.u32, from, block.region.u32, block.offset, bytes);
    captured.block = block;
    captured.bytes = bytes;
    captured.prompts = prompt + 1 < this.#count ? this.#cut(prompt + 1, sp) : NO_PROMPTS;
    captured.slot = this.live.push(captured) - 1;
    if (kept) this.#state.i32[DEPTH_LEFT] = this.#prompts[prompt].depth;
    else this.#count = prompt;
    this.#setSp(sp);
    return captured;
  }

  /**
   * Whether the stack has room for the frames of a continuation above those of the parked code, whose limit is in the
   * VM context of which `region` and `offset` are.
   */
  hasRoom({ bytes }: Continuation, region: NativeRegion, offset: number): boolean {
    return this.#sp() - bytes >= this.#distance(region.u32[(offset + CONTEXT.STACK_LIMIT) >> 2]);
  }

  /**
   * Continues a consumed continuation below the innermost prompt: `count` arguments are in the overflow buffer, after
   * those that it was bound to.
   */
  enter(continuation: Continuation, count: number): void {
    const { u32 } = this.#state;
    const { start, bound } = continuation;
    if (bound.length > 0) {
      u32.copyWithin(OVERFLOW + bound.length, OVERFLOW, OVERFLOW + count * VALUE_WORDS);
      u32.set(bound, OVERFLOW);
    }
    if (start === undefined) return this.restore(continuation);
    this.#prompts[this.#count - 1].holders = continuation.holders;
    const words = count * VALUE_WORDS + bound.length;
    for (let n = 0; n < words; n++) u32[SLOTS + n] = u32[OVERFLOW + n];
    const { region, code, context, record, thunk } = start;
    this.#state.setWord(THREAD.CALL_CODE, region.word(code));
    this.#state.setWord(THREAD.CALL_CONTEXT, region.word(context));
    this.#state.setWord(THREAD.CALL_RECORD, record);
    this.#state.setWord(THREAD.CALL_THUNK, thunk);
    this.#starts = true;
  }

  /** Puts the frames of a consumed continuation on the stack, below the innermost prompt. */
  restore(continuation: Continuation): void {
    const { block, bytes } = continuation;
    if (block === undefined) throw new Bug("A continuation without frames cannot be restored");
    const entry = this.#sp();
    copyWords(block.region.u32, block.offset, this.#stack.region.u32, entry - bytes, bytes);
    this.#setSp(entry - bytes);
    this.#prompts[this.#count - 1].holders = continuation.holders;
    this.#place(continuation.prompts, entry);
    this.free(continuation);
  }

  /** A continuation with the state of a consumed one, bound to these arguments. */
  rebind(given: Continuation, bound: readonly number[]): Continuation {
    const made = this.make(given.start, given.holders);
    made.bound = bound;
    const { block, slot } = given;
    if (block === undefined) return made;
    made.block = block;
    made.bytes = given.bytes;
    made.prompts = given.prompts;
    made.slot = slot;
    this.live[slot] = made;
    given.block = undefined;
    return made;
  }

  /** Frees the frames of a continuation that will not be resumed, if it has any. */
  free(continuation: Continuation): void {
    const { block, slot } = continuation;
    if (block === undefined) return;
    continuation.block = undefined;
    const last = this.live.pop()!;
    if (last !== continuation) {
      this.live[slot] = last;
      last.slot = slot;
    }
    this.#blocks[31 - Math.clz32(block.size)].push(block);
  }

  /** Removes the prompts from index `first` on; their stack pointers become distances from `end`. */
  #cut(first: number, end: number): Prompt[] {
    const prompts = this.#prompts.splice(first, this.#count - first);
    this.#count = first;
    for (const prompt of prompts) prompt.sp = end - prompt.sp;
    return prompts;
  }

  /**
   * Adds prompts whose stack pointers are distances from `entry`, and leads each activation to the previous one: the
   * innermost code is parked, the first activation begins at `entry`.
   */
  #place(prompts: readonly Prompt[], entry: number): void {
    const { u32 } = this.#stack.region;
    let previous = entry;
    for (const prompt of prompts) {
      prompt.sp = entry - prompt.sp;
      this.#setAddress(u32, (prompt.sp + PARKED.ENTRY_SP) >> 2, previous);
      previous = prompt.sp;
      this.#prompts.splice(this.#count++, 0, prompt);
    }
    this.#setAddress(u32, (this.#sp() + PARKED.ENTRY_SP) >> 2, previous);
  }

  // Places on the stack are distances from its lowest address, which are small integers.

  /** The place whose address has this lower half. */
  #distance(half: number): number {
    return (half - this.#low) | 0;
  }

  /** The place of the innermost parked code. */
  #sp(): number {
    return this.#distance(this.#state.u32[GUEST_SP]);
  }

  #setSp(place: number): void {
    this.#setAddress(this.#state.u32, GUEST_SP, place);
  }

  /** Writes the address of a place to words `at` and `at` + 1. */
  #setAddress(u32: Uint32Array, at: number, place: number): void {
    const half = (this.#low + place) >>> 0;
    u32[at] = half;
    u32[at + 1] = half < this.#low ? this.#lowUpper + 1 : this.#lowUpper;
  }

  #takeBlock(bytes: number): ContextBlock {
    const log = Math.max(LEAST_BLOCK_LOG, 32 - Math.clz32(bytes - 1));
    return this.#blocks[log].pop() ?? this.#contexts.allocate(2 ** log);
  }
}

const NO_HOLDERS: readonly object[] = [];
