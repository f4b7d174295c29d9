/**
 * Load test: many clients against real processes, mixed reads, installs and publications, with a failure in between.
 *
 * In: `--clients N --seconds N --kill none|app|postgres --json FILE`, and DATABASE_URL for two processes on PostgreSQL
 * instead of one on SQLite (a schema of its own is created and dropped). `postgres` kills the server's main process and
 * its children at once and starts it again; it must run on this machine. Out: figures. The run fails unless no answer
 * was 4xx or 5xx (503 is allowed while PostgreSQL is down, as a problem with a Retry-After), every acknowledged install
 * is counted exactly once, every acknowledged release exists with its bytes, and nothing exists that was not sent.
 * Requests without an answer, or answered 503, may or may not have taken effect and are counted apart. `--json` keeps
 * the figures in a file with one row for each store and failure.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { writeArchive } from "../project/packages/archive.ts";
import { readTaskLine } from "../scripts/task_options.ts";
import { segmentOfId } from "./names.ts";
import { PostgresDatabase } from "./store/postgres.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
const PACKAGES = 50;
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A running process of the registry. */
interface App {
  readonly child: ChildProcess;
  readonly url: string;
  readonly token?: string;
}

/** Observations of the clients. */
interface Tally {
  readonly latencies: Map<string, number[]>;
  readonly statuses: Map<number, number>;
  readonly installs: Map<string, { acknowledged: number; unknown: number }>;
  /** Acknowledged releases and the digests of their archives. */
  readonly releases: Map<string, string>;
  /** Releases that were sent and not answered, or with 503. */
  readonly unknownReleases: Map<string, string>;
  /** Answers 503 that are not problems or have no Retry-After. */
  impolite: number;
  lost: number;
  /** Causes of missing answers and of answers 503, with their counts. */
  readonly reasons: Map<string, number>;
}

/** One row of the file of figures. */
interface LoadFigures {
  readonly store: string;
  readonly killed: string;
  readonly clients: number;
  readonly seconds: number;
  readonly answersPerSecond: number;
  readonly installs: number;
  readonly releases: number;
  /** Milliseconds from request to the whole answer. */
  readonly p50: number;
  readonly p99: number;
  readonly status503: number;
  readonly other5xx: number;
  readonly unanswered: number;
  /** Requests that were acknowledged and are missing or stored twice. */
  readonly lostOrDoubled: number;
  readonly processors: number;
  /** Load average of the machine over the minute before the run. */
  readonly loadBefore: number;
}

const task = {
  name: "task registry:load",
  about:
    "Runs many clients against processes of the registry, on SQLite or (with DATABASE_URL) PostgreSQL; counts losses.",
  options: {
    clients: { value: "N", least: 1, help: "concurrent clients", default: "200" },
    seconds: { value: "N", least: 1, help: "duration", default: "60" },
    kill: {
      value: "NAME",
      words: ["none", "app", "postgres"],
      help: "process to kill during the run: none, app or postgres",
      default: "app",
    },
    json: { value: "FILE", help: "keeps the figures, one row for each store and failure" },
  },
} as const;
const { values } = readTaskLine(task);
const { clients: CLIENTS, seconds: SECONDS } = values;
const KILLS = {
  none: "nothing",
  app: "one process of the registry",
  postgres: "PostgreSQL, all of it",
} as const;

/** Failures that the processes logged. */
const FAILURES: string[] = [];

