/** Signatures of artifacts as cosign stores them in registries. In: a digest. Out: a public key in PEM. Tests only. */
import { generateKeyPairSync, sign as signBytes } from "node:crypto";
import { sha256, type TestRegistry } from "./oci_registry.ts";

/** Stores a signature of an artifact as cosign does, and returns the public key. */
export function sign(
  { manifests, blobs }: TestRegistry,
  digest: string,
  { type, about = digest, payloadType = "cosign container image signature", of }: {
    readonly type: "ec" | "ed25519" | "rsa";
    readonly about?: string;
    readonly payloadType?: string;
    /** Signs these bytes in place of the payload. */
    readonly of?: Uint8Array;
  },
): string {
  const { publicKey, privateKey } = type === "ec"
    ? generateKeyPairSync("ec", { namedCurve: "P-256" })
    : type === "rsa"
    ? generateKeyPairSync("rsa", { modulusLength: 2048 })
    : generateKeyPairSync("ed25519");
  const critical = { identity: { "docker-reference": "demo" }, image: { "docker-manifest-digest": about } };
  const payload = new TextEncoder().encode(JSON.stringify({ critical: { ...critical, type: payloadType } }));
  const signature = signBytes(type === "ed25519" ? null : "sha256", of ?? payload, privateKey);
  blobs.set(sha256(payload), payload);
  const layer = {
    mediaType: "application/vnd.dev.cosign.simplesigning.v1+json",
    digest: sha256(payload),
    size: payload.length,
    annotations: { "dev.cosignproject.cosign/signature": signature.toString("base64") },
  };
  const manifest = { schemaVersion: 2, config: {}, layers: [{}, null, { ...layer, annotations: {} }, layer] };
  manifests.set(`${digest.replace(":", "-")}.sig`, new TextEncoder().encode(JSON.stringify(manifest)));
  return String(publicKey.export({ type: "spki", format: "pem" }));
}
