/**
 * Measures how soon programs are fast: `deno task warm-up [--rounds N] [--seconds N] [--filter TEXT] [FILE=N…]`. In:
 * the benchmark's programs whose names contain TEXT, or the modules FILE, whose export `run` gets N. Out: a table of
 * ratios waft / V8, below 1 where waft is faster, from alternating fresh processes (bench/warm_up.ts), and their mean
 * over time.
 */
import process from "node:process";
import { programPath, PROGRAMS } from "../../bench/programs.ts";
import { withEnginePackage } from "../../bench/engine_package.ts";
import { measureWarmUps, type WarmUpProgram, warmUpTable } from "../../bench/warm_up.ts";
import { progress, readTaskLine } from "../task_options.ts";

const task = {
  name: "task warm-up",
  about: "Compares with V8 how soon programs are fast, in fresh processes without a cache.",
  operands: "[FILE=N…]",
  options: {
    rounds: { value: "N", least: 1, help: "pairs of processes for each program", default: "3" },
    seconds: { value: "N", least: 1, help: "how long each process runs the program", default: "4" },
    filter: { value: "TEXT", help: "only programs of the benchmark whose names contain TEXT", default: "" },
  },
} as const;
const { values: { rounds, seconds, filter }, operands } = readTaskLine(task);

function moduleOf(operand: string): WarmUpProgram {
  const [file, n = "1"] = operand.split("=");
  return { name: file.split("/").at(-1)!, file, n: Number(n) };
}

const programs = operands.length > 0 ? operands.map(moduleOf) : PROGRAMS.filter(({ name }) => name.includes(filter))
  .map((program) => ({ name: program.name, file: programPath(program), n: program.n }));
let failures = 0;
progress("building the engine's package");
withEnginePackage((run) => {
  const { times, curve, programs: results } = measureWarmUps(
    run,
    programs,
    rounds,
    seconds * 1000,
    progress,
    (name, error) => {
      failures++;
      console.error(`${name} failed: ${error instanceof Error ? error.message.split("\n")[0] : error}`);
    },
  );
  progress("");
  console.log(warmUpTable(results));
  console.log(`mean by time: ${curve.map((ratio, k) => `${times[k]} ms ${ratio.toFixed(2)}`).join(", ")}`);
});
process.exit(failures > 0 ? 1 : 0);
