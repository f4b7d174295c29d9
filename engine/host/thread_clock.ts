/**
 * The processor time of a thread. In: the host. Out: a clock that advances only while the calling thread runs on a
 * processor (CLOCK_THREAD_CPUTIME_ID): not while it waits, and not while the system runs other threads in its place.
 * Invariant: differences of its times never exceed those of performance.now().
 */
import { fileCalls } from "./calls/file_calls.ts";
import { type Host, PROT } from "./host.ts";

/** CLOCK_THREAD_CPUTIME_ID of <time.h>. */
const THREAD_PROCESSOR_TIME = 3;

/** Returns a function that reads the processor time of the calling thread in milliseconds. */
export function threadClock(host: Host): () => number {
  const calls = fileCalls(host);
  const time = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
  const [seconds, nanoseconds] = [0, 1];
  const timespec = new BigInt64Array(host.view(time, host.pageSize));
  return () => {
    const status = calls("clock_gettime", THREAD_PROCESSOR_TIME, time);
    if (status !== 0) throw new Error(`Cannot read the processor time of this thread: error ${-status}`);
    return Number(timespec[seconds]) * 1e3 + Number(timespec[nanoseconds]) / 1e6;
  };
}
