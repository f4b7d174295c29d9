/**
 * The services that handlers use: one object created at start, one call for each request, and the rows of route
 * tables.
 */
import type { DomainProof } from "./domains.ts";
import type { KeptLists } from "./kept_lists.ts";
import type { IdentityVerifier } from "./oidc.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { idOfSegment } from "./names.ts";
import { Problem } from "./problem.ts";
import type { CheckPool } from "./publish/check_pool.ts";
import type { RateKind, RateLimiter } from "./rate_limit.ts";
import type { Settings } from "./settings.ts";
import type { SigningKey } from "./signing.ts";
import type { DocumentSite } from "./site/documents.ts";
import type { Database } from "./store/database.ts";
import type { ObjectStore } from "./store/object_store.ts";
import { canonicalVersion } from "../project/base/version.ts";

/** The verifier of identity tokens, whose library is loaded for the first one. */
type LateIdentities = () => Promise<IdentityVerifier>;

/** Everything that outlives a request. */
export interface Services {
  readonly settings: Settings;
  readonly database: Database;
  /** Where archives are stored; undefined: in the database. */
  readonly objects: ObjectStore | undefined;
  readonly signingKey: SigningKey;
  readonly cursorSecret: string;
  readonly pool: CheckPool;
  readonly limiter: RateLimiter;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly domains: DomainProof;
  readonly documents: DocumentSite;
  readonly lists: KeptLists;
  readonly identities: LateIdentities;
  readonly now: () => number;
}

/** One request. */
export interface Call {
  readonly services: Services;
  readonly request: Request;
  readonly url: URL;
  readonly params: { readonly [name: string]: string };
  /** The client's address. */
  readonly address: string;
  /** The address that rate limits count by. */
  readonly rateKey: string;
}

/** Answers a call. */
export type Handler = (call: Call) => Promise<Response> | Response;

/** A row of a route table. */
export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** The address in Hono's notation: `:name` is a parameter. */
  readonly path: string;
  readonly rate: RateKind;
  readonly handler: Handler;
}

/** The id that a segment of the address names. */
export function idParam(call: Call, name = "name"): string {
  const id = idOfSegment(call.params[name] ?? "");
  if (id === undefined) {
    throw new Problem(
      "request.name",
      'an id looks like github.com/acme/kv; as one segment it is written "github.com%2Facme%2Fkv" or "github.com:acme:kv"',
    );
  }
  return id;
}

/** The version that a segment of the address names, in canonical form. */
export function versionParam(call: Call): string {
  const text = call.params.version ?? "";
  const version = canonicalVersion(text);
  if (version === undefined || version !== text) {
    throw new Problem("request.version", "a version in an address looks like 1.2.3, without v and leading zeros");
  }
  return version;
}

/** A query parameter that is a whole number. */
export function numberQuery(call: Call, name: string, rule: { min: number; max: number; fallback: number }): number {
  const text = call.url.searchParams.get(name);
  if (text === null) return rule.fallback;
  const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : NaN;
  if (value >= rule.min && value <= rule.max) return value;
  throw new Problem("request.query", `"${name}" must be a whole number from ${rule.min} to ${rule.max}`);
}

/** Throws for an unknown query parameter, and for one that is given twice. */
export function knownQuery(call: Call, known: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of call.url.searchParams.keys()) {
    if (!known.includes(name)) {
      throw new Problem("request.query", `unknown parameter ${JSON.stringify(name.slice(0, 60))}`, {
        errors: [{
          pointer: "",
          detail: known.length === 0 ? "the route has no parameters" : `known: ${known.join(", ")}`,
        }],
      });
    }
    if (seen.has(name)) throw new Problem("request.query", `the parameter "${name}" is given twice`);
    seen.add(name);
  }
}
