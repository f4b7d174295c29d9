/**
 * The image in compiler_image_arm64.bin, compressed, for programs in whose bundle it has no file. npm packages have it
 * here (scripts/package/build_native_compiler.ts).
 */
export const PACKED_COMPILER: string | undefined = undefined;
