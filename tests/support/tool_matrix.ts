/**
 * The tools that look into programs, on programs of each kind. In: programs with a call to make. Out: a cell per
 * program and tool: `ok`, the tool's refusal, or its fault. A tool may refuse a program only by the refusals that the
 * program's row names. Invariant: each cell runs the command in a process of its own, in an empty folder.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "./host_arguments.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

/** A program, and the call to make. */
export interface MatrixProgram {
  readonly name: string;
  readonly file: string;
  /** Options of a run. */
  readonly flags?: readonly string[];
  readonly args?: readonly string[];
  readonly input?: string;
  /** A function of the program that the call reaches, as the debugger names it. */
  readonly stop: string;
  /** The functions that `explore` shows; all by default. */
  readonly explored?: string;
  /** The statuses with which the call ends: 0 by default. */
  readonly status?: number;
  /** Words of the refusal, by tool. */
  readonly refused?: Readonly<Partial<Record<ToolName, RegExp>>>;
}

/** The tools. */
type ToolName = "inspect" | "explore" | "profile" | "counts" | "coredump" | "debug" | "replay";

interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line in the cell's folder. */
type Waft = (args: readonly string[], input?: string) => Run;

/** Returns the fault; undefined if there is none. */
type Tool = (program: MatrixProgram, waft: Waft, folder: string) => string | undefined;

const call = ({ flags = [], file, args = [] }: MatrixProgram): string[] => [...flags, file, ...args];

function fault({ status, stderr, stdout }: Run, wanted: number, isRight: boolean): string | undefined {
  if (status === wanted && isRight) return undefined;
  return `status ${status}, not ${wanted}: ${(stderr.trim() || stdout.trim()).split("\n").slice(-3).join(" | ")}`;
}

const profiled = (extra: readonly string[], list: string): Tool => (program, waft) => {
  const run = waft(["profile", "--json", ...extra, ...call(program)], program.input);
  const isRight = run.stdout.includes(`"${list}":[`);
  return fault(run, program.status ?? 0, isRight);
};

const TOOLS: Readonly<Record<ToolName, Tool>> = {
  inspect: ({ file }, waft) => {
    const run = waft(["inspect", "--json", file]);
    return fault(run, 0, run.stdout.includes('"ok":true'));
  },
  explore: ({ file, explored }, waft, folder) => {
    const run = waft(["explore", "-o", "page.html", ...explored === undefined ? [] : ["--function", explored], file]);
    return fault(run, 0, existsSync(join(folder, "page.html")));
  },
  profile: profiled([], "functions"),
  counts: profiled(["--counts"], "loops"),
  coredump: (program, waft, folder) => {
    // Without fuel every program ends in a trap.
    const { status, stderr } = waft(["run", "--bare", "--coredump", "core", "--fuel", "20", ...call(program)]);
    if (!existsSync(join(folder, "core"))) return `status ${status}: ${stderr.trim()}`;
    const run = waft(["inspect", "core"]);
    return fault(run, 0, /#0/.test(run.stdout) || run.stdout.includes("offset"));
  },
  debug: (program, waft) => {
    const commands = `break ${program.stop}\nrun\nbacktrace\nlocals\nglobals\ndelete\ncontinue\ncontinue\n`;
    const run = waft(["debug", ...call(program)], commands);
    const isRight = run.stdout.includes("Breakpoint 1 at") && run.stdout.includes("* #0");
    return fault(run, program.status ?? 0, isRight);
  },
  replay: (program, waft) => {
    const recorded = waft(["run", "--bare", "--record", "log", ...call(program)], program.input);
    if (recorded.status !== (program.status ?? 0)) return fault(recorded, program.status ?? 0, false);
    const run = waft(["replay", "--json", "log"]);
    return fault(run, 0, run.stdout.includes('"ok":true'));
  },
};

/** The names of the tools, in the order of the table. */
export const TOOL_NAMES = Object.keys(TOOLS) as ToolName[];

/** The cell of a program and a tool, and whether it is as it should be. */
export function matrixCell(
  program: MatrixProgram,
  tool: ToolName,
): { readonly text: string; readonly isRight: boolean } {
  const folder = mkdtempSync(join(tmpdir(), "matrix-"));
  const env = { ...process.env, WAFT_HOME: join(folder, "home"), NO_COLOR: "1" };
  const waft: Waft = (args, input) => {
    const command = [...hostArguments(CLI), ...args];
    const options = { cwd: folder, encoding: "utf8", env, input: input ?? "", maxBuffer: 1 << 28 } as const;
    const { status, stdout, stderr } = spawnSync(process.execPath, command, options);
    return { status, stdout, stderr };
  };
  try {
    const found = TOOLS[tool](program, waft, folder);
    const refusal = program.refused?.[tool];
    if (refusal === undefined) return { text: found ?? "ok", isRight: found === undefined };
    const isRight = found !== undefined && refusal.test(found);
    return { text: isRight ? `refused: ${refusal.exec(found)?.[0]}` : found ?? "not refused", isRight };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const THREADS = /a program with threads cannot be recorded|shared memories cannot be debugged|starts threads/;

/** Programs of the tree. */
export const MATRIX_PROGRAMS: readonly MatrixProgram[] = [
  { name: "fib.wat", file: at("examples/fib.wat"), flags: ["--invoke", "fib"], args: ["15"], stop: "fib" },
  { name: "lisp.wasm", file: at("examples/wasi/lisp.wasm"), input: "(+ 1 2)", stop: "_start" },
  { name: "pack.wasm", file: at("examples/wasi/pack.wasm"), args: ["compress"], input: "aaaa", stop: "_start" },
  {
    name: "files.wasm",
    file: at("examples/wasi/files.wasm"),
    flags: ["--dir", ".::/"],
    args: ["tree", "/"],
    stop: "_start",
  },
  { name: "words.wasm", file: at("examples/wasi/words.wasm"), input: "a b a", stop: "_start" },
  {
    name: "visits.wasm",
    file: at("examples/app/visits.wasm"),
    flags: ["--unknown-imports", "trap", "--invoke", "visit"],
    stop: "visit",
    status: 134,
  },
  {
    name: "C with DWARF",
    file: at("tests/debug/programs/shapes5.wasm"),
    flags: ["--invoke", "run"],
    args: ["4"],
    stop: "add",
  },
  {
    name: "AssemblyScript with a source map",
    file: at("tests/debug/programs/sums.wasm"),
    flags: ["--invoke", "run"],
    args: ["20"],
    stop: "square",
  },
  { name: "GC", file: at("bench/programs/gc_shapes.wat"), flags: ["--invoke", "run"], args: ["3"], stop: "make" },
  {
    name: "threads",
    file: at("examples/wasi/threads.wasm"),
    stop: "_start",
    refused: {
      profile: THREADS,
      counts: THREADS,
      coredump: /not processorTime, fuel/,
      debug: THREADS,
      replay: THREADS,
    },
  },
];
