/**
 * Compiles the kernels of the baseline tier to machine code, for packages:
 * `deno run -A scripts/package/build_native_kernel.ts --out DIR`. In: the kernels as WebAssembly
 * (engine/baseline/generated/) and the optimizing compiler of the same tree. Out: in DIR, `kernel_presence.js`, and for
 * each processor ARCH `native_ARCH.json` and a module with the same contents, `native_ARCH.js`; the modules replace
 * those of that name. Invariant: the same tree gives the same bytes.
 */
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { Buffer } from "node:buffer";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { COLLECTOR_OPTIONS } from "../../engine/artifact/find_module.ts";
import { ARM64 } from "../../engine/backend_arm64/target.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { KERNEL as KERNEL_ARM64 } from "../../engine/baseline/generated/kernel_arm64.ts";
import { KERNEL as KERNEL_X64 } from "../../engine/baseline/generated/kernel_x64.ts";
import type { NativeKernel } from "../../engine/baseline/native_code.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { compileModule, prepareBodyCompiler } from "../../engine/compile/compile.ts";
import { GLOBAL_SIZE } from "../../engine/abi/context_layout.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { readTaskLine } from "../task_options.ts";

/** The architectures for which there is a kernel. */
export const NATIVE_TARGETS = ["x64", "arm64"] as const;

const SOURCES = { x64: [X64, KERNEL_X64], arm64: [ARM64, KERNEL_ARM64] } as const;

/** The value of an initializer that is one `i32.const`. */
export function i32Constant(init: Uint8Array): number {
  const I32_CONST = 0x41;
  const END = 0x0b;
  if (init[0] !== I32_CONST || init.at(-1) !== END) throw new Error("the kernel has a global that is not an i32.const");
  let value = 0;
  let shift = 0;
  for (const byte of init.subarray(1, -1)) {
    value |= (byte & 0x7f) << shift;
    shift += 7;
    if (byte < 0x80) return shift < 32 && (byte & 0x40) !== 0 ? value | (-1 << shift) : value;
  }
  throw new Error("the kernel has a global with a damaged initializer");
}

/** Throws an Error if the kernel needs anything that its loader (engine/tiers/native_kernel.ts) does not provide. */
function requireSimple({ imports, tables, datas, elems, memories }: Module): void {
  const unexpected = imports.filter(({ desc }) => desc.kind !== "memory").length + tables.length + datas.length +
    elems.length + memories.length;
  if (unexpected > 0) throw new Error("the kernel has tables, segments, or imports other than its memory");
}

/** The kernel's machine code for `arch`, for every processor of that architecture. */
export async function nativeKernel(arch: typeof NATIVE_TARGETS[number]): Promise<NativeKernel> {
  await prepareBodyCompiler(arch);
  const [target, source] = SOURCES[arch];
  const module = decodeModule(fromBase64(source));
  requireSimple(module);
  const { features, optimizations } = COLLECTOR_OPTIONS;
  const { bytes, tables, layout, signatureIds, valid } = compileModule(module, {
    target,
    features,
    optimizations,
    settings: codeSettings(),
    cpu: new Set(),
  });
  const placed = (index: number | undefined) => {
    if (index === undefined) throw new Error("the kernel lacks a function that its loader needs");
    return { start: tables.functionStart[index], thunk: tables.entryThunk[signatureIds[index]] };
  };
  const exported = (name: string) => placed(valid.exports.find((entry) => entry.name === name)?.index);
  return {
    code: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64"),
    codeBytes: bytes.length,
    contextBytes: layout.size,
    memory: layout.memoriesOffset,
    globals: module.globals.flatMap(({ init }, k) => [layout.globalsOffset + k * GLOBAL_SIZE, i32Constant(init.bytes)]),
    start: placed(module.start),
    compileBodies: exported("compileBodies"),
    writeBodies: exported("writeBodies"),
    validateBodies: exported("validateBodies"),
    compileLazily: exported("compileLazily"),
    compileNext: exported("compileNext"),
    placeBodies: exported("placeBodies"),
    linkBodies: exported("linkBodies"),
    callsEnd: exported("callsEnd"),
    trapsEnd: exported("trapsEnd"),
    relocationsEnd: exported("relocationsEnd"),
  };
}

/** The files with the machine code for `arch`, by name. */
async function nativeFiles(arch: typeof NATIVE_TARGETS[number]): Promise<[string, string][]> {
  const json = JSON.stringify(await nativeKernel(arch));
  const module = `/** The kernel as machine code for ${arch}. Made by scripts/package/build_native_kernel.ts. */
const NATIVE = ${json};
export { NATIVE };
`;
  return [[`native_${arch}.json`, json], [`native_${arch}.js`, module]];
}

if (import.meta.main) {
  const { values: { out } } = readTaskLine({
    name: "run -A scripts/package/build_native_kernel.ts",
    about: "Compiles the kernels of the baseline tier to machine code, for packages.",
    options: { out: { value: "DIR", help: "output folder", default: "." } },
  });
  for (const arch of NATIVE_TARGETS) {
    for (const [name, contents] of await nativeFiles(arch)) writeFileSync(join(out, name), contents);
  }
  writeFileSync(join(out, "kernel_presence.js"), "export const HAS_NATIVE_KERNEL = true;\n");
}
