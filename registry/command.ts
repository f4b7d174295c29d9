/**
 * The command `registry`: serves, and administers the data.
 *
 * In: arguments and environment (DATABASE_URL, WAFT_REGISTRY_KEY). Out: a running registry until SIGINT or SIGTERM, or
 * the result of one operation. Without DATABASE_URL the data is one SQLite file in `--data DIR`. `waft registry` and
 * `deno task registry` run this command.
 */
import { type Command, InvalidArgumentError } from "@commander-js/extra-typings";
import type { Command as AnyCommand } from "commander";
import { chmodSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { machinePaths } from "../project/base/paths.ts";
import { isPrefix } from "./names.ts";
import { canaryDocuments, startRegistry } from "./registry.ts";
import { ACCOUNT_NAME, MAX_TOKEN_DAYS, mintToken } from "./routes/accounts.ts";
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
  type Scope,
  SCOPES,
} from "./store/accounts.ts";
import { restoreBackup, writeBackup } from "./store/backup.ts";
import { copyDatabase } from "./store/copy.ts";
import type { Database } from "./store/database.ts";
import { writeDocuments } from "./store/keys.ts";
import { migrate } from "./store/migrations.ts";
import { PostgresDatabase } from "./store/postgres.ts";
import { SqliteDatabase } from "./store/sqlite.ts";

interface ServeOptions {
  readonly port: number;
  readonly host: string;
  readonly data?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly repositoryUrl?: string | undefined;
  readonly metricsPort?: number | undefined;
  readonly rateFactor: number;
  readonly trustProxy?: true | undefined;
  readonly releases?: string | undefined;
}

const FILE = "registry.sqlite";
const DATA = "Folder of the SQLite file; not used with DATABASE_URL";

/** Default scopes of an author's token. */
const AUTHOR_SCOPES: Scope[] = ["publish", "yank", "owners"];

/** Adds the command. */
export function addCommand(program: AnyCommand): void {
  const registry = (program as unknown as Command).command("registry")
    .description("Run a plugin registry with its site, and administer its data")
    .addHelpText(
      "after",
      `
Environment:
  WAFT_BASE_URL        same as --base-url
  WAFT_REPOSITORY_URL  same as --repository-url
  DATABASE_URL         PostgreSQL instead of a file in the folder of --data
  WAFT_REGISTRY_KEY    file with the Ed25519 key (PKCS#8, PEM) that signs releases; earlier keys may follow in it`,
    );
  registry.command("serve", { isDefault: true })
    .description("Serve until SIGINT or SIGTERM; the first start creates an administrator and prints its token once")
    .option("--port <n>", "Port of the API and the site", portOf, 8750)
    .option("--host <address>", "Address to listen on", "127.0.0.1")
    .option("--data <dir>", DATA)
    .option("--base-url <url>", "Public address of the site (also WAFT_BASE_URL)", urlOf)
    .option("--repository-url <url>", "Source repository that pages link to (also WAFT_REPOSITORY_URL)", urlOf)
    .option("--metrics-port <n>", "Port of a separate listener with metrics, on loopback", portOf)
    .option("--trust-proxy", "Take the client's address from the last entry of X-Forwarded-For")
    .option("--releases <dir>", "Serve install.sh and waft's own releases from a folder that `deno task release` wrote")
    .option("--rate-factor <n>", "Multiply all limits of requests and publications", factorOf, 1)
    .action((options) => serve(options));
  registry.command("account").argument("<name>", "The account; it is created if it does not exist")
    .description("Print a new token for an account, and assign prefixes of ids; works while the registry runs")
    .option(
      "--prefix <prefix>",
      "Ids that the account may publish, such as github.com/acme; may be repeated",
      several,
      [],
    )
    .option("--scopes <list>", `Scopes of the token: some of ${SCOPES.join(", ")}`, scopesOf, AUTHOR_SCOPES)
    .option("--days <n>", "Days until the token expires", daysOf, DEFAULT_SETTINGS.tokenDays)
    .option("--data <dir>", DATA)
    .action((name, options) =>
      withDatabase(existingDatabase(options.data), (database) => giveAccount(database, name, options))
    );
  registry.command("migrate")
    .description("Bring the database up to date, or copy all data into PostgreSQL")
    .option("--data <dir>", DATA)
    .option("--to <kind>", "postgres: copy from the SQLite file into the empty database of DATABASE_URL")
    .action((options) => runMigrate(options.data, options.to));
  registry.command("backup").argument("<file>", "New file")
    .description("Write all data into one file while the registry runs")
    .option("--data <dir>", DATA)
    .action((file, { data }) =>
      withDatabase(existingDatabase(data), async (database) => {
        const rows = await writeBackup(database, resolve(file));
        chmodSync(resolve(file), 0o600);
        print(`written ${file}: ${rows} rows`);
      })
    );
  registry.command("restore").argument("<file>", "A file that backup wrote")
    .description("Fill an empty database from a backup")
    .option("--data <dir>", DATA)
    .action((file, { data }) =>
      withDatabase(openDatabase(data), async (database) => {
        print(`restored ${file}: ${await restoreBackup(resolve(file), database)} rows`);
      })
    );
  registry.command("publish-docs").argument("<channel>", "nightly, or v and a version")
    .description("Store the current documentation as that of a channel")
    .option("--data <dir>", DATA)
    .action((channel, { data }) => publishDocs(channel, data));
}

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

