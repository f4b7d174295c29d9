/**
 * Inspected files as text and as the data of `--json`. In: an inspection. Out: WIT, or the lines about a module or an
 * artifact. Text from the file is escaped.
 */
import { describeWorld, printPackage } from "@waft/component/internal/wit/print";
import { layoutTable, safe, type TextOutput } from "../../base/terminal.ts";
import { displayName } from "@waft/engine/internal/base/guest_stack";
import type { ArtifactFacts } from "../../ops/inspection/inspect_artifact.ts";
import type { RecordingFacts } from "@waft/engine/internal/recording/describe";
import type { CoredumpFacts, DumpedValue } from "../../ops/inspection/inspect_coredump.ts";
import type { CoreModulePart, InspectedPackages, Inspection } from "../../ops/inspection/inspect_file.ts";
import { bytesText, moduleText } from "./module_facts_text.ts";

/** Functions of an artifact that are shown. */
const LARGEST = 12;

/** An inspection as text that ends with a line break. */
export function inspectionText(inspection: Inspection, output: TextOutput): string {
  switch (inspection.kind) {
    case "wit":
      return witText(inspection.documents);
    case "component":
      return `${witText(inspection.documents)}\n${partLines(inspection).map((line) => `// ${line}\n`).join("")}`;
    case "core module": {
      const { documents, module } = inspection;
      const world = documents.length === 0 ? "" : `\n${output.colors.bold("embedded world")}\n${witText(documents)}`;
      return `${moduleText(module, output)}\n${world}`;
    }
    case "core dump":
      return `${coredumpText(inspection.coredump, output)}\n`;
    case "recording":
      return `${recordingText(inspection.recording, output)}\n`;
    case "artifact":
      return `${artifactText(inspection.artifact, output)}\n`;
  }
}

function witText(documents: readonly InspectedPackages[]): string {
  return documents.map(({ root, packages, omitted }) => {
    const notes = omitted.map((note) => `// omitted: ${note}\n`).join("");
    return `${notes}${printPackage(root, packages.values())}`;
  }).join("\n");
}

/** The size of a component and of the core modules in it, for comments of WIT. */
function partLines({ bytes, modules }: { bytes: number; modules: readonly CoreModulePart[] }): string[] {
  const rows = [...modules].sort((a, b) => b.bytes - a.bytes).map((part) => [
    `  core module ${part.path.join(".")}`,
    `${bytesText(part.bytes)} bytes`,
    `${Math.round(100 * part.bytes / bytes)} %`,
  ]);
  return [`component, ${bytesText(bytes)} bytes`, ...layoutTable(rows)];
}

function artifactText(
  { bytes, engine, machine, cpu, options, codeBytes, functions }: ArtifactFacts,
  { colors, columns }: TextOutput,
) {
  const rows = [
    ["  engine", safe(engine)],
    ["  machine", safe(`${machine}${cpu.length === 0 ? "" : ` with ${cpu.join(", ")}`}`)],
    ["  machine code", `${bytesText(codeBytes)} bytes, ${functions.length} functions`],
    ["  options", safe(options.filter((name) => !name.includes(".")).join(", ") || "none")],
  ];
  const largest = functions.slice(0, LARGEST).map((one) => [`  ${bytesText(one.bytes)}`, `function ${one.index}`]);
  return [
    `${colors.bold("artifact")}, ${bytesText(bytes)} bytes`,
    ...layoutTable(rows, columns),
    "",
    colors.bold("largest functions"),
    ...layoutTable(largest, columns),
  ].join("\n");
}

function coredumpText(
  { program, threads, memories, globals, modules }: CoredumpFacts,
  { colors, columns }: TextOutput,
): string {
  const lines = [`${colors.bold("core dump")} of ${safe(program)}`];
  for (const { name, frames } of threads) {
    const rows = frames.map(({ instance, func, name, offset, locals }, k) => {
      const module = instance === 0 ? "" : ` of ${safe(modules[instance] || `module ${instance}`)}`;
      const title = safe(name === undefined ? `function ${func}` : displayName(name));
      return [`  #${k}`, `${title}${module}`, `+0x${offset.toString(16)}`, safe(locals.map(valueText).join(", "))];
    });
    lines.push("", colors.bold(`stack of ${safe(name)}`), ...layoutTable(rows, columns));
  }
  const rows = [
    ...memories.map((
      { pages, bytes },
      k,
    ) => [`  memory ${k}`, `${pages} page${pages === "1" ? "" : "s"}, ${bytesText(bytes)} bytes not zero`]),
    ...globals.map((value, k) => [`  global ${k}`, safe(valueText(value))]),
  ];
  if (rows.length > 0) lines.push("", colors.bold("state"), ...layoutTable(rows, columns));
  return lines.join("\n");
}

function recordingText(facts: RecordingFacts, { colors, columns }: TextOutput): string {
  const { bytes, module, metered, nans, stack, events, calls, hostCalls, fuel, hash, first } = facts;
  const rows = [
    ["  module", `${bytesText(module.bytes)} bytes, sha256 ${module.sha256}`],
    ["  events", `${events}, ${calls} calls of functions`],
    ["  fuel", metered ? fuel : "not counted"],
    ["  NaNs", nans],
    ["  stack", stack],
    ["  state", `sha256 ${hash}`],
  ];
  const imports = [...hostCalls].sort((a, b) => b.calls - a.calls).map((one) => [
    `  ${safe(`${one.module} ${one.name}`)}`,
    `${one.calls}`,
    one.bytesWritten === 0 ? "" : `${bytesText(one.bytesWritten)} bytes written`,
  ]);
  const lines = [`${colors.bold("recording")}, ${bytesText(bytes)} bytes`, ...layoutTable(rows, columns)];
  if (imports.length > 0) lines.push("", colors.bold("calls of imports"), ...layoutTable(imports, columns));
  const title = first.length < events ? `the first ${first.length} events` : "events";
  lines.push("", colors.bold(title), ...first.map((line) => `  ${safe(line)}`));
  return lines.join("\n");
}

function valueText(value: DumpedValue): string {
  return value === undefined ? "not recorded" : `${value.type} ${value.value}`;
}

/** An inspection as plain data. */
export function inspectionData(inspection: Inspection): object {
  const { kind } = inspection;
  if (kind === "artifact") return { kind, ...inspection.artifact };
  if (kind === "core dump") return { kind, ...inspection.coredump };
  if (kind === "recording") return { kind, ...inspection.recording };
  const { documents } = inspection;
  const worlds = {
    worlds: documents.flatMap(({ root }) => [...root.worlds.values()].map((world) => describeWorld(world))),
    omitted: documents.flatMap(({ omitted }) => omitted),
  };
  if (kind === "core module") return { kind, ...inspection.module, ...worlds };
  if (kind === "component") return { kind, bytes: inspection.bytes, modules: inspection.modules, ...worlds };
  return { kind, ...worlds };
}
