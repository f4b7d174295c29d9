/**
 * A project with the npm packages installed, in which hosts without TypeScript run this tree's tests. In: the project's
 * folder. Out: tests, scripts and examples as JavaScript at the paths of this tree, with the packages in place of the
 * sources that they contain.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { finishModule } from "../package/npm_package.ts";

/** This tree. */
export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));

/** The installed packages, and the folders of this tree in their place. */
const PACKAGES = [
  ["engine", "engine"],
  ["component", "component"],
  ["cli/project", "project"],
  ["cli/registry", "registry"],
] as const;

/**
 * The source `text` at `path` with imports of this tree's folders replaced by imports of the installed files. Imports
 * through the links to them would load a module a second time under Wine, where hosts cannot resolve links.
 */
export function importInstalled(text: string, path: string): string {
  const up = "../".repeat(path.split("/").length - 1);
  return PACKAGES.reduce(
    (changed, [from, to]) => changed.replaceAll(`"${up}${to}/`, `"${up}node_modules/@waft/${from}/`),
    text,
  );
}

/** Transpiles sources of this tree to the same paths below `project`, with `Deno.test` replaced. */
function placeSources(project: string, paths: string[]): void {
  const { status, stderr } = spawnSync(process.execPath, ["transpile", "--quiet", "--outdir", project, ...paths], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`deno transpile failed: ${stderr}`);
  for (const path of paths) {
    const target = join(project, path.replace(/\.ts$/, ".js"));
    let text = importInstalled(finishModule(readFileSync(target, "utf8")).text, path);
    if (text.includes("Deno.test(")) {
      const list = `${"../".repeat(path.split("/").length - 1)}tests/hosts/registered_tests.js`;
      text = `import { registerTest } from "${list}";\n${text.replaceAll("Deno.test(", "registerTest(")}`;
    }
    writeFileSync(target, text);
  }
}

/** The TypeScript files below a folder of this tree, without those that only declare types. */
export function sourcesIn(path: string): string[] {
  return readdirSync(join(ROOT, path), { recursive: true }).map((name) => join(path, String(name)))
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"));
}

/** Modules of the engine that tests and tools import, or locate by URL: a package under test has them as files. */
export function engineModulesOfTests(): string[] {
  const modules = new Set<string>();
  for (const path of ["tests", "scripts", "bench"].flatMap(sourcesIn)) {
    const text = readFileSync(join(ROOT, path), "utf8");
    for (const [, name] of text.matchAll(/"(?:\.\.\/)+engine\/([\w/]+)\.ts"/g)) {
      if (!name.includes("testing/") && existsSync(join(ROOT, `engine/${name}.ts`))) modules.add(`${name}.js`);
    }
  }
  return [...modules].sort();
}

/** Copies tests, examples and the suite's runner into a project, where the packages' files replace the tree's. */
export function placeTests(project: string): void {
  mkdirSync(join(project, "bench"));
  for (const [from, to] of PACKAGES) {
    symlinkSync(join(project, "node_modules/@waft", from), join(project, to));
  }
  writeFileSync(join(project, "cli.js"), 'import "./node_modules/@waft/cli/bin/waft.js";\n');
  symlinkSync(join(ROOT, "bench/wasm"), join(project, "bench/wasm"));
  // The packages that tests use, and waft's compiled forms of them.
  mkdirSync(join(ROOT, ".cache"), { recursive: true });
  symlinkSync(join(ROOT, ".cache"), join(project, ".cache"));
  cpSync(join(ROOT, "examples"), join(project, "examples"), { recursive: true });
  cpSync(join(ROOT, "tests"), join(project, "tests"), { recursive: true, filter: (path) => !path.endsWith(".ts") });
  const programs = ["examples/deadline.ts", "examples/components/greet.ts", "examples/wasi/capture.ts"];
  placeSources(project, [...["tests", "scripts", "bench"].flatMap(sourcesIn), ...programs]);
}

/** Test files that a host without `Deno.test` cannot run, with the reason; `*` is every host. */
const NOT_THERE: readonly (readonly [file: string, host: string, why: string])[] = [
  ["tests/features/exceptions_random_test.ts", "node20", "it compares with V8, which lacks try_table there"],
  ["tests/features/native_unwinding_test.ts", "node20", "it compares with V8, which lacks try_table there"],
  ["tests/features/objects_random_test.ts", "node20", "it compares with V8, which lacks structures there"],
  ["tests/features/objects_test.ts", "node20", "it compares with V8, which lacks structures there"],
  ["tests/features/memory64_checks_test.ts", "node20", "it compares with V8, which lacks 64-bit memories there"],
  [
    "tests/features/memory64_checks_test.ts",
    "bun",
    "it compares with the host's WebAssembly, which lacks 64-bit memories",
  ],
  ["tests/features/loop_precheck_test.ts", "node20", "it compares with V8, which lacks 64-bit memories there"],
  [
    "tests/features/loop_precheck_test.ts",
    "bun",
    "it compares with the host's WebAssembly, which lacks 64-bit memories",
  ],
  ["tests/cli_project/readme_test.ts", "*", "it reads the repository's README, not the package's"],
  ["tests/cli_project/tool_pages_test.ts", "*", "it reads a page of the repository's documentation"],
  ["tests/component/serve_page_test.ts", "*", "it reads a page of the repository's documentation"],
  [
    "tests/cli_project/quick_run_test.ts",
    "*",
    "it reads the repository's sources to check the modules that a run loads",
  ],
  [
    "tests/engine/late_modules_test.ts",
    "*",
    "it reads the repository's sources; the packages' late modules have a test",
  ],
  ["tests/cli_project/publish_test.ts", "node20", "its registry needs node:sqlite, which Node 20 lacks"],
  [
    "tests/cli_project/publish_test.ts",
    "node",
    "its registry checks archives in a process without permissions, which only Deno offers",
  ],
  ["tests/cli_project/release_notes_test.ts", "node20", "its registry needs node:sqlite, which Node 20 lacks"],
  [
    "tests/cli_project/release_notes_test.ts",
    "node",
    "its registry checks archives in a process without permissions, which only Deno offers",
  ],
];

/** The test files that a host cannot run, with the reasons. */
export function leftOut(host: string): readonly (readonly [file: string, why: string])[] {
  return NOT_THERE.filter(([, name]) => name === host || name === "*").map(([file, , why]) => [file, why]);
}
