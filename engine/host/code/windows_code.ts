/**
 * The data of the host's machine code on Windows x64 (generated_windows_code.ts): words of memory through which it
 * calls functions of Windows, and the code that contains addresses: the handler that commits memory, and the starts of
 * threads.
 */
import { fromBase64 } from "../../base/base64.ts";
import { COMMIT, WINDOWS_THREAD_START } from "./generated_windows_code.ts";

/** The functions that the watchdog calls, in the order of their words from FUNCTIONS on. */
export const WINDOWS_WATCHDOG_FUNCTIONS = [
  "RtlWaitOnAddress",
  "WakeByAddressSingle",
  "VirtualProtect",
  "QueryUnbiasedInterruptTimePrecise",
] as const;

/** Byte offsets in the watchdog's state, behind the words of watchdog.ts. */
export const WINDOWS_WATCH = { OLD_PROTECTION: 72, FUNCTIONS: 80 } as const;

/**
 * Protections that mark the reservations of waft that are committed on access: no committed page of these reservations
 * ever has them. Reservations of other code must not be touched, because their owners rely on faults: JavaScriptCore
 * reserves WebAssembly memories as PAGE_READWRITE, and its bounds checks are faults on reserved pages.
 */
export const COMMITTED_ON_ACCESS = { READ_WRITE: 0x20, READ_ONLY: 0x10 } as const; // PAGE_EXECUTE_READ, PAGE_EXECUTE

/** The functions whose addresses follow the handler's code, one word each. */
export const COMMIT_FUNCTIONS = ["VirtualQuery", "VirtualAlloc"] as const;

/** Code, base 64, with addresses in the words from the offset `at` on. */
function withAddresses(code: string, at: number, addresses: readonly number[]): Uint8Array<ArrayBuffer> {
  const bytes = fromBase64(code);
  const view = new DataView(bytes.buffer);
  addresses.forEach((address, k) => view.setBigUint64(at + 8 * k, BigInt(address), true));
  return bytes;
}

/** The exception handler that commits memory, with the addresses of its functions. */
export function commitHandler(functions: readonly number[]): Uint8Array<ArrayBuffer> {
  const { code, labels: { query } } = COMMIT.x64;
  return withAddresses(code, query, functions);
}

/** The start of threads that run the code at `address`, which follows System V, with their argument. */
export function threadStart(address: number): Uint8Array<ArrayBuffer> {
  const { code, labels } = WINDOWS_THREAD_START.x64;
  return withAddresses(code, labels.code, [address]);
}

/** Byte offsets in the block of the routine that calls a function with eleven integers, and GetLastError after it. */
export const WINDOWS_BLOCK = {
  FUNCTION: 0,
  ARGUMENTS: 8,
  RESULT: 96,
  GET_LAST_ERROR: 104,
  ERROR: 112,
  SIZE: 120,
} as const;
