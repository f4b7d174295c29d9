/**
 * The backends by architecture. In: the name of one, or this process. Out: the backend. Importing both costs less than
 * loading one late, because they exclude selection and emission (optimizing_target.ts).
 */
import { ARM64 } from "../backend_arm64/target.ts";
import { X64 } from "../backend_x64/target.ts";
import type { Target } from "../codegen/target.ts";
import { hostArchitecture } from "../host/cpu.ts";

const BACKENDS: Readonly<Record<Target["name"], Target>> = { x64: X64, arm64: ARM64 };

/** The backend for an architecture. */
export function backendFor(architecture: Target["name"]): Target {
  return BACKENDS[architecture];
}

/** The backend for this processor. */
export function hostBackend(): Target {
  return BACKENDS[hostArchitecture()];
}
