/**
 * The tools that look into programs, on programs of each kind, as a table: `deno task tools [FILTER…]`. In: programs of
 * the tree, and sql.js and esbuild, which npm fetches. Out: the table; exit status 1 if a cell is neither right nor a
 * refusal that the program's row names.
 */
import process from "node:process";
import { BIG_MODULES, fetchModule } from "../bench/modules.ts";
import { MATRIX_PROGRAMS, matrixCell, type MatrixProgram, TOOL_NAMES } from "../tests/support/tool_matrix.ts";
import { readTaskLine } from "./task_options.ts";

const { operands } = readTaskLine({
  name: "task tools",
  about: "Runs inspect, explore, profile, debug and replay on programs of each kind and prints a table.",
  operands: "[FILTER…]",
  options: {},
});

/** How to call the large modules; their imports trap. */
const CALLS: Readonly<Record<string, Omit<MatrixProgram, "name" | "file">>> = {
  "sql-wasm": { flags: ["--unknown-imports", "trap", "--invoke", "U"], args: ["100"], stop: "U", explored: "U" },
  "esbuild": {
    flags: ["--unknown-imports", "trap", "--invoke", "run"],
    args: ["0", "0"],
    stop: "run",
    explored: "run",
    status: 134,
  },
};

const large = BIG_MODULES.flatMap((module): MatrixProgram[] => {
  const found = fetchModule(module);
  const call = CALLS[module.name];
  if ("missing" in found) console.log(`${module.name}: ${found.missing}`);
  return "missing" in found || call === undefined ? [] : [{ name: module.name, file: found.path, ...call }];
});

const isChosen = ({ name }: MatrixProgram) => operands.length === 0 || operands.some((word) => name.includes(word));
console.log(`| program | ${TOOL_NAMES.join(" | ")} |\n|${" --- |".repeat(TOOL_NAMES.length + 1)}`);
for (const program of [...MATRIX_PROGRAMS, ...large].filter(isChosen)) {
  const cells = TOOL_NAMES.map((tool) => matrixCell(program, tool));
  console.log(`| ${program.name} | ${cells.map(({ text }) => text).join(" | ")} |`);
  if (cells.some(({ isRight }) => !isRight)) process.exitCode = 1;
}
