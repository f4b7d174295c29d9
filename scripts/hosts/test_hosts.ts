/**
 * Tests the npm packages on their hosts: `deno task test:hosts [--quick] [--costs] [--host NAME] [--keep]`. Builds
 * them, installs the archives in an empty project, type-checks a program that imports them, and on every host (Node 20,
 * the current Node, Bun; all from npm) runs the command, the deadline example, tests of this tree, and the
 * specification suite in both bounds modes (in the folder WASM_TESTSUITE). `--quick` runs a subset of the tests and of
 * the suite, `--only TEXT` only the test files whose path contains TEXT (`loaders`: `require` and a bundle), `--tier
 * NAME` only the suite, whole, with that compiler, `--costs` measures boundary crossings instead (bench/call_costs.ts),
 * `--lockfiles` only checks that every host runs the others' lockfiles, `--platforms` only checks npm's installation
 * for every system and processor. Out: one line per step with its time; status 1 if a step failed.
 */
import { spawnSync, type SpawnSyncReturns } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { rollup } from "@rollup/wasm-node";
import { TIERINGS } from "../../engine/api/settings.ts";
import { PROPOSALS_VARIABLE, proposalsFolder, suiteFolder, suiteNamed } from "../../tests/support/suites.ts";
import { buildNpm } from "../package/build_npm.ts";
import { engineModulesOfTests, leftOut, placeTests, ROOT, sourcesIn } from "./host_project.ts";
import { runtimePath } from "./npm_runtimes.ts";
import { readTaskLine } from "../task_options.ts";

/** The hosts. */
const HOSTS = ["node20", "node", "bun"] as const;

const TYPESCRIPT = "typescript@7.0.2";

/** Test folders that run on every host. */
const TEST_FOLDERS = [
  "tests/cli_project",
  "tests/component",
  "tests/embedding",
  "tests/engine",
  "tests/extism",
  "tests/features",
  "tests/hostile",
  "tests/plugins",
  "tests/runner",
  "tests/threads",
  "tests/vector",
  "tests/wasi",
  "tests/webassembly",
];

/** The subset for `--quick`. */
const QUICK_FOLDERS = [
  "tests/cli_project",
  "tests/component",
  "tests/embedding",
  "tests/engine",
  "tests/runner",
  "tests/threads",
  "tests/wasi",
];

/** Parts of the suite for `--quick`: every kind of boundary crossing and every kind of memory. */
const QUICK = [
  "imports",
  "linking",
  "memory",
  "float",
  "call",
  "trap",
  "start",
  "try",
  "simd_load",
  "atomic",
  "table_",
  "compact",
  "wide",
];

/** The suite that each host runs, in the folder that this checkout uses. */
const SUITE = suiteNamed("wasm");
const COMPONENT_SUITE = suiteNamed("components");

const task = {
  name: "task test:hosts",
  about: "Builds the npm packages and tests them, installed, on Node 20, the current Node and Bun.",
  options: {
    quick: { help: "run a subset of the tests and of the suite" },
    costs: { help: "measure boundary crossings instead" },
    keep: { help: "keep the project folder" },
    lockfiles: { help: "only check that every host runs the others' lockfiles" },
    platforms: { help: "only check npm's installation for every system and processor" },
    only: {
      value: "TEXT",
      help: "only test files whose path contains TEXT, without the suite; repeatable",
      many: true,
    },
    tier: {
      value: "NAME",
      words: TIERINGS,
      help: "only the suite, with this compiler: baseline, optimizing, or auto; repeatable",
      many: true,
    },
    host: {
      value: "NAME",
      words: HOSTS,
      help: `only this host: ${HOSTS.join(", ")}; repeatable`,
      many: true,
    },
  },
} as const;
const { values: options } = readTaskLine(task);
/** Options that select steps; the whole test has none of them. */
const isPart = options.only.length > 0 || options.tier.length > 0;
const folder = mkdtempSync(join(tmpdir(), "waft-hosts-"));
const started = performance.now();
let failures = 0;

