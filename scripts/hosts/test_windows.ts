/**
 * Runs the tests on Windows x64 under Wine (wine.ts): `deno task test:windows [--quick] [--runtime NAME] [--only
 * TEXT]`. Deno runs this tree; Node and Bun run the npm packages, as in scripts/hosts/test_hosts.ts. Every runtime runs
 * the specification's suite (in the folder WASM_TESTSUITE) in both bounds modes and the test folders below; `--quick`
 * runs a subset on the other runtimes and the folders that concern the host. Without `--quick`, the single executable
 * and the installation of a bundle are tested, too. Out: one line per step with its time; status 1 if a step failed.
 */
import { spawnSync } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { VERSION } from "../../project/base/version_string.ts";
import { bundledScripts, bundleLayout } from "../../project/versions/bundle_layout.ts";
import { singleSteps } from "../../tests/support/single_steps.ts";
import {
  PROPOSALS_VARIABLE,
  proposalsFolder,
  scriptNames,
  suiteFolder,
  suiteHint,
  suiteNamed,
} from "../../tests/support/suites.ts";
import { buildNpm } from "../package/build_npm.ts";
import { engineModulesOfTests, leftOut, placeTests, ROOT, sourcesIn } from "./host_project.ts";
import { buildBundle } from "../package/release_bundle.ts";
import { buildSingles } from "../package/single.ts";
import { readTaskLine } from "../task_options.ts";
import { onCopy } from "../package/tree_copy.ts";
import { ignoredTests, LEFT_OUT_FILES, MAX_LEFT_OUT } from "./windows_left_out.ts";
import { WINDOWS_RUNTIMES, windowsPath, type WindowsRuntime, type Wine, wine, withoutNotices } from "./wine.ts";

/** Test folders and files that run on Windows. */
const TESTS = [
  "tests/baseline/forms_test.ts",
  "tests/embedding",
  "tests/engine",
  "tests/plugins",
  "tests/portable/native_test.ts",
  "tests/threads",
  "tests/vector",
  "tests/wasi",
];
/** Tests that run with Deno only, as elsewhere: their sources import each other. */
const DENO_TESTS = ["project/base", "project/plugins", "tests/project"];
/** Tests that start the command in a process for each step, one file at a time. */
const COMMAND_TESTS = ["tests/cli_project"];
/** The subset for `--quick`: tests of the code that differs by host. */
const QUICK_TESTS = [
  "tests/baseline/forms_test.ts",
  "tests/embedding/async_test.ts",
  "tests/embedding/processor_time_test.ts",
  "tests/embedding/reset_test.ts",
  "tests/engine/control_test.ts",
  "tests/engine/host_webassembly_test.ts",
  "tests/portable/native_test.ts",
  "tests/wasi/process_test.ts",
  "tests/wasi/windows_names_test.ts",
];

/** Parts of the suite for `--quick` on Node and Bun: every kind of boundary crossing, memory and fault. */
const QUICK_SUITE = ["imports", "memory_grow", "memory_trap", "call_indirect", "traps", "start", "try_table", "atomic"];

const SUITE = suiteNamed("wasm");
const STEP_MS = 1_200_000;

const task = {
  name: "task test:windows",
  about: "Runs the tests on Deno, Node and Bun for Windows, under Wine.",
  options: {
    quick: { help: "run a subset" },
    runtime: {
      value: "NAME",
      words: WINDOWS_RUNTIMES,
      help: `only this runtime: ${WINDOWS_RUNTIMES.join(", ")}; repeatable`,
      many: true,
    },
    only: {
      value: "TEXT",
      help: "only test files whose path contains TEXT, without the suite; repeatable",
      many: true,
    },
  },
} as const;
const { values: options } = readTaskLine(task);
/** The runtimes of `--quick`: every FFI once; Node 22 has that of Node 20. */
const QUICK_RUNTIMES: readonly WindowsRuntime[] = ["deno", "bun", "node20", "node"];

function isWanted(name: WindowsRuntime): boolean {
  if (options.runtime.length > 0) return options.runtime.includes(name);
  return !options.quick || QUICK_RUNTIMES.includes(name);
}
const folder = mkdtempSync(join(tmpdir(), "waft-windows-"));
const log = join(folder, "output");
const started = performance.now();
let failures = 0;

function machine(): Wine {
  try {
    return wine();
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exit(1);
  }
}
const windows = machine();

