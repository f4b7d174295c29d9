/**
 * The garbage collector of the JavaScript runtime that runs the tests, on demand. Out: a function that collects everything it can.
 */
import v8 from "node:v8";
import vm from "node:vm";

/** Collects now. */
export function collectGarbage(): void {
  collect();
}

const collect = findCollector();

function findCollector(): () => void {
  const { Bun: bun } = globalThis as { Bun?: { gc(synchronous: boolean): void } };
  if (bun !== undefined) return () => bun.gc(true);
  v8.setFlagsFromString("--expose-gc");
  return vm.runInNewContext("gc") as () => void;
}
