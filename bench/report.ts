/**
 * The benchmark results as text. In: the measurements. Out: a table for each part, the geometric means with their
 * targets, and notes.
 */
import type { BoundaryResult } from "./boundary.ts";
import type { CompileResult } from "./compile_speed.ts";
import { type ControlResult, summarizeControl } from "./control.ts";
import { firstRatios, type FirstResult } from "./first_result.ts";
import { geometricMean } from "./measure.ts";
import { groupOf } from "./programs.ts";
import type { ProgramResult } from "./run_time.ts";
import { type WarmUpFigures, warmUpTable } from "./warm_up.ts";

/** All measurements, with notes on missing ones. */
export interface Results {
  programs: ProgramResult[];
  compile: CompileResult[];
  boundary: BoundaryResult[];
  control: ControlResult[];
  first: FirstResult[];
  warmUp?: WarmUpFigures;
  /** Parts that were left out or failed, with the reason. */
  notes: string[];
}

/** A figure with its limit. */
interface Summary {
  name: string;
  value: number;
  limit: number;
  /** Whether higher is better. */
  atLeast: boolean;
}

/** The figures with targets. */
export function summarize({ programs, compile, boundary, control, first }: Results): Summary[] {
  const list: Summary[] = [];
  const add = (name: string, values: number[], limit: number, atLeast = false) => {
    if (values.length > 0) list.push({ name, value: geometricMean(values), limit, atLeast });
  };
  const group = (wanted: BoundaryResult["group"]) =>
    boundary.filter((row) => row.group === wanted).map((row) => row.ratio);
  // Each feature has its own mean; core WebAssembly comes first.
  const groups = new Map<string, number[]>();
  for (const { kind, runRatio } of programs) {
    const name = groupOf(kind);
    groups.set(name, [...groups.get(name) ?? [], runRatio]);
  }
  for (const [name, ratios] of [...groups].sort(([a], [b]) => Number(b === "core") - Number(a === "core"))) {
    const title = name === "core" ? "run time / V8 after tier-up" : `run time of ${name} / V8 (${ratios.length})`;
    add(title, ratios, name.startsWith("gc") ? 2 : 1.6);
  }
  add("first call to finish / V8", programs.map((row) => row.firstRatio), Infinity);
  add(
    "warm compile speed / V8 optimizing",
    compile.filter(({ threads }) => threads === 1).map((row) => row.warmToV8),
    6,
    true,
  );
  add("JS → wasm / V8", group("JS to wasm"), 6);
  add("wasm → JS / V8", group("wasm to JS"), 8);
  add("trap / V8", group("trap"), Infinity);
  add("instantiate / V8", group("instantiate"), 3);
  const firstInProcess = firstRatios(first);
  if (firstInProcess !== undefined) {
    add("first result in a fresh process / V8", [firstInProcess.mean], 1.3);
    add("the worst of them", [firstInProcess.worst], 3);
  }
  for (const figure of summarizeControl(control)) list.push({ ...figure, atLeast: false });
  return list;
}

function table(head: string[], rows: string[][]): string {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
  const line = (cells: string[]) =>
    cells.map((cell, i) => i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])).join("  ").trimEnd();
  return [line(head), line(widths.map((width) => "─".repeat(width))), ...rows.map(line)].join("\n");
}

const fixed = (value: number, digits = 2) => value.toFixed(digits);

/** A table with a row for each result, by columns; undefined if there are no results. */
function resultTable<Row>(
  rows: readonly Row[],
  columns: readonly (readonly [title: string, cell: (row: Row) => string])[],
): string | undefined {
  if (rows.length === 0) return undefined;
  return table(columns.map(([title]) => title), rows.map((row) => columns.map(([, cell]) => cell(row))));
}

function controlDigits({ unit }: ControlResult): number {
  return unit === "ns" ? 0 : 2;
}

/** The whole report. */
export function report(results: Results): string {
  const parts = [
    resultTable(results.programs, [
      ["program", (row) => row.name],
      ["kind", (row) => row.kind],
      ["waft ms", (row) => fixed(row.waftMs)],
      ["V8 ms", (row) => fixed(row.v8Ms)],
      ["ratio", (row) => fixed(row.runRatio)],
      ["first ms", (row) => fixed(row.waftFirstMs)],
      ["V8 first ms", (row) => fixed(row.v8FirstMs)],
      ["first ratio", (row) => fixed(row.firstRatio)],
    ]),
    resultTable(results.boundary, [
      ["boundary", (row) => row.name],
      ["waft ns", (row) => fixed(row.waftNs, 1)],
      ["V8 ns", (row) => fixed(row.v8Ns, 1)],
      ["ratio", (row) => fixed(row.ratio)],
    ]),
    resultTable(results.control, [
      ["control", (row) => row.name],
      ["waft", (row) => fixed(row.waft, controlDigits(row))],
      ["against", (row) => fixed(row.against, controlDigits(row))],
      ["unit", (row) => row.unit],
      ["ratio", (row) => fixed(row.ratio)],
    ]),
    resultTable(results.first, [
      ["fresh process", (row) => row.compiledOnly ? `${row.name}, compiled only` : row.name],
      ["waft ms", (row) => fixed(row.waftMs)],
      ["V8 ms", (row) => fixed(row.v8Ms)],
      ["ratio", (row) => fixed(row.ratio)],
      ["compile ms", (row) => fixed(row.compileMs)],
      ["import ms", (row) => fixed(row.importMs, 0)],
      ["memory ×", (row) => fixed(row.memoryRatio)],
    ]),
    results.warmUp === undefined ? undefined : warmUpTable(results.warmUp.programs),
    resultTable(results.compile, [
      ["compile", (row) => row.name],
      ["code MB", (row) => fixed(row.codeBytes / 1e6)],
      ["cold MB/s", (row) => fixed(row.coldMBs)],
      ["warm MB/s", (row) => fixed(row.warmMBs)],
      ["V8 optimizing", (row) => fixed(row.v8OptimizingMBs)],
      ["V8 baseline", (row) => fixed(row.v8BaselineMBs)],
      ["cold ×", (row) => fixed(row.coldToV8)],
      ["warm ×", (row) => fixed(row.warmToV8)],
      ["peak MiB", (row) => fixed(row.residentMiB, 0)],
    ]),
    table(["geometric mean", "value", "target", "met"], summarize(results).map(summaryCells)),
    results.notes.map((note) => `note: ${note}`).join("\n"),
  ];
  return parts.filter((part) => part !== undefined && part !== "").join("\n\n");
}

function summaryCells({ name, value, limit, atLeast }: Summary): string[] {
  if (!Number.isFinite(limit)) return [name, fixed(value), "", ""];
  const isMet = atLeast ? value >= limit : value <= limit;
  return [name, fixed(value), `${atLeast ? "≥" : "≤"} ${limit}`, isMet ? "yes" : "no"];
}
