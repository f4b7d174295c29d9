/**
 * The files of the engine that contain machine code in packages, and none in a checkout. Out: their places, and the
 * scripts that make them: each writes some of them to the folder `--out`, modules as JavaScript.
 */

/** The scripts, as paths in the tree. */
export const NATIVE_SCRIPTS = [
  "scripts/package/build_native_kernel.ts",
  "scripts/package/build_native_compiler.ts",
] as const;

/** A file: its folder below engine/, and its name; for modules without suffix. */
interface NativeFile {
  readonly folder: string;
  readonly name: string;
}

/** The modules. */
export const NATIVE_MODULES: readonly NativeFile[] = [
  { folder: "baseline/generated", name: "kernel_presence" },
  { folder: "baseline/generated", name: "native_x64" },
  { folder: "baseline/generated", name: "native_arm64" },
  { folder: "portable/generated", name: "native_presence" },
  { folder: "portable/generated", name: "native_compiler_x64" },
  { folder: "portable/generated", name: "native_compiler_arm64" },
];

/** The files that synchronous code reads: images, and what the modules contain. */
export const NATIVE_FILES: readonly NativeFile[] = [
  { folder: "baseline/generated", name: "native_x64.json" },
  { folder: "baseline/generated", name: "native_arm64.json" },
  { folder: "portable/generated", name: "native_compiler_x64.json" },
  { folder: "portable/generated", name: "native_compiler_arm64.json" },
  { folder: "portable/generated", name: "compiler_image_x64.bin" },
  { folder: "portable/generated", name: "compiler_image_arm64.bin" },
];

/** The images as modules, for the programs of users, in whose bundles they have no files. */
export const PACKED_MODULES: readonly NativeFile[] = [
  { folder: "portable/generated", name: "packed_compiler_x64" },
  { folder: "portable/generated", name: "packed_compiler_arm64" },
];
