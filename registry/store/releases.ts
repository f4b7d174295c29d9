/**
 * Publishing and yanking: the transactions that change the offered releases.
 *
 * In: a release that was derived from its archive and signed. Out: an outcome. Versions are immutable, build metadata
 * makes no second release, a plugin id belongs to one package, ids of one host do not share a skeleton. The package's
 * row and facets describe its newest release that is not yanked. Each operation is one transaction.
 */
import type { Definition } from "../../project/definitions/definition.ts";
import { contractNamespace } from "../../project/definitions/definition.ts";
import { MAX_INDEX_BYTES } from "../../project/packages/source.ts";
import type { PackageMetadata } from "../../project/manifest/manifest.ts";
import { compareVersions, isPrerelease } from "../../project/base/version.ts";
import { hostOf, skeletonOf } from "../names.ts";
import { audit, lockOwner, ownerOf } from "./accounts.ts";
import { first, maybeNumber, maybeText, numberOf, type Queries, textOf, type Writes } from "./database.ts";
import { appendReleases } from "./log.ts";
import type { SolverFacts } from "./packages.ts";

/** One plugin of a release. */
export interface NewPlugin {
  readonly definition: Definition;
  readonly digest: string;
  readonly entry: { readonly path: string; readonly digest: string; readonly size: number };
}

/** A file of a release; releases of older registries have no digests here. */
export interface ReleaseFile {
  readonly path: string;
  readonly size: number;
  readonly digest?: string;
}

/** A release that is ready to be stored. */
export interface NewRelease {
  readonly package: string;
  readonly version: string;
  readonly account: string;
  readonly publisher: string;
  readonly verified: boolean;
  readonly held: boolean;
  readonly publishedAt: number;
  readonly metadata: PackageMetadata;
  readonly readme: string;
  readonly readmeHtml: string;
  /** The release notes as text; "" for none. */
  readonly notes: string;
  readonly files: readonly ReleaseFile[];
  readonly plugins: readonly NewPlugin[];
  readonly archive: Uint8Array;
  /** The archive is in object storage, and not to be stored here. */
  readonly isStoredOutside?: boolean;
  readonly artifact: string;
  readonly record: string;
  readonly signature: string;
  readonly signingKey: string;
}

/** The number of releases that an account may publish, and that a plugin may have. */
export interface PublishLimits {
  readonly perHour: number;
  readonly perDay: number;
  /** Releases of one plugin. */
  readonly perPlugin: number;
}

/** The outcome of publishing. */
export type PublishOutcome =
  | { readonly kind: "created" | "same" }
  | { readonly kind: "different"; readonly artifact: string }
  | { readonly kind: "build-differs"; readonly version: string }
  | { readonly kind: "owner"; readonly id: string }
  | { readonly kind: "twin"; readonly other: string }
  | { readonly kind: "plugin-taken"; readonly id: string; readonly package: string }
  | { readonly kind: "full"; readonly id: string }
  | { readonly kind: "too-many"; readonly retryAfterSeconds: number };

/** The bytes of a release in its plugin's index, without its requirements and its compatibility. */
const INDEX_ENTRY_BYTES = 800;

const HOUR = 3_600_000;

/** Number of the renderer of READMEs: raised when its output changes, so that kept HTML is rendered again. */
const AUTHOR_RENDERER = 1;

