/**
 * The modules of the engine that contain machine code in packages, and none in a checkout. Out: their places, and the
 * scripts that make them: each writes NAME.js for some of them to the folder `--out`.
 */

/** The scripts, as paths in the tree. */
export const NATIVE_SCRIPTS = [
  "scripts/package/build_native_kernel.ts",
  "scripts/package/build_native_compiler.ts",
] as const;

/** The modules: their folder below engine/, and their name. */
export const NATIVE_MODULES: readonly { readonly folder: string; readonly name: string }[] = [
  { folder: "baseline/generated", name: "native_x64" },
  { folder: "baseline/generated", name: "native_arm64" },
  { folder: "portable/generated", name: "native_presence" },
  { folder: "portable/generated", name: "native_compiler_x64" },
  { folder: "portable/generated", name: "native_compiler_arm64" },
];
