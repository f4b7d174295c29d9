/**
 * The API's description in OpenAPI 3.1. In: the operations, which are parts of the routes (api_routes.ts). Out: the
 * document that `/api/openapi.json` serves, and the page `registry-api` of the documentation. Tests check it against
 * real answers.
 */
import { VERSION } from "../project/base/version_string.ts";
import { API_SCHEMAS, type ApiSchema, ref } from "./openapi_schemas.ts";
import type { Route } from "./services.ts";

/** A parameter. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly about: string;
  readonly schema: ApiSchema;
  readonly required?: boolean;
}

/** The description of one route. */
export interface Operation extends Pick<Route, "method" | "path"> {
  readonly summary: string;
  readonly parameters?: readonly Parameter[];
  /** Schema of a JSON body, or a media type. */
  readonly body?: { readonly schema?: string; readonly type?: string; readonly optional?: boolean };
  /** Schema or media type by status. */
  readonly answers: { readonly [status: number]: string | null };
  readonly problems: readonly number[];
  readonly auth?: string;
}

/** The document for a registry at `baseUrl`. */
export function openapiDocument(operations: readonly Operation[], baseUrl: string): object {
  const paths: { [path: string]: { [method: string]: object } } = {};
  for (const operation of operations) {
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
export function openapiPage(operations: readonly Operation[]): string {
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
  for (const o of operations) {
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
      const shape = o.body.schema === undefined ? o.body.type : `${o.body.schema}, as JSON`;
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

/** Whether all answers with contents are JSON. */
export function answersJson({ answers }: Operation): boolean {
  return Object.values(answers).every((answer) => answer === null || !answer.includes("/") || /\bjson$/.test(answer));
}