function start(folder: string, databaseUrl: string | undefined, port: number): Promise<App> {
  const child = spawn(
    process.execPath,
    ["run", "-A", MAIN, "--port", String(port), "--data", folder, "--trust-proxy", "--rate-factor", "100000"],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, DATABASE_URL: databaseUrl ?? "" } },
  );
  child.stderr!.on("data", (chunk: Uint8Array) => {
    for (const line of new TextDecoder().decode(chunk).split("\n")) {
      // Lines that are not JSON come from a process that dies.
      if (line !== "" && (!line.startsWith("{") || /"event":"(?:error|refresh-failed|unavailable)"/.test(line))) {
        FAILURES.push(line);
      }
    }
  });
  return new Promise((resolve, reject) => {
    let text = "";
    child.once("exit", (code) => reject(new Error(`the registry ended with ${code}: ${text}`)));
    child.stdout!.on("data", (chunk: Uint8Array) => {
      text += new TextDecoder().decode(chunk);
      const url = /^registry: (\S+)$/m.exec(text)?.[1];
      if (url === undefined) return;
      // The token, if there is one, comes right after the address.
      setTimeout(() => {
        const token = /admin token[^:]*: (\S+)/.exec(text)?.[1];
        resolve({ child, url, ...(token === undefined ? {} : { token }) });
      }, 200);
    });
  });
}

function archiveOf(id: string, version: string): Uint8Array<ArrayBuffer> {
  const files = new Map([
    [
      "waft.json",
      encode(JSON.stringify({
        package: {
          module: id,
          version,
          name: id.split("/").at(-1),
          description: "A package of the load benchmark",
          license: "MIT",
          repository: `https://${id}`,
          authors: [{ name: "Load" }],
        },
      })),
    ],
    ["register/catalog.json", encode(JSON.stringify({ plugins: [{ entry: "p.wasm", definition: { id } }] }))],
    ["p.wasm", Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)],
  ]);
  return new Uint8Array(writeArchive(files));
}

/** The registry under load; its processes change when one is killed. */
class Load {
  readonly tally: Tally = {
    latencies: new Map(),
    statuses: new Map(),
    installs: new Map(),
    releases: new Map(),
    unknownReleases: new Map(),
    impolite: 0,
    lost: 0,
    reasons: new Map(),
  };
  readonly urls: string[];
  readonly token: string;
  #networks = 0;
  #versions = 0;

  constructor(urls: readonly string[], token: string) {
    this.urls = [...urls];
    this.token = token;
  }

  id(n: number): string {
    return `load.example/packages/p${n}`;
  }

  async send(kind: string, path: string, init: RequestInit = {}): Promise<Response | undefined> {
    const url = this.urls[Math.floor(Math.random() * this.urls.length)];
    const began = performance.now();
    try {
      const response = await fetch(url + path, { ...init, signal: AbortSignal.timeout(30_000) });
      const body = await response.text();
      const list = this.tally.latencies.get(kind) ?? [];
      list.push(performance.now() - began);
      this.tally.latencies.set(kind, list);
      this.tally.statuses.set(response.status, (this.tally.statuses.get(response.status) ?? 0) + 1);
      if (response.status === 503) {
        const { headers } = response;
        const isProblem = kind === "page" || headers.get("content-type") === "application/problem+json";
        if (!isProblem || !(Number(headers.get("retry-after")) > 0)) this.tally.impolite++;
        // Obeys Retry-After, as a client would.
        await new Promise((resolve) => setTimeout(resolve, Number(headers.get("retry-after") ?? 0) * 1000));
        this.#note(`${kind} answered 503: ${/"detail":"([^"]*)"/.exec(body)?.[1] ?? "a page"}`);
      }
      return response;
    } catch (error) {
      this.tally.lost++;
      const { name, message, cause } = error as Error;
      const because = (cause as Error | undefined)?.message ?? "";
      this.#note(`no answer: ${name}: ${message} ${because}`.replace(/ for url \([^)]*\)/g, ""));
      // Without an answer, a client waits before it tries again and leaves the processor to the others.
      await new Promise((resolve) => setTimeout(resolve, 100));
      return undefined;
    }
  }

