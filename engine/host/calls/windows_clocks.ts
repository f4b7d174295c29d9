/**
 * Clocks of Linux on Windows. In: Linux's numbers of clocks (clock_gettime(2)). Out: times and resolutions as timespec.
 */
import { E } from "./linux_errors.ts";
import { AT_WORDS, EPOCH, TICKS_PER_SECOND, type WindowsSystem } from "./windows_system.ts";

const THIS_PROCESS = -1n;
const THIS_THREAD = -2n;
/** Processor times advance with the scheduler's clock. */
const PROCESSOR_TIME_RESOLUTION = 15_625_000n;

export class Clocks {
  readonly #system: WindowsSystem;

  constructor(system: WindowsSystem) {
    this.#system = system;
  }

  /** The time of a clock in 100 ns units; undefined for an unknown clock. */
  ticks(clock: number): bigint | undefined {
    const { call, scratch } = this.#system;
    const at = (k: number) => scratch + AT_WORDS + 8 * k;
    const word = (k: number) => this.#system.structures.getBigInt64(AT_WORDS + 8 * k, true);
    if (clock === 0) {
      call("GetSystemTimePreciseAsFileTime", at(0));
      return word(0) - EPOCH;
    }
    if (clock === 1) {
      call("QueryUnbiasedInterruptTimePrecise", at(0));
      return word(0);
    }
    if (clock === 2) call("GetProcessTimes", THIS_PROCESS, at(0), at(1), at(2), at(3));
    else if (clock === 3) call("GetThreadTimes", THIS_THREAD, at(0), at(1), at(2), at(3));
    else return undefined;
    return word(2) + word(3);
  }

  time(clock: number, at: number): number {
    const ticks = this.ticks(clock);
    if (ticks === undefined) return E.INVAL;
    const to = this.#system.view(at, 16);
    to.setBigInt64(0, ticks / TICKS_PER_SECOND, true);
    to.setBigInt64(8, ticks % TICKS_PER_SECOND * 100n, true);
    return 0;
  }

  resolution(clock: number, at: number): number {
    if (clock < 0 || clock > 3) return E.INVAL;
    const to = this.#system.view(at, 16);
    to.setBigInt64(0, 0n, true);
    to.setBigInt64(8, clock < 2 ? 100n : PROCESSOR_TIME_RESOLUTION, true);
    return 0;
  }

  sleep(ticks: bigint): void {
    this.#system.structures.setBigInt64(AT_WORDS, -ticks, true); // negative: from now on
    this.#system.call("NtDelayExecution", 0, this.#system.scratch + AT_WORDS);
  }
}
