/**
 * The compiler as machine code for this processor, loaded when native threads are to compile for the first time. Out:
 * its code; none in a checkout.
 */
import { hostArchitecture } from "../host/cpu.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";
import { HAS_NATIVE_COMPILER } from "./generated/native_presence.ts";
import type { NativeCompilerCode } from "./native_code.ts";

type NativeModule = { readonly NATIVE_COMPILER: NativeCompilerCode | undefined };

const CODES: Readonly<Record<"x64" | "arm64", LateModule<NativeModule>>> = {
  x64: new LateModule(
    new URL(`./generated/native_compiler_x64.${SUFFIX}`, import.meta.url),
    () => import("./generated/native_compiler_x64.ts"),
  ),
  arm64: new LateModule(
    new URL(`./generated/native_compiler_arm64.${SUFFIX}`, import.meta.url),
    () => import("./generated/native_compiler_arm64.ts"),
  ),
};

/** Must be called before {@linkcode nativeCompilerCode} where modules cannot be loaded synchronously. */
export async function prepareNativeCompiler(): Promise<void> {
  await CODES[hostArchitecture()].prepare();
}

/** Loads machine code that is used in place of that of packages. */
let given: (() => NativeCompilerCode) | undefined;

/** Uses other machine code from now on: tests and measurements of a checkout, which has none, build it. */
export function useNativeCompiler(load: () => NativeCompilerCode): void {
  given = load;
}

/** Whether {@linkcode nativeCompilerCode} returns code. Loads nothing. */
export function hasNativeCompiler(): boolean {
  return given !== undefined || HAS_NATIVE_COMPILER;
}

/** The machine code, loaded now. */
export function nativeCompilerCode(): NativeCompilerCode | undefined {
  return given === undefined ? CODES[hostArchitecture()].get().NATIVE_COMPILER : given();
}
