/**
 * The route table as a Hono application: rate limits, security headers, errors, logs and metrics around every handler.
 *
 * In: a request and the peer's address. Out: an answer, always. Addresses below /api are the API; the rest is the site.
 */
import { randomBytes } from "node:crypto";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { secureHeaders } from "hono/secure-headers";
import { forwardedAddress, rateAddress } from "./addresses.ts";
import { API_ROUTES } from "./api_routes.ts";
import { requireJsonAccepted } from "./answer.ts";
import { answersJson } from "./openapi.ts";
import { Problem, problemResponse } from "./problem.ts";
import type { RateKind } from "./rate_limit.ts";
import { getHealth, getReady } from "./routes/health.ts";
import type { Answerer, Fields } from "./serve.ts";
import type { Call, Route, Services } from "./services.ts";
import { COMPILER_PATH } from "./site/playground/build.ts";
import { SITE_ROUTES, siteFallback } from "./site/site_routes.ts";
import { problemPage } from "./site/pages/problem_page.ts";
import { StoreUnavailable } from "./store/database.ts";

/**
 * Everything that has an address of its own; documentation, raw Markdown and static files are found by path after
 * these.
 */
export const ROUTES: readonly Route[] = [
  ...API_ROUTES,
  { method: "GET", path: "/healthz", rate: "read", handler: getHealth },
  { method: "GET", path: "/readyz", rate: "read", handler: getReady },
  ...SITE_ROUTES,
];

/** The routes whose clients must accept JSON. */
const JSON_ROUTES: ReadonlySet<Route> = new Set(API_ROUTES.filter(answersJson));

/** Settings of the security fields. Scripts come from this origin's static files only: nothing inline can run. */
const SECURITY: Parameters<typeof secureHeaders>[0] = {
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    styleSrc: ["'self'"],
    scriptSrc: ["'self'"],
    imgSrc: ["'self'"],
    formAction: ["'self'"],
    baseUri: ["'none'"],
    frameAncestors: ["'none'"],
  },
  referrerPolicy: "same-origin",
  crossOriginOpenerPolicy: "same-origin",
  crossOriginResourcePolicy: "same-origin",
  permissionsPolicy: { camera: [], geolocation: [], microphone: [] },
  // Whether the site is reached by HTTPS only is the decision of the proxy in front of it.
  strictTransportSecurity: false,
};

/** Fields that let every page on the web read an answer. */
const OPEN_DATA: Readonly<Fields> = {
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
};

/** The policy of the playground's worker, which compiles WebAssembly and reaches nothing. */
const COMPILER_POLICY = "default-src 'none'; script-src 'wasm-unsafe-eval'";

/** True for addresses whose answers every page on the web may read. */
function isOpenData(path: string): boolean {
  return path.startsWith("/api/") || path.startsWith("/schemas/") || path.startsWith("/data/");
}

/** Data of one request. */
interface Environment {
  readonly Bindings: {
    readonly peer: string;
    /** The request as it came: HEAD is routed as GET. */
    readonly original: Request;
    /** The header fields that the middleware adds to the answer. */
    readonly fields: Fields;
  };
  readonly Variables: { call: Call; requestId: string; route: string };
}

type RequestContext = Context<Environment>;

/** The security fields of every answer. They are constant, so Hono's middleware computes them once. */
async function securityFields(): Promise<Fields> {
  const probe = new Hono().get("/", secureHeaders(SECURITY), (c) => c.body(null));
  return Object.fromEntries((await probe.request("/")).headers);
}

/** Makes the application. */
export async function makeApp(services: Services): Promise<Answerer> {
  const app = new Hono<Environment>();
  const security = await securityFields();
  app.use(observe(services));
  for (const route of ROUTES) {
    app.on(route.method, route.path, limit(services, route.rate), async (c) => {
      c.set("route", `${route.method} ${route.path}`);
      if (JSON_ROUTES.has(route)) requireJsonAccepted(c.env.original);
      return await route.handler({ ...c.get("call"), params: c.req.param() as { [name: string]: string } });
    });
  }
  app.all("*", limit(services, "read"), (c) => answerUnmatched(c, app));
  app.onError((error, c) => answerError(services, error, c));
  return async (request, peer, fields) => {
    const routed = request.method === "HEAD" ? new Request(request, { method: "GET" }) : request;
    Object.assign(fields, security);
    return await app.fetch(routed, { peer, original: request, fields });
  };
}

