/** The peak of the memory of this process. */
import { readFileSync } from "node:fs";

/** Bytes. `maxRSS` of the process would be that of its parent, if that is more. */
export function peakMemory(): number {
  return Number(/VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0) * 1024;
}
