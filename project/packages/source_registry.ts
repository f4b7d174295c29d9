/**
 * A registry over HTTP: `GET {registry}/api/plugins/{id}/index`, `GET
 * {registry}/api/packages/{name}/versions/{version}`, `GET {registry}/api/keys`, `GET
 * {registry}/api/blobs/sha256/{hex}`, `POST {registry}/api/packages/{name}/installs`, `GET
 * {registry}/api/contracts/{id}@{major}/providers`.
 *
 * In: ids and digests. Out: checked releases and bytes. Every answer is bounded in size and time, must have its
 * content type, and is checked for shape; redirects are followed on the same origin only. Answers are cached with their
 * ETag, so an unchanged index costs one small round trip, and `--offline` can resolve from the last answers.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { join } from "node:path";
import { type Diagnostic, fail, ProjectError, quote, redirectPlace } from "../base/diagnostic.ts";
import { DISK, type Files } from "../base/files.ts";
import { digestBytes } from "../base/integrity.ts";
import type { JsonObject, JsonValue } from "../base/json_read.ts";
import type { LockedSource } from "../lockfile/lock_schema.ts";
import { type MachinePaths, OWN_DIRECTORY_MODE } from "../base/paths.ts";
import { replaceWhole } from "../base/replace_file.ts";
import { ARCHIVE_LIMITS } from "./archive.ts";
import type { SignedHead } from "./checkpoint.ts";
import { parsed } from "./registry_answer.ts";
import { MAX_NOTES_BYTES } from "./release_notes.ts";
import {
  FOUND_SCHEMA,
  INDEX_SCHEMA,
  MAX_INDEX_BYTES,
  PROVIDERS_SCHEMA,
  type Release,
  type Source,
  type Yank,
} from "./source.ts";
import { isCanonicalVersion } from "../base/version.ts";

/** Largest record or list of search results that is read. */
const MAX_ANSWER_BYTES = 4 << 20;
/** Largest answer of the log that is read: 500 records, each with the definitions of a package. */
const MAX_LOG_ANSWER_BYTES = 16 << 20;
/** Most bytes of all indexes that are read from one registry by one command. */
const MAX_ALL_INDEX_BYTES = 64 << 20;
/** Maximum number of redirects followed for a request. */
const MAX_REDIRECTS = 3;
/** Retries of a busy registry, and the longest wait for one that it may ask for. */
const MAX_RETRIES = 3;
const MAX_RETRY_MS = 10_000;
/** The first line of a kept record whose signature was good. */
const VERIFIED = "verified";

/** A package that a search found. */
interface FoundPackage {
  readonly name: string;
  readonly version: string;
  readonly description: string;
}

/** The options of a registry connection. */
interface RegistryOptions {
  readonly paths: MachinePaths;
  readonly offline?: boolean;
  readonly files?: Files;
  readonly timeoutMs?: number;
  readonly fetch?: typeof globalThis.fetch;
  readonly token?: string;
}

interface Answer {
  readonly status: number;
  readonly bytes: Uint8Array;
  readonly etag?: string;
}

/** A registry as a source of releases. */
export class RegistrySource implements Source {
  readonly name: string;
  readonly locked: LockedSource;
  readonly #options: RegistryOptions;
  readonly #files: Files;
  #token: string | undefined;
  readonly #known = new Map<string, Promise<readonly Release[] | undefined>>();
  #indexBytes = 0;
  /** The head of the registry's log that this command has verified. */
  readonly log: { head?: Promise<SignedHead | undefined> } = {};

  constructor(registry: string, options: RegistryOptions) {
    this.name = registry;
    this.locked = { kind: "registry", registry };
    this.#options = options;
    this.#token = options.token;
    this.#files = options.files ?? DISK;
  }

  releases(id: string): Promise<readonly Release[] | undefined> {
    let answer = this.#known.get(id);
    if (answer === undefined) this.#known.set(id, answer = this.#index(id));
    return answer;
  }

