/**
 * The compiler as machine code for this processor, loaded when native threads are to compile for the first time. Out:
 * its code; none in a checkout. The image of the code is a file beside the engine's modules, and in npm packages also a
 * compressed text in a module, for programs in whose bundle it has no file.
 */
import { fromBase64 } from "../base/base64.ts";
import { hostArchitecture } from "../host/cpu.ts";
import { filePath, isReadableFile, readFile } from "../host/files.ts";
import { LateData } from "../host/late_data.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";
import { nodeModule } from "../host/process.ts";
import { HAS_NATIVE_COMPILER } from "./generated/native_presence.ts";
import type { NativeCompiler, NativeCompilerCode } from "./native_code.ts";

type NativeModule = { readonly NATIVE_COMPILER: NativeCompilerCode | undefined };
type PackedModule = { readonly PACKED_COMPILER: string | undefined };

const CODE_MODULES: Readonly<Record<"x64" | "arm64", LateModule<NativeModule>>> = {
  x64: new LateModule(
    new URL(`./generated/native_compiler_x64.${SUFFIX}`, import.meta.url),
    () => import("./generated/native_compiler_x64.ts"),
  ),
  arm64: new LateModule(
    new URL(`./generated/native_compiler_arm64.${SUFFIX}`, import.meta.url),
    () => import("./generated/native_compiler_arm64.ts"),
  ),
};

const CODES: Readonly<Record<"x64" | "arm64", LateData<NativeCompilerCode | undefined>>> = {
  x64: new LateData(
    new URL("./generated/native_compiler_x64.json", import.meta.url),
    () => CODE_MODULES.x64.get().NATIVE_COMPILER,
  ),
  arm64: new LateData(
    new URL("./generated/native_compiler_arm64.json", import.meta.url),
    () => CODE_MODULES.arm64.get().NATIVE_COMPILER,
  ),
};

/** The images. */
const FILES: Readonly<Record<"x64" | "arm64", URL>> = {
  x64: new URL("./generated/compiler_image_x64.bin", import.meta.url),
  arm64: new URL("./generated/compiler_image_arm64.bin", import.meta.url),
};

/** The images again, compressed with Brotli, in base 64. */
const PACKED: Readonly<Record<"x64" | "arm64", LateModule<PackedModule>>> = {
  x64: new LateModule(
    new URL(`./generated/packed_compiler_x64.${SUFFIX}`, import.meta.url),
    () => import("./generated/packed_compiler_x64.ts"),
  ),
  arm64: new LateModule(
    new URL(`./generated/packed_compiler_arm64.${SUFFIX}`, import.meta.url),
    () => import("./generated/packed_compiler_arm64.ts"),
  ),
};

/** Must be called before {@linkcode nativeCompilerCode} where modules cannot be loaded synchronously. */
export async function prepareNativeCompiler(): Promise<void> {
  const arch = hostArchitecture();
  await CODE_MODULES[arch].prepare();
  if (HAS_NATIVE_COMPILER && !isReadableFile(FILES[arch])) await PACKED[arch].prepare();
}

/** The image, read in advance. */
let kept: Uint8Array | undefined;

/** Reads the image now, for a process that cannot open files later. */
export function keepNativeImage(): void {
  if (HAS_NATIVE_COMPILER) kept ??= imageFile();
}

/** The contents of the image's file; undefined if there is none that can be read. */
function imageFile(): Uint8Array | undefined {
  const file = FILES[hostArchitecture()];
  try {
    return isReadableFile(file) ? readFile(file) : undefined;
  } catch {
    return undefined;
  }
}

function packedImage(): Uint8Array | undefined {
  const text = PACKED[hostArchitecture()].get().PACKED_COMPILER;
  if (text === undefined) return undefined;
  return new Uint8Array(nodeModule("node:zlib").brotliDecompressSync(fromBase64(text)));
}

function* images(): Generator<Uint8Array> {
  for (const read of [() => kept ?? imageFile(), packedImage]) {
    const image = read();
    if (image !== undefined) yield image;
  }
}

/** The path of the image's file, which may not exist; undefined if it was read in advance. */
function imagePath(): string | undefined {
  const file = FILES[hostArchitecture()];
  return kept === undefined && file.protocol === "file:" ? filePath(file) : undefined;
}

/** Loads machine code that is used in place of that of packages. */
let given: (() => NativeCompiler) | undefined;

/** Uses other machine code from now on: tests and measurements of a checkout, which has none, build it. */
export function useNativeCompiler(load: () => NativeCompiler): void {
  given = load;
}

/** Whether {@linkcode nativeCompilerCode} returns code. Loads nothing. */
export function hasNativeCompiler(): boolean {
  return given !== undefined || HAS_NATIVE_COMPILER;
}

/** The machine code, loaded now. */
export function nativeCompilerCode(): NativeCompiler | undefined {
  if (given !== undefined) return given();
  const code = CODES[hostArchitecture()].get();
  return code && { ...code, images, file: imagePath() };
}
