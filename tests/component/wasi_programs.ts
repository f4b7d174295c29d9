/**
 * Programs for WASI 0.2, one per interface, written by hand in programs/. In: a row of the table. Out: the component of
 * the program, and its run with a command of a host: exit status and output, which are the same on every correct host.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { readFile } from "@waft/engine/internal/host/files";
import { newComponent } from "../../component/build/new_component.ts";
import type { WitWorld } from "../../component/wit/document.ts";
import { CHILD_TIMEOUT } from "../support/host_arguments.ts";
import { loadProposal, WASI_RELEASES } from "../support/wasi_wit.ts";

const RELEASE = "v0.2.12";

/** Whether the WIT of the programs' release is present. */
export const HAS_WIT: boolean = WASI_RELEASES.includes(RELEASE);

/** A program and its surroundings. */
export interface WasiProgram {
  readonly name: string;
  readonly args?: readonly string[];
  readonly env?: readonly (readonly [string, string])[];
  readonly stdin?: string;
  /** The program has an empty directory as `/data`. */
  readonly directory?: true;
  /** Options of `waft run` that grant the network; other hosts grant all of it. */
  readonly network?: readonly string[];
  /** An HTTP server listens on 127.0.0.1; the first argument is its authority. */
  readonly server?: true;
  /** The file of a component that is not one of programs/. */
  readonly file?: string;
}

/** The programs. */
export const WASI_PROGRAMS: readonly WasiProgram[] = [
  { name: "cli", args: ["one", "two words"], env: [["NAME", "a value"]], stdin: "standard input" },
  { name: "clocks" },
  { name: "random" },
  { name: "streams", stdin: "abcdefghijklmnop" },
  { name: "filesystem", directory: true },
  { name: "tcp", network: ["--net", "127.0.0.1", "--listen", "127.0.0.1:0"] },
  { name: "refused", network: ["--net", "127.0.0.1"] },
  { name: "udp", network: ["--net", "127.0.0.1", "--listen", "127.0.0.1:0"] },
  { name: "names", network: ["--net", "127.0.0.1", "--net", "localhost"] },
  { name: "http", network: ["--net", "127.0.0.1"], server: true },
];

function text(name: string): string {
  const url = new URL(`programs/${name}.wat`, import.meta.url);
  return new TextDecoder().decode(readFile(fileURLToPath(url)));
}

let world: WitWorld | undefined;

/** The world of all programs; components import the interfaces that they use. */
function programWorld(): WitWorld {
  const file = `package wasi:http@0.2.12; world program { include wasi:cli/command@0.2.12; include imports; }`;
  return world ??= loadProposal(RELEASE, "http", {}, { "program.wit": file }).root.worlds.get("program")!;
}

/** The file of a program's component, which {@linkcode programComponent} makes. */
export function componentFile({ name, file }: WasiProgram): string {
  return file ?? fileURLToPath(new URL(`programs/${name}.wasm`, import.meta.url));
}

/** The component of a program, made of its text and WASI's WIT. */
export function programComponent({ name }: WasiProgram): Uint8Array {
  const [imports, definitions] = text(name).split(";; definitions\n");
  const module = text("prelude").replace("  ;; imports\n", () => imports) + definitions;
  return newComponent(NewEngine().parse(module).bytes, { world: programWorld() });
}

/** The result of a run. */
interface ProgramResult {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/**
 * Runs a command with an input, for at most `timeout` milliseconds. The event loop goes on meanwhile, for the server of
 * this process.
 */
export function runCommand(
  [program, ...args]: readonly string[],
  input: string,
  timeout: number = CHILD_TIMEOUT,
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, NO_COLOR: "1" };
    const child = spawn(program, args, { env, stdio: "pipe", timeout });
    const texts = { out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (part: string) => texts.out += part);
    child.stderr.setEncoding("utf8").on("data", (part: string) => texts.err += part);
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, ...texts }));
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}

/** Answers with the method, the path, a field and the body of the request. */
async function withHttpServer<T>(action: (authority: string) => Promise<T>): Promise<T> {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (part: string) => body += part);
    request.on("end", () => {
      response.writeHead(203, { "x-answer": "an answer" });
      response.end(`${request.method} ${request.url} ${request.headers["x-guest"]}: ${body}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await action(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.close();
  }
}

/** A run: the component's file, its arguments, and the host's directory for `/data`. */
export interface ProgramRun {
  readonly program: WasiProgram;
  readonly file: string;
  readonly args: readonly string[];
  readonly directory: string | undefined;
}

/** Runs a program with the command that `command` makes of the run, for at most `timeout` milliseconds. */
export async function runProgram(
  program: WasiProgram,
  command: (run: ProgramRun) => readonly string[],
  timeout?: number,
): Promise<ProgramResult> {
  const folder = mkdtempSync(join(tmpdir(), "waft-program-"));
  try {
    const directory = program.directory === undefined ? undefined : mkdtempSync(join(folder, "data-"));
    const start = (args: readonly string[]) =>
      runCommand(command({ program, file: componentFile(program), args, directory }), program.stdin ?? "", timeout);
    return await (program.server === undefined
      ? start(program.args ?? [])
      : withHttpServer((authority) => start([authority])));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The arguments of `waft run`. */
export function waftRun({ program, file, args, directory }: ProgramRun): string[] {
  const env = (program.env ?? []).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  const dir = directory === undefined ? [] : ["--dir", `${directory}::/data`];
  return ["run", "--bare", "--no-cache", ...env, ...dir, ...(program.network ?? []), file, ...args];
}

/** A result as text: the output with its NUL bytes as `\0`, the error stream, the status. */
export function resultText({ status, out, err }: ProgramResult): string {
  return `${out.replaceAll("\0", "\\0")}--- standard error\n${err}--- status ${status}\n`;
}