/** Stores a release. */
export function publishRelease(
  database: Writes,
  release: NewRelease,
  limits: PublishLimits,
): Promise<PublishOutcome> {
  return database.write(async (queries): Promise<PublishOutcome> => {
    const { account, version, publishedAt } = release;
    // Locks the account's row, so that its limits hold over several processes.
    await queries.run("UPDATE accounts SET name = name WHERE id = ?", account);
    if ((await lockOwner(queries, release.package))?.account !== account) return { kind: "owner", id: release.package };
    const placed = await placePackage(queries, release);
    if (placed !== undefined) return placed;

    const foreseen = await foreseenOutcome(queries, release, limits);
    if (foreseen !== undefined) throw new Refused(foreseen); // rolls the transaction back
    for (const { definition } of release.plugins) {
      // Thrown, so that earlier claims are rolled back. A longer prefix may belong to another account.
      if ((await lockOwner(queries, definition.id))?.account !== account) {
        throw new Refused({ kind: "owner", id: definition.id });
      }
      const taken = await claimPlugin(queries, definition.id, release.package);
      if (taken !== undefined) throw new Refused({ kind: "plugin-taken", id: definition.id, package: taken });
      if (await isFull(queries, definition, limits.perPlugin)) throw new Refused({ kind: "full", id: definition.id });
    }
    await takeOver(queries, release);
    await insertRelease(queries, release, precedenceOf(version));
    await refreshPackage(queries, release.package);
    await audit(queries, {
      at: publishedAt,
      account,
      action: "publish",
      subject: `${release.package} ${version}`,
      detail: release.artifact,
    });
    // Last, because publications of all packages wait for each other from here on.
    await appendReleases(queries, release.package);
    return { kind: "created" };
  }).catch((error: unknown) => {
    if (error instanceof Refused) return error.outcome;
    throw error;
  });
}

/** The version without build metadata, which does not distinguish releases. */
function precedenceOf(version: string): string {
  return version.replace(/\+.*$/, "");
}

/**
 * The outcome of publishing a version as far as it is known without the contents of the archive: the version exists, or
 * the account has reached its limits. Undefined if the archive decides.
 */
export async function foreseenOutcome(
  queries: Queries,
  release: Pick<NewRelease, "package" | "version" | "account" | "publishedAt" | "artifact">,
  limits: PublishLimits,
): Promise<PublishOutcome | undefined> {
  const { account, version, publishedAt } = release;
  const known = await first(
    queries,
    "SELECT version, artifact FROM releases WHERE package = ? AND precedence = ?",
    release.package,
    precedenceOf(version),
  );
  if (known === undefined) return await overLimit(queries, account, publishedAt, limits);
  if (textOf(known, "version") !== version) return { kind: "build-differs", version: textOf(known, "version") };
  const artifact = textOf(known, "artifact");
  return artifact === release.artifact ? { kind: "same" } : { kind: "different", artifact };
}

class Refused extends Error {
  readonly outcome: PublishOutcome;

  constructor(outcome: PublishOutcome) {
    super(outcome.kind);
    this.outcome = outcome;
  }
}

/** Makes the package's row if there is none, and locks it. */
async function placePackage(queries: Queries, release: NewRelease): Promise<PublishOutcome | undefined> {
  const { metadata } = release;
  const host = hostOf(release.package);
  const skeleton = skeletonOf(release.package);
  await queries.run(
    `INSERT INTO packages (id, owner, host, skeleton, created_at, held, latest, published_at, title, title_lower,
       summary, tags, license, repository, kinds, authorities, search, installs_total, installs_week, week_rank)
     VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, '[]', ?, ?, '[]', '[]', '', 0, 0, 0)
     ON CONFLICT DO NOTHING`,
    release.package,
    release.account,
    host,
    skeleton,
    release.publishedAt,
    release.held ? 1 : 0,
    release.publishedAt,
    metadata.name,
    metadata.name.toLowerCase(),
    metadata.description,
    metadata.license,
    metadata.repository,
  );
  await queries.run("UPDATE packages SET host = host WHERE host = ? AND skeleton = ?", host, skeleton);
  const row = (await first(queries, "SELECT id FROM packages WHERE host = ? AND skeleton = ?", host, skeleton))!;
  if (textOf(row, "id") !== release.package) return { kind: "twin", other: textOf(row, "id") };
  return undefined;
}