  async #index(id: string): Promise<readonly Release[] | undefined> {
    const url = `${this.name}/api/plugins/${encodeURIComponent(id)}/index`;
    const path = this.#keptPath("indexes", url);
    const kept = await this.#readKept(path);
    if (this.#options.offline === true) {
      if (kept === undefined) {
        throw fail("registry.offline", `${id} is not cached from ${this.name}, and --offline forbids looking it up`);
      }
      return this.#parseCounted(kept.bytes, id, url);
    }
    const answer = await this.#get(url, "application/json", MAX_INDEX_BYTES, kept?.etag);
    if (answer.status === 304 && kept !== undefined) return this.#parseCounted(kept.bytes, id, url);
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw unexpected(url, answer);
    const releases = this.#parseCounted(answer.bytes, id, url);
    if (kept !== undefined) await this.#refuseRollback(id, kept.bytes, releases, url);
    await this.#keep(path, answer);
    return releases;
  }

  /** Parses an index; refuses what no graph of plugins needs: each index may name hundreds of further ones. */
  #parseCounted(bytes: Uint8Array, id: string, url: string): Release[] {
    this.#indexBytes += bytes.length;
    if (this.#indexBytes > MAX_ALL_INDEX_BYTES) {
      throw fail("registry.answer", `${this.name} answers with more than ${MAX_ALL_INDEX_BYTES} bytes of indexes`);
    }
    return parseIndex(bytes, id, url);
  }

  /**
   * Refuses an index that lacks a release seen before, or offers other contents under its version. Releases neither
   * vanish nor change, so such an index is outdated or belongs to another registry. Only releases whose signature was
   * verified on this machine count, because an index is not signed: one that invents releases must not make those of
   * the registry refused later.
   */
  async #refuseRollback(id: string, kept: Uint8Array, releases: readonly Release[], url: string): Promise<void> {
    let known: readonly Release[];
    try {
      known = parseIndex(kept, id, url);
    } catch (error) {
      if (error instanceof ProjectError) return; // The cache is damaged; it is about to be replaced.
      throw error;
    }
    const listed = new Map(releases.map((release) => [release.version, release]));
    for (const before of known) {
      const now = listed.get(before.version);
      if (now?.package === before.package && now.artifact.digest === before.artifact.digest) continue;
      const path = this.#recordPath(before.package, before.version);
      const record = await this.#readKept(path);
      if (record?.etag !== VERIFIED) continue;
      const help = `an old index may have been replayed; if the registry was reset, delete ${path}`;
      if (now === undefined) {
        throw fail(
          "registry.rollback",
          `${this.name} no longer lists ${id} ${before.version}, which it listed before`,
          {
            help,
          },
        );
      }
      const signed = artifactOf(record.bytes);
      if (signed === undefined || signed === now.artifact.digest) continue;
      throw fail(
        "integrity.republished",
        `${this.name} offers ${now.artifact.digest} as ${id} ${before.version}, for which it signed ${signed}`,
        { help },
      );
    }
  }

  #recordPath(packageId: string, version: string): string {
    return this.#keptPath("records", this.#recordUrl(packageId, version));
  }

  #recordUrl(packageId: string, version: string): string {
    return `${this.name}/api/packages/${encodeURIComponent(packageId)}/versions/${encodeURIComponent(version)}`;
  }

  /**
   * The signed record of a release, as unchecked bytes; undefined when the registry has none. Records never change, so
   * one that was verified before is used unless `fresh` is set.
   */
  async record(
    packageId: string,
    version: string,
    fresh = false,
  ): Promise<{ readonly bytes: Uint8Array; readonly isKept: boolean } | undefined> {
    const kept = await this.#readKept(this.#recordPath(packageId, version));
    if (kept?.etag === VERIFIED && !fresh) return { bytes: kept.bytes, isKept: true };
    if (this.#options.offline === true) {
      throw fail(
        "registry.offline",
        `the record of ${packageId} ${version} is not cached, and --offline forbids fetching it`,
      );
    }
    const url = this.#recordUrl(packageId, version);
    const answer = await this.#get(url, "application/json", MAX_ANSWER_BYTES);
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw unexpected(url, answer);
    return { bytes: answer.bytes, isKept: false };
  }

  /** The release notes of a version; undefined if there are none, or if the registry cannot say now. */
  async notes(packageId: string, version: string): Promise<string | undefined> {
    try {
      const record = await this.record(packageId, version);
      if (record === undefined) return undefined;
      const { notes } = parsed(record.bytes, this.name, { type: "object" }) as JsonObject;
      return typeof notes === "string" && notes.length <= MAX_NOTES_BYTES ? notes : undefined;
    } catch (error) {
      if (error instanceof ProjectError) return undefined;
      throw error;
    }
  }

  /** Keeps a record whose signature has been verified. */
  async keepRecord(packageId: string, version: string, bytes: Uint8Array): Promise<void> {
    await this.#keep(this.#recordPath(packageId, version), { bytes, etag: VERIFIED });
  }

  /** The registry's signing keys, as unchecked bytes; undefined when it has none. */
  async keys(): Promise<Uint8Array | undefined> {
    const url = `${this.name}/api/keys`;
    const answer = await this.#get(url, "application/json", 1 << 16);
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw unexpected(url, answer);
    return answer.bytes;
  }

  /** An answer of the API, as unchecked bytes; undefined when the registry has no such address. */
  async answerTo(path: string): Promise<Uint8Array | undefined> {
    const url = `${this.name}/api/${path}`;
    const answer = await this.#get(url, "application/json", MAX_LOG_ANSWER_BYTES);
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw unexpected(url, answer);
    return answer.bytes;
  }

  /** The proof that the log has a release in its first `size` entries, unchecked; undefined when it has not. */
  async inclusion(packageId: string, version: string, size: number): Promise<Uint8Array | undefined> {
    const release = `${encodeURIComponent(packageId)}/versions/${encodeURIComponent(version)}`;
    return await this.answerTo(`packages/${release}/inclusion?size=${size}`);
  }

  async archive(release: Release): Promise<Uint8Array> {
    const { digest, size } = release.artifact;
    if (this.#options.offline === true) {
      throw fail(
        "registry.offline",
        `the archive of ${release.package} ${release.version} is not in the cache, and --offline forbids fetching it`,
      );
    }
    const url = `${this.name}/api/blobs/sha256/${digest.slice("sha256:".length)}`;
    // The size may come from a lockfile or an index of anyone.
    const answer = await this.#get(url, undefined, Math.min(size, ARCHIVE_LIMITS.packedBytes));
    if (answer.status !== 200) throw unexpected(url, answer);
    return answer.bytes;
  }

  /** Plugins that provide a contract, for error messages; empty when the registry cannot say. */
  async providers(contract: string): Promise<string[]> {
    if (this.#options.offline === true) return [];
    try {
      const answer = await this.#get(
        `${this.name}/api/contracts/${encodeURIComponent(contract)}/providers`,
        "application/json",
        1 << 18,
      );
      if (answer.status !== 200) return [];
      const { providers } = parsed(answer.bytes, this.name, PROVIDERS_SCHEMA) as unknown as {
        readonly providers: readonly { readonly id: string }[];
      };
      return providers.slice(0, 10).map(({ id }) => id);
    } catch {
      return [];
    }
  }

  /** Packages that fit words, the best first; at most 50. */
  async search(words: string): Promise<{ readonly packages: readonly FoundPackage[]; readonly total: number }> {
    if (this.#options.offline === true) {
      throw fail("registry.offline", "searching needs the network, and --offline forbids it");
    }
    const url = `${this.name}/api/packages?q=${encodeURIComponent(words.slice(0, 100))}&limit=50`;
    const answer = await this.#get(url, "application/json", MAX_ANSWER_BYTES);
    if (answer.status !== 200) throw unexpected(url, answer);
    const found = parsed(answer.bytes, url, FOUND_SCHEMA, "list") as unknown as {
      readonly packages: readonly FoundPackage[];
      readonly total: number;
    };
    const packages = found.packages.map(({ name, version, description }) => ({ name, version, description }));
    return { packages, total: found.total };
  }

  /** Reports an installation: once, within two seconds, failures ignored. True when it was counted. */
  async reportInstall(packageId: string, version: string): Promise<boolean> {
    if (this.#options.offline === true) return false;
    const url = `${this.name}/api/packages/${encodeURIComponent(packageId)}/installs`;
    try {
      const response = await (this.#options.fetch ?? fetch)(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ version }),
        redirect: "error",
        signal: AbortSignal.timeout(2000),
      });
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false;
    }
  }

  /** Publishes an archive; true when it is new, false when the registry already had these very bytes. */
  async publish(packageId: string, version: string, archive: Uint8Array): Promise<{ created: boolean; url: string }> {
    const url = `${this.name}/api/packages/${encodeURIComponent(packageId)}/versions/${encodeURIComponent(version)}`;
    const { createHash } = await import("node:crypto");
    const digest = createHash("sha256").update(archive).digest("base64");
    const answer = await this.#change("PUT", url, new Uint8Array(archive), {
      "content-type": "application/gzip",
      "content-digest": `sha-256=:${digest}:`,
      "if-none-match": "*",
    });
    return { created: answer.status === 201, url };
  }

  /** What the registry says about identity tokens, as unchecked bytes; undefined when it accepts none. */
  async oidc(): Promise<Uint8Array | undefined> {
    return await this.answerTo("oidc");
  }

  /** Exchanges an identity token for one of the registry; the answer, as unchecked bytes. */
  async exchangeIdentity(token: string, packageId: string): Promise<Uint8Array> {
    const body = JSON.stringify({ token, package: packageId });
    const headers = { "content-type": "application/json" };
    return (await this.#send("POST", `${this.name}/api/oidc/token`, body, headers)).bytes;
  }

  /** The trusted publishers of the token's account, as unchecked bytes. */
  async publishers(): Promise<Uint8Array> {
    return (await this.#change("GET", `${this.name}/api/trusted-publishers`)).bytes;
  }

  /** Adds a trusted publisher; the answer, as unchecked bytes. */
  async addPublisher(publisher: JsonObject): Promise<Uint8Array> {
    const headers = { "content-type": "application/json" };
    return (await this.#change("POST", `${this.name}/api/trusted-publishers`, JSON.stringify(publisher), headers))
      .bytes;
  }

  /** Removes a trusted publisher. */
  async removePublisher(id: string): Promise<void> {
    await this.#change("DELETE", `${this.name}/api/trusted-publishers/${encodeURIComponent(id)}`);
  }

  /** The offers of packages that the token's account made or got, as unchecked bytes. */
  async transfers(): Promise<Uint8Array> {
    return (await this.#change("GET", `${this.name}/api/transfers`)).bytes;
  }

  /** Offers a package to another account. */
  async offerTransfer(packageId: string, account: string): Promise<void> {
    const headers = { "content-type": "application/json" };
    const url = `${this.name}/api/packages/${encodeURIComponent(packageId)}/transfer`;
    await this.#change("POST", url, JSON.stringify({ account }), headers);
  }

  /** Accepts the offer of a package, or withdraws or declines it. */
  async answerTransfer(packageId: string, isAccepted: boolean): Promise<void> {
    const url = `${this.name}/api/packages/${encodeURIComponent(packageId)}/transfer`;
    if (isAccepted) await this.#change("POST", `${url}/accept`);
    else await this.#change("DELETE", url);
  }

  /** Uses another token for changes. */
  useToken(token: string): void {
    this.#token = token;
  }

  /** Yanks a release, or un-yanks it when there is no reason. */
  async yank(packageId: string, version: string, yank?: Pick<Yank, "reason" | "severity">): Promise<void> {
    const release = `${encodeURIComponent(packageId)}/versions/${encodeURIComponent(version)}`;
    const url = `${this.name}/api/packages/${release}/yank`;
    if (yank === undefined) await this.#change("DELETE", url);
    else await this.#change("POST", url, JSON.stringify(yank), { "content-type": "application/json" });
  }

  /** Deprecates a package or one version of it, or takes that back when there is no message. */
  async deprecate(packageId: string, version: string | undefined, message: string | undefined): Promise<void> {
    const url = `${this.name}/api/packages/${encodeURIComponent(packageId)}/deprecation`;
    if (message === undefined) {
      await this.#change("DELETE", version === undefined ? url : `${url}?version=${encodeURIComponent(version)}`);
      return;
    }
    const body = JSON.stringify({ message, ...(version === undefined ? {} : { version }) });
    await this.#change("POST", url, body, { "content-type": "application/json" });
  }

  /** Sends a change, or a question about the account, with the token. */
  async #change(
    method: "GET" | "PUT" | "POST" | "DELETE",
    url: string,
    body?: BodyInit,
    headers: { readonly [name: string]: string } = {},
  ): Promise<Answer> {
    const token = this.#token;
    if (token === undefined) {
      throw fail("auth.missing", `${this.name} requires a token for changes`, {
        help: "run `waft login`, or set WAFT_TOKEN to a token of that registry",
      });
    }
    return await this.#send(method, url, body, { ...headers, authorization: `Bearer ${token}` });
  }

  /** Sends a request with a secret, which follows no redirect. */
  async #send(
    method: "GET" | "PUT" | "POST" | "DELETE",
    url: string,
    body: BodyInit | undefined,
    headers: { readonly [name: string]: string },
  ): Promise<Answer> {
    let response: Response;
    try {
      response = await (this.#options.fetch ?? fetch)(url, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
        redirect: "error",
        signal: AbortSignal.timeout(120_000),
      });
    } catch (error) {
      throw unreachable(url, error);
    }
    const answer = { status: response.status, bytes: await readBody(response, 1 << 20, url) };
    if (!response.ok) throw unexpected(url, answer);
    return answer;
  }

  async #get(url: string, type: string | undefined, maxBytes: number, etag?: string): Promise<Answer> {
    const send = this.#options.fetch ?? fetch;
    const signal = AbortSignal.timeout(this.#options.timeoutMs ?? 30_000);
    const headers: { [name: string]: string } = { accept: type ?? "*/*" };
    if (etag !== undefined && etag !== "") headers["if-none-match"] = etag;
    let at = url;
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      let response: Response;
      try {
        response = await send(at, { headers, redirect: "manual", signal });
        for (let retry = 0; retry < MAX_RETRIES && await mayRetry(response, signal); retry++) {
          response = await send(at, { headers, redirect: "manual", signal });
        }
      } catch (error) {
        throw unreachable(url, error);
      }
      const target = response.headers.get("location");
      if ([301, 302, 303, 307, 308].includes(response.status) && target !== null) {
        await response.body?.cancel();
        const next = URL.canParse(target, at) ? new URL(target, at) : undefined;
        if (next?.origin !== new URL(url).origin) {
          throw fail("registry.redirect", `${url} redirects to another host, ${redirectPlace(next, target)}`, {
            help: "use that registry's own address if you trust it",
          });
        }
        at = next.href;
        continue;
      }
      const given = response.headers.get("content-type") ?? "no content type";
      if (response.status === 200 && type !== undefined && given.split(";")[0].trim().toLowerCase() !== type) {
        await response.body?.cancel();
        throw fail("registry.answer", `${url} answers with ${quote(given, 80)}, not ${type}`, {
          help: "is this address a plugin registry?",
        });
      }
      const bytes = await readBody(response, maxBytes, url);
      const tag = response.headers.get("etag");
      return { status: response.status, bytes, ...(tag === null ? {} : { etag: tag }) };
    }
    throw fail("registry.redirect", `${url} redirects more than ${MAX_REDIRECTS} times`);
  }

  #keptPath(kind: string, url: string): string {
    return join(this.#options.paths.cache, kind, digestBytes(new TextEncoder().encode(url)).slice("sha256:".length));
  }

  /** An answer kept on disk: the ETag in the first line, then the body. */
  async #readKept(path: string): Promise<{ etag: string; bytes: Uint8Array } | undefined> {
    const bytes = await this.#files.read(path, MAX_INDEX_BYTES + 1024);
    const end = bytes?.indexOf(0x0a) ?? -1;
    if (bytes === undefined || end < 0 || end > 500) return undefined;
    return { etag: new TextDecoder().decode(bytes.subarray(0, end)), bytes: bytes.subarray(end + 1) };
  }

  async #keep(path: string, answer: Pick<Answer, "bytes" | "etag">): Promise<void> {
    // An answer is kept whatever its ETag: it is the machine's memory of the releases that exist.
    const given = answer.etag ?? "";
    const etag = given.length > 400 || /[^\x20-\x7e]/.test(given) ? "" : given;
    const line = new TextEncoder().encode(`${etag}\n`);
    const bytes = new Uint8Array(line.length + answer.bytes.length);
    bytes.set(line);
    bytes.set(answer.bytes, line.length);
    try {
      await this.#files.makeDirectory(join(path, ".."), OWN_DIRECTORY_MODE);
      await replaceWhole(this.#files, path, bytes);
    } catch (error) {
      // A read-only or full cache costs round trips, not correctness.
      if (
        !["EACCES", "EROFS", "EPERM", "ENOSPC", "EDQUOT"].includes(errorCode(error) ?? "")
      ) {
        throw error;
      }
    }
  }
}

