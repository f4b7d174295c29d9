/**
 * `/api/plugins`, `/api/contracts`, `/api/blobs`, `/api/keys`: the data for resolving and fetching.
 */
import { isPluginId } from "../../project/base/grammar.ts";
import { CACHE, isUnchanged, jsonAnswer, rangeOf, textAnswer } from "../answer.ts";
import { readJsonBody } from "../body.ts";
import { idOfSegment } from "../names.ts";
import { Problem } from "../problem.ts";
import { type Call, idParam, knownQuery } from "../services.ts";
import { blobSize, readBlob } from "../store/blobs.ts";
import { listKeys } from "../store/keys.ts";
import { isoTime, listProviders } from "../store/packages.ts";

const MAX_BATCH = 64;

/** `GET /api/plugins/{id}/index` */
export async function getPluginIndex(call: Call): Promise<Response> {
  knownQuery(call, []);
  const id = idParam(call, "id");
  const index = await call.services.lists.index(id);
  if (index === undefined) throw new Problem("package.unknown", `this registry has no plugin ${id}`);
  return textAnswer(call.request, index, { type: "application/json", cache: "short" });
}

/** `POST /api/plugins/index`: up to 64 indexes; null for unknown ids. */
export async function postPluginIndexes(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { settings } = call.services;
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["ids"],
  });
  const { ids } = body;
  const valid = Array.isArray(ids) && ids.length >= 1 && ids.length <= MAX_BATCH && new Set(ids).size === ids.length &&
    ids.every((id) => typeof id === "string" && isPluginId(id));
  if (!valid) {
    throw new Problem("request.json", `"ids" must be 1 to ${MAX_BATCH} different plugin ids`, {
      errors: [{ pointer: "/ids", detail: "an array of ids such as github.com/acme/kv" }],
    });
  }
  const indexes: string[] = [];
  for (const id of ids as string[]) indexes.push(await call.services.lists.index(id) ?? "null");
  const text = `{"schemaVersion":1,"indexes":[${indexes.join(",")}]}`;
  return textAnswer(call.request, text, { type: "application/json", cache: "never" });
}

/** `GET /api/contracts/{contract}/providers`, where a contract is `<id>@<major>`. */
export async function getProviders(call: Call): Promise<Response> {
  knownQuery(call, []);
  const namespace = contractParam(call);
  const providers = await listProviders(call.services.database, namespace);
  return jsonAnswer(call.request, { contract: namespace, providers }, { cache: "short" });
}

/** The contract that a segment names. */
export function contractParam(call: Call): string {
  const [, segment, major] = /^(.{1,600})@([0-9]{1,7})$/.exec(call.params.contract ?? "") ?? [];
  const id = segment === undefined ? undefined : idOfSegment(segment);
  if (id === undefined || String(Number(major)) !== major) {
    throw new Problem("request.name", "a contract looks like github.com/acme/contracts/kv@1");
  }
  return `${id}@${major}`;
}

/** `GET /api/blobs/sha256/{hex}`: immutable bytes, in parts if wanted. */
export async function getBlob(call: Call): Promise<Response> {
  knownQuery(call, []);
  const hex = call.params.hex ?? "";
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new Problem("request.name", "a digest has 64 lower-case hex digits");
  const { database, objects } = call.services;
  const size = await blobSize(database, `sha256:${hex}`);
  if (size === undefined) throw new Problem("blob.unknown", `no archive has the digest sha256:${hex}`);
  const etag = `"${hex}"`;
  const headers: { [name: string]: string } = {
    "content-type": "application/gzip",
    "cache-control": CACHE.immutable,
    "accept-ranges": "bytes",
    // Browsers save it and never display it.
    "content-disposition": `attachment; filename="${hex.slice(0, 16)}.tar.gz"`,
    etag,
  };
  if (isUnchanged(call.request, etag)) return new Response(null, { status: 304, headers });
  const range = rangeOf(call.request, etag, size);
  const [start, end] = range ?? [0, size];
  headers["content-length"] = String(end - start);
  if (range !== undefined) headers["content-range"] = `bytes ${start}-${end - 1}/${size}`;
  const bytes = call.request.method === "HEAD" ? null : await readBlob(database, `sha256:${hex}`, {
    start,
    length: end - start,
    size,
    objects,
  });
  return new Response(bytes, { status: range === undefined ? 200 : 206, headers });
}

/** `GET /api/keys` */
export async function getKeys(call: Call): Promise<Response> {
  knownQuery(call, []);
  const keys = await listKeys(call.services.database);
  const body = {
    keys: keys.map((k) => ({
      id: k.id,
      algorithm: "Ed25519",
      publicKey: k.publicKey,
      createdAt: isoTime(k.createdAt),
      retiredAt: k.retiredAt === undefined ? null : isoTime(k.retiredAt),
      endorsement: k.endorsement ?? null,
    })),
  };
  return jsonAnswer(call.request, body, { cache: "short" });
}
