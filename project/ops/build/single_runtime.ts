/**
 * Single executables of waft as the runtimes of applications. In: a path. Out: the platform of the executable; a
 * UsageError for any other file. Invariant: the whole file is searched, so only files with an executable's head are.
 */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { UsageError } from "../../base/failure.ts";
import { MAGIC } from "./application.ts";
import { HEAD_BYTES, platformOf } from "./executable_format.ts";

/** The platform of a single executable of waft, such as `linux/amd64`. */
export function runtimePlatform(path: string): string {
  let platform: string | undefined, isSingle: boolean;
  try {
    platform = platformOf(headOf(path));
    isSingle = platform !== undefined && readFileSync(path).includes(MAGIC, 0, "latin1");
  } catch (error) {
    throw new UsageError(`--runtime: cannot read ${path}: ${(error as Error).message}`);
  }
  if (platform === undefined || !isSingle) {
    throw new UsageError(`--runtime: ${path} is not a single executable of waft`);
  }
  return platform;
}

function headOf(path: string): DataView {
  const head = new Uint8Array(HEAD_BYTES);
  const file = openSync(path, "r");
  try {
    readSync(file, head, 0, HEAD_BYTES, 0);
  } finally {
    closeSync(file);
  }
  return new DataView(head.buffer);
}
