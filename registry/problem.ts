/**
 * Errors of the API: problem documents (RFC 9457).
 *
 * In: a code of the table below and a message. Out: `application/problem+json` whose `type` is a page of this site.
 * Text from requests is escaped, so that it cannot control a terminal or forge a line of a log.
 */
import { type Diagnostic, escapeHostile } from "../project/base/diagnostic.ts";

/** Codes with status and title; each has a page at `/errors/<code>`. */
export const PROBLEMS = {
  "request.malformed": [400, "Malformed request"],
  "request.name": [400, "Not a package id"],
  "request.version": [400, "Not a version"],
  "request.query": [400, "Invalid query"],
  "request.cursor": [400, "Invalid cursor"],
  "request.json": [400, "Invalid body"],
  "request.digest": [400, "Digest mismatch"],
  "auth.missing": [401, "Token required"],
  "auth.invalid": [401, "Invalid token"],
  "auth.identity": [401, "Identity token refused"],
  "auth.scope": [403, "Insufficient token"],
  "owner.prefix": [403, "Prefix not owned"],
  "owner.publisher": [403, "Not a trusted publisher"],
  "owner.unproved": [403, "Ownership no longer proved"],
  "owner.yank": [403, "Yanked by an administrator"],
  "route.unknown": [404, "No such address"],
  "package.unknown": [404, "No such package"],
  "package.held": [404, "Package held for moderation"],
  "version.unknown": [404, "No such version"],
  "blob.unknown": [404, "No such archive"],
  "contract.unknown": [404, "No such contract"],
  "publisher.unknown": [404, "No such trusted publisher"],
  "transfer.unknown": [404, "No such offer"],
  "token.unknown": [404, "No such token"],
  "prefix.unknown": [404, "No such prefix"],
  "account.unknown": [404, "No such account"],
  "log.unknown": [404, "Not in the log"],
  "method.unknown": [405, "Method not allowed"],
  "accept.none": [406, "Representation not available"],
  "request.timeout": [408, "Body did not arrive in time"],
  "version.exists": [409, "Version exists"],
  "package.twin": [409, "Id too similar to another"],
  "plugin.taken": [409, "Plugin id owned by another package"],
  "plugin.full": [409, "Plugin has too many releases"],
  "account.exists": [409, "Account exists"],
  "publisher.full": [409, "Too many trusted publishers"],
  "account.suspended": [409, "Account suspended"],
  "owner.taken": [409, "Prefix owned by another account"],
  "request.precondition": [412, "Precondition failed"],
  "request.too-large": [413, "Body too large"],
  "request.type": [415, "Unsupported media type"],
  "range.unsatisfiable": [416, "Range not satisfiable"],
  "publish.invalid": [422, "Invalid package"],
  "publish.graph": [422, "Requirements cannot be met"],
  "publish.check": [422, "Package check exceeded its limits"],
  "rate.limited": [429, "Too many requests"],
  "server.error": [500, "Internal error"],
  "server.unavailable": [503, "Temporarily unavailable"],
} as const satisfies { readonly [code: string]: readonly [number, string] };

/** A code of the table. */
export type ProblemCode = keyof typeof PROBLEMS;

/** One finding inside a problem. */
interface ProblemFinding {
  readonly pointer: string;
  readonly detail: string;
  readonly code?: string;
}

/** Thrown by handlers; becomes the answer. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly errors: readonly ProblemFinding[];
  readonly headers: { readonly [name: string]: string };

  constructor(
    code: ProblemCode,
    detail: string,
    more: { readonly errors?: readonly ProblemFinding[]; readonly headers?: { readonly [name: string]: string } } = {},
  ) {
    super(detail);
    this.code = code;
    this.errors = more.errors ?? [];
    // Every 503 says when to try again.
    const later: { readonly [name: string]: string } = PROBLEMS[code][0] === 503 ? { "retry-after": "2" } : {};
    this.headers = { ...later, ...more.headers };
  }

  get status(): number {
    return PROBLEMS[this.code][0];
  }
}

/** The answer for a problem. */
export function problemResponse(problem: Problem, baseUrl: string, requestId: string): Response {
  const [status, title] = PROBLEMS[problem.code];
  const body = {
    type: `${baseUrl}/errors/${problem.code}`,
    title,
    status,
    detail: oneLine(problem.message),
    code: problem.code,
    errors: problem.errors.map((e) => ({ ...e, detail: oneLine(e.detail) })),
    requestId,
  };
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/problem+json", "cache-control": "no-store", ...problem.headers },
  });
}

/** Joins the lines of a message, and escapes control characters. */
function oneLine(text: string): string {
  return escapeHostile(text.replace(/\n\s*/g, "; "));
}

/** Findings of the project's checks as findings of a problem. */
export function findingsOf(diagnostics: readonly Diagnostic[]): ProblemFinding[] {
  return diagnostics.slice(0, 100).map((d) => {
    const place = d.file === undefined ? "" : `${d.file}${d.line === undefined ? "" : `:${d.line}:${d.column ?? 1}`}: `;
    const help = d.help === undefined ? "" : ` (${d.help})`;
    return { pointer: d.pointer ?? "", code: d.code, detail: `${place}${d.message}${help}`.slice(0, 2000) };
  });
}
