/**
 * The counts of a run as tables, for the terminal and for a page. In: counts. Out: rows of text, the most frequent
 * first. Invariant: names from a module are escaped.
 */
import { safe } from "../../base/terminal.ts";
import { displayName } from "@waft/engine/internal/base/guest_stack";
import type { RunCounts } from "@waft/engine/counts";
import type { CountTable } from "../../pages/counts_page.ts";

/** Rows of a table in the terminal. */
const SHOWN = 12;

interface Place {
  readonly name: string;
  readonly offset: number;
  readonly file?: string;
  readonly line?: number;
}

/** The tables that have rows. */
export function countTables({ functions, loops, allocations, growth, hostCalls }: RunCounts): CountTable[] {
  const tables: CountTable[] = [
    {
      title: "Functions",
      columns: ["calls", "function"],
      rows: functions.map((row) => [number(row.calls), named(row)]),
    },
    {
      title: "Loops",
      columns: ["iterations", "loop"],
      rows: loops.map((row) => [number(row.iterations), placed(row)]),
    },
    {
      title: "Allocations",
      columns: ["objects", "elements", "allocation"],
      rows: allocations.map((row) => {
        const made = `${row.instruction} of type ${row.type}`;
        return [number(row.objects), number(row.elements), `${made} in ${placed(row)}`];
      }),
    },
    {
      title: "Memory growth",
      columns: ["calls", "pages", "memory"],
      rows: growth.map((row) => [number(row.calls), number(row.pages), `memory ${row.memory} in ${placed(row)}`]),
    },
    {
      title: "Host functions",
      columns: ["calls", "ms", "function"],
      rows: hostCalls.map(({ calls, ms, module, name }) => [number(calls), ms.toFixed(3), safe(`${module} ${name}`)]),
    },
  ];
  return tables.filter(({ rows }) => rows.length > 0);
}

function number(count: number): string {
  return count.toLocaleString("en");
}

function named({ name }: Place): string {
  return safe(displayName(name));
}

function placed({ name, offset, file, line }: Place): string {
  const where = line === undefined
    ? `offset 0x${offset.toString(16)}`
    : `${file === undefined ? "line " : `${file}:`}${line}`;
  return safe(`${displayName(name)} (${where})`);
}

/** A table for the terminal: its most frequent rows, numbers to the right. */
export function tableText({ columns, rows }: CountTable): string {
  const shown = [columns, ...rows.slice(0, SHOWN)];
  const widths = columns.map((_, k) => Math.max(...shown.map((row) => row[k]?.length ?? 0)));
  const last = columns.length - 1;
  const lines = shown.map((row) => row.map((text, k) => k === last ? text : text.padStart(widths[k] ?? 0)).join("  "));
  const left = rows.length - SHOWN;
  return [...lines, ...(left > 0 ? [`and ${left} more`] : [])].map((line) => `${line}\n`).join("");
}
