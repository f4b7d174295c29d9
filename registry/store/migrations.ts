/**
 * The tables, as numbered migrations that are applied once, in order, under a lock.
 *
 * `{text}`, `{int}`, `{blob}` and `{strict}` are replaced by each database's types; text compares by code unit in both,
 * so that pages of results are the same. A released migration never changes: its digest is stored and compared. A
 * database with migrations that this code does not know is refused. Times are milliseconds since 1970.
 */
import { createHash } from "node:crypto";
import { type Database, numberOf, type Queries, textOf } from "./database.ts";

interface Migration {
  readonly name: string;
  readonly statements: readonly string[];
}

/** Migration n is the n-th of the list, counted from 1. */
export const MIGRATIONS: readonly Migration[] = [
  {
    name: "accounts, packages, releases",
    statements: [
      `CREATE TABLE accounts (
        id {text} PRIMARY KEY, name {text} NOT NULL UNIQUE, created_at {int} NOT NULL, suspended_at {int}
      ){strict}`,
      `CREATE TABLE tokens (
        id {text} PRIMARY KEY, account {text} NOT NULL REFERENCES accounts (id), hash {text} NOT NULL UNIQUE,
        label {text} NOT NULL, scopes {text} NOT NULL, prefix {text} NOT NULL,
        created_at {int} NOT NULL, expires_at {int} NOT NULL, revoked_at {int}
      ){strict}`,
      `CREATE INDEX tokens_account ON tokens (account)`,
      `CREATE TABLE prefixes (
        prefix {text} PRIMARY KEY, account {text} NOT NULL REFERENCES accounts (id), proof {text} NOT NULL,
        created_at {int} NOT NULL
      ){strict}`,
      `CREATE TABLE packages (
        id {text} PRIMARY KEY, owner {text} NOT NULL REFERENCES accounts (id), host {text} NOT NULL,
        skeleton {text} NOT NULL, created_at {int} NOT NULL, held {int} NOT NULL,
        latest {text}, published_at {int} NOT NULL, title {text} NOT NULL, title_lower {text} NOT NULL,
        summary {text} NOT NULL, stability {text}, category {text}, tags {text} NOT NULL, license {text} NOT NULL,
        repository {text} NOT NULL, kinds {text} NOT NULL, authorities {text} NOT NULL, search {text} NOT NULL,
        installs_total {int} NOT NULL, installs_week {int} NOT NULL, week_rank {int} NOT NULL,
        UNIQUE (host, skeleton)
      ){strict}`,
      `CREATE INDEX packages_recent ON packages (published_at)`,
      `CREATE INDEX packages_installs ON packages (installs_total)`,
      `CREATE INDEX packages_owner ON packages (owner)`,
      `CREATE TABLE plugins (id {text} PRIMARY KEY, package {text} NOT NULL REFERENCES packages (id)){strict}`,
      `CREATE INDEX plugins_package ON plugins (package)`,
      `CREATE TABLE blobs (digest {text} PRIMARY KEY, size {int} NOT NULL, bytes {blob} NOT NULL){strict}`,
      `CREATE TABLE releases (
        package {text} NOT NULL REFERENCES packages (id), version {text} NOT NULL, precedence {text} NOT NULL,
        artifact {text} NOT NULL REFERENCES blobs (digest), size {int} NOT NULL, account {text} NOT NULL,
        publisher {text} NOT NULL, verified {int} NOT NULL, published_at {int} NOT NULL, metadata {text} NOT NULL,
        readme {text} NOT NULL, files {text} NOT NULL, record {text} NOT NULL, signature {text} NOT NULL,
        signing_key {text} NOT NULL,
        PRIMARY KEY (package, version), UNIQUE (package, precedence)
      ){strict}`,
      `CREATE INDEX releases_account ON releases (account, published_at)`,
      `CREATE TABLE definitions (
        id {text} NOT NULL REFERENCES plugins (id), version {text} NOT NULL, package {text} NOT NULL,
        digest {text} NOT NULL, definition {text} NOT NULL, entry {text} NOT NULL,
        PRIMARY KEY (id, version)
      ){strict}`,
      `CREATE INDEX definitions_package ON definitions (package, version)`,
      `CREATE TABLE facets (
        package {text} NOT NULL REFERENCES packages (id), facet {text} NOT NULL, value {text} NOT NULL,
        PRIMARY KEY (facet, value, package)
      ){strict}`,
      `CREATE INDEX facets_package ON facets (package)`,
      `CREATE TABLE contracts (
        namespace {text} NOT NULL, id {text} NOT NULL, version {text} NOT NULL, PRIMARY KEY (namespace, id, version)
      ){strict}`,
      `CREATE TABLE yanks (
        package {text} NOT NULL, version {text} NOT NULL, reason {text} NOT NULL, severity {text} NOT NULL,
        account {text} NOT NULL, yanked_at {int} NOT NULL, PRIMARY KEY (package, version)
      ){strict}`,
    ],
  },
  {
    name: "installs, keys, documents, audit",
    statements: [
      `CREATE TABLE installs_daily (
        package {text} NOT NULL, version {text} NOT NULL, day {int} NOT NULL, count {int} NOT NULL,
        PRIMARY KEY (package, day, version)
      ){strict}`,
      `CREATE INDEX installs_day ON installs_daily (day)`,
      `CREATE TABLE install_salts (day {int} PRIMARY KEY, salt {text} NOT NULL){strict}`,
      `CREATE TABLE install_marks (day {int} NOT NULL, mark {text} NOT NULL, PRIMARY KEY (day, mark)){strict}`,
      `CREATE TABLE signing_keys (
        id {text} PRIMARY KEY, public_key {text} NOT NULL, private_key {text} NOT NULL, created_at {int} NOT NULL,
        retired_at {int}
      ){strict}`,
      `CREATE TABLE secrets (name {text} PRIMARY KEY, value {text} NOT NULL){strict}`,
      `CREATE TABLE documents (
        channel {text} NOT NULL, path {text} NOT NULL, source {text} NOT NULL, published_at {int} NOT NULL,
        PRIMARY KEY (channel, path)
      ){strict}`,
      `CREATE TABLE audit (
        id {text} PRIMARY KEY, at {int} NOT NULL, account {text} NOT NULL, action {text} NOT NULL,
        subject {text} NOT NULL, detail {text} NOT NULL
      ){strict}`,
      `CREATE INDEX audit_at ON audit (at)`,
    ],
  },
  {
    name: "keys endorse those that come after",
    statements: [
      `ALTER TABLE signing_keys ADD COLUMN endorsed_by {text}`,
      `ALTER TABLE signing_keys ADD COLUMN endorsement {text}`,
    ],
  },
  {
    name: "rendered READMEs, solver facts, parents of tokens",
    statements: [
      `ALTER TABLE releases ADD COLUMN readme_html {text}`,
      `ALTER TABLE releases ADD COLUMN readme_renderer {int}`,
      `CREATE INDEX releases_renderer ON releases (readme_renderer)`,
      `ALTER TABLE definitions ADD COLUMN facts {text}`,
      `ALTER TABLE tokens ADD COLUMN parent {text}`,
      `CREATE INDEX tokens_parent ON tokens (parent)`,
    ],
  },
  {
    name: "changes by time",
    statements: [
      `CREATE INDEX releases_published ON releases (published_at)`,
      `CREATE INDEX yanks_time ON yanks (yanked_at)`,
    ],
  },
  {
    name: "yanks by administrators",
    statements: [`ALTER TABLE yanks ADD COLUMN moderated {int}`],
  },
  {
    name: "deprecations",
    statements: [
      // An empty version is the whole package.
      `CREATE TABLE deprecations (
        package {text} NOT NULL, version {text} NOT NULL, message {text} NOT NULL, account {text} NOT NULL,
        deprecated_at {int} NOT NULL, PRIMARY KEY (package, version)
      ){strict}`,
    ],
  },
  {
    name: "transparency log",
    statements: [
      `CREATE TABLE log_entries (
        number {int} PRIMARY KEY, package {text} NOT NULL, version {text} NOT NULL, UNIQUE (package, version)
      ){strict}`,
      `CREATE TABLE log_nodes (
        level {int} NOT NULL, number {int} NOT NULL, hash {text} NOT NULL, PRIMARY KEY (level, number)
      ){strict}`,
    ],
  },
  {
    name: "trusted publishers",
    statements: [
      `CREATE TABLE trusted_publishers (
        id {text} PRIMARY KEY, account {text} NOT NULL REFERENCES accounts (id), prefix {text} NOT NULL,
        issuer {text} NOT NULL, claims {text} NOT NULL, created_at {int} NOT NULL
      ){strict}`,
      `CREATE INDEX trusted_publishers_prefix ON trusted_publishers (prefix)`,
      `CREATE INDEX trusted_publishers_account ON trusted_publishers (account)`,
      `CREATE TABLE identity_uses (digest {text} PRIMARY KEY, expires_at {int} NOT NULL){strict}`,
    ],
  },
  {
    name: "transfers, deprecations by time",
    statements: [
      `CREATE TABLE transfer_offers (
        package {text} PRIMARY KEY REFERENCES packages (id), from_account {text} NOT NULL, to_account {text} NOT NULL,
        offered_at {int} NOT NULL
      ){strict}`,
      `CREATE TABLE transfers (
        package {text} NOT NULL, transferred_at {int} NOT NULL, from_account {text} NOT NULL,
        to_account {text} NOT NULL, PRIMARY KEY (package, transferred_at)
      ){strict}`,
      `CREATE INDEX transfers_time ON transfers (transferred_at)`,
      `CREATE INDEX deprecations_time ON deprecations (deprecated_at)`,
    ],
  },
  {
    name: "release notes",
    statements: [`ALTER TABLE releases ADD COLUMN notes {text}`],
  },
];

