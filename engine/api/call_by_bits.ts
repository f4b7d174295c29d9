/**
 * Calls of exported functions by the bits of their values, in which NaNs keep their payloads: JavaScript numbers do not
 * preserve them. For the command, whose values are text. In and out: an unsigned integer of up to 64 bits for each
 * value. Types without references and vectors only.
 */
import type { Instance } from "./module.ts";
import { callRaw } from "../runtime/instance/raw_call.ts";
import { checkContext, underControl } from "../runtime/suspension/call_limits.ts";
import type { Context } from "./settings.ts";

/** The number of 32-bit words of a cell of `callRaw`. */
const CELL_WORDS = 4;

/**
 * Calls the exported function `name` under the limits of `context`, and returns the bits of its results. Throws the
 * errors of `Instance.call`.
 */
export function callByBits(instance: Instance, context: Context, name: string, args: readonly bigint[]): bigint[] {
  checkContext(context);
  const { internal } = instance;
  const { index } = internal.module.exportNamed(name)!;
  const cells = new Uint32Array(CELL_WORDS * args.length);
  args.forEach((bits, k) => cells.set([Number(bits & 0xffffffffn), Number(bits >> 32n)], CELL_WORDS * k));
  const results = underControl(internal, context, () => callRaw(internal, index, cells));
  return Array.from(
    { length: results.length / CELL_WORDS },
    (_, k) => BigInt(results[CELL_WORDS * k + 1]) << 32n | BigInt(results[CELL_WORDS * k]),
  );
}
