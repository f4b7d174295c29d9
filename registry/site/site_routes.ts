/**
 * Routes of the site: pages, raw Markdown, data, schemas, style.
 */
import { existsSync, readFileSync } from "node:fs";
import { CATALOG_JSON_SCHEMA } from "../../project/definitions/catalog.ts";
import { isPluginId } from "../../project/base/grammar.ts";
import { LOCKFILE_SCHEMA } from "../../project/lockfile/lock_schema.ts";
import { MANIFEST_JSON_SCHEMA } from "../../project/manifest/manifest.ts";
import { OUTPUT_SCHEMAS } from "../../project/output_schemas.ts";
import { CATALOG_SCHEMA, LOCK_SCHEMA, MANIFEST_SCHEMA } from "../../project/base/constants.ts";
import { CACHE, jsonAnswer, textAnswer } from "../answer.ts";
import { segmentOfId } from "../names.ts";
import { Problem } from "../problem.ts";
import { type Call, type Handler, knownQuery, type Route } from "../services.ts";
import { listIds } from "../store/packages.ts";
import { changesFeed, changesPage } from "./pages/changes_page.ts";
import { comparePage } from "./pages/compare_page.ts";
import { contractPage } from "./pages/contract_page.ts";
import { docsPage, missingPage } from "./pages/docs_page.ts";
import { playgroundPage } from "./pages/playground_page.ts";
import { pluginPage } from "./pages/plugin_page.ts";
import { pluginsPage } from "./pages/plugins_page.ts";
import { errorPage } from "./pages/problem_page.ts";
import { searchPage } from "./pages/search_page.ts";
import { COMPILER_PATH, compilerScript } from "./playground/build.ts";
import { getReleaseFile, getReleaseIndex, releasedInstaller } from "./release_files.ts";
import { staticFile } from "./static_files.ts";

const HTML = "text/html; charset=utf-8";
const PLAIN = "text/plain; charset=utf-8";
const MARKDOWN = "text/markdown; charset=utf-8";

const INSTALLER = new URL("../../installer/install.sh", import.meta.url);
const WINDOWS_INSTALLER = new URL("../../installer/install.ps1", import.meta.url);

/** The site's routes; siteFallback answers all other addresses. */
export const SITE_ROUTES: readonly Route[] = [
  { method: "GET", path: "/plugins", rate: "search", handler: page(pluginsPage) },
  { method: "GET", path: "/plugins/:name", rate: "read", handler: page(pluginPage) },
  { method: "GET", path: "/plugins/:name/v/:version", rate: "read", handler: page(pluginPage) },
  { method: "GET", path: "/plugins/:name/compare/:range", rate: "read", handler: page(comparePage) },
  { method: "GET", path: "/contracts/:contract", rate: "read", handler: page(contractPage) },
  { method: "GET", path: "/changes", rate: "read", handler: page(changesPage) },
  { method: "GET", path: "/changes.atom", rate: "read", handler: getFeed },
  { method: "GET", path: "/playground", rate: "read", handler: page(playgroundPage) },
  { method: "GET", path: COMPILER_PATH, rate: "read", handler: getCompiler },
  { method: "GET", path: "/search", rate: "search", handler: getSearch },
  { method: "GET", path: "/errors/:code", rate: "read", handler: getError },
  { method: "GET", path: "/schemas/v1/:schema", rate: "read", handler: getSchema },
  { method: "GET", path: "/schemas/v1/output/:schema", rate: "read", handler: getOutputSchema },
  { method: "GET", path: "/data/docs.json", rate: "read", handler: (call) => getIndex(call, "canary", true) },
  {
    method: "GET",
    path: "/:channel/data/docs.json",
    rate: "read",
    handler: (call) => getIndex(call, call.params.channel),
  },
  { method: "GET", path: "/llms.txt", rate: "read", handler: (call) => text(call, call.services.documents.overview()) },
  {
    method: "GET",
    path: "/llms-full.txt",
    rate: "read",
    handler: (call) => text(call, call.services.documents.corpus()),
  },
  { method: "GET", path: "/robots.txt", rate: "read", handler: getRobots },
  { method: "GET", path: "/sitemap.xml", rate: "read", handler: getSitemap },
  {
    method: "GET",
    path: "/install.sh",
    rate: "read",
    handler: (call) => getInstaller(call, "install.sh", INSTALLER, "text/x-shellscript; charset=utf-8"),
  },
  {
    method: "GET",
    path: "/install.ps1",
    rate: "read",
    handler: (call) => getInstaller(call, "install.ps1", WINDOWS_INSTALLER, PLAIN),
  },
  { method: "GET", path: "/releases/index.json", rate: "read", handler: getReleaseIndex },
  { method: "GET", path: "/releases/index.json.sig", rate: "read", handler: getReleaseIndex },
  { method: "GET", path: "/releases/:version/:file", rate: "read", handler: getReleaseFile },
];

function page(render: (call: Call) => Promise<string> | string): Handler {
  return async (call) => textAnswer(call.request, await render(call), { type: HTML, cache: "short" });
}

function text(call: Call, body: string): Response {
  return textAnswer(call.request, body, { type: PLAIN, cache: "short" });
}

async function getSearch(call: Call): Promise<Response> {
  knownQuery(call, ["q", "channel"]);
  const { documents } = call.services;
  const q = call.url.searchParams.get("q") ?? "";
  if ([...q].length > 100) throw new Problem("request.query", '"q" has at most 100 characters');
  const channel = documents.channel(call.url.searchParams.get("channel") ?? "canary") ?? documents.channels[0];
  if (channel === undefined) throw new Problem("route.unknown", "there is no documentation here");
  return textAnswer(call.request, await searchPage(call.services, q.trim(), channel), { type: HTML, cache: "short" });
}

