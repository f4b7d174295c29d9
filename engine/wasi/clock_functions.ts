/**
 * WASI clocks: realtime, monotonic, and the CPU times of process and thread. In: a clock id. Out: nanoseconds, written
 * to the guest's memory.
 */
import { ERRNO } from "./abi.ts";
import type { WasiState } from "./functions.ts";
import { checked, WasiError } from "./wasi_error.ts";

/** Linux clock by WASI clock. */
const CLOCKS = [0, 1, 2, 3];

/** Reads WASI clock `id` by `call`: nanoseconds. */
export function readClock(
  { sys, scratch }: Pick<WasiState, "sys" | "scratch">,
  id: number,
  call: "clock_gettime" | "clock_getres",
): bigint {
  const clock = CLOCKS[id];
  if (clock === undefined) throw new WasiError(ERRNO.inval);
  checked(sys(call, clock, scratch.out.address));
  return scratch.out.i64[0] * 1_000_000_000n + scratch.out.i64[1];
}

/** The functions clock_* and sched_yield. */
export class ClockFunctions {
  readonly #state: WasiState;

  constructor(state: WasiState) {
    this.#state = state;
  }

  clock_res_get(id: number, at: number): number {
    this.#state.memory.setU64(at >>> 0, readClock(this.#state, id, "clock_getres"));
    return 0;
  }

  clock_time_get(id: number, _precision: bigint, at: number): number {
    this.#state.memory.setU64(at >>> 0, readClock(this.#state, id, "clock_gettime"));
    return 0;
  }

  sched_yield(): number {
    this.#state.sys("sched_yield");
    return 0;
  }
}
