/**
 * Accounts, their tokens and the id prefixes they own.
 *
 * In: names, token hashes, prefixes. Out: rows. Only the SHA-256 of a token is stored. A prefix has one owner; the
 * longest prefix that covers an id decides who owns the id. Revoking a token revokes the tokens made with it, and
 * theirs. Every change of rights is recorded in `audit`.
 */
import { randomBytes } from "node:crypto";
import { prefixesOf } from "../names.ts";
import { first, maybeNumber, maybeText, numberOf, type Queries, type Row, textOf } from "./database.ts";

/** The rights of a token. `admin` includes the others. */
export type Scope = "publish" | "yank" | "owners" | "admin";
/** All scopes. */
export const SCOPES: readonly Scope[] = ["publish", "yank", "owners", "admin"];

/** A publisher. */
interface Account {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly suspendedAt?: number;
}

/** A token without its secret. */
export interface Token {
  readonly id: string;
  readonly account: string;
  readonly label: string;
  readonly scopes: readonly Scope[];
  /** The ids that it covers; `*` for all. */
  readonly prefix: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly revokedAt?: number;
  /** The token that made it; absent for tokens of an operator and of the first start. */
  readonly parent?: string;
}

/** The proof of ownership of a prefix. */
type Proof = "admin" | "dns";

/** An owned prefix. */
export interface OwnedPrefix {
  readonly prefix: string;
  readonly account: string;
  readonly proof: Proof;
}

/** Creates an account; undefined when the name is taken. */
export async function createAccount(queries: Queries, name: string, at: number): Promise<Account | undefined> {
  const id = `acc_${randomBytes(12).toString("hex")}`;
  const made = await queries.run(
    "INSERT INTO accounts (id, name, created_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING",
    id,
    name,
    at,
  );
  return made === 1 ? { id, name, createdAt: at } : undefined;
}

/** The account of a name. */
export async function accountByName(queries: Queries, name: string): Promise<Account | undefined> {
  const row = await first(queries, "SELECT id, name, created_at, suspended_at FROM accounts WHERE name = ?", name);
  if (row === undefined) return undefined;
  const suspendedAt = maybeNumber(row, "suspended_at");
  return {
    id: textOf(row, "id"),
    name: textOf(row, "name"),
    createdAt: numberOf(row, "created_at"),
    ...(suspendedAt === undefined ? {} : { suspendedAt }),
  };
}

/** The name of an account. */
export async function accountName(queries: Queries, id: string): Promise<string | undefined> {
  const row = await first(queries, "SELECT name FROM accounts WHERE id = ?", id);
  return row && textOf(row, "name");
}

