/**
 * The builtins of continuations (continuations.ts), which are loaded when compiled code first parks for one.
 */
import { LateModule, SUFFIX } from "../../host/late_module.ts";

export const CONTINUATIONS: LateModule<typeof import("./continuations.ts")> = new LateModule(
  new URL(`./continuations.${SUFFIX}`, import.meta.url),
  () => import("./continuations.ts"),
);
await CONTINUATIONS.prepare();
