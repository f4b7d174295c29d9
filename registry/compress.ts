/**
 * Compression of answers: gzip, for text that has a strong ETag.
 *
 * In: an answer's headers and bytes. Out: the bytes to send; headers say what they are. The compressed form is another
 * representation, so it has another strong tag: `"x"` becomes `"x.gz"`, and comes back as `"x"` before a handler sees it. An
 * answer without a tag is never compressed: those are the ones with secrets, whose length could tell about them.
 */
import { gzipSync } from "node:zlib";

const MIN_BYTES = 1000;
/** Compressed forms that are kept, by tag: the same pages and indexes are asked for again and again. */
const MAX_KEPT_BYTES = 16 << 20;
const TEXT = /^(?:text\/|application\/(?:json|xml|schema\+json|[a-z.+-]*json)|image\/svg\+xml)/;

/** Compresses, and remembers what it compressed. */
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
      // The tag that the client has is the one that is still right.
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

/** Takes our mark off the tags that a client sends. */
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
