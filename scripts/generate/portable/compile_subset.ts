/**
 * Compiles files of the engine that are written in the subset to WebAssembly. In: the files (portable_files.ts) and an
 * entry in AssemblyScript. Out: the module. Throws an Error with every construct outside of the subset and every
 * diagnostic of AssemblyScript, each with file and line.
 */
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
// Fills the columns of instructions, which the subset copies.
import "../../../engine/backend_x64/all_rows.ts";
// @ts-types="../asc.d.ts"
import asc, { libraryFiles } from "assemblyscript/asc";
import ts from "typescript";
import { constantValues } from "./constant_values.ts";
import { COUNTERPARTS } from "./counterparts.ts";
import { ALLOCATOR_ENTRY } from "./allocator_entry.ts";
import { BACKEND_ENTRY } from "./backend_entry.ts";
import { ARENA } from "./arena.ts";
import { OPTIMIZER_ENTRY } from "./optimizer_entry.ts";
import { type Problem, rewriteFile } from "./rewrite.ts";
import { TRANSLATOR_ENTRY } from "./translator_entry.ts";

const ENGINE = fileURLToPath(new URL("../../../engine/", import.meta.url));

/** Modules in AssemblyScript that export parts of the compiler, by the name by which an entry imports them. */
export const ENTRIES: Readonly<Record<string, string>> = {
  "allocator_entry.ts": ALLOCATOR_ENTRY,
  "backend_entry.ts": BACKEND_ENTRY,
  "optimizer_entry.ts": OPTIMIZER_ENTRY,
  "translator_entry.ts": TRANSLATOR_ENTRY,
};

/** The files of the subset as AssemblyScript, by path below engine/, and what does not fit. */
export interface Subset {
  readonly texts: ReadonlyMap<string, string>;
  readonly problems: readonly Problem[];
}

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  allowImportingTsExtensions: true,
  noEmit: true,
  strict: true,
  lib: ["lib.esnext.d.ts"],
  types: [],
};

/** Rewrites `files`, paths below engine/; `hostOnly` names declarations by file that AssemblyScript does not get. */
export async function rewriteSubset(
  files: readonly string[],
  hostOnly: Readonly<Record<string, readonly string[]>>,
): Promise<Subset> {
  const program = ts.createProgram(files.map((file) => ENGINE + file), OPTIONS);
  const checker = program.getTypeChecker();
  const sources = files.map((file) => {
    const source = program.getSourceFile(ENGINE + file);
    if (source === undefined) throw new Error(`engine/${file} does not exist`);
    return source;
  });
  const { constants, functions } = await constantValues(sources);
  const implementors = findImplementors(sources, checker);
  const portable = new Set([...files, ...Object.keys(COUNTERPARTS)]);
  const texts = new Map<string, string>(), problems: Problem[] = [];
  for (const [n, file] of files.entries()) {
    const rewritten = rewriteFile(sources[n], {
      checker,
      file: `engine/${file}`,
      values: constants.get(sources[n].fileName) ?? new Map(),
      functionOf: (value) => {
        const found = functions.get(value);
        if (found === undefined) return undefined;
        const path = found.file.slice(ENGINE.length);
        return { name: found.name, from: path === file ? undefined : relativeTo(file, path) };
      },
      hostOnly: new Set(hostOnly[file]),
      hostOnlyOf: (from) => new Set(hostOnly[posix.join(posix.dirname(file), from)]),
      isPortable: (from) => portable.has(posix.join(posix.dirname(file), from)),
      implementor: (name) => implementors.get(`${ENGINE}${file} ${name}`)?.(file),
    });
    texts.set(file, rewritten.text);
    problems.push(...rewritten.problems);
  }
  return { texts, problems };
}

type Implementor = (from: string) => { readonly name: string; readonly from: string };

/** The specifier of `file` in file `from`. */
function relativeTo(from: string, file: string): string {
  const path = posix.relative(posix.dirname(from), file);
  return path.startsWith(".") ? path : `./${path}`;
}

/** The classes that implement interfaces, by the interface's file and name. */
function findImplementors(sources: readonly ts.SourceFile[], checker: ts.TypeChecker): Map<string, Implementor> {
  const found = new Map<string, Implementor>();
  const classes = sources.flatMap(({ statements }) => statements.filter(ts.isClassDeclaration));
  for (const node of classes) {
    const file = node.getSourceFile().fileName.slice(ENGINE.length), name = node.name?.text ?? "";
    for (const { token, types } of node.heritageClauses ?? []) {
      if (token !== ts.SyntaxKind.ImplementsKeyword) continue;
      for (const { expression } of types) {
        const symbol = checker.getTypeAtLocation(expression).getSymbol();
        const declared = symbol?.declarations?.[0].getSourceFile().fileName;
        found.set(`${declared} ${symbol?.name}`, (from) => ({ name, from: relativeTo(from, file) }));
      }
    }
  }
  return found;
}

/**
 * Compiles `subset` with `entry`, which exports the module's functions. `isChecked`: accesses of arrays trap outside of
 * their bounds.
 */
export async function compileSubset(
  subset: Subset,
  entry: string,
  isChecked = false,
): Promise<Uint8Array<ArrayBuffer>> {
  if (subset.problems.length > 0) {
    throw new Error(subset.problems.map(({ file, line, what }) => `${file}:${line}: ${what}`).join("\n"));
  }
  // Code is generated for the runtime of this name, whose text this is.
  libraryFiles["rt/stub"] = ARENA;
  let binary: Uint8Array<ArrayBuffer> | undefined;
  const { error, stderr } = await asc.main([
    "entry.ts",
    ...["--outFile", "subset.wasm", "-O3", "--noAssert", "--runtime", "stub", "--use", "abort="],
    ...["--uncheckedBehavior", isChecked ? "never" : "always"],
  ], {
    readFile: (name) =>
      name === "entry.ts" ? entry : subset.texts.get(name) ?? COUNTERPARTS[name] ?? ENTRIES[name] ?? null,
    writeFile: (_name, contents) => {
      binary = contents as Uint8Array<ArrayBuffer>;
    },
    listFiles: () => [],
  });
  if (error !== null || binary === undefined) throw new Error(`${error?.message}\n${stderr.toString()}`);
  return binary;
}
