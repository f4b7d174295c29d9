/**
 * The listener for operators of `waft serve`: health, readiness and metrics, on an address of its own. In: functions
 * that know the state. Out: answers in plain text. Invariant: it changes nothing, and answers no other path.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { METRICS_CONTENT_TYPE, metricsText, type Samples } from "../../base/prometheus.ts";
import { SERVE_METRICS } from "./serve_metrics.ts";

/** The state of a server. */
export interface AdminSource {
  /** True while requests are accepted. */
  isReady(): boolean;
  /** The samples of all processes. */
  samples(): Promise<Samples>;
}

/** A running listener. */
export interface AdminListener {
  readonly url: string;
  close(): void;
}

const PLAIN = "text/plain; charset=utf-8";

/** The routes: status, content type and text of each. */
const ROUTES: Readonly<Record<string, (source: AdminSource) => Promise<readonly [number, string, string]>>> = {
  "/healthz": () => Promise.resolve([200, PLAIN, "ok\n"]),
  "/readyz": (source) => Promise.resolve(source.isReady() ? [200, PLAIN, "ok\n"] : [503, PLAIN, "not ready\n"]),
  "/metrics": async (source) => [200, METRICS_CONTENT_TYPE, metricsText(SERVE_METRICS, await source.samples())],
};

/** Listens. Rejects if the address is not available. */
export async function listenForOperators(host: string, port: number, source: AdminSource): Promise<AdminListener> {
  const server = createServer((request, response) => void answer(source, request, response));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, exclusive: true }, resolve);
  });
  const { address, family, port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${bound}/`,
    close: () => {
      server.close();
      server.closeAllConnections?.();
    },
  };
}

async function answer(source: AdminSource, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? "").split("?", 1)[0];
  const route = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined;
  const isRead = request.method === "GET" || request.method === "HEAD";
  let [status, type, text] = [404, PLAIN, "not found\n"];
  if (route !== undefined && !isRead) [status, text] = [405, "method not allowed\n"];
  else if (route !== undefined) {
    try {
      [status, type, text] = await route(source);
    } catch {
      [status, text] = [500, "internal error\n"];
    }
  }
  response.writeHead(status, { "content-type": type, ...(status === 405 ? { allow: "GET, HEAD" } : {}) });
  response.end(request.method === "HEAD" ? undefined : text);
}
