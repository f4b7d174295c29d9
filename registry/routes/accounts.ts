/**
 * `/api/account`, `/api/tokens`, `/api/prefixes`, `/api/accounts`: the rights to publish.
 *
 * An administrator creates accounts and assigns prefixes; an owner claims a host by DNS and makes narrower tokens. No
 * token can make one that allows more or lasts longer than itself, and a token's prefix bounds administrators, too. A
 * secret is shown once, in the answer that creates it.
 */
import { randomBytes } from "node:crypto";
import { jsonAnswer } from "../answer.ts";
import type { JsonObject } from "../../project/base/json_read.ts";
import { readJsonBody, textField } from "../body.ts";
import { isBelow, isPrefix } from "../names.ts";
import { Problem } from "../problem.ts";
import { type Call, idParam, knownQuery, numberQuery } from "../services.ts";
import {
  accountByName,
  accountName,
  audit,
  createAccount,
  createToken,
  dropPrefix,
  grantPrefix,
  listPrefixes,
  listTokens,
  prefixHolder,
  revokeToken,
  type Scope,
  SCOPES,
  type Token,
  tokenById,
} from "../store/accounts.ts";
import { type Database, StoreUnavailable } from "../store/database.ts";
import { DAY } from "../store/installs.ts";
import { isoTime } from "../store/packages.ts";
import { releaseHold } from "../store/releases.ts";
import { hashSecret, type Identity, makeSecret, outranks, requireScope, writesOf } from "../tokens.ts";
import { identify } from "./publish.ts";

/** Names of accounts. */
export const ACCOUNT_NAME = /^[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?$/;
/** The longest life of a token. */
export const MAX_TOKEN_DAYS = 366;

/** A token as the API shows it. */
export function shownToken(token: Token): object {
  return {
    id: token.id,
    label: token.label,
    scopes: token.scopes,
    prefix: token.prefix,
    createdAt: isoTime(token.createdAt),
    expiresAt: isoTime(token.expiresAt),
    revokedAt: token.revokedAt === undefined ? null : isoTime(token.revokedAt),
    parent: token.parent ?? null,
  };
}

/** Rights of a new token. */
interface WantedToken {
  readonly account: string;
  readonly label: string;
  readonly scopes: readonly Scope[];
  readonly prefix: string;
  readonly days: number;
  readonly at: number;
  /** The token that makes it: the new one ends with it at the latest. */
  readonly parent?: Token;
}

/** Creates a token and stores its hash; the only place where a secret exists. */
export async function mintToken(database: Database, wanted: WantedToken): Promise<{ token: Token; secret: string }> {
  const { at, parent } = wanted;
  // With the parent's rights, so that a token that is being revoked leaves no child behind.
  const writes = parent === undefined ? database : writesOf(database, parent, () => at);
  const secret = makeSecret();
  const token: Token = {
    id: `tok_${randomBytes(9).toString("hex")}`,
    account: wanted.account,
    label: wanted.label,
    scopes: wanted.scopes,
    prefix: wanted.prefix,
    createdAt: at,
    expiresAt: Math.min(at + wanted.days * DAY, parent?.expiresAt ?? Infinity),
    ...(parent === undefined ? {} : { parent: parent.id }),
  };
  await writes.write(async (queries) => {
    await createToken(queries, token, hashSecret(secret));
    await audit(queries, {
      at,
      account: wanted.account,
      action: "token",
      subject: token.id,
      detail: `${token.scopes.join(" ")} ${token.prefix}`,
    });
  });
  return { token, secret };
}

/** `GET /api/account`: the account of the token. */
export async function getAccount(call: Call): Promise<Response> {
  knownQuery(call, []);
  const identity = await identify(call);
  const prefixes = await listPrefixes(call.services.database, identity.account);
  return jsonAnswer(call.request, {
    name: identity.accountName,
    prefixes: prefixes.map(({ prefix, proof }) => ({ prefix, proof })),
    token: shownToken(identity.token),
  }, { cache: "never" });
}

/** `GET /api/tokens` */
export async function getTokens(call: Call): Promise<Response> {
  knownQuery(call, []);
  const identity = await identify(call);
  requireScope(identity, "owners");
  const tokens = await listTokens(call.services.database, identity.account);
  return jsonAnswer(call.request, { tokens: tokens.map(shownToken) }, { cache: "never" });
}

/** `POST /api/tokens` */
export async function postToken(call: Call): Promise<Response> {
  knownQuery(call, ["days"]);
  const { database, settings, now } = call.services;
  const days = numberQuery(call, "days", { min: 1, max: MAX_TOKEN_DAYS, fallback: settings.tokenDays });
  const identity = await identify(call);
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["label", "scopes", "prefix", "account"],
  });
  const label = textField(body, "label", { min: 1, max: 100 });
  const prefix = body.prefix === undefined ? identity.token.prefix : textField(body, "prefix", { min: 1, max: 300 });
  const scopes = scopesOf(body.scopes);
  requireScope(identity, "owners");
  const isAdmin = identity.token.scopes.includes("admin");
  let { account } = identity;
  if (body.account !== undefined) account = await givenAccount(call, identity, body);
  for (const scope of scopes) {
    if (!isAdmin && !identity.token.scopes.includes(scope)) {
      throw new Problem("auth.scope", `a token without the scope "${scope}" cannot make one that has it`);
    }
  }
  if (prefix !== "*" && !isPrefix(prefix)) throw badPrefix();
  if (!isBelow(prefix, identity.token.prefix)) {
    throw new Problem("auth.scope", `a token for ${identity.token.prefix} cannot make one for ${prefix}`);
  }
  const wanted = { account, label, scopes, prefix, days, at: now(), parent: identity.token };
  const made = await mintToken(database, wanted);
  return jsonAnswer(call.request, { token: shownToken(made.token), secret: made.secret }, {
    cache: "never",
    status: 201,
  });
}

