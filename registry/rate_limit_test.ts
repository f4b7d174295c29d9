/** Rate limits keep their counts apart when more addresses come than are counted one by one. */
import assert from "node:assert/strict";
import { enclosingNetworks, rateAddress } from "./addresses.ts";
import { Problem } from "./problem.ts";
import { type RateKind, RateLimiter } from "./rate_limit.ts";

const LIMITS = { read: 600, search: 60, write: 30, installs: 30, refused: 20 } as ConstructorParameters<
  typeof RateLimiter
>[0];

/** The number of `count` requests that are answered. */
function answered(limiter: RateLimiter, kind: RateKind, count: number, address: (k: number) => string): number {
  let done = 0;
  for (let k = 0; k < count; k++) {
    try {
      limiter.take(kind, rateAddress(address(k)));
      done++;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
  }
  return done;
}

Deno.test("rate limits: an address is counted with its networks, /24 and /16, or /48 and /32", () => {
  assert.deepEqual(enclosingNetworks(rateAddress("198.51.100.7")), ["198.51.100", "198.51"]);
  assert.deepEqual(enclosingNetworks(rateAddress("::ffff:198.51.100.7")), ["198.51.100", "198.51"]);
  assert.deepEqual(enclosingNetworks(rateAddress("2001:DB8:1:2::5")), ["2001:db8:1", "2001:db8"]);
  assert.deepEqual(enclosingNetworks(rateAddress("::1")), ["0:0:0", "0:0"]);
  assert.deepEqual(enclosingNetworks(rateAddress("no address")), []);
});

Deno.test("rate limits: a client with a million networks uses up the counts of its own networks only", () => {
  let now = 1_000_000;
  const limiter = new RateLimiter(LIMITS, () => now);
  const early = () => answered(limiter, "read", 1, () => "198.51.100.7");
  assert.equal(early(), 1);
  const network = (k: number) => `2001:db8:${(k >> 16).toString(16)}:${(k & 0xffff).toString(16)}::1`;
  assert.equal(
    answered(limiter, "read", 100_700, network),
    99_999 + 600,
    "the /48 of those that are not counted alone",
  );
  assert.equal(answered(limiter, "read", 1000, network), 1000, "those that are go on");
  // Clients that came before, and new ones of other networks, are served.
  assert.equal(early(), 1);
  assert.equal(answered(limiter, "read", 600, () => "198.51.100.7"), 598, "up to their limit");
  for (const address of ["203.0.113.9", "2001:db9::1", "no address"]) {
    assert.equal(answered(limiter, "read", 700, () => address), 600, address);
  }
  assert.equal(answered(limiter, "search", 100, () => "203.0.113.9"), 60, "each kind for itself");
  now += 60_000;
  assert.equal(answered(limiter, "read", 100_000, network), 100_000, "a new window");
});

Deno.test("rate limits: networks that are too many share the count of a larger one, and memory is bounded", () => {
  const limiter = new RateLimiter(LIMITS, () => 1_000_000);
  // 2^18 networks of 48 bits in four of 32 bits.
  const network = (k: number) => `2001:${(k >> 16).toString(16)}:${(k & 0xffff).toString(16)}::1`;
  answered(limiter, "read", 200_000, network);
  assert.equal(answered(limiter, "read", 2000, (k) => network(200_000 + k)), 600, "one /32");
  assert.equal(answered(limiter, "read", 700, () => "203.0.113.9"), 600);
});
