/**
 * Calls of C functions with the error number as part of the result. In: addresses of functions and integer arguments.
 * Out: the result, or −errno when the function returned −1.
 *
 * One piece of machine code makes the call and reads errno, because the JavaScript runtime may make calls of its own
 * between two foreign calls. Arguments and results are words of a block outside the JavaScript heap. On arm64, macOS
 * passes variadic arguments on the stack (Apple, "Writing ARM64 code for Apple platforms"), so the block has a word for
 * one; functions without variadic arguments ignore it.
 */
import { fromBase64 } from "../../base/base64.ts";
import { C_CALL } from "../code/generated_code.ts";
import { type Host, PROT } from "../host.ts";
import { isPosix } from "../systems/systems.ts";

/** Byte offsets in the block. */
export const BLOCK = {
  FUNCTION: 0,
  ARGUMENTS: 8,
  /** The argument that arm64 passes on the stack. */
  VARIADIC: 56,
  RESULT: 64,
  /** Not 0 if the function returns an int, whose upper half is undefined. */
  IS_INT: 72,
  /** Address of the function that returns the address of errno. */
  ERRNO: 80,
  SIZE: 88,
} as const;

/** A C function: its address, whether it returns an int, and the index of its variadic argument. */
interface CFunction {
  readonly address: number;
  readonly isInt: boolean;
  readonly variadic?: number | undefined;
}

/** Calls a function with up to six integers or addresses: the result, or −errno. */
export type CCall = (fn: CFunction, args: readonly (number | bigint)[]) => number;

/** Calls through this host. Throws an Error on a system whose functions have no errno. */
export function cCalls(host: Host): CCall {
  if (!isPosix(host.system)) throw new Error(`Functions of ${host.system.title} have no errno`);
  const { errnoFunction } = host.system;
  return host.releasingOnError(() => callsThrough(host, errnoFunction));
}

function callsThrough(host: Host, errnoFunction: string): CCall {
  const base = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
  const words = new BigInt64Array(host.view(base, BLOCK.SIZE));
  words[BLOCK.ERRNO >> 3] = BigInt(host.functionAddresses([errnoFunction])[errnoFunction]);
  const { call } = host.boundCalls(fromBase64(C_CALL[host.arch].code), { call: 0 }, base);
  return ({ address, isInt, variadic }, args) => {
    words[BLOCK.FUNCTION >> 3] = BigInt(address);
    words[BLOCK.IS_INT >> 3] = isInt ? 1n : 0n;
    for (let k = 0; k < args.length; k++) words[(BLOCK.ARGUMENTS >> 3) + k] = BigInt(args[k]);
    if (variadic !== undefined) words[BLOCK.VARIADIC >> 3] = BigInt(args[variadic] ?? 0);
    call();
    return Number(words[BLOCK.RESULT >> 3]);
  };
}
