/**
 * Runs compiled code from poll to poll, for tests that replace code in a chosen iteration of a loop. In: a thread. Out:
 * every poll of its compiled code parks, once. The poll page stays closed, so a frame continues after the poll's read.
 */
import { THREAD } from "../abi/context_layout.ts";
import type { LoopEntryTarget } from "../codegen/target.ts";
import { PROT } from "../host/host.ts";
import type { GuestThread } from "../runtime/thread/guest_thread.ts";

/** By thread: the number of objects that keep its poll page closed. */
const USERS = new WeakMap<GuestThread, number>();

export class PollSteps {
  readonly #thread: GuestThread;
  readonly #target: LoopEntryTarget;
  #isOn = false;

  constructor(thread: GuestThread, target: LoopEntryTarget) {
    this.#thread = thread;
    this.#target = target;
  }

  /** Closes the page, which a deadline may have opened meanwhile. */
  close(): void {
    if (!this.#isOn) this.#count(1);
    this.#isOn = true;
    this.#protect(PROT.NONE);
  }

  /** Opens the page unless others use it. */
  open(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    if (this.#count(-1) === 0) this.#protect(PROT.READ);
  }

  /** Makes the frame that has parked at a poll continue after it, unless it already continues elsewhere. */
  step(): void {
    const { state, stack: { low, region } } = this.#thread;
    const at = state.word(THREAD.GUEST_SP) - low + this.#target.pollResume;
    const pc = state.word(THREAD.TRAP_PC);
    if (region.word(at) === pc) region.setWord(at, pc + this.#target.pollBytes);
  }

  #count(change: number): number {
    const count = (USERS.get(this.#thread) ?? 0) + change;
    USERS.set(this.#thread, count);
    return count;
  }

  #protect(access: number): void {
    const { host, arena } = this.#thread;
    host.protect(arena.pollPage, host.pageSize, access);
  }
}