/** Runs the Fibonacci example: it must print `answer`. */
function runFib(label: string, command: string, args: string[], cwd: string, answer: string): void {
  run(label, command, args, cwd, { lines: 1, last: answer });
}

/** `npm create waft` in a new folder, with a template whose program is a module, which the command then runs. */
function checkCreate(project: string): void {
  const bin = join(project, "node_modules/.bin/create-waft");
  run("create-waft", bin, ["created", "--template", "c"], project, {
    last: "next: make, then make run, then make test",
  });
  const refused = ["created", "--template", "c"];
  const { status, stderr } = spawnSync(bin, refused, { cwd: project, encoding: "utf8" });
  if (status === 0 || !stderr.includes("exists already")) {
    failures++;
    console.log(`FAILED create-waft in a folder with a project: status ${status}, ${stderr}`);
  }
}

/** Every line of a failed step that reports a failure, each with the lines after it; the last lines if none does. */
function failedLines(lines: readonly string[]): string[] {
  const starts = lines.flatMap((line, i) => line.startsWith("FAILED") ? [i] : []);
  if (starts.length === 0) return lines.slice(-40);
  return starts.flatMap((start, i) => lines.slice(start, Math.min(start + 20, starts[i + 1] ?? lines.length)));
}

/** The treatment of a program's output. */
interface RunChoices {
  /** The number of lines at the end that are shown; 0 by default. */
  readonly lines?: number;
  /** The text of the last line; any text by default. */
  readonly last?: string;
}

/** Runs a program in a directory, and shows its failures if it fails. */
function run(label: string, command: string, args: string[], cwd: string, choices: RunChoices = {}): void {
  const { lines = 0, last } = choices;
  const start = performance.now();
  const result: SpawnSyncReturns<string> = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: {
      ...process.env,
      [SUITE.variable]: suiteFolder(SUITE),
      [PROPOSALS_VARIABLE]: proposalsFolder(),
      [COMPONENT_SUITE.variable]: suiteFolder(COMPONENT_SUITE),
      NO_COLOR: "1",
      npm_config_update_notifier: "false",
    },
    timeout: 1_200_000,
    maxBuffer: 1 << 28,
  });
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const ending = result.stdout.trimEnd().split("\n");
  const good = result.status === 0 && (last === undefined || ending.at(-1) === last);
  const shown = good ? ending : `${result.stdout}${result.stderr}`.trimEnd().split("\n");
  console.log(
    `${good ? "ok    " : "FAILED"} ${label} (${seconds} s)${result.signal === null ? "" : `: ${result.signal}`}`,
  );
  const tail = good ? shown.slice(shown.length - lines) : failedLines(shown);
  for (const line of tail) console.log(`         ${line}`);
  // Files of tests that passed only at the second attempt.
  if (good) { for (const line of ending) if (line.startsWith("FAILED")) console.log(`         ${line}`); }
  if (!good) failures++;
}

/** An empty project with the packages installed. */
function makeProject(name: string, archives: string[]): string {
  const project = join(folder, name);
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }\n');
  run(`${name}: npm install`, "npm", ["install", "--no-audit", "--no-fund", ...archives], project);
  return project;
}

/** The test files that the options select. */
function selectedTests(): string[] {
  const wanted = (path: string) => options.only.length === 0 || options.only.some((text) => path.includes(text));
  return (options.quick ? QUICK_FOLDERS : TEST_FOLDERS).flatMap(sourcesIn)
    .filter((path) => path.endsWith("_test.ts") && wanted(path)).sort();
}

/** Type-checks a program that uses the packages, with npm's TypeScript and its module resolution. */
function checkTypes(project: string): void {
  cpSync(join(ROOT, "tests/hosts/types"), join(project, "types"), { recursive: true });
  for (const resolution of ["nodenext", "bundler"]) {
    const args = ["-y", "-p", TYPESCRIPT, "--", "tsc", "--noEmit", "-p", `types/tsconfig.${resolution}.json`];
    run(`types: moduleResolution ${resolution}`, "npx", args, project);
  }
}

