/**
 * The API's description in OpenAPI 3.1: one row for each route. It is served at `/api/openapi.json`, shown as the page
 * `registry-api` of the documentation, and checked against real answers by tests.
 */
import { VERSION } from "../project/base/version_string.ts";
import { API_SCHEMAS, type ApiSchema, ref } from "./openapi_schemas.ts";
import { FACETS, SORTS } from "./store/packages.ts";

/** A parameter. */
interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly about: string;
  readonly schema: ApiSchema;
  readonly required?: boolean;
}

/** One operation. */
interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly summary: string;
  readonly parameters?: readonly Parameter[];
  /** Schema of a JSON body, or a media type. */
  readonly body?: { readonly schema?: string; readonly type?: string; readonly optional?: boolean };
  /** Schema or media type by status. */
  readonly answers: { readonly [status: number]: string | null };
  readonly problems: readonly number[];
  readonly auth?: string;
}

const NAME: Parameter = {
  name: "name",
  in: "path",
  required: true,
  about: "The package's id, as one segment: `github.com%2Facme%2Fkv` or `github.com:acme:kv`",
  schema: { type: "string" },
};
const ID: Parameter = { ...NAME, name: "id", about: "A plugin's id, written as one segment like a package's" };
const VERSION_PARAMETER: Parameter = {
  name: "version",
  in: "path",
  required: true,
  about: "An exact version in canonical form",
  schema: { type: "string", maxLength: 256 },
};
const query = (name: string, about: string, schema: ApiSchema = { type: "string" }): Parameter => ({
  name,
  in: "query",
  about,
  schema,
});
const FACET_WORDS: { readonly [facet in (typeof FACETS)[number]]: string } = {
  category: "Only this category",
  tag: "Only with this tag",
  stability: "`experimental`, `stable` or `deprecated`",
  engine: "Only those that state a range for this engine",
  platform: "Only those that run on this platform, such as `linux/amd64`",
  kind: "`wasm`",
  authority: "Only those that ask for this authority",
  contract: "Only those that provide this contract, as `<id>@<major>`",
};