function scopesOf(value: unknown): Scope[] {
  const list = Array.isArray(value) ? value as unknown[] : [];
  const scopes = SCOPES.filter((s) => list.includes(s));
  if (scopes.length > 0 && scopes.length === list.length) return scopes;
  throw new Problem("request.json", `"scopes" must be some of ${SCOPES.join(", ")}, each once`, {
    errors: [{ pointer: "/scopes", detail: SCOPES.join(", ") }],
  });
}

/** `DELETE /api/tokens/{token}`: a token may revoke itself and every token whose rights it has. */
export async function deleteToken(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, now } = call.services;
  const identity = await identify(call);
  const id = call.params.token ?? "";
  if (!/^tok_[0-9a-f]+$/.test(id)) throw unknownToken();
  if (id !== identity.token.id) await requireRevoker(call, identity, id);
  const ended = await writesOf(database, identity.token, now).write(async (queries) => {
    if (!await revokeToken(queries, id, now())) return false;
    await audit(queries, { at: now(), account: identity.account, action: "revoke", subject: id });
    return true;
  });
  if (!ended) throw unknownToken();
  return new Response(null, { status: 204, headers: { "cache-control": "no-store" } });
}

async function requireRevoker(call: Call, identity: Identity, id: string): Promise<void> {
  requireScope(identity, "owners");
  const target = await tokenById(call.services.database, id);
  const isOwn = target?.account === identity.account || identity.token.scopes.includes("admin");
  if (target === undefined || !isOwn) throw unknownToken();
  if (!outranks(identity.token, target)) {
    throw new Problem("auth.scope", "a token cannot revoke one that allows more than itself");
  }
}

function unknownToken(): Problem {
  return new Problem("token.unknown", "the account has no valid token of this id");
}

/** `POST /api/prefixes`: an owner claims a host by DNS; an administrator gives any prefix to an account. */
export async function postPrefix(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, settings, now } = call.services;
  const identity = await identify(call);
  requireScope(identity, "owners");
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["prefix", "account"],
  });
  const prefix = textField(body, "prefix", { min: 3, max: 300 });
  if (!isPrefix(prefix)) throw badPrefix();
  requireScope(identity, "owners", prefix);
  const claim = body.account === undefined
    ? { account: identity.account, proof: "dns" as const, from: await requireDomain(call, prefix, identity) }
    : { account: await givenAccount(call, identity, body), proof: "admin" as const, from: undefined };
  const { account, proof, from } = claim;
  const granted = await writesOf(database, identity.token, now).write(async (queries) => {
    if (!await grantPrefix(queries, { prefix, account, proof }, now(), from)) return false;
    await audit(queries, { at: now(), account: identity.account, action: "prefix", subject: prefix, detail: account });
    return true;
  });
  if (!granted) throw new Problem("owner.taken", `${prefix} belongs to another account`);
  return jsonAnswer(call.request, { prefix, proof }, { cache: "never", status: 201 });
}

