/**
 * Waits in the event loop. In: points on the monotonic clock, descriptors. Out: promises that a guest can cancel.
 * Invariant: no wait outlives the WASI that it belongs to.
 */
import { clearTimeout, setTimeout } from "node:timers";
import { cancellable } from "../../async/host_calls.ts";
import type { Preview1 } from "../preview1.ts";

const MAX_TIMER_MS = 0x7fff_ffff;
/** The delay between two looks at a descriptor. */
const DESCRIPTOR_MS = 5;

/** The waits of one guest. */
export class Timers {
  readonly #preview1: Preview1;
  readonly #stops = new Set<() => void>();

  constructor(preview1: Preview1) {
    this.#preview1 = preview1;
  }

  /** Waits until the monotonic clock shows `time`, in nanoseconds. Undefined if it does already. */
  until(time: bigint): Promise<void> | undefined {
    const left = () => Math.ceil(Number(time - this.#preview1.time(1)) / 1e6);
    return this.#wait(left);
  }

  /** Waits until a descriptor can be read, or written if `writes`. Undefined if it can be now. */
  ready(fd: number, writes: boolean): Promise<void> | undefined {
    return this.#wait(() => this.#preview1.isReady(fd, writes) ? 0 : DESCRIPTOR_MS);
  }

  /** Waits as long as `left` returns a number of milliseconds above 0. */
  #wait(left: () => number): Promise<void> | undefined {
    if (left() <= 0) return undefined;
    let stop = () => {};
    const promise = new Promise<void>((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout>;
      stop = () => {
        clearTimeout(timer);
        this.#stops.delete(stop);
      };
      this.#stops.add(stop);
      const step = () => {
        try {
          const delay = left();
          if (delay > 0) return void (timer = setTimeout(step, Math.min(delay, MAX_TIMER_MS)));
          stop();
          resolve();
        } catch (error) {
          stop();
          reject(error);
        }
      };
      step();
    });
    return cancellable(promise, () => stop());
  }

  /** Ends all waits; their promises are never settled. */
  close(): void {
    for (const stop of [...this.#stops]) stop();
  }
}
