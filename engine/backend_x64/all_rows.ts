/**
 * All instruction rows, expanded: for the optimizing compiler and the disassembler, which may use any of them. In: the
 * tables of instructions.ts. Out: the parsed rows by number. Invariant: importing this module fills every column.
 */
import { instructionRow, needRow } from "./expand_rows.ts";
import { ROW_COUNT } from "./instructions.ts";

/** Rows by number. */
export const INSTRUCTION_ROWS: readonly ReturnType<typeof instructionRow>[] = Array.from(
  { length: ROW_COUNT },
  (_, row) => instructionRow(row),
);

INSTRUCTION_ROWS.forEach((_, row) => needRow(row));