/** A package follows its prefix: when that has a new owner, so has the package. */
async function takeOver(queries: Queries, { account, package: id, publishedAt }: NewRelease): Promise<void> {
  const moved = await queries.run("UPDATE packages SET owner = ? WHERE id = ? AND owner <> ?", account, id, account);
  if (moved === 1) await audit(queries, { at: publishedAt, account, action: "take-over", subject: id });
}

async function overLimit(
  queries: Queries,
  account: string,
  now: number,
  limits: PublishLimits,
): Promise<PublishOutcome | undefined> {
  for (const [span, limit] of [[HOUR, limits.perHour], [24 * HOUR, limits.perDay]] as const) {
    const row = (await first(
      queries,
      "SELECT count(*) AS n, min(published_at) AS oldest FROM releases WHERE account = ? AND published_at > ?",
      account,
      now - span,
    ))!;
    if (numberOf(row, "n") >= limit) {
      const oldest = limit === 0 ? now : numberOf(row, "oldest");
      return { kind: "too-many", retryAfterSeconds: Math.max(1, Math.ceil((oldest + span - now) / 1000)) };
    }
  }
  return undefined;
}

/** The package that has the id already, if it is another. */
async function claimPlugin(queries: Queries, id: string, packageId: string): Promise<string | undefined> {
  await queries.run("INSERT INTO plugins (id, package) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", id, packageId);
  const row = (await first(queries, "SELECT package FROM plugins WHERE id = ?", id))!;
  return textOf(row, "package") === packageId ? undefined : textOf(row, "package");
}

/** Whether clients would refuse the index of a plugin with one more release. */
async function isFull(queries: Queries, definition: Definition, perPlugin: number): Promise<boolean> {
  const row = (await first(
    queries,
    "SELECT count(*) AS n, COALESCE(sum(length(facts)), 0) AS size FROM definitions WHERE id = ?",
    definition.id,
  ))!;
  const count = numberOf(row, "n") + 1;
  const facts = numberOf(row, "size") + JSON.stringify(factsOf(definition)).length;
  return count > perPlugin || count * INDEX_ENTRY_BYTES + facts > MAX_INDEX_BYTES;
}

function factsOf({ requires, compatibility, stability }: Definition): SolverFacts {
  return { requires, compatibility, ...(stability === undefined ? {} : { stability }) };
}

