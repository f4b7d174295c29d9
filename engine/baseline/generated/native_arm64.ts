/**
 * The kernel as machine code for arm64. Packages have it here (scripts/package/build_native_kernel.ts); a checkout has
 * none.
 */
import type { NativeKernel } from "../native_code.ts";

export const NATIVE: NativeKernel | undefined = undefined;