/** Gives a request its id, its call and the fields of its answer; logs and counts the answer. */
function observe(services: Services): MiddlewareHandler<Environment> {
  const { settings, log, metrics } = services;
  return async (c, next) => {
    const started = performance.now();
    const requestId = randomBytes(8).toString("hex");
    const { peer, original: request, fields } = c.env;
    const url = new URL(request.url);
    fields["x-request-id"] = requestId;
    if (isOpenData(url.pathname)) Object.assign(fields, OPEN_DATA);
    if (url.pathname === COMPILER_PATH) fields["content-security-policy"] = COMPILER_POLICY;
    const address = settings.trustProxy ? forwardedAddress(request.headers.get("x-forwarded-for"), peer) : peer;
    c.set("requestId", requestId);
    c.set("route", "none");
    c.set("call", { services, request, url, params: {}, address, rateKey: rateAddress(address) });
    await next();
    const seconds = (performance.now() - started) / 1000;
    metrics.request(c.get("route"), c.res.status, seconds);
    log("request", {
      requestId,
      method: request.method,
      path: url.pathname.slice(0, 300),
      route: c.get("route"),
      status: c.res.status,
      ms: Math.round(seconds * 1e5) / 100,
    });
  };
}

/** Counts a request of a kind; refuses it when there were too many, or when its parameters have text of no database. */
function limit(services: Services, kind: RateKind): MiddlewareHandler<Environment> {
  return async (c, next) => {
    const { rateKey, url } = c.get("call");
    Object.assign(c.env.fields, services.limiter.take(kind, rateKey));
    if (url.search.includes("%00")) throw new Problem("request.query", "a parameter has no NUL characters");
    await next();
  };
}

/** Whether a route of this method has the address; the application's own handlers are for all methods. */
function hasRoute({ router }: Hono<Environment>, method: string, path: string): boolean {
  return router.match(method, path)[0].some(([[, route]]) => route.method === method);
}

/** Documentation and static files, which have no routes of their own; else the reason why there is no answer. */
function answerUnmatched(c: RequestContext, app: Hono<Environment>): Response {
  const { pathname } = c.get("call").url;
  const allowed = ["GET", "POST", "PUT", "DELETE"].filter((method) => hasRoute(app, method, pathname))
    .flatMap((method) => method === "GET" ? ["GET", "HEAD"] : [method]);
  if (allowed.length > 0) {
    throw new Problem("method.unknown", `this address accepts ${allowed.join(", ")}`, {
      headers: { allow: allowed.join(", ") },
    });
  }
  if (c.req.method !== "GET" || pathname.startsWith("/api/")) {
    throw new Problem("route.unknown", "there is nothing at this address");
  }
  c.set("route", "GET page");
  return siteFallback(c.get("call"));
}

function answerError(services: Services, error: unknown, c: RequestContext): Response {
  const { settings, log } = services;
  const requestId = c.get("requestId");
  let problem: Problem;
  if (error instanceof Problem) problem = error;
  else if (error instanceof StoreUnavailable) {
    log("unavailable", { requestId, message: error.message });
    problem = new Problem("server.unavailable", "the registry is temporarily unavailable; try again");
  } else {
    const { message, stack } = error instanceof Error ? error : { message: String(error), stack: "" };
    log("error", { requestId, message, stack: (stack ?? "").slice(0, 4000) });
    problem = new Problem("server.error", "internal error; see the registry's log");
  }
  const { url, request } = c.get("call");
  const isPage = !url.pathname.startsWith("/api/") && (request.headers.get("accept") ?? "").includes("text/html");
  return isPage ? problemPage(services, problem) : problemResponse(problem, settings.baseUrl, requestId);
}
