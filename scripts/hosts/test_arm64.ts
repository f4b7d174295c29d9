/**
 * Runs the tests on 64-bit Arm: `deno task test:arm64 [--quick] [--tier NAME] [--jobs N] [--minutes N] [FILTER…]`. On
 * an arm64 machine with the current Deno, elsewhere emulated (arm64_emulator.ts, which fetches missing parts). In this
 * order:
 *
 *     spec       the specification suite in both bounds modes, as groups of files in separate processes
 *     tests      the runtime's own tests and WASI programs
 *     replay     random modules, compared with V8's results on this host (tests/arm64/replay.ts)
 *     recordings runs recorded on this host, replayed there (tests/arm64/recordings.ts)
 *     artifacts  equal artifacts from both hosts, each run on the other (tests/arm64/artifacts.ts)
 *     atomics    the suite's threads files on a processor without atomic instructions
 *
 * Filters (parts of the suite's file names) select files of the suite and skip all other jobs. `--quick` runs a subset
 * of every job. A process over its time or memory limit is killed and counts as failed; nothing is retried.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type Arm64, arm64 } from "./arm64_emulator.ts";
import { type SpecScript, specScripts, suiteFolder, suiteHint, suiteNamed } from "../../tests/support/suites.ts";
import { TIERINGS } from "../../engine/api/settings.ts";
import { readTaskLine } from "../task_options.ts";

/** Memory limit of one emulated process in MiB; the whole suite in one process takes 1,100. */
const MAX_MEBIBYTES = 3000;
/** Time limit of one process in minutes. */
const MAX_MINUTES = 40;
const WATCH_MILLISECONDS = 500;

const task = {
  name: "task test:arm64",
  about: "Runs the tests on 64-bit Arm, emulated on other machines. FILTER is part of a file name in the suite.",
  operands: "[FILTER…]",
  options: {
    quick: { help: "run a subset of files and programs" },
    tier: {
      value: "NAME",
      words: TIERINGS,
      help: "compiler for suite and replay: baseline, optimizing, or auto",
      default: "optimizing",
    },
    jobs: {
      value: "N",
      least: 1,
      help: "number of parallel processes",
      default: String(Math.min(4, navigator.hardwareConcurrency)),
    },
    minutes: { value: "N", least: 1, help: "time limit, in minutes", default: "600" },
  },
} as const;
const { values: { quick, tier, jobs, minutes }, operands: filters } = readTaskLine(task);
const end = performance.now() + minutes * 60_000;

function machine(): Arm64 {
  try {
    return arm64();
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exit(1);
  }
}
const { command, environment, description } = machine();
const emulated = command.length > 1;

interface Result {
  code: number;
  output: string;
}

