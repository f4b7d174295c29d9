/**
 * The ranks of ARCHITECTURE.md: every import goes to a lower rank or stays in its unit; additional import bans; import
 * cycles; connections of modules that no import shows.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { importCycles } from "./support/import_cycles.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Unit {
  name: string;
  rank: number;
  paths: string[];
}

function readRanks(): Unit[] {
  const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
  const table = /<!-- ranks -->([\s\S]*?)<!-- \/ranks -->/.exec(text)?.[1];
  assert(table !== undefined, "ARCHITECTURE.md has a list between the <!-- ranks --> marks");
  return [...table.matchAll(/^- \*\*(\d+)\*\* (\S+):((?:.|\n(?!-))*)/gm)].map(([, rank, name, text]) => ({
    rank: Number(rank),
    name,
    paths: [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1]),
  }));
}

function sources(folder: string): string[] {
  const found: string[] = [];
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      if (
        !entry.name.startsWith(".") && !["node_modules", "tests", "testing", "examples", "dist"].includes(entry.name)
      ) {
        found.push(...sources(path));
      }
    } else if (entry.name.endsWith(".ts") && !entry.name.endsWith("_test.ts")) found.push(path);
  }
  return found;
}

/** The folders of the packages that others import. */
const PACKAGES = ["engine", "component"];

/** Files by the specifier under which a package exports them. */
function readExports(folder: string): [string, string][] {
  const { name, exports } = JSON.parse(readFileSync(join(ROOT, folder, "deno.json"), "utf8")) as {
    name: string;
    exports: Record<string, string>;
  };
  return Object.entries(exports).map(([path, file]) => [name + path.slice(1), join(folder, file)]);
}

const UNITS = readRanks();
const EXPORTS = new Map(PACKAGES.flatMap(readExports));

function unitOf(path: string): Unit | undefined {
  return UNITS.find((unit) => unit.paths.some((p) => p.endsWith("/") ? path.startsWith(p) : path === p));
}

