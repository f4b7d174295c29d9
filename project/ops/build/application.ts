/**
 * Applications: an executable file that is waft's single executable followed by a compiled program. In: the file of an
 * application (write_application.ts writes it). Out: the program, and the inputs that its guest gets at every start.
 *
 * The file may be damaged: it was copied or downloaded. The artifact in it has a checksum of its own.
 *
 * Layout after the runtime: the inputs as JSON in UTF-8, the program, the lengths of both (u32 and u64, little-endian),
 * and 16 bytes of magic at the end. The runtime's own format says where it ends, so an application is recognized and
 * refused even if it is cut off or its magic is damaged. Invariant: every start of a single executable reads this, so
 * it loads no more than the formats of executables.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { executableEnd, HEAD_BYTES } from "./executable_format.ts";

/** The inputs that a guest gets at every start, in the form of `waft run`'s options. */
export interface ApplicationInputs {
  /** The form of the program: an artifact of a module, or a component with the artifacts of its modules. */
  readonly form: "module" | "component";
  /** The function to call; by default `_start`, or the only one. */
  readonly invoke?: string;
  readonly dir: readonly string[];
  readonly env: readonly string[];
  /** The groups of WASI that the project of the build allows its guests; absent: all. */
  readonly wasi?: readonly string[];
}

/** A compiled program with its inputs. */
export interface Application {
  readonly inputs: ApplicationInputs;
  readonly program: Uint8Array;
}

/** The lengths of an application's parts, in bytes. */
interface Parts {
  readonly runtimeBytes: number;
  readonly inputBytes: number;
  readonly programBytes: number;
}

/**
 * The last bytes of an application. The text is also part of every single executable, by which `waft build` recognizes
 * them.
 */
export const MAGIC = "waft-application";
const TRAILER_BYTES = 4 + 8 + MAGIC.length;

/** The parts of an open file; undefined if it is not an application. Throws the error of a damaged application. */
export function partsOf(file: number): Parts | undefined {
  const { size } = fstatSync(file);
  const end = executableEnd(new DataView(readAt(file, 0, Math.min(size, HEAD_BYTES)).buffer));
  const trailer = size < TRAILER_BYTES ? new Uint8Array() : readAt(file, size - TRAILER_BYTES, TRAILER_BYTES);
  if (new TextDecoder().decode(trailer.subarray(12)) !== MAGIC) {
    if (end !== undefined && size > end) damaged("it is cut off, or its last bytes have changed");
    return undefined;
  }
  const view = new DataView(trailer.buffer);
  const inputBytes = view.getUint32(0, true), programBytes = Number(view.getBigUint64(4, true));
  const runtimeBytes = size - TRAILER_BYTES - inputBytes - programBytes;
  if (runtimeBytes < 0) damaged("its parts are longer than the file");
  if (end !== undefined && runtimeBytes !== end) damaged("its parts have other lengths than it says");
  return { runtimeBytes, inputBytes, programBytes };
}

/** Throws the error of a damaged application. */
export function damaged(why: string): never {
  throw new Error(`the application is damaged: ${why}; build or copy it again`);
}

function readAt(file: number, position: number, bytes: number): Uint8Array<ArrayBuffer> {
  const buffer = new Uint8Array(bytes);
  for (let at = 0; at < bytes;) {
    const count = readSync(file, buffer, at, bytes - at, position + at);
    if (count === 0) damaged("the file ends too early");
    at += count;
  }
  return buffer;
}

function readInputs(bytes: Uint8Array): ApplicationInputs {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    damaged("its inputs are not JSON");
  }
  return isInputs(value) ? value : damaged("its inputs are incomplete");
}

function isInputs(value: unknown): value is ApplicationInputs {
  const { form, invoke, dir, env, wasi } = (value ?? {}) as { readonly [name: string]: unknown };
  const isList = (list: unknown): boolean => Array.isArray(list) && list.every((text) => typeof text === "string");
  return (form === "module" || form === "component") && (invoke === undefined || typeof invoke === "string") &&
    isList(dir) && isList(env) && (wasi === undefined || isList(wasi));
}

/** The application in an executable; undefined if there is none. Throws the system's errors, or for a damaged file. */
export function readApplication(path: string): Application | undefined {
  const file = openSync(path, "r");
  try {
    const parts = partsOf(file);
    if (parts === undefined) return undefined;
    const { runtimeBytes, inputBytes, programBytes } = parts;
    return {
      inputs: readInputs(readAt(file, runtimeBytes, inputBytes)),
      program: readAt(file, runtimeBytes + inputBytes, programBytes),
    };
  } finally {
    closeSync(file);
  }
}
