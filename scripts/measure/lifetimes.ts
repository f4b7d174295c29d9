/**
 * Instances that a synchronous loop makes, runs and drops, and a module that is posted to a Worker, with waft in place
 * of the global `WebAssembly` and with the host's own: `deno task lifetimes [--host NAME] [--rounds N] [--count N]`.
 * In: a program with 1 MiB of memory, and one of 2 MB with many functions; the engine's npm package, built from this
 * tree. Out: per question the peak memory of the process and the times, on both sides, medians of fresh processes.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { NewEngine } from "@waft/engine";
import { median } from "../../bench/measure.ts";
import { runtimePath } from "../hosts/npm_runtimes.ts";
import { installEngine } from "../../bench/engine_package.ts";
import { readTaskLine } from "../task_options.ts";

/** Writes all of its memory. */
const WRITER = `(module (memory (export "memory") 16) (table (export "table") 4 funcref) (elem (i32.const 0) $run)
  (data (i32.const 8) "some bytes")
  (func $run (export "run") (result i32)
    (memory.fill (i32.const 64) (i32.const 1) (i32.const 1048512)) (memory.size)))`;

/** The functions of the large module, and the additions in each. */
const FUNCTIONS = 4000;
const ADDITIONS = 125;

function largeText(): string {
  const parts = Array.from({ length: FUNCTIONS }, (_, k) => {
    const additions = Array.from({ length: ADDITIONS }, (_, n) => `(i32.const ${(k * 31 + n) & 0x1fff}) i32.add`);
    return `(func (export "f${k}") (param i32) (result i32) (local.get 0) ${additions.join(" ")})`;
  });
  return `(module ${parts.join("\n")})`;
}

type Side = "host" | "waft";

/** The beginning of a program. */
const START = `import { readFileSync } from "node:fs";
import process from "node:process";
const engine = process.argv[2] === "waft" ? await import("@waft/engine/install") : undefined;
const report = (figures) => {
  const peak = Number(/VmHWM:\\s*(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0) / 1024;
  process.stdout.write(JSON.stringify({ ...figures, peak }) + "\\n", () => process.exit(0));
};
`;

/** The programs of the questions, by file. */
const PROGRAMS: Readonly<Record<string, string>> = {
  "dropped.mjs": `${START}
const module = new WebAssembly.Module(readFileSync("writer.wasm"));
const count = Number(process.argv[3]), times = [];
for (let k = 0; k < count; k++) {
  const start = performance.now();
  new WebAssembly.Instance(module).exports.run();
  times.push(performance.now() - start);
}
const sum = (part) => part.reduce((a, b) => a + b, 0);
report({ first: sum(times.slice(0, count / 10)), last: sum(times.slice(-count / 10)), total: sum(times) });
`,
  "posted.mjs": `${START}
const { Worker } = await import("node:worker_threads");
const module = new WebAssembly.Module(readFileSync("large.wasm"));
const worker = new Worker(new URL("worker.mjs", import.meta.url), { argv: [process.argv[2]] });
const answer = () => new Promise((resolve) => worker.once("message", resolve));
await answer();
const times = [];
for (let round = 0; round < 2; round++) {
  const start = performance.now();
  worker.postMessage(module);
  await answer();
  times.push(performance.now() - start);
}
report({ first: times[0], again: times[1] });
`,
  "worker.mjs": `import process from "node:process";
import { parentPort } from "node:worker_threads";
if (process.argv[2] === "waft") await import("@waft/engine/install");
parentPort.on("message", (module) => parentPort.postMessage(new WebAssembly.Instance(module).exports.f7(1)));
parentPort.postMessage("ready");
`,
};

/** Runs a program in a fresh process. Throws an Error with its output if it fails. */
function run(host: readonly string[], folder: string, program: string, side: Side, count: number) {
  const [command, ...args] = host;
  const { status, stdout, stderr } = spawnSync(command, [...args, program, side, String(count)], {
    cwd: folder,
    encoding: "utf8",
    timeout: 300_000,
  });
  const line = stdout.split("\n").findLast((each) => each.startsWith("{"));
  if (status !== 0 || line === undefined) throw new Error(`${program} on ${side}: ${stderr.slice(-800)}`);
  return JSON.parse(line) as Record<string, number>;
}

/** Puts the programs, the modules and the engine's package into a folder. */
function install(scratch: string): string {
  const folder = join(scratch, "project");
  mkdirSync(folder);
  installEngine(folder);
  for (const [name, text] of Object.entries(PROGRAMS)) writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, "writer.wasm"), NewEngine().parse(WRITER).bytes);
  writeFileSync(join(folder, "large.wasm"), NewEngine().parse(largeText()).bytes);
  return folder;
}

if (import.meta.main) {
  const task = {
    name: "task lifetimes",
    about: "Compares dropped instances and posted modules with waft's WebAssembly and with the host's.",
    options: {
      host: { value: "NAME", words: ["deno", "node", "bun"], help: "the JavaScript runtime", default: "deno" },
      rounds: { value: "N", least: 1, help: "processes of each side", default: "3" },
      count: { value: "N", least: 100, help: "instances", default: "1000" },
    },
  } as const;
  const { values: { host, rounds, count } } = readTaskLine(task);
  const scratch = mkdtempSync(join(tmpdir(), "waft-lifetimes-"));
  try {
    const folder = install(scratch);
    const command = host === "deno"
      ? [process.execPath, "run", "-A", "--no-check", "--quiet", "--no-config", "--node-modules-dir=manual"]
      : [runtimePath(host === "bun" ? "bun" : "node", scratch)];
    console.log(`medians of ${rounds} processes on ${host}: milliseconds, and peak memory of the process in MiB`);
    for (const program of ["dropped.mjs", "posted.mjs"]) {
      const runs: Record<Side, Record<string, number>[]> = { host: [], waft: [] };
      for (let round = 0; round < rounds; round++) {
        for (const side of ["host", "waft"] as const) runs[side].push(run(command, folder, program, side, count));
      }
      for (const side of ["host", "waft"] as const) {
        const figures = Object.keys(runs[side][0]).map((key) =>
          `${key} ${median(runs[side].map((each) => each[key])).toFixed(1)}`
        );
        console.log(`${program.replace(".mjs", "").padEnd(10)}${side.padEnd(6)}${figures.join("  ")}`);
      }
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