/** Variables of every program: the suite's folder, temporary files, and Deno's modules. */
const VARIABLES = {
  [SUITE.variable]: windowsPath(suiteFolder(SUITE)),
  [PROPOSALS_VARIABLE]: windowsPath(proposalsFolder()),
  TMP: "Z:\\tmp",
  TEMP: "Z:\\tmp",
  DENO_DIR: windowsPath(windows.denoFolder),
};

/** The packages of the lockfile that only Windows on x64 installs. */
function packagesOfWindows(): string[] {
  const { npm } = JSON.parse(readFileSync(join(ROOT, "deno.lock"), "utf8")) as {
    npm: Record<string, { os?: string[]; cpu?: string[] }>;
  };
  return Object.entries(npm).filter(([, { os, cpu }]) =>
    os?.includes("win32") === true && cpu?.includes("x64") === true
  )
    .map(([name]) => `npm:${name}`);
}

/** Fetches the modules of this tree from npm, for Deno on Windows. */
function fillDenoFolder(): void {
  mkdirSync(windows.denoFolder, { recursive: true });
  const cache = (args: readonly string[], cwd: string) => {
    const env = { ...process.env, DENO_DIR: windows.denoFolder };
    const { status, stderr } = spawnSync(process.execPath, ["cache", "--quiet", ...args], {
      cwd,
      encoding: "utf8",
      env,
    });
    if (status !== 0) throw new Error(`Cannot fetch the modules of this tree from npm: ${stderr}`);
  };
  cache(["cli.ts", "mod.ts"], ROOT);
  // Packages for another system are fetched outside of the project, whose lockfile stays as it is.
  cache(["--no-config", "--no-lock", ...packagesOfWindows()], windows.denoFolder);
}

/** Runs a runtime in a directory, as `runProgram` does. */
function run(label: string, runtime: WindowsRuntime, args: readonly string[], says: RegExp, directory = ROOT): void {
  runProgram(label, windows.executable(runtime), args, says, directory);
}

/** `unclear`: the run ended for another reason than the test. */
type Outcome = "passed" | "failed" | "unclear";
const MARKS: Readonly<Record<Outcome, string>> = { passed: "ok    ", failed: "FAILED", unclear: "again " };

/** The execution of a program and the criterion of its success. */
interface RunChoices {
  readonly status?: number;
  readonly variables?: Readonly<Record<string, string>>;
  /** Output of a failure that does not count. */
  readonly unclear?: RegExp | undefined;
}

/** Runs a program in a directory; its output must contain `says`. Shows that part of it, or its end if it fails. */
function runProgram(
  label: string,
  executable: string,
  args: readonly string[],
  says: RegExp,
  directory: string,
  { status: expected = 0, variables = {}, unclear }: RunChoices = {},
): Outcome {
  const start = performance.now();
  const { file, args: whole } = windows.command(executable, args, { ...VARIABLES, ...variables }, directory);
  // A file, because servers that Wine starts inherit the output, and would keep a pipe open.
  const sink = openSync(log, "w");
  const { status, signal } = spawnSync(file, whole, {
    cwd: directory,
    stdio: ["ignore", sink, sink],
    timeout: STEP_MS,
  });
  closeSync(sink);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const output = withoutNotices(readFileSync(log, "utf8")).trimEnd();
  const matched = output.match(says);
  const isGood = status === expected && matched !== null;
  const outcome = isGood ? "passed" : unclear?.test(output) === true ? "unclear" : "failed";
  console.log(`${MARKS[outcome]} ${label} (${seconds} s)${signal === null ? "" : `: ${signal}`}`);
  if (isGood) console.log(`         ${matched[0].replaceAll("\n", "\n         ")}`);
  else console.log(`exit status ${status}\n${output.split("\n").slice(-400).join("\n")}`);
  if (outcome === "failed") failures++;
  return outcome;
}

/** The test files below these paths that the options select. */
function selected(paths: readonly string[]): string[] {
  return paths
    .flatMap((path) => path.endsWith(".ts") ? [path] : sourcesIn(path).filter((file) => file.endsWith("_test.ts")))
    .filter((path) => options.only.length === 0 || options.only.some((text) => path.includes(text)))
    .sort();
}