async function insertRelease(queries: Queries, release: NewRelease, precedence: string): Promise<void> {
  await queries.run(
    "INSERT INTO blobs (digest, size, bytes) VALUES (?, ?, ?) ON CONFLICT (digest) DO NOTHING",
    release.artifact,
    release.archive.length,
    release.isStoredOutside === true ? new Uint8Array() : release.archive,
  );
  await queries.run(
    `INSERT INTO releases (package, version, precedence, artifact, size, account, publisher, verified, published_at,
       metadata, readme, readme_html, readme_renderer, notes, files, record, signature, signing_key)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    release.package,
    release.version,
    precedence,
    release.artifact,
    release.archive.length,
    release.account,
    release.publisher,
    release.verified ? 1 : 0,
    release.publishedAt,
    JSON.stringify(release.metadata),
    release.readme,
    release.readmeHtml,
    AUTHOR_RENDERER,
    release.notes,
    JSON.stringify(release.files),
    release.record,
    release.signature,
    release.signingKey,
  );
  for (const plugin of release.plugins) {
    const { definition } = plugin;
    await queries.run(
      "INSERT INTO definitions (id, version, package, digest, definition, facts, entry) VALUES (?, ?, ?, ?, ?, ?, ?)",
      definition.id,
      release.version,
      release.package,
      plugin.digest,
      JSON.stringify(definition),
      JSON.stringify(factsOf(definition)),
      JSON.stringify(plugin.entry),
    );
    for (const contract of definition.provides) {
      await queries.run(
        "INSERT INTO contracts (namespace, id, version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        contractNamespace(contract),
        definition.id,
        release.version,
      );
    }
  }
}

/** The release of a yank, and the right by which it is yanked or un-yanked. */
interface YankRight {
  readonly package: string;
  readonly version: string;
  readonly account: string;
  readonly at: number;
  /** True for an administrator: owners do not change the yank of an administrator of another account. */
  readonly isAdmin: boolean;
}

/** Yanks a release, or changes the reason of a yanked one; false when an administrator's yank stays as it is. */
export function yankRelease(
  database: Writes,
  yank: YankRight & { readonly reason: string; readonly severity: string },
): Promise<boolean> {
  return database.write(async (queries) => {
    await queries.run("UPDATE packages SET host = host WHERE id = ?", yank.package);
    if (!yank.isAdmin && await isModerated(queries, yank)) return false;
    const isModeration = yank.isAdmin && (await ownerOf(queries, yank.package))?.account !== yank.account;
    await queries.run(
      `INSERT INTO yanks (package, version, reason, severity, account, yanked_at, moderated)
       VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (package, version) DO UPDATE SET reason = excluded.reason, severity = excluded.severity,
         account = excluded.account, yanked_at = excluded.yanked_at, moderated = excluded.moderated`,
      yank.package,
      yank.version,
      yank.reason,
      yank.severity,
      yank.account,
      yank.at,
      isModeration ? 1 : 0,
    );
    await refreshPackage(queries, yank.package);
    await audit(queries, {
      at: yank.at,
      account: yank.account,
      action: "yank",
      subject: `${yank.package} ${yank.version}`,
      detail: `${yank.severity}: ${yank.reason}`,
    });
    return true;
  });
}

/** Un-yanks a release; false when an administrator's yank stays. */
export function unyankRelease(database: Writes, of: YankRight): Promise<boolean> {
  return database.write(async (queries) => {
    await queries.run("UPDATE packages SET host = host WHERE id = ?", of.package);
    if (!of.isAdmin && await isModerated(queries, of)) return false;
    const removed = await queries.run("DELETE FROM yanks WHERE package = ? AND version = ?", of.package, of.version);
    if (removed === 0) return true;
    await refreshPackage(queries, of.package);
    await audit(queries, { at: of.at, account: of.account, action: "unyank", subject: `${of.package} ${of.version}` });
    return true;
  });
}

async function isModerated(queries: Queries, of: YankRight): Promise<boolean> {
  const row = await first(
    queries,
    "SELECT moderated FROM yanks WHERE package = ? AND version = ?",
    of.package,
    of.version,
  );
  return row !== undefined && maybeNumber(row, "moderated") === 1;
}

/** Releases a held package; false when none is held. */
export function releaseHold(database: Writes, id: string, account: string, at: number): Promise<boolean> {
  return database.write(async (queries) => {
    if (await queries.run("UPDATE packages SET held = 0 WHERE id = ? AND held = 1", id) === 0) return false;
    await appendReleases(queries, id);
    await audit(queries, { at, account, action: "release-hold", subject: id });
    return true;
  });
}

/** The version that a package is shown with: the newest, stable ones first. */
export function newestOf(versions: readonly string[]): string | undefined {
  const sorted = [...versions].sort((a, b) => compareVersions(b, a));
  return sorted.find((v) => !isPrerelease(v)) ?? sorted[0];
}

/** Updates the columns that lists show, from the newest release. */
async function refreshPackage(queries: Queries, id: string): Promise<void> {
  const rows = await queries.all(
    `SELECT r.version, y.reason FROM releases r
     LEFT JOIN yanks y ON y.package = r.package AND y.version = r.version WHERE r.package = ?`,
    id,
  );
  const good = rows.filter((row) => maybeText(row, "reason") === undefined).map((row) => textOf(row, "version"));
  const latest = newestOf(good);
  await queries.run("DELETE FROM facets WHERE package = ?", id);
  if (latest === undefined) {
    await queries.run("UPDATE packages SET latest = NULL WHERE id = ?", id);
    return;
  }
  const release = (await first(
    queries,
    "SELECT metadata, published_at FROM releases WHERE package = ? AND version = ?",
    id,
    latest,
  ))!;
  const definitions = (await queries.all(
    "SELECT definition FROM definitions WHERE package = ? AND version = ? ORDER BY id",
    id,
    latest,
  )).map((row) => JSON.parse(textOf(row, "definition")) as Definition);
  const metadata = JSON.parse(textOf(release, "metadata")) as PackageMetadata;
  const kinds = sortedSet(definitions.map((d) => d.kind));
  const authorities = sortedSet(definitions.flatMap((d) => d.authorities.map((a) => a.name)));
  await queries.run(
    `UPDATE packages SET latest = ?, published_at = ?, title = ?, title_lower = ?, summary = ?, stability = ?,
       category = ?, tags = ?, license = ?, repository = ?, kinds = ?, authorities = ?, search = ? WHERE id = ?`,
    latest,
    numberOf(release, "published_at"),
    metadata.name,
    metadata.name.toLowerCase(),
    metadata.description,
    metadata.stability ?? null,
    metadata.category ?? null,
    JSON.stringify(metadata.tags ?? []),
    metadata.license,
    metadata.repository,
    JSON.stringify(kinds),
    JSON.stringify(authorities),
    searchText(id, metadata),
    id,
  );
  for (const [facet, value] of facetsOf(metadata, definitions, kinds, authorities)) {
    await queries.run(
      "INSERT INTO facets (package, facet, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      id,
      facet,
      value,
    );
  }
}

function searchText(id: string, metadata: PackageMetadata): string {
  const { name, description, category, tags, subpackages } = metadata;
  const more = (subpackages ?? []).flatMap((s) => [s.module, s.name, s.description]);
  return [id, name, description, category ?? "", ...(tags ?? []), ...more].join("\n").toLowerCase();
}

function facetsOf(
  metadata: PackageMetadata,
  definitions: readonly Definition[],
  kinds: readonly string[],
  authorities: readonly string[],
): [facet: string, value: string][] {
  const facets: [string, string][] = [];
  const add = (facet: string, values: readonly string[]): void => {
    for (const value of sortedSet(values)) facets.push([facet, value]);
  };
  add("category", metadata.category === undefined ? [] : [metadata.category]);
  add("stability", metadata.stability === undefined ? [] : [metadata.stability]);
  add("tag", [...(metadata.tags ?? []), ...(metadata.subpackages ?? []).flatMap((s) => s.tags ?? [])]);
  add("engine", definitions.flatMap((d) => Object.keys(d.compatibility.engines)));
  // A plugin without platforms runs on all of them; `*` says so to the filter.
  add(
    "platform",
    definitions.flatMap((d) => d.compatibility.platforms.length === 0 ? ["*"] : d.compatibility.platforms),
  );
  add("kind", kinds);
  add("authority", authorities);
  add("contract", definitions.flatMap((d) => d.provides.map(contractNamespace)));
  return facets;
}

function sortedSet(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}

/** A release whose README was rendered by an older renderer, or never. */
interface StaleReadme {
  readonly package: string;
  readonly version: string;
  readonly readme: string;
}

/** The next release whose README must be rendered again. */
export async function staleReadme(queries: Queries): Promise<StaleReadme | undefined> {
  const row = await first(
    queries,
    "SELECT package, version, readme FROM releases WHERE readme_renderer IS NULL OR readme_renderer < ? LIMIT 1",
    AUTHOR_RENDERER,
  );
  return row && { package: textOf(row, "package"), version: textOf(row, "version"), readme: textOf(row, "readme") };
}

/** Keeps a rendered README. */
export async function keepReadme(queries: Queries, of: StaleReadme, html: string): Promise<void> {
  await queries.run(
    "UPDATE releases SET readme_html = ?, readme_renderer = ? WHERE package = ? AND version = ?",
    html,
    AUTHOR_RENDERER,
    of.package,
    of.version,
  );
}
