/**
 * Probes the process for unused address space, which limits such as `ulimit -v` make scarce. JavaScript runtimes
 * end the whole process when a thread or a heap of theirs gets none, so the engine probes before they reserve
 * gigabytes. In: a size. Out: yes or no at this moment; nothing stays reserved.
 */
import { type Host, PROT } from "../host.ts";

/** Whether a range of `bytes` can be reserved now. */
export function hasAddressSpace(host: Host, bytes: number): boolean {
  try {
    host.release(host.reserve(bytes, PROT.NONE), bytes);
    return true;
  } catch {
    return false;
  }
}
