/**
 * `/api/trusted-publishers`, `/api/oidc`: publishing from workflows without a stored token.
 *
 * In: an identity token of an issuer that the operator accepts, and a package. Out: a token that publishes this package
 * for minutes, if the account that owns it has named these claims. Every account names its own publishers.
 */
import { randomBytes } from "node:crypto";
import { jsonAnswer } from "../answer.ts";
import { isObject, type JsonValue } from "../../project/base/json_read.ts";
import { isPluginId } from "../../project/base/grammar.ts";
import { identifyingClaims } from "../../project/packages/oidc_issuers.ts";
import { readJsonBody, textField } from "../body.ts";
import { isPrefix } from "../names.ts";
import { Problem } from "../problem.ts";
import { type Call, knownQuery } from "../services.ts";
import { audit, lockOwner, type Token } from "../store/accounts.ts";
import { isoTime } from "../store/packages.ts";
import {
  addPublisher,
  exchangeIdentity,
  listPublishers,
  publisherById,
  removePublisher,
  type TrustedPublisher,
} from "../store/publishers.ts";
import { hashSecret, makeSecret, requireScope, writesOf } from "../tokens.ts";
import { shownToken } from "./accounts.ts";
import { identify } from "./publish.ts";

/** The life of a token for a workflow. */
const LIFE_MS = 15 * 60_000;
/** The maximum numbers of publishers of an account and of claims of a publisher. */
const MAX_PUBLISHERS = 100;
const MAX_CLAIMS = 10;
/** The maximum length of an identity token in characters. */
const MAX_JWT = 16_384;

function shown({ id, prefix, issuer, claims, createdAt }: TrustedPublisher): object {
  return { id, prefix, issuer, claims, createdAt: isoTime(createdAt) };
}

/** `GET /api/oidc`: the audience that identity tokens must have, and the issuers that are accepted. */
export function getOidc(call: Call): Response {
  knownQuery(call, []);
  const { baseUrl, oidcIssuers } = call.services.settings;
  return jsonAnswer(call.request, { audience: baseUrl, issuers: oidcIssuers }, { cache: "short" });
}

/** `GET /api/trusted-publishers`: those of the account. */
export async function getPublishers(call: Call): Promise<Response> {
  knownQuery(call, []);
  const identity = await identify(call);
  requireScope(identity, "owners");
  const publishers = await listPublishers(call.services.database, identity.account);
  return jsonAnswer(call.request, { publishers: publishers.map(shown) }, { cache: "never" });
}

/** `POST /api/trusted-publishers` */
export async function postPublisher(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, settings, now } = call.services;
  const identity = await identify(call);
  requireScope(identity, "owners");
  requireScope(identity, "publish");
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["prefix", "issuer", "claims"],
  });
  const prefix = textField(body, "prefix", { min: 3, max: 300 });
  if (!isPrefix(prefix)) throw new Problem("request.json", "a prefix is a host or a path below one, in lower case");
  requireScope(identity, "owners", prefix);
  const issuer = textField(body, "issuer", { min: 8, max: 300 });
  if (!settings.oidcIssuers.includes(issuer)) {
    throw new Problem("request.json", `"issuer" must be one of ${settings.oidcIssuers.join(", ") || "none"}`, {
      errors: [{ pointer: "/issuer", detail: settings.oidcIssuers.join(", ") }],
    });
  }
  const publisher: TrustedPublisher = {
    id: `pub_${randomBytes(9).toString("hex")}`,
    account: identity.account,
    prefix,
    issuer,
    claims: claimsOf(body.claims, issuer),
    createdAt: now(),
  };
  const isAdded = await writesOf(database, identity.token, now).write(async (queries) => {
    const owner = await lockOwner(queries, prefix);
    if (owner?.account !== identity.account) {
      throw new Problem("owner.prefix", `${owner?.prefix ?? prefix} belongs to another account, or to none`);
    }
    if (!await addPublisher(queries, publisher, MAX_PUBLISHERS)) return false;
    const detail = `${prefix} ${issuer} ${JSON.stringify(publisher.claims)}`;
    await audit(queries, { at: now(), account: identity.account, action: "publisher", subject: publisher.id, detail });
    return true;
  });
  if (!isAdded) throw new Problem("publisher.full", `an account has at most ${MAX_PUBLISHERS} trusted publishers`);
  return jsonAnswer(call.request, shown(publisher), { cache: "never", status: 201 });
}

