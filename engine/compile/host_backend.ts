/**
 * The backend of this processor, which is loaded at once; backends.ts has the others. Out: the backend. Its generator
 * of stubs is loaded on first use. Workers that compile load the backend of their job instead, since they listen to
 * messages before they wait for anything.
 */
import type { Target } from "../codegen/target.ts";
import { hostArchitecture } from "../host/cpu.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";

const X64 = new LateModule(
  new URL(`../backend_x64/stored_target.${SUFFIX}`, import.meta.url),
  () => import("../backend_x64/stored_target.ts"),
);
const X64_GENERATOR = new LateModule(
  new URL(`./stub_generator_x64.${SUFFIX}`, import.meta.url),
  () => import("./stub_generator_x64.ts"),
);
const ARM64 = new LateModule(
  new URL(`../backend_arm64/stored_target.${SUFFIX}`, import.meta.url),
  () => import("../backend_arm64/stored_target.ts"),
);
const ARM64_GENERATOR = new LateModule(
  new URL(`./stub_generator_arm64.${SUFFIX}`, import.meta.url),
  () => import("./stub_generator_arm64.ts"),
);

await (hostArchitecture() === "arm64" ? ARM64 : X64).load();
await (hostArchitecture() === "arm64" ? ARM64_GENERATOR : X64_GENERATOR).prepare();

let backend: Target | undefined;

/** The backend for this processor. */
export function hostBackend(): Target {
  return backend ??= hostArchitecture() === "arm64"
    ? ARM64.get().storedARM64(() => ARM64_GENERATOR.get().GENERATOR)
    : X64.get().storedX64(() => X64_GENERATOR.get().GENERATOR);
}
