/**
 * Downloads from a release site: the index, and artifacts of any size.
 *
 * In: a site's address, trusted keys. Out: a verified index, or the path of a file with the size and SHA-256 that
 * the index gives. Redirects stay on the site; every answer is bounded in size, and must not be slower than some
 * hundred bytes a second. An interrupted download is kept under its digest and continued by the next attempt; a file
 * with the wrong content is deleted.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fail, ProjectError, quote, redirectPlace } from "../base/diagnostic.ts";
import { DISK } from "../base/files.ts";
import { checkRegistryUrl } from "../packages/machine.ts";
import { requireOwnFile } from "../base/own_file.ts";
import { type MachinePaths, OWN_DIRECTORY_MODE } from "../base/paths.ts";
import { replaceWhole } from "../base/replace_file.ts";
import {
  INDEX_PATH,
  MAX_RELEASE_INDEX,
  MAX_SIGNATURES,
  parseReleaseIndex,
  type ReleaseArtifact,
  type ReleaseIndex,
  type ReleaseKeys,
  requireFresh,
  requireSigned,
  SIGNATURE_PATH,
} from "./release_index.ts";

/** Options of the client of a release site. */
export interface ReleaseSite {
  /** Its address, without a slash at the end. */
  readonly base: string;
  readonly keys: ReleaseKeys;
  readonly paths: MachinePaths;
  readonly fetch?: typeof globalThis.fetch;
  readonly now?: () => number;
  /** The time that an answer has to begin, and then for each {@link MIN_BYTES} of it. */
  readonly idleMs?: number;
  /** Told how far a download is. */
  readonly onProgress?: (done: number, total: number) => void;
}

const MAX_REDIRECTS = 3;
const ATTEMPTS = 3;
/** The bytes that prolong a transfer: a site that sends single bytes must not hold a command for ever. */
const MIN_BYTES = 8 << 10;

/** A release site's address in canonical form. */
export function checkReleaseBase(text: string): string {
  return checkRegistryUrl(text);
}

/** The indexes that this machine has seen: the highest sequence of each site. */
async function seenSequences(paths: MachinePaths): Promise<{ [base: string]: number }> {
  const file = join(paths.state, "release-seen.json");
  const bytes = await DISK.read(file, 1 << 16);
  const seen: { [base: string]: number } = Object.create(null);
  if (bytes === undefined) return seen;
  requireOwnFile(file);
  try {
    const value = JSON.parse(new TextDecoder().decode(bytes)) as unknown;
    for (const [base, sequence] of Object.entries(value as object)) {
      if (typeof sequence === "number" && Number.isSafeInteger(sequence)) seen[base] = sequence;
    }
    return seen;
  } catch {
    // A damaged memory must not look like a machine that has seen nothing.
    throw fail("install.state", "the record of the last release index is damaged", {
      file,
      help: "delete the file if you know why it is damaged",
    });
  }
}

/** Replaces a file of ours as a whole. */
export async function replaceFile(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: OWN_DIRECTORY_MODE });
  await replaceWhole(DISK, path, typeof content === "string" ? new TextEncoder().encode(content) : content, mode);
}

/** Fetches and checks the index: signature, form, freshness; remembers its sequence. */
export async function fetchIndex(site: ReleaseSite): Promise<ReleaseIndex> {
  const url = `${site.base}/${INDEX_PATH}`;
  const [bytes, signatures] = [
    await fetchSmall(site, url, MAX_RELEASE_INDEX),
    await fetchSmall(site, `${site.base}/${SIGNATURE_PATH}`, MAX_SIGNATURES),
  ];
  requireSigned(bytes, signatures, site.keys, url);
  const index = parseReleaseIndex(bytes, url);
  const seen = await seenSequences(site.paths);
  requireFresh(index, (site.now ?? Date.now)(), seen[site.base], url);
  if (seen[site.base] !== index.sequence) {
    await replaceFile(
      join(site.paths.state, "release-seen.json"),
      `${JSON.stringify({ ...seen, [site.base]: index.sequence })}\n`,
    );
  }
  return index;
}

