/**
 * Forces the garbage collector of the current JavaScript runtime. Out: functions that collect all garbage.
 */
import v8 from "node:v8";
import vm from "node:vm";

/** Collects now. */
export function collectGarbage(): void {
  collect();
}

/** Collects until finalizers have run, some of which depend on others. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 8; round++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const collect = findCollector();

function findCollector(): () => void {
  const { Bun: bun } = globalThis as { Bun?: { gc(synchronous: boolean): void } };
  if (bun !== undefined) return () => bun.gc(true);
  v8.setFlagsFromString("--expose-gc");
  return vm.runInNewContext("gc") as () => void;
}
