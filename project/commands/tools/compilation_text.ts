/** The text of `waft run --explain-compile`. In: the report of one compilation. Out: lines for stderr. */
import type { CompilationReport, FunctionReport } from "@waft/engine";
import { displayName } from "@waft/engine/internal/base/guest_stack";
import { escapeHostile } from "../../base/diagnostic.ts";

const KERNELS = { native: "as machine code", wasm: "as WebAssembly of the host", typescript: "as TypeScript" } as const;

/** The first line: which compiler, where, how long, how much. */
function headline({ tier, kernel, origin, part, ms, afterMs, codeBytes, functions }: CompilationReport): string {
  const of = part === "module" ? "" : part === "loop" ? "a loop of " : "hot functions first: ";
  const what = of + `${functions.length} function${functions.length === 1 ? "" : "s"}, ${codeBytes} bytes of code`;
  if (origin === "cache") return `loaded from the cache in ${ms.toFixed(1)} ms: ${what}, optimized`;
  const compiler = tier === "baseline" && kernel !== undefined
    ? `the baseline compiler (${KERNELS[kernel]})`
    : "the optimizing compiler";
  const where = origin === "background" ? " in a helper thread" : "";
  const when = afterMs === undefined ? "" : `, in use ${afterMs.toFixed(0)} ms after the first instance`;
  return `compiled by ${compiler}${where} in ${ms.toFixed(1)} ms: ${what}${when}`;
}

function functionLine({ index, name, tier, bodyBytes, codeBytes, ms }: FunctionReport): string {
  const cells = [
    String(index).padStart(6),
    tier.padEnd(10),
    (bodyBytes > 0 ? String(bodyBytes) : "").padStart(8),
    String(codeBytes).padStart(8),
    (ms === undefined ? "" : ms.toFixed(3)).padStart(10),
  ];
  return `${cells.join("  ")}  ${name === undefined ? "" : escapeHostile(displayName(name))}`.trimEnd();
}

/** The report as text: a headline, and a line per function. */
export function compilationText(report: CompilationReport): string {
  const head = [
    "index".padStart(6),
    "compiler".padEnd(10),
    "body".padStart(8),
    "code".padStart(8),
    "ms".padStart(10),
    "name",
  ].join("  ");
  return [headline(report), head, ...report.functions.map(functionLine), ""].join("\n");
}
