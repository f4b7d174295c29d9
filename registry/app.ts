/**
 * The route table, and what happens around every handler: rate limits, security headers, errors, logs, metrics.
 *
 * In: a request and the peer's address. Out: an answer, always. Addresses below /api are the API; the rest is the site.
 */
import { randomBytes } from "node:crypto";
import { Hono } from "hono";
import { forwardedAddress, rateAddress } from "./addresses.ts";
import { requireJsonAccepted } from "./answer.ts";
import { openapiDocument, OPERATIONS } from "./openapi.ts";
import { Problem, problemResponse } from "./problem.ts";
import type { RateKind } from "./rate_limit.ts";
import {
  deletePrefix,
  deleteToken,
  getAccount,
  getTokens,
  postAccount,
  postPrefix,
  postReleaseHold,
  postToken,
} from "./routes/accounts.ts";
import { getInstalls, getPackage, getPackages, getVersion, getVersions, postInstall } from "./routes/packages.ts";
import { getBlob, getKeys, getPluginIndex, getProviders, postPluginIndexes } from "./routes/plugins.ts";
import { deleteYank, postYank, putVersion } from "./routes/publish.ts";
import { getHealth, getReady } from "./routes/health.ts";
import type { Answerer } from "./serve.ts";
import { type Call, type Handler, knownQuery, type Services } from "./services.ts";
import { jsonAnswer } from "./answer.ts";
import { SITE_ROUTES, siteFallback } from "./site/site_routes.ts";
import { problemPage } from "./site/pages/problem_page.ts";
import { StoreUnavailable } from "./store/database.ts";

/** One route. */
export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly rate: RateKind;
  readonly handler: Handler;
}

/** The API. Each row has an operation in openapi.ts. */
export const API_ROUTES: readonly Route[] = [
  { method: "GET", path: "/api/packages", rate: "search", handler: getPackages },
  { method: "GET", path: "/api/packages/:name", rate: "read", handler: getPackage },
  { method: "GET", path: "/api/packages/:name/versions", rate: "read", handler: getVersions },
  { method: "GET", path: "/api/packages/:name/versions/:version", rate: "read", handler: getVersion },
  { method: "PUT", path: "/api/packages/:name/versions/:version", rate: "write", handler: putVersion },
  { method: "POST", path: "/api/packages/:name/versions/:version/yank", rate: "write", handler: postYank },
  { method: "DELETE", path: "/api/packages/:name/versions/:version/yank", rate: "write", handler: deleteYank },
  { method: "GET", path: "/api/packages/:name/installs", rate: "read", handler: getInstalls },
  { method: "POST", path: "/api/packages/:name/installs", rate: "installs", handler: postInstall },
  { method: "POST", path: "/api/packages/:name/release", rate: "write", handler: postReleaseHold },
  { method: "GET", path: "/api/plugins/:id/index", rate: "read", handler: getPluginIndex },
  { method: "POST", path: "/api/plugins/index", rate: "read", handler: postPluginIndexes },
  { method: "GET", path: "/api/contracts/:contract/providers", rate: "read", handler: getProviders },
  { method: "GET", path: "/api/blobs/sha256/:hex", rate: "read", handler: getBlob },
  { method: "GET", path: "/api/keys", rate: "read", handler: getKeys },
  { method: "GET", path: "/api/account", rate: "read", handler: getAccount },
  { method: "GET", path: "/api/tokens", rate: "read", handler: getTokens },
  { method: "POST", path: "/api/tokens", rate: "write", handler: postToken },
  { method: "DELETE", path: "/api/tokens/:token", rate: "write", handler: deleteToken },
  { method: "POST", path: "/api/prefixes", rate: "write", handler: postPrefix },
  { method: "DELETE", path: "/api/prefixes/:prefix", rate: "write", handler: deletePrefix },
  { method: "POST", path: "/api/accounts", rate: "write", handler: postAccount },
  { method: "GET", path: "/api/openapi.json", rate: "read", handler: getOpenapi },
];

const OTHER_ROUTES: readonly Route[] = [
  { method: "GET", path: "/healthz", rate: "read", handler: getHealth },
  { method: "GET", path: "/readyz", rate: "read", handler: getReady },
  ...SITE_ROUTES,
];

/** Everything that has an address of its own; documentation, raw Markdown and static files are found by path after these. */
export const ROUTES: readonly Route[] = [...API_ROUTES, ...OTHER_ROUTES];

/** Fields of every answer. Scripts come from this origin's static files only: nothing inline can run. */
export const SECURITY_HEADERS: { readonly [name: string]: string } = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
};

function getOpenapi(call: Call): Response {
  knownQuery(call, []);
  return jsonAnswer(call.request, openapiDocument(call.services.settings.baseUrl), { cache: "short" });
}

/** Addresses that every page on the web may read. */
function isOpenData(path: string): boolean {
  return path.startsWith("/api/") || path.startsWith("/schemas/") || path.startsWith("/data/");
}

interface Matched {
  readonly route: Route;
  readonly params: { readonly [name: string]: string };
}

