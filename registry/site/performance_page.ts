/**
 * The page about speed, written from the figures that the benchmark keeps.
 *
 * In: bench/figures.json, which `deno task bench --json` writes. Out: Markdown: the result in a sentence, then plots,
 * each with its numbers as a table, so every claim of the page was measured. Without figures the page says so.
 */
import { existsSync, readFileSync } from "node:fs";

const FIGURES = new URL("../../bench/figures.json", import.meta.url);

/** The figures that the page uses. */
interface Figures {
  readonly machine: string;
  readonly summary: readonly {
    readonly name: string;
    readonly value: number;
    readonly limit: number | null;
    readonly atLeast: boolean;
  }[];
  readonly programs: readonly {
    readonly name: string;
    readonly kind: string;
    readonly waftMs: number;
    readonly v8Ms: number;
    readonly runRatio: number;
    readonly firstRatio: number;
  }[];
  readonly boundary: readonly {
    readonly name: string;
    readonly waftNs: number;
    readonly v8Ns: number;
    readonly ratio: number;
  }[];
  /** Absent in figures that were taken without the part `warm-up`. */
  readonly warmUp?: {
    readonly times: readonly number[];
    /** Geometric means over the programs. */
    readonly curve: readonly number[];
    readonly programs: readonly {
      readonly name: string;
      readonly firstRatio: number;
      readonly workRatios: readonly number[];
      readonly waftNearMs: number;
      readonly v8NearMs: number;
    }[];
  };
  readonly compile: readonly {
    readonly name: string;
    readonly coldMBs: number;
    readonly warmMBs: number;
    readonly v8OptimizingMBs: number;
  }[];
}

/** The page's Markdown. */
export function performancePage(figures: Figures | undefined = readFigures()): string {
  if (figures === undefined) {
    return "# Performance\n\nThis build keeps no figures; `deno task bench` in the repository measures them.\n";
  }
  const { programs, boundary, compile } = figures;
  const slowest = [...programs].sort((a, b) => b.runRatio - a.runRatio);
  return `# Performance

${message(figures)}

V8 is the engine that runs WebAssembly in Chrome, Node and Deno. Three times matter: the time that a program runs, the
time that its compilation takes, and the time of a call between JavaScript and WebAssembly. Every ratio is waft's time
divided by V8's: 1 is the same speed, 0.5 half the time, 2 twice the time.

Both run in the same process, one after the other, with the same results. Measured on ${figures.machine} by
\`deno task bench\`. Times on a shared machine vary, ratios within one run much less.

## Run time

The time of a program once V8 has tiered up, as a multiple of V8's: below 1 waft is faster.

${plot("Run time relative to V8 (left of 1×: waft is faster)", slowest.map((p) => [p.name, p.runRatio]))}

${
    table(
      ["Program", "waft ms", "V8 ms", "Ratio", "From first call, ratio", "Kind"],
      slowest.map((p) => [p.name, fixed(p.waftMs), fixed(p.v8Ms), fixed(p.runRatio), fixed(p.firstRatio), p.kind]),
    )
  }

${warmUp(figures)}## Crossing the boundary

Calls between JavaScript and WebAssembly go through the host's FFI, which V8's own WebAssembly does not need. The cost
disappears in guests that do more work in each call.

${plot("Cost relative to V8 (left of 1×: waft is cheaper)", boundary.map((b) => [b.name, b.ratio]))}

${
    table(
      ["Crossing", "waft ns", "V8 ns", "Ratio"],
      boundary.map((b) => [b.name, fixed(b.waftNs, 1), fixed(b.v8Ns, 1), fixed(b.ratio)]),
    )
  }

## Compiling

Megabytes of code section a second: the first module of a process (cold), later ones (warm), and V8's optimizing
compiler on one thread.

${
    compile.length === 0 ? "The modules for this part were not available when the figures were taken." : table(
      ["Module", "Cold MB/s", "Warm MB/s", "V8 optimizing MB/s"],
      compile.map((c) => [c.name, fixed(c.coldMBs), fixed(c.warmMBs), fixed(c.v8OptimizingMBs)]),
    )
  }

## Costs that you choose

- Stopping a guest at a deadline or when its fuel is used up costs a little in every loop; it is off by default.
- \`bounds: "explicit"\` compares every access with the memory's length. The default lets the processor find accesses out
  of bounds.
- Compile once, instantiate often: see [Embedding](embedding.md).

## All means

${
    table(
      ["Geometric mean", "Value", "Target"],
      figures.summary.map((s) => [
        s.name,
        fixed(s.value),
        s.limit === null ? "" : `${s.atLeast ? "≥" : "≤"} ${s.limit}`,
      ]),
    )
  }
`;
}

