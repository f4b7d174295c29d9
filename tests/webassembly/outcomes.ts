/**
 * All rows, the outcome of a row for a namespace, and V8's outcomes as recorded on Deno. `deno run -A
 * tests/webassembly/outcomes.ts` records them again after a change of the rows or of V8. Other JavaScript runtimes have
 * another V8 or none, so waft is compared with the recorded file there.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ASYNC_ROWS } from "./async_rows.ts";
import { BOUNDARY_ROWS } from "./boundary_rows.ts";
import { DETAIL_ROWS } from "./detail_rows.ts";
import { INTERFACE_ROWS } from "./interface_rows.ts";
import { MODULE_ROWS } from "./module_rows.ts";
import { OBJECT_ROWS } from "./object_rows.ts";
import { STRING_ROWS } from "./string_rows.ts";
import { describe, describeError, type Namespace, type Row } from "./subject.ts";

export const GROUPS: Readonly<Record<string, readonly Row[]>> = {
  INTERFACE_ROWS,
  MODULE_ROWS,
  OBJECT_ROWS,
  BOUNDARY_ROWS,
  STRING_ROWS,
  ASYNC_ROWS,
  DETAIL_ROWS,
};

const FILE = fileURLToPath(new URL("./outcomes.jsonl", import.meta.url));

/** The outcome of a row, as plain data that JSON can represent. */
export async function outcome(W: Namespace, [, run]: Row): Promise<unknown> {
  let seen: unknown;
  try {
    seen = describe(W, await run(W));
  } catch (error) {
    seen = describeError(W, error);
  }
  return JSON.parse(JSON.stringify(seen)) as unknown;
}

/** V8's outcomes by the name of the row. */
export function recordedOutcomes(): Readonly<Record<string, unknown>> {
  const lines = readFileSync(FILE, "utf8").trimEnd().split("\n");
  return Object.fromEntries(lines.map((line) => JSON.parse(line) as [string, unknown]));
}

if (import.meta.main) {
  const lines: string[] = [];
  for (const row of Object.values(GROUPS).flat()) {
    lines.push(JSON.stringify([row[0], await outcome(globalThis.WebAssembly, row)]));
  }
  writeFileSync(FILE, lines.join("\n") + "\n");
}
