/**
 * Replays of recordings. In: the path of a log. Out: the end of the run as text, and the output of the program, which
 * the replay reads from the memory of the guest where WASI wrote it to stdout and stderr.
 */
import { TrapError } from "@waft/engine";
import { replay, type ReplayedHostCall, type ReplayEnd, type ReplayOptions } from "@waft/engine/recording";
import { valueText } from "@waft/engine/internal/recording/value_text";
import { isRef, type ValType } from "@waft/engine/internal/wasm/types";
import { WasiExit } from "@waft/engine/wasi";
import { FileFailure, GuestExit } from "../../base/failure.ts";
import { printResult } from "./arguments.ts";
import { readInput } from "../tools/read_input.ts";
import { WASI } from "./run_module.ts";

/** The end of a replay, for people and for `--json`. */
export interface ReplayedRun {
  readonly outcome: "returned" | "trapped" | "exited" | "failed";
  /** The results of the last call, one text each. */
  readonly results: readonly string[];
  /** The error's message, unless the run returned or exited. */
  readonly message?: string;
  /** The exit status of a program that exited. */
  readonly status?: number;
  readonly calls: number;
  readonly hostCalls: number;
  readonly fuel: string;
  readonly hash: string;
}

/** Receives the bytes that the program writes to a descriptor, 1 or 2. */
type Output = (descriptor: 1 | 2, bytes: Uint8Array) => void;

/** Bytes of the guest's memory that are passed on at once. */
const OUTPUT_BYTES = 1 << 16;

/** Replays `file`. Throws FileFailure if the log cannot be read or the run does not repeat. */
export function replayFile(
  file: string,
  options: ReplayOptions,
  output: Output,
): { run: ReplayedRun; error: unknown } {
  try {
    const end = replay(readInput(file), { ...options, observe: (call) => repeatOutput(call, output) });
    return { run: summary(end), error: end.error };
  } catch (error) {
    throw new FileFailure(file, error);
  }
}

/** The error by which a command reports the end of a run; undefined for a run that returned. */
export function failureOf(file: string, error: unknown): Error | undefined {
  if (error === undefined) return undefined;
  if (error instanceof WasiExit) return new GuestExit(error.status);
  return new FileFailure(file, error instanceof Error ? error : new Error(messageOf(error)));
}

/** The message of a thrown value. */
function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : `the host threw ${valueText(error)}`;
}

/** The text of a result. References to values of the host may be of any size. */
function resultText(value: unknown, type: ValType): string {
  return isRef(type) && (typeof value === "bigint" || typeof value === "string")
    ? valueText(value)
    : printResult(value, type);
}

function summary({ results, types, error, calls, hostCalls, fuel, hash }: ReplayEnd): ReplayedRun {
  return {
    ...outcomeOf(error),
    results: results.map((value, k) => resultText(value, types[k])),
    calls,
    hostCalls,
    fuel: String(fuel),
    hash,
  };
}

function outcomeOf(error: unknown): Pick<ReplayedRun, "outcome" | "message" | "status"> {
  if (error === undefined) return { outcome: "returned" };
  if (error instanceof WasiExit) return { outcome: "exited", status: error.status };
  return { outcome: error instanceof TrapError ? "trapped" : "failed", message: messageOf(error) };
}

/** Passes on the bytes that a successful fd_write of WASI wrote to stdout or stderr. */
function repeatOutput({ module, name, args, results, memory }: ReplayedHostCall, output: Output): void {
  const [descriptor, vectors, count, writtenAt] = args.map((arg) => Number(arg) >>> 0) as [
    number,
    number,
    number,
    number,
  ];
  if (module !== WASI || name !== "fd_write" || (descriptor !== 1 && descriptor !== 2)) return;
  if (results[0] !== 0 || memory === undefined) return;
  const view = new DataView(memory.buffer, memory.byteOffset, memory.byteLength);
  const fits = (at: number, bytes: number): boolean => at + bytes <= memory.length;
  if (!fits(writtenAt, 4) || !fits(vectors, count * 8)) return;
  let left = view.getUint32(writtenAt, true);
  for (let k = 0; k < count && left > 0; k++) {
    const at = view.getUint32(vectors + k * 8, true);
    const length = Math.min(view.getUint32(vectors + k * 8 + 4, true), left);
    outputRange(memory.subarray(at, at + length), descriptor, output);
    left -= length;
  }
}

/** Passes on bytes in pieces: a recording may say that the program wrote all of its memory. */
function outputRange(bytes: Uint8Array, descriptor: 1 | 2, output: Output): void {
  for (let at = 0; at < bytes.length; at += OUTPUT_BYTES) output(descriptor, bytes.slice(at, at + OUTPUT_BYTES));
}
