/**
 * What the API answers when it cannot do what was asked: problem documents (RFC 9457).
 *
 * In: a code of the table below, with words. Out: `application/problem+json` whose `type` is a page of this site. Text from
 * requests is escaped, so that no terminal and no log can be steered by it. Design: §3.2.
 */
import { type Diagnostic, escapeHostile } from "../project/base/diagnostic.ts";

/** Codes: status and title; each has a page at `/errors/<code>`. */
export const PROBLEMS = {
  "request.malformed": [400, "Malformed request"],
  "request.name": [400, "Not a package id"],
  "request.version": [400, "Not a version"],
  "request.query": [400, "Query not understood"],
  "request.cursor": [400, "Cursor not valid"],
  "request.json": [400, "Body not understood"],
  "request.digest": [400, "Digest differs"],
  "auth.missing": [401, "Token needed"],
  "auth.invalid": [401, "Token not valid"],
  "auth.scope": [403, "Token does not allow this"],
  "owner.prefix": [403, "Prefix not owned"],
  "owner.unproved": [403, "Ownership can no longer be shown"],
  "route.unknown": [404, "No such address"],
  "package.unknown": [404, "No such package"],
  "package.held": [404, "Package held for moderation"],
  "version.unknown": [404, "No such version"],
  "blob.unknown": [404, "No such archive"],
  "contract.unknown": [404, "No such contract"],
  "token.unknown": [404, "No such token"],
  "prefix.unknown": [404, "No such prefix"],
  "account.unknown": [404, "No such account"],
  "method.unknown": [405, "Method not allowed"],
  "accept.none": [406, "No such representation"],
  "request.timeout": [408, "Body did not arrive in time"],
  "version.exists": [409, "Version exists"],
  "package.twin": [409, "Id too similar to another"],
  "plugin.taken": [409, "Plugin id belongs to another package"],
  "account.exists": [409, "Account exists"],
  "owner.taken": [409, "Prefix owned by another account"],
  "request.precondition": [412, "Precondition failed"],
  "request.too-large": [413, "Body too large"],
  "request.type": [415, "Content type not accepted"],
  "range.unsatisfiable": [416, "Range not satisfiable"],
  "publish.invalid": [422, "Package not valid"],
  "publish.graph": [422, "Requirements cannot be met"],
  "publish.check": [422, "Package could not be checked in time"],
  "rate.limited": [429, "Too many requests"],
  "server.error": [500, "Error of the registry"],
  "server.unavailable": [503, "Not available now"],
} as const satisfies { readonly [code: string]: readonly [number, string] };

/** A code of the table. */
export type ProblemCode = keyof typeof PROBLEMS;

/** One finding inside a problem. */
export interface ProblemFinding {
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

/** Explanations of several lines become one; what is left of control characters is escaped. */
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
