/**
 * The backends by architecture. In: the name of one. Out: the backend, loaded on first use: most processes need that of
 * their own processor only.
 */
import type { Target } from "../codegen/target.ts";

/** The backend for an architecture. */
export async function backendFor(architecture: Target["name"]): Promise<Target> {
  return architecture === "arm64"
    ? (await import("../backend_arm64/target.ts")).ARM64
    : (await import("../backend_x64/target.ts")).X64;
}