/** A figure for the first page: its value, its meaning, and the address of its measurement. */
interface Headline {
  readonly value: string;
  readonly meaning: string;
  readonly href: string;
}

/** The geometric mean of all programs' run times, as multiples of V8's; undefined without programs. */
function meanRunTime({ programs }: Figures): number | undefined {
  const sum = programs.reduce((total, { runRatio }) => total + Math.log(runRatio), 0);
  return programs.length === 0 ? undefined : Math.exp(sum / programs.length);
}

/** The figures of the first page; none without the benchmark's. */
export function headlines(figures: Figures | undefined = readFigures()): readonly Headline[] {
  if (figures === undefined) return [];
  const mean = (name: string) => figures.summary.find((row) => row.name === name)?.value;
  type Row = readonly [value: number | undefined, text: (value: number) => string, meaning: string, part: string];
  const rows: readonly Row[] = [
    [
      meanRunTime(figures),
      (value) => `${fixed(value)} ×`,
      `V8's run time, the mean of ${figures.programs.length} programs`,
      "run-time",
    ],
    [
      mean("fuel / without"),
      (value) => `${Math.round((value - 1) * 100)} %`,
      "more run time with an exact limit by fuel",
      "all-means",
    ],
    [
      mean("reset / V8's instantiate"),
      (value) => `${fixed(value, 1)} ×`,
      "the time of a new instance in V8, to reset one to its first state",
      "all-means",
    ],
  ];
  return rows.flatMap(([value, text, meaning, part]) => {
    return value === undefined ? [] : [{ value: text(value), meaning, href: `/performance#${part}` }];
  });
}

/** The section about the time before code is at its best. */
function warmUp({ warmUp }: Figures): string {
  if (warmUp === undefined) return "";
  const { times, curve, programs } = warmUp;
  const seconds = (ms: number) => `${fixed(ms / 1000)} s`;
  return `## Warm-up

Both engines begin with quickly compiled code and replace it while the program runs. In fresh processes without a cache,
from the module's bytes on: the time that waft takes for the work that V8 has done by then, the mean of
${programs.length} programs.

${curvePlot("Time for the work that V8 has done, relative to V8 (below 1×: waft has done it sooner)", times, curve)}

${
    table(
      ["Program", "First run", "Work of 0.1 s", "0.5 s", "2 s", "Near its best: waft", "V8"],
      [...programs].sort((a, b) => b.workRatios[1] - a.workRatios[1]).map((p) => [
        p.name,
        ...[p.firstRatio, ...p.workRatios].map((ratio) => fixed(ratio)),
        ...[p.waftNearMs, p.v8NearMs].map(seconds),
      ]),
    )
  }

`;
}

/** The result in a paragraph; a mean that the figures do not have is left out. */
function message(figures: Figures): string {
  const { programs, summary } = figures;
  const mean = (name: string): number | undefined => summary.find((s) => s.name === name)?.value;
  const run = meanRunTime(figures);
  const [compile, call] = ["warm compile speed / V8 optimizing", "JS → wasm / V8"].map(mean);
  const wins = programs.filter((p) => p.runRatio <= 1).length;
  const sentences = [
    run !== undefined &&
    `Programs compiled by waft run in **${fixed(run)} times** V8's time: the geometric mean of ${programs.length} ` +
      `programs, of which ${wins} ${wins === 1 ? "is" : "are"} at least as fast as on V8.`,
    compile !== undefined &&
    `waft compiles **${fixed(compile, 1)} times** as fast as V8's optimizing compiler.`,
    call !== undefined && `A call from JavaScript costs **${fixed(call, 1)} times** V8's.`,
  ];
  const said = sentences.filter((s) => s !== false).join(" ");
  return said === "" ? "The speed of compiled code, of calls and of compiling, compared with V8." : said;
}

function readFigures(): Figures | undefined {
  return existsSync(FIGURES) ? JSON.parse(readFileSync(FIGURES, "utf8")) as Figures : undefined;
}

function plot(title: string, bars: readonly (readonly [string, number])[]): string {
  return ["```plot", title, ...bars.map(([name, value]) => `${name} ${fixed(Math.max(0.01, value))}`), "```"].join(
    "\n",
  );
}

function curvePlot(title: string, times: readonly number[], ratios: readonly number[]): string {
  return ["```curve", title, ...times.map((ms, k) => `${ms} ${fixed(Math.max(0.01, ratios[k]))}`), "```"].join("\n");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((c) => c.replaceAll("|", "\\|")).join(" | ")} |`;
  const rule = head.map((_, i) => i === 0 ? "---" : "---:");
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

function fixed(value: number, digits = 2): string {
  return value.toFixed(digits);
}
