/**
 * Signed heads of a transparency log, in the form of checkpoints (C2SP tlog-checkpoint, signed-note).
 *
 * In: the size and root of a tree, or untrusted text. Out: the text of a checkpoint, or its contents. The text before
 * the empty line is signed with Ed25519 by the key of the registry, and no record has its form: records are JSON
 * objects. Further signatures, of witnesses for example, are allowed and not looked at.
 */
import { createHash } from "node:crypto";
import { HASH_BYTES } from "./merkle_tree.ts";
import { isSigned, keyIdOf } from "./release_record.ts";

/** The maximum length of a checkpoint. */
export const MAX_CHECKPOINT = 4096;

/** The head of a log. */
export interface LogHead {
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
}

/** A head with its signature. */
export interface SignedHead extends LogHead {
  /** The whole text. */
  readonly checkpoint: string;
  /** The name of the registry's key that signed it. */
  readonly keyId: string;
}

/** The type of an Ed25519 key in a signed note. */
const ED25519 = 1;
/** Bytes of the name of a key in front of a signature. */
const NAME_BYTES = 4;

/** The text that is signed. */
function signedText({ origin, size, root }: LogHead): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n`;
}

/** The name that a signed note gives to a key of `origin`. */
function noteKeyName(origin: string, publicKey: string): Uint8Array {
  const key = Buffer.from(publicKey, "base64");
  return createHash("sha256").update(`${origin}\n`).update(new Uint8Array([ED25519])).update(key).digest()
    .subarray(0, NAME_BYTES);
}

/** The checkpoint of a head; `sign` returns the signature of bytes, in base64. */
export function writeCheckpoint(head: LogHead, publicKey: string, sign: (bytes: Uint8Array) => string): string {
  const text = signedText(head);
  const name = noteKeyName(head.origin, publicKey);
  const signature = Buffer.concat([name, Buffer.from(sign(new TextEncoder().encode(text)), "base64")]);
  return `${text}\n— ${head.origin} ${signature.toString("base64")}\n`;
}

/** The contents of a checkpoint; undefined for text of another form. The signature is not checked. */
export function readCheckpoint(checkpoint: string): LogHead | undefined {
  const match = checkpoint.length > MAX_CHECKPOINT
    ? null
    : /^([^\s+]{1,300})\n(0|[1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)\n\n(?:— [^\s+]{1,300} [A-Za-z0-9+/=]{8,200}\n)+$/
      .exec(checkpoint);
  if (match === null) return undefined;
  const size = Number(match[2]);
  const root = new Uint8Array(Buffer.from(match[3], "base64"));
  return Number.isSafeInteger(size) && root.length === HASH_BYTES ? { origin: match[1], size, root } : undefined;
}

/** Whether a checkpoint has a signature of this key. */
export function isCheckpointSigned(checkpoint: string, publicKey: string): boolean {
  const head = readCheckpoint(checkpoint);
  if (head === undefined || keyIdOf(publicKey) === undefined) return false;
  const bytes = new TextEncoder().encode(signedText(head));
  const wanted = Buffer.from(noteKeyName(head.origin, publicKey));
  return checkpoint.slice(checkpoint.indexOf("\n\n") + 2).trimEnd().split("\n").some((line) => {
    const [, name, value] = line.split(" ");
    const signature = Buffer.from(value, "base64");
    return name === head.origin && signature.subarray(0, NAME_BYTES).equals(wanted) &&
      isSigned(bytes, signature.subarray(NAME_BYTES).toString("base64"), publicKey);
  });
}
