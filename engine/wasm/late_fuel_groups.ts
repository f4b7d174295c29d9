/**
 * Prices of instructions that an embedder sets (fuel_groups.ts), which are loaded with the table of opcodes when an
 * engine has any.
 */
import { LateModule, SUFFIX } from "../host/late_module.ts";

const GROUPS: LateModule<typeof import("./fuel_groups.ts")> = new LateModule(
  new URL(`./fuel_groups.${SUFFIX}`, import.meta.url),
  () => import("./fuel_groups.ts"),
);

/** Must be called before {@linkcode pricesOf} where modules cannot be loaded synchronously. */
export async function prepareFuelGroups(): Promise<void> {
  await GROUPS.prepare();
}

/** The prices of `text` (fuel_groups.ts); empty without any. Throws TypeError for unknown names. */
export function pricesOf(text: string): Uint8Array {
  return text === "" ? new Uint8Array(0) : GROUPS.get().pricesOf(text);
}
