/**
 * Publishing and yanking.
 *
 * In: an archive and a token. Out: a signed release, or findings. Order: authenticate, authorize, refuse versions that
 * exist and accounts at their limit, verify the digest, check the archive, resolve its requirements, store it. The
 * owner of the longest prefix that covers an id may publish and yank it. An answer 201 is final: the release is
 * committed.
 */
import { Buffer } from "node:buffer";
import { type Digest, digestBytes, jcs } from "../../project/base/integrity.ts";
import { jsonAnswer } from "../answer.ts";
import { mediaType, readBody, readJsonBody, textField } from "../body.ts";
import { hostOf, isPunycode } from "../names.ts";
import { findingsOf, Problem } from "../problem.ts";
import type { CheckResult } from "../publish/check.ts";
import { type Call, idParam, knownQuery, versionParam } from "../services.ts";
import type { ReleaseRecord } from "../../project/packages/release_record.ts";
import { MAX_RELEASES } from "../../project/packages/source.ts";
import { signRecord } from "../signing.ts";
import { lockOwner, type OwnedPrefix, ownerOf } from "../store/accounts.ts";
import { findRelease, isoTime } from "../store/packages.ts";
import {
  foreseenOutcome,
  type PublishLimits,
  type PublishOutcome,
  publishRelease,
  unyankRelease,
  yankRelease,
} from "../store/releases.ts";
import type { Writes } from "../store/database.ts";
import { authenticate, type Identity, requireScope, writesOf } from "../tokens.ts";
import { requirePackage } from "./packages.ts";

/** `PUT /api/packages/{name}/versions/{version}` */
export async function putVersion(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { services, request } = call;
  const { database, settings } = services;
  const id = idParam(call);
  const version = versionParam(call);
  const identity = await identify(call);
  requireScope(identity, "publish", id);
  const owned = await requireOwner(call, id, identity);
  const precondition = request.headers.get("if-none-match");
  if (precondition !== null && precondition.trim() !== "*") {
    throw new Problem("request.precondition", "a version can only be created: If-None-Match must be *");
  }
  if (!["application/gzip", "application/x-gzip"].includes(mediaType(request))) {
    throw new Problem("request.type", "the body must be an archive, application/gzip");
  }
  const artifact = contentDigest(request.headers.get("content-digest"));
  const of = { package: id, version, account: identity.account, artifact };
  const limits = { perHour: settings.publishPerHour, perDay: settings.publishPerDay, perPlugin: MAX_RELEASES };
  const foreseen = await foreseenOutcome(database, { ...of, publishedAt: services.now() }, limits);
  if (foreseen !== undefined) refuse(foreseen, id, version);
  const archive = await readBody(request, settings.archiveBytes, settings.bodyTimeoutMs);
  if (digestBytes(archive) !== artifact) {
    throw new Problem("request.digest", "the body does not match Content-Digest");
  }
  const outcome = foreseen ?? await publishArchive(call, { ...of, identity, owned, archive }, limits);
  services.log("publish", { package: id, version, account: identity.accountName, outcome: outcome.kind });
  const kept = (await findRelease(database, id, version))!;
  const body = { record: kept.record, signature: kept.signature, created: outcome.kind === "created" };
  return jsonAnswer(request, body, { cache: "never", status: outcome.kind === "created" ? 201 : 200 });
}

/** An archive whose version did not exist when it was sent. */
interface SentArchive {
  readonly package: string;
  readonly version: string;
  readonly account: string;
  readonly artifact: Digest;
  readonly archive: Uint8Array;
  readonly identity: Identity;
  readonly owned: OwnedPrefix;
}

