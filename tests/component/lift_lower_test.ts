/** Random types and values through lifting and lowering, beside the specification's definitions.py. */
import { compareLifting, compareLowering, HAS_ORACLE, LAYERS, WHY_NOT } from "./definitions_comparison.ts";

const COUNT = 300;

for (const [name, layer] of LAYERS) {
  Deno.test({
    name: `${name} lowers the values that definitions.py lifts${HAS_ORACLE ? "" : ` (${WHY_NOT})`}`,
    ignore: !HAS_ORACLE,
    fn: async () => void await compareLowering(layer, 0, COUNT),
  });

  Deno.test({
    name: `${name} lifts the values that definitions.py lowers${HAS_ORACLE ? "" : ` (${WHY_NOT})`}`,
    ignore: !HAS_ORACLE,
    fn: async () => void await compareLifting(layer, 1_000_000, COUNT),
  });
}