function importsOf(path: string): string[] {
  // Examples in comments import the packages by name.
  const text = readFileSync(join(ROOT, path), "utf8").replace(/^ *\* .*$/gm, "");
  const found: string[] = [];
  // Late imports (project/base/late_import.ts) count, too.
  for (const match of text.matchAll(/(?:\bfrom|\bimport|\blate(?:<[^"]*"[^"]*"[^"]*>)?)\s*\(?\s*"([^"]+)"/g)) {
    const target = match[1];
    if (EXPORTS.has(target)) found.push(EXPORTS.get(target)!);
    else if (target.startsWith("@waft/")) found.push(`no such export: ${target}`);
    else if (target.startsWith(".")) found.push(relative(ROOT, normalize(join(ROOT, dirname(path), target))));
  }
  return found;
}

const FILES = sources("");

Deno.test("every source file belongs to a unit of ARCHITECTURE.md", () => {
  assert.ok(FILES.length > 300 && UNITS.length > 30, `${FILES.length} files, ${UNITS.length} units`);
  assert.deepEqual(FILES.filter((path) => unitOf(path) === undefined), []);
});

Deno.test("imports go to a lower rank or stay in their unit", () => {
  const wrong: string[] = [];
  for (const path of FILES) {
    const from = unitOf(path);
    if (from === undefined) continue;
    for (const target of importsOf(path)) {
      const to = unitOf(target);
      if (to === undefined || to === from || to.rank < from.rank) continue;
      wrong.push(`${path} (${from.name}, ${from.rank}) imports ${target} (${to.name}, ${to.rank})`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("packages import each other by name, and only what they export", () => {
  const wrong: string[] = [];
  for (
    const path of FILES.filter((path) => /^(project|component)\//.test(path) || path === "cli.ts" || path === "mod.ts")
  ) {
    const others = PACKAGES.filter((folder) => !path.startsWith(`${folder}/`)).join("|");
    const byPath = new RegExp(`"((?:\\.\\.?/)+(?:${others})/[^"]+)"`, "g");
    for (const match of readFileSync(join(ROOT, path), "utf8").matchAll(byPath)) {
      wrong.push(`${path} imports ${match[1]}`);
    }
    for (const target of importsOf(path)) if (target.startsWith("no such export")) wrong.push(`${path}: ${target}`);
  }
  assert.deepEqual(wrong, []);
});

Deno.test("the engine does not import components", () => {
  const wrong = FILES.filter((path) => path.startsWith("engine/")).flatMap((path) =>
    importsOf(path).filter((target) => target.startsWith("component/")).map((target) => `${path} imports ${target}`)
  );
  assert.deepEqual(wrong, []);
});

Deno.test("backends do not import the wasm front end, the runtime or the host", () => {
  const wrong = FILES.filter((path) => path.startsWith("engine/backend_")).flatMap((path) =>
    importsOf(path).filter((target) => /^engine\/(wasm|runtime|host|link|validate)\//.test(target)).map((t) =>
      `${path} imports ${t}`
    )
  );
  assert.deepEqual(wrong, []);
});

Deno.test("only engine/host refers to Deno", () => {
  const wrong = FILES.filter((path) => path.startsWith("engine/") && !path.startsWith("engine/host/")).filter((path) =>
    /\bDeno\.(?!test\b)/.test(readFileSync(join(ROOT, path), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, ""))
  );
  assert.deepEqual(wrong, []);
});

/** Every source of the repository, tests included. */
const ALL_FILES = [...FILES, ...testSources("")];
/** The compiler, whose files form no cycles at all. */
const COMPILER =
  /^engine\/(?:(?:compile|background|backend_arm64|backend_x64|codegen|gc|ir|link|optimize|parallel|regalloc)\/)/;

function testSources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      return entry.name.startsWith(".") || ["node_modules", "dist"].includes(entry.name) ? [] : testSources(path);
    }
    return entry.name.endsWith(".ts") && !FILES.includes(path) ? [path] : [];
  });
}

/** The only cycle of three files: a task, the instance that it is in, and the entries of its tables know each other. */
const TASKS = ["component_instance", "entries", "task"].map((name) => `component/async/${name}.ts`);

Deno.test("import cycles stay within a folder and have at most two files, types and tests included", () => {
  const cycles = importCycles(ALL_FILES, importsOf);
  const wrong = cycles.filter((cycle) => cycle.length > 2 || new Set(cycle.map(dirname)).size > 1);
  assert.deepEqual(wrong, [TASKS]);
});

Deno.test("the files of the compiler form no import cycle", () => {
  const files = ALL_FILES.filter((path) => COMPILER.test(path));
  assert.ok(files.length > 200, `${files.length} files`);
  assert.deepEqual(importCycles(files, importsOf), []);
});

/** The rows of one kind between the <!-- wiring --> marks of ARCHITECTURE.md: `path` or `path name`, sorted. */
function wiring(kind: string): string[] {
  const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
  const list = /<!-- wiring -->([\s\S]*?)<!-- \/wiring -->/.exec(text)?.[1] ?? "";
  const rows = new RegExp(`^- \\*\\*${kind}\\*\\*:([\\s\\S]*?)(?=^- |(?![\\s\\S]))`, "m").exec(list)?.[1] ?? "";
  return [...rows.matchAll(/^ {2}- `(\S+\.ts)`((?: `\w+`,?)*)/gm)].flatMap(([, path, names]) => {
    const found = [...names.matchAll(/`(\w+)`/g)].map(([, name]) => `${path} ${name}`);
    return found.length === 0 ? [path] : found;
  }).sort();
}

/** The engine's sources without comments, by path; those of the kernel are compiled to WebAssembly. */
function engineTexts(): [string, string][] {
  return FILES.filter((path) => path.startsWith("engine/") && !path.startsWith("engine/baseline/kernel/")).map(
    (path) => [path, readFileSync(join(ROOT, path), "utf8").replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, "")],
  );
}

Deno.test("functions that a higher module registers are those of ARCHITECTURE.md", () => {
  const found = engineTexts().flatMap(([path, text]) => {
    const variables = new Set([...text.matchAll(/^let (\w+)/gm)].map(([, name]) => name));
    // A function that does nothing but keep its only parameter in a variable of the module.
    const setters = text.matchAll(/^export function (\w+)\((\w+): [^\n]*\{\n {2}(\w+) = \2;\n\}/gm);
    return [...setters].filter(([, , , variable]) => variables.has(variable)).map(([, name]) => `${path} ${name}`);
  });
  assert.deepEqual(found.sort(), wiring("registered"));
});

Deno.test("variables that modules export as results are those of ARCHITECTURE.md", () => {
  const found = engineTexts().flatMap(([path, text]) =>
    [...text.matchAll(/^export let (\w+)/gm)].map(([, name]) => `${path} ${name}`)
  );
  assert.deepEqual(found.sort(), wiring("results in variables"));
});

Deno.test("modules that await when they are imported are those of ARCHITECTURE.md", () => {
  const found = engineTexts().filter(([, text]) => /^(?:(?:export )?const [^;]*?= )?await /m.test(text));
  assert.deepEqual(found.map(([path]) => path).sort(), wiring("await at import"));
});
