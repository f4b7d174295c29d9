/**
 * A registry, from database to listener.
 *
 * In: a database and choices. Out: a running registry and a way to stop it. Starting migrates the database, creates
 * keys and, the first time, an administrator whose token is shown once.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeApp } from "./app.ts";
import { dnsProof, type DomainProof } from "./domains.ts";
import { type Log, logToStderr } from "./log.ts";
import { METRICS_CONTENT_TYPE } from "../project/base/prometheus.ts";
import { Metrics } from "./metrics.ts";
import { CheckPool } from "./publish/check_pool.ts";
import { renderStaleReadmes } from "./publish/readmes.ts";
import { RateLimiter } from "./rate_limit.ts";
import { mintToken } from "./routes/accounts.ts";
import { type Answerer, listen, type Listener } from "./serve.ts";
import { KeptLists } from "./kept_lists.ts";
import type { Services } from "./services.ts";
import { loadReference } from "./site/reference/build.ts";
import { DEFAULT_SETTINGS, type Settings } from "./settings.ts";
import type { SigningKey } from "./signing.ts";
import { DocumentSite } from "./site/documents.ts";
import { generatedPages } from "./site/generated_pages.ts";
import { createAccount, SCOPES } from "./store/accounts.ts";
import type { Database } from "./store/database.ts";
import type { ObjectStore } from "./store/object_store.ts";
import { refreshCounts } from "./store/installs.ts";
import { currentKey, readDocuments, sharedSecret, type StoredDocument, writeDocuments } from "./store/keys.ts";
import { completeLog } from "./store/log.ts";
import { migrate } from "./store/migrations.ts";
import { VERSION } from "../project/base/version_string.ts";
import type { ReleaseIndex } from "../project/versions/release_index.ts";

/** Choices of the caller. */
export interface RegistryChoices {
  readonly database: Database;
  readonly host?: string;
  readonly port?: number;
  /** Port of the metrics listener; none when absent. */
  readonly metricsPort?: number;
  /** Where archives are stored, if not in the database. */
  readonly objects?: ObjectStore;
  readonly settings?: Partial<Settings>;
  /** The key that signs, and earlier ones that endorse it. */
  readonly signingKeys?: readonly [SigningKey, ...SigningKey[]];
  readonly domains?: DomainProof;
  readonly log?: Log;
  readonly now?: () => number;
  /** Pages of the canary channel instead of docs/. */
  readonly documents?: readonly StoredDocument[];
  /** The checking program, for tests. */
  readonly checkScript?: string;
}

/** A running registry. */
export interface Registry {
  readonly url: string;
  readonly metricsUrl?: string;
  readonly services: Services;
  /** The administrator's token, when this start made one. */
  readonly adminToken?: string;
  close(): Promise<void>;
}

const REFRESH_MS = 60_000;
const DOCS = new URL("../docs/", import.meta.url);

/** Starts a registry. */
export async function startRegistry(choices: RegistryChoices): Promise<Registry> {
  // Requests that arrive during the start wait for its end.
  const { promise: ready, resolve: serve, reject: refuse } = Promise.withResolvers<Answerer>();
  ready.catch(() => {});
  // Listen first: when the port is taken, the start must fail before the token is created, which is shown only once.
  const site = await listen(async (request, peer, fields) => await (await ready)(request, peer, fields), {
    host: choices.host ?? "127.0.0.1",
    port: choices.port ?? 0,
  });
  const metrics = new Metrics();
  let metricsListener: Listener | undefined;
  try {
    if (choices.metricsPort !== undefined) metricsListener = await listenForMetrics(metrics, choices.metricsPort);
    return await startOn(site, metricsListener, metrics, choices, serve);
  } catch (error) {
    refuse(error);
    await Promise.all([site.close(0), metricsListener?.close(0)]);
    throw error;
  }
}

/** Prepares the database once there is a port, and gives `serve` the application. */
async function startOn(
  listener: Listener,
  metricsListener: Listener | undefined,
  metrics: Metrics,
  choices: RegistryChoices,
  serve: (app: Answerer) => void,
): Promise<Registry> {
  const { database } = choices;
  const now = choices.now ?? Date.now;
  const log = choices.log ?? logToStderr;
  await migrate(database);
  await completeLog(database);
  const signingKey = await currentKey(database, now(), choices.signingKeys?.[0], choices.signingKeys?.slice(1));
  const cursorSecret = await sharedSecret(database, "cursor");
  const own = choices.documents ?? await canaryDocuments();
  const adminToken = await firstStart(database, now());
  const settings: Settings = { ...DEFAULT_SETTINGS, baseUrl: listener.url, ...choices.settings };
  const documents = await CurrentDocuments.read(database, settings, own);
  const services: Services = {
    settings,
    database,
    objects: choices.objects,
    signingKey,
    cursorSecret,
    pool: new CheckPool(settings, choices.checkScript),
    limiter: new RateLimiter(settings.rates, now),
    metrics,
    log,
    domains: choices.domains ?? dnsProof,
    get documents() {
      return documents.site;
    },
    lists: new KeptLists(database),
    identities: lateIdentities(settings),
    now,
  };
  serve(await makeApp(services));
  const background = new Background(log);
  const readmes = (): Promise<unknown> => renderStaleReadmes(database, services.pool, settings);
  background.add(() => documents.complete(choices.documents === undefined, now()));
  background.add(readmes);
  const timer = setInterval(() => {
    background.add(async () => {
      await refreshCounts(database, now());
      // Processes of an older program on the same database may publish without the log until they are replaced.
      await completeLog(database);
      await documents.refresh();
      await readmes();
    });
  }, REFRESH_MS);
  timer.unref();
  return {
    url: listener.url,
    services,
    ...(metricsListener === undefined ? {} : { metricsUrl: `${metricsListener.url}/metrics` }),
    ...(adminToken === undefined ? {} : { adminToken }),
    async close() {
      clearInterval(timer);
      await listener.close();
      await metricsListener?.close();
      services.pool.close();
      await background.ended();
      await database.close();
    },
  };
}

