/**
 * The HTTP side of an OCI registry (distribution specification 1.1): requests, authorization, redirections. In: paths
 * below `/v2/NAME/`. Out: answers with a bounded body. Invariants: credentials and tokens go to the registry's own
 * origin, and credentials to its authorization server over an encrypted connection; nothing is sent in clear text but
 * to registries on the loopback interface.
 */
import { Buffer } from "node:buffer";
import { quote } from "../../base/diagnostic.ts";
import { type Credentials, dockerCredentials } from "./docker_credentials.ts";
import type { OciReference } from "./reference.ts";

/** What a request is for. */
type Access = "pull" | "push";

/** A request. */
interface OciRequest {
  readonly access: Access;
  readonly method?: "GET" | "HEAD" | "POST" | "PUT";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
  /** The maximum size of the answer's body. */
  readonly maxBytes: number;
  /** The noun for errors. */
  readonly what: string;
  /** Statuses that are no errors. */
  readonly statuses: readonly number[];
}

/** An answer. */
interface OciAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Its address, after redirections. */
  readonly url: string;
}

const MAX_REDIRECTS = 5;
const TIMEOUT_MS = 600_000;
const MAX_TOKEN_BYTES = 1 << 16;
const MAX_ERROR_BYTES = 1 << 16;
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/i;
const REDIRECTIONS = [301, 302, 303, 307, 308];

/** One repository of a registry. */
export class OciRepository {
  readonly #name: string;
  readonly #host: string;
  readonly #base: URL;
  readonly #fetch: typeof globalThis.fetch;
  /** The value of the field `authorization`, by access. */
  readonly #authorization = new Map<Access, string>();

  constructor({ host, name }: Pick<OciReference, "host" | "name">, send: typeof globalThis.fetch = fetch) {
    const isHub = host === "docker.io";
    this.#host = host;
    this.#name = isHub && !name.includes("/") ? `library/${name}` : name;
    const { hostname } = new URL(`https://${host}`);
    const scheme = LOOPBACK.test(hostname) ? "http" : "https";
    this.#base = new URL(`${scheme}://${isHub ? "registry-1.docker.io" : host}/v2/${this.#name}/`);
    this.#fetch = send;
  }

