/**
 * A plugin's access to the guest's command line and the machine: arguments, named variables, clocks, random bytes,
 * standard streams.
 *
 * In: a plugin and its grants. Out: the functions of `waft:guest@1`, `waft:clock-wall@1`,
 * `waft:clock-monotonic@1`, `waft:random@1` and `waft:stdio@1`. Scopes narrow: variables by name, clocks by resolution,
 * streams by name.
 */
import { ERRNO } from "@waft/engine/internal/wasi/abi";
import { WasiError } from "@waft/engine/internal/wasi/paths";
import { STATUS } from "../definitions/authorities.ts";
import type { JsonObject } from "../base/json_read.ts";
import { type HostFunctionGroup, StatusError } from "./node.ts";
import { pay, readStream, writeStream } from "./system.ts";

const encode = (text: string): Uint8Array => {
  pay(text.length);
  return new TextEncoder().encode(text);
};

/** Functions of `waft:guest@1`: the guest's own arguments and environment, never those of the process. */
export const guestFunctions: HostFunctionGroup = (node, grants) => {
  const { args, env } = node.services;
  const names = new Set((grants["guest.env"]?.names as string[] | undefined) ?? []);
  const argument = (index: number): Uint8Array => {
    const text = args[index >>> 0];
    if (text === undefined) throw new StatusError(STATUS.missing);
    return encode(text);
  };
  const variable = (at: number, length: number): Uint8Array => {
    const name = node.memory.text(at, length);
    if (!names.has(name)) throw new StatusError(STATUS.denied);
    const found = env.findLast(([known]) => known === name);
    if (found === undefined) throw new StatusError(STATUS.missing);
    return encode(found[1]);
  };
  return {
    "args-count": () => args.length,
    "arg-size": (index: number) => argument(index).length,
    "arg-read": (index: number, at: number, room: number) => node.memory.fill(at, room, argument(index)),
    "env-size": (name: number, length: number) => variable(name, length).length,
    "env-read": (name: number, length: number, at: number, room: number) =>
      node.memory.fill(at, room, variable(name, length)),
  };
};

/** A clock of a plugin, in nanoseconds. */
interface Clock {
  readonly now: () => bigint;
  readonly resolution: () => bigint;
}

/** A clock whose readings are multiples of its granted resolution, and never finer than the source. */
export function grantedClock(scope: JsonObject | undefined, source: () => bigint, finest: bigint): Clock {
  const granted = BigInt((scope?.resolutionNs as number | undefined) ?? 1);
  const step = granted > finest ? granted : finest;
  return { now: () => source() / step * step, resolution: () => step };
}

/** The time of day with a granted scope: nanoseconds since 1970. */
export function wallClock(scope: JsonObject | undefined): Clock {
  return grantedClock(scope, () => BigInt(Date.now()) * 1_000_000n, 1_000_000n);
}

/** Functions of `waft:clock-wall@1`. */
export const wallClockFunctions: HostFunctionGroup = (_node, grants) => ({ ...wallClock(grants["clock.wall"]) });

const STARTED = process.hrtime.bigint();

/** Functions of `waft:clock-monotonic@1`: nanoseconds since some moment of this process. */
export const monotonicClockFunctions: HostFunctionGroup = (_node, grants) => ({
  ...grantedClock(grants["clock.monotonic"], () => process.hrtime.bigint() - STARTED, 1n),
});

/** Functions of `waft:random@1`. */
export const randomFunctions: HostFunctionGroup = (node) => ({
  fill: (at: number, length: number) => {
    const bytes = node.memory.bytes(at, length);
    // The platform returns at most this many bytes at a time, and only into its own memory.
    const chunk = new Uint8Array(Math.min(bytes.length, 65536));
    for (let done = 0; done < bytes.length; done += chunk.length) {
      const part = chunk.subarray(0, bytes.length - done);
      pay(part.length);
      crypto.getRandomValues(part);
      bytes.set(part, done);
    }
    return STATUS.ok;
  },
});

/** Maximum bytes that a call moves. */
const MAX_TRANSFER = 1 << 20;

/** Functions of `waft:stdio@1`. Streams: 0 stdin, 1 stdout, 2 stderr. */
export const stdioFunctions: HostFunctionGroup = (node, grants) => {
  const streams = new Set((grants.stdio?.streams as string[] | undefined) ?? []);
  const { stdio } = node.services;
  return {
    read: (at: number, room: number) => {
      if (!streams.has("stdin")) throw new StatusError(STATUS.denied);
      const address = node.memory.address(at, room);
      return transfer(() => readStream(stdio[0], address, Math.min(room >>> 0, MAX_TRANSFER)));
    },
    write: (stream: number, at: number, length: number) => {
      const name = ["stdin", "stdout", "stderr"][stream >>> 0];
      if (name === undefined || stream === 0) throw new StatusError(STATUS.invalid);
      if (!streams.has(name)) throw new StatusError(STATUS.denied);
      const address = node.memory.address(at, length);
      return transfer(() => writeStream(stdio[stream === 1 ? 1 : 2], address, Math.min(length >>> 0, MAX_TRANSFER)));
    },
  };
};

/** Runs a transfer; failures of the system become statuses. */
function transfer(move: () => number): number {
  try {
    return move();
  } catch (error) {
    if (!(error instanceof WasiError)) throw error;
    throw new StatusError(error.errno === ERRNO.pipe ? STATUS.closed : STATUS.failed);
  }
}
