/**
 * Clocks: realtime, monotonic, and the processor times of process and thread.
 */
import { ERRNO } from "./abi.ts";
import type { WasiFunction, WasiState } from "./mod.ts";
import { checked, WasiError } from "./paths.ts";

/** Linux clock by WASI clock. */
const CLOCKS = [0, 1, 2, 3];

/** Reads WASI clock `id` by `call`: nanoseconds. */
export function readClock({ sys, scratch }: WasiState, id: number, call: "clock_gettime" | "clock_getres"): bigint {
  const clock = CLOCKS[id];
  if (clock === undefined) throw new WasiError(ERRNO.inval);
  checked(sys(call, clock, scratch.out.address));
  return scratch.out.i64[0]! * 1_000_000_000n + scratch.out.i64[1]!;
}

export function clockFunctions(state: WasiState): Record<string, WasiFunction> {
  const { memory } = state;
  return {
    clock_res_get: (id: number, at: number) => {
      memory.setU64(at >>> 0, readClock(state, id, "clock_getres"));
      return 0;
    },
    clock_time_get: (id: number, _precision: bigint, at: number) => {
      memory.setU64(at >>> 0, readClock(state, id, "clock_gettime"));
      return 0;
    },
    sched_yield: () => {
      state.sys("sched_yield");
      return 0;
    },
  };
}
