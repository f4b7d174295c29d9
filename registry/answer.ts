/**
 * Answers: JSON and text with strong ETags, conditional requests, ranges, caching rules.
 *
 * In: a body. Out: 200, or 304 when the client already has these bytes. Lists and indexes may be a minute old;
 * immutable answers are marked as such.
 */
import { createHash } from "node:crypto";
import { Problem } from "./problem.ts";

/** Caching rules. */
export const CACHE = {
  short: "public, max-age=60, stale-while-revalidate=600",
  immutable: "public, max-age=31536000, immutable",
  never: "no-store",
} as const;

/** A strong validator for bytes. */
function etagOf(body: string | Uint8Array): string {
  return `"${createHash("sha256").update(body).digest("base64url")}"`;
}

/** True when the client's `If-None-Match` names the validator. */
export function isUnchanged(request: Request, etag: string): boolean {
  const given = request.headers.get("if-none-match");
  if (given === null || given.length > 2000) return false;
  return given.trim() === "*" || given.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

/** The requested byte range as [start, end); undefined for none, and for ranges that may be ignored. */
export function rangeOf(request: Request, etag: string, size: number): [start: number, end: number] | undefined {
  const condition = request.headers.get("if-range");
  if (condition !== null && condition !== etag) return undefined;
  const match = /^bytes=([0-9]{0,15})-([0-9]{0,15})$/.exec(request.headers.get("range") ?? "");
  if (match === null || (match[1] === "" && match[2] === "")) return undefined;
  const [, from, to] = match as unknown as [string, string, string];
  const start = from === "" ? Math.max(0, size - Number(to)) : Number(from);
  const end = from === "" || to === "" ? size : Math.min(size, Number(to) + 1);
  if (start >= end) {
    throw new Problem("range.unsatisfiable", `there are ${size} bytes`, {
      headers: { "content-range": `bytes */${size}` },
    });
  }
  return [start, end];
}

/** An answer with a body. */
export function textAnswer(
  request: Request,
  body: string | Uint8Array<ArrayBuffer>,
  options: {
    readonly type: string;
    readonly cache: keyof typeof CACHE;
    readonly status?: number;
    readonly headers?: { readonly [name: string]: string };
  },
): Response {
  const status = options.status ?? 200;
  const headers: { [name: string]: string } = {
    "content-type": options.type,
    "cache-control": CACHE[options.cache],
    ...options.headers,
  };
  if (status === 200 && options.cache !== "never" && (request.method === "GET" || request.method === "HEAD")) {
    const etag = etagOf(body);
    headers.etag = etag;
    if (isUnchanged(request, etag)) {
      delete headers["content-type"];
      return new Response(null, { status: 304, headers });
    }
  }
  return new Response(body, { status, headers });
}

/** An answer in JSON. */
export function jsonAnswer(
  request: Request,
  value: unknown,
  options: {
    readonly cache: keyof typeof CACHE;
    readonly status?: number;
    readonly headers?: { readonly [name: string]: string };
  },
): Response {
  return textAnswer(request, JSON.stringify(value), { type: "application/json", ...options });
}

/** Throws unless the client takes JSON. */
export function requireJsonAccepted(request: Request): void {
  const accept = request.headers.get("accept");
  if (accept === null) return;
  const takes = accept.split(",").some((part) => {
    const [type, ...parameters] = part.split(";").map((p) => p.trim().toLowerCase());
    if (parameters.some((p) => /^q=0(?:\.0{0,3})?$/.test(p))) return false;
    return type === "*/*" || type === "application/*" || type === "application/json";
  });
  if (!takes) throw new Problem("accept.none", "this address answers with application/json only");
}
