/**
 * Trusted publishers: workflows that may publish below a prefix without a stored token.
 *
 * In: an issuer and the claims that its tokens must have. Out: rows, and tokens for one package that live for minutes.
 * A publisher has the rights of the account that made it, as long as that account owns the package; removing it revokes
 * the tokens made for it. An identity token is used once.
 */
import { prefixesOf } from "../names.ts";
import { audit, createToken, lockOwner, type Token } from "./accounts.ts";
import { numberOf, type Queries, type Row, textOf } from "./database.ts";

/** A trusted publisher. */
export interface TrustedPublisher {
  readonly id: string;
  readonly account: string;
  readonly prefix: string;
  readonly issuer: string;
  /** The claims that a token must have, with these very values. */
  readonly claims: { readonly [name: string]: string };
  readonly createdAt: number;
}

/** The identity with which a package is to be published. */
interface AskingIdentity {
  readonly package: string;
  readonly issuer: string;
  readonly claims: { readonly [name: string]: unknown };
  readonly digest: string;
  /** When the identity token expires. */
  readonly expiresAt: number;
}

/** The outcome of asking for a token. */
type ExchangeOutcome =
  | { readonly kind: "token"; readonly publisher: TrustedPublisher }
  | { readonly kind: "used" }
  | { readonly kind: "none" };

/** Identity tokens are forgotten when they have been expired for so long, in milliseconds. */
const FORGET_AFTER = 86_400_000;

function publisherOf(row: Row): TrustedPublisher {
  return {
    id: textOf(row, "id"),
    account: textOf(row, "account"),
    prefix: textOf(row, "prefix"),
    issuer: textOf(row, "issuer"),
    claims: JSON.parse(textOf(row, "claims")) as TrustedPublisher["claims"],
    createdAt: numberOf(row, "created_at"),
  };
}

/** Stores a publisher; false when the account has as many as it may have. */
export async function addPublisher(queries: Queries, publisher: TrustedPublisher, most: number): Promise<boolean> {
  // Locks the account's row, so that the limit holds over several processes.
  await queries.run("UPDATE accounts SET name = name WHERE id = ?", publisher.account);
  if ((await listPublishers(queries, publisher.account)).length >= most) return false;
  await queries.run(
    "INSERT INTO trusted_publishers (id, account, prefix, issuer, claims, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    publisher.id,
    publisher.account,
    publisher.prefix,
    publisher.issuer,
    JSON.stringify(publisher.claims),
    publisher.createdAt,
  );
  return true;
}

/** The publishers of an account. */
export async function listPublishers(queries: Queries, account: string): Promise<TrustedPublisher[]> {
  const rows = await queries.all("SELECT * FROM trusted_publishers WHERE account = ? ORDER BY prefix, id", account);
  return rows.map(publisherOf);
}

/** Removes a publisher of an account, and revokes the tokens made for it; false when there is none. */
export async function removePublisher(queries: Queries, id: string, account: string, at: number): Promise<boolean> {
  const removed = await queries.run("DELETE FROM trusted_publishers WHERE id = ? AND account = ?", id, account);
  await queries.run("UPDATE tokens SET revoked_at = ? WHERE parent = ? AND revoked_at IS NULL", at, id);
  return removed === 1;
}

/** The publisher of an id. */
export async function publisherById(queries: Queries, id: string): Promise<TrustedPublisher | undefined> {
  const [row] = await queries.all("SELECT * FROM trusted_publishers WHERE id = ?", id);
  return row && publisherOf(row);
}

/** Stores the token that `make` makes for the publisher that fits an identity, the one of the longest prefix. */
export async function exchangeIdentity(
  queries: Queries,
  identity: AskingIdentity,
  at: number,
  make: (publisher: TrustedPublisher) => { readonly token: Token; readonly hash: string },
): Promise<ExchangeOutcome> {
  const candidates = prefixesOf(identity.package);
  const rows = await queries.all(
    `SELECT t.* FROM trusted_publishers t JOIN accounts a ON a.id = t.account
     WHERE t.issuer = ? AND a.suspended_at IS NULL AND t.prefix IN (${candidates.map(() => "?").join(", ")})
     ORDER BY length(t.prefix) DESC, t.id`,
    identity.issuer,
    ...candidates,
  );
  const owner = (await lockOwner(queries, identity.package))?.account;
  const publisher = rows.map(publisherOf).find(({ account, claims }) =>
    account === owner && Object.entries(claims).every(([name, value]) => identity.claims[name] === value)
  );
  // Locked, so that a publisher that is being removed leaves no token behind.
  const isKept = publisher !== undefined &&
    await queries.run("UPDATE trusted_publishers SET issuer = issuer WHERE id = ?", publisher.id) === 1;
  if (!isKept) return { kind: "none" };
  await queries.run("DELETE FROM identity_uses WHERE expires_at < ?", at - FORGET_AFTER);
  const isNew = await queries.run(
    "INSERT INTO identity_uses (digest, expires_at) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
    identity.digest,
    identity.expiresAt,
  ) === 1;
  if (!isNew) return { kind: "used" };
  const { token, hash } = make(publisher);
  await createToken(queries, token, hash);
  await audit(queries, {
    at,
    account: publisher.account,
    action: "identity",
    subject: token.id,
    detail: `${publisher.id} ${identity.package} ${String(identity.claims.sub).slice(0, 300)}`,
  });
  return { kind: "token", publisher };
}
