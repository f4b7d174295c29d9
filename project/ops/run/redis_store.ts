/**
 * The store of wasi:keyvalue in a Redis server. In: the address of a database, `redis://HOST:PORT/DATABASE`, with
 * `?prefix=TEXT` for keys that begin so. Out: a store. Invariants: a guest reaches the keys with the prefix only; what
 * the server refuses or does not answer in time is an error of the guest's call.
 */
import { Buffer } from "node:buffer";
import { Redis } from "ioredis";
import { type KeyvalueStore, storeError } from "@waft/component/internal/wasi/drafts";
import { UsageError } from "../../base/failure.ts";

const TIMEOUT_MS = 5000;
/** The pause between two attempts to connect again. */
const RETRY_MS = 500;
/** Keys that one step of a search looks at, and the most that a list has. */
const SCAN_COUNT = 1000;
const MAX_LISTED = 100_000;

/** An open store. */
export interface OpenStore {
  readonly store: KeyvalueStore;
  close(): void;
}

/** Connects. Throws UsageError for an address that is none, and an Error if the server cannot be reached. */
export async function openRedis(address: string): Promise<OpenStore> {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const parameters = [...url?.searchParams.keys() ?? []];
  const isValid = /^rediss?:$/.test(url?.protocol ?? "") && /^(?:\/\d{0,5})?$/.test(url?.pathname ?? "") &&
    url?.hash === "" && parameters.every((name) => name === "prefix") && parameters.length <= 1;
  if (url === undefined || !isValid) {
    throw new UsageError("--keyvalue-redis takes redis://HOST:PORT/DATABASE or rediss://…, and ?prefix=TEXT behind it");
  }
  const prefix = url.searchParams.get("prefix") ?? "";
  url.search = "";
  const client = new Redis(url.href, {
    lazyConnect: true,
    enableOfflineQueue: false,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => RETRY_MS,
  });
  // Calls report the reason.
  let reason = "";
  client.on("error", (error: Error) => reason = error.message);
  try {
    await client.connect();
  } catch (error) {
    client.disconnect();
    const text = reason === "" ? (error as Error).message : reason;
    throw new Error(`--keyvalue-redis: cannot reach ${url.host}: ${text}`);
  }
  return { store: new RedisStore(client, prefix), close: () => client.disconnect() };
}

class RedisStore implements KeyvalueStore {
  readonly #client: Redis;
  readonly #prefix: string;

  constructor(client: Redis, prefix: string) {
    this.#client = client;
    this.#prefix = prefix;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const value = await answered(this.#client.getBuffer(this.#prefix + key));
    return value === null ? undefined : new Uint8Array(value);
  }

  async set(key: string, value: Uint8Array): Promise<void> {
    // The guest may write to its memory before the bytes are sent.
    await answered(this.#client.set(this.#prefix + key, Buffer.from(value)));
  }

  async delete(key: string): Promise<void> {
    await answered(this.#client.del(this.#prefix + key));
  }

  async exists(key: string): Promise<boolean> {
    return await answered(this.#client.exists(this.#prefix + key)) > 0;
  }

  async keys(): Promise<string[]> {
    const pattern = `${this.#prefix.replace(/[\\*?[\]^-]/g, "\\$&")}*`;
    const found = new Set<string>();
    let cursor = "0";
    do {
      const [next, keys] = await answered(this.#client.scan(cursor, "MATCH", pattern, "COUNT", SCAN_COUNT));
      for (const key of keys) found.add(key.slice(this.#prefix.length));
      if (found.size > MAX_LISTED) throw storeError(`the store has more than ${MAX_LISTED} keys`);
      cursor = next;
    } while (cursor !== "0");
    return [...found];
  }
}

/** The answer to a command; a failure becomes an error of wasi:keyvalue. */
async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    // Errors of the client name its options.
    throw storeError(
      error instanceof Error && error.name === "ReplyError" ? error.message : "the store is unavailable",
    );
  }
}
