/**
 * Digests: SHA-256 of bytes and of the canonical form (RFC 8785) of JSON values.
 *
 * In: bytes or a JSON value. Out: `sha256:` and 64 hex digits. Values come from json_read (finite numbers,
 * well-formed strings), so the canonical form always exists. Arrays that are sets must be sorted before (definition.ts
 * does it).
 */
import { createHash, randomBytes } from "node:crypto";
import canonicalize from "canonicalize";
import type { JsonValue } from "./json_read.ts";

/** A digest as written in lockfiles and indexes. */
export type Digest = `sha256:${string}`;

/** The form of a digest. */
export const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** True for the canonical text of a digest. */
export function isDigest(text: string): text is Digest {
  return text.length === 71 && DIGEST.test(text);
}

/** SHA-256 of bytes. */
export function digestBytes(bytes: Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** The canonical form of a JSON value (RFC 8785). */
export function jcs(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError("the value has no JSON form");
  return text;
}

/** SHA-256 of the canonical form of a JSON value. */
export function digestJson(value: JsonValue | object): Digest {
  return digestBytes(new TextEncoder().encode(jcs(value)));
}

/** `count` random hex digits, for names of temporary files. */
export function randomHex(count: number): string {
  return randomBytes((count + 1) >> 1).toString("hex").slice(0, count);
}