/** All operations. */
export const OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/api/packages",
    summary: "List published plugins",
    parameters: [
      query("q", "Words to find", { type: "string", maxLength: 100 }),
      ...FACETS.map((f) => query(f, FACET_WORDS[f])),
      query("sort", "Order; `relevance` unless given", { enum: SORTS }),
      query("limit", "Packages on a page; 50 unless given", { type: "integer", minimum: 1, maximum: 200 }),
      query("cursor", "`nextCursor` of the page before, with the same other parameters"),
    ],
    answers: { 200: "PackagePage" },
    problems: [400, 406, 429],
  },
  {
    method: "GET",
    path: "/api/packages/:name",
    summary: "One package with its newest release",
    parameters: [NAME],
    answers: { 200: "Package" },
    problems: [400, 404, 406, 429],
  },
  {
    method: "GET",
    path: "/api/packages/:name/versions",
    summary: "Its versions, newest first, with yanks",
    parameters: [NAME],
    answers: { 200: "Versions" },
    problems: [400, 404, 406, 429],
  },
  {
    method: "GET",
    path: "/api/packages/:name/versions/:version",
    summary: "One release: the signed record and its definitions; immutable",
    parameters: [NAME, VERSION_PARAMETER],
    answers: { 200: "Release" },
    problems: [400, 404, 406, 429],
  },
  {
    method: "PUT",
    path: "/api/packages/:name/versions/:version",
    summary: "Publish a release",
    parameters: [
      NAME,
      VERSION_PARAMETER,
      {
        name: "Content-Digest",
        in: "header",
        required: true,
        about: "`sha-256=:…:` of the body (RFC 9530)",
        schema: { type: "string" },
      },
      { name: "If-None-Match", in: "header", about: "`*` if present", schema: { const: "*" } },
    ],
    body: { type: "application/gzip" },
    answers: { 201: "Published", 200: "Published" },
    problems: [400, 401, 403, 406, 408, 409, 412, 413, 415, 422, 429, 503],
    auth: "publish",
  },
  {
    method: "POST",
    path: "/api/packages/:name/versions/:version/yank",
    summary: "Yank a release: exclude it from new resolutions",
    parameters: [NAME, VERSION_PARAMETER],
    body: { schema: "YankRequest" },
    answers: { 200: "Yanked" },
    problems: [400, 401, 403, 404, 406, 413, 415, 429],
    auth: "yank",
  },
  {
    method: "DELETE",
    path: "/api/packages/:name/versions/:version/yank",
    summary: "Un-yank a release",
    parameters: [NAME, VERSION_PARAMETER],
    answers: { 200: "Yanked" },
    problems: [400, 401, 403, 404, 406, 429],
    auth: "yank",
  },
  {
    method: "GET",
    path: "/api/packages/:name/installs",
    summary: "Installs for each day",
    parameters: [NAME, query("days", "Number of days; 90 unless given", { type: "integer", minimum: 1, maximum: 365 })],
    answers: { 200: "InstallSeries" },
    problems: [400, 404, 406, 429],
  },
  {
    method: "POST",
    path: "/api/packages/:name/installs",
    summary: "Record a completed plugin installation",
    parameters: [NAME],
    body: { schema: "InstallRequest", optional: true },
    answers: { 200: "InstallAnswer" },
    problems: [400, 404, 406, 413, 415, 429],
  },
  {
    method: "POST",
    path: "/api/packages/:name/release",
    summary: "Release a package that is held for moderation",
    parameters: [NAME],
    answers: { 200: "Hold" },
    problems: [400, 401, 403, 404, 406, 429],
    auth: "admin",
  },
  {
    method: "GET",
    path: "/api/plugins/:id/index",
    summary: "All releases of a plugin, for the resolver",
    parameters: [ID],
    answers: { 200: "PluginIndex" },
    problems: [400, 404, 406, 429],
  },
  {
    method: "POST",
    path: "/api/plugins/index",
    summary: "Several indexes at once, in the order asked; null for unknown ids",
    body: { schema: "IndexesRequest" },
    answers: { 200: "Indexes" },
    problems: [400, 406, 413, 415, 429],
  },
  {
    method: "GET",
    path: "/api/contracts/:contract/providers",
    summary: "Plugins that provide a contract",
    parameters: [{ ...NAME, name: "contract", about: "`<id>@<major>` as one segment" }],
    answers: { 200: "Providers" },
    problems: [400, 406, 429],
  },
  {
    method: "GET",
    path: "/api/blobs/sha256/:hex",
    summary: "An archive by its digest; ranges are allowed; immutable",
    parameters: [{
      ...NAME,
      name: "hex",
      about: "The digest without `sha256:`",
      schema: { type: "string", pattern: "^[0-9a-f]{64}$" },
    }],
    answers: { 200: "application/gzip", 206: "application/gzip" },
    problems: [400, 404, 416, 429],
  },
  {
    method: "GET",
    path: "/api/changes",
    summary: "Releases and yanks of all packages, newest first",
    parameters: [
      query("limit", "Changes on a page; 50 unless given", { type: "integer", minimum: 1, maximum: 200 }),
      query("cursor", "`nextCursor` of the page before"),
    ],
    answers: { 200: "ChangePage" },
    problems: [400, 406, 429],
  },
  {
    method: "GET",
    path: "/api/keys",
    summary: "The keys that sign release records",
    answers: { 200: "Keys" },
    problems: [400, 406, 429],
  },
  {
    method: "GET",
    path: "/api/account",
    summary: "The account of the token, and its rights",
    answers: { 200: "Account" },
    problems: [400, 401, 406, 429],
    auth: "any",
  },
  {
    method: "GET",
    path: "/api/tokens",
    summary: "The account's tokens, without their secrets",
    answers: { 200: "Tokens" },
    problems: [400, 401, 403, 406, 429],
    auth: "owners",
  },
  {
    method: "POST",
    path: "/api/tokens",
    summary: "Create a token with no more rights and no later expiry than this one; its secret is shown once",
    parameters: [
      query("days", "Days until it expires; 90 unless given", { type: "integer", minimum: 1, maximum: 366 }),
    ],
    body: { schema: "TokenRequest" },
    answers: { 201: "NewToken" },
    problems: [400, 401, 403, 404, 406, 409, 413, 415, 429],
    auth: "owners",
  },
  {
    method: "DELETE",
    path: "/api/tokens/:token",
    summary: "Revoke a token and those created with it; any token may revoke itself",
    parameters: [{ ...NAME, name: "token", about: "The token's `id`" }],
    answers: { 204: null },
    problems: [400, 401, 403, 404, 406, 429],
    auth: "owners",
  },
  {
    method: "POST",
    path: "/api/prefixes",
    summary: "Claim a host by its DNS record, or (admin) give a prefix to an account",
    body: { schema: "PrefixRequest" },
    answers: { 201: "Prefix" },
    problems: [400, 401, 403, 404, 406, 409, 413, 415, 429, 503],
    auth: "owners",
  },
  {
    method: "DELETE",
    path: "/api/prefixes/:prefix",
    summary: "Give a prefix up, or (admin) take it away from its owner",
    parameters: [{ ...NAME, name: "prefix", about: "The prefix as one segment" }],
    answers: { 204: null },
    problems: [400, 401, 403, 404, 406, 429],
    auth: "owners",
  },
  {
    method: "POST",
    path: "/api/accounts",
    summary: "Create an account",
    body: { schema: "AccountRequest" },
    answers: { 201: "AccountName" },
    problems: [400, 401, 403, 406, 409, 413, 415, 429],
    auth: "admin",
  },
  {
    method: "GET",
    path: "/api/openapi.json",
    summary: "This description",
    answers: { 200: "application/json" },
    problems: [400, 406, 429],
  },
];

