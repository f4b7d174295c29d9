/**
 * Soak test of `waft serve`: `deno task soak:serve [REQUESTS] [--workers N]` (10⁶ by default, some minutes). Sends
 * requests over connections that stay open, among them some that trap, to a server in processes of its own. Fails if a
 * request is lost, if the metrics do not add up to the requests that were sent, or if memory or the number of instances
 * is higher at the end than after the first tenth.
 */
import { spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { load } from "../../bench/http_load.ts";
import { readTaskLine, wholeNumber } from "../task_options.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CONNECTIONS = 16;
/** One of so many requests traps. */
const TRAP_EVERY = 1000;
/** Growth that is no leak: heaps of JavaScript settle late. */
const TOLERATED_FACTOR = 1.25;

const task = {
  name: "task soak:serve",
  about: "Sends many requests to waft serve and checks that nothing is lost and memory stays flat.",
  operands: "[REQUESTS]",
  options: { workers: { value: "N", least: 1, help: "worker processes", default: "1" } },
} as const;
const { values: { workers }, operands } = readTaskLine(task);
const count = wholeNumber(task, "REQUESTS", operands[0] ?? "1000000", 100);

/** The samples of a server by series. */
async function scrape(admin: string): Promise<Map<string, number>> {
  const text = await (await fetch(`${admin}metrics`)).text();
  return new Map(
    text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

const fixture = `${ROOT}tests/component/fixtures/http.wat`;
const options = ["--addr", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--workers", String(workers)];
const server = spawn(process.execPath, ["run", "-A", "--no-check", `${ROOT}cli.ts`, "serve", ...options, fixture], {
  stdio: ["ignore", "ignore", "pipe"],
});
let said = "";
server.stderr.on("data", (part) => said = said.length < 1000 ? said + String(part) : said);
let failure: string | undefined;
try {
  while (!/Listening on .*\n/.test(said)) {
    if (server.exitCode !== null) throw new Error(`the server ended: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const [, port, admin] = /Listening on \S+:(\d+)\/, for operators on (\S+)/.exec(said) ?? [];
  const tenth = Math.floor(count / 10);
  let first: Map<string, number> | undefined;
  for (let done = 1; done <= 10; done++) {
    const traps = Math.ceil(tenth / TRAP_EVERY);
    await load(Number(port), tenth - traps, CONNECTIONS);
    for (let trap = 0; trap < traps; trap++) {
      const { status } = await fetch(`http://127.0.0.1:${port}/trap`);
      if (status !== 500) throw new Error(`a trap is answered with status ${status}`);
    }
    const samples = await scrape(admin);
    const of = (series: string) => samples.get(series) ?? 0;
    const [answered, failed] = ["201", "500"].map((status) => {
      return of(`waft_http_requests_total{method="GET",status="${status}"}`);
    });
    const resident = of("process_resident_memory_bytes") / 2 ** 20;
    console.log(`${done * tenth} requests: ${answered} answered, ${failed} trapped, ${resident.toFixed(0)} MiB`);
    if (answered !== done * (tenth - traps) || failed !== done * traps) throw new Error("the counts do not add up");
    first ??= samples;
    for (const series of ["process_resident_memory_bytes", "waft_guest_memory_bytes", 'waft_instances{state="idle"}']) {
      const [before, now] = [first.get(series) ?? 0, of(series)];
      if (done === 10 && now > before * TOLERATED_FACTOR) failure = `${series} grew from ${before} to ${now}`;
    }
  }
} finally {
  server.kill("SIGTERM");
}
if (failure !== undefined) throw new Error(failure);