  /** Sends a request to a path of the repository, or to an address that the registry has named. */
  async send(place: string, request: OciRequest): Promise<OciAnswer> {
    let url = this.#allowed(place, this.#base, request.what);
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const response = await this.#sendAuthorized(url, request);
      const location = response.headers.get("location");
      if (!REDIRECTIONS.includes(response.status) || location === null) {
        return await this.#answer(response, url, request);
      }
      await response.body?.cancel();
      if (request.body !== undefined) throw new Error(`the registry redirects the ${request.what}`);
      url = this.#allowed(location, url, request.what);
    }
    throw new Error(`the registry redirects the ${request.what} more than ${MAX_REDIRECTS} times`);
  }

  /** The address `place`, which the registry or a storage behind it has named. Throws an Error for clear text. */
  #allowed(place: string, base: URL, what: string): URL {
    if (!URL.canParse(place, base)) throw new Error(`the registry redirects the ${what} to an invalid address`);
    const url = new URL(place, base);
    const isLocal = this.#base.protocol === "http:" && url.protocol === "http:" && LOOPBACK.test(url.hostname);
    if (url.protocol !== "https:" && !isLocal) {
      throw new Error(`the registry redirects the ${what} to ${quote(url.origin, 80)}, which is not encrypted`);
    }
    if (url.username !== "" || url.password !== "") throw new Error(`the address of the ${what} has credentials`);
    return url;
  }

  /** Sends a request; asks for authorization when the registry demands it. */
  async #sendAuthorized(url: URL, request: OciRequest): Promise<Response> {
    const response = await this.#sendOnce(url, request);
    if (response.status !== 401 || url.origin !== this.#base.origin) return response;
    await response.body?.cancel();
    await this.#authorize(response.headers.get("www-authenticate") ?? "", request.access);
    return await this.#sendOnce(url, request);
  }

  async #sendOnce(url: URL, { access, method = "GET", headers, body }: OciRequest): Promise<Response> {
    const authorization = url.origin === this.#base.origin ? this.#authorization.get(access) : undefined;
    return await this.#reach(url, {
      method,
      headers: { ...headers, ...(authorization === undefined ? {} : { authorization }) },
      ...(body === undefined ? {} : { body }),
    });
  }

  async #reach(url: URL, init: RequestInit): Promise<Response> {
    try {
      return await this.#fetch(url, { ...init, redirect: "manual", signal: AbortSignal.timeout(TIMEOUT_MS) });
    } catch (error) {
      const { cause, message } = error as Error;
      throw new Error(`cannot reach ${url.host}: ${cause instanceof Error ? cause.message : message}`);
    }
  }

  /** Answers the challenge of a registry. */
  async #authorize(challenge: string, access: Access): Promise<void> {
    const credentials = dockerCredentials(this.#host);
    const [scheme] = challenge.split(" ", 1);
    if (/^basic$/i.test(scheme)) {
      if (credentials?.kind !== "password") throw this.#unauthorized();
      this.#authorization.set(access, basic(credentials));
    } else if (/^bearer$/i.test(scheme)) {
      this.#authorization.set(access, `Bearer ${await this.#token(parameters(challenge), access, credentials)}`);
    } else throw new Error(`${this.#host} demands the unknown authorization ${quote(scheme, 40)}`);
  }

  /** Gets a token from the authorization server that a challenge names. */
  async #token(
    { realm = "", service }: Readonly<Record<string, string>>,
    access: Access,
    credentials: Credentials | undefined,
  ): Promise<string> {
    const url = this.#allowed(realm, this.#base, "authorization");
    const scope = `repository:${this.#name}:${access === "push" ? "pull,push" : "pull"}`;
    const query = { ...(service === undefined ? {} : { service }), scope };
    let response: Response;
    if (credentials?.kind === "identity") {
      const form = { ...query, grant_type: "refresh_token", client_id: "waft", refresh_token: credentials.token };
      response = await this.#reach(url, { method: "POST", body: new URLSearchParams(form) });
    } else {
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
      response = await this.#reach(
        url,
        credentials === undefined ? {} : { headers: { authorization: basic(credentials) } },
      );
    }
    const bytes = await readBody(response, MAX_TOKEN_BYTES, "token");
    if (response.status !== 200) throw this.#unauthorized(response.status);
    const { token, access_token } = parseJson(bytes, "token") as { token?: unknown; access_token?: unknown };
    const found = token ?? access_token;
    if (typeof found !== "string" || !/^[!-~]+$/.test(found)) throw new Error(`${url.host} answers without a token`);
    return found;
  }

  #unauthorized(status = 401): Error {
    return new Error(
      `${this.#host} denies access to ${this.#name} (status ${status}); \`docker login ${this.#host}\` renews credentials`,
    );
  }

  async #answer(response: Response, url: URL, { what, statuses, maxBytes }: OciRequest): Promise<OciAnswer> {
    const { status, headers } = response;
    if (statuses.includes(status)) {
      return { status, headers, bytes: await readBody(response, maxBytes, what), url: url.href };
    }
    if (status === 401 || status === 403) {
      await response.body?.cancel();
      throw this.#unauthorized(status);
    }
    const reason = errorCode(await readBody(response, MAX_ERROR_BYTES, what).catch(() => new Uint8Array()));
    if (status === 404) throw new Error(`${this.#host} has no such ${what}${reason}`);
    throw new Error(`${this.#host} answers the request for the ${what} with status ${status}${reason}`);
  }
}

function basic(credentials: Extract<Credentials, { kind: "password" }>): string {
  return `Basic ${Buffer.from(`${credentials.user}:${credentials.password}`).toString("base64")}`;
}

/** The parameters of a challenge: `name="value"`, separated by commas. */
function parameters(challenge: string): Record<string, string> {
  return Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
}

/** The code of a registry's error, for a message. */
function errorCode(bytes: Uint8Array): string {
  try {
    const { errors } = JSON.parse(new TextDecoder().decode(bytes)) as { errors: { code: unknown }[] };
    return ` (${quote(String(errors[0].code), 60)})`;
  } catch {
    return "";
  }
}

/** Parses JSON of a registry. */
export function parseJson(bytes: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new Error(`the ${what} is not JSON`);
  }
}

/** Reads a body of at most `maxBytes`. */
async function readBody(response: Response, maxBytes: number, what: string): Promise<Uint8Array<ArrayBuffer>> {
  // The response to HEAD has the content-length of the body that GET would return, and no body.
  if (response.body === null) return new Uint8Array();
  const tooLarge = () => new Error(`the ${what} has more than ${maxBytes} bytes`);
  if (Number(response.headers.get("content-length") ?? 0) > maxBytes) {
    await response.body?.cancel();
    throw tooLarge();
  }
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const part of response.body) {
      length += part.length;
      if (length > maxBytes) break;
      parts.push(part);
    }
  } catch (error) {
    throw new Error(`the ${what} is incomplete: ${(error as Error).message}`);
  }
  if (length > maxBytes) throw tooLarge();
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
