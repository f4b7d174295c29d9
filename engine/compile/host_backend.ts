/**
 * The backend of this processor, which is loaded at once; backends.ts has the others. Out: the backend. Workers that
 * compile load the backend of their job instead, since they listen to messages before they wait for anything.
 */
import type { Target } from "../codegen/target.ts";
import { hostArchitecture } from "../host/cpu.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";

const X64 = new LateModule(
  new URL(`../backend_x64/target.${SUFFIX}`, import.meta.url),
  () => import("../backend_x64/target.ts"),
);
const ARM64 = new LateModule(
  new URL(`../backend_arm64/target.${SUFFIX}`, import.meta.url),
  () => import("../backend_arm64/target.ts"),
);

await (hostArchitecture() === "arm64" ? ARM64 : X64).load();

/** The backend for this processor. */
export function hostBackend(): Target {
  return hostArchitecture() === "arm64" ? ARM64.get().ARM64 : X64.get().X64;
}