/** Tests Bun's installer and its package runner. Overrides give the location of unpublished packages. */
function checkBun(bun: string, archives: string[]): void {
  const project = join(folder, "bun");
  mkdirSync(project);
  const [engine, component, cli] = archives;
  const manifest = {
    dependencies: { "@waft/engine": engine, "@waft/component": component, "@waft/cli": cli },
    overrides: { "@waft/engine": engine, "@waft/component": component },
  };
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
  run("bun: bun install", bun, ["install"], project);
  runFib(
    "bun: bun x waft run",
    bun,
    ["x", "--bun", "waft", "run", join(ROOT, "examples/fib.wat"), "10"],
    project,
    "55",
  );
}

/**
 * A lockfile with plugins from directories must not depend on the host that wrote it: every host adds the example's
 * plugins, all write the same bytes, and every host runs every other one's lockfile.
 */
function checkLockfiles(
  project: string,
  hosts: readonly (readonly [name: string, command: readonly string[]])[],
): void {
  const lockfiles = new Map<string, string>();
  for (const [adder, add] of hosts) {
    const place = join(project, `locked-by-${adder}`);
    cpSync(join(ROOT, "examples/app"), place, { recursive: true });
    for (const plugin of ["kv", "log", "http"]) {
      cpSync(join(ROOT, "examples/plugins", plugin), join(place, "plugins", plugin), { recursive: true });
    }
    writeFileSync(join(place, "waft.json"), '{ "plugins": {} }\n');
    const inHome = (command: readonly string[], ...args: string[]): [string, string[]] => [
      "env",
      [`WAFT_HOME=${place}/home`, "WAFT_REGISTRY=http://127.0.0.1:1", ...command, ...args],
    ];
    const paths = ["./plugins/kv", "./plugins/log", "./plugins/http"];
    run(`${adder}: add plugins of directories`, ...inHome(add, "add", ...paths, "--allow-requested"), place);
    lockfiles.set(adder, readFileSync(join(place, "waft-lock.json"), "utf8"));
    hosts.forEach(([runner, command], i) => {
      const call = inHome(command, "run", "--offline", "--invoke", "visit", "visits.wasm");
      run(`${runner}: run with the lockfile of ${adder}`, ...call, place, { last: String(i + 1) });
    });
  }
  report(new Set(lockfiles.values()).size === 1, `${[...lockfiles.keys()].join(", ")} write the same lockfile`);
}

function report(isGood: boolean, label: string): void {
  console.log(`${isGood ? "ok    " : "FAILED"} ${label}`);
  if (!isGood) failures++;
}

/**
 * npm installs the packages for every system and processor, with koffi's library for that one alone. Without koffi,
 * hosts that have a foreign function interface run them, and the others name the missing package.
 */
function checkPlatforms(archives: string[], programs: ReadonlyMap<string, string>): void {
  for (const os of ["linux", "darwin", "win32"]) {
    for (const cpu of ["x64", "arm64"]) {
      const modules = join(makeProject(`${os}-${cpu}`, [...archives, `--os=${os}`, `--cpu=${cpu}`]), "node_modules");
      const libraries = existsSync(join(modules, "@koromix")) ? readdirSync(join(modules, "@koromix")) : [];
      report(libraries.join() === `koffi-${os}-${cpu}`, `${os}-${cpu}: koffi's libraries: ${libraries.join()}`);
    }
  }
  const project = makeProject("without-koffi", [...archives, "--omit=optional"]);
  report(!existsSync(join(project, "node_modules/koffi")), "without-koffi: koffi is not installed");
  const args = [join(project, "node_modules/@waft/cli/bin/waft.js"), "run", join(ROOT, "examples/fib.wat"), "20"];
  for (const [name, program] of programs) {
    if (name !== "node20") runFib(`without-koffi: ${name}: waft run`, program, args, project, "6765");
    else {
      const { status, stderr } = spawnSync(program, args, { cwd: project, encoding: "utf8" });
      const isGood = status !== 0 && stderr.includes('waft needs the package "koffi" on this Node: npm install koffi');
      report(isGood, `without-koffi: ${name} names the missing package: ${stderr.trim().split("\n")[0]}`);
    }
  }
}