/** Checks and stores an archive. Throws a Problem unless the release exists in the end. */
async function publishArchive({ services }: Call, sent: SentArchive, limits: PublishLimits): Promise<PublishOutcome> {
  const { database, settings, signingKey, objects } = services;
  const { package: id, version, account, artifact, archive, identity, owned } = sent;
  const { readmeBytes, readmeHtmlBytes } = settings;
  const result = await services.pool.check(
    archive,
    { package: id, version, readmeBytes, readmeHtmlBytes },
    (ids) => services.lists.releases(ids),
  );
  if (!result.ok) throw rejected(result);
  const { checked } = result;
  const publishedAt = services.now();
  const record: ReleaseRecord = {
    schemaVersion: 1,
    package: id,
    version,
    artifact: { digest: artifact, size: archive.length },
    definitions: Object.fromEntries(checked.plugins.map((p) => [p.definition.id, p.digest as Digest])),
    publisher: owned.prefix,
    publishedAt: isoTime(publishedAt),
  };
  // Before the release that names it: an archive without a release costs space only.
  await objects?.put(artifact, archive);
  const outcome = await publishRelease(writesOf(database, identity.token, services.now), {
    package: id,
    version,
    account,
    publisher: owned.prefix,
    verified: owned.proof === "dns",
    held: isPunycode(id),
    publishedAt,
    metadata: checked.metadata,
    readme: checked.readme,
    readmeHtml: checked.readmeHtml,
    notes: checked.notes,
    files: checked.files,
    plugins: checked.plugins,
    archive,
    isStoredOutside: objects !== undefined,
    artifact,
    record: jcs(record),
    signature: signRecord(record, signingKey),
    signingKey: signingKey.id,
  }, limits);
  refuse(outcome, id, version);
  return outcome;
}

function rejected({ fault, diagnostics }: CheckResult & { readonly ok: false }): Problem {
  const errors = findingsOf(diagnostics);
  return fault === "graph"
    ? new Problem("publish.graph", diagnostics[0].message, { errors })
    : new Problem("publish.invalid", `the package has ${diagnostics.length} findings`, { errors });
}

/** Authenticates a call; wrong tokens are rate-limited, so that they cannot be guessed. */
export async function identify(call: Call): Promise<Identity> {
  const { database, limiter, now } = call.services;
  try {
    return await authenticate(database, call.request, now());
  } catch (error) {
    if (error instanceof Problem && error.status === 401) limiter.take("refused", call.rateKey);
    throw error;
  }
}

async function requireOwner(call: Call, id: string, identity: Identity): Promise<OwnedPrefix> {
  const { database, domains } = call.services;
  const found = await ownerOf(database, id);
  if (found === undefined) {
    throw new Problem(
      "owner.prefix",
      `no account owns ${id}; see ${call.services.settings.baseUrl}/registry#who-may-publish`,
    );
  }
  const owned = requireAccount(id, found, identity);
  if (owned.proof === "dns") {
    const shown = await domains(hostOf(id), identity.accountName).catch(() => {
      throw new Problem("server.unavailable", `the name servers of ${hostOf(id)} do not answer`);
    });
    if (!shown) {
      throw new Problem(
        "owner.unproved",
        `the TXT record _waft.${hostOf(id)} no longer says waft-account=${identity.accountName}`,
      );
    }
  }
  return owned;
}

/** Throws unless the account of the token owns the prefix of an id. */
function requireAccount(id: string, owned: OwnedPrefix | undefined, identity: Identity): OwnedPrefix {
  if (owned !== undefined && owned.account === identity.account) return owned;
  throw new Problem("owner.prefix", `${owned?.prefix ?? id} belongs to another account`);
}

/** The SHA-256 of a `Content-Digest` field (RFC 9530). */
function contentDigest(field: string | null): Digest {
  const match = field === null || field.length > 1000
    ? null
    : /(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):\s*(?:,|$)/.exec(field);
  if (match === null) throw new Problem("request.digest", "Content-Digest must name a sha-256 of the body (RFC 9530)");
  return `sha256:${Buffer.from(match[1], "base64").toString("hex")}`;
}