/** The account that an administrator names. */
async function givenAccount(call: Call, identity: Identity, body: JsonObject): Promise<string> {
  requireScope(identity, "admin");
  const name = textField(body, "account", { min: 1, max: 39 });
  const account = await accountByName(call.services.database, name);
  if (account === undefined) throw new Problem("account.unknown", `unknown account ${name}`);
  if (account.suspendedAt !== undefined) {
    throw new Problem("account.suspended", `the account ${name} is suspended: it gets neither tokens nor prefixes`);
  }
  return account.id;
}

/** `DELETE /api/prefixes/{prefix}`: an administrator takes a prefix away; its owner gives it up. */
export async function deletePrefix(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, now } = call.services;
  const identity = await identify(call);
  const prefix = (call.params.prefix ?? "").replaceAll(":", "/");
  if (!isPrefix(prefix)) throw badPrefix();
  requireScope(identity, "owners", prefix);
  const holder = await prefixHolder(database, prefix);
  if (holder === undefined) throw new Problem("prefix.unknown", `no account owns ${prefix}`);
  if (holder.account !== identity.account) requireScope(identity, "admin", prefix);
  await writesOf(database, identity.token, now).write(async (queries) => {
    if (!await dropPrefix(queries, prefix, holder.account)) return;
    await audit(queries, { at: now(), account: identity.account, action: "drop-prefix", subject: prefix });
  });
  return new Response(null, { status: 204, headers: { "cache-control": "no-store" } });
}

/**
 * Throws unless the host's DNS record names the account; the account whose own proof of the host has lapsed, if any.
 */
async function requireDomain(call: Call, prefix: string, identity: Identity): Promise<string | undefined> {
  const { database, domains } = call.services;
  const host = prefix.split("/")[0];
  const how = `add the TXT record _waft.${host} with waft-account=${identity.accountName}`;
  if (prefix !== host) throw new Problem("owner.prefix", `a DNS record proves the ownership of a whole host: ${how}`);
  const names = (account: string): Promise<boolean> =>
    domains(host, account).catch(() => {
      throw new StoreUnavailable(`the name servers of ${host} do not answer`);
    });
  if (!await names(identity.accountName)) {
    throw new Problem("owner.prefix", `${host} does not name this account: ${how}`);
  }
  const holder = await prefixHolder(database, prefix);
  if (holder === undefined || holder.proof !== "dns" || holder.account === identity.account) return undefined;
  const other = await accountName(database, holder.account);
  return other !== undefined && await names(other) ? undefined : holder.account;
}

function badPrefix(): Problem {
  return new Problem("request.json", "a prefix is a host or a path below one, in lower case, such as github.com/acme", {
    errors: [{ pointer: "/prefix", detail: "host or host/path" }],
  });
}

/** `POST /api/accounts`: an administrator creates an account. */
export async function postAccount(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, settings, now } = call.services;
  const identity = await identify(call);
  requireScope(identity, "admin", "*");
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["name"],
  });
  const name = textField(body, "name", { min: 1, max: 39, pattern: ACCOUNT_NAME });
  const made = await writesOf(database, identity.token, now).write(async (queries) => {
    const account = await createAccount(queries, name, now());
    if (account === undefined) return false;
    await audit(queries, { at: now(), account: identity.account, action: "account", subject: name });
    return true;
  });
  if (!made) throw new Problem("account.exists", `the account ${name} exists`);
  return jsonAnswer(call.request, { name }, { cache: "never", status: 201 });
}

/** `POST /api/packages/{name}/release`: an administrator releases a held package. */
export async function postReleaseHold(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, now } = call.services;
  const identity = await identify(call);
  const id = idParam(call);
  requireScope(identity, "admin", id);
  const writes = writesOf(database, identity.token, now);
  if (!await releaseHold(writes, id, identity.account, now())) {
    throw new Problem("package.unknown", `no package ${id} is held`);
  }
  return jsonAnswer(call.request, { name: id, held: false }, { cache: "never" });
}
