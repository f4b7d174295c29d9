/**
 * Compiles for a less capable processor than the current one, to test its code as well.
 */
import { cpuFeatures } from "../../engine/host/cpu.ts";
import { currentHost } from "../../engine/host/current.ts";

/** Runs `action` with some of the processor's features hidden from the compiler. */
export function hidingFeatures(names: readonly string[], action: () => void): void {
  // Every compilation in this process reads this set.
  const features = cpuFeatures(currentHost()) as Set<string>;
  const hidden = names.filter((name) => features.delete(name));
  try {
    action();
  } finally {
    for (const name of hidden) features.add(name);
  }
}
