/**
 * wasi:cli, wasi:clocks and wasi:random of WASI 0.3, as far as they differ from 0.2. In: descriptors, clocks and random
 * bytes of preview 1. Out: the functions of the interfaces. Invariant: a guest that waits for a clock or a standard
 * stream leaves the thread to the event loop.
 */
import type { WasiOptions } from "@waft/engine/wasi";
import type { Outcome } from "../../async/host_streams.ts";
import { CHUNK_BYTES, type Preview1, READY_BYTES } from "../preview1.ts";
import { codeName, type End, produce, type Produced, receive } from "./streams.ts";
import type { Timers } from "./timers.ts";

/** An instant: seconds may be negative, nanoseconds are not. */
export interface Instant {
  readonly seconds: bigint;
  readonly nanoseconds: number;
}

const NANOSECONDS = 1_000_000_000n;

function instant(nanoseconds: bigint): Instant {
  return { seconds: nanoseconds / NANOSECONDS, nanoseconds: Number(nanoseconds % NANOSECONDS) };
}

/** wasi:cli/types error-code. */
function cliCode(error: unknown): string {
  const code = codeName(error);
  return code === "pipe" || code === "illegal-byte-sequence" ? code : "io";
}

const NO_BYTES = new Uint8Array(0);

function readInput(preview1: Preview1, timers: Timers): Produced<Uint8Array> {
  return produce({
    async next() {
      const waiting = timers.ready(0, false);
      if (waiting !== undefined) {
        await waiting;
        // Read by the next call, under the limits of the guest's call: another process may have taken the bytes.
        return NO_BYTES;
      }
      const bytes = preview1.read(0, CHUNK_BYTES);
      return bytes.length === 0 ? undefined : bytes;
    },
  }, cliCode);
}

/** Writes what follows the first `done` bytes, each piece when the descriptor takes it. */
function writeOutput(
  preview1: Preview1,
  timers: Timers,
  fd: number,
  bytes: Uint8Array,
  done: number = 0,
): void | Promise<void> {
  while (done < bytes.length) {
    const waiting = timers.ready(fd, true);
    if (waiting !== undefined) return waiting.then(() => writeOutput(preview1, timers, fd, bytes, done));
    preview1.write(fd, bytes.subarray(done, done += READY_BYTES));
  }
}

/** wasi:cli, wasi:clocks and wasi:random. */
export function commandInterfaces(
  preview1: Preview1,
  timers: Timers,
  { args = [], env = [] }: WasiOptions,
): Record<string, object> {
  const writeTo = (fd: number) => (data: ReadableStream<Uint8Array>): Outcome<End> =>
    receive(data, (bytes) => writeOutput(preview1, timers, fd, bytes), cliCode);
  return {
    "wasi:cli/environment@0.3.0": {
      getEnvironment: () => env.map(([name, value]) => [name, value]),
      getArguments: () => [...args],
      getInitialCwd: () => undefined,
    },
    "wasi:cli/stdin@0.3.0": { readViaStream: () => readInput(preview1, timers) },
    "wasi:cli/stdout@0.3.0": { writeViaStream: writeTo(1) },
    "wasi:cli/stderr@0.3.0": { writeViaStream: writeTo(2) },
    ...clockInterfaces(preview1, timers),
    ...randomInterfaces(preview1),
  };
}

const MAX_TIME = 2n ** 64n - 1n;

function clockInterfaces(preview1: Preview1, timers: Timers): Record<string, object> {
  return {
    "wasi:clocks/monotonic-clock@0.3.0": {
      now: () => preview1.time(1),
      getResolution: () => preview1.resolution(1),
      waitUntil: (time: bigint) => timers.until(time),
      waitFor: (duration: bigint) => {
        const time = preview1.time(1) + duration;
        return timers.until(time > MAX_TIME ? MAX_TIME : time);
      },
    },
    "wasi:clocks/system-clock@0.3.0": {
      now: () => instant(preview1.time(0)),
      getResolution: () => preview1.resolution(0),
    },
  };
}

/** Bytes that one call returns at most: guests ask again for more. */
const MAX_RANDOM_BYTES = BigInt(CHUNK_BYTES);

function randomInterfaces(preview1: Preview1): Record<string, object> {
  const bytes = (most: bigint) => preview1.random(Number(most < MAX_RANDOM_BYTES ? most : MAX_RANDOM_BYTES));
  const word = () => new DataView(preview1.random(8).buffer).getBigUint64(0);
  return {
    "wasi:random/random@0.3.0": { getRandomBytes: bytes, getRandomU64: word },
    "wasi:random/insecure@0.3.0": { getInsecureRandomBytes: bytes, getInsecureRandomU64: word },
    "wasi:random/insecure-seed@0.3.0": { getInsecureSeed: () => preview1.insecureSeed() },
  };
}
