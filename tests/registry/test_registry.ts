/**
 * A registry on loopback for tests, with helpers that publish and that check every answer against the API's
 * description.
 *
 * In: options of a test. Out: a running registry with the test's clock, name servers and limits.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { writeArchive } from "../../project/packages/archive.ts";
import { HOST_FUNCTIONS } from "../../project/definitions/authorities.ts";
import { contractNamespace, type Definition } from "../../project/definitions/definition.ts";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import { API_ROUTES } from "../../registry/api_routes.ts";
import { noLog } from "../../registry/log.ts";
import { segmentOfId } from "../../registry/names.ts";
import { openapiDocument } from "../../registry/openapi.ts";
import { canaryDocuments, type Registry, type RegistryChoices, startRegistry } from "../../registry/registry.ts";
import { createAccount, grantPrefix, type Scope } from "../../registry/store/accounts.ts";
import type { Database } from "../../registry/store/database.ts";
import { type StoredDocument, writeDocuments } from "../../registry/store/keys.ts";
import { migrate } from "../../registry/store/migrations.ts";
import { loadReference } from "../../registry/site/reference/build.ts";
import { SqliteDatabase } from "../../registry/store/sqlite.ts";
import { mintToken } from "../../registry/routes/accounts.ts";
import { packageFiles } from "../project/fake_registry.ts";

const RATES = { read: 1e6, search: 1e6, installs: 1e6, write: 1e6, refused: 1e6 };

/** The module of a definition, in text form, with the requested imports and the provided exports. */
function moduleText(definition: Definition): string {
  const imports: string[] = [];
  const signature = (f: { readonly params: readonly string[]; readonly results: readonly string[] }): string =>
    (f.params.length > 0 ? ` (param ${f.params.join(" ")})` : "") +
    (f.results.length > 0 ? ` (result ${f.results.join(" ")})` : "");
  for (const request of definition.authorities) {
    const host = [...HOST_FUNCTIONS.values()].find((f) => f.authorities.includes(request.name));
    if (host !== undefined) imports.push(`(import "${host.namespace}" "${host.name}" (func${signature(host.type)}))`);
  }
  for (const contract of definition.consumes) {
    for (const f of contract.functions) {
      imports.push(`(import "${contractNamespace(contract)}" "${f.name}" (func${signature(f)}))`);
    }
  }
  const exports = definition.provides.flatMap((contract) =>
    contract.functions.map((f) =>
      `(func (export "${contractNamespace(contract)}#${f.name}")${signature(f)} ${
        f.results.map((t) => `(${t}.const 0)`).join(" ")
      })`
    )
  );
  return `(module ${imports.join(" ")} (memory (export "memory") 1) ${exports.join(" ")})`;
}

/** The files of a package with real modules. */
export function realFiles(
  definitions: readonly Definition[],
  more: { readonly [path: string]: string | Uint8Array } = {},
): Map<string, Uint8Array> {
  const files = packageFiles(definitions);
  definitions.forEach((definition, i) => files.set(`dist/${i}.wasm`, assemble(moduleText(definition))));
  for (const [path, content] of Object.entries(more)) {
    files.set(path, typeof content === "string" ? new TextEncoder().encode(content) : content);
  }
  return files;
}

/** An archive with real modules. */
export function realArchive(
  definitions: readonly Definition[],
  more: { readonly [path: string]: string | Uint8Array } = {},
): Uint8Array<ArrayBuffer> {
  return new Uint8Array(writeArchive(realFiles(definitions, more)));
}

/** `Content-Digest` of bytes. */
export function contentDigest(bytes: Uint8Array): string {
  return `sha-256=:${createHash("sha256").update(bytes).digest("base64")}:`;
}

/** A problem document. */
export interface ProblemBody {
  readonly code: string;
  readonly detail: string;
  readonly status: number;
  readonly errors: readonly { readonly pointer: string; readonly detail: string; readonly code?: string }[];
}

/** A registry under test. */
export class TestRegistry {
  readonly registry: Registry;
  readonly database: Database;
  /** Milliseconds; a test moves it. */
  readonly clock: { at: number };
  #check: ((path: string, method: string, response: Response, body: unknown) => void) | undefined;

  constructor(registry: Registry, database: Database, clock: { at: number }) {
    this.registry = registry;
    this.database = database;
    this.clock = clock;
  }

  get url(): string {
    return this.registry.url;
  }

  /** Sends a request to the API and checks the answer against the API's description. */
  async api(path: string, init: RequestInit = {}): Promise<{ response: Response; body: unknown }> {
    const response = await fetch(this.url + path, { redirect: "manual", ...init });
    const type = response.headers.get("content-type") ?? "";
    const bytes = new Uint8Array(await response.arrayBuffer());
    const body = type.includes("json") && bytes.length > 0
      ? JSON.parse(new TextDecoder().decode(bytes)) as unknown
      : bytes;
    this.#check ??= answerChecker(this.url);
    this.#check(path.split("?")[0], init.method ?? "GET", response, body);
    return { response, body };
  }

  /** The body of an answer that must be a success. */
  async get<T>(path: string, init: RequestInit = {}): Promise<T> {
    const { response, body } = await this.api(path, init);
    assert.ok(response.ok, `${path} answers ${response.status} ${JSON.stringify(body)}`);
    return body as T;
  }

