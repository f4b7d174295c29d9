/**
 * Load: many clients against real processes, mixed reads, installs and publications, something killed on the way.
 *
 * In: `--clients N --seconds N --kill app|postgres|none`, and DATABASE_URL for two processes on PostgreSQL instead of one on
 * SQLite (a schema of its own is made and dropped). `postgres` kills a process of the server, which then ends all others and
 * recovers from its log; it must run here. Out: figures, and a failure unless: no answer was 5xx (503 while PostgreSQL is
 * down), every acknowledged install is counted exactly once, every acknowledged release is there with its bytes. What was
 * not answered, or with 503, may or may not have happened; it is counted apart.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { writeArchive } from "../project/archive.ts";
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

/** What the clients saw. */
interface Tally {
  readonly latencies: Map<string, number[]>;
  readonly statuses: Map<number, number>;
  readonly installs: Map<string, { acknowledged: number; unknown: number }>;
  readonly releases: Map<string, string>;
  lost: number;
}

const { values } = parseArgs({
  options: {
    clients: { type: "string", default: "200" },
    seconds: { type: "string", default: "60" },
    kill: { type: "string", default: "app" },
  },
});
const CLIENTS = Number(values.clients);
const SECONDS = Number(values.seconds);

/** What the processes logged about their own failures. */
const FAILURES: string[] = [];

function start(folder: string, databaseUrl: string | undefined, port: number): Promise<App> {
  const child = spawn(
    process.execPath,
    ["run", "-A", MAIN, "--port", String(port), "--data", folder, "--trust-proxy", "--rate-factor", "100000"],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, DATABASE_URL: databaseUrl ?? "" } },
  );
  child.stderr!.on("data", (chunk: Uint8Array) => {
    for (const line of new TextDecoder().decode(chunk).split("\n")) {
      // Lines that are no JSON are those of a process that dies.
      if (line !== "" && (!line.startsWith("{") || /"event":"(?:error|refresh-failed)"/.test(line))) {
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

/** The registry under load: which processes there are changes when one is killed. */
class Load {
  readonly tally: Tally = {
    latencies: new Map(),
    statuses: new Map(),
    installs: new Map(),
    releases: new Map(),
    lost: 0,
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
    const url = this.urls[Math.floor(Math.random() * this.urls.length)]!;
    const began = performance.now();
    try {
      const response = await fetch(url + path, { ...init, signal: AbortSignal.timeout(30_000) });
      await response.arrayBuffer();
      const list = this.tally.latencies.get(kind) ?? [];
      list.push(performance.now() - began);
      this.tally.latencies.set(kind, list);
      this.tally.statuses.set(response.status, (this.tally.statuses.get(response.status) ?? 0) + 1);
      return response;
    } catch {
      this.tally.lost++;
      return undefined;
    }
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
    if (response?.status === 201 || response?.status === 200) this.tally.releases.set(`${id} ${version}`, hex);
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

  /** What is not as it should be. */
  async verify(): Promise<string[]> {
    const wrong: string[] = [];
    for (const [status, count] of this.tally.statuses) {
      const isExpected = status === 503 && values.kill === "postgres";
      if (status >= 400 && !isExpected) wrong.push(`${count} answers ${status}`);
    }
    for (const [id, { acknowledged, unknown }] of this.tally.installs) {
      const answer = await fetch(`${this.urls[0]}/api/packages/${segmentOfId(id)}`);
      const { installs } = await answer.json() as { installs: { total: number } };
      if (installs.total < acknowledged || installs.total > acknowledged + unknown) {
        wrong.push(`${id}: ${installs.total} installs counted, ${acknowledged} acknowledged, ${unknown} unknown`);
      }
    }
    for (const [release, hex] of this.tally.releases) {
      const [id, version] = release.split(" ") as [string, string];
      const answer = await fetch(`${this.urls[0]}/api/packages/${segmentOfId(id)}/versions/${version}`);
      const { record } = await answer.json() as { record?: { artifact: { digest: string } } };
      if (record?.artifact.digest !== `sha256:${hex}`) wrong.push(`${release} is not there as acknowledged`);
    }
    return wrong;
  }
}

async function main(): Promise<number> {
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
    await fetch(`${apps[0]!.url}/api/prefixes`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ prefix: "load.example", account: "admin" }),
    });
    for (let n = 0; n < PACKAGES; n++) await load.publish(load.id(n), "1.0.0");
    load.tally.latencies.clear();
    const until = performance.now() + SECONDS * 1000;
    const clients = Array.from({ length: CLIENTS }, () => load.client(until));
    await new Promise((resolve) => setTimeout(resolve, SECONDS * 400));
    if (values.kill === "postgres") await killPostgres(given!);
    if (values.kill === "app") {
      const victim = apps.pop()!;
      victim.child.removeAllListeners("exit");
      victim.child.kill("SIGKILL");
      // It comes back under the same address, as a supervisor would bring it back.
      apps.push(await start(folder, databaseUrl, Number(new URL(victim.url).port)));
    }
    await Promise.all(clients);
    report(load.tally, databaseUrl === undefined ? "SQLite, 1 process" : "PostgreSQL, 2 processes");
    const wrong = await load.verify();
    for (const line of wrong) console.log(`WRONG ${line}`);
    for (const line of FAILURES.slice(0, 20)) console.log(line);
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

/** Kills the server's process for one connection: the server takes that for damaged memory and starts all anew. */
async function killPostgres(url: string): Promise<void> {
  const victim = new PostgresDatabase(url, { connections: 1 });
  const [row] = await victim.all("SELECT pg_backend_pid() AS pid");
  process.kill(Number(row!.pid), "SIGKILL");
  await victim.close();
}

function report(tally: Tally, what: string): void {
  const total = [...tally.latencies.values()].reduce((n, list) => n + list.length, 0);
  const installs = [...tally.installs.values()].reduce((n, c) => n + c.acknowledged, 0);
  console.log(`${what}: ${CLIENTS} clients, ${SECONDS} s: ${total} answers, ${Math.round(total / SECONDS)} a second`);
  console.log(`installs ${installs}, releases ${tally.releases.size}, requests without an answer ${tally.lost}`);
  for (const [kind, list] of [...tally.latencies].sort(([a], [b]) => a < b ? -1 : 1)) {
    const sorted = list.sort((a, b) => a - b);
    const at = (q: number): string => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]!.toFixed(0);
    console.log(`  ${kind.padEnd(8)} ${String(list.length).padStart(7)}  p50 ${at(0.5)} ms  p99 ${at(0.99)} ms`);
  }
  console.log(`  statuses ${[...tally.statuses].sort(([a], [b]) => a - b).map(([s, n]) => `${s}: ${n}`).join(", ")}`);
}

process.exit(await main());