/** A program that uses the engine: it prints 42 for each tier, and 43 for a text. */
const EMBEDDER = `
const bytes = Uint8Array.from(atob("AGFzbQEAAAABBQFgAAF/AwIBAAcFAQFmAAAKBgEEAEEqCw=="), (c) => c.charCodeAt(0));
const results = ["baseline", "optimizing", "auto"].map((tier) => {
  return NewEngine({ tier }).compile(bytes).instantiate({}).call({}, "f");
});
results.push(NewEngine().compile('(module (func (export "f") (result i32) i32.const 43))').instantiate({}).call({}, "f"));
console.log(results.join());
`;

/** The package under \`require\`, and in one file by a bundler that knows the condition "module". */
async function checkLoaders(name: string, program: string, project: string): Promise<void> {
  const expected = "42,42,42,43";
  const names = [
    "counts",
    "extism",
    "node_wasi",
    "recording",
    "runner",
    "wasi",
    "wasi/program",
    "wasi/threads",
    "webassembly",
    "install",
  ];
  const required = names.map((each) => `if (Object.keys(require("@waft/engine/${each}")).length === 0) throw 1;`);
  const first = 'const { NewEngine } = require("@waft/engine");';
  writeFileSync(join(project, "require.cjs"), [first, ...required, EMBEDDER].join("\n"));
  run(`${name}: require`, program, ["require.cjs"], project, { last: expected });
  writeFileSync(join(project, "bundled.mjs"), `import { NewEngine } from "@waft/engine";\n${EMBEDDER}`);
  const engine = join(project, "node_modules/@waft/engine");
  const bundle = await rollup({
    input: join(project, "bundled.mjs"),
    plugins: [{
      name: "module",
      resolveId: (id) => id === "@waft/engine" ? join(engine, "bundled/mod.js") : undefined,
    }],
    external: (id) => id.startsWith("node:") || id.startsWith("bun:") || id === "koffi",
    onLog: () => {},
  });
  // Beside koffi, but without the engine's files.
  const output = join(project, `bundle-${name}`);
  await bundle.write({ dir: output, format: "esm", inlineDynamicImports: true, entryFileNames: "app.mjs" });
  await bundle.close();
  run(`${name}: a bundle`, program, [join(output, "app.mjs")], project, { last: expected });
}

/** A program that uses components, and a command of WASI: it prints 42. */
const COMPONENTS = `
const component = compileComponent(NewEngine(), \`(component
  (core module $m (func (export "f") (result i32) i32.const 42))
  (core instance $i (instantiate $m))
  (func (export "f") (result u32) (canon lift (core func $i "f"))))\`).instantiate();
runProgram('(module (memory (export "memory") 1) (func (export "_start")))').then(({ status }) => {
  console.log(component.exports.f() + status);
});
`;

/** The packages for programs, without the command: they bring the engine's optional library and nothing else. */
function checkEmbedder(archives: string[], programs: ReadonlyMap<string, string>): void {
  const project = makeProject("embedder", archives.slice(0, 2));
  const installed = readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."));
  report(installed.join() === "@koromix,@waft,koffi", `embedder: installed are ${installed.join(", ")}`);
  const names = [["NewEngine", "engine"], ["compileComponent", "component"], ["runProgram", "component/program"]];
  const programOf = (line: (name: string, path: string) => string) =>
    names.map(([name, path]) => line(name, `"@waft/${path}"`)).join("\n") + COMPONENTS;
  writeFileSync(join(project, "main.mjs"), programOf((name, path) => `import { ${name} } from ${path};`));
  writeFileSync(join(project, "main.cjs"), programOf((name, path) => `const { ${name} } = require(${path});`));
  for (const [name, program] of programs) {
    for (const file of ["main.mjs", "main.cjs"]) {
      run(`embedder: ${name} ${file}`, program, [file], project, { last: "42" });
    }
  }
}

