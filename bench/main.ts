/**
 * The benchmark: `deno task bench [--quick] [--filter TEXT] [--only PART,…] [--json FILE]`. Runs every program on waft
 * and on V8's WebAssembly in this process, then first results and warm-up in fresh processes, boundary crossings, and
 * compile speed; prints one table for each. `kernels`, measured only on request, builds programs in Java, Kotlin and
 * Scala with compilers from Maven Central. Exit status 1 if a program fails or the engines disagree; times never affect
 * it.
 */
import { NewEngine } from "@waft/engine";
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import process from "node:process";
import { encodeModule } from "../engine/binary/encode.ts";
import { measureBoundary } from "./boundary.ts";
import { measureArtifacts } from "./artifacts.ts";
import { measureCollector } from "./collector.ts";
import { measureControl } from "./control.ts";
import { type RunProgram, withEnginePackage } from "./engine_package.ts";
import { measureFirst } from "./first_result.ts";
import { measureCompile } from "./compile_speed.ts";
import { FULL, QUICK } from "./measure.ts";
import { buildKernels, LANGUAGES, measureKernels } from "./kernels.ts";
import { BIG_MODULES, fetchModule } from "./modules.ts";
import { measureParallel } from "./parallel.ts";
import { programPath, PROGRAMS } from "./programs.ts";
import { report, type Results, summarize } from "./report.ts";
import { measureProgram } from "./run_time.ts";
import { measureWarmUps } from "./warm_up.ts";
import { V8, waftSide } from "./sides.ts";
import { oneOf, progress, readTaskLine } from "../scripts/task_options.ts";

const PARTS = ["run", "first", "warm-up", "boundary", "control", "compile", "kernels"] as const;
const task = {
  name: "task bench",
  about: "Compares waft with V8: programs, boundary crossings, control, compile speed.",
  options: {
    quick: { help: "shorter runs, fewer modules" },
    filter: { value: "TEXT", help: "only programs and languages whose names contain TEXT", default: "" },
    only: {
      value: "PART,…",
      help: `only these parts: ${PARTS.join(", ")}`,
      default: "run,first,warm-up,boundary,control,compile",
    },
    json: { value: "FILE", help: "write the figures to FILE" },
  },
} as const;
const { values: options } = readTaskLine(task);
const parts = options.only.split(",").map((part) => oneOf(task, "--only", part, PARTS));
const effort = options.quick ? QUICK : FULL;
const results: Results = { programs: [], compile: [], boundary: [], control: [], first: [], notes: [] };
const engine = NewEngine({ tier: "optimizing" });
const waft = waftSide(engine);
let failures = 0;

/** Measures a part; an error becomes a note and the exit status. */
async function attempt(part: string, measure: () => void | Promise<void>): Promise<void> {
  progress(part);
  try {
    await measure();
  } catch (error) {
    failures++;
    results.notes.push(`${part} failed: ${error instanceof Error ? error.message.split("\n")[0] : error}`);
  }
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(encodeModule(engine.parse(text)));
}

async function runPrograms(): Promise<void> {
  for (const program of chosen) {
    await attempt(program.name, async () => {
      results.programs.push(await measureProgram(program, waft, V8, effort));
    });
  }
  if ("collector".includes(options.filter)) {
    await attempt("collector", () => void results.notes.push(...measureCollector(options.quick)));
  }
  if ("parallel_mandelbrot".includes(options.filter)) {
    await attempt("parallel_mandelbrot", async () => {
      results.notes.push(...await measureParallel(effort));
    });
  }
}

function runWarmUps(run: RunProgram): void {
  const programs = chosen.map((program) => ({ name: program.name, file: programPath(program), n: program.n }));
  const [rounds, ms] = options.quick ? [1, 500] : [3, 2000];
  results.warmUp = measureWarmUps(run, programs, rounds, ms, progress, (name, error) => {
    failures++;
    results.notes.push(`warm-up of ${name} failed: ${error instanceof Error ? error.message.split("\n")[0] : error}`);
  });
}

async function runKernels(): Promise<void> {
  for (const language of LANGUAGES.filter((name) => name.includes(options.filter))) {
    progress(`building kernels in ${language}`);
    const built = buildKernels(language);
    if ("missing" in built) results.notes.push(`kernels in ${language} left out: ${built.missing}`);
    else {
      await attempt(`kernels in ${language}`, async () => {
        results.programs.push(...await measureKernels(language, built.folder, effort));
      });
    }
  }
}

async function compileModules(): Promise<void> {
  if (!options.quick) await attempt("artifact", () => void results.notes.push(...measureArtifacts()));
  for (const module of BIG_MODULES) {
    if (options.quick && module.warmRounds.quick === 0) {
      results.notes.push(`${module.name} left out by --quick`);
      continue;
    }
    const found = fetchModule(module);
    if ("missing" in found) {
      results.notes.push(`${module.name} left out: ${found.missing}`);
      continue;
    }
    await attempt(`compiling ${module.name}`, () => {
      const row = measureCompile(module, found.path, options.quick);
      results.compile.push(row);
      if (module.threads !== undefined && !options.quick) {
        results.compile.push(measureCompile(module, found.path, false, module.threads, row));
      }
    });
  }
}

/** A description of the machine, without which the figures are meaningless. */
function machine(): string {
  const { versions, platform, arch } = process;
  return `${
    cpus()[0]?.model.trim() ?? "unknown processor"
  }, ${platform} ${arch}, Deno ${versions.deno}, V8 ${versions.v8}`;
}

const chosen = PROGRAMS.filter(({ name, kind }) => name.includes(options.filter) || kind.includes(options.filter));
/** Whether the options select a part that a filter of programs does not concern. */
const selects = (part: typeof PARTS[number]) => parts.includes(part) && options.filter === "";
if (parts.includes("run")) await runPrograms();
const [hasFirst, hasWarmUp] = (["first", "warm-up"] as const).map((part) => parts.includes(part));
if (hasFirst || hasWarmUp) {
  await attempt("fresh processes", () => {
    progress("building the engine's package");
    withEnginePackage((run) => {
      if (hasFirst) results.first = measureFirst(run, chosen, programPath, options.quick ? 3 : 15, progress);
      if (hasWarmUp) runWarmUps(run);
    });
  });
}
if (parts.includes("kernels")) await runKernels();
if (selects("boundary")) {
  await attempt("boundary", async () => {
    results.boundary = await measureBoundary(waft, V8, encode, effort);
  });
}
if (selects("control")) {
  await attempt("control", async () => {
    results.control = await measureControl(encode, effort);
  });
}
if (selects("compile")) await compileModules();
progress("");
console.log(report(results));
if (options.json !== undefined) {
  const figures = { machine: machine(), summary: summarize(results), ...results };
  writeFileSync(options.json, JSON.stringify(figures, null, 2) + "\n");
}
process.exit(failures > 0 ? 1 : 0);
