/**
 * The actions of the command `registry`: serves, and administers the data.
 *
 * In: options and environment (DATABASE_URL, WAFT_REGISTRY_KEY, WAFT_REGISTRY_ARCHIVES). Out: a running registry until
 * SIGINT or SIGTERM, or the result of one operation. Without DATABASE_URL the data is one SQLite file in the folder
 * `data`.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { machinePaths } from "../project/base/paths.ts";
import {
  type AccountOptions,
  httpAddress,
  type ServeOptions,
  type SuspendOptions,
  type VerifyOptions,
} from "./command_tree.ts";
import { isPrefix } from "./names.ts";
import { canaryDocuments, startRegistry } from "./registry.ts";
import { ACCOUNT_NAME, mintToken } from "./routes/accounts.ts";
import { seedExamples } from "./seed.ts";
import { DEFAULT_SETTINGS, type Settings } from "./settings.ts";
import { signingKeysOf } from "./signing.ts";
import { CHANNEL } from "./site/documents.ts";
import { loadReference } from "./site/reference/build.ts";
import {
  accountByName,
  audit,
  createAccount,
  grantPrefix,
  listPrefixes,
  reinstateAccount,
  suspendAccount,
} from "./store/accounts.ts";
import { restoreBackup, writeBackup } from "./store/backup.ts";
import { copyDatabase } from "./store/copy.ts";
import type { Database, Queries } from "./store/database.ts";
import { writeDocuments } from "./store/keys.ts";
import { migrate } from "./store/migrations.ts";
import type { ObjectStore } from "./store/object_store.ts";
import { PostgresDatabase } from "./store/postgres.ts";
import { SqliteDatabase } from "./store/sqlite.ts";

const FILE = "registry.sqlite";

function print(text: string): void {
  process.stdout.write(`registry: ${text}\n`);
}

function openDatabase(data: string | undefined): Database {
  const url = process.env.DATABASE_URL;
  return url !== undefined && url !== "" ? new PostgresDatabase(url) : openFile(data);
}

/** The database of an existing registry: a mistyped folder must not become a new, empty one. */
function existingDatabase(data: string | undefined): Database {
  requireFile(data);
  return openDatabase(data);
}

function requireFile(data: string | undefined): void {
  if ((process.env.DATABASE_URL ?? "") !== "" || existsSync(join(dataFolder(data), FILE))) return;
  throw new Error(
    `there is no registry in ${dataFolder(data)}: --data names its folder, \`registry serve\` creates one`,
  );
}

function openFile(data: string | undefined): Database {
  const folder = dataFolder(data);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return new SqliteDatabase(join(folder, FILE));
}

function dataFolder(data: string | undefined): string {
  return resolve(data ?? join(machinePaths().state, "registry"));
}

async function withDatabase(database: Database, work: (database: Database) => Promise<void>): Promise<void> {
  try {
    await work(database);
  } finally {
    await database.close();
  }
}

/** Runs a registry until SIGINT or SIGTERM. */
export async function serve(options: ServeOptions): Promise<void> {
  const keyFile = process.env.WAFT_REGISTRY_KEY;
  const { metricsPort, oidcIssuer, releases } = options;
  const baseUrl = options.baseUrl ?? addressOf("WAFT_BASE_URL");
  const repositoryUrl = options.repositoryUrl ?? addressOf("WAFT_REPOSITORY_URL");
  if (releases !== undefined && !existsSync(join(releases, "releases", "index.json"))) {
    throw new Error(`${releases} has no releases/index.json; \`deno task release --out ${releases}\` writes it`);
  }
  // Installed before serving, so that no signal arrives without a handler.
  const stopped = new Promise<void>((done) => {
    process.once("SIGINT", () => done());
    process.once("SIGTERM", () => done());
  });
  const objects = await archivesOutside();
  const registry = await startRegistry({
    database: openDatabase(options.data),
    ...(objects === undefined ? {} : { objects }),
    host: options.host,
    port: options.port,
    settings: {
      trustProxy: options.trustProxy === true,
      ...(oidcIssuer === undefined ? {} : { oidcIssuers: oidcIssuer }),
      ...limitsTimes(options.rateFactor),
      ...(baseUrl === undefined ? {} : { baseUrl }),
      ...(repositoryUrl === undefined ? {} : { repositoryUrl }),
      ...(releases === undefined ? {} : { releases: resolve(releases) }),
    },
    ...(metricsPort === undefined ? {} : { metricsPort }),
    ...(keyFile === undefined ? {} : { signingKeys: signingKeysOf(readFileSync(keyFile, "utf8")) }),
  });
  // Tools that watch the output rely on this line: the registry listens now.
  print(registry.url);
  if (registry.metricsUrl !== undefined) process.stdout.write(`metrics: ${registry.metricsUrl}\n`);
  if (registry.adminToken !== undefined) {
    process.stdout.write(`admin token, shown only this once: ${registry.adminToken}\n`);
    for (const line of await seedExamples(registry, registry.adminToken)) process.stdout.write(`example: ${line}\n`);
  }
  registry.services.pool.warm();
  await stopped;
  print("stopping");
  await registry.close();
}

/** The object storage that the environment names. */
async function archivesOutside(): Promise<ObjectStore | undefined> {
  if ((process.env.WAFT_REGISTRY_ARCHIVES ?? "") === "") return undefined;
  return (await import("./store/object_store.ts")).objectStore(process.env);
}

/** Creates a token without needing one: for the first account, and to recover from a lost token. */
export async function giveAccount(name: string, options: AccountOptions): Promise<void> {
  await withDatabase(existingDatabase(options.data), (database) => giveAccountIn(database, name, options));
}

