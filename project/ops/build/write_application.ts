/**
 * Writes applications (application.ts). In: a single executable of waft, a compiled program with its inputs. Out: the
 * executable file, written completely or not at all. Invariant: the runtime of an application is never an application
 * itself, so programs do not accumulate.
 */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import process from "node:process";
import { randomHex } from "../../base/integrity.ts";
import { type Application, MAGIC, partsOf } from "./application.ts";

/**
 * Writes an application to `path`, completely or not at all. `runtime` is a single executable of waft, or an
 * application, whose program is replaced.
 */
export function writeApplication(path: string, runtime: string, application: Application): void {
  const temporary = `${path}.${randomHex(12)}.tmp`;
  try {
    copyFileSync(runtime, temporary);
    // As the umask leaves them to a new program: it contains the variables of its guest.
    chmodSync(temporary, 0o777 & ~process.umask());
    appendProgram(temporary, application);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

function appendProgram(path: string, { inputs, program }: Application): void {
  const file = openSync(path, "r+");
  try {
    let at = partsOf(file)?.runtimeBytes ?? fstatSync(file).size;
    ftruncateSync(file, at);
    const head = new TextEncoder().encode(JSON.stringify(inputs));
    const lengths = new DataView(new ArrayBuffer(12));
    lengths.setUint32(0, head.length, true);
    lengths.setBigUint64(4, BigInt(program.length), true);
    const magic = new TextEncoder().encode(MAGIC);
    for (const part of [head, program, new Uint8Array(lengths.buffer), magic]) at += writeAt(file, part, at);
  } finally {
    closeSync(file);
  }
}

function writeAt(file: number, bytes: Uint8Array, position: number): number {
  let at = 0;
  while (at < bytes.length) at += writeSync(file, bytes, at, bytes.length - at, position + at);
  return at;
}