  #note(why: string): void {
    this.tally.reasons.set(why, (this.tally.reasons.get(why) ?? 0) + 1);
  }

  async publish(id: string, version: string): Promise<number | undefined> {
    const archive = archiveOf(id, version);
    const digest = createHash("sha256").update(archive);
    const hex = digest.copy().digest("hex");
    const response = await this.send("publish", `/api/packages/${segmentOfId(id)}/versions/${version}`, {
      method: "PUT",
      headers: {
        authorization: `Bearer ${this.token}`,
        "content-type": "application/gzip",
        "content-digest": `sha-256=:${digest.digest("base64")}:`,
      },
      body: archive,
    });
    const release = `${id} ${version}`;
    if (response?.status === 201 || response?.status === 200) this.tally.releases.set(release, hex);
    else if (response === undefined || response.status === 503) this.tally.unknownReleases.set(release, hex);
    return response?.status;
  }

  async install(id: string): Promise<void> {
    const n = ++this.#networks;
    const address = `${10 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}.1`;
    const response = await this.send("install", `/api/packages/${segmentOfId(id)}/installs`, {
      method: "POST",
      headers: { "x-forwarded-for": address },
    });
    const count = this.tally.installs.get(id) ?? { acknowledged: 0, unknown: 0 };
    if (response === undefined || response.status === 503) count.unknown++;
    else if (response.status === 200) count.acknowledged++;
    this.tally.installs.set(id, count);
  }

  /** One client until the end. */
  async client(until: number): Promise<void> {
    while (performance.now() < until) {
      const id = this.id(Math.floor(Math.random() * PACKAGES));
      const dice = Math.random();
      if (dice < 0.02) await this.publish(id, `1.0.${++this.#versions}`);
      else if (dice < 0.25) await this.install(id);
      else if (dice < 0.5) await this.send("index", `/api/plugins/${segmentOfId(id)}/index`);
      else if (dice < 0.65) {
        await this.send("list", `/api/packages?q=p${Math.floor(Math.random() * PACKAGES)}&limit=20`);
      } else if (dice < 0.85) await this.send("detail", `/api/packages/${segmentOfId(id)}`);
      else await this.send("page", `/plugins/${segmentOfId(id)}`);
    }
  }

  /** Violations, and the number of acknowledged effects that are lost or counted twice. */
  async verify(): Promise<{ readonly wrong: string[]; readonly lostOrDoubled: number }> {
    const wrong: string[] = [];
    let lostOrDoubled = 0;
    for (const [status, count] of this.tally.statuses) {
      const isExpected = status === 503 && values.kill === "postgres";
      if (status >= 400 && !isExpected) wrong.push(`${count} answers ${status}`);
    }
    if (this.tally.impolite > 0) wrong.push(`${this.tally.impolite} answers 503 are not problems with a time to wait`);
    if (values.kill === "none" && this.tally.lost > 0) wrong.push(`${this.tally.lost} requests without an answer`);
    const get = async <T>(url: string, path: string): Promise<T> => {
      const answer = await fetch(url + path);
      if (answer.ok) return await answer.json() as T;
      throw new Error(`${path} answers ${answer.status}`);
    };
    // Asks every process, the restarted one included.
    for (const url of this.urls) {
      for (const [id, { acknowledged, unknown }] of this.tally.installs) {
        const path = `/api/packages/${segmentOfId(id)}`;
        const { installs } = await get<{ installs: { total: number } }>(url, path);
        const { days } = await get<{ days: { count: number }[] }>(url, `${path}/installs?days=7`);
        const { total } = installs;
        const byDay = days.reduce((sum, day) => sum + day.count, 0);
        if (total >= acknowledged && total <= acknowledged + unknown && byDay === total) continue;
        lostOrDoubled += Math.max(1, acknowledged - total, total - acknowledged - unknown);
        wrong.push(`${id}: ${total} installs, ${byDay} by day; ${acknowledged} acknowledged, ${unknown} unknown`);
      }
    }
    const { releases, unknownReleases } = this.tally;
    const url = this.urls[0];
    for (let n = 0; n < PACKAGES; n++) {
      const id = this.id(n);
      const { versions } = await get<{ versions: { version: string; artifact: { digest: string } }[] }>(
        url,
        `/api/packages/${segmentOfId(id)}/versions`,
      );
      const kept = new Map(versions.map((v) => [`${id} ${v.version}`, v.artifact.digest.slice("sha256:".length)]));
      if (kept.size !== versions.length) wrong.push(`${id} lists a version twice`);
      for (const [release, hex] of kept) {
        const sent = releases.get(release) ?? unknownReleases.get(release);
        if (sent !== hex) wrong.push(`${release} is ${hex}, ${sent ?? "nothing"} was sent`);
      }
      for (const [release, hex] of releases) {
        if (!release.startsWith(`${id} `)) continue;
        const bytes = new Uint8Array(await (await fetch(`${url}/api/blobs/sha256/${hex}`)).arrayBuffer());
        if (kept.get(release) === hex && createHash("sha256").update(bytes).digest("hex") === hex) continue;
        lostOrDoubled++;
        wrong.push(`${release} is not there as acknowledged`);
      }
    }
    return { wrong, lostOrDoubled };
  }
}