/** Throws a Problem unless the release exists. */
function refuse(outcome: PublishOutcome, id: string, version: string): void {
  switch (outcome.kind) {
    case "created":
    case "same":
      return;
    case "different":
      throw new Problem("version.exists", `${id} ${version} exists with different bytes (${outcome.artifact})`);
    case "build-differs":
      throw new Problem(
        "version.exists",
        `${id} ${outcome.version} exists; build metadata does not distinguish releases`,
      );
    case "owner":
      throw new Problem("owner.prefix", `${outcome.id} belongs to another account`);
    case "twin":
      throw new Problem("package.twin", `${id} is too easily confused with ${outcome.other}`);
    case "plugin-taken":
      throw new Problem("plugin.taken", `${outcome.id} is a plugin of the package ${outcome.package}`);
    case "full":
      throw new Problem("plugin.full", `${outcome.id} has as many releases as an index can list`);
    case "too-many":
      throw new Problem("rate.limited", "the account has reached its limit of releases", {
        headers: { "retry-after": String(outcome.retryAfterSeconds) },
      });
  }
}

const SEVERITIES = ["broken", "security", "other"];

/** `POST /api/packages/{name}/versions/{version}/yank` */
export async function postYank(call: Call): Promise<Response> {
  const { id, version, identity, isAdmin, writes } = await requireYanker(call);
  const { database, settings, now, log } = call.services;
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["reason", "severity"],
  });
  const reason = textField(body, "reason", { min: 1, max: 300 });
  const severity = textField(body, "severity", { min: 1, max: 20 });
  if (!SEVERITIES.includes(severity)) {
    throw new Problem("request.json", `"severity" must be one of ${SEVERITIES.join(", ")}`, {
      errors: [{ pointer: "/severity", detail: SEVERITIES.join(", ") }],
    });
  }
  const of = { package: id, version, account: identity.account, at: now(), isAdmin };
  if (!await yankRelease(writes, { ...of, reason, severity })) throw moderated(id, version);
  log("yank", { package: id, version, account: identity.accountName, severity });
  const kept = (await findRelease(database, id, version))!;
  return jsonAnswer(call.request, { name: id, version, yanked: kept.yanked ?? null }, { cache: "never" });
}

/** `DELETE /api/packages/{name}/versions/{version}/yank` */
export async function deleteYank(call: Call): Promise<Response> {
  const { id, version, identity, isAdmin, writes } = await requireYanker(call);
  const { now, log } = call.services;
  const of = { package: id, version, account: identity.account, at: now(), isAdmin };
  if (!await unyankRelease(writes, of)) throw moderated(id, version);
  log("unyank", { package: id, version, account: identity.accountName });
  return jsonAnswer(call.request, { name: id, version, yanked: null }, { cache: "never" });
}

function moderated(id: string, version: string): Problem {
  return new Problem("owner.yank", `an administrator yanked ${id} ${version}; only administrators change that`);
}

interface Yanker {
  readonly id: string;
  readonly version: string;
  readonly identity: Identity;
  readonly isAdmin: boolean;
  /** Transactions in which token and ownership still hold. */
  readonly writes: Writes;
}

async function requireYanker(call: Call): Promise<Yanker> {
  knownQuery(call, []);
  const version = versionParam(call);
  const steward = await requireSteward(call);
  const { id } = steward;
  if (await findRelease(call.services.database, id, version) === undefined) {
    throw new Problem("version.unknown", `${id} has no version ${version}`);
  }
  return { ...steward, version };
}

/** Who may yank and deprecate the releases of the package that a request names; throws a Problem for others. */
export async function requireSteward(call: Call): Promise<Omit<Yanker, "version">> {
  const id = idParam(call);
  const identity = await identify(call);
  requireScope(identity, "yank", id);
  await requirePackage(call);
  // The current ownership of the prefix decides: losing it, or its DNS record, loses the right to yank.
  const { database, now } = call.services;
  const isAdmin = identity.token.scopes.includes("admin");
  if (!isAdmin) await requireOwner(call, id, identity);
  const writes = writesOf(database, identity.token, now, async (queries) => {
    if (!isAdmin) requireAccount(id, await lockOwner(queries, id), identity);
  });
  return { id, identity, isAdmin, writes };
}
