/**
 * The parts of the compiler in the subset as one WebAssembly module: `deno task build:compiler [--check]`. In: the
 * files of the subset. Out: the module, compressed and as text that every bundler accepts, in
 * engine/portable/generated/. With `--check` nothing is written, and status 1 reports an outdated file. A copy of the
 * module below .cache/ serves until the rewritten texts change.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import { runGenerator } from "../generated_files.ts";
import { ARENA } from "./arena.ts";
import { compileSubset, ENTRIES, rewriteSubset, type Subset } from "./compile_subset.ts";
import { COUNTERPARTS } from "./counterparts.ts";
import { HOST_ONLY, PORTABLE } from "./portable_files.ts";

const CACHE = fileURLToPath(new URL("../../../.cache/portable/", import.meta.url));
/** Changes with the options of the compilation. */
const VERSION = "1";
/**
 * What the module exports: `reset` drops the workspaces, and with them all memory but that of the constants;
 * `limitMemory(bytes)` sets the limit of the memory, constants included; `usedBytes()` is its used part; `failed(n)`
 * says after a trap why a function cannot be compiled: the failure (translate/failures.ts), its subject, its offset.
 */
const ENTRY = `
import { renewAllocator } from "./allocator_entry";
import { renewBackend } from "./backend_entry";
import { currentFunction, renewOptimizer } from "./optimizer_entry";
import { failure, failureAt, failureSubject, forgetFailure } from "./translate/failures";
import { renewTranslator } from "./translator_entry";
export * from "./allocator_entry";
export * from "./backend_entry";
export * from "./optimizer_entry";
export * from "./translator_entry";

export function limitMemory(bytes: usize): void {
  __setArenaLimit(bytes);
}

export function usedBytes(): usize {
  return __arenaEnd();
}

export function failed(n: i32): i32 {
  if (__isArenaFull()) return n == 0 ? 4 : n == 1 ? currentFunction().funcIndex : 0;
  return n == 0 ? failure : n == 1 ? failureSubject : failureAt;
}

export function reset(): void {
  __reset();
  forgetFailure();
  renewOptimizer();
  renewTranslator();
  renewAllocator();
  renewBackend();
}
`;

/** The files of the subset, rewritten. */
export function portableSubset(): Promise<Subset> {
  return rewriteSubset(PORTABLE, HOST_ONLY);
}

/** The module of `subset`, which {@linkcode portableSubset} made; `isChecked` as for compileSubset. */
export async function buildCompiler(subset: Subset, isChecked = false): Promise<Uint8Array<ArrayBuffer>> {
  const inputs = [VERSION, isChecked, ENTRY, ENTRIES, ARENA, COUNTERPARTS, [...subset.texts], subset.problems];
  const digest = createHash("sha256").update(JSON.stringify(inputs)).digest("hex");
  const file = `${CACHE}${digest}.wasm`;
  if (existsSync(file)) return new Uint8Array(readFileSync(file));
  const module = await compileSubset(subset, ENTRY, isChecked);
  mkdirSync(CACHE, { recursive: true });
  // A rename, so that processes that build at once never read half a file.
  const partial = `${file}.${process.pid}`;
  writeFileSync(partial, module);
  renameSync(partial, file);
  return module;
}

export const FOLDER = new URL("../../../engine/portable/", import.meta.url);
const FILE = "generated/compiler.ts";
const HEAD =
  `/** The optimizing compiler (scripts/generate/portable/) as WebAssembly, compressed with Brotli, in base 64. Generated
 * by \`deno task build:compiler\`. */
export const COMPILER: string =
  "`;
const TAIL = '";\n';

/** The generated file, by path below engine/portable/. A file with the same module stays as it is. */
export async function generatedFiles(): Promise<Map<string, string>> {
  const module = await buildCompiler(await portableSubset());
  const old = existsSync(new URL(FILE, FOLDER)) ? readFileSync(new URL(FILE, FOLDER), "utf8") : "";
  return new Map([[FILE, storedModule(old)?.equals(module) === true ? old : `${HEAD}${compressed(module)}${TAIL}`]]);
}

/** The module that the text of a generated file stores; undefined if it is another text. */
function storedModule(text: string): Buffer | undefined {
  if (!text.startsWith(HEAD) || !text.endsWith(TAIL)) return undefined;
  try {
    return brotliDecompressSync(Buffer.from(text.slice(HEAD.length, -TAIL.length), "base64"));
  } catch {
    return undefined;
  }
}

function compressed(module: Uint8Array): string {
  return brotliCompressSync(module, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: module.length } })
    .toString("base64");
}

if (import.meta.main) {
  const about = "Compiles the optimizing compiler to WebAssembly, the form in which background threads run it.";
  process.exit(await runGenerator("task build:compiler", about, "engine/portable/", FOLDER, generatedFiles));
}
