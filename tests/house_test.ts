/**
 * House rules, checked on the source text: unused exports, non-null assertions on elements, variables at module level,
 * headers, the width of comments, files that they name, examples and documentation of public entry points, instruction
 * rows without users, hexadecimal literals where machine code is written.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { INSTRUCTION_ROWS } from "../engine/backend_x64/all_rows.ts";
import { ROW_SHORT, ROW_VEX_TWIN } from "../engine/backend_x64/instructions.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Paths that may export more than is imported: some have sources in strings; generated constants mirror tables;
 * declarations are those of a package's module.
 */
const DEAD_EXPORTS = [
  "engine/baseline/kernel/constants.ts",
  "scripts/generate/asc.d.ts",
  "scripts/generate/portable/allocator_entry.ts",
  "scripts/generate/portable/backend_entry.ts",
  "scripts/generate/portable/arena.ts",
  "scripts/generate/portable/build_compiler.ts",
  "scripts/generate/portable/counterparts.ts",
  "scripts/generate/portable/optimizer_entry.ts",
  "scripts/generate/portable/rewrite_test.ts",
  "scripts/generate/portable/translator_entry.ts",
  "tests/registry/reference_test.ts",
];
/** Files that the kernel's build puts in place of a module: their exports are used through that module's. */
const ALTERNATIVES: readonly (readonly [string, string])[] = [
  ["engine/baseline/kernel/machine.ts", "engine/baseline/kernel/machine_arm64.ts"],
];
/** Files with `]!` on elements whose type includes undefined; that of array elements never does. */
const ELEMENTS_OR_UNDEFINED: Readonly<Record<string, string>> = {
  "engine/binary/read_module.ts": "sections without a reader of their own",
  "engine/translate/arrays.ts": "types that have no layout",
  "engine/translate/descriptors.ts": "types that have no layout",
  "engine/translate/globals.ts": "globals whose value is not known",
  "engine/translate/objects.ts": "types that have no layout",
  "tests/house_test.ts": "the pattern that this test searches for",
  "tests/installer/end_to_end_test.ts": "environment variables",
  "tests/verify/arm64_decoder_test.ts": "a record of register names, and the assembler's text",
  "tests/verify/unproven_code_test.ts": "the assembler's text",
};

/** The entry points of both packages that programs import. */
const PUBLIC = [
  "component/install/mod.ts",
  "component/mod.ts",
  "mod.ts",
  "engine/extism/mod.ts",
  "engine/mod.ts",
  "engine/cache/code_cache.ts",
  "engine/drop_in/install.ts",
  "engine/drop_in/node_wasi.ts",
  "engine/base/errors.ts",
  "engine/settings/features.ts",
  "engine/api/open_cached_module.ts",
  "engine/settings/optimizations.ts",
  "engine/runtime/memory/memory.ts",
  "engine/runner/mod.ts",
  "component/runner/mod.ts",
  "engine/wasi/mod.ts",
  "engine/wasi/run_program.ts",
  "engine/wasi/threads.ts",
  "engine/webassembly/mod.ts",
];

