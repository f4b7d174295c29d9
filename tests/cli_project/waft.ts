/**
 * Runs the command `waft` as a process with a separate home directory, with or without a terminal. Tests only.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { removeFolder } from "../support/remove_folder.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const TYPIST = fileURLToPath(new URL("./typist.py", import.meta.url));

/** The result of a run. */
export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function environment(home: string, more: { readonly [name: string]: string }): { [name: string]: string } {
  const { PATH, HOME, DENO_DIR } = process.env;
  return {
    PATH: PATH ?? "",
    HOME: HOME ?? home,
    ...(DENO_DIR === undefined ? {} : { DENO_DIR }),
    WAFT_HOME: `${home}/waft`,
    TERM: "xterm",
    NO_COLOR: "1",
    WAFT_NO_REPORT: "1",
    ...more,
  };
}

/** Runs a program with its output in files: under Wine, Deno's thread for pipes fails now and then. */
function runToFiles(
  command: string,
  args: readonly string[],
  cwd: string,
  env: { readonly [name: string]: string },
): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "waft-output-"));
  const paths = [join(folder, "out"), join(folder, "err")] as const;
  const files = paths.map((path) => openSync(path, "w"));
  const ended = new Promise<number | null>((resolve, reject) => {
    const child = spawn(command, [...args], { cwd, env, stdio: ["ignore", files[0], files[1]] });
    child.on("error", reject);
    child.on("close", resolve);
  });
  return ended.then((code) => {
    const [out, err] = paths.map((path) => readFileSync(path, "utf8"));
    return { code: code ?? -1, out: out!, err: err! };
  }).finally(() => {
    for (const file of files) closeSync(file);
    removeFolder(folder);
  });
}

function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: { readonly [name: string]: string },
): Promise<Run> {
  if (process.platform === "win32") return runToFiles(command, args, cwd, env);
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => out += text);
    child.stderr.setEncoding("utf8").on("data", (text: string) => err += text);
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? -1, out, err }));
  });
}

/** Runs without a terminal. */
export function waft(
  args: readonly string[],
  cwd: string,
  home: string,
  env: { readonly [name: string]: string } = {},
): Promise<Run> {
  return run(process.execPath, [...hostArguments(CLI), ...args], cwd, environment(home, env));
}

/** Starts it without a terminal; its output is discarded. */
export function startWaft(
  args: readonly string[],
  cwd: string,
  home: string,
  env: { readonly [name: string]: string } = {},
): ChildProcess {
  return spawn(process.execPath, [...hostArguments(CLI), ...args], {
    cwd,
    env: environment(home, env),
    stdio: "ignore",
  });
}

/** Runs in a pseudo-terminal; each step waits for a text and types keys. */
export function waftTyped(
  args: readonly string[],
  steps: readonly (readonly [string, string])[],
  cwd: string,
  home: string,
  env: { readonly [name: string]: string } = {},
): Promise<Run> {
  return typed([process.execPath, ...hostArguments(CLI), ...args], steps, cwd, home, env);
}

/** Runs any command in a pseudo-terminal. */
export function typed(
  command: readonly string[],
  steps: readonly (readonly [string, string])[],
  cwd: string,
  home: string,
  env: { readonly [name: string]: string } = {},
): Promise<Run> {
  return run("python3", ["-B", TYPIST, JSON.stringify(steps), "--", ...command], cwd, environment(home, env));
}

/** Text of a shell script that is the command `waft`. */
export function waftProgram(): string {
  const quoted = [process.execPath, ...hostArguments(CLI)].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  return `#!/bin/sh\nexec ${quoted.join(" ")} "$@"\n`;
}

/** True when a pseudo-terminal can be made here. */
export function hasPty(): boolean {
  return spawnSync("python3", ["-c", "import pty"]).status === 0;
}

/** Keys. */
export const KEY = {
  down: "\u001b[B",
  up: "\u001b[A",
  enter: "\r",
  space: " ",
  escape: "\u001b",
  interrupt: "\u0003",
} as const;