  /** The problem of an answer that must be one. */
  async problem(path: string, init: RequestInit = {}): Promise<ProblemBody> {
    const { response, body } = await this.api(path, init);
    assert.equal(response.headers.get("content-type"), "application/problem+json", `${path} ${response.status}`);
    const problem = body as ProblemBody;
    assert.equal(problem.status, response.status);
    return problem;
  }

  /** An account with prefixes and a token. */
  async author(
    name: string,
    prefixes: readonly string[],
    token: { readonly scopes?: readonly Scope[]; readonly prefix?: string; readonly days?: number } = {},
  ): Promise<{ account: string; token: string; tokenId: string }> {
    const account = (await this.database.write((q) => createAccount(q, name, this.clock.at)))!.id;
    for (const prefix of prefixes) {
      await this.database.write((q) => grantPrefix(q, { prefix, account, proof: "admin" }, this.clock.at));
    }
    const made = await mintToken(this.database, {
      account,
      label: "test",
      scopes: token.scopes ?? ["publish", "yank", "owners"],
      prefix: token.prefix ?? "*",
      days: token.days ?? 90,
      at: this.clock.at,
    });
    return { account, token: made.secret, tokenId: made.token.id };
  }

  /** A client's request to publish an archive. */
  publishing(id: string, version: string, archive: Uint8Array<ArrayBuffer>, token: string): [string, RequestInit] {
    return [`/api/packages/${segmentOfId(id)}/versions/${encodeURIComponent(version)}`, {
      method: "PUT",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/gzip",
        "content-digest": contentDigest(archive),
        "if-none-match": "*",
      },
      body: archive,
    }];
  }

  /** Publishes definitions; the status. */
  async publish(
    token: string,
    definitions: readonly Definition[],
    more: { readonly [path: string]: string | Uint8Array } = {},
  ): Promise<{ status: number; body: unknown }> {
    const { id, version } = definitions[0];
    const { response, body } = await this.api(...this.publishing(id, version, realArchive(definitions, more), token));
    return { status: response.status, body };
  }

  /** Sends JSON with a token. */
  json(method: string, value: unknown, token?: string): RequestInit {
    return {
      method,
      headers: {
        "content-type": "application/json",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(value),
    };
  }
}

let documents: ReturnType<typeof allDocuments> | undefined;

/** All pages of the documentation, the API reference included. */
export async function allDocuments(): Promise<StoredDocument[]> {
  return [...await canaryDocuments(), ...await loadReference()];
}

/** Runs a test against a new registry. */
export async function withRegistry(
  test: (registry: TestRegistry) => Promise<void>,
  choices: Partial<RegistryChoices> = {},
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "waft-registry-"));
  const clock = { at: Date.UTC(2026, 7, 1, 12) };
  const database = choices.database ?? new SqliteDatabase(join(folder, "registry.sqlite"));
  const own = await (documents ??= allDocuments());
  await migrate(database);
  for (const channel of ["nightly", "v0.1.0"]) await writeDocuments(database, channel, own, clock.at);
  const registry = await startRegistry({
    log: noLog,
    now: () => clock.at,
    domains: () => Promise.resolve(false),
    documents: own,
    ...choices,
    settings: { rates: RATES, ...choices.settings },
    database,
  });
  try {
    await test(new TestRegistry(registry, database, clock));
  } finally {
    await registry.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Checks answers: the status is one of the operation's, the body fits its schema. */
function answerChecker(
  baseUrl: string,
): (path: string, method: string, response: Response, body: unknown) => void {
  const document = openapiDocument(API_ROUTES, baseUrl) as {
    readonly components: { readonly schemas: { readonly [name: string]: object } };
  };
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addSchema({ ...document, $id: "openapi" }, "openapi");
  const compiled = new Map<string, ValidateFunction>();
  const validator = (name: string): ValidateFunction => {
    let validate = compiled.get(name);
    if (validate === undefined) {
      compiled.set(name, validate = ajv.compile({ $ref: `openapi#/components/schemas/${name}` }));
    }
    return validate;
  };
  const patterns = API_ROUTES.map((r) => ({
    key: `${r.method} ${r.path}`,
    method: r.method,
    pattern: new RegExp(`^${r.path.replace(/:[a-z]+/g, "[^/]+")}$`),
    // Fixed segments win over parameters, as in the router.
    fixed: r.path.split("/").filter((s) => !s.startsWith(":")).length,
  })).sort((a, b) => b.fixed - a.fixed);
  return (path, method, response, body) => {
    const { status } = response;
    const type = response.headers.get("content-type") ?? "";
    const check = (name: string): void => {
      const validate = validator(name);
      const fits = validate(body);
      assert.ok(fits, `${method} ${path} ${status}: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
    };
    if (status >= 400) {
      assert.equal(type, "application/problem+json", `${method} ${path} answers ${status} without a problem`);
      check("Problem");
    }
    const route = patterns.find((p) => p.method === (method === "HEAD" ? "GET" : method) && p.pattern.test(path));
    if (route === undefined || status === 405) return;
    const operation = API_ROUTES.find((o) => `${o.method} ${o.path}` === route.key)!;
    if (status >= 400) {
      assert.ok(operation.problems.includes(status), `${route.key} answers ${status}, which is not described`);
      return;
    }
    if (status === 304 || method === "HEAD") return;
    const answer = operation.answers[status];
    assert.notEqual(answer, undefined, `${route.key} answers ${status}, which is not described`);
    if (answer === null) return;
    if (answer!.includes("/")) assert.equal(type.split(";")[0], answer);
    else check(answer!);
  };
}
