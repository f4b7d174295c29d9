/**
 * Compiles the optimizing compiler to machine code, for packages:
 * `deno run -A scripts/package/build_native_compiler.ts --out DIR`. In: the compiler as WebAssembly
 * (engine/portable/generated/) and the optimizing compiler of the same tree. Out: `native_presence.js`, and for each
 * processor ARCH `native_compiler_ARCH.json`, the same as a module, its image `compiler_image_ARCH.bin`, and that
 * compressed as a module, `packed_compiler_ARCH.js`, in DIR; native_modules.ts has their places.
 * Invariants: the same tree gives the same bytes; the verifier of machine code has proven each function.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { GLOBAL_SIZE, RECORD } from "../../engine/abi/context_layout.ts";
import { checksum } from "../../engine/artifact/checksum.ts";
import { COLLECTOR_OPTIONS } from "../../engine/artifact/find_module.ts";
import { ARM64 } from "../../engine/backend_arm64/target.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { compileModule, prepareBodyCompiler, stubContext } from "../../engine/compile/compile.ts";
import { unprovenError, verifyCompiled } from "../../engine/compile/verify_module.ts";
import type { NativeCompiler } from "../../engine/portable/native_code.ts";
import { compilerBytes } from "../../engine/portable/portable_form.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import type { Expr, Module } from "../../engine/wasm/module.ts";
import { readTaskLine } from "../task_options.ts";
import { i32Constant, NATIVE_TARGETS } from "./build_native_kernel.ts";

const TARGETS = { x64: X64, arm64: ARM64 } as const;

/** Throws an Error if the module needs anything that its loader (engine/tiers/native_compiler.ts) does not provide. */
function requireSimple({ imports, tables, memories, globals, tags }: Module): void {
  const isSimple = imports.every(({ desc }) => desc.kind === "func") && tables.length === 1 && memories.length === 1 &&
    globals.every(({ init }) => init.bytes.length > 0) && tags.length === 0;
  if (!isSimple) throw new Error("the compiler has imports other than functions, or not one table and one memory");
}

/** The initial contents of the memory. */
function initialData({ datas }: Module): Uint8Array {
  const pieces = datas.map(({ bytes, mode }) => {
    if (mode.kind !== "active") throw new Error("the compiler has a passive data segment");
    return { at: i32Constant(mode.start.bytes), bytes };
  });
  const data = new Uint8Array(pieces.reduce((end, { at, bytes }) => Math.max(end, at + bytes.length), 0));
  for (const { at, bytes } of pieces) data.set(bytes, at);
  return data;
}

/** The function index of each element of the table; −1 for null. */
function initialElements({ tables, elems }: Module): number[] {
  const elements: number[] = Array(Number(tables[0].type.limits.min)).fill(-1);
  for (const { init, mode } of elems) {
    if (mode.kind !== "active" || init.kind !== "funcs") {
      throw new Error("the compiler has an unexpected element segment");
    }
    const start = i32Constant((mode.start as Expr).bytes);
    for (const [k, index] of [...init.indices].entries()) elements[start + k] = index;
  }
  return elements;
}

function alignedUp(bytes: number): number {
  return Math.ceil(bytes / 16) * 16;
}

/** Code and data as the loader reads them (NativeCompilerCode). */
function imageOf(code: Uint8Array, data: Uint8Array): Uint8Array {
  const dataAt = alignedUp(code.length);
  const image = new Uint8Array(alignedUp(dataAt + data.length));
  image.set(code);
  image.set(data, dataAt);
  return image;
}

/**
 * The compiler's machine code for `arch`, for every processor of that architecture. Throws UnprovenCodeError if the
 * verifier does not prove it.
 */
export async function nativeCompiler(arch: typeof NATIVE_TARGETS[number]): Promise<NativeCompiler> {
  await prepareBodyCompiler(arch);
  const module = decodeModule(compilerBytes());
  requireSimple(module);
  const { features, optimizations } = COLLECTOR_OPTIONS;
  const options = { target: TARGETS[arch], features, optimizations, settings: codeSettings(), cpu: new Set<never>() };
  const code = compileModule(module, options);
  const { bytes, tables, layout, signatureIds, valid } = code;
  const unproven = verifyCompiled(code, options, stubContext(valid, options));
  if (unproven.length > 0) throw unprovenError(code, unproven);
  const imported = valid.importedFuncCount;
  const placed = (index: number | undefined) => {
    if (index === undefined) throw new Error("the compiler lacks a function that its loader needs");
    return { start: tables.functionStart[index - imported], thunk: tables.entryThunk[signatureIds[index]] };
  };
  const recordAt = (index: number) => layout.functionsOffset + (index - imported) * RECORD.SIZE;
  const elements = initialElements(module);
  const inTable = [...new Set(elements)].filter((index) => index >= imported);
  const data = initialData(module);
  const image = imageOf(bytes, data);
  const sum = new Int32Array(4);
  checksum(image, sum);
  const typeIds = [...valid.canonicalIds];
  return {
    images: () => [image],
    imageBytes: image.length,
    checksum: [...sum],
    codeBytes: alignedUp(bytes.length),
    dataBytes: data.length,
    contextBytes: layout.size,
    memory: layout.memoriesOffset,
    globals: module.globals.flatMap(({ init }, k) => [layout.globalsOffset + k * GLOBAL_SIZE, i32Constant(init.bytes)]),
    typeIdsAt: layout.typeIdsOffset,
    typeIds,
    table: layout.tablesOffset,
    elements: elements.map((index) => index < 0 ? 0 : recordAt(index)),
    records: inTable.flatMap((index) => [
      recordAt(index),
      tables.functionStart[index - imported],
      typeIds[valid.funcTypeIndices[index]],
    ]),
    start: placed(module.start),
    exports: Object.fromEntries(
      valid.exports.filter(({ kind }) => kind === "func").map(({ name, index }) => [name, placed(index)]),
    ),
  };
}

/** The files with the machine code for `arch`, by name. */
async function nativeFiles(arch: typeof NATIVE_TARGETS[number]): Promise<[string, string | Uint8Array][]> {
  const { images, ...description } = await nativeCompiler(arch);
  const [image] = images();
  const packed = brotliCompressSync(image, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: image.length } });
  const json = JSON.stringify(description);
  const module = (text: string) =>
    `/** The compiler as machine code for ${arch}. Made by scripts/package/build_native_compiler.ts. */\n${text}\n`;
  return [
    [`native_compiler_${arch}.json`, json],
    [`native_compiler_${arch}.js`, module(`const NATIVE_COMPILER = ${json};\nexport { NATIVE_COMPILER };`)],
    [`compiler_image_${arch}.bin`, image],
    [`packed_compiler_${arch}.js`, module(`export const PACKED_COMPILER = "${packed.toString("base64")}";`)],
  ];
}

if (import.meta.main) {
  const { values: { out } } = readTaskLine({
    name: "run -A scripts/package/build_native_compiler.ts",
    about: "Compiles the optimizing compiler to machine code, for packages.",
    options: { out: { value: "DIR", help: "output folder", default: "." } },
  });
  for (const arch of NATIVE_TARGETS) {
    for (const [name, contents] of await nativeFiles(arch)) writeFileSync(join(out, name), contents);
  }
  writeFileSync(join(out, "native_presence.js"), "export const HAS_NATIVE_COMPILER = true;\n");
}