/** Resident memory of a process in MiB; 0 if it has ended. */
function residentMiB(pid: number): number {
  try {
    return Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** Runs the arm64 Deno within the limits. */
async function run(args: readonly string[], extra: Record<string, string> = {}): Promise<Result> {
  const child = new Deno.Command(command[0], {
    args: [...command.slice(1), ...args],
    env: { ...environment, ...(emulated ? { WAFT_EMULATED: "1" } : {}), NO_COLOR: "1", ...extra },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const last = Math.min(end, performance.now() + MAX_MINUTES * 60_000);
  let why = "";
  const watch = setInterval(() => {
    if (performance.now() > last) why = "killed: time limit\n";
    else if (residentMiB(child.pid) > MAX_MEBIBYTES) why = `killed: more than ${MAX_MEBIBYTES} MiB of memory\n`;
    if (why !== "") child.kill("SIGKILL");
  }, WATCH_MILLISECONDS);
  const { code, stdout, stderr } = await child.output();
  clearInterval(watch);
  const decoder = new TextDecoder();
  return { code: why === "" ? code : 1, output: decoder.decode(stdout) + decoder.decode(stderr) + why };
}

/** A unit of work. `work` returns a description of the failure, or "". */
interface Job {
  name: string;
  work(): Promise<string>;
}

async function runAll(list: readonly Job[]): Promise<boolean> {
  const waiting = [...list];
  let good = true;
  let done = 0;
  const worker = async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const start = performance.now();
      const problem = performance.now() > end ? "not run: time limit" : await job.work();
      good &&= problem === "";
      const seconds = ((performance.now() - start) / 1000).toFixed(0);
      const summary = `${job.name} (${seconds} s; ${++done} of ${list.length})`;
      console.log(problem === "" ? `ok     ${summary}` : `${problem}\nFAILED ${summary}`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return good;
}

/** A job that runs a program; it passes if the program succeeds and its output matches `says`. */
function programJob(name: string, args: readonly string[], says: RegExp, extra?: Record<string, string>): Job {
  return {
    name,
    work: async () => {
      const { code, output } = await run(args, extra);
      return code === 0 && says.test(output) ? "" : `${output}\nexit status ${code}`;
    },
  };
}

/** Runs a script on this host. */
function runHere(args: readonly string[]): string {
  const { code, stdout, stderr } = new Deno.Command(Deno.execPath(), { args: ["run", "-A", "--no-check", ...args] })
    .outputSync();
  const decoder = new TextDecoder();
  if (code !== 0) throw new Error(`${args.join(" ")} failed on this host: ${decoder.decode(stderr)}`);
  return decoder.decode(stdout);
}

// Artifacts: equal bytes from both hosts, each run on the other.

const PROGRAMS = quick ? 3 : 60;

function artifactsJob(): Job {
  const script = "tests/arm64/artifacts.ts";
  const folder = () => Deno.makeTempDirSync({ prefix: "waft-artifacts-" });
  return {
    name: `artifacts: equal bytes from both hosts, each run on the other`,
    work: async () => {
      const [here, there] = [folder(), folder()];
      try {
        runHere([script, "make", here, String(PROGRAMS)]);
        const args = ["run", "-A", "--no-check", script, "make", there, String(PROGRAMS), "run", here];
        const { code, output } = await run(args);
        if (code !== 0 || !/^ran: [1-9]\d*, different: 0, refused: 0$/m.test(output)) {
          return `${output}\nexit status ${code}`;
        }
        const names = readdirSync(here).sort();
        if (names.join() !== readdirSync(there).sort().join()) return `${names} is not ${readdirSync(there).sort()}`;
        const different = names.filter((name) =>
          !readFileSync(join(here, name)).equals(readFileSync(join(there, name)))
        );
        if (names.length === 0 || different.length > 0) return `artifacts differ: ${different}`;
        const says = runHere([script, "run", there]);
        return /^ran: [1-9]\d*, different: 0/m.test(says) ? "" : says;
      } finally {
        for (const path of [here, there]) rmSync(path, { recursive: true });
      }
    },
  };
}

// The specification suite.

/** One or two of every family of files, for --quick. */
const QUICK_FILES = new RegExp(
  "^(?:" + `
    address align block br_table call_indirect conversions f32_cmp float_misc i32 i64 int_exprs loop memory_grow
    memory_trap return_call simd_bit_shift simd_i8x16_arith2 simd_lane simd_i16x8_extmul_i8x16 switch table_copy
    throw try_table struct array ref_cast i31 memory_copy64 proposals.threads.\\w+ compact.*imports.* wide.*
    stack-switching.cont custom-descriptors.ref_cast_desc_eq acquire-release-atomics.*
  `.trim().split(/\s+/).join("|") + ")\\.wast$",
);
/** Processes that share the files: each warms up the engine's code again, and one alone uses only one processor. */
const GROUPS = 4;
/** Counts over all files. */
const counts = { passed: 0, failed: 0, skipped: 0 };

const suite = suiteFolder(suiteNamed("wasm"));

/** The scripts of the suites whose names `takes` accepts. */
function suiteFiles(takes: (name: string) => boolean): SpecScript[] {
  return specScripts().filter(({ name }) => takes(name));
}

function specJobs(): Job[] {
  const files = suiteFiles((name) =>
    filters.length > 0 ? filters.some((filter) => name.includes(filter)) : !quick || QUICK_FILES.test(name)
  );
  // Largest first, each assigned to the smallest group.
  const sized = files.map(({ name, path }) => ({ name, bytes: statSync(path).size }))
    .sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
  const count = Math.min(quick ? 2 : GROUPS, sized.length);
  const groups = Array.from({ length: count }, () => ({ bytes: 0, names: [] as string[] }));
  for (const { name, bytes } of sized) {
    const group = groups.reduce((least, next) => next.bytes < least.bytes ? next : least);
    group.names.push(name);
    group.bytes += bytes + 4000; // fixed cost of a file
  }
  return groups.map(({ names }, k) => specJob(`spec: group ${k + 1} of ${count}, ${names.length} files`, names));
}

function specJob(name: string, files: readonly string[], extra?: Record<string, string>): Job {
  const args = ["run", "-A", "--no-check", "scripts/spec.ts", "--tier", tier, ...files.map((file) => `=${file}`)];
  return {
    name,
    work: async () => {
      const { code, output } = await run(args, extra);
      const lines = [...output.matchAll(/^(guard|explicit): (\d+) passed, (\d+) failed, (\d+) skipped/gm)];
      for (const [, , passed, failed, skipped] of lines) {
        counts.passed += Number(passed);
        counts.failed += Number(failed);
        counts.skipped += Number(skipped);
      }
      const modes = lines.map(([, mode]) => mode).join();
      const fine = code === 0 && modes === "guard,explicit" &&
        lines.every(([, , passed, failed, skipped]) => passed !== "0" && failed === "0" && skipped === "0");
      return fine ? "" : `${output}\nexit status ${code}`;
    },
  };
}

// Tests and random modules.

/** Components: the canonical ABI, adapters, suspended frames, and violations of their rules. */
const COMPONENT_TESTS = [
  "tests/component/build_test.ts",
  "tests/component/hostile_guest_test.ts",
  "tests/component/limits_test.ts",
  "tests/component/passing_test.ts",
  "tests/component/reset_test.ts",
  "tests/component/reset_views_test.ts",
  "tests/component/streams_test.ts",
];

/** Test files and folders, by process. */
const TESTS: readonly (readonly string[])[] = [
  ["tests/wasi"],
  ["tests/threads/sharing_test.ts", "tests/threads/scripts_test.ts"],
  ["tests/vector"],
  ["tests/features"],
  ["--filter=/fuzzer regression/", "tests/fuzz/fuzz_test.ts"],
  [
    "tests/engine/control_test.ts",
    "tests/engine/division_test.ts",
    "tests/engine/conditions_test.ts",
    "tests/engine/embedding_test.ts",
  ],
  ["engine/host", "engine/gc", "engine/artifact/module_round_trip_test.ts", "engine/artifact/artifact_file_test.ts"],
  ["tests/embedding/async_test.ts", "tests/embedding/reset_test.ts", "tests/embedding/large_operations_test.ts"],
  [...COMPONENT_TESTS, "tests/component/lift_lower_test.ts", "tests/component/spec_test.ts"],
  ["artifact", "async_wasi", "serve", "sockets"].map((name) => `tests/component/${name}_test.ts`),
  ["tests/component/adapter_test.ts"],
  // Two of ten programs: a process takes 7 to 16 s emulated, and the tests above use the interfaces of the others.
  ["--filter=/: cli of|: random of/", "tests/component/wasi_programs_test.ts"],
];
/** The subset for --quick: of the control tests only those that do not compile many programs in many configurations. */
const QUICK_TESTS: readonly (readonly string[])[] = [
  ["tests/wasi/programs_test.ts", "tests/wasi/process_test.ts"],
  ["--filter=/deadline|limit|closed/", "tests/engine/control_test.ts"],
  COMPONENT_TESTS,
];

function testJobs(): Job[] {
  return (quick ? QUICK_TESTS : TESTS).map((rest) =>
    programJob(
      `tests: ${rest.filter((arg) => !arg.startsWith("-")).join(" ")}`,
      ["test", "-A", "--no-check", "--quiet", ...rest],
      /\| [1-9]\d* passed \| 0 failed/,
    )
  );
}

/** Number of seeds of random modules. */
const SEEDS = quick ? 20 : 300;

function replayJob(): Job {
  return {
    name: `replay: random modules of ${SEEDS} seeds`,
    work: async () => {
      const file = Deno.makeTempFileSync({ suffix: ".json" });
      try {
        runHere(["tests/arm64/replay.ts", "record", file, String(SEEDS), "1"]);
        const { code, output } = await run(["run", "-A", "--no-check", "tests/arm64/replay.ts", "replay", file, tier]);
        const says = `replay: ${SEEDS} seeds, ${SEEDS * 2} runs, 0 different`;
        return code === 0 && output.includes(says) ? "" : `${output}\nexit status ${code}`;
      } finally {
        rmSync(file);
      }
    },
  };
}

function recordingsJob(): Job {
  return {
    name: `recordings: runs of this host, replayed there`,
    work: async () => {
      const folder = Deno.makeTempDirSync({ prefix: "waft-recordings-" });
      const script = "tests/arm64/recordings.ts";
      try {
        runHere([script, "record", folder, String(SEEDS)]);
        const { code, output } = await run(["run", "-A", "--no-check", script, "replay", folder]);
        return code === 0 && /^recordings: [1-9]\d*, different: 0$/m.test(output)
          ? ""
          : `${output}\nexit status ${code}`;
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  };
}

// A processor without atomic instructions: the code uses loops of exclusive loads and stores.

function oldProcessorJobs(): Job[] {
  if (!emulated) return [];
  const old = { QEMU_CPU: "cortex-a53" };
  const files = suiteFiles((name) => name.startsWith("proposals/threads")).map(({ name }) => name);
  const probe =
    'import { cpuFeatures } from "./engine/host/cpu.ts"; import { currentHost } from "./engine/host/current.ts"; ' +
    'console.log("features:", [...cpuFeatures(currentHost())].join());';
  return [
    programJob("atomics: the emulated processor lacks atomic instructions", ["eval", probe], /^features: $/m, old),
    specJob(`atomics: ${files.length} files without atomic instructions`, files, old),
  ];
}

function all(): Job[] {
  if (!existsSync(suite)) {
    console.log(`The specification's suite is not at ${suite}: ${suiteHint(suiteNamed("wasm"))}.`);
    if (process.env["CI"] !== undefined) process.exit(1);
    return [replayJob(), recordingsJob(), ...testJobs(), artifactsJob()];
  }
  if (filters.length > 0) return specJobs();
  return [...specJobs(), ...testJobs(), replayJob(), recordingsJob(), artifactsJob(), ...oldProcessorJobs()];
}

const start = performance.now();
console.log(description);
const list = all();
const good = await runAll(list);
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
console.log(`${list.length} jobs in ${((performance.now() - start) / 60_000).toFixed(1)} min`);
process.exit(good ? 0 : 1);
