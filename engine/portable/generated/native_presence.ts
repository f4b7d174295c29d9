/** Whether there is the compiler as machine code: in packages (scripts/package/build_native_compiler.ts). */
export const HAS_NATIVE_COMPILER: boolean = false;