async function getCompiler(call: Call): Promise<Response> {
  const bytes = await compilerScript();
  if (bytes === undefined) throw new Problem("route.unknown", "this registry has no playground");
  return textAnswer(call.request, bytes, { type: "text/javascript; charset=utf-8", cache: "short" });
}

async function getFeed(call: Call): Promise<Response> {
  const type = "application/atom+xml; charset=utf-8";
  return textAnswer(call.request, await changesFeed(call), { type, cache: "short" });
}

function getError(call: Call): Response {
  const body = errorPage(call.services, call.params.code ?? "");
  if (body === undefined) throw new Problem("route.unknown", "there is no such error code");
  return textAnswer(call.request, body, { type: HTML, cache: "short" });
}

const SCHEMAS: { readonly [name: string]: object } = {
  "schema.json": { $id: MANIFEST_SCHEMA, ...MANIFEST_JSON_SCHEMA },
  "lock.schema.json": { $schema: "http://json-schema.org/draft-07/schema#", $id: LOCK_SCHEMA, ...LOCKFILE_SCHEMA },
  "catalog.schema.json": {
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: CATALOG_SCHEMA,
    ...CATALOG_JSON_SCHEMA,
  },
};

const OUTPUT = /^([a-z.]+)\.schema\.json$/;

function getOutputSchema(call: Call): Response {
  const command = OUTPUT.exec(call.params.schema ?? "")?.[1] ?? "";
  if (!Object.hasOwn(OUTPUT_SCHEMAS, command)) {
    throw new Problem("route.unknown", `there are schemas of ${Object.keys(OUTPUT_SCHEMAS).join(", ")}`);
  }
  return schemaAnswer(call, OUTPUT_SCHEMAS[command]);
}

function schemaAnswer(call: Call, schema: object): Response {
  return textAnswer(call.request, JSON.stringify(schema, null, 2) + "\n", {
    type: "application/schema+json",
    cache: "short",
  });
}

function getSchema(call: Call): Response {
  const name = call.params.schema ?? "";
  if (!Object.hasOwn(SCHEMAS, name)) {
    throw new Problem("route.unknown", "the schemas are schema.json, lock.schema.json and catalog.schema.json");
  }
  return schemaAnswer(call, SCHEMAS[name]);
}

function getIndex(call: Call, id: string, all = false): Response {
  const { documents } = call.services;
  const channel = documents.channel(id);
  if (channel === undefined && !all) throw new Problem("route.unknown", "there is no such channel");
  return jsonAnswer(call.request, documents.index(all ? undefined : channel), { cache: "short" });
}

function getRobots(call: Call): Response {
  return text(
    call,
    `User-agent: *\nDisallow: /api/\nDisallow: /search\nSitemap: ${call.services.settings.baseUrl}/sitemap.xml\n`,
  );
}

async function getSitemap(call: Call): Promise<Response> {
  const { documents, database, settings } = call.services;
  const official = documents.newestOfficial() ?? documents.channels[0];
  const paths = (official?.pages ?? []).map((p) => documents.canonicalPath(p));
  const ids = await listIds(database);
  const urls = [...new Set(["/", "/plugins", "/playground", "/changes", ...paths])].map((p) =>
    `<url><loc>${settings.baseUrl}${p}</loc></url>`
  );
  for (const { id, publishedAt } of ids) {
    urls.push(`<url><loc>${settings.baseUrl}/plugins/${segmentOfId(id)}</loc><lastmod>${publishedAt}</lastmod></url>`);
  }
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${
    urls.join("\n")
  }\n</urlset>\n`;
  return textAnswer(call.request, body, { type: "application/xml", cache: "short" });
}

/** The script of the newest release, else the one of this program, which installs nothing without `--base`. */
async function getInstaller(call: Call, name: string, source: URL, type: string): Promise<Response> {
  knownQuery(call, []);
  const released = await releasedInstaller(call, name);
  if (released !== undefined) return released;
  if (!existsSync(source)) throw new Problem("route.unknown", "this registry has no installer");
  return textAnswer(call.request, readFileSync(source, "utf8"), { type, cache: "short" });
}

/** Documentation, raw Markdown and static files; else the page for an unknown address. */
export function siteFallback(call: Call): Response {
  const { documents } = call.services;
  const path = call.url.pathname;
  const file = staticFile(path);
  if (file !== undefined) {
    return textAnswer(call.request, file.bytes, { type: file.type, cache: "immutable" });
  }
  const found = documents.page(path);
  if (found !== undefined) {
    return textAnswer(call.request, docsPage(call.services, found), { type: HTML, cache: "short" });
  }
  const raw = documents.rawPage(path);
  if (raw !== undefined) return textAnswer(call.request, raw.source, { type: MARKDOWN, cache: "short" });
  // Redirect other spellings: a channel without its slash or with its page's name, a plugin's id with slashes.
  const folder = path.replace(/\/index$/, "/");
  if (folder !== path && documents.page(folder) !== undefined) return redirect(folder);
  if (documents.page(`${path}/`) !== undefined) return redirect(`${path}/`);
  const [, name] = /^\/docs(?:\/([a-z0-9-]*)(?:\.md)?)?$/.exec(path) ?? [];
  if (path === "/docs" || name === "") return redirect("/getting-started");
  if (name !== undefined && documents.page(`/${name}`) !== undefined) return redirect(`/${name}`);
  const id = path.startsWith("/plugins/") ? path.slice("/plugins/".length) : "";
  if (isPluginId(id)) return redirect(`/plugins/${segmentOfId(id)}`);
  return textAnswer(call.request, missingPage(call.services, path), { type: HTML, cache: "never", status: 404 });
}

function redirect(path: string): Response {
  return new Response(null, { status: 308, headers: { location: path, "cache-control": CACHE.short } });
}
