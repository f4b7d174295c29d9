/**
 * Facts about a module as readable text. In: the facts of inspect_module.ts, whose names come from outside and are
 * escaped here. Out: lines: a summary, imports and exports with their types, and the size of sections and functions.
 */
import { displayName } from "@waft/engine/internal/base/guest_stack";
import { layoutTable, type Palette, safe, type TextOutput } from "../../base/terminal.ts";
import { type FunctionGroup, groupFunctions } from "../../ops/inspection/function_groups.ts";
import type { ModuleFacts, SizedFunction, TypedName } from "../../ops/inspection/inspect_module.ts";

/** Cells of the longest bar. */
const BAR_CELLS = 20;
/** Groups, functions of a group, and functions without groups that the map shows. */
const GROUPS = 8;
const PER_GROUP = 3;
const UNGROUPED = 12;

/** The lines that describe a module. */
export function moduleText(facts: ModuleFacts, output: TextOutput): string {
  const { imports, exports } = facts;
  const { colors, columns } = output;
  return [
    ...summary(facts, output),
    ...section(`imports (${imports.length})`, importLines(imports, output), colors),
    ...section(`exports (${exports.length})`, layoutTable(exports.map(typedRow), columns), colors),
    ...section("size", sizeLines(facts, output), colors),
  ].join("\n");
}

/** A number of bytes with separators. */
export function bytesText(bytes: number): string {
  return bytes.toLocaleString("en-US");
}

function section(title: string, lines: readonly string[], colors: Palette): string[] {
  return lines.length === 0 ? [] : ["", colors.bold(title), ...lines];
}

function summary(
  { bytes, name, features, producers, memories, tables, functions, data, start }: ModuleFacts,
  { colors, columns }: TextOutput,
): string[] {
  const rows: string[][] = [];
  if (name !== undefined) rows.push(["  name", safe(name)]);
  rows.push(["  needs", features.length === 0 ? "WebAssembly 1.0" : features.join(", ")]);
  const named = functions.filter(({ name }) => name !== undefined).length;
  rows.push(["  functions", `${functions.length}${functions.length === 0 ? "" : `, ${named} with names`}`]);
  if (start !== undefined) rows.push(["  start", `function ${start}`]);
  for (const memory of memories) rows.push(["  memory", memory]);
  for (const table of tables) rows.push(["  table", table]);
  if (data.count > 0) {
    rows.push(["  data", `${bytesText(data.bytes)} bytes in ${data.count} segment${data.count === 1 ? "" : "s"}`]);
  }
  for (const { field, name, version } of producers) rows.push([`  ${safe(field)}`, safe(`${name} ${version}`.trim())]);
  return [`${colors.bold("core module")}, ${bytesText(bytes)} bytes`, ...layoutTable(rows, columns)];
}

function typedRow({ name, kind, type }: TypedName): string[] {
  return [`  ${safe(name)}`, `${kind} ${type}`];
}

function importLines(imports: ModuleFacts["imports"], { colors, columns }: TextOutput): string[] {
  const modules = new Map<string, string[][]>();
  for (const entry of imports) {
    const rows = modules.get(entry.module) ?? [];
    modules.set(entry.module, rows);
    rows.push(typedRow(entry).map((cell, k) => k === 0 ? `  ${cell}` : cell));
  }
  return [...modules].flatMap(([name, rows]) => [`  ${colors.dim(safe(name))}`, ...layoutTable(rows, columns)]);
}

/** A map of the size: sections, and within the code its groups and largest functions. */
function sizeLines(facts: ModuleFacts, { colors, columns }: TextOutput): string[] {
  const rows = [...facts.sections].sort((a, b) => b.bytes - a.bytes).flatMap(({ name, bytes }) => {
    const row = sizeRow(bytes, facts.bytes, `  ${safe(name)}`);
    return name === "code" ? [row, ...codeRows(facts)] : [row];
  });
  const numbers = [0, 1].map((column) => Math.max(0, ...rows.map((row) => row[column].length)));
  return layoutTable(
    rows.map(([bytes, share, bar, name]) => [
      `  ${bytes.padStart(numbers[0])}`,
      share.padStart(numbers[1]),
      colors.dim(bar.padEnd(BAR_CELLS)),
      name,
    ]),
    columns,
  );
}

type SizeRow = readonly [bytes: string, share: string, bar: string, name: string];

function sizeRow(bytes: number, whole: number, name: string): SizeRow {
  const share = bytes / whole;
  return [bytesText(bytes), `${Math.round(share * 100)} %`, "█".repeat(Math.round(share * BAR_CELLS)), name];
}

function withDisplayName(one: SizedFunction): SizedFunction {
  return one.name === undefined ? one : { ...one, name: displayName(one.name) };
}

function codeRows({ functions, bytes }: ModuleFacts): SizeRow[] {
  const functionRow = (one: SizedFunction, indent: string) =>
    sizeRow(one.bytes, bytes, `${indent}${safe(one.name ?? `function ${one.index}`)}`);
  const groups = groupFunctions(functions.map(withDisplayName));
  if (groups.length < 2) return (groups[0]?.functions ?? []).slice(0, UNGROUPED).map((one) => functionRow(one, "    "));
  return groups.slice(0, GROUPS).flatMap((group: FunctionGroup) => [
    sizeRow(group.bytes, bytes, `    ${safe(group.name ?? "without a namespace")} (${group.functions.length})`),
    ...group.functions.slice(0, PER_GROUP).map((one) => functionRow(one, "      ")),
  ]);
}
