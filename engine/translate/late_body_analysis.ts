/**
 * The analyses of bodies in TypeScript (body_analysis.ts). Native threads compile most modules without them: the
 * compiler as machine code scans bodies as well.
 */
import { LateModule, SUFFIX } from "../host/late_module.ts";

/** The analyses, loaded on first use. */
export const BODY_ANALYSIS: LateModule<typeof import("./body_analysis.ts")> = new LateModule(
  new URL(`./body_analysis.${SUFFIX}`, import.meta.url),
  () => import("./body_analysis.ts"),
);