/** Makes the application. */
export function makeApp(services: Services): Answerer {
  const router = new Hono<{ Variables: { matched: Matched } }>();
  for (const route of ROUTES) {
    router.on(route.method, route.path, (c) => {
      found.set(c.req.raw, { route, params: c.req.param() as { [name: string]: string } });
      return c.body(null);
    });
  }
  const found = new WeakMap<Request, Matched>();
  const match = async (method: string, path: string): Promise<Matched | undefined> => {
    const probe = new Request(`http://registry.invalid${path}`, { method });
    await router.fetch(probe);
    return found.get(probe);
  };
  const app = new Application(services, match);
  return (request, address) => app.answer(request, address);
}

class Application {
  readonly #services: Services;
  readonly #match: (method: string, path: string) => Promise<Matched | undefined>;

  constructor(services: Services, match: (method: string, path: string) => Promise<Matched | undefined>) {
    this.#services = services;
    this.#match = match;
  }

  async answer(request: Request, peer: string): Promise<Response> {
    const { settings, log, metrics, limiter } = this.#services;
    const started = performance.now();
    const requestId = randomBytes(8).toString("hex");
    const url = new URL(request.url);
    const address = settings.trustProxy ? forwardedAddress(request.headers.get("x-forwarded-for"), peer) : peer;
    const rateKey = rateAddress(address);
    let route = "none";
    let rateFields: { readonly [name: string]: string } = {};
    let response: Response;
    try {
      const method = request.method === "HEAD" ? "GET" : request.method;
      const matched = await this.#match(method, url.pathname);
      rateFields = limiter.take(matched?.route.rate ?? "read", rateKey);
      const call: Call = { services: this.#services, request, url, params: matched?.params ?? {}, address, rateKey };
      if (matched !== undefined) {
        route = `${matched.route.method} ${matched.route.path}`;
        if (url.pathname.startsWith("/api/") && !matched.route.path.startsWith("/api/blobs/")) {
          requireJsonAccepted(request);
        }
        response = await matched.route.handler(call);
      } else {
        const allowed = await this.#allowed(url.pathname);
        if (allowed.length > 0) {
          throw new Problem("method.unknown", `this address takes ${allowed.join(", ")}`, {
            headers: { allow: allowed.join(", ") },
          });
        }
        if (method !== "GET" || url.pathname.startsWith("/api/")) {
          throw new Problem("route.unknown", "there is nothing at this address");
        }
        route = "GET page";
        response = await siteFallback(call);
      }
    } catch (error) {
      response = this.#failed(error, { request, url, requestId });
    }
    const answer = finished(response, url.pathname, { ...rateFields, "x-request-id": requestId });
    const seconds = (performance.now() - started) / 1000;
    metrics.request(route, answer.status, seconds);
    log("request", {
      requestId,
      method: request.method,
      path: url.pathname.slice(0, 300),
      route,
      status: answer.status,
      ms: Math.round(seconds * 1e5) / 100,
    });
    return answer;
  }

  async #allowed(path: string): Promise<string[]> {
    const allowed: string[] = [];
    for (const method of ["GET", "POST", "PUT", "DELETE"]) {
      if (await this.#match(method, path) !== undefined) {
        allowed.push(...(method === "GET" ? ["GET", "HEAD"] : [method]));
      }
    }
    return allowed;
  }

  #failed(error: unknown, at: { request: Request; url: URL; requestId: string }): Response {
    const { settings, log } = this.#services;
    let problem: Problem;
    if (error instanceof Problem) problem = error;
    else if (error instanceof StoreUnavailable) {
      log("unavailable", { requestId: at.requestId, message: error.message });
      problem = new Problem("server.unavailable", "the registry cannot answer now; try again");
    } else {
      const { message, stack } = error instanceof Error ? error : { message: String(error), stack: "" };
      log("error", { requestId: at.requestId, message, stack: (stack ?? "").slice(0, 4000) });
      problem = new Problem("server.error", "the registry made a mistake; it is in its log");
    }
    const isPage = !at.url.pathname.startsWith("/api/") &&
      (at.request.headers.get("accept") ?? "").includes("text/html");
    return isPage ? problemPage(this.#services, problem) : problemResponse(problem, settings.baseUrl, at.requestId);
  }
}

function finished(response: Response, path: string, fields: { readonly [name: string]: string }): Response {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) headers.set(name, value);
  for (const [name, value] of Object.entries(fields)) headers.set(name, value);
  if (isOpenData(path)) {
    headers.set("access-control-allow-origin", "*");
    headers.set("cross-origin-resource-policy", "cross-origin");
  }
  return new Response(response.body, { status: response.status, headers });
}

/** Operations and routes must be the same set; a test compares them. */
export function undocumentedRoutes(): string[] {
  const documented = new Set(OPERATIONS.map((o) => `${o.method} ${o.path}`));
  return API_ROUTES.map((r) => `${r.method} ${r.path}`).filter((r) => !documented.delete(r)).concat([...documented]);
}