/** Makes the verifier of identity tokens when it is first asked for. */
function lateIdentities({ oidcIssuers, baseUrl }: Settings): Services["identities"] {
  let made: ReturnType<Services["identities"]> | undefined;
  return () => made ??= import("./oidc.ts").then(({ IdentityVerifier }) => new IdentityVerifier(oidcIssuers, baseUrl));
}

/** Work beside requests, one piece at a time. Failures are logged and do not stop later work. */
class Background {
  readonly #log: Log;
  #last: Promise<void> = Promise.resolve();

  constructor(log: Log) {
    this.#log = log;
  }

  add(work: () => Promise<unknown>): void {
    const failed = (error: Error): void => this.#log("refresh-failed", { message: error.message });
    this.#last = this.#last.then(work).then(() => {}, failed);
  }

  /** Resolves when all work added so far has ended. */
  ended(): Promise<void> {
    return this.#last;
  }
}

/** The documentation that the site shows: this program's own, and the channels in the database. */
class CurrentDocuments {
  readonly #database: Database;
  readonly #settings: Settings;
  #own: readonly StoredDocument[];
  #site: DocumentSite;

  private constructor(
    database: Database,
    settings: Settings,
    own: readonly StoredDocument[],
    site: DocumentSite,
  ) {
    this.#database = database;
    this.#settings = settings;
    this.#own = own;
    this.#site = site;
  }

  static async read(
    database: Database,
    settings: Settings,
    own: readonly StoredDocument[],
  ): Promise<CurrentDocuments> {
    return new CurrentDocuments(database, settings, own, await readSite(database, settings.baseUrl, own));
  }

  get site(): DocumentSite {
    return this.#site;
  }

  /** Reads the channels again. */
  async refresh(): Promise<void> {
    this.#site = await readSite(this.#database, this.#settings.baseUrl, this.#own, this.#site);
  }

  /** Adds the API reference, which takes long, if wanted, and stores the documentation of an offered release. */
  async complete(withReference: boolean, at: number): Promise<void> {
    if (withReference) this.#own = [...this.#own, ...await loadReference()];
    await keepReleased(this.#database, this.#settings.releases, this.#own, at);
    await this.refresh();
  }
}

function listenForMetrics(metrics: Metrics, port: number): Promise<Listener> {
  const answer = (request: Request): Response =>
    new URL(request.url).pathname === "/metrics"
      ? new Response(metrics.format(), { headers: { "content-type": METRICS_CONTENT_TYPE } })
      : new Response("Not found\n", { status: 404 });
  return listen((request) => Promise.resolve(answer(request)), { host: "127.0.0.1", port });
}

/** The pages of docs/ and those that the program writes, without the API reference, which takes longer. */
export async function canaryDocuments(): Promise<StoredDocument[]> {
  const written = existsSync(DOCS)
    ? readdirSync(DOCS).filter((name) => name.endsWith(".md")).sort().map((name) => ({
      path: name,
      source: readFileSync(new URL(name, DOCS), "utf8"),
    }))
    : [];
  return [...written, ...await generatedPages()];
}

async function readSite(
  database: Database,
  baseUrl: string,
  own: readonly StoredDocument[],
  previous?: DocumentSite,
): Promise<DocumentSite> {
  return new DocumentSite(baseUrl, new Map([["canary", own], ...await readDocuments(database)]), previous);
}

/** Keeps the documentation of this program for the channels that offer it: its version, and nightly. */
async function keepReleased(
  database: Database,
  releases: string | undefined,
  own: readonly StoredDocument[],
  at: number,
): Promise<void> {
  const file = join(releases ?? "", "releases", "index.json");
  if (releases === undefined || !existsSync(file)) return;
  const { releases: offered = {}, channels = {} } = JSON.parse(readFileSync(file, "utf8")) as Partial<ReleaseIndex>;
  if (offered[VERSION] !== undefined) await writeDocuments(database, `v${VERSION}`, own, at);
  if (channels.nightly === VERSION) await writeDocuments(database, "nightly", own, at);
}

/** Creates the administrator of a new database; returns the token. */
async function firstStart(database: Database, at: number): Promise<string | undefined> {
  const admin = await database.write((queries) => createAccount(queries, "admin", at));
  // Another process may have been first and shown the token.
  if (admin === undefined) return undefined;
  const { secret } = await mintToken(database, {
    account: admin.id,
    label: "made at first start",
    scopes: SCOPES,
    prefix: "*",
    days: 366,
    at,
  });
  return secret;
}
