/**
 * `/api/log`: the transparency log of releases, for clients that check releases and for those who watch the registry.
 *
 * In: sizes and numbers. Out: the signed head, entries, proofs. Every answer is about a tree that the address names by
 * its size, except the head, which is never cached.
 */
import { jsonAnswer } from "../answer.ts";
import { writeCheckpoint } from "../../project/packages/checkpoint.ts";
import { Problem } from "../problem.ts";
import { type Call, idParam, knownQuery, numberQuery, versionParam } from "../services.ts";
import { signBytes } from "../signing.ts";
import { consistencyProof, entryNumber, inclusionProof, logEntries, logSize, rootOf } from "../store/log.ts";
import { requirePackage } from "./packages.ts";

/** The maximum number of entries in an answer. */
const MAX_ENTRIES = 500;
/** The largest number that a parameter of the log may be. */
const MAX_NUMBER = 999_999_999;

/** `GET /api/log/checkpoint` */
export async function getCheckpoint(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, settings, signingKey } = call.services;
  const size = await logSize(database);
  const origin = new URL(settings.baseUrl).host;
  const checkpoint = writeCheckpoint(
    { origin, size, root: await rootOf(database, size) },
    signingKey.publicKey,
    (bytes) => signBytes(bytes, signingKey),
  );
  return jsonAnswer(call.request, { checkpoint, keyId: signingKey.id }, { cache: "never" });
}

/** `GET /api/log/entries?start=&limit=` */
export async function getLogEntries(call: Call): Promise<Response> {
  knownQuery(call, ["start", "limit"]);
  const start = numberQuery(call, "start", { min: 0, max: MAX_NUMBER, fallback: 0 });
  const limit = numberQuery(call, "limit", { min: 1, max: MAX_ENTRIES, fallback: 100 });
  const entries = await logEntries(call.services.database, start, limit);
  return jsonAnswer(call.request, { entries }, { cache: "never" });
}

/** `GET /api/log/consistency?from=&to=` */
export async function getConsistency(call: Call): Promise<Response> {
  knownQuery(call, ["from", "to"]);
  const { database } = call.services;
  const to = await sizeQuery(call, "to");
  const from = numberQuery(call, "from", { min: 0, max: MAX_NUMBER, fallback: 0 });
  if (from > to) throw new Problem("request.query", `"from" must be at most "to"`);
  const proof = await consistencyProof(database, from, to);
  return jsonAnswer(call.request, { from, to, proof: hexOf(proof) }, { cache: cacheOf(call, "to") });
}

/** `GET /api/packages/{name}/versions/{version}/inclusion?size=` */
export async function getInclusion(call: Call): Promise<Response> {
  knownQuery(call, ["size"]);
  const { database } = call.services;
  await requirePackage(call);
  const id = idParam(call);
  const version = versionParam(call);
  const size = await sizeQuery(call, "size");
  const number = await entryNumber(database, id, version);
  if (number === undefined || number >= size) {
    throw new Problem("log.unknown", `the first ${size} entries of the log do not have ${id} ${version}`);
  }
  const proof = await inclusionProof(database, number, size);
  return jsonAnswer(call.request, { number, size, proof: hexOf(proof) }, { cache: cacheOf(call, "size") });
}

/** The parameter that is a size of the log, now or before; the present one without it. */
async function sizeQuery(call: Call, name: string): Promise<number> {
  const now = await logSize(call.services.database);
  const size = numberQuery(call, name, { min: 0, max: MAX_NUMBER, fallback: now });
  if (size > now) throw new Problem("request.query", `"${name}" must be at most ${now}, the size of the log`);
  return size;
}

/** Proofs about a tree whose size is given never change. */
function cacheOf(call: Call, name: string): "immutable" | "never" {
  return call.url.searchParams.has(name) ? "immutable" : "never";
}

function hexOf(proof: readonly Uint8Array[]): string[] {
  return proof.map((hash) => Buffer.from(hash).toString("hex"));
}
