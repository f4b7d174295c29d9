/**
 * The first result of npm packages with waft in place of the global `WebAssembly`, in fresh processes without a cache:
 * `deno task bench:packages [--rounds N] [--host NAME] [NAME…]`. In: the packages of bench/packages/package-lock.json,
 * which npm installs into the cache folder, and the engine's npm package, built from this tree. Out: per package the
 * times from importing it to its first result, and the peak memory of the process, relative to the host's own; their
 * geometric means. Times of the engine's own import are not included.
 *
 * Pairs of processes alternate. `cpu` is the processor time of a whole process beyond that of an empty one, or beyond
 * that of one that imports the engine: it is meaningful on a busy machine, too.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { readTaskLine } from "../task_options.ts";
import { installPackages } from "../../tests/support/test_packages.ts";
import { installEngine } from "../../bench/engine_package.ts";
import { geometricMean, median } from "../../bench/measure.ts";
import { PACKAGE_ROWS } from "../../bench/package_rows.ts";

/** The report of a process. */
interface Run {
  readonly ms: number;
  /** User and system time of the process, in milliseconds. */
  readonly cpu: number;
  readonly maxResident: number;
  readonly result: string;
}

type Side = "host" | "waft";

const HOSTS: Readonly<Record<string, readonly string[]>> = {
  deno: [process.execPath, "run", "-A", "--no-check", "--quiet", "--no-config", "--node-modules-dir=manual"],
  node: ["node", "--no-warnings"],
};

/** The child's program: the engine, or nothing, and then the row's program. */
function childText(side: Side, program: string): string {
  return `import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import process from "node:process";
const require = createRequire(import.meta.url);
const file = (path) => readFileSync(new URL("node_modules/" + path, import.meta.url));
${side === "waft" ? 'await import("@waft/engine/install");' : ""}
const start = performance.now();
const result = await (async () => { ${program} })();
const ms = performance.now() - start;
const { userCPUTime, systemCPUTime } = process.resourceUsage();
const cpu = (userCPUTime + systemCPUTime) / 1000;
// maxRSS would be that of the parent process, if that is more.
const maxResident = Number(/VmHWM:\\s*(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0) * 1024;
process.stdout.write(JSON.stringify({ ms, cpu, maxResident, result: JSON.stringify(result) ?? "" }) + "\\n",
  () => process.exit(0));
`;
}

/** Runs a program on one side. Throws an Error with its output if it fails. */
function runChild(host: readonly string[], folder: string, side: Side, name: string, program: string): Run {
  const script = join(folder, `${side}-${name.replace("/", "-")}.mjs`);
  writeFileSync(script, childText(side, program));
  const [command, ...args] = host;
  const options = { encoding: "utf8", cwd: folder, timeout: 300_000, maxBuffer: 1 << 26 } as const;
  const { status, stdout, stderr } = spawnSync(command, [...args, script], options);
  const line = stdout.split("\n").findLast((each) => each.startsWith('{"ms"'));
  if (status !== 0 || line === undefined) {
    throw new Error(`${name} on ${side}: status ${status}\n${stderr.slice(-800)}`);
  }
  return JSON.parse(line) as Run;
}

/** The comparison of one package. */
interface Comparison {
  readonly name: string;
  readonly hostMs: number;
  readonly ratio: number;
  readonly cpuRatio: number;
  readonly memoryRatio: number;
}

/**
 * Compares both sides in `rounds` pairs of processes; `empty` has the processor times of processes without a package.
 */
function compare(
  run: (side: Side) => Run,
  name: string,
  rounds: number,
  empty: Readonly<Record<Side, number>>,
): Comparison {
  const runs: Record<Side, Run[]> = { host: [], waft: [] };
  for (let round = 0; round < rounds; round++) {
    for (const side of ["host", "waft"] as const) runs[side].push(run(side));
  }
  const [expected, actual] = [runs.host[0].result, runs.waft[0].result];
  if (expected !== actual) {
    throw new Error(`${name} differs: ${expected.slice(0, 200)}; with waft ${actual.slice(0, 200)}`);
  }
  const of = (side: Side, key: "ms" | "cpu" | "maxResident") => median(runs[side].map((each) => each[key]));
  const cpu = (side: Side) => Math.max(of(side, "cpu") - empty[side], 1);
  return {
    name,
    hostMs: of("host", "ms"),
    ratio: of("waft", "ms") / of("host", "ms"),
    cpuRatio: cpu("waft") / cpu("host"),
    memoryRatio: of("waft", "maxResident") / of("host", "maxResident"),
  };
}

function line({ name, hostMs, ratio, cpuRatio, memoryRatio }: Comparison): string {
  const figures = [
    hostMs.toFixed(0).padStart(8),
    ...[ratio, cpuRatio, memoryRatio].map((x) => x.toFixed(2).padStart(8)),
  ];
  return `${name.padEnd(28)}${figures.join("")}`;
}

/** Installs the packages and the engine of this tree in a folder of their own. */
function install(scratch: string): string {
  const packages = installPackages(fileURLToPath(new URL("../../bench/packages/", import.meta.url)));
  const folder = join(scratch, "project");
  mkdirSync(folder);
  spawnSync("cp", ["-r", "--reflink=auto", join(packages, "node_modules"), folder]);
  installEngine(folder);
  return folder;
}

if (import.meta.main) {
  const task = {
    name: "task bench:packages",
    about: "Compares the first results of npm packages with waft's WebAssembly and with the host's.",
    operands: "[NAME…]",
    options: {
      rounds: { value: "N", least: 1, help: "pairs of processes per package", default: "5" },
      host: {
        value: "NAME",
        words: ["deno", "node"],
        help: "JavaScript runtime: deno, or node for the one on the PATH",
        default: "deno",
      },
    },
  } as const;
  const { values: { rounds, host: hostName }, operands } = readTaskLine(task);
  const host = HOSTS[hostName];
  const scratch = mkdtempSync(join(tmpdir(), "waft-packages-"));
  try {
    const folder = install(scratch);
    const nothing = (side: Side) =>
      median(Array.from({ length: rounds }, () => runChild(host, folder, side, "nothing", "return 0").cpu));
    const empty = { host: nothing("host"), waft: nothing("waft") };
    console.log(
      `${"package".padEnd(28)}${["host ms", "time ×", "cpu ×", "memory ×"].map((x) => x.padStart(8)).join("")}`,
    );
    const done: Comparison[] = [];
    for (const [name, program] of PACKAGE_ROWS) {
      if (operands.length > 0 && !operands.some((operand) => name.includes(operand))) continue;
      done.push(compare((side) => runChild(host, folder, side, name, program), name, rounds, empty));
      console.log(line(done[done.length - 1]));
    }
    const mean = (key: "ratio" | "cpuRatio" | "memoryRatio") => geometricMean(done.map((each) => each[key]));
    const [ratio, cpuRatio, memoryRatio] = [mean("ratio"), mean("cpuRatio"), mean("memoryRatio")];
    console.log(line({ name: "geometric mean", hostMs: 0, ratio, cpuRatio, memoryRatio }));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
