/**
 * Tests everything on 64-bit Arm: `deno task test:arm64 [--quick] [--jobs=N] [FILTER…]`. On an arm64 machine with this very Deno; elsewhere
 * with the arm64 Deno of npm under qemu (Debian's `qemu-user` and cross libraries), both of which are installed when they are
 * missing. In this order:
 *
 *     code       the same bytes from both hosts (tests/arm64/code_hash.ts)
 *     spec       the specification suite in both bounds modes, so many files a process
 *     tests      the runtime's own tests and WASI programs
 *     replay     random modules against V8's results on this host (tests/arm64/replay.ts)
 *
 * Filters (parts of the suite's file names) leave only those files of the suite. `--quick` takes a part of everything.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const PACKAGES = ["qemu-user", "libc6-arm64-cross", "libgcc-s1-arm64-cross", "libstdc++6-arm64-cross"];
const EMULATOR = "qemu-aarch64";
/**
 * Addresses of emulated programs are below this. qemu 7 keeps a record of every page that was ever mapped, at any address: with a small space
 * those of memories that are gone serve again, and reserving gigabytes costs nothing.
 */
const SPACE = "0x8000000000";
const LIBRARIES = "/usr/aarch64-linux-gnu";
const NPM_NAME = "@deno/linux-arm64-glibc";
const NPM_VERSION = "2.9.5";

function run(command: string, args: string[]): number {
  const { code } = new Deno.Command(command, { args, stdin: "null", stdout: "inherit", stderr: "inherit" })
    .outputSync();
  return code;
}

function fail(message: string): never {
  console.error(`error: ${message}`);
  process.exit(1);
}

function isOnPath(program: string): boolean {
  return (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, program)));
}

function installEmulator(): void {
  if (isOnPath(EMULATOR) && existsSync(join(LIBRARIES, "lib"))) return;
  const root = process.getuid?.() === 0;
  if (!isOnPath("apt-get")) fail(`Install ${PACKAGES.join(", ")} (or what your system calls them) and run this again`);
  const command = root ? "apt-get" : "sudo";
  if (run(command, [...(root ? [] : ["apt-get"]), "install", "-y", ...PACKAGES]) !== 0) {
    fail(`Cannot install ${PACKAGES.join(", ")}`);
  }
}

/** Path of the arm64 Deno in the npm cache, which it is put into when it is not there. */
function arm64Deno(): string {
  const info = JSON.parse(
    new TextDecoder().decode(new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).outputSync().stdout),
  ) as { npmCache: string };
  const find = () => {
    if (!existsSync(info.npmCache)) return undefined;
    return readdirSync(info.npmCache)
      .map((registry) => join(info.npmCache, registry, NPM_NAME, NPM_VERSION, "deno"))
      .find((path) => existsSync(path));
  };
  const known = find();
  if (known !== undefined) return known;
  // Outside the project, whose lockfile has no business with it.
  const folder = Deno.makeTempDirSync();
  const args = ["cache", "--no-config", "--no-lock", `npm:${NPM_NAME}@${NPM_VERSION}`];
  const { code } = new Deno.Command(Deno.execPath(), { args, cwd: folder, stdout: "inherit", stderr: "inherit" })
    .outputSync();
  Deno.removeSync(folder, { recursive: true });
  return (code === 0 ? find() : undefined) ?? fail(`Cannot fetch ${NPM_NAME} ${NPM_VERSION} from npm`);
}

const args = process.argv.slice(2);
const quick = args.includes("--quick");
const jobs = Number(
  args.find((arg) => arg.startsWith("--jobs="))?.slice(7) ?? Math.min(4, navigator.hardwareConcurrency),
);
const filters = args.filter((arg) => !arg.startsWith("--"));

const native = Deno.build.arch === "aarch64";
if (!native && Deno.build.os !== "linux") fail("Emulating arm64 needs Linux");
if (!native) installEmulator();
const program = native ? [Deno.execPath()] : [EMULATOR, "-R", SPACE, arm64Deno()];
const environment: Record<string, string> = native ? {} : { QEMU_LD_PREFIX: LIBRARIES, WAFT_EMULATED: "1" };

interface Result {
  code: number;
  output: string;
}

