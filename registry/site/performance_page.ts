/**
 * The page about speed, written from the figures that the benchmark keeps.
 *
 * In: bench/figures.json, which `deno task bench --json` writes. Out: Markdown with plots and the same numbers as tables, so
 * the page cannot say what was not measured. Without figures it says so.
 */
import { existsSync, readFileSync } from "node:fs";

const FIGURES = new URL("../../bench/figures.json", import.meta.url);

/** What the page takes from the figures. */
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
  readonly compile: readonly {
    readonly name: string;
    readonly coldMBs: number;
    readonly warmMBs: number;
    readonly v8OptimizingMBs: number;
  }[];
}

/** The page's Markdown. */
export function performancePage(figures: Figures | undefined = readFigures()): string {
  const opening = `# Performance

How fast compiled code is, what crossing between JavaScript and WebAssembly costs, and how fast waft compiles, each beside
V8's WebAssembly in the same process, one after the other, with the same answers.
`;
  if (figures === undefined) return `${opening}\nThis build keeps no figures; \`deno task bench\` measures them.\n`;
  const { programs, boundary, compile, summary } = figures;
  const slowest = [...programs].sort((a, b) => b.runRatio - a.runRatio);
  const wins = programs.filter((p) => p.runRatio <= 1).length;
  return `${opening}
Measured on ${figures.machine}, by \`deno task bench\`. Times on a shared machine wander, ratios within one run much less.

${
    table(
      ["Geometric mean", "Value", "Target"],
      summary.map((s) => [s.name, fixed(s.value), s.limit === null ? "" : `${s.atLeast ? "≥" : "≤"} ${s.limit}`]),
    )
  }

## Run time

The time of a program once V8 has tiered up, as a multiple of V8's: below 1 waft is faster. Of ${programs.length} programs
${wins} ${wins === 1 ? "is" : "are"} at least as fast as on V8.

${plot("Run time relative to V8 (left of 1×: waft is faster)", slowest.map((p) => [p.name, p.runRatio]))}

${
    table(
      ["Program", "Kind", "waft ms", "V8 ms", "Ratio", "First call to finish, ratio"],
      slowest.map((p) => [p.name, p.kind, fixed(p.waftMs), fixed(p.v8Ms), fixed(p.runRatio), fixed(p.firstRatio)]),
    )
  }

## Crossing the boundary

Calls between JavaScript and WebAssembly go through the host's FFI, which V8's own WebAssembly does not need. A guest
that does much for each call does not notice.

${plot("Cost relative to V8 (left of 1×: waft is cheaper)", boundary.map((b) => [b.name, b.ratio]))}

${
    table(
      ["Crossing", "waft ns", "V8 ns", "Ratio"],
      boundary.map((b) => [b.name, fixed(b.waftNs, 1), fixed(b.v8Ns, 1), fixed(b.ratio)]),
    )
  }

## Compiling

Megabytes of code section for each second: the first module of a process (cold), those after it (warm), and V8's
optimizing compiler on one thread.

${
    compile.length === 0 ? "The modules for this part were not at hand when the figures were taken." : table(
      ["Module", "Cold MB/s", "Warm MB/s", "V8 optimizing MB/s"],
      compile.map((c) => [c.name, fixed(c.coldMBs), fixed(c.warmMBs), fixed(c.v8OptimizingMBs)]),
    )
  }

## What costs time

- Stopping a guest at a deadline or when its fuel is gone costs a little in every loop; it is off unless you ask for it.
- \`bounds: "explicit"\` compares every access with the memory's length. The default lets the processor find what is out
  of bounds.
- Compile once, instantiate often: see [Embedding](embedding.md).
`;
}

function readFigures(): Figures | undefined {
  return existsSync(FIGURES) ? JSON.parse(readFileSync(FIGURES, "utf8")) as Figures : undefined;
}

function plot(title: string, bars: readonly (readonly [string, number])[]): string {
  return ["```plot", title, ...bars.map(([name, value]) => `${name} ${fixed(Math.max(0.01, value))}`), "```"].join(
    "\n",
  );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((c) => c.replaceAll("|", "\\|")).join(" | ")} |`;
  const rule = head.map((_, i) => i === 0 ? "---" : "---:");
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

function fixed(value: number, digits = 2): string {
  return value.toFixed(digits);
}
