/**
 * Release records and their signatures.
 *
 * In: what a release is. Out: a record, its canonical form (RFC 8785), and an Ed25519 signature over these bytes. A record
 * is immutable: what can change (yanks, counts) is not part of it. Keys are named by a digest of their public half, and all
 * processes on one database share them. Design: §3.2, §3.4.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { type Digest, jcs } from "../project/integrity.ts";

/** What is signed. */
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

/** A key pair; the private half is PKCS#8 in PEM. */
export interface SigningKey {
  readonly id: string;
  /** Raw 32 bytes, base64. */
  readonly publicKey: string;
  readonly privateKey: string;
}

/** Makes a key pair. */
export function makeSigningKey(): SigningKey {
  return signingKeyOf(generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString());
}

/** The key pair of a private key in PEM. */
export function signingKeyOf(privateKey: string): SigningKey {
  const jwk = createPublicKey(createPrivateKey(privateKey)).export({ format: "jwk" }) as { readonly x?: string };
  if (jwk.x === undefined) throw new TypeError("The signing key is not an Ed25519 key");
  const raw = Buffer.from(jwk.x, "base64url");
  return {
    id: createHash("sha256").update(raw).digest("hex").slice(0, 16),
    publicKey: raw.toString("base64"),
    privateKey,
  };
}

/** The bytes that are signed. */
export function recordBytes(record: ReleaseRecord): Uint8Array {
  return new TextEncoder().encode(jcs(record));
}

/** Signs a record; base64. */
export function signRecord(record: ReleaseRecord, key: SigningKey): string {
  return sign(null, recordBytes(record), createPrivateKey(key.privateKey)).toString("base64");
}

/** True when the signature is the key's, over this very record. */
export function verifyRecord(record: ReleaseRecord, signature: string, publicKey: string): boolean {
  const x = Buffer.from(publicKey, "base64").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return verify(null, recordBytes(record), key, Buffer.from(signature, "base64"));
}
