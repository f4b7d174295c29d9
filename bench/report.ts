/**
 * The benchmark results as text: tables, geometric means, and a comparison with the targets.
 */
import type { BoundaryResult } from "./boundary.ts";
import type { CompileResult } from "./compile_speed.ts";
import { type ControlResult, summarizeControl } from "./control.ts";
import { firstRatios, type FirstResult } from "./first_result.ts";
import { geometricMean } from "./measure.ts";
import { groupOf } from "./programs.ts";
import type { ProgramResult } from "./run_time.ts";

/** All measurements, with notes on missing ones. */
export interface Results {
  programs: ProgramResult[];
  compile: CompileResult[];
  boundary: BoundaryResult[];
  control: ControlResult[];
  first: FirstResult[];
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

/** The whole report. */
export function report(results: Results): string {
  const parts: string[] = [];
  if (results.programs.length > 0) {
    parts.push(table(
      ["program", "kind", "waft ms", "V8 ms", "ratio", "first ms", "V8 first ms", "first ratio"],
      results.programs.map((row) => [
        row.name,
        row.kind,
        fixed(row.waftMs),
        fixed(row.v8Ms),
        fixed(row.runRatio),
        fixed(row.waftFirstMs),
        fixed(row.v8FirstMs),
        fixed(row.firstRatio),
      ]),
    ));
  }
  if (results.boundary.length > 0) {
    parts.push(table(
      ["boundary", "waft ns", "V8 ns", "ratio"],
      results.boundary.map((row) => [row.name, fixed(row.waftNs, 1), fixed(row.v8Ns, 1), fixed(row.ratio)]),
    ));
  }
  if (results.control.length > 0) {
    parts.push(table(
      ["control", "waft", "against", "unit", "ratio"],
      results.control.map((row) => [
        row.name,
        fixed(row.waft, row.unit === "ns" ? 0 : 2),
        fixed(row.against, row.unit === "ns" ? 0 : 2),
        row.unit,
        fixed(row.ratio),
      ]),
    ));
  }
  if (results.first.length > 0) {
    parts.push(table(
      ["fresh process", "waft ms", "V8 ms", "ratio", "compile ms", "import ms", "memory ×"],
      results.first.map((row) => [
        row.compiledOnly ? `${row.name}, compiled only` : row.name,
        fixed(row.waftMs),
        fixed(row.v8Ms),
        fixed(row.ratio),
        fixed(row.compileMs),
        fixed(row.importMs, 0),
        fixed(row.memoryRatio),
      ]),
    ));
  }
  if (results.compile.length > 0) {
    parts.push(table(
      ["compile", "code MB", "cold MB/s", "warm MB/s", "V8 optimizing", "V8 baseline", "cold ×", "warm ×", "peak MiB"],
      results.compile.map((row) => [
        row.name,
        fixed(row.codeBytes / 1e6),
        fixed(row.coldMBs),
        fixed(row.warmMBs),
        fixed(row.v8OptimizingMBs),
        fixed(row.v8BaselineMBs),
        fixed(row.coldToV8),
        fixed(row.warmToV8),
        fixed(row.residentMiB, 0),
      ]),
    ));
  }
  parts.push(table(
    ["geometric mean", "value", "target", "met"],
    summarize(results).map(({ name, value, limit, atLeast }) => [
      name,
      fixed(value),
      Number.isFinite(limit) ? `${atLeast ? "≥" : "≤"} ${limit}` : "",
      !Number.isFinite(limit) ? "" : (atLeast ? value >= limit : value <= limit) ? "yes" : "no",
    ]),
  ));
  if (results.notes.length > 0) parts.push(results.notes.map((note) => `note: ${note}`).join("\n"));
  return parts.join("\n\n");
}