/** Runs the arm64 Deno. */
async function emulated(args: readonly string[]): Promise<Result> {
  const [command, ...first] = program;
  const { code, stdout, stderr } = await new Deno.Command(command!, {
    args: [...first, ...args],
    env: { ...environment, NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  const decoder = new TextDecoder();
  return { code, output: decoder.decode(stdout) + decoder.decode(stderr) };
}

/** A piece of work: what to run, and what to say of it. Returns whether all is well. */
interface Job {
  name: string;
  work(): Promise<boolean>;
}

async function runAll(list: readonly Job[]): Promise<boolean> {
  const waiting = [...list];
  let good = true;
  const worker = async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const start = performance.now();
      const fine = await job.work();
      good &&= fine;
      console.log(`${fine ? "ok    " : "FAILED"} ${job.name} (${((performance.now() - start) / 1000).toFixed(0)} s)`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return good;
}

/** A job that runs a program and is fine when that is and says what `says` matches; its output is shown when it is not. */
function programJob(name: string, args: readonly string[], says = /^/): Job {
  return {
    name,
    work: async () => {
      const { code, output } = await emulated(args);
      const fine = code === 0 && says.test(output);
      if (!fine) console.log(output);
      return fine;
    },
  };
}

// The same code from both hosts.

function codeJob(): Job {
  const args = ["run", "-A", "--no-check", "tests/arm64/code_hash.ts", ...(quick ? ["3"] : [])];
  return {
    name: "code: the same bytes from both hosts",
    work: async () => {
      const here = new TextDecoder().decode(new Deno.Command(Deno.execPath(), { args }).outputSync().stdout);
      const { code, output } = await emulated(args);
      const same = code === 0 && output.includes(here) && here !== "";
      if (!same) console.log(`${here}\nis not\n${output}`);
      return same;
    },
  };
}

// The specification suite.

/** One or two of every family of files, for the quick form. */
const QUICK_FILES =
  /^(address|align|block|br_table|call_indirect|conversions|f32_cmp|float_misc|i32|i64|int_exprs|loop|memory_grow|memory_trap|return_call|simd_bit_shift|simd_i8x16_arith2|simd_lane|simd_i16x8_extmul_i8x16|switch|table_copy|throw|try_table|struct|array|ref_cast|i31|memory_copy64|threads.atomic)\.wast$/;
/** Most bytes of text of one process. */
const BATCH_BYTES = 250_000;
/** Counts over all files. */
const counts = { passed: 0, failed: 0, skipped: 0 };

function specJobs(): Job[] {
  const folder = process.env["WASM_TESTSUITE"] ?? "tests/spec/testsuite";
  if (!existsSync(folder)) {
    console.log(`The specification suite is not at ${folder}: set WASM_TESTSUITE to its folder.`);
    return [];
  }
  const files = readdirSync(folder, { recursive: true }).map(String).filter((name) => name.endsWith(".wast")).sort()
    .filter((name) => filters.length > 0 ? filters.some((f) => name.includes(f)) : !quick || QUICK_FILES.test(name));
  const list: Job[] = [];
  for (let k = 0; k < files.length;) {
    const batch: string[] = [];
    for (let bytes = 0; k < files.length && (bytes === 0 || bytes < BATCH_BYTES) && batch.length < 25; k++) {
      batch.push(files[k]!);
      bytes += statSync(join(folder, files[k]!)).size;
    }
    list.push(specJob(batch));
  }
  return list;
}

function specJob(files: readonly string[]): Job {
  const args = ["run", "-A", "--no-check", "scripts/spec.ts", ...files.map((file) => `=${file}`)];
  return {
    name: `spec: ${files[0]}${files.length > 1 ? ` … ${files.at(-1)}` : ""}`,
    work: async () => {
      const { code, output } = await emulated(args);
      const lines = [...output.matchAll(/^(guard|explicit): (\d+) passed, (\d+) failed, (\d+) skipped/gm)];
      for (const [, , passed, failed, skipped] of lines) {
        counts.passed += Number(passed);
        counts.failed += Number(failed);
        counts.skipped += Number(skipped);
      }
      const fine = code === 0 && lines.length === 2 && lines.every(([, , , , skipped]) => skipped === "0");
      if (!fine) console.log(output);
      return fine;
    },
  };
}

// Tests and random modules.

const TESTS = [
  "tests/embedding/async_test.ts",
  "tests/engine/control_test.ts",
  "tests/engine/division_test.ts",
  "tests/engine/embedding_test.ts",
  "tests/features/exceptions_test.ts",
  "tests/features/tail_calls_test.ts",
  "tests/vector/boundary_test.ts",
  "tests/vector/programs_test.ts",
  "tests/wasi/programs_test.ts",
];
/** The quick form: of the tests of control only those that do not compile many programs in many ways. */
const QUICK_TESTS = [
  ["tests/engine/control_test.ts", "--filter=/deadline|limit|closed/"],
  ["tests/wasi/programs_test.ts"],
] as const;

function testJobs(): Job[] {
  return (quick ? QUICK_TESTS : TESTS.map((file) => [file])).map(([file, ...filter]) =>
    programJob(`tests: ${file}`, ["test", "-A", "--no-check", "--quiet", ...filter, file], /\b[1-9]\d* passed/)
  );
}

function replayJob(): Job {
  const file = Deno.makeTempFileSync({ suffix: ".json" });
  const recorded = run(Deno.execPath(), [
    "run",
    "-A",
    "--no-check",
    "tests/arm64/replay.ts",
    "record",
    file,
    quick ? "20" : "300",
    "1",
  ]);
  if (recorded !== 0) fail("The results of this host were not recorded");
  const job = programJob("replay: random modules", [
    "run",
    "-A",
    "--no-check",
    "tests/arm64/replay.ts",
    "replay",
    file,
  ]);
  return {
    name: job.name,
    work: async () => {
      const fine = await job.work();
      Deno.removeSync(file);
      return fine;
    },
  };
}

const start = performance.now();
const list = filters.length > 0 ? specJobs() : [codeJob(), replayJob(), ...testJobs(), ...specJobs()];
const good = await runAll(list);
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
console.log(`${list.length} jobs in ${((performance.now() - start) / 60_000).toFixed(1)} min`);
process.exit(good ? 0 : 1);
