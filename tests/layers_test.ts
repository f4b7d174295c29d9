/**
 * The ranks of ARCHITECTURE.md: every import goes to a lower rank or stays in its unit; additional import bans.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Unit {
  name: string;
  rank: number;
  paths: string[];
}

function readRanks(): Unit[] {
  const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
  const table = /<!-- ranks -->([\s\S]*?)<!-- \/ranks -->/.exec(text)?.[1];
  assert(table !== undefined, "ARCHITECTURE.md has a table between the <!-- ranks --> marks");
  const units: Unit[] = [];
  for (const line of table.split("\n")) {
    const cells = line.split("|").map((cell) => cell.trim());
    if (!/^\d+$/.test(cells[1] ?? "")) continue;
    const paths = [...cells[3].matchAll(/`([^`]+)`/g)].map((match) => match[1]);
    units.push({ rank: Number(cells[1]), name: cells[2], paths });
  }
  return units;
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

/** Files by the specifier under which the engine's package exports them. */
function readEngineExports(): Map<string, string> {
  const { name, exports } = JSON.parse(readFileSync(join(ROOT, "engine/deno.json"), "utf8")) as {
    name: string;
    exports: Record<string, string>;
  };
  return new Map(Object.entries(exports).map(([path, file]) => [name + path.slice(1), join("engine", file)]));
}

const UNITS = readRanks();
const ENGINE_EXPORTS = readEngineExports();

function unitOf(path: string): Unit | undefined {
  return UNITS.find((unit) => unit.paths.some((p) => p.endsWith("/") ? path.startsWith(p) : path === p));
}

function importsOf(path: string): string[] {
  // Examples in comments import the packages by name.
  const text = readFileSync(join(ROOT, path), "utf8").replace(/^ \* .*$/gm, "");
  const found: string[] = [];
  for (const match of text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)) {
    const target = match[1];
    if (ENGINE_EXPORTS.has(target)) found.push(ENGINE_EXPORTS.get(target)!);
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

Deno.test("the command's package imports the engine's package by name, and only its exports", () => {
  const wrong: string[] = [];
  for (
    const path of FILES.filter((path) => /^(project|component)\//.test(path) || path === "cli.ts" || path === "mod.ts")
  ) {
    for (const match of readFileSync(join(ROOT, path), "utf8").matchAll(/"((?:\.\.?\/)+engine\/[^"]+)"/g)) {
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

/** Cycles larger than the rule allows, each by one of its files, with the reason. Do not add entries. */
const KNOWN_CYCLES: Readonly<Record<string, string>> = {
  "registry/app.ts": "the site's routes are typed by the application that mounts them",
  "registry/command.ts": "the registry's command, its site and its seed import each other",
};

Deno.test("import cycles stay within a folder and have at most three files, types included", () => {
  const wrong: string[] = [];
  const known = new Set<string>();
  for (const cycle of importCycles()) {
    const listed = Object.keys(KNOWN_CYCLES).find((file) => cycle.includes(file));
    if (listed !== undefined) known.add(listed);
    else if (cycle.length > 3 || new Set(cycle.map(dirname)).size > 1) wrong.push(cycle.join(" "));
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(Object.keys(KNOWN_CYCLES).filter((file) => !known.has(file)), [], "no longer cyclic: unlist");
});

/**
 * Strongly connected components of more than one file (Tarjan, "Depth-first search and linear graph algorithms", 1972).
 */
function importCycles(): string[][] {
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): void => {
    order.set(file, order.size);
    low.set(file, order.get(file)!);
    stack.push(file);
    for (const target of importsOf(file)) {
      if (!FILES.includes(target)) continue;
      if (!order.has(target)) {
        visit(target);
        low.set(file, Math.min(low.get(file)!, low.get(target)!));
      } else if (stack.includes(target)) low.set(file, Math.min(low.get(file)!, order.get(target)!));
    }
    if (low.get(file) !== order.get(file)) return;
    const component = stack.splice(stack.indexOf(file));
    if (component.length > 1) found.push(component);
  };
  for (const file of FILES) if (!order.has(file)) visit(file);
  return found;
}
