/**
 * The benchmark: `deno task bench [--quick] [--filter TEXT] [--only run,first,boundary,control,compile,kernels] [--json
 * FILE]`. Runs every program on waft and on V8's WebAssembly in this process, then boundary crossings, then compile
 * speed in child processes; prints one table. `kernels`, measured only on request, builds programs in Java, Kotlin and
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
import { measureFirst } from "./first_result.ts";
import { measureCompile } from "./compile_speed.ts";
import { FULL, QUICK } from "./measure.ts";
import { buildKernels, LANGUAGES, measureKernels } from "./kernels.ts";
import { BIG_MODULES, fetchModule } from "./modules.ts";
import { measureParallel } from "./parallel.ts";
import { programPath, PROGRAMS } from "./programs.ts";
import { report, type Results, summarize } from "./report.ts";
import { measureProgram } from "./run_time.ts";
import { V8, waftSide } from "./sides.ts";
import { oneOf, progress, readTaskLine } from "../scripts/task_options.ts";

const PARTS = ["run", "first", "boundary", "control", "compile", "kernels"] as const;
const task = {
  name: "task bench",
  about: "Compares waft with V8: programs, boundary crossings, control, compile speed.",
  options: {
    quick: { help: "shorter runs, fewer modules" },
    filter: { value: "TEXT", help: "only programs and languages whose names contain TEXT", default: "" },
    only: {
      value: "PART,…",
      help: `only these parts: ${PARTS.join(", ")}`,
      default: "run,first,boundary,control,compile",
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

function failed(part: string, error: unknown): void {
  failures++;
  results.notes.push(`${part} failed: ${error instanceof Error ? error.message.split("\n")[0] : error}`);
}

/** A description of the machine, without which the figures are meaningless. */
function machine(): string {
  const { versions, platform, arch } = process;
  return `${
    cpus()[0]?.model.trim() ?? "unknown processor"
  }, ${platform} ${arch}, Deno ${versions.deno}, V8 ${versions.v8}`;
}

const chosen = PROGRAMS.filter(({ name, kind }) => name.includes(options.filter) || kind.includes(options.filter));
if (parts.includes("run")) {
  for (const program of chosen) {
    progress(program.name);
    try {
      results.programs.push(await measureProgram(program, waft, V8, effort));
    } catch (error) {
      failed(program.name, error);
    }
  }
}
if (parts.includes("run") && "collector".includes(options.filter)) {
  progress("collector");
  try {
    results.notes.push(...measureCollector(options.quick));
  } catch (error) {
    failed("collector", error);
  }
}
if (parts.includes("run") && "parallel_mandelbrot".includes(options.filter)) {
  progress("parallel_mandelbrot");
  try {
    results.notes.push(...await measureParallel(effort));
  } catch (error) {
    failed("parallel_mandelbrot", error);
  }
}
if (parts.includes("first")) {
  try {
    results.first = measureFirst(chosen, programPath, options.quick ? 3 : 15, progress);
  } catch (error) {
    failed("first results", error);
  }
}
if (parts.includes("kernels")) {
  for (const language of LANGUAGES.filter((name) => name.includes(options.filter))) {
    progress(`kernels in ${language}`);
    const built = buildKernels(language);
    if ("missing" in built) {
      results.notes.push(`kernels in ${language} left out: ${built.missing}`);
      continue;
    }
    try {
      results.programs.push(...await measureKernels(language, built.folder, effort));
    } catch (error) {
      failed(`kernels in ${language}`, error);
    }
  }
}
if (parts.includes("boundary") && options.filter === "") {
  progress("boundary");
  const encode = (text: string) => new Uint8Array(encodeModule(engine.parse(text)));
  try {
    results.boundary = await measureBoundary(waft, V8, encode, effort);
  } catch (error) {
    failed("boundary", error);
  }
}
if (parts.includes("control") && options.filter === "") {
  progress("control");
  try {
    results.control = await measureControl((text) => new Uint8Array(encodeModule(engine.parse(text))), effort);
  } catch (error) {
    failed("control", error);
  }
}
if (parts.includes("compile") && options.filter === "" && !options.quick) {
  progress("artifact");
  try {
    results.notes.push(...measureArtifacts());
  } catch (error) {
    failed("artifact", error);
  }
}
if (parts.includes("compile") && options.filter === "") {
  for (const module of BIG_MODULES) {
    if (options.quick && module.warmRounds.quick === 0) {
      results.notes.push(`${module.name} left out by --quick`);
      continue;
    }
    progress(`compile ${module.name}`);
    const found = fetchModule(module);
    if ("missing" in found) {
      results.notes.push(`${module.name} left out: ${found.missing}`);
      continue;
    }
    try {
      const row = measureCompile(module, found.path, options.quick);
      results.compile.push(row);
      if (module.threads !== undefined && !options.quick) {
        results.compile.push(measureCompile(module, found.path, false, module.threads, row));
      }
    } catch (error) {
      failed(`compiling ${module.name}`, error);
    }
  }
}
progress("");
console.log(report(results));
if (options.json !== undefined) {
  const figures = { machine: machine(), summary: summarize(results), ...results };
  writeFileSync(options.json, JSON.stringify(figures, null, 2) + "\n");
}
process.exit(failures > 0 ? 1 : 0);