/** The selected tests of the command. */
function commandTests(): string[] {
  const files = options.quick ? [] : selected(COMMAND_TESTS);
  for (const file of files.filter((name) => name in LEFT_OUT_FILES)) {
    console.log(`       Windows does not run ${file}: ${LEFT_OUT_FILES[file]}`);
  }
  return files.filter((name) => !(name in LEFT_OUT_FILES));
}

/** Runs of the suite in both modes, without a failure. */
const SUITE_PASSES =
  /^guard: [1-9]\d* passed, 0 failed, 0 skipped\r?\n(?:.*\n)*explicit: [1-9]\d* passed, 0 failed, 0 skipped/m;

/** Whether the suite is present and the options select it. */
function hasSuite(): boolean {
  if (options.only.length > 0) return false;
  if (existsSync(suiteFolder(SUITE)) && scriptNames(SUITE).length > 0) return true;
  console.log(`The specification's suite is not at ${suiteFolder(SUITE)}: ${suiteHint(SUITE)}.`);
  if (process.env["CI"] !== undefined) failures++;
  return false;
}

function testDeno(tests: readonly string[], withSuite: boolean): void {
  fillDenoFolder();
  if (withSuite) run("deno: suite", "deno", ["run", "-A", "--no-check", "scripts/spec.ts"], SUITE_PASSES);
  const own = options.quick ? tests : [...tests, ...selected(DENO_TESTS)];
  if (own.length > 0) runTests("deno: tests", own);
  for (const file of commandTests()) {
    // Deno's own thread for pipes fails under Wine now and then; such a run says nothing about the test.
    if (runTests(`deno: ${file}`, [file], /Deno has panicked/) === "unclear") runTests(`deno: ${file}, again`, [file]);
  }
}

/** Runs test files with Deno. */
function runTests(label: string, files: readonly string[], unclear?: RegExp): Outcome {
  const args = ["test", "-A", "--no-check", "--quiet", ...files];
  const says = /^ok \| [1-9]\d* passed.* 0 failed.*/m;
  const outcome = runProgram(label, windows.executable("deno"), args, says, ROOT, { unclear });
  if (outcome !== "unclear") noteIgnored(withoutNotices(readFileSync(log, "utf8")));
  return outcome;
}

/** Tests that Deno ran, and those that it left out although they could run. */
const counts = { run: 0, untested: 0 };

/** Counts the tests that a run left out; one without a row in the list is a failure. */
function noteIgnored(output: string): void {
  const { rows, unlisted } = ignoredTests(output);
  const passed = /^(?:ok|FAILED) \| (\d+) passed.*? (\d+) failed/m.exec(output);
  counts.run += Number(passed?.[1] ?? 0) + Number(passed?.[2] ?? 0);
  counts.untested += rows.filter(([, , kind]) => kind === "untested").length;
  for (const test of unlisted) {
    console.log(`FAILED ${test}: ignored without a row in scripts/hosts/windows_left_out.ts`);
  }
  failures += unlisted.length;
}

/** The share of tests that could run on Windows and are left out. */
function checkLeftOut(): void {
  const share = counts.untested / (counts.run + counts.untested);
  const isGood = share <= MAX_LEFT_OUT;
  console.log(`${isGood ? "ok    " : "FAILED"} ${counts.untested} of ${counts.run + counts.untested} tests left out`);
  if (!isGood) failures++;
}

/** A project with the packages for Windows installed. */
async function makeProject(folder: string): Promise<string> {
  const project = join(folder, "project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }\n');
  const archives = await buildNpm(join(folder, "npm"), { kept: engineModulesOfTests() });
  const args = ["install", "--no-audit", "--no-fund", "--os=win32", "--cpu=x64", ...archives];
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd: project, encoding: "utf8" });
  if (status !== 0) throw new Error(`npm cannot install the packages for Windows:\n${stdout}${stderr}`);
  placeTests(project);
  return project;
}

/** The single executable, and the applications that it builds. */
function testSingle(): void {
  const work = join(folder, "single");
  mkdirSync(work);
  const made = onCopy(
    ROOT,
    (tree) => buildSingles({ tree, version: VERSION, out: folder, platforms: ["windows/amd64"] }),
  );
  const variables = { WAFT_HOME: windowsPath(join(folder, "single-home")), WAFT_REGISTRY: "http://127.0.0.1:1" };
  for (const { label, program, args, directory, says, fails } of singleSteps(work, ".exe")) {
    const file = program === "waft" ? made[0]?.file ?? "" : join(work, program.built);
    const options = { variables, status: fails ? 2 : 0 };
    runProgram(`single executable: ${label}`, file, args, says, join(work, directory), options);
  }
}