async function giveAccountIn(database: Database, name: string, wanted: AccountOptions): Promise<void> {
  if (!ACCOUNT_NAME.test(name)) {
    throw new Error(
      `"${name}" is not an account name: lower-case letters, digits and inner hyphens, at most 39 characters`,
    );
  }
  const wrong = wanted.prefix.find((prefix) => !isPrefix(prefix));
  if (wrong !== undefined) throw new Error(`"${wrong}" is not a prefix: a host or a path below one, in lower case`);
  await migrate(database);
  const at = Date.now();
  const account = await database.write(async (queries) => {
    const made = await createAccount(queries, name, at);
    if (made !== undefined) await audit(queries, { at, account: made.id, action: "account", subject: name });
    const { id, suspendedAt } = made ?? (await accountByName(queries, name))!;
    if (suspendedAt !== undefined) {
      throw new Error(`${name} is suspended; \`registry suspend --lift ${name}\` ends the suspension`);
    }
    for (const prefix of wanted.prefix) {
      if (!await grantPrefix(queries, { prefix, account: id, proof: "admin" }, at)) {
        throw new Error(`${prefix} belongs to another account`);
      }
      await audit(queries, { at, account: id, action: "prefix", subject: prefix, detail: id });
    }
    return id;
  });
  const { scopes, days } = wanted;
  const { secret } = await mintToken(database, {
    account,
    label: "made by an operator",
    scopes,
    prefix: "*",
    days,
    at,
  });
  print(
    `${name} may publish ${(await listPrefixes(database, account)).map((p) => p.prefix).join(", ") || "no ids yet"}`,
  );
  process.stdout.write(`token, shown only this once: ${secret}\n`);
}

/** Suspends an account, or ends its suspension; works while the registry runs. */
export async function suspend(name: string, options: SuspendOptions): Promise<void> {
  await withDatabase(existingDatabase(options.data), async (database) => {
    await migrate(database);
    print(await database.write((queries) => suspendIn(queries, name, options.lift === true)));
  });
}

async function suspendIn(queries: Queries, name: string, isLifted: boolean): Promise<string> {
  const found = await accountByName(queries, name);
  if (found === undefined) throw new Error(`there is no account ${JSON.stringify(name)}`);
  const line = { at: Date.now(), account: found.id, subject: name };
  if (isLifted) {
    if (!await reinstateAccount(queries, found.id)) throw new Error(`${name} is not suspended`);
    await audit(queries, { ...line, action: "reinstate" });
    return `${name} is no longer suspended; \`registry account ${name}\` makes a new token`;
  }
  const revoked = await suspendAccount(queries, found.id, line.at);
  await audit(queries, { ...line, action: "suspend", detail: `${revoked} tokens revoked` });
  return `${name} is suspended; ${revoked} token${revoked === 1 ? "" : "s"} revoked`;
}

/** The limits, multiplied. */
function limitsTimes(factor: number): Partial<Settings> {
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

/** The address in a variable, if that is set. */
function addressOf(variable: string): string | undefined {
  const text = process.env[variable] ?? "";
  if (text === "") return undefined;
  const address = httpAddress(text);
  if (address !== undefined) return address;
  throw new Error(`${variable} is "${text}", which is not an http address`);
}

/** Applies migrations, or copies the data into PostgreSQL. */
export async function runMigrate(data: string | undefined, to: string | undefined): Promise<void> {
  if (to === undefined) {
    await withDatabase(openDatabase(data), async (database) => {
      const applied = await migrate(database);
      print(`${applied} migration${applied === 1 ? "" : "s"} applied`);
    });
    return;
  }
  const url = process.env.DATABASE_URL;
  if (to !== "postgres" || url === undefined || url === "") {
    throw new Error("migrate --to takes the word postgres and needs DATABASE_URL");
  }
  if (!existsSync(join(dataFolder(data), FILE))) throw new Error(`there is no registry in ${dataFolder(data)}`);
  await withDatabase(
    openFile(data),
    (from) =>
      withDatabase(new PostgresDatabase(url), async (target) => {
        print(`copied ${await copyDatabase(from, target)} rows into PostgreSQL`);
      }),
  );
}

/** Writes all data into a new file that only its owner can read. */
export async function backUp(file: string, data: string | undefined): Promise<void> {
  await withDatabase(existingDatabase(data), async (database) => {
    const rows = await writeBackup(database, resolve(file));
    print(`written ${file}: ${rows} rows`);
  });
}

/** Fills an empty database from a backup. */
export async function restore(file: string, data: string | undefined): Promise<void> {
  await withDatabase(openDatabase(data), async (database) => {
    print(`restored ${file}: ${await restoreBackup(resolve(file), database)} rows`);
  });
}

/** Stores the current documentation as that of a channel. */
export async function publishDocs(channel: string, data: string | undefined): Promise<void> {
  if (!CHANNEL.test(channel)) throw new Error(`"${channel}" is not a channel: nightly, or v and a version`);
  await withDatabase(existingDatabase(data), async (database) => {
    await migrate(database);
    const pages = [...await canaryDocuments(), ...await loadReference()];
    if (!await writeDocuments(database, channel, pages, Date.now())) {
      throw new Error(`the pages of ${channel} are published and cannot change`);
    }
    print(`${channel} has the documentation of this waft; a running registry shows it within a minute`);
  });
}

/** Verifies the log of a registry, which need not be this one. */
export async function verify(registry: string, { head, compare }: VerifyOptions): Promise<void> {
  const { verifyLog } = await import("./verify_log.ts");
  const verified = await verifyLog({ registry, compare, ...(head === undefined ? {} : { head: resolve(head) }) });
  const heads = `${verified.compared} earlier head${verified.compared === 1 ? "" : "s"}`;
  print(`the log has ${verified.size} releases; signatures, tree and ${heads} agree`);
  process.stdout.write(verified.checkpoint);
}