async function main(): Promise<number> {
  const killed = KILLS[values.kill];
  const loadBefore = loadavg()[0];
  const folder = mkdtempSync(join(tmpdir(), "waft-load-"));
  const given = process.env.DATABASE_URL;
  const schema = `waft_load_${randomBytes(4).toString("hex")}`;
  let databaseUrl: string | undefined;
  if (given !== undefined && given !== "") {
    const admin = new PostgresDatabase(given, { connections: 1 });
    await admin.run(`CREATE SCHEMA ${schema}`);
    await admin.close();
    const url = new URL(given);
    url.searchParams.set("search_path", schema);
    databaseUrl = url.href;
  }
  const apps = [await start(folder, databaseUrl, 0)];
  if (databaseUrl !== undefined) apps.push(await start(folder, databaseUrl, 0));
  try {
    const token = apps.find((a) => a.token !== undefined)!.token!;
    const load = new Load(apps.map((a) => a.url), token);
    await fetch(`${apps[0].url}/api/prefixes`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ prefix: "load.example", account: "admin" }),
    });
    for (let n = 0; n < PACKAGES; n++) await load.publish(load.id(n), "1.0.0");
    load.tally.latencies.clear();
    const until = performance.now() + SECONDS * 1000;
    const clients = Array.from({ length: CLIENTS }, () => load.client(until));
    await new Promise((resolve) => setTimeout(resolve, SECONDS * 400));
    if (values.kill === "postgres") await killPostgres(given);
    if (values.kill === "app") {
      const victim = apps.pop()!;
      victim.child.removeAllListeners("exit");
      victim.child.kill("SIGKILL");
      // Restarts at the same address, as a supervisor would.
      apps.push(await start(folder, databaseUrl, Number(new URL(victim.url).port)));
    }
    await Promise.all(clients);
    const store = databaseUrl === undefined ? "SQLite, 1 process" : "PostgreSQL, 2 processes";
    const { wrong, lostOrDoubled } = await load.verify();
    const figures = figuresOf(load.tally, { store, killed, lostOrDoubled, loadBefore });
    report(load.tally, figures);
    for (const line of wrong.slice(0, 50)) console.log(`WRONG ${line}`);
    for (const line of FAILURES.slice(0, wrong.length === 0 ? 5 : 20)) console.log(line.slice(0, 300));
    if (values.json !== undefined && wrong.length === 0) keep(values.json, figures);
    return wrong.length === 0 ? 0 : 1;
  } finally {
    for (const { child } of apps) {
      child.removeAllListeners("exit");
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
    if (databaseUrl !== undefined) {
      const admin = new PostgresDatabase(given!, { connections: 1 });
      await admin.run(`DROP SCHEMA ${schema} CASCADE`);
      await admin.close();
    }
  }
}

/**
 * Kills the server's main process and its children, all at once, and starts it again with the same arguments and user.
 *
 * SIGSTOP first, so that none of them reacts to the end of another.
 */
