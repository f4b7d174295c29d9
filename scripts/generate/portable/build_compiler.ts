/**
 * The parts of the compiler in the subset as one WebAssembly module:
 * `deno run -A scripts/generate/portable/build_compiler.ts FILE`. In: the files of the subset. Out: the module; a copy
 * below .cache/ serves until the rewritten texts change.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { readTaskLine } from "../../task_options.ts";
import { ARENA } from "./arena.ts";
import { compileSubset, ENTRIES, rewriteSubset, type Subset } from "./compile_subset.ts";
import { COUNTERPARTS } from "./counterparts.ts";
import { HOST_ONLY, PORTABLE } from "./portable_files.ts";

const CACHE = fileURLToPath(new URL("../../../.cache/portable/", import.meta.url));
/** Changes with the options of the compilation. */
const VERSION = "1";
/**
 * What the module exports: `reset` drops the workspaces, and with them all memory but that of the constants;
 * `limitMemory(bytes)` sets the limit of the memory, constants included; `failed(n)` says after a trap why a function
 * cannot be compiled: the failure (translate/failures.ts), its subject, its offset.
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

if (import.meta.main) {
  const { operands: [file] } = readTaskLine({
    name: "run -A scripts/generate/portable/build_compiler.ts",
    about: "Compiles the parts of the compiler that are in the subset to WebAssembly.",
    operands: "FILE",
    options: { checked: { help: "trap at accesses outside of an array" } },
  });
  const module = await buildCompiler(await portableSubset(), process.argv.includes("--checked"));
  writeFileSync(file, module);
  console.log(`${file}: ${module.length} bytes`);
}