function testHost(name: string, program: string, project: string, tests: string[]): void {
  const left = leftOut(name);
  for (const [file, why] of left) console.log(`       ${name} does not run ${file}: ${why}`);
  const files = tests.filter((test) => !left.some(([file]) => file === test))
    .map((path) => join(project, path.replace(/\.ts$/, ".js")));
  if (options.tier.length > 0) {
    for (const tier of options.tier) {
      run(`${name}: specification suite, ${tier}`, program, ["scripts/spec.js", "--tier", tier], project, { lines: 4 });
    }
    return;
  }
  if (options.only.length > 0) {
    run(`${name}: tests`, program, ["tests/hosts/test_runner.js", ...files], project, { lines: 6 });
    return;
  }
  const bin = join(project, "node_modules/@waft/cli/bin/waft.js");
  runFib(`${name}: waft run`, program, [bin, "run", "examples/fib.wat", "30"], project, "832040");
  // Files of failed tests are repeated (test_runner.ts); the first failure stays in the output.
  run(`${name}: deadline`, program, ["examples/deadline.js"], project, { lines: 3 });
  if (options.costs) {
    return run(`${name}: boundary crossing costs`, program, ["bench/call_costs.js"], project, { lines: 5 });
  }
  run(`${name}: tests`, program, ["tests/hosts/test_runner.js", ...files], project, { lines: 6 });
  run(`${name}: specification suite`, program, ["scripts/spec.js", ...(options.quick ? QUICK : [])], project, {
    lines: 4,
  });
}

/** Runs everything but the installations for other systems. */
async function testHosts(
  project: string,
  archives: string[],
  programs: ReadonlyMap<string, string>,
): Promise<void> {
  runFib("npx waft run", "npx", ["waft", "run", join(ROOT, "examples/fib.wat"), "10"], project, "55");
  runFib("npx @waft/cli run", "npx", ["@waft/cli", "run", join(ROOT, "examples/fib.wat"), "10"], project, "55");
  checkCreate(project);
  if (!isPart && !options.lockfiles) checkTypes(project);
  placeTests(project);
  const tests = selectedTests();
  const hosts: [string, string[]][] = [["deno", [process.execPath, "run", "-A", join(ROOT, "cli.ts")]]];
  for (const [name, path] of programs) {
    if (name === "bun" && !isPart) checkBun(path, archives);
    const isWanted = options.only.length === 0 || options.only.includes("loaders");
    if (isWanted && !options.lockfiles && !options.costs) await checkLoaders(name, path, project);
    if (!options.lockfiles) testHost(name, path, project, tests);
    hosts.push([name, [path, join(project, "node_modules/@waft/cli/bin/waft.js")]]);
  }
  if (!isPart && !options.costs) checkLockfiles(project, hosts);
}

try {
  const archives = await buildNpm(join(folder, "npm"), { kept: engineModulesOfTests() });
  console.log(`built ${archives.map((path) => path.slice(dirname(path).length + 1)).join(", ")}`);
  const programs = new Map<string, string>();
  for (const name of HOSTS) {
    if (options.host.length === 0 || options.host.includes(name)) programs.set(name, runtimePath(name, folder));
  }
  const isOfLoaders = options.only.length === 0 || options.only.includes("loaders");
  if (isOfLoaders && !options.lockfiles && !options.costs && !options.platforms) checkEmbedder(archives, programs);
  const isWhole = !isPart && !options.quick && !options.lockfiles && !options.costs;
  if (isWhole || options.platforms) checkPlatforms(archives, programs);
  if (!options.platforms) await testHosts(makeProject("project", archives), archives, programs);
} finally {
  if (options.keep) console.log(`kept ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
}
const minutes = ((performance.now() - started) / 60_000).toFixed(1);
console.log(failures === 0 ? `all hosts pass (${minutes} min)` : `${failures} failed (${minutes} min)`);
process.exit(failures === 0 ? 0 : 1);
