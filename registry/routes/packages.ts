/**
 * `/api/packages`: the list, one package, its versions, its installs.
 */
import { networkOf } from "../addresses.ts";
import { jsonAnswer } from "../answer.ts";
import { readJsonBody, textField } from "../body.ts";
import { makeCursor, readCursor } from "../cursor.ts";
import { Problem } from "../problem.ts";
import { type Call, idParam, knownQuery, numberQuery, versionParam } from "../services.ts";
import { readmeHtml } from "../site/readme.ts";
import { countInstall, installSeries } from "../store/installs.ts";
import {
  type Facet,
  FACETS,
  findPackage,
  findRelease,
  keyTypes,
  listPackages,
  type ListQuery,
  type PackageSummary,
  type Sort,
  SORTS,
} from "../store/packages.ts";
import { newestOf } from "../store/releases.ts";

const MAX_QUERY = 100;
const MAX_FACET = 400;

/** The list query of an address, and the text to which its cursors are bound. */
export function listQueryOf(call: Call, secret: string): { query: ListQuery; bound: string } {
  knownQuery(call, ["q", ...FACETS, "sort", "limit", "cursor"]);
  const { searchParams } = call.url;
  const q = searchParams.get("q") ?? "";
  if ([...q].length > MAX_QUERY) throw new Problem("request.query", `"q" has at most ${MAX_QUERY} characters`);
  const facets: { [facet in Facet]?: string } = {};
  for (const facet of FACETS) {
    const value = searchParams.get(facet);
    if (value === null || value === "") continue;
    if (value.length > MAX_FACET) throw new Problem("request.query", `"${facet}" has at most ${MAX_FACET} characters`);
    facets[facet] = value;
  }
  const sort = searchParams.get("sort") ?? "relevance";
  if (!isSort(sort)) throw new Problem("request.query", `"sort" must be one of ${SORTS.join(", ")}`);
  const limit = numberQuery(call, "limit", { min: 1, max: 200, fallback: 50 });
  const bound = JSON.stringify([q, facets, sort]);
  const cursor = searchParams.get("cursor");
  const after = cursor === null ? undefined : readCursor(cursor, bound, { secret, types: keyTypes(sort) });
  return { query: { q, facets, sort, limit, ...(after === undefined ? {} : { after }) }, bound };
}

function isSort(text: string): text is Sort {
  return (SORTS as readonly string[]).includes(text);
}

/** `GET /api/packages` */
export async function getPackages(call: Call): Promise<Response> {
  const { database, cursorSecret } = call.services;
  const { query, bound } = listQueryOf(call, cursorSecret);
  const page = await listPackages(database, query);
  const nextCursor = cursorOf(page, bound, cursorSecret);
  const body = { packages: page.packages, total: page.total, nextCursor };
  return jsonAnswer(call.request, body, { cache: "short", headers: nextLink(call, nextCursor) });
}

/** The cursor of the next page, or null. */
export function cursorOf(
  page: { readonly next?: readonly (string | number)[] },
  bound: string,
  secret: string,
): string | null {
  return page.next === undefined ? null : makeCursor(page.next, bound, secret);
}

/** The field `Link` of a list (RFC 8288): the address of the next page. */
export function nextLink(call: Call, nextCursor: string | null): { readonly link?: string } {
  if (nextCursor === null) return {};
  const next = new URL(call.services.settings.baseUrl + call.url.pathname);
  for (const [name, value] of call.url.searchParams) if (name !== "cursor") next.searchParams.append(name, value);
  next.searchParams.set("cursor", nextCursor);
  return { link: `<${next.href}>; rel="next"` };
}

/** The package of the address; throws when there is none or it is held. */
export async function requirePackage(call: Call): Promise<{ id: string; summary: PackageSummary }> {
  const id = idParam(call);
  const found = await findPackage(call.services.database, id);
  if (found === undefined) throw new Problem("package.unknown", `this registry has no package ${id}`);
  if (found.held) {
    throw new Problem("package.held", `${id} is held for a moderator, because its host is easily confused`);
  }
  return { id, ...found };
}

/** `GET /api/packages/{name}` */
export async function getPackage(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { id, summary } = await requirePackage(call);
  const { database, lists } = call.services;
  const versions = await lists.versions(id);
  const shown = summary.version === "" ? newestOf(versions.map((v) => v.version))! : summary.version;
  const release = (await findRelease(database, id, shown))!;
  const { metadata } = release;
  const body = {
    ...summary,
    version: shown,
    homepage: metadata.homepage ?? null,
    authors: metadata.authors,
    publisher: release.publisher,
    verified: release.verified,
    yanked: release.yanked ?? null,
    deprecated: release.deprecated ?? null,
    versions: versions.length,
    plugins: release.plugins.map(({ id, digest, definition }) => ({ id, definitionDigest: digest, definition })),
    readme: { markdown: release.readme, html: readmeHtml(release) },
    notes: release.notes === "" ? null : release.notes,
  };
  return jsonAnswer(call.request, body, { cache: "short" });
}

/** `GET /api/packages/{name}/versions` */
export async function getVersions(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { id } = await requirePackage(call);
  const versions = await call.services.lists.versions(id);
  return jsonAnswer(call.request, {
    name: id,
    versions: versions.map((v) => ({ ...v, yanked: v.yanked ?? null })),
  }, { cache: "short" });
}

/** `GET /api/packages/{name}/versions/{version}`: immutable, so without yanks. */
export async function getVersion(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { id } = await requirePackage(call);
  const version = versionParam(call);
  const release = await findRelease(call.services.database, id, version);
  if (release === undefined) throw new Problem("version.unknown", `${id} has no version ${version}`);
  const { record, signature, metadata, notes, files, plugins } = release;
  const body = {
    record,
    signature,
    metadata,
    notes: notes === "" ? null : notes,
    files,
    plugins: plugins.map((p) => ({ id: p.id, definitionDigest: p.digest, definition: p.definition, entry: p.entry })),
  };
  return jsonAnswer(call.request, body, { cache: "immutable" });
}

/** `GET /api/packages/{name}/installs` */
export async function getInstalls(call: Call): Promise<Response> {
  knownQuery(call, ["days"]);
  const days = numberQuery(call, "days", { min: 1, max: 365, fallback: 90 });
  const { id, summary } = await requirePackage(call);
  const { database, now } = call.services;
  const series = await installSeries(database, id, days, now());
  return jsonAnswer(call.request, { name: id, installs: summary.installs, days: series }, { cache: "short" });
}

/** `POST /api/packages/{name}/installs` */
export async function postInstall(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { database, settings, now } = call.services;
  const body = await readJsonBody(call.request, {
    maxBytes: 4096,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["version"],
    optional: true,
  });
  const version = body.version === undefined ? undefined : textField(body, "version", { min: 5, max: 256 });
  const { id } = await requirePackage(call);
  const installs = await countInstall(database, {
    package: id,
    network: networkOf(call.address),
    at: now(),
    ...(version === undefined ? {} : { version }),
  });
  if (installs === undefined) {
    throw new Problem("version.unknown", `${id} has no version ${(version ?? "that is not yanked").slice(0, 60)}`);
  }
  return jsonAnswer(call.request, { installs }, { cache: "never" });
}
