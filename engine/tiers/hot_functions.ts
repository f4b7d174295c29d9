/**
 * The functions of a module in which most of its time passes, found by samples. In: the thread, parked at a poll of the
 * module's baseline code. Out: defined functions, those seen most often first. A sample sees the function that polls
 * and its callers on the stack; it changes nothing, and reads some hundred words.
 */
import { THREAD } from "../abi/context_layout.ts";
import type { CodeImage } from "../link/image.ts";
import type { GuestStack } from "../runtime/thread/guest_stack.ts";
import type { GuestThread } from "../runtime/thread/guest_thread.ts";

/** The number of callers that a sample sees at most. */
const MAX_CALLERS = 3;
/** The weight of the function that polls: most likely, the time passes in it or in its callees without polls. */
const INNERMOST = 2;
/** The number of words of the stack in which a sample looks for return addresses. */
const MAX_WORDS = 256;

/** The parts of a thread that samples read. */
interface SampledThread extends Pick<GuestThread, "state"> {
  readonly stack: Pick<GuestStack, "low" | "high" | "region">;
}

export class HotFunctions {
  readonly #thread: SampledThread;
  readonly #image: CodeImage;
  /** The number of samples since the functions were taken last. */
  samples = 0;
  /** Weights by defined function. */
  readonly #seen = new Map<number, number>();

  constructor(thread: SampledThread, image: CodeImage) {
    this.#thread = thread;
    this.#image = image;
  }

  /** The innermost frame has parked at a poll. */
  sample(): void {
    const { state, stack: { low, high, region } } = this.#thread;
    this.samples++;
    const pc = state.word(THREAD.TRAP_PC);
    if (this.#image.contains(pc)) this.#note(this.#image.functionAt(pc), INNERMOST);
    const start = state.word(THREAD.GUEST_SP) - low;
    const end = Math.min(high - low, start + MAX_WORDS * 8);
    for (let at = start, callers = 0; at < end && callers < MAX_CALLERS; at += 8) {
      const word = region.word(at);
      // A word that only looks like a return address costs one function that is compiled early.
      if (!this.#image.contains(word) || this.#image.callSiteAt(word) === undefined) continue;
      this.#note(this.#image.functionAt(word - 1), 1);
      callers++;
    }
  }

  #note(index: number, weight: number): void {
    if (index >= 0) this.#seen.set(index, (this.#seen.get(index) ?? 0) + weight);
  }

  /** The functions with a weight of at least `least` in the samples, and forgets all samples. */
  take(least: number): number[] {
    const found = [...this.#seen].filter(([, weight]) => weight >= least).sort(([, a], [, b]) => b - a);
    this.#seen.clear();
    this.samples = 0;
    return found.map(([index]) => index);
  }
}
