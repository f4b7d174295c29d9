/**
 * Release records, signing keys, and signature verification.
 *
 * In: a record as a registry serves it, a signature, a public key (raw, base64). Out: true or false; nothing here
 * throws for hostile text. A record is signed with Ed25519 over its canonical form (RFC 8785). A replacement key is
 * endorsed by its predecessor with the same kind of signature, over a statement that cannot be mistaken for a record.
 */
import { createHash, createPublicKey, verify } from "node:crypto";
import { type Digest, jcs } from "../base/integrity.ts";

/** The signed data. */
export interface ReleaseRecord {
  readonly schemaVersion: 1;
  readonly package: string;
  readonly version: string;
  readonly artifact: { readonly digest: Digest; readonly size: number };
  /** Definition digests by plugin id. */
  readonly definitions: { readonly [id: string]: Digest };
  readonly publisher: string;
  readonly publishedAt: string;
}

/** The bytes of a record that are signed. */
export function recordBytes(record: ReleaseRecord): Uint8Array {
  return new TextEncoder().encode(jcs(record));
}

/** The payload that a key signs when it is replaced: an endorsement of its successor. */
export function endorsementBytes(publicKey: string): Uint8Array {
  return new TextEncoder().encode(jcs({ purpose: "waft registry key", publicKey }));
}

/** A key's name: the start of the SHA-256 of its 32 bytes. Undefined for anything but an Ed25519 key. */
export function keyIdOf(publicKey: string): string | undefined {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(publicKey)) return undefined;
  return createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex").slice(0, 16);
}

/** True when `signature` (base64) is the key's, over these very bytes. */
export function isSigned(bytes: Uint8Array, signature: string, publicKey: string): boolean {
  if (keyIdOf(publicKey) === undefined || !/^[A-Za-z0-9+/]{86}==$/.test(signature)) return false;
  const x = Buffer.from(publicKey, "base64").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return verify(null, bytes, key, Buffer.from(signature, "base64"));
}