async function killPostgres(url: string | undefined): Promise<void> {
  if (url === undefined || url === "") throw new Error("--kill postgres needs DATABASE_URL");
  const admin = new PostgresDatabase(url, { connections: 1 });
  const [row] = await admin.all("SELECT current_setting('data_directory') AS data");
  await admin.close();
  const pid = Number(readFileSync(join(String(row!.data), "postmaster.pid"), "utf8").split("\n")[0]);
  const [program, ...args] = readFileSync(`/proc/${pid}/cmdline`, "utf8").replace(/\0$/, "").split("\0");
  const { uid, gid } = statSync(`/proc/${pid}`);
  process.kill(pid, "SIGSTOP");
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  for (const victim of [...children, pid]) process.kill(victim, "SIGKILL");
  const down = performance.now();
  // A pause for the time until an operator reacts.
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const started = process.getuid?.() === uid ? [program!, ...args] : [
    "setpriv",
    `--reuid=${uid}`,
    `--regid=${gid}`,
    "--clear-groups",
    "--",
    program!,
    ...args,
  ];
  let isUp = false;
  const start = (): void => {
    const server = spawn(started[0], started.slice(1), { cwd: String(row!.data), stdio: "ignore", detached: true });
    server.unref();
    // PostgreSQL does not start while one of the old processes exists, even as a zombie.
    server.once("exit", () => isUp || setTimeout(start, 100));
  };
  start();
  for (;;) {
    const probe = new PostgresDatabase(url, { connections: 1 });
    isUp = await probe.all("SELECT 1 AS one").then(() => true, () => false);
    await probe.close();
    if (isUp) break;
    if (performance.now() - down > 30_000) throw new Error("PostgreSQL did not come back");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  console.log(
    `PostgreSQL: ${children.length + 1} processes killed, back after ${Math.round(performance.now() - down)} ms`,
  );
}

function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0);
}

function figuresOf(
  tally: Tally,
  run: Pick<LoadFigures, "store" | "killed" | "lostOrDoubled" | "loadBefore">,
): LoadFigures {
  const all = [...tally.latencies.values()].flat();
  const answered = (from: number, to: number): number =>
    [...tally.statuses].reduce((n, [status, count]) => status >= from && status <= to ? n + count : n, 0);
  const status503 = tally.statuses.get(503) ?? 0;
  return {
    ...run,
    clients: CLIENTS,
    seconds: SECONDS,
    answersPerSecond: Math.round(all.length / SECONDS),
    installs: [...tally.installs.values()].reduce((n, c) => n + c.acknowledged, 0),
    releases: tally.releases.size,
    p50: quantile(all, 0.5),
    p99: quantile(all, 0.99),
    status503,
    other5xx: answered(500, 599) - status503,
    unanswered: tally.lost,
    processors: availableParallelism(),
    loadBefore: Math.round(run.loadBefore * 100) / 100,
  };
}

function report(tally: Tally, figures: LoadFigures): void {
  console.log(JSON.stringify(figures, null, 2));
  for (const [kind, list] of [...tally.latencies].sort(([a], [b]) => a < b ? -1 : 1)) {
    const counted = String(list.length).padStart(7);
    console.log(`  ${kind.padEnd(8)} ${counted}  p50 ${quantile(list, 0.5)} ms  p99 ${quantile(list, 0.99)} ms`);
  }
  for (const [why, count] of tally.reasons) console.log(`  ${count} × ${why}`);
  console.log(`  statuses ${[...tally.statuses].sort(([a], [b]) => a - b).map(([s, n]) => `${s}: ${n}`).join(", ")}`);
}

/** Puts the row of this run in place of the one before. */
function keep(file: string, figures: LoadFigures): void {
  const rows = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) as LoadFigures[] : [];
  const order = Object.values<string>(KILLS);
  const key = (row: LoadFigures): string => `${row.store} ${order.indexOf(row.killed)}`;
  const kept = [...rows.filter((row) => key(row) !== key(figures)), figures];
  kept.sort((a, b) => a.store === b.store ? (key(a) < key(b) ? -1 : 1) : a.store < b.store ? 1 : -1);
  writeFileSync(file, `${JSON.stringify(kept, null, 2)}\n`);
}

process.exit(await main());