/** The whole of a small file. */
async function fetchSmall(site: ReleaseSite, url: string, maxBytes: number): Promise<Uint8Array> {
  const answer = await request(site, url, {});
  try {
    if (answer.response.status !== 200) throw refused(url, answer.response);
    const chunks: Uint8Array[] = [];
    let total = 0;
    for await (const chunk of answer.body()) {
      total += chunk.length;
      if (total > maxBytes) throw fail("release.too-large", `${url} is larger than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return new Uint8Array(Buffer.concat(chunks));
  } finally {
    answer.stop();
  }
}

function refused(url: string, response: Response): ProjectError {
  return fail("release.answer", `${url} answers with status ${response.status}`, {
    help: response.status === 404
      ? "is this address a release site? See --base and WAFT_RELEASE_BASE"
      : "try again later",
  });
}

interface Answer {
  readonly response: Response;
  /** The body; fails when it pauses too long. */
  body(): AsyncGenerator<Uint8Array>;
  stop(): void;
}

async function request(site: ReleaseSite, url: string, headers: { [name: string]: string }): Promise<Answer> {
  const send = site.fetch ?? fetch;
  const idle = site.idleMs ?? 30_000;
  const control = new AbortController();
  const signal = control.signal;
  let timer = setTimeout(() => control.abort(new Error("timeout")), idle);
  const again = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => control.abort(new Error("timeout")), idle);
  };
  let at = url;
  try {
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const response = await send(at, {
        headers: { "accept-encoding": "identity", ...headers },
        redirect: "manual",
        signal,
      });
      again();
      const target = response.headers.get("location");
      if (![301, 302, 303, 307, 308].includes(response.status) || target === null) {
        const { body } = response;
        return {
          response,
          async *body() {
            if (body === null) return;
            let since = 0;
            try {
              for await (const chunk of body) {
                since += chunk.length;
                if (since >= MIN_BYTES) {
                  again();
                  since = 0;
                }
                yield chunk;
              }
            } catch (error) {
              throw networkError(url, error, signal.aborted);
            }
          },
          stop() {
            clearTimeout(timer);
            control.abort();
          },
        };
      }
      await response.body?.cancel();
      const next = URL.canParse(target, at) ? new URL(target, at) : undefined;
      if (next?.origin !== new URL(url).origin) {
        throw fail("release.redirect", `${url} redirects to another host, ${redirectPlace(next, target)}`, {
          help: "nothing was installed; pass that site with --base if you trust it",
        });
      }
      at = next.href;
    }
    throw fail("release.redirect", `${url} redirects more than ${MAX_REDIRECTS} times`);
  } catch (error) {
    clearTimeout(timer);
    throw networkError(url, error, signal.aborted);
  }
}

/** A failure of the network as a finding; others as they are. */
function networkError(url: string, error: unknown, timedOut = false): unknown {
  if (error instanceof ProjectError || errorCode(error) !== undefined) return error;
  const reason = timedOut ? "the transfer stalled" : error instanceof Error ? error.message : String(error);
  return fail("release.network", `${url} cannot be fetched: ${quote(reason, 200)}`, {
    help: "the partial download is kept and resumed next time",
  });
}

/** Fetches an artifact into the cache; the path of a file with the right size and digest. */
export async function downloadArtifact(site: ReleaseSite, artifact: ReleaseArtifact): Promise<string> {
  const folder = join(site.paths.cache, "downloads");
  const done = join(folder, artifact.sha256);
  const part = `${done}.part`;
  await mkdir(folder, { recursive: true, mode: OWN_DIRECTORY_MODE });
  if (await sizeOf(done) === artifact.size && await digestOf(done) === artifact.sha256) return done;
  await rm(done, { force: true });
  const url = `${site.base}/${artifact.url}`;
  for (let attempt = 1;; attempt++) {
    try {
      await downloadRest(site, url, artifact, part);
      break;
    } catch (error) {
      const code = error instanceof ProjectError ? error.diagnostics[0]?.code : undefined;
      if (attempt >= ATTEMPTS || (code !== "release.network" && code !== "release.truncated")) throw error;
    }
  }
  const digest = await digestOf(part);
  if (digest !== artifact.sha256) {
    await rm(part, { force: true });
    throw fail("release.hash", `${url} has the SHA-256 ${digest}; the signed index says ${artifact.sha256}`, {
      help: "nothing was installed, and the download was deleted",
    });
  }
  await rename(part, done);
  return done;
}

/** Appends the missing rest to `part`. */
async function downloadRest(site: ReleaseSite, url: string, artifact: ReleaseArtifact, part: string): Promise<void> {
  let have = await sizeOf(part) ?? 0;
  if (have > artifact.size) {
    await rm(part, { force: true });
    have = 0;
  }
  if (have === artifact.size) return;
  const answer = await request(site, url, have > 0 ? { range: `bytes=${have}-` } : {});
  let file: FileHandle | undefined;
  try {
    const { response } = answer;
    const resumed = response.status === 206 &&
      (response.headers.get("content-range") ?? "").startsWith(`bytes ${have}-`);
    if (!resumed && response.status !== 200) throw refused(url, response);
    if ((response.headers.get("content-type") ?? "").startsWith("text/html")) {
      throw fail("release.answer", `${url} answers with a web page, not with an archive`, {
        help: "nothing was installed; a proxy or a login page of the network may be in between",
      });
    }
    if (!resumed) have = 0;
    file = await open(part, resumed ? "a" : "w");
    site.onProgress?.(have, artifact.size);
    for await (const chunk of answer.body()) {
      have += chunk.length;
      if (have > artifact.size) {
        await rm(part, { force: true });
        throw fail("release.hash", `${url} has more than the ${artifact.size} bytes that the signed index says`, {
          help: "nothing was installed, and the download was deleted",
        });
      }
      for (let at = 0; at < chunk.length;) at += (await file.write(chunk, at, chunk.length - at)).bytesWritten;
      site.onProgress?.(have, artifact.size);
    }
    await file.sync();
  } catch (error) {
    throw networkError(url, error);
  } finally {
    answer.stop();
    await file?.close();
  }
  if (have < artifact.size) {
    throw fail("release.truncated", `${url} broke off after ${have} of ${artifact.size} bytes`, {
      help: "nothing was installed; the partial download is kept and resumed next time",
    });
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch {
    return undefined;
  }
}

/** SHA-256 of a file in hex. */
export async function digestOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 18 })) hash.update(chunk as Uint8Array);
  return hash.digest("hex");
}