/** Stores a token. */
export async function createToken(queries: Queries, token: Token, hash: string): Promise<void> {
  await queries.run(
    `INSERT INTO tokens (id, account, hash, label, scopes, prefix, created_at, expires_at, parent)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    token.id,
    token.account,
    hash,
    token.label,
    token.scopes.join(" "),
    token.prefix,
    token.createdAt,
    token.expiresAt,
    token.parent ?? null,
  );
}

/** Locks a token until the end of the transaction; false when it, or its account, no longer works. */
export async function lockLiveToken(queries: Queries, id: string, now: number): Promise<boolean> {
  return await queries.run(
    `UPDATE tokens SET label = label WHERE id = ? AND revoked_at IS NULL AND expires_at > ?
       AND account IN (SELECT id FROM accounts WHERE suspended_at IS NULL)`,
    id,
    now,
  ) === 1;
}

const TOKEN_COLUMNS =
  "t.id, t.account, t.label, t.scopes, t.prefix, t.created_at, t.expires_at, t.revoked_at, t.parent";

function tokenOf(row: Row): Token {
  const revokedAt = maybeNumber(row, "revoked_at");
  const parent = maybeText(row, "parent");
  return {
    id: textOf(row, "id"),
    account: textOf(row, "account"),
    label: textOf(row, "label"),
    scopes: textOf(row, "scopes").split(" ").filter((s): s is Scope => (SCOPES as readonly string[]).includes(s)),
    prefix: textOf(row, "prefix"),
    createdAt: numberOf(row, "created_at"),
    expiresAt: numberOf(row, "expires_at"),
    ...(revokedAt === undefined ? {} : { revokedAt }),
    ...(parent === undefined ? {} : { parent }),
  };
}

/** The token of a hash, with its account, unless that is suspended. */
export async function tokenByHash(
  queries: Queries,
  hash: string,
): Promise<{ token: Token; accountName: string } | undefined> {
  const row = await first(
    queries,
    `SELECT ${TOKEN_COLUMNS}, a.name FROM tokens t JOIN accounts a ON a.id = t.account
     WHERE t.hash = ? AND a.suspended_at IS NULL`,
    hash,
  );
  return row && { token: tokenOf(row), accountName: textOf(row, "name") };
}

/** The tokens of an account, newest first. */
export async function listTokens(queries: Queries, account: string): Promise<Token[]> {
  const rows = await queries.all(
    `SELECT ${TOKEN_COLUMNS} FROM tokens t WHERE t.account = ? ORDER BY t.created_at DESC, t.id`,
    account,
  );
  return rows.map(tokenOf);
}

/** The token of an id. */
export async function tokenById(queries: Queries, id: string): Promise<Token | undefined> {
  const row = await first(queries, `SELECT ${TOKEN_COLUMNS} FROM tokens t WHERE t.id = ?`, id);
  return row && tokenOf(row);
}

/** Revokes a token and every token that descends from it; false when the token itself no longer works. */
export async function revokeToken(queries: Queries, id: string, at: number): Promise<boolean> {
  const revoked = await queries.run("UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", at, id);
  await revokeLines(queries, "parent", id, at);
  return revoked === 1;
}

/**
 * Revokes the tokens with `value` in `column`, and all that descend from them. Returns the number of tokens that were
 * not revoked before.
 */
async function revokeLines(queries: Queries, column: "parent" | "account", value: string, at: number): Promise<number> {
  let sum = 0, revoked: number;
  // The update waits for descendants that are making tokens at the same time, but a statement of PostgreSQL does not
  // see rows committed after it began. The next one finds the tokens made meanwhile; revoked tokens make none.
  do {
    revoked = await queries.run(
      `WITH RECURSIVE line (id) AS (
         SELECT id FROM tokens WHERE ${column} = ? UNION SELECT t.id FROM tokens t JOIN line ON t.parent = line.id
       )
       UPDATE tokens SET revoked_at = ? WHERE revoked_at IS NULL AND id IN (SELECT id FROM line)`,
      value,
      at,
    );
    sum += revoked;
  } while (revoked > 0);
  return sum;
}

/**
 * Suspends an account: revokes its tokens and those that they made, also for others, and lets no later one work.
 * Returns the number of tokens that were not revoked before. The time of an earlier suspension stays.
 */
export async function suspendAccount(queries: Queries, id: string, at: number): Promise<number> {
  await queries.run("UPDATE accounts SET suspended_at = ? WHERE id = ? AND suspended_at IS NULL", at, id);
  return await revokeLines(queries, "account", id, at);
}

/** Ends the suspension of an account; its tokens stay revoked. False when it was not suspended. */
export async function reinstateAccount(queries: Queries, id: string): Promise<boolean> {
  return await queries.run(
    "UPDATE accounts SET suspended_at = NULL WHERE id = ? AND suspended_at IS NOT NULL",
    id,
  ) === 1;
}

/**
 * Gives a prefix to an account; false when another account has it. Granting it again changes nothing. `from` is an
 * account whose proof by DNS has lapsed: the prefix moves away from it.
 */
export async function grantPrefix(queries: Queries, owned: OwnedPrefix, at: number, from?: string): Promise<boolean> {
  await queries.run(
    "INSERT INTO prefixes (prefix, account, proof, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (prefix) DO NOTHING",
    owned.prefix,
    owned.account,
    owned.proof,
    at,
  );
  if (from !== undefined) {
    await queries.run(
      "UPDATE prefixes SET account = ?, proof = ?, created_at = ? WHERE prefix = ? AND account = ? AND proof = 'dns'",
      owned.account,
      owned.proof,
      at,
      owned.prefix,
      from,
    );
  }
  return (await prefixHolder(queries, owned.prefix))?.account === owned.account;
}

/** The owner of exactly this prefix. */
export async function prefixHolder(queries: Queries, prefix: string): Promise<OwnedPrefix | undefined> {
  const row = await first(queries, "SELECT prefix, account, proof FROM prefixes WHERE prefix = ?", prefix);
  return row && prefixOf(row);
}

/** Takes a prefix away from an account. */
export async function dropPrefix(queries: Queries, prefix: string, account: string): Promise<boolean> {
  return await queries.run("DELETE FROM prefixes WHERE prefix = ? AND account = ?", prefix, account) === 1;
}

/** The prefixes of an account. */
export async function listPrefixes(queries: Queries, account: string): Promise<OwnedPrefix[]> {
  const rows = await queries.all(
    "SELECT prefix, account, proof FROM prefixes WHERE account = ? ORDER BY prefix",
    account,
  );
  return rows.map(prefixOf);
}

/** The longest owned prefix that covers an id. */
export async function ownerOf(queries: Queries, id: string): Promise<OwnedPrefix | undefined> {
  const candidates = prefixesOf(id);
  const marks = candidates.map(() => "?").join(", ");
  const rows = await queries.all(
    `SELECT prefix, account, proof FROM prefixes WHERE prefix IN (${marks}) ORDER BY length(prefix) DESC LIMIT 1`,
    ...candidates,
  );
  return rows[0] && prefixOf(rows[0]);
}

/** The owner of an id, whose prefix neither moves nor goes until the end of the transaction; undefined without one. */
export async function lockOwner(queries: Queries, id: string): Promise<OwnedPrefix | undefined> {
  const owned = await ownerOf(queries, id);
  if (owned === undefined) return undefined;
  const isHeld = await queries.run(
    "UPDATE prefixes SET account = account WHERE prefix = ? AND account = ? AND proof = ?",
    owned.prefix,
    owned.account,
    owned.proof,
  ) === 1;
  return isHeld ? owned : undefined;
}

function prefixOf(row: Row): OwnedPrefix {
  return { prefix: textOf(row, "prefix"), account: textOf(row, "account"), proof: textOf(row, "proof") as Proof };
}

/** Writes a line of the audit trail. */
export async function audit(
  queries: Queries,
  line: {
    readonly at: number;
    readonly account: string;
    readonly action: string;
    readonly subject: string;
    readonly detail?: string;
  },
): Promise<void> {
  await queries.run(
    "INSERT INTO audit (id, at, account, action, subject, detail) VALUES (?, ?, ?, ?, ?, ?)",
    randomBytes(12).toString("hex"),
    line.at,
    line.account,
    line.action,
    line.subject,
    line.detail ?? "",
  );
}
