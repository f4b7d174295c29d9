/**
 * WASI functions on the process: arguments, environment, exit and random bytes. In: the strings visible to the guest.
 * Out: their encoded forms in the guest's memory, each terminated by a zero byte.
 */
import { ERRNO, errnoOf } from "./abi.ts";
import type { WasiState } from "./functions.ts";
import { WasiExit } from "./wasi_exit.ts";
import { checked } from "./wasi_error.ts";

const ENCODER = new TextEncoder();
/** Maximum number of random bytes per system call; the deadline is checked between two calls. */
const RANDOM_CHUNK_BYTES = 1 << 18;

/** The price of writing a string, beside that of its bytes, as that of so many bytes moved. */
const STRING_COST = 64;

/** Strings as args_get and environ_get write them. */
class StringList {
  readonly #state: WasiState;
  readonly #encoded: readonly Uint8Array[];
  readonly #bytes: number;

  constructor(state: WasiState, strings: readonly string[]) {
    this.#state = state;
    this.#encoded = strings.map((text) => ENCODER.encode(requireNoZero(text) + "\0"));
    this.#bytes = this.#encoded.reduce((sum, bytes) => sum + bytes.length, 0);
  }

  writeSizes(countAt: number, bytesAt: number): number {
    const { memory } = this.#state;
    memory.setU32(countAt, this.#encoded.length);
    memory.setU32(bytesAt, this.#bytes);
    return 0;
  }

  write(pointersAt: number, bufferAt: number): number {
    const { memory, waits } = this.#state;
    waits.charge(this.#encoded.length * STRING_COST + this.#bytes);
    let at = bufferAt;
    this.#encoded.forEach((bytes, i) => {
      memory.setU32(pointersAt + i * 4, at);
      memory.bytes(at, bytes.length).set(bytes);
      at += bytes.length;
    });
    return 0;
  }
}

function requireNoZero(text: string): string {
  if (text.includes("\0")) throw new Error("Arguments and environment variables cannot contain NUL");
  return text;
}

/** The functions args_*, environ_*, proc_* and random_get. */
export class ProcessFunctions {
  readonly #state: WasiState;
  readonly #args: StringList;
  readonly #environ: StringList;

  constructor(state: WasiState, args: readonly string[], env: readonly (readonly [string, string])[]) {
    this.#state = state;
    this.#args = new StringList(state, args);
    this.#environ = new StringList(state, env.map(([name, value]) => `${name}=${value}`));
  }

  args_sizes_get(countAt: number, bytesAt: number): number {
    return this.#args.writeSizes(countAt >>> 0, bytesAt >>> 0);
  }

  args_get(pointersAt: number, bufferAt: number): number {
    return this.#args.write(pointersAt >>> 0, bufferAt >>> 0);
  }

  environ_sizes_get(countAt: number, bytesAt: number): number {
    return this.#environ.writeSizes(countAt >>> 0, bytesAt >>> 0);
  }

  environ_get(pointersAt: number, bufferAt: number): number {
    return this.#environ.write(pointersAt >>> 0, bufferAt >>> 0);
  }

  proc_exit(status: number): never {
    throw new WasiExit(status >>> 0);
  }

  proc_raise(): number {
    return ERRNO.nosys;
  }

  random_get(at: number, length: number): number {
    const { sys, memory, waits } = this.#state;
    let address = memory.address(at >>> 0, length >>> 0);
    for (let left = length >>> 0; left > 0;) {
      waits.check();
      const got = sys("getrandom", address, Math.min(left, RANDOM_CHUNK_BYTES), 0);
      if (errnoOf(got) === ERRNO.intr) continue;
      checked(got);
      waits.charge(got);
      address += got;
      left -= got;
    }
    return 0;
  }
}
