/**
 * Runs the specification suite: `deno task spec [--matrix] [--guard | --explicit] [--tier auto|baseline|optimizing]
 * [--iterations] [--lazy] [--set KEY=on|off]… [FILTER…]`, in guard and in explicit bounds mode, with the compiler's
 * verifiers enabled. A filter is part of a file's name or, as `=NAME`, the whole name. `--set` forces an optimization,
 * or all of them with the key `all`. `--matrix` repeats the run with each optimization that this build supports
 * inverted, with all off, and with all on: each in a process of its own, because one process has address space for only
 * about ten thousand memories. The suite's folder is WASM_TESTSUITE or the copy fetched by `deno task testsuite`; the
 * tests of proposals in PROPOSAL_TESTSUITE, or their copies, follow. Out: the counts of each run; fails if an assertion
 * fails.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { OPTIMIZATION_ROWS, type OptimizationName } from "@waft/engine/internal/optimizations";
import { optionsOfScript, runScript } from "@waft/engine/internal/script/run_script";
import { TIERINGS } from "../engine/api/settings.ts";
import { hasSuite, specScripts, suiteFolder, suiteHint, suiteNamed } from "../tests/support/suites.ts";
import { progress, readTaskLine, wrongUsage } from "./task_options.ts";

const task = {
  name: "task spec",
  about: "Runs the specification suite (in the folder WASM_TESTSUITE) in both bounds modes. " +
    "FILTER is part of a script's name; =FILTER is a whole name.",
  operands: "[FILTER…]",
  options: {
    guard: { help: "run only with guard pages" },
    explicit: { help: "run only with explicit bounds checks" },
    set: { value: "KEY=on|off", help: "force an optimization, or with the key all every one; repeatable", many: true },
    tier: {
      value: "NAME",
      words: TIERINGS,
      help: "compiler: baseline, optimizing, or auto for both in turn",
      default: "optimizing",
    },
    iterations: { help: "with --tier auto: switch over at iterations of loops, in the running frames as well" },
    batches: { help: "with --tier auto: switch every second function of a module over first" },
    lazy: { help: "with --tier auto: compile each body when it is called, whatever the module's size" },
    matrix: { help: "repeat with each optimization inverted, with all off, and with all on" },
  },
} as const;
const { values: { guard, explicit, set: settings, tier, iterations, batches, lazy, matrix }, operands: filters } =
  readTaskLine(task);
const suite = suiteNamed("wasm");
if (!hasSuite(suite)) {
  console.error(`The specification's suite is not at ${suiteFolder(suite)}: ${suiteHint(suite)}.`);
  process.exit(1);
}
const files = specScripts().filter(({ name }) =>
  filters.length === 0 || filters.some((f) => f.startsWith("=") ? name === f.slice(1) : name.includes(f))
);
for (const [name, isGiven] of Object.entries({ iterations, batches, lazy })) {
  if (isGiven && tier !== "auto") wrongUsage(task, `--${name} is for --tier auto`);
}
/**
 * With `auto`, modules are switched over after none to three calls or iterations, a different number for each script.
 */
const tierOptions = (k: number) => {
  if (tier !== "auto") return { tier };
  const switchOver = iterations ? { tierUpIterations: k % 4 } : { tierUpCalls: k % 4 };
  return { tier, ...switchOver, tierUpBatches: batches, ...(lazy ? { lazyFrom: 0 } : {}) };
};
if (files.length === 0) wrongUsage(task, `no script has ${filters.join(" or ")} in its name`);
const scripts = files.map(({ name, path }) => ({ file: name, text: readFileSync(path) }));
let failures = 0;

type Switches = Partial<Record<OptimizationName, boolean>>;

/** Runs all scripts once; prints failures and counts. */
async function runAll(
  label: string,
  bounds: "guard" | "explicit",
  optimizations: Switches,
  verify: boolean,
): Promise<void> {
  let passed = 0;
  let failed = 0;
  const skipped = new Map<string, number>();
  for (const [k, { file, text }] of scripts.entries()) {
    progress(`${label}: ${k} of ${scripts.length} scripts`);
    const result = await runScript(text, optionsOfScript(file, { bounds, ...tierOptions(k), verify, optimizations }));
    passed += result.passed;
    failed += result.failures.length;
    for (const { line, message } of result.failures) console.log(`${label}: ${file}:${line}: ${message}`);
    for (const [reason, count] of result.skipped) skipped.set(reason, (skipped.get(reason) ?? 0) + count);
  }
  progress("");
  const left = [...skipped.values()].reduce((sum, n) => sum + n, 0);
  const why = left === 0 ? "" : ` (${[...skipped].map(([reason, count]) => `${count} ${reason}`).join(", ")})`;
  console.log(`${label}: ${passed} passed, ${failed} failed, ${left} skipped${why}`);
  console.log(`${passed} passed, ${failed} failed, ${left} skipped`);
  failures += failed;
}

const modes = (["guard", "explicit"] as const).filter((mode) => !(mode === "guard" ? explicit : guard));
const KEYS = OPTIMIZATION_ROWS.filter((row) => row.state === "on" || row.state === "off");

/** The optimizations set by `--set`. */
function switches(): Switches {
  const result: Switches = {};
  for (const setting of settings) {
    const [, key, value] = /^([a-z0-9-]+)=(on|off)$/.exec(setting) ?? [];
    const named = KEYS.filter(({ name }) => key === "all" || key === name);
    if (named.length === 0) {
      const keys = KEYS.map((k) => k.name).join(", ");
      wrongUsage(task, `--set takes KEY=on or KEY=off, not '${setting}'; KEY is one of all, ${keys}`);
    }
    for (const { name } of named) result[name] = value === "on";
  }
  return result;
}

/** Runs this script in a child process with another setting. */
function runChild(bounds: string, setting: string): void {
  const child = spawnSync(process.execPath, [
    ...process.execArgv,
    "run",
    "-A",
    fileURLToPath(import.meta.url),
    `--${bounds}`,
    "--tier",
    tier,
    "--set",
    setting,
    ...filters,
  ], {
    encoding: "utf8",
  });
  const lines = child.stdout.trimEnd().split("\n").slice(0, -1);
  console.log(lines.map((line) => `${bounds}, ${setting.replace("=", " ")}: ${line.replace(/^\w+: /, "")}`).join("\n"));
  if (child.status === 0) return;
  failures++;
  if (child.stderr !== "") console.log(child.stderr);
}

for (const bounds of modes) {
  await runAll(bounds, bounds, switches(), settings.length === 0);
  if (!matrix) continue;
  for (const { name, state } of KEYS) runChild(bounds, `${name}=${state === "on" ? "off" : "on"}`);
  for (const value of ["off", "on"]) runChild(bounds, `all=${value}`);
}
process.exit(failures > 0 ? 1 : 0);
