/**
 * The command `registry` as commander reads it: subcommands, arguments, options. In: the program. Out: the command with
 * its actions, whose module is loaded when one of them runs, so that help and the site's command reference do not load
 * the registry.
 */
import { type Command, InvalidArgumentError } from "@commander-js/extra-typings";
import type { Command as AnyCommand } from "commander";
import { MAX_TOKEN_DAYS } from "./routes/accounts.ts";
import { isSafeAddress } from "../project/packages/oidc_issuers.ts";
import { DEFAULT_SETTINGS } from "./settings.ts";
import { type Scope, SCOPES } from "./store/accounts.ts";

/** Options of `registry serve`. */
export interface ServeOptions {
  readonly port: number;
  readonly host: string;
  readonly data?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly repositoryUrl?: string | undefined;
  readonly metricsPort?: number | undefined;
  readonly rateFactor: number;
  readonly trustProxy?: true | undefined;
  /** Issuers of identity tokens in place of the default ones. */
  readonly oidcIssuer?: readonly string[] | undefined;
  readonly releases?: string | undefined;
}

/** Options of `registry account`. */
export interface AccountOptions {
  /** Prefixes of ids that the account may publish. */
  readonly prefix: readonly string[];
  readonly scopes: readonly Scope[];
  readonly days: number;
  readonly data?: string | undefined;
}

/** Options of `registry suspend`. */
export interface SuspendOptions {
  /** Ends the suspension. */
  readonly lift?: true | undefined;
  readonly data?: string | undefined;
}

/** Options of `registry verify`. */
export interface VerifyOptions {
  /** A file with the head seen last, which gets the new one. */
  readonly head?: string | undefined;
  /** Files with heads that others have seen. */
  readonly compare: readonly string[];
}

/** The actions of the subcommands. `data` is the folder of the SQLite file. */
interface RegistryActions {
  serve(options: ServeOptions): Promise<void>;
  giveAccount(name: string, options: AccountOptions): Promise<void>;
  suspend(name: string, options: SuspendOptions): Promise<void>;
  runMigrate(data: string | undefined, to: string | undefined): Promise<void>;
  backUp(file: string, data: string | undefined): Promise<void>;
  restore(file: string, data: string | undefined): Promise<void>;
  publishDocs(channel: string, data: string | undefined): Promise<void>;
  verify(registry: string, options: VerifyOptions): Promise<void>;
}

const DATA = "Folder of the SQLite file; not used with DATABASE_URL";

/** Default scopes of an author's token. */
const AUTHOR_SCOPES: Scope[] = ["publish", "yank", "owners"];

/** Adds the command to `program`; `load` provides the actions. */
export function addRegistryCommand(program: AnyCommand, load: () => Promise<RegistryActions>): void {
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
    .option(
      "--oidc-issuer <url>",
      "Issuer of identity tokens for publishing, in place of GitHub's and GitLab's; may be repeated",
      issuersOf,
    )
    .option("--releases <dir>", "Serve install.sh and waft's own releases from a folder that `deno task release` wrote")
    .option("--rate-factor <n>", "Multiply all limits of requests and publications", factorOf, 1)
    .action(async (options) => (await load()).serve(options));
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
    .action(async (name, options) => (await load()).giveAccount(name, options));
  registry.command("suspend").argument("<name>", "The account")
    .description("Revoke the tokens of an account and those that they made, and let it have no others")
    .option("--lift", "End the suspension; the revoked tokens stay revoked")
    .option("--data <dir>", DATA)
    .action(async (name, options) => (await load()).suspend(name, options));
  registry.command("migrate")
    .description("Bring the database up to date, or copy all data into PostgreSQL")
    .option("--data <dir>", DATA)
    .option("--to <kind>", "postgres: copy from the SQLite file into the empty database of DATABASE_URL")
    .action(async ({ data, to }) => (await load()).runMigrate(data, to));
  registry.command("backup").argument("<file>", "New file")
    .description("Write all data into one file while the registry runs")
    .option("--data <dir>", DATA)
    .action(async (file, { data }) => (await load()).backUp(file, data));
  registry.command("restore").argument("<file>", "A file that backup wrote")
    .description("Fill an empty database from a backup")
    .option("--data <dir>", DATA)
    .action(async (file, { data }) => (await load()).restore(file, data));
  registry.command("publish-docs").argument("<channel>", "nightly, or v and a version")
    .description("Store the current documentation as that of a channel")
    .option("--data <dir>", DATA)
    .action(async (channel, { data }) => (await load()).publishDocs(channel, data));
  registry.command("verify").argument("<url>", "The address of a registry, yours or another one")
    .description("Read the whole transparency log of a registry, and verify its signatures, its history and its tree")
    .option("--head <file>", "File with the head of the last verification; it gets the new one")
    .option("--compare <file>", "File with a head that others have seen; may be repeated", several, [])
    .action(async (url, options) => (await load()).verify(url, options));
}

function several(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

function scopesOf(text: string): Scope[] {
  const scopes = text.split(",").map((word) => SCOPES.find((scope) => scope === word));
  if (scopes.every((scope) => scope !== undefined)) return scopes as Scope[];
  throw new InvalidArgumentError(`Scopes are ${SCOPES.join(", ")}, with commas between them.`);
}

function issuersOf(url: string, before: readonly string[] = []): string[] {
  if (isSafeAddress(url)) return [...before, url.replace(/\/+$/, "")];
  throw new InvalidArgumentError("It is not an https address.");
}

function daysOf(text: string): number {
  const days = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= MAX_TOKEN_DAYS) return days;
  throw new InvalidArgumentError(`It is not from 1 to ${MAX_TOKEN_DAYS}.`);
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

/** The normal form of an http or https address; undefined for other text. */
export function httpAddress(text: string): string | undefined {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) return undefined;
  return new URL(text).href.replace(/\/+$/, "");
}
