/**
 * The registry's command: `serve` (also without a word), `backup FILE`, `publish-docs CHANNEL`.
 *
 * In: arguments and environment (DATABASE_URL, WAFT_REGISTRY_KEY). Out: a running registry until SIGINT or SIGTERM. Without
 * DATABASE_URL data lies in `--data DIR` as one SQLite file.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { machinePaths } from "../project/paths.ts";
import { canaryDocuments, startRegistry } from "./registry.ts";
import { seedExamples } from "./seed.ts";
import { DEFAULT_SETTINGS, type Settings } from "./settings.ts";
import { signingKeyOf } from "./signing.ts";
import { CHANNEL } from "./site/documents.ts";
import type { Database } from "./store/database.ts";
import { writeDocuments } from "./store/keys.ts";
import { migrate } from "./store/migrations.ts";
import { PostgresDatabase } from "./store/postgres.ts";
import { SqliteDatabase } from "./store/sqlite.ts";

const USAGE = `usage: registry [serve] [--port N] [--host ADDRESS] [--data DIR] [--base-url URL]
                [--metrics-port N] [--trust-proxy] [--rate-factor N]
       registry backup FILE [--data DIR]
       registry publish-docs nightly|v<release> [--data DIR]

DATABASE_URL       use PostgreSQL instead of a file in DIR
WAFT_REGISTRY_KEY  file with the Ed25519 key (PKCS#8, PEM) that signs releases
`;

/** Runs the command; the exit status. */
export async function main(args: readonly string[]): Promise<number> {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (error) {
    process.stderr.write(`registry: ${(error as Error).message}\n${USAGE}`);
    return 2;
  }
  const { values, positionals } = parsed;
  if (values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  const [command = "serve", argument, ...more] = positionals;
  const wanted = { serve: 0, backup: 1, "publish-docs": 1 }[command];
  if (wanted === undefined || more.length > 0 || (argument === undefined ? 0 : 1) !== wanted) {
    process.stderr.write(USAGE);
    return 2;
  }
  try {
    const database = openDatabase(values.data);
    if (command === "backup") return await backup(database, argument!);
    if (command === "publish-docs") return await publishDocs(database, argument!);
    return await serve(database, values);
  } catch (error) {
    process.stderr.write(`registry: ${(error as Error).message}\n`);
    return 1;
  }
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      port: { type: "string", default: "8750" },
      host: { type: "string", default: "127.0.0.1" },
      data: { type: "string" },
      "base-url": { type: "string" },
      "metrics-port": { type: "string" },
      // Multiplies all limits of requests and publications; 1 is the design's.
      "rate-factor": { type: "string", default: "1" },
      "trust-proxy": { type: "boolean", default: false },
      help: { type: "boolean", short: "h" },
    },
  });
}

function openDatabase(data: string | undefined): Database {
  const url = process.env.DATABASE_URL;
  if (url !== undefined && url !== "") return new PostgresDatabase(url);
  const folder = resolve(data ?? join(machinePaths().state, "registry"));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return new SqliteDatabase(join(folder, "registry.sqlite"));
}

async function serve(database: Database, values: ReturnType<typeof parse>["values"]): Promise<number> {
  const keyFile = process.env.WAFT_REGISTRY_KEY;
  const baseUrl = values["base-url"];
  const metricsPort = values["metrics-port"];
  // Before anything is served, so that no signal finds a registry that does not listen for it.
  const stopped = new Promise<void>((done) => {
    process.once("SIGINT", () => done());
    process.once("SIGTERM", () => done());
  });
  const registry = await startRegistry({
    database,
    host: values.host,
    port: portOf(values.port),
    settings: {
      trustProxy: values["trust-proxy"],
      ...limitsTimes(values["rate-factor"]),
      ...(baseUrl === undefined ? {} : { baseUrl: new URL(baseUrl).href.replace(/\/+$/, "") }),
    },
    ...(metricsPort === undefined ? {} : { metricsPort: portOf(metricsPort) }),
    ...(keyFile === undefined ? {} : { signingKey: signingKeyOf(readFileSync(keyFile, "utf8")) }),
  });
  // Listens from here on; whoever watches the output may rely on this line.
  process.stdout.write(`registry: ${registry.url}\n`);
  if (registry.metricsUrl !== undefined) process.stdout.write(`metrics: ${registry.metricsUrl}\n`);
  if (registry.adminToken !== undefined) {
    process.stdout.write(`admin token, shown only this once: ${registry.adminToken}\n`);
    for (const line of await seedExamples(registry, registry.adminToken)) process.stdout.write(`example: ${line}\n`);
  }
  registry.services.pool.warm();
  await stopped;
  process.stdout.write("registry: stopping\n");
  await registry.close();
  return 0;
}

/** The limits, a number of times larger. */
function limitsTimes(text: string): Partial<Settings> {
  const factor = /^[0-9]{1,6}$/.test(text) ? Number(text) : 0;
  if (factor < 1) throw new TypeError(`"${text}" is no factor`);
  const { rates, publishPerHour, publishPerDay } = DEFAULT_SETTINGS;
  return {
    rates: {
      read: rates.read * factor,
      search: rates.search * factor,
      installs: rates.installs * factor,
      write: rates.write * factor,
      refused: rates.refused * factor,
    },
    publishPerHour: publishPerHour * factor,
    publishPerDay: publishPerDay * factor,
  };
}

function portOf(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : NaN;
  if (port <= 65535) return port;
  throw new TypeError(`"${text}" is no port`);
}

async function backup(database: Database, file: string): Promise<number> {
  try {
    await database.backup(resolve(file));
  } finally {
    await database.close();
  }
  process.stdout.write(`registry: written ${file}\n`);
  return 0;
}

async function publishDocs(database: Database, channel: string): Promise<number> {
  try {
    if (!CHANNEL.test(channel)) throw new TypeError(`"${channel}" is no channel: nightly, or v and a version`);
    await migrate(database);
    if (await writeDocuments(database, channel, await canaryDocuments(), Date.now())) return 0;
    throw new Error(`the pages of ${channel} were published before and do not change`);
  } finally {
    await database.close();
  }
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)));
