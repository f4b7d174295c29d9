/**
 * References to artifacts in OCI registries: `oci://HOST[:PORT]/NAME[:TAG][@DIGEST]`. In: text. Out: its parts.
 * Invariant: every part has the form of the distribution specification, so it can be part of a URL as it is.
 */
import { OCI_SCHEME } from "../../base/constants.ts";
import { UsageError } from "../../base/failure.ts";
import { type Digest, isDigest } from "../../base/integrity.ts";

/** An artifact in a registry. */
export interface OciReference {
  /** The registry's name, with its port if it has one. */
  readonly host: string;
  readonly name: string;
  readonly tag: string | undefined;
  readonly digest: Digest | undefined;
}

const HOST = /^(?:\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::\d{1,5})?$/i;
const NAME = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const MAX_NAME = 255;

/** Parses a reference that names an artifact; the scheme may be missing. Throws UsageError. */
export function parseReference(text: string): OciReference {
  const reference = parseRepository(text);
  if (reference.tag === undefined && reference.digest === undefined) {
    throw new UsageError(`"${text}" names neither a tag nor a digest`);
  }
  return reference;
}

/** Parses a reference that may be one to a repository, without a tag and a digest. Throws UsageError. */
export function parseRepository(text: string): OciReference {
  const rest = text.startsWith(OCI_SCHEME) ? text.slice(OCI_SCHEME.length) : text;
  const [path, digest, ...more] = rest.split("@");
  const slash = path.indexOf("/");
  const host = path.slice(0, Math.max(0, slash));
  const [name, tag, ...further] = path.slice(slash + 1).split(":");
  const isValid = HOST.test(host) && NAME.test(name) && name.length <= MAX_NAME && more.length + further.length === 0 &&
    (tag === undefined || TAG.test(tag)) && (digest === undefined || isDigest(digest));
  if (!isValid) {
    throw new UsageError(`a reference is oci://HOST/NAME:TAG or oci://HOST/NAME@sha256:DIGEST, not "${text}"`);
  }
  return { host, name, tag, digest: digest as Digest | undefined };
}

/** The text of a reference. */
export function referenceText({ host, name, tag, digest }: OciReference): string {
  return `${OCI_SCHEME}${host}/${name}${tag === undefined ? "" : `:${tag}`}${digest === undefined ? "" : `@${digest}`}`;
}
