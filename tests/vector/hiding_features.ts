/**
 * Compiles for a lesser processor than this one, so that code for those is tested, too.
 */
import { cpuFeatures } from "../../engine/host/cpu.ts";
import { currentHost } from "../../engine/host/current.ts";

/** Runs `action` with some of the processor's features hidden from the compiler. */
export function hidingFeatures(names: readonly string[], action: () => void): void {
  // The set is the one that every compilation in this process reads.
  const features = cpuFeatures(currentHost()) as Set<string>;
  const hidden = names.filter((name) => features.delete(name));
  try {
    action();
  } finally {
    for (const name of hidden) features.add(name);
  }
}