/** Variables at module level in the engine: `path: name`, each with the reason why no object owns it. */
const REALM_STATE: Readonly<Record<string, string>> = {
  "engine/wasm/subtype.ts: hasDescriptors": "a property of the realm's canonical types",
  "engine/webassembly/js_prototypes.ts: store": "the store of the realm, which loads this file late",
  "engine/artifact/engine_stamp.ts: stamp": "a constant, computed once",
  "engine/base/guest_stack.ts: hasGetter": "a property of the host, found out by the first error",
  "engine/baseline/kernel_forms.ts: makeNative": "set by the engine, which knows the thread of the realm",
  "engine/cache/source_stamp.ts: stamp": "a constant, computed once",
  "engine/api/engine.ts: mayStartThreads": "a property of the realm",
  "engine/drop_in/component_modules.ts: provided": "set by the component package, which knows components",
  "engine/host/clocks.ts: immediate": "a function of the host, found at its first use",
  "engine/host/cpu.ts: known": "a property of the machine, detected once",
  "engine/host/current.ts: host": "one host per realm",
  "engine/host/process.ts: end": "set by the host",
  "engine/host/workers.ts: mayStart": "a property of the process, given up when it is confined",
  "engine/host/workers.ts: idle": "Workers are shared by all engines of a realm",
  "engine/portable/late_form.ts: compiler": "one instance per thread, made at its first use",
  "engine/portable/late_native.ts: kept": "read before the process is confined",
  "engine/portable/late_native.ts: given": "set by tests and benchmarks of a checkout",
  "engine/tiers/native_compiler.ts: placed": "the compiler's machine code is placed once in a realm's arena",
  "engine/ir/eval.ts: evalLo": "second result of a synchronous function, in the inner loop of constant folding",
  "engine/ir/eval.ts: evalHi": "second result of a synchronous function, in the inner loop of constant folding",
  "engine/ir/eval.ts: remainderLo": "second result of a synchronous function",
  "engine/ir/eval.ts: remainderHi": "second result of a synchronous function",
  "engine/api/module.ts: compiler": "set by the engine, which has the compiler",
  "engine/parallel/helper_threads.ts: shares": "a statistic for tests and benchmarks",
  "engine/runtime/boundary/marshal.ts: sourceAllowed": "a property of the realm",
  "engine/runtime/exceptions/exception.ts: nextTag": "identities are unique in a realm",
  "engine/runtime/instance/func.ts: prototype": "the class of exported functions belongs to the realm",
  "engine/runtime/realm_store.ts: compiler": "one store per realm",
  "engine/runtime/realm_store.ts: storedCollector": "one store per realm",
  "engine/runtime/realm_store.ts: store": "one store per realm",
  "engine/text/keywords.ts: numberBySymbol": "a constant, computed once",
  "engine/webassembly/module.ts: options": "the namespace replaces a global, so it has one engine",
  "engine/webassembly/module.ts: engine": "the namespace replaces a global, so it has one engine",
  "engine/webassembly/limit.ts: storage": "made at the first use: Node's module takes time to load",
};

/** Exports that only generated code or a compiler other than Deno uses: `path: name`. */
const USED_BY_TEXT = [
  "bench/programs/strings.ts: run",
  "component/install/instantiate_file.ts: instantiateFile",
  "engine/drop_in/source_imports.ts: importSource",
  "engine/optimize/passes.ts: runPasses",
  "engine/regalloc/allocate.ts: runSteps",
  "examples/wasi/words.ts: _start",
  "tests/component/types_test.ts: Exports",
  "tests/debug/programs/sums.ts: run",
  "tests/hosts/registered_tests.ts: registerTest",
  "tests/toolchains/programs/objects.ts: run",
];

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      return entry.name.startsWith(".") || entry.name === "node_modules" || entry.name === "dist" ? [] : sources(path);
    }
    return entry.name.endsWith(".ts") ? [path] : [];
  });
}

const TEXTS = new Map(sources("").map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));

function within(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => folder.endsWith("/") ? path.startsWith(folder) : path === folder);
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, "");
}

interface Import {
  readonly path: string;
  /** Imported names; "*" followed by the local name for a namespace. */
  readonly names: readonly string[];
  /** Whether the file is loaded at run time, so that all its exports may be used. */
  readonly dynamic: boolean;
}

