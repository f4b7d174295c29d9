/**
 * The guest stack of one thread, and the frames on it. In: the host, and the thread state, whose GUEST_SP bounds the
 * parked frames. Out: words of the stack, and all guest frames for conservative scans. Invariant: a suspended call's
 * frames are in `suspended` exactly while they are off the stack.
 */
import { THREAD } from "../../abi/context_layout.ts";
import { type Host, PROT } from "../../host/host.ts";
import type { ContextBlock } from "../memory/context_arena.ts";
import { NativeRegion } from "../memory/native_region.ts";
import type { Prompt } from "./prompts.ts";

/**
 * Size of the guest stack of a thread in bytes. Code that counts the call depth in abstract units may use all of it:
 * its machine frames are smaller than 16 bytes per counted unit.
 */
const STACK_BYTES = 1 << 24;
/** Size in bytes of the uppermost part of the stack, in which most calls park. */
const TOP_BYTES = 1 << 16;
/** Size of the inaccessible guard range below the stack in bytes; prologues with larger frames probe it. */
export const STACK_GUARD_BYTES: number = 1 << 16;

/** The saved frames of one suspended call, in memory outside the stack; their words are conservative roots. */
export interface SuspendedFrames {
  block: ContextBlock;
  /** Size of the saved frames in bytes; 0 while the call is running. */
  bytes: number;
  /** The computations among the frames (continuations.ts); undefined if there are none. */
  prompts: readonly Prompt[] | undefined;
}

/** The frames of a continuation, in the first `bytes` bytes of a block. */
interface SavedContinuation {
  readonly block: ContextBlock | undefined;
  readonly bytes: number;
}

/** Guest frames: a part of a region. */
interface FrameRange {
  readonly region: NativeRegion;
  readonly offset: number;
  readonly bytes: number;
}

/** The stack of a thread. */
export class GuestStack {
  /** The lowest address. */
  readonly low: number;
  /** The address behind the highest. */
  readonly high: number;
  /** Frames of suspended and preempted calls; their words are conservative roots. */
  readonly suspended: Set<SuspendedFrames> = new Set();
  /** The continuations with frames (continuations.ts). */
  continued: readonly SavedContinuation[] = [];
  readonly #host: Host;
  readonly #state: NativeRegion;
  readonly #top: NativeRegion;
  #region: NativeRegion | undefined;

  /** Reserves a stack. `state`: the thread state. */
  constructor(host: Host, state: NativeRegion) {
    this.#host = host;
    this.#state = state;
    this.low = host.reserve(STACK_GUARD_BYTES + STACK_BYTES, PROT.NONE) + STACK_GUARD_BYTES;
    this.high = this.low + STACK_BYTES;
    host.protect(this.low, STACK_BYTES, PROT.READ | PROT.WRITE);
    this.#top = new NativeRegion(host, this.high - TOP_BYTES, TOP_BYTES);
  }

  /**
   * The whole stack. The view is created on first use, because the JavaScript engine counts it as external memory and
   * would collect garbage more often.
   */
  get region(): NativeRegion {
    return this.#region ??= new NativeRegion(this.#host, this.low, STACK_BYTES);
  }

  /** The 64-bit word at `address`. */
  wordAt(address: number): number {
    const { region, offset } = this.#range(address);
    return region.word(offset);
  }

  /** The part of the stack from `address` on: a region, and the address's offset in it. */
  #range(address: number): { region: NativeRegion; offset: number } {
    const region = address >= this.#top.address ? this.#top : this.region;
    return { region, offset: address - region.address };
  }

  /** All guest frames: the parked frames on the stack and the saved frames of suspended calls. */
  *frames(): Generator<FrameRange> {
    const sp = this.#state.word(THREAD.GUEST_SP);
    yield { ...this.#range(sp), bytes: this.high - sp };
    for (const { block, bytes } of this.suspended) yield { region: block.region, offset: block.offset, bytes };
  }

  /** All guest frames, those of continuations included, which are no roots: unreachable ones are freed. */
  *#allFrames(): Generator<FrameRange> {
    yield* this.frames();
    for (const { block, bytes } of this.continued) {
      if (block !== undefined) yield { region: block.region, offset: block.offset, bytes };
    }
  }

  /** Whether frames are off the stack: those of suspended calls, or of continuations. */
  get hasSavedFrames(): boolean {
    return this.suspended.size > 0 || this.continued.length > 0;
  }

  /** Whether `word` occurs in the guest frames. */
  holdsWord(word: number): boolean {
    const low = word >>> 0;
    const high = (word / 0x1_0000_0000) >>> 0;
    for (const { region: { u32 }, offset, bytes } of this.#allFrames()) {
      for (let at = offset >> 2, end = (offset + bytes) >> 2; at < end; at += 2) {
        if (u32[at] === low && u32[at + 1] === high) return true;
      }
    }
    return false;
  }

  /** Whether a word in the guest frames may be an address in [start, start + bytes). */
  holdsAddressIn(start: number, bytes: number): boolean {
    for (const { region: { u32 }, offset, bytes: length } of this.#allFrames()) {
      // Return addresses of code that has run for long are most likely in the oldest frames.
      for (let at = ((offset + length) >> 2) - 2; at >= offset >> 2; at -= 2) {
        const distance = u32[at] + u32[at + 1] * 0x1_0000_0000 - start;
        if (distance >= 0 && distance < bytes) return true;
      }
    }
    return false;
  }
}