/** The claims of a body: names with texts, one of which identifies the workflow. */
function claimsOf(value: JsonValue | undefined, issuer: string): TrustedPublisher["claims"] {
  const claims = isObject(value) ? Object.entries(value) : [];
  const isText = ([name, text]: [string, JsonValue]): boolean =>
    /^[A-Za-z0-9_.:/-]{1,100}$/.test(name) && typeof text === "string" && text.length >= 1 && text.length <= 300;
  if (claims.length < 1 || claims.length > MAX_CLAIMS || !claims.every(isText)) {
    throw new Problem("request.json", `"claims" must be 1 to ${MAX_CLAIMS} names of claims with texts`, {
      errors: [{ pointer: "/claims", detail: 'an object such as {"repository":"acme/kv"}' }],
    });
  }
  const identifying = identifyingClaims(issuer);
  if (!claims.some(([name]) => identifying.includes(name))) {
    throw new Problem("request.json", `"claims" must have one of ${identifying.join(", ")}: others fit any workflow`, {
      errors: [{ pointer: "/claims", detail: identifying.join(", ") }],
    });
  }
  return Object.fromEntries(claims as [string, string][]);
}

/** `DELETE /api/trusted-publishers/{publisher}`: revokes its tokens, too. */
export async function deletePublisher(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, now } = call.services;
  const identity = await identify(call);
  requireScope(identity, "owners");
  const id = call.params.publisher ?? "";
  const found = /^pub_[0-9a-f]+$/.test(id) ? await publisherById(database, id) : undefined;
  const unknown = new Problem("publisher.unknown", "the account has no trusted publisher of this id");
  if (found === undefined) throw unknown;
  if (found.account !== identity.account && !identity.token.scopes.includes("admin")) throw unknown;
  requireScope(identity, "owners", found.prefix);
  await writesOf(database, identity.token, now).write(async (queries) => {
    if (!await removePublisher(queries, id, found.account, now())) throw unknown;
    await audit(queries, { at: now(), account: identity.account, action: "drop-publisher", subject: id });
  });
  return new Response(null, { status: 204, headers: { "cache-control": "no-store" } });
}

/** `POST /api/oidc/token`: a token for one package in exchange for an identity token. */
export async function postIdentity(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, settings, now, identities, limiter, log } = call.services;
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["token", "package"],
  });
  const jwt = textField(body, "token", { min: 1, max: MAX_JWT });
  const id = textField(body, "package", { min: 3, max: 300 });
  if (!isPluginId(id)) throw new Problem("request.json", '"package" must be an id such as github.com/acme/kv');
  try {
    const identity = await (await identities()).verify(jwt, now());
    const secret = makeSecret();
    let token: Token | undefined;
    const outcome = await database.write((queries) =>
      exchangeIdentity(queries, { ...identity, package: id }, now(), (publisher) => {
        token = workflowToken(publisher, id, now());
        return { token, hash: hashSecret(secret) };
      })
    );
    if (outcome.kind === "used") throw new Problem("auth.identity", "the identity token was used before");
    if (outcome.kind !== "token") {
      const { sub } = identity.claims;
      throw new Problem(
        "owner.publisher",
        `${id} has no trusted publisher with these claims (sub ${JSON.stringify(sub)}, issuer ${identity.issuer})`,
      );
    }
    log("identity", { package: id, publisher: outcome.publisher.id, token: token!.id });
    return jsonAnswer(call.request, { token: shownToken(token!), secret }, { cache: "never", status: 201 });
  } catch (error) {
    // As with tokens that do not work: they cannot be guessed.
    if (error instanceof Problem && error.status === 401) limiter.take("refused", call.rateKey);
    throw error;
  }
}

function workflowToken(publisher: TrustedPublisher, id: string, at: number): Token {
  return {
    id: `tok_${randomBytes(9).toString("hex")}`,
    account: publisher.account,
    label: `identity token for ${publisher.prefix}`.slice(0, 100),
    scopes: ["publish"],
    prefix: id,
    createdAt: at,
    expiresAt: at + LIFE_MS,
    parent: publisher.id,
  };
}
