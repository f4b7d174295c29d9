/**
 * Signatures of artifacts in OCI registries, in cosign's format, checked with a key of the user: no transparency log
 * and no certificate authority is asked. In: the repository, the digest of a manifest, a public key. Out: nothing, or
 * an error. Invariant: a signature counts only if its payload names this digest and its bytes verify with this key.
 */
import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { type Digest, digestBytes, isDigest } from "../../base/integrity.ts";
import { type OciRepository, parseJson } from "./registry.ts";

const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const PAYLOAD_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE_NAME = "dev.cosignproject.cosign/signature";
/** The type that a payload says it has. */
const SIGNATURE_TYPE = "cosign container image signature";

const MAX_MANIFEST_BYTES = 1 << 20;
const MAX_PAYLOAD_BYTES = 1 << 16;
/** The most signatures of one artifact that are tried. */
const MAX_SIGNATURES = 64;

/** An artifact without the signature that it must have. */
export class SignatureError extends Error {}

const KEY_TYPES = new Set(["ec", "ed25519", "rsa"]);

/** A public key from PEM. Throws an Error for anything else. */
export function signatureKey(pem: string): KeyObject {
  if (/PRIVATE KEY-----/.test(pem)) throw new Error("a private key: give the public one");
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch {
    throw new Error("no public key in the form PEM");
  }
  if (!KEY_TYPES.has(key.asymmetricKeyType ?? "")) {
    throw new Error(`a key of the type ${key.asymmetricKeyType}; signatures have keys of ECDSA, Ed25519 or RSA`);
  }
  return key;
}

/** The form in which lockfiles store a public key: its SubjectPublicKeyInfo in base64. */
export function keyText(key: KeyObject): string {
  return key.export({ type: "spki", format: "der" }).toString("base64");
}

/** The public key of a stored form. Throws an Error for anything else. */
export function storedKey(text: string): KeyObject {
  return signatureKey(`-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----\n`);
}

/**
 * Throws a SignatureError, or another Error of the registry, unless the artifact with the manifest `digest` has a
 * signature by `key`.
 */
export async function requireSignature(repository: OciRepository, digest: Digest, key: KeyObject): Promise<void> {
  const what = "signature";
  const { bytes, status } = await repository.send(`manifests/${digest.replace(":", "-")}.sig`, {
    access: "pull",
    headers: { accept: MANIFEST_TYPE },
    maxBytes: MAX_MANIFEST_BYTES,
    what,
    statuses: [200, 404],
  });
  if (status === 404) throw new SignatureError(`${digest} has no signature in the registry`);
  for (const { digest: payloadDigest, size, signature } of signaturesOf(bytes)) {
    const { bytes: payload } = await repository.send(`blobs/${payloadDigest}`, {
      access: "pull",
      maxBytes: size,
      what,
      statuses: [200],
    });
    if (digestBytes(payload) !== payloadDigest || !isSignedBy(payload, signature, key)) continue;
    if (signedDigest(payload) === digest) return;
  }
  throw new SignatureError(`${digest} has no signature by this key`);
}

/** The signatures in a manifest, as far as they have their form. */
function signaturesOf(bytes: Uint8Array): { digest: Digest; size: number; signature: Uint8Array }[] {
  const { layers } = (parseJson(bytes, "signature's manifest") ?? {}) as { layers?: unknown };
  if (!Array.isArray(layers)) throw new Error("the signature's manifest has no layers");
  return layers.slice(0, MAX_SIGNATURES).flatMap((layer: unknown) => {
    const { mediaType, digest, size, annotations } = (layer ?? {}) as Readonly<Record<string, unknown>>;
    const text = (annotations as Readonly<Record<string, unknown>> | undefined)?.[SIGNATURE_NAME];
    if (mediaType !== PAYLOAD_TYPE || typeof digest !== "string" || !isDigest(digest)) return [];
    if (typeof size !== "number" || !(size > 0 && size <= MAX_PAYLOAD_BYTES)) return [];
    if (typeof text !== "string" || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]{1,4096}={0,2}$/.test(text)) return [];
    return [{ digest, size, signature: Uint8Array.from(atob(text), (character) => character.charCodeAt(0)) }];
  });
}

function isSignedBy(payload: Uint8Array, signature: Uint8Array, key: KeyObject): boolean {
  try {
    return verify(key.asymmetricKeyType === "ed25519" ? null : "sha256", payload, key, signature);
  } catch {
    return false;
  }
}

/** The digest of the manifest that a payload is about; undefined for a payload of another kind. */
function signedDigest(payload: Uint8Array): string | undefined {
  const { critical } = (parseJson(payload, "signature's payload") ?? {}) as {
    critical?: { type?: unknown; image?: { "docker-manifest-digest"?: unknown } };
  };
  const digest = critical?.image?.["docker-manifest-digest"];
  return critical?.type === SIGNATURE_TYPE && typeof digest === "string" ? digest : undefined;
}
