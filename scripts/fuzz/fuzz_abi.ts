/**
 * Compares lifting and lowering of random types and values with the specification's definitions.py:
 * `deno task fuzz:abi [--count N] [--seed S]`. Out: the number of compared lists of values by layer, direction and
 * string encoding; fails at the first difference.
 */
import {
  compareLifting,
  compareLowering,
  HAS_ORACLE,
  LAYERS,
  WHY_NOT,
} from "../../tests/component/definitions_comparison.ts";
import { progress, readTaskLine } from "../task_options.ts";

/** Lists of values that one process of the oracle answers. */
const BATCH = 500;

const task = {
  name: "task fuzz:abi",
  about: "Compares lifting and lowering of random values with the specification's definitions.py.",
  options: {
    count: { value: "N", least: 1, help: "number of lists of values, for each layer and direction", default: "10000" },
    seed: { value: "S", least: 0, help: "first seed", default: "1" },
  },
} as const;
const { values: { count, seed: first } } = readTaskLine(task);
if (!HAS_ORACLE) throw new Error(`The oracle is missing: ${WHY_NOT}`);

for (const [name, layer] of LAYERS) {
  for (const [direction, compare] of [["lowering", compareLowering], ["lifting", compareLifting]] as const) {
    const sums = new Map<string, number>();
    for (let at = 0; at < count; at += BATCH) {
      progress(`${name}, ${direction}: ${at} of ${count}`);
      const found = await compare(layer, first + at, Math.min(BATCH, count - at));
      for (const [encoding, compared] of Object.entries(found)) {
        sums.set(encoding, (sums.get(encoding) ?? 0) + compared);
      }
    }
    progress("");
    for (const [encoding, compared] of sums) {
      console.log(`${String(compared).padStart(8)}  ${direction}, ${name}, ${encoding}`);
    }
  }
}
