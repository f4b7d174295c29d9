/**
 * The registry's signing keys: making them, signing release records and the keys that come after.
 *
 * In: private keys (PKCS#8, PEM), records. Out: Ed25519 signatures that project/packages/release_record.ts checks. Keys
 * are named by a digest of their public half, and all processes on one database share them.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { endorsementBytes, keyIdOf, recordBytes, type ReleaseRecord } from "../project/packages/release_record.ts";

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
function signingKeyOf(privateKey: string): SigningKey {
  const jwk = createPublicKey(createPrivateKey(privateKey)).export({ format: "jwk" }) as { readonly x?: string };
  const publicKey = Buffer.from(jwk.x ?? "", "base64url").toString("base64");
  const id = keyIdOf(publicKey);
  if (id === undefined) throw new TypeError("The signing key is not an Ed25519 key");
  return { id, publicKey, privateKey };
}

/** The keys of a file: the first one signs, the others are earlier ones that endorse it. */
export function signingKeysOf(pem: string): [SigningKey, ...SigningKey[]] {
  const blocks = pem.match(/-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----/g) ?? [];
  const [first, ...earlier] = blocks.map(signingKeyOf);
  if (first === undefined) throw new TypeError("The file holds no private key (PKCS#8, PEM)");
  return [first, ...earlier];
}

/** Signs bytes; base64. */
export function signBytes(bytes: Uint8Array, key: SigningKey): string {
  return sign(null, bytes, createPrivateKey(key.privateKey)).toString("base64");
}

/** Signs a record; base64. */
export function signRecord(record: ReleaseRecord, key: SigningKey): string {
  return signBytes(recordBytes(record), key);
}

/** The signature with which a key endorses `publicKey` as its successor; base64. */
export function endorseKey(publicKey: string, by: SigningKey): string {
  return signBytes(endorsementBytes(publicKey), by);
}