/** A bundle installs itself, and its launcher starts it. */
function testInstallation(): void {
  const bundle = join(folder, "bundle"), home = join(folder, "home");
  onCopy(ROOT, (tree) => {
    for (const [path, bytes] of buildBundle(tree, VERSION, { threshold: 1, keys: [] })) {
      mkdirSync(join(bundle, path, ".."), { recursive: true });
      writeFileSync(join(bundle, path), bytes);
    }
  });
  const platform = "windows/amd64";
  for (const [name, source] of bundledScripts(platform)) {
    copyFileSync(join(ROOT, "installer", source), join(bundle, name));
  }
  copyFileSync(windows.executable("deno"), join(bundle, bundleLayout(platform).deno));
  const directory = join(home, "own");
  const command = windowsPath(join(directory, bundleLayout(platform).command));
  const steps: readonly (readonly [words: readonly string[], says: RegExp, status?: number])[] = [
    [
      [windowsPath(join(bundle, "waft.cmd")), "self", "install", "--yes"],
      /^installed waft /m,
    ],
    [[command, "--version"], new RegExp(`^${VERSION}`, "m")],
    [[command, `+${VERSION}`, "run", windowsPath(join(ROOT, "examples/fib.wat")), "20"], /^6765/m],
    [[command, "+9.9.9", "--version"], /^waft: version 9\.9\.9 \(named by WAFT_RUNTIME\) is not installed/m, 1],
    [[command, "+..\\..\\bundle", "--version"], /^waft: the version \(named by WAFT_RUNTIME\) has no valid name/m, 1],
    [[command, "+.", "--version"], /^waft: the version \(named by WAFT_RUNTIME\) has no valid name/m, 1],
    [[command, "version", "list"], new RegExp(`^\\*  ${VERSION} `, "m")],
    [[command, "self", "uninstall", "--yes"], /run install\.ps1 -Uninstall/, 2],
  ];
  const variables = { WAFT_HOME: windowsPath(home), WAFT_INSTALL_DIR: windowsPath(directory) };
  for (const [words, says, status = 0] of steps) {
    const label = `installation: ${words.slice(1).join(" ")}`;
    runProgram(label, windows.shell, ["/d", "/c", ...words], says, folder, { status, variables });
  }
}

function testPackages(
  runtime: WindowsRuntime,
  project: string,
  tests: readonly string[],
  withSuite: boolean,
): void {
  const parts = options.quick ? QUICK_SUITE : [];
  if (withSuite) run(`${runtime}: suite`, runtime, ["scripts/spec.js", ...parts], SUITE_PASSES, project);
  const left = leftOut(runtime);
  for (const [file, why] of left) {
    if (tests.includes(file)) console.log(`       ${runtime} does not run ${file}: ${why}`);
  }
  const wanted = tests.filter((test) => !left.some(([file]) => file === test));
  const files = wanted.map((path) => windowsPath(join(project, path.replace(/\.ts$/, ".js"))));
  const counts = /^[1-9]\d* passed, 0 failed, \d+ ignored$/m;
  if (files.length > 0) run(`${runtime}: tests`, runtime, ["tests/hosts/test_runner.js", ...files], counts, project);
}

console.log(windows.description);
const keeper = windows.keepRunning();
try {
  const [tests, withSuite] = [selected(options.quick ? QUICK_TESTS : TESTS), hasSuite()];
  if (isWanted("deno")) testDeno(tests, withSuite);
  const others = WINDOWS_RUNTIMES.filter((name) => name !== "deno" && isWanted(name));
  const project = others.length > 0 ? await makeProject(folder) : "";
  for (const runtime of others) testPackages(runtime, project, tests, withSuite);
  if (!options.quick && options.only.length === 0 && isWanted("deno")) {
    checkLeftOut();
    testSingle();
    testInstallation();
  }
} finally {
  keeper.stop();
  rmSync(folder, { recursive: true, force: true });
}
const minutes = ((performance.now() - started) / 60_000).toFixed(1);
console.log(failures === 0 ? `Windows passes (${minutes} min)` : `${failures} failed (${minutes} min)`);
process.exit(failures === 0 ? 0 : 1);
