/**
 * Compression of answers: gzip, for text that has a strong ETag.
 *
 * In: an answer's headers and bytes. Out: the bytes to send; the headers describe them. The compressed form is a
 * representation of its own with its own strong tag: `"x"` becomes `"x.gz"`, and is turned back into `"x"` before a
 * handler sees it. An answer without a tag is never compressed: those hold secrets, whose length could leak
 * information.
 */
import { gzipSync } from "node:zlib";

const MIN_BYTES = 1000;
/** Size of the cache of compressed forms, which are kept by tag. */
const MAX_KEPT_BYTES = 16 << 20;
const TEXT = /^(?:text\/|application\/(?:json|xml|schema\+json|[a-z.+-]*json)|image\/svg\+xml)/;

/** Compresses answers, and caches the results. */
export class Compressor {
  readonly #kept = new Map<string, Uint8Array>();
  #bytes = 0;

  /** The body to send; changes `headers`. */
  compress(
    request: {
      readonly "accept-encoding"?: string | string[] | undefined;
      readonly "if-none-match"?: string | undefined;
    },
    status: number,
    headers: { [name: string]: string },
    body: Uint8Array | undefined,
  ): Uint8Array | undefined {
    const tag = headers.etag;
    if (tag === undefined) return body;
    if (status === 304) {
      // Answer with the tag that the client holds.
      if ((request["if-none-match"] ?? "").includes(gzipTag(tag))) headers.etag = gzipTag(tag);
      return body;
    }
    if (!TEXT.test(headers["content-type"] ?? "")) return body;
    headers.vary = "accept-encoding";
    if (status !== 200 || body === undefined || body.length < MIN_BYTES || !takesGzip(request["accept-encoding"])) {
      return body;
    }
    headers.etag = gzipTag(tag);
    headers["content-encoding"] = "gzip";
    const kept = this.#kept.get(tag);
    if (kept !== undefined) return kept;
    const bytes = new Uint8Array(gzipSync(body, { level: 6 }));
    for (const [oldest, old] of this.#kept) {
      if (this.#bytes + bytes.length <= MAX_KEPT_BYTES) break;
      this.#kept.delete(oldest);
      this.#bytes -= old.length;
    }
    if (bytes.length <= MAX_KEPT_BYTES) {
      this.#kept.set(tag, bytes);
      this.#bytes += bytes.length;
    }
    return bytes;
  }
}

/** Removes the mark of compressed forms from the tags that a client sends. */
export function forHandler(headers: Headers): void {
  const given = headers.get("if-none-match");
  if (given !== null && given.includes('.gz"')) headers.set("if-none-match", given.replaceAll('.gz"', '"'));
}

function gzipTag(tag: string): string {
  return tag.replace(/"$/, '.gz"');
}

function takesGzip(accept: string | string[] | undefined): boolean {
  return String(accept ?? "").split(",").some((part) => {
    const [coding, ...parameters] = part.split(";").map((p) => p.trim().toLowerCase());
    return (coding === "gzip" || coding === "*") && !parameters.some((p) => /^q=0(?:\.0{0,3})?$/.test(p));
  });
}
