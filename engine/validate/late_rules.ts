/**
 * The rules of instructions, which are loaded when the first body or unusual constant expression is validated: the
 * baseline tier validates bodies by itself.
 */
import { LateModule, SUFFIX } from "../host/late_module.ts";

/** The rules of bodies. */
export const BODY_RULES: LateModule<typeof import("./code.ts")> = new LateModule(
  new URL(`./code.${SUFFIX}`, import.meta.url),
  () => import("./code.ts"),
);

/** The rules of constant expressions. */
export const CONSTANT_RULES: LateModule<typeof import("./constant_rules.ts")> = new LateModule(
  new URL(`./constant_rules.${SUFFIX}`, import.meta.url),
  () => import("./constant_rules.ts"),
);

/** The rules of types with descriptors. */
export const CLAUSE_RULES: LateModule<typeof import("./clauses.ts")> = new LateModule(
  new URL(`./clauses.${SUFFIX}`, import.meta.url),
  () => import("./clauses.ts"),
);

/** Must be called before modules are validated where modules cannot be loaded synchronously. */
export async function prepareRules(): Promise<void> {
  await BODY_RULES.prepare();
  await CONSTANT_RULES.prepare();
  await CLAUSE_RULES.prepare();
}
