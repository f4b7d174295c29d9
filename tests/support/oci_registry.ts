/**
 * An OCI registry on the loopback interface, in memory, with tokens for a user `ada` whose password is `engine`. In:
 * answers that replace its own. Out: its address, and the requests that arrived. Tests only.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that has arrived. */
interface Arrived {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
}

/** A registry. */
export interface TestRegistry {
  /** Its host and port. */
  readonly host: string;
  readonly requests: Arrived[];
  readonly blobs: Map<string, Uint8Array>;
  /** Manifests by tag and by digest. */
  readonly manifests: Map<string, Uint8Array>;
  /** Demands tokens, which it gives to the user with the password. */
  isPrivate: boolean;
  /** Answers a request in place of the registry; returns whether it has. */
  replace: (request: IncomingMessage, response: ServerResponse) => boolean;
  close(): void;
}

const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const TOKEN = "the-token";

/** The digest of bytes. */
export function sha256(bytes: Uint8Array | string): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** Starts a registry. */
export async function startRegistry(): Promise<TestRegistry> {
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registry: TestRegistry = {
    host,
    requests: [],
    blobs: new Map(),
    manifests: new Map(),
    isPrivate: false,
    replace: () => false,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers: { authorization } } = request;
    const { pathname, searchParams } = new URL(url, `http://${host}`);
    registry.requests.push({ method, path: pathname, authorization });
    const end = (status: number, headers: Record<string, string> = {}, body: Uint8Array | string = "") => {
      response.writeHead(status, { "content-length": String(body.length), ...headers });
      response.end(method === "HEAD" ? undefined : body);
    };
    if (registry.replace(request, response)) return;
    if (pathname === "/token") {
      const isKnown = authorization === `Basic ${btoa("ada:engine")}`;
      return isKnown ? end(200, {}, JSON.stringify({ token: TOKEN })) : end(401);
    }
    if (registry.isPrivate && authorization !== `Bearer ${TOKEN}`) {
      return end(401, { "www-authenticate": `Bearer realm="http://${host}/token",service="test",scope="x"` });
    }
    if (/^\/v2\/[a-z/]+\/tags\/list$/.test(pathname)) {
      const tags = [...registry.manifests.keys()].filter((tag) => !tag.startsWith("sha256"));
      return end(200, { "content-type": "application/json" }, JSON.stringify({ name: "test", tags }));
    }
    const [, kind, name] = /^\/v2\/[a-z/]+\/(manifests|blobs)\/(.*)$/.exec(pathname) ?? [];
    const store = kind === "blobs" ? registry.blobs : registry.manifests;
    if (method === "POST" && name === "uploads/") return end(202, { location: `${pathname}1` });
    if (method === "PUT") {
      const parts: Uint8Array[] = [];
      for await (const part of request) parts.push(part as Uint8Array);
      const bytes = Uint8Array.from(parts.flatMap((part) => [...part]));
      if (kind === "manifests") store.set(name, bytes);
      else if (searchParams.get("digest") !== sha256(bytes)) return end(400);
      store.set(sha256(bytes), bytes);
      return end(201);
    }
    const found = store.get(name);
    if (found === undefined) return end(404, {}, JSON.stringify({ errors: [{ code: "NAME_UNKNOWN" }] }));
    end(200, {
      "content-type": kind === "blobs" ? "application/octet-stream" : MANIFEST_TYPE,
      "docker-content-digest": sha256(found),
      "content-length": String(found.length),
    }, found);
  }

  return registry;
}