/** Reads at most `maxBytes`; more is an error before it is in memory. */
async function readBody(response: Response, maxBytes: number, url: string): Promise<Uint8Array> {
  const said = Number(response.headers.get("content-length") ?? "0");
  const parts: Uint8Array[] = [];
  let length = 0;
  if (said > maxBytes) {
    await response.body?.cancel();
    throw fail("registry.answer", `${url} answers with ${said} bytes; at most ${maxBytes} are read`);
  }
  try {
    const reader = response.body?.getReader();
    while (reader !== undefined) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > maxBytes) {
        await reader.cancel();
        throw fail("registry.answer", `${url} answers with more than ${maxBytes} bytes`);
      }
      parts.push(value);
    }
  } catch (error) {
    if (error instanceof ProjectError) throw error;
    throw unreachable(url, error);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function unreachable(url: string, error: unknown): ProjectError {
  const timeout = (error as { readonly name?: string }).name === "TimeoutError";
  const { cause } = error as { readonly cause?: { readonly code?: string; readonly message?: string } };
  const reason = timeout ? "timed out" : cause?.code ??
    cause?.message?.replace(/^error sending request for url \(.*?\): (?:client error \(\w+\): )?/, "") ??
    (error instanceof Error ? error.message : String(error));
  return fail("registry.unreachable", `${url}: ${quote(reason, 200).slice(1, -1)}`, {
    help: "check the network, or use --offline with what is cached",
  });
}

/**
 * Waits as long as a busy registry asks for (RFC 9110, 10.2.3), and discards its answer. False, at once, for any other
 * answer and for a longer wait than MAX_RETRY_MS. Rejects when `signal` aborts.
 */
async function mayRetry(response: Response, signal: AbortSignal): Promise<boolean> {
  const after = response.headers.get("retry-after") ?? "";
  if ((response.status !== 429 && response.status !== 503) || !/^\d{1,6}$/.test(after)) return false;
  const ms = Number(after) * 1000;
  if (ms > MAX_RETRY_MS) return false;
  await response.body?.cancel();
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
  return true;
}

/** The finding for a status that is neither success nor "not found"; reads RFC 9457 problem documents. */
function unexpected(url: string, answer: Answer): ProjectError {
  let detail = "";
  const errors: Diagnostic[] = [];
  try {
    const problem = JSON.parse(new TextDecoder().decode(answer.bytes)) as JsonObject;
    detail = [problem.title, problem.detail].filter((t) => typeof t === "string").map((t) =>
      quote(t as string, 300).slice(1, -1)
    ).join(": ");
    for (const e of Array.isArray(problem.errors) ? problem.errors.slice(0, 50) : []) {
      const { pointer, detail } = e as { readonly pointer?: JsonValue; readonly detail?: JsonValue };
      errors.push({
        code: "registry.rejected",
        severity: "error",
        message: quote(String(detail), 300).slice(1, -1),
        ...(typeof pointer === "string" ? { pointer } : {}),
      });
    }
  } catch {
    // No problem document.
  }
  const { status } = answer;
  const code = status === 401 || status === 403
    ? "auth.refused"
    : status === 404
    ? "registry.not-found"
    : status === 409
    ? "registry.exists"
    : status === 410
    ? "registry.removed"
    : status === 422
    ? "registry.rejected"
    : status === 429
    ? "registry.busy"
    : "registry.answer";
  return new ProjectError([{
    code,
    severity: "error",
    message: `${url} answers ${status}${detail === "" ? "" : `: ${detail}`}`,
  }, ...errors]);
}

/** The digest of the archive that a record is about; undefined for a damaged one. */
function artifactOf(record: Uint8Array): string | undefined {
  try {
    const signed = JSON.parse(new TextDecoder().decode(record)) as {
      readonly record: { readonly artifact: { readonly digest: string } };
    };
    return signed.record.artifact.digest;
  } catch {
    return undefined;
  }
}

/** Checks an index document and returns its releases. */
export function parseIndex(bytes: Uint8Array, id: string, url: string): Release[] {
  const index = parsed(bytes, url, INDEX_SCHEMA, "index") as unknown as {
    readonly id: string;
    readonly package: string;
    readonly releases: readonly Release[];
  };
  if (index.id !== id || (index.package !== id && !id.startsWith(`${index.package}/`))) {
    throw fail(
      "registry.answer",
      `${url} answers with the index of ${quote(index.id)} in package ${quote(index.package)}`,
    );
  }
  const seen = new Set<string>();
  return index.releases.map((release) => {
    if (!isCanonicalVersion(release.version)) {
      throw fail("registry.answer", `${url} lists ${quote(release.version, 60)}, which is not a version`);
    }
    if (seen.has(release.version)) throw fail("registry.answer", `${url} lists ${release.version} twice`);
    seen.add(release.version);
    return { ...release, id, package: index.package };
  });
}