/** The document. */
export function openapiDocument(baseUrl: string): object {
  const paths: { [path: string]: { [method: string]: object } } = {};
  for (const operation of OPERATIONS) {
    const path = operation.path.replace(/:([a-z]+)/g, "{$1}");
    (paths[path] ??= {})[operation.method.toLowerCase()] = describe(operation);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "waft registry",
      version: VERSION,
      description: "Plugins for waft: lists, indexes, archives, publishing. Errors are problem documents (RFC 9457).",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: baseUrl }],
    paths,
    components: {
      schemas: API_SCHEMAS,
      securitySchemes: { token: { type: "http", scheme: "bearer", bearerFormat: "waft_…" } },
    },
  };
}

function describe(operation: Operation): object {
  const { parameters, body, answers, problems, auth, summary } = operation;
  const responses: { [status: string]: object } = {};
  for (const [status, answer] of Object.entries(answers)) {
    responses[status] = {
      description: STATUS_WORDS[status] ?? "Done",
      ...(answer === null ? {} : {
        content: answer.includes("/") ? { [answer]: {} } : { "application/json": { schema: ref(answer) } },
      }),
    };
  }
  for (const status of problems) {
    responses[status] = {
      description: STATUS_WORDS[status] ?? "Problem",
      content: { "application/problem+json": { schema: ref("Problem") } },
    };
  }
  if (operation.method === "GET" && answers[200] !== undefined && auth === undefined) {
    responses["304"] = { description: "Not modified" };
  }
  return {
    operationId: operationId(operation),
    summary,
    ...(parameters === undefined ? {} : {
      parameters: parameters.map(({ about, required, ...p }) => ({
        ...p,
        description: about,
        required: required === true,
      })),
    }),
    ...(body === undefined ? {} : {
      requestBody: {
        required: body.optional !== true,
        content: body.schema === undefined
          ? { [body.type!]: {} }
          : { "application/json": { schema: ref(body.schema) } },
      },
    }),
    responses,
    ...(auth === undefined ? {} : { security: [{ token: [] }] }),
  };
}

const STATUS_WORDS: { readonly [status: string]: string | undefined } = {
  200: "Done",
  201: "Created",
  204: "Done, without content",
  206: "Partial content",
  400: "Malformed request",
  401: "Missing or invalid token",
  403: "Not allowed",
  404: "Not found",
  406: "Representation not available",
  408: "Body timeout",
  409: "Conflict",
  412: "Precondition failed",
  413: "Body too large",
  415: "Unsupported media type",
  416: "Range not satisfiable",
  422: "Invalid package",
  429: "Too many requests",
  503: "Temporarily unavailable",
};

/** `GET /api/packages/:name` as `getPackagesName`. */
function operationId(operation: Operation): string {
  const words = operation.path.replace("/api", "").split(/[^A-Za-z0-9]+/).filter((w) => w !== "");
  return operation.method.toLowerCase() + words.map((w) => w[0].toUpperCase() + w.slice(1)).join("");
}

/** The API as a page of the documentation. */
export function openapiPage(): string {
  const lines = [
    "# Registry API",
    "",
    "Every route of the registry with its parameters and answers. The same description in OpenAPI 3.1 is served at " +
    "`/api/openapi.json`.",
    "",
    "Errors are `application/problem+json` (RFC 9457) with a `code`, a `detail` and, for findings, `errors`. Requests " +
    "with a token send `Authorization: Bearer waft_…`.",
    "",
  ];
  for (const o of OPERATIONS) {
    lines.push(`## ${o.method} ${o.path.replace(/:([a-z]+)/g, "{$1}")}`, "", `${o.summary}.`, "");
    if (o.auth !== undefined) {
      lines.push(o.auth === "any" ? "Needs a token." : `Needs a token with the scope \`${o.auth}\`.`, "");
    }
    if (o.parameters !== undefined) {
      lines.push("| Parameter | In | Meaning |", "| --- | --- | --- |");
      for (const p of o.parameters) lines.push(`| \`${p.name}\` | ${p.in} | ${p.about} |`);
      lines.push("");
    }
    if (o.body !== undefined) {
      const shape = o.body.schema === undefined ? o.body.type! : `${o.body.schema}, as JSON`;
      lines.push(`Body: \`${shape}\`${o.body.optional === true ? ", may be absent" : ""}.`, "");
    }
    const good = Object.entries(o.answers).map(([s, a]) => a === null ? s : `${s} (\`${a}\`)`);
    lines.push(`Answers ${good.join(" or ")}; problems: ${o.problems.join(", ")}.`, "");
  }
  lines.push("## Shapes", "");
  for (const [name, schema] of Object.entries(API_SCHEMAS)) {
    lines.push(`### ${name}`, "", "```json", JSON.stringify(schema, null, 2), "```", "");
  }
  return lines.join("\n");
}
