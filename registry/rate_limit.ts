/**
 * Rate limits: requests counted by address and kind, in windows of one minute.
 *
 * In: the client's address and the kind of request. Out: the `RateLimit` fields of the answer, or a problem 429. Each
 * process counts for itself, which keeps one address from exhausting a process; limits that hold over all processes
 * (releases of an account) are counted in the database. Memory is bounded: an address that comes after 100,000 others
 * in a window is counted with its network, and a network that comes after 100,000 others with a larger one, so that
 * one client with many addresses uses up the counts of its own networks only.
 */
import { Problem } from "./problem.ts";
import { enclosingNetworks } from "./addresses.ts";
import type { RateLimits } from "./settings.ts";

/** A kind of request. */
export type RateKind = keyof RateLimits;

const WINDOW_MS = 60_000;
/** The maximum number of counts for addresses, for networks, and for larger networks, each. */
const MAX_KEYS = 100_000;

/** Counts requests. */
export class RateLimiter {
  readonly #limits: RateLimits;
  readonly #now: () => number;
  #window = -1;
  /** Counts by kind and address, then by kind and network, the smallest networks first. */
  #counts: Map<string, number>[] = [];

  constructor(limits: RateLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Counts one request; the header fields to answer with. Throws a Problem when there were too many. */
  take(kind: RateKind, address: string): { readonly [name: string]: string } {
    const at = this.#now();
    const window = Math.floor(at / WINDOW_MS);
    if (window !== this.#window) {
      this.#window = window;
      this.#counts = [];
    }
    const used = this.#count(kind, address);
    const limit = this.#limits[kind];
    const reset = Math.max(1, Math.ceil(((window + 1) * WINDOW_MS - at) / 1000));
    const fields = {
      "ratelimit-policy": `"${kind}";q=${limit};w=60`,
      "ratelimit": `"${kind}";r=${Math.max(0, limit - used)};t=${reset}`,
    };
    if (used > limit) {
      throw new Problem("rate.limited", `more than ${limit} requests of kind ${kind} in a minute`, {
        headers: { ...fields, "retry-after": String(reset) },
      });
    }
    return fields;
  }

  /** Counts a request in the first table that has its key or room for it; the count. */
  #count(kind: RateKind, address: string): number {
    const parts = [address, ...enclosingNetworks(address), "others"];
    for (let k = 0;; k++) {
      const counts = this.#counts[k] ??= new Map();
      const key = `${kind} ${parts[k]}`;
      const used = counts.get(key);
      if (used === undefined && counts.size >= MAX_KEYS && k < parts.length - 1) continue;
      counts.set(key, (used ?? 0) + 1);
      return (used ?? 0) + 1;
    }
  }
}