async function serve(options: ServeOptions): Promise<void> {
  const keyFile = process.env.WAFT_REGISTRY_KEY;
  const { metricsPort, releases } = options;
  const baseUrl = options.baseUrl ?? addressOf("WAFT_BASE_URL");
  const repositoryUrl = options.repositoryUrl ?? addressOf("WAFT_REPOSITORY_URL");
  if (releases !== undefined && !existsSync(join(releases, "releases", "index.json"))) {
    throw new Error(`${releases} has no releases/index.json; \`deno task release --out ${releases}\` writes it`);
  }
  // Before serving, so that no signal arrives while there is no handler.
  const stopped = new Promise<void>((done) => {
    process.once("SIGINT", () => done());
    process.once("SIGTERM", () => done());
  });
  const registry = await startRegistry({
    database: openDatabase(options.data),
    host: options.host,
    port: options.port,
    settings: {
      trustProxy: options.trustProxy === true,
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

/** Creates a token without needing one: for the first account, and to recover from a lost token. */
async function giveAccount(
  database: Database,
  name: string,
  wanted: { readonly prefix: readonly string[]; readonly scopes: readonly Scope[]; readonly days: number },
): Promise<void> {
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
    const { id } = made ?? (await accountByName(queries, name))!;
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

function several(prefix: string, before: readonly string[]): string[] {
  return [...before, prefix];
}

function scopesOf(text: string): Scope[] {
  const scopes = text.split(",").map((word) => SCOPES.find((scope) => scope === word));
  if (scopes.every((scope) => scope !== undefined)) return scopes as Scope[];
  throw new InvalidArgumentError(`Scopes are ${SCOPES.join(", ")}, with commas between them.`);
}

function daysOf(text: string): number {
  const days = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= MAX_TOKEN_DAYS) return days;
  throw new InvalidArgumentError(`It is not from 1 to ${MAX_TOKEN_DAYS}.`);
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

function portOf(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : NaN;
  if (port <= 65535) return port;
  throw new InvalidArgumentError("It is not a port.");
}

function factorOf(text: string): number {
  if (/^[1-9][0-9]{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It is not a positive integer.");
}

function urlOf(text: string): string {
  const address = httpAddress(text);
  if (address !== undefined) return address;
  throw new InvalidArgumentError("It is not an http address.");
}

/** The address in a variable, if that is set. */
function addressOf(variable: string): string | undefined {
  const text = process.env[variable] ?? "";
  if (text === "") return undefined;
  const address = httpAddress(text);
  if (address !== undefined) return address;
  throw new Error(`${variable} is "${text}", which is not an http address`);
}

function httpAddress(text: string): string | undefined {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) return undefined;
  return new URL(text).href.replace(/\/+$/, "");
}

async function runMigrate(data: string | undefined, to: string | undefined): Promise<void> {
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

async function publishDocs(channel: string, data: string | undefined): Promise<void> {
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
