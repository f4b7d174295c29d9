/**
 * Single executables of waft as the runtimes of applications. In: a path. Out: the platform of the executable; a
 * UsageError for any other file. Invariant: the whole file is searched, so only files with an executable's head are.
 */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { UsageError } from "../base/failure.ts";
import { MAGIC } from "./application.ts";

const HEAD_BYTES = 1024;
const X64_PE = 0x8664;
const X64_ELF = 62, ARM64_ELF = 183;
const X64_MACHO = 0x01000007, ARM64_MACHO = 0x0100000c;

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

/** The platform that the head of an executable names; undefined for other files. */
function platformOf(head: DataView): string | undefined {
  if (head.getUint32(0) === 0x7f454c46) {
    return { [X64_ELF]: "linux/amd64", [ARM64_ELF]: "linux/arm64" }[head.getUint16(18, true)];
  }
  if (head.getUint32(0, true) === 0xfeedfacf) {
    return { [X64_MACHO]: "darwin/amd64", [ARM64_MACHO]: "darwin/arm64" }[head.getUint32(4, true)];
  }
  const signature = head.getUint32(60, true);
  if (head.getUint16(0) !== 0x4d5a || signature > HEAD_BYTES - 6 || head.getUint32(signature) !== 0x50450000) {
    return undefined;
  }
  return head.getUint16(signature + 4, true) === X64_PE ? "windows/amd64" : undefined;
}
