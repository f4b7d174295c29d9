/**
 * Rate limits: requests counted by address and kind, in windows of one minute.
 *
 * In: the client's address and the kind of request. Out: the `RateLimit` fields of the answer, or a problem 429. Each
 * process counts for itself, which keeps one address from exhausting a process; limits that hold over all processes
 * (releases of an account) are counted in the database. Memory is bounded: beyond 100,000 addresses, further ones share
 * one count.
 */
import { Problem } from "./problem.ts";
import type { RateLimits } from "./settings.ts";

/** A kind of request. */
export type RateKind = keyof RateLimits;

const WINDOW_MS = 60_000;
const MAX_KEYS = 100_000;

/** Counts requests. */
export class RateLimiter {
  readonly #limits: RateLimits;
  readonly #now: () => number;
  #window = -1;
  #counts = new Map<string, number>();

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
      this.#counts = new Map();
    }
    const key = this.#counts.size < MAX_KEYS ? `${kind} ${address}` : `${kind} others`;
    const used = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, used);
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
}