/** Imports and re-exports of the project's own files. */
function importsOf(path: string, text: string): Import[] {
  const found: Import[] = [];
  for (
    const match of text.matchAll(/\b(?:import|export)\s+(type\s+)?(\{[^}]*\}|\*(?:\s+as\s+\w+)?)\s+from\s+"(\.[^"]+)"/g)
  ) {
    const target = relative(ROOT, normalize(join(ROOT, dirname(path), match[3])));
    const clause = match[2];
    const names = clause.startsWith("*")
      ? [`*${clause.replace(/\*\s*(as\s+)?/, "")}`]
      : clause.slice(1, -1).split(",").map((name) => name.trim().replace(/^type\s+/, "").split(/\s+as\s+/)[0]);
    found.push({ path: target, names: names.filter((name) => name !== ""), dynamic: false });
  }
  // Dynamic imports, late ones included, and scripts that are started by path use every export.
  for (const match of text.matchAll(/(?:import\(\s*|\blate\(\s*|new URL\(\s*)"(\.[^"]+\.ts)"/g)) {
    found.push({ path: relative(ROOT, normalize(join(ROOT, dirname(path), match[1]))), names: ["*"], dynamic: true });
  }
  return found;
}

const IMPORTS = new Map([...TEXTS].map(([path, text]) => [path, importsOf(path, text)]));

/** Names that other files import, by file; "*" if all may be used. */
function usedNames(): Map<string, Set<string>> {
  const used = new Map<string, Set<string>>();
  const passedOn: (readonly [string, string])[] = [...ALTERNATIVES];
  const use = (path: string, name: string) => (used.get(path) ?? used.set(path, new Set()).get(path))?.add(name);
  for (const [path, imports] of IMPORTS) {
    for (const imported of imports) {
      for (const name of imported.names) {
        if (name === "*" && !imported.dynamic) passedOn.push([path, imported.path]);
        else if (!name.startsWith("*")) use(imported.path, name);
        else if (name === "*") use(imported.path, "*");
        else {
          const local = name.slice(1);
          const text = withoutComments(TEXTS.get(path) ?? "");
          if (text.includes(`...${local}`)) use(imported.path, "*");
          for (const member of text.matchAll(new RegExp(`\\b${local}\\.(\\w+)`, "g"))) use(imported.path, member[1]);
        }
      }
    }
  }
  for (const folder of ["", "engine", "component"]) {
    const { exports } = JSON.parse(readFileSync(join(ROOT, folder, "deno.json"), "utf8")) as {
      exports: Record<string, string>;
    };
    for (const file of Object.values(exports)) use(join(folder, file), "*");
  }
  // Twice, because a file that is passed on may pass others on.
  for (const [from, to] of [...passedOn, ...passedOn]) for (const name of used.get(from) ?? []) use(to, name);
  return used;
}

function exportedNames(text: string): string[] {
  const declaration =
    /^export (?:declare )?(?:abstract )?(?:async )?(?:const enum|const|let|function\*?|class|interface|type|enum) (\w+)/gm;
  return [...withoutComments(text).matchAll(declaration)].map((match) => match[1]);
}

Deno.test("every export is imported somewhere", () => {
  const used = usedNames();
  const dead: string[] = [];
  for (const [path, text] of TEXTS) {
    if (within(path, DEAD_EXPORTS) || used.get(path)?.has("*")) continue;
    for (const name of exportedNames(text)) if (!used.get(path)?.has(name)) dead.push(`${path}: ${name}`);
  }
  assert.deepEqual(dead, USED_BY_TEXT);
});

Deno.test("no non-null assertions on elements that the type checker considers defined", () => {
  const wrong: string[] = [];
  for (const [path, text] of TEXTS) {
    // In stub programs, the mark is the notation of an access that changes its base.
    if (path in ELEMENTS_OR_UNDEFINED || path.startsWith("scripts/generate/programs/")) continue;
    text.split("\n").forEach((line, k) => {
      if (/\]!(?![=\w"'])/.test(line.replace(/"(?:[^"\\]|\\.)*"/g, '""'))) {
        wrong.push(`${path}:${k + 1} ${line.trim()}`);
      }
    });
  }
  assert.deepEqual(wrong, []);
});

Deno.test("variables at module level have a reason", () => {
  const found: string[] = [];
  for (const [path, text] of TEXTS) {
    // The kernel is compiled to WebAssembly, one instance per thread.
    if (!path.startsWith("engine/") || /_test\.ts$|\/testing\/|^engine\/baseline\/kernel\//.test(path)) continue;
    for (const match of withoutComments(text).matchAll(/^(?:export )?let (\w+)/gm)) found.push(`${path}: ${match[1]}`);
  }
  assert.deepEqual(found.sort(), Object.keys(REALM_STATE).sort());
});

Deno.test("loops over the names of an object read own properties", () => {
  // Programs add enumerable properties to Object.prototype, which for…in would read.
  const found: string[] = [];
  for (const [path, text] of TEXTS) {
    if (!path.endsWith(".ts") || !/^(?:engine|component|project|registry)\//.test(path)) continue;
    for (const [loop] of withoutComments(text).matchAll(/\bfor \((?:const|let|var) \w+ in .*/g)) {
      found.push(`${path}: ${loop}`);
    }
  }
  assert.deepEqual(found, []);
});

Deno.test("every file begins with a comment about its content", () => {
  const without = [...TEXTS].filter(([, text]) => !/^(?:#!.*\n+)?(?:\/\/|\/\*\*)/.test(text)).map(([path]) => path);
  assert.deepEqual(without, []);
});

/** The formatter's width; it does not wrap comments. */
const WIDTH = 120;

Deno.test("comments fit the formatter's width", () => {
  const wide: string[] = [];
  for (const [path, text] of TEXTS) {
    for (const [i, line] of path.includes("/generated/") ? [] : text.split("\n").entries()) {
      // A single word, such as an address, cannot be wrapped.
      if (line.length > WIDTH && /^\s*(?:\*|\/\/|\/\*\*) \s*\S+ /.test(line)) wide.push(`${path}:${i + 1}`);
    }
  }
  assert.deepEqual(wide, []);
});

/** Names in comments that stand for any file of a kind. */
const PLACEHOLDERS: readonly string[] = ["x.ts", "engine/backend_ARCH/generated_stubs.ts"];

Deno.test("files that comments name exist", () => {
  const paths = [...TEXTS.keys()].map((path) => `/${path}`);
  const missing: string[] = [];
  for (const [path, text] of TEXTS) {
    for (const [comment] of text.matchAll(/\/\*\*[\s\S]*?\*\/|^\s*\/\/.*$/gm)) {
      for (const [name] of comment.replace(/```[\s\S]*?```/g, "").matchAll(/(?<![\w.*])[a-z][\w/]*\.ts\b/g)) {
        if (PLACEHOLDERS.includes(name) || paths.some((known) => known.endsWith(`/${name}`))) continue;
        missing.push(`${path}: ${name}`);
      }
    }
  }
  assert.deepEqual(missing, []);
});

Deno.test("examples in comments keep their lines", () => {
  const wrong: string[] = [];
  for (const [path, text] of TEXTS) {
    for (const [example] of text.matchAll(/^ *\* ```ts\n[\s\S]*?^ *\* ```$/gm)) {
      if (/; (?:const|let|if|new|\w+\() ?/.test(example)) wrong.push(`${path}: ${example}`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test({
  name: "the public entry points are documented completely",
  ignore: !("deno" in process.versions),
  fn() {
    const { status, stderr } = spawnSync(process.execPath, ["doc", "--lint", ...PUBLIC], {
      cwd: ROOT,
      encoding: "utf8",
      env: { ...process.env, NO_COLOR: "1" },
    });
    assert.equal(status, 0, stderr);
  },
});

/** Rows of x64 that only the disassembler uses, because their bytes are written directly. */
const ROWS_TO_READ: Readonly<Record<string, string>> = {
  JCC8: "short branches, which branch relaxation writes",
  JCC32: "long branches, which branch relaxation writes",
  INT3: "filler between functions",
  NOP: "padding in front of loops",
  NOP_M: "padding in front of loops",
  NOP16_M: "padding in front of loops",
};

/** Upper-case names in the sources of the x64 backend, except its instruction tables and tests. */
function mentionedNames(): Set<string> {
  const words = new Set<string>();
  for (const [path, text] of TEXTS) {
    if (!path.startsWith("engine/backend_x64/") || /_test\.ts$|\/insts_\w+\.ts$/.test(path)) continue;
    for (const match of withoutComments(text).matchAll(/\b[A-Z][A-Z0-9_]+\b/g)) words.add(match[0]);
  }
  return words;
}

/** The key without the parts that vary in row arithmetic: widths, precisions, lane sizes. */
function familyOf(key: string): string {
  return key.replace(/\d+/g, "").replace(/(S|P)[SD]?$/, "$1").replace(/[BWDQH]+(_|$)/g, "$1");
}

Deno.test("every x64 instruction row is used by name, in the family of such a row, or as its short or VEX form", () => {
  const mentioned = mentionedNames();
  const families = new Set(INSTRUCTION_ROWS.filter((row) => mentioned.has(row.key)).map((row) => familyOf(row.key)));
  const used = new Set<number>();
  INSTRUCTION_ROWS.forEach((row, number) => {
    if (!families.has(familyOf(row.key))) return;
    for (const form of [number, ROW_SHORT[number], ROW_VEX_TWIN[number]]) used.add(form);
  });
  const dead = INSTRUCTION_ROWS.filter((_, number) => !used.has(number)).map((row) => row.key);
  assert.deepEqual(dead, Object.keys(ROWS_TO_READ));
});

/**
 * Files that write or place machine code, which must name instructions and not contain their bytes: the kernel's files
 * for a processor, the host, and those around the baseline tier and the sampler.
 */
const MACHINE_FILES =
  /^engine\/(?:baseline\/kernel\/(?:encoding|machine|vectors)_|baseline\/[^/]*$|backend_\w+\/target|host\/|profile\/|tiers\/)/;

/** Lines of such files with a hexadecimal literal outside of a named constant. None of them is machine code. */
const NAMELESS_HEX: Readonly<Record<string, readonly [lines: number, reason: string]>> = {
  "engine/host/calls/darwin_calls.ts": [19, "flags of macOS beside those of Linux"],
  "engine/host/calls/windows_system.ts": [27, "numbers of errors of Windows"],
  "engine/host/code/elf.ts": [3, "words of the file format"],
  "engine/host/confinement.ts": [2, "numbers of the kernel's interface"],
  "engine/host/systems/systems.ts": [2, "flags of signal handlers"],
};

Deno.test("machine code is written by the names of instructions: hexadecimal literals are constants", () => {
  const named = /\b[A-Z][A-Z0-9_]*(?:: \w+)?(?::| =) -?0x[0-9a-f]+/;
  const arithmetic = /0x1_0000_0000|0x(?:f{8}|7f{7})n?\b/;
  const found: Record<string, number> = {};
  for (const [path, text] of TEXTS) {
    if (!MACHINE_FILES.test(path) || /_test\.ts$|\/generated/.test(path)) continue;
    const lines = withoutComments(text).split("\n").filter((line) =>
      /\b0x[0-9a-f]/i.test(line) && !named.test(line) && !arithmetic.test(line)
    );
    if (lines.length > 0) found[path] = lines.length;
  }
  assert.deepEqual(found, Object.fromEntries(Object.entries(NAMELESS_HEX).map(([path, [lines]]) => [path, lines])));
});

Deno.test("decisions of RATIONALE.md have a number each, and the index links to every one", () => {
  const text = readFileSync(join(ROOT, "RATIONALE.md"), "utf8");
  const numbers = [...text.matchAll(/^### (D\d+): /gm)].map((match) => match[1]);
  const indexed = [...text.matchAll(/\[(D\d+)\]\(#d\d+-/g)].map((match) => match[1]);
  assert.ok(numbers.length > 50, `${numbers.length} decisions`);
  assert.equal(
    new Set(numbers).size,
    numbers.length,
    `numbers given twice: ${numbers.filter((n, k) => numbers.indexOf(n) < k)}`,
  );
  assert.deepEqual(numbers.filter((number) => !indexed.includes(number)), []);
});
