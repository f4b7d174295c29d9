/**
 * The compiler as machine code for arm64. Packages have it here (scripts/package/build_native_compiler.ts); a checkout has
 * none.
 */
import type { NativeCompilerCode } from "../native_code.ts";

export const NATIVE_COMPILER: NativeCompilerCode | undefined = undefined;
