/**
 * `/api/account`, `/api/tokens`, `/api/prefixes`, `/api/accounts`: who may publish what.
 *
 * An admin makes accounts and gives them prefixes; an owner claims a host by DNS and makes narrower tokens. No token can
 * make one that allows more than itself. A secret is shown once, in the answer that makes it.
 */
import { randomBytes } from "node:crypto";
import { jsonAnswer } from "../answer.ts";
import { readJsonBody, textField } from "../body.ts";
import { isBelow, isPrefix } from "../names.ts";
import { Problem } from "../problem.ts";
import { type Call, idParam, knownQuery, numberQuery } from "../services.ts";
import {
  accountByName,
  audit,
  createAccount,
  createToken,
  grantPrefix,
  listPrefixes,
  listTokens,
  type Proof,
  revokeToken,
  type Scope,
  SCOPES,
  type Token,
} from "../store/accounts.ts";
import { type Database, StoreUnavailable } from "../store/database.ts";
import { DAY } from "../store/installs.ts";
import { isoTime } from "../store/packages.ts";
import { releaseHold } from "../store/releases.ts";
import { hashSecret, type Identity, makeSecret, requireScope } from "../tokens.ts";
import { identify } from "./publish.ts";

/** Names of accounts. */
export const ACCOUNT_NAME = /^[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?$/;
/** How long a token may be good for. */
export const MAX_TOKEN_DAYS = 366;

/** A token as the API shows it. */
function shownToken(token: Token): object {
  return {
    id: token.id,
    label: token.label,
    scopes: token.scopes,
    prefix: token.prefix,
    createdAt: isoTime(token.createdAt),
    expiresAt: isoTime(token.expiresAt),
    revokedAt: token.revokedAt === undefined ? null : isoTime(token.revokedAt),
  };
}

/** Makes a token and keeps its hash; the only place where a secret exists. */
export async function mintToken(
  database: Database,
  wanted: { account: string; label: string; scopes: readonly Scope[]; prefix: string; days: number; at: number },
): Promise<{ token: Token; secret: string }> {
  const secret = makeSecret();
  const token: Token = {
    id: `tok_${randomBytes(9).toString("hex")}`,
    account: wanted.account,
    label: wanted.label,
    scopes: wanted.scopes,
    prefix: wanted.prefix,
    createdAt: wanted.at,
    expiresAt: wanted.at + wanted.days * DAY,
  };
  await database.write(async (queries) => {
    await createToken(queries, token, hashSecret(secret));
    await audit(queries, {
      at: wanted.at,
      account: wanted.account,
      action: "token",
      subject: token.id,
      detail: `${token.scopes.join(" ")} ${token.prefix}`,
    });
  });
  return { token, secret };
}

/** `GET /api/account`: whose token this is. */
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
  if (body.account !== undefined) {
    const name = textField(body, "account", { min: 1, max: 39 });
    requireScope(identity, "admin");
    const other = await accountByName(database, name);
    if (other === undefined) throw new Problem("account.unknown", `no account has the name ${name}`);
    account = other.id;
  }
  for (const scope of scopes) {
    if (!isAdmin && !identity.token.scopes.includes(scope)) {
      throw new Problem("auth.scope", `a token without the scope "${scope}" cannot make one that has it`);
    }
  }
  if (prefix !== "*" && !isPrefix(prefix)) throw badPrefix();
  if (!isBelow(prefix, identity.token.prefix) && prefix !== identity.token.prefix) {
    throw new Problem("auth.scope", `a token for ${identity.token.prefix} cannot make one for ${prefix}`);
  }
  const made = await mintToken(database, { account, label, scopes, prefix, days, at: now() });
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

/** `DELETE /api/tokens/{token}` */
export async function deleteToken(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, now } = call.services;
  const identity = await identify(call);
  const id = call.params.token ?? "";
  // A token may always end itself.
  if (id !== identity.token.id) requireScope(identity, "owners");
  const ended = await database.write(async (queries) => {
    if (!await revokeToken(queries, identity.account, id, now())) return false;
    await audit(queries, { at: now(), account: identity.account, action: "revoke", subject: id });
    return true;
  });
  if (!ended) throw new Problem("token.unknown", "the account has no such token that still works");
  return new Response(null, { status: 204, headers: { "cache-control": "no-store" } });
}

/** `POST /api/prefixes`: an owner claims a host by DNS; an admin gives any prefix to an account. */
export async function postPrefix(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, settings, domains, now } = call.services;
  const identity = await identify(call);
  requireScope(identity, "owners");
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["prefix", "account"],
  });
  const prefix = textField(body, "prefix", { min: 3, max: 300 });
  if (!isPrefix(prefix)) throw badPrefix();
  let { account } = identity;
  let proof: Proof = "dns";
  if (body.account !== undefined) {
    requireScope(identity, "admin");
    const name = textField(body, "account", { min: 1, max: 39 });
    const other = await accountByName(database, name);
    if (other === undefined) throw new Problem("account.unknown", `no account has the name ${name}`);
    account = other.id;
    proof = "admin";
  } else await requireDomain(prefix, identity, domains);
  const granted = await database.write(async (queries) => {
    if (!await grantPrefix(queries, { prefix, account, proof }, now())) return false;
    await audit(queries, { at: now(), account: identity.account, action: "prefix", subject: prefix, detail: account });
    return true;
  });
  if (!granted) throw new Problem("owner.taken", `${prefix} belongs to another account`);
  return jsonAnswer(call.request, { prefix, proof }, { cache: "never", status: 201 });
}

async function requireDomain(prefix: string, identity: Identity, domains: Call["services"]["domains"]): Promise<void> {
  const host = prefix.split("/")[0]!;
  const how = `add the TXT record _waft.${host} with waft-account=${identity.accountName}`;
  if (prefix !== host) throw new Problem("owner.prefix", `a DNS record shows the ownership of a whole host: ${how}`);
  const shown = await domains(host, identity.accountName).catch(() => {
    throw new StoreUnavailable(`the name servers of ${host} could not be asked`);
  });
  if (!shown) throw new Problem("owner.prefix", `${host} does not name this account: ${how}`);
}

function badPrefix(): Problem {
  return new Problem("request.json", "a prefix is a host or a path below one, in lower case, such as github.com/acme", {
    errors: [{ pointer: "/prefix", detail: "host or host/path" }],
  });
}

/** `POST /api/accounts`: an admin makes an account. */
export async function postAccount(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, settings, now } = call.services;
  const identity = await identify(call);
  requireScope(identity, "admin");
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["name"],
  });
  const name = textField(body, "name", { min: 1, max: 39, pattern: ACCOUNT_NAME });
  const made = await database.write(async (queries) => {
    const account = await createAccount(queries, name, now());
    if (account === undefined) return false;
    await audit(queries, { at: now(), account: identity.account, action: "account", subject: name });
    return true;
  });
  if (!made) throw new Problem("account.exists", `an account has the name ${name} already`);
  return jsonAnswer(call.request, { name }, { cache: "never", status: 201 });
}

/** `POST /api/packages/{name}/release`: an admin lets a held package be seen. */
export async function postReleaseHold(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, now } = call.services;
  const identity = await identify(call);
  requireScope(identity, "admin");
  const id = idParam(call);
  if (!await releaseHold(database, id, identity.account, now())) {
    throw new Problem("package.unknown", `no package ${id} is held`);
  }
  return jsonAnswer(call.request, { name: id, held: false }, { cache: "never" });
}
