/**
 * Errors in messages. In: an error of the engine or of its host functions. Out: JSON, and an error of the same class
 * and text. Invariant: JSON of a hostile process becomes an error whatever it contains, of bounded size.
 */
import {
  Bug,
  ExhaustionError,
  InvalidError,
  LinkError,
  MalformedError,
  type SourcePlace,
  TrapError,
  type TrapFrame,
  UnsupportedError,
  WaftError,
} from "../base/errors.ts";
import { isRecord } from "../base/arguments.ts";
import { jsonOf } from "./values.ts";

/** An error of a runner itself: its process failed, was ended, or broke the protocol. */
export class RunnerError extends Error {
  static {
    Object.defineProperty(this.prototype, "name", { value: "RunnerError", configurable: true, writable: true });
  }
}

/** An error that a host function in the program threw, as guests in the runner see it. */
export class HostFunctionError extends Error {
  /** The call of the host function. */
  readonly callback: number;

  constructor(callback: number) {
    super("A host function threw an error");
    this.callback = callback;
  }
}

/** The error of a call in the runner, with the fuel that it left. */
export class FuelledError extends Error {
  readonly reason: unknown;
  readonly fuel: bigint;

  constructor(reason: unknown, fuel: bigint) {
    super();
    this.reason = reason;
    this.fuel = fuel;
  }
}

/** Bounds of texts and lists that come from a runner. */
const MAX_TEXT = 2000;
const MAX_FRAMES = 200;

/** The JSON of an error. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof FuelledError)) return JSON.stringify(partsOf(error));
  return JSON.stringify({ ...partsOf(error.reason), fuel: String(error.fuel) });
}

function partsOf(error: unknown): Record<string, unknown> {
  if (error instanceof HostFunctionError) return { kind: "host", callback: error.callback };
  if (!(error instanceof Error)) return { kind: "Error", message: "WebAssembly code threw a value" };
  const parts = { kind: error.name, message: error.message };
  if (TrapError.is(error)) {
    const { detail, access, frames } = error;
    return { ...parts, detail, access, frames: frames.slice(0, MAX_FRAMES) };
  }
  if (error instanceof UnsupportedError) return { ...parts, place: error.place, feature: error.feature };
  return WaftError.is(error) ? { ...parts, place: error.place } : parts;
}

/** A failure as it arrives. */
interface Failure {
  /** The error, unless a host function threw it. */
  readonly error: Error;
  /** The call of the host function that threw it. */
  readonly callback: number | undefined;
  /** The remaining fuel of the call. */
  readonly fuel: bigint | undefined;
}

/** Makes the failure again. Throws ProtocolError for bytes that are not JSON. */
export function readFailure(payload: Uint8Array): Failure {
  const json = jsonOf(payload);
  const parts = isRecord(json) ? json as Record<string, unknown> : {};
  const { callback, fuel } = parts;
  return {
    error: errorOf(parts),
    callback: parts["kind"] === "host" && typeof callback === "number" ? callback : undefined,
    fuel: typeof fuel === "string" && /^-?\d{1,20}$/.test(fuel) ? BigInt(fuel) : undefined,
  };
}

function errorOf(parts: Record<string, unknown>): Error {
  const message = textOf(parts["message"]) ?? "The runner reports an error without a message";
  const place = placeOf(parts["place"]);
  switch (parts["kind"]) {
    case "TrapError":
      return trapOf(new TrapError(message, framesOf(parts["frames"])), parts);
    case "ExhaustionError":
      return trapOf(new ExhaustionError(message, framesOf(parts["frames"])), parts);
    case "MalformedError":
      return new MalformedError(message, place);
    case "UnsupportedError":
      return new UnsupportedError(textOf(parts["feature"]) ?? "", message, place);
    case "InvalidError":
      return new InvalidError(message, place);
    case "LinkError":
      return new LinkError(message, place);
    case "TypeError":
      return new TypeError(message);
    case "RangeError":
    case "SystemError":
      return new RangeError(message);
    case "Bug":
      return new Bug(message);
    default:
      return new Error(message);
  }
}

function trapOf(trap: TrapError, { detail, access }: Record<string, unknown>): TrapError {
  trap.detail = textOf(detail);
  const { address, bytes } = isRecord(access) ? access as Record<string, unknown> : {};
  if (typeof address === "number" && typeof bytes === "number") trap.access = { address, bytes };
  return trap;
}

function framesOf(value: unknown): TrapFrame[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_FRAMES).filter(isRecord).map((frame) => {
    const { funcIndex, offset, line, column, funcName, moduleName, file } = frame as Record<string, unknown>;
    const texts = Object.entries({ funcName, moduleName, file }).map(([name, text]) => [name, textOf(text)]);
    const numbers = Object.entries({ line, column }).map(([name, number]) => [name, numberOf(number)]);
    const known = [...texts, ...numbers].filter(([, part]) => part !== undefined);
    return { funcIndex: numberOf(funcIndex) ?? 0, offset: numberOf(offset) ?? 0, ...Object.fromEntries(known) };
  });
}

function placeOf(value: unknown): SourcePlace {
  if (!isRecord(value)) return {};
  const { offset, line, column } = value as Record<string, unknown>;
  const known = Object.entries({ offset, line, column }).filter(([, part]) => numberOf(part) !== undefined);
  return Object.fromEntries(known) as SourcePlace;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value.slice(0, MAX_TEXT) : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
