/**
 * HTTP requests of plugins. In: a request as the plugin describes it. Out: the response, whose body is bounded.
 * Invariant: no request goes to a host that is not allowed, also after a redirection, and none goes on after its call.
 */

/** A request of a plugin. */
export interface PluginRequest {
  readonly url: string;
  readonly method?: string | null;
  readonly headers?: Readonly<Record<string, string>> | null;
}

/** A response. */
interface PluginResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const MAX_REDIRECTS = 10;

/** Whether `host` is allowed by one of `patterns`, in which `*` stands for any characters, and `?` for one. */
function isAllowedHost(host: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    const parts = [...pattern.toLowerCase()].map((c) =>
      c === "*" ? ".*" : c === "?" ? "." : c.replace(/[\\^$.|+()[\]{}/-]/, "\\$&")
    );
    return new RegExp(`^${parts.join("")}$`, "s").test(host.toLowerCase());
  });
}

/**
 * Sends a request. Rejects with an Error for a host that is not allowed, for a response that is too long, and once
 * `signal` is aborted.
 */
export async function request(
  { url, method, headers }: PluginRequest,
  body: Uint8Array<ArrayBuffer> | undefined,
  allowedHosts: readonly string[],
  maxBytes: number,
  send: typeof fetch,
  signal: AbortSignal,
): Promise<PluginResponse> {
  let address = new URL(url);
  let verb = (method ?? "GET").toUpperCase();
  let content = body;
  let fields = { ...headers };
  for (let redirects = 0;; redirects++) {
    if (!/^https?:$/.test(address.protocol) || !isAllowedHost(address.hostname, allowedHosts)) {
      throw new Error(`HTTP requests to "${address.host}" are not allowed: add the host to allowedHosts`);
    }
    const response = await send(address, {
      method: verb,
      headers: fields,
      redirect: "manual",
      signal,
      ...(content === undefined ? {} : { body: content }),
    });
    const target = response.headers.get("location");
    if (![301, 302, 303, 307, 308].includes(response.status) || target === null) {
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body: await read(response, maxBytes),
      };
    }
    await response.body?.cancel();
    if (redirects === MAX_REDIRECTS) throw new Error(`HTTP requests to "${address.host}" are redirected too often`);
    const next = new URL(target, address);
    if (next.origin !== address.origin) fields = withoutSecrets(fields);
    if (response.status === 303 || (response.status <= 302 && verb === "POST")) [verb, content] = ["GET", undefined];
    address = next;
  }
}

/** The headers that may go to another origin. */
function withoutSecrets(headers: Readonly<Record<string, string>>): Record<string, string> {
  const secret = /^(?:authorization|cookie|proxy-authorization)$/i;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !secret.test(name)));
}

async function read(response: Response, maxBytes: number): Promise<Uint8Array> {
  if (response.body === null) return new Uint8Array(0);
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body) {
    length += part.length;
    if (length > maxBytes) {
      throw new Error(`The HTTP response is too long: maxHttpResponseBytes allows ${maxBytes} bytes`);
    }
    parts.push(part);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