const WORDS = {
  sqlite: { text: "TEXT", int: "INTEGER", blob: "BLOB", strict: " STRICT" },
  postgres: { text: 'TEXT COLLATE "C"', int: "BIGINT", blob: "BYTEA", strict: "" },
} as const;

/** The key of PostgreSQL's advisory lock, the same in every process. */
const LOCK = 7_266_738;

/** Applies the missing migrations; their number. */
export function migrate(database: Database, migrations: readonly Migration[] = MIGRATIONS): Promise<number> {
  const words = WORDS[database.dialect];
  const translate = (sql: string): string =>
    sql.replace(/\{(text|int|blob|strict)\}/g, (_, word: string) => words[word as keyof typeof words]);
  return database.write(async (queries) => {
    if (database.dialect === "postgres") await queries.all(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await queries.run(translate(
      `CREATE TABLE IF NOT EXISTS migrations (
        number {int} PRIMARY KEY, name {text} NOT NULL, digest {text} NOT NULL, applied_at {int} NOT NULL
      ){strict}`,
    ));
    const known = await checkApplied(queries, migrations);
    for (let n = known + 1; n <= migrations.length; n++) {
      const migration = migrations[n - 1];
      for (const statement of migration.statements) await queries.run(translate(statement));
      await queries.run(
        "INSERT INTO migrations (number, name, digest, applied_at) VALUES (?, ?, ?, ?)",
        n,
        migration.name,
        digestOf(migration),
        Date.now(),
      );
    }
    return migrations.length - known;
  });
}

async function checkApplied(queries: Queries, migrations: readonly Migration[]): Promise<number> {
  const applied = await queries.all("SELECT number, name, digest FROM migrations ORDER BY number");
  applied.forEach((row, i) => {
    const migration = migrations[i];
    if (migration === undefined) {
      throw new Error(
        `The database was written by a newer registry: it has migration ${numberOf(row, "number")} "${
          textOf(row, "name")
        }", this one knows ${migrations.length}`,
      );
    }
    if (numberOf(row, "number") !== i + 1 || textOf(row, "digest") !== digestOf(migration)) {
      throw new Error(`Migration ${i + 1} "${migration.name}" is not the one that was applied to this database`);
    }
  });
  return applied.length;
}

function digestOf(migration: Migration): string {
  return createHash("sha256").update(migration.statements.join(";\n").replace(/\s+/g, " ")).digest("hex");
}
