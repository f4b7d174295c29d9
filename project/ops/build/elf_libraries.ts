/**
 * The shared libraries that an executable for Linux needs. In: an ELF file of 64 bits, and the root directory of a
 * system. Out: the loader and the libraries, with the paths at which the loader finds them. Invariant: the files may be
 * damaged; every place is tested before it is read, and libraries of another processor are passed over.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A file of a system. */
interface SystemFile {
  /** Its absolute path, as the loader looks for it. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

const ELF = 0x7f454c46;
const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const DYNAMIC_BYTES = 16;
const PT_LOAD = 1, PT_DYNAMIC = 2, PT_INTERP = 3;
const DT_NEEDED = 1n, DT_STRTAB = 5n;
/** The longest name of a library or of the loader. */
const MAX_NAME = 256;
/** Where the loaders of the C libraries of GNU and musl search, `TRIPLE` being the processor's. */
const FOLDERS = ["/lib/TRIPLE", "/usr/lib/TRIPLE", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
const TRIPLES: Readonly<Record<number, string>> = { 62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu" };

/** What an ELF file says about its libraries. */
interface Needs {
  readonly machine: number;
  readonly loader: string | undefined;
  readonly libraries: readonly string[];
}

/**
 * The files that `executable` needs from the system at `root`: none, if it is linked statically. Throws an Error that
 * names a library that is not there.
 */
export function librariesOf(executable: Uint8Array, root: string): SystemFile[] {
  const own = needsOf(executable);
  if (own?.loader === undefined) return [];
  const loader = fileAt(root, own.loader, own.machine);
  if (loader === undefined) throw new Error(`${root} has no loader ${own.loader}`);
  const found = new Map([[own.loader.slice(own.loader.lastIndexOf("/") + 1), loader]]);
  const waiting = [...own.libraries];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name)) continue;
    const file = findLibrary(root, name, own.machine);
    if (file === undefined) throw new Error(`${root} has no library ${name} for this processor`);
    found.set(name, file);
    waiting.push(...needsOf(file.bytes)?.libraries ?? []);
  }
  return [...found.values()];
}

function findLibrary(root: string, name: string, machine: number): SystemFile | undefined {
  if (name.includes("/")) return undefined;
  for (const folder of FOLDERS) {
    const path = `${folder.replace("TRIPLE", TRIPLES[machine] ?? "")}/${name}`;
    const file = fileAt(root, path, machine);
    if (file !== undefined) return file;
  }
  return undefined;
}

/** The ELF file of a processor at a path below `root`. */
function fileAt(root: string, path: string, machine: number): SystemFile | undefined {
  try {
    const bytes = new Uint8Array(readFileSync(join(root, path)));
    return needsOf(bytes)?.machine === machine ? { path, bytes } : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined for a file that is no ELF file of 64 bits, little-endian. Throws a RangeError for a damaged one. */
function needsOf(bytes: Uint8Array): Needs | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEADER_BYTES || view.getUint32(0) !== ELF || bytes[4] !== 2 || bytes[5] !== 1) return undefined;
  const wide = (at: number) => Number(view.getBigUint64(at, true));
  const table = wide(32);
  const segments = Array.from({ length: view.getUint16(56, true) }, (_, k) => {
    const at = table + k * PROGRAM_HEADER_BYTES;
    return { type: view.getUint32(at, true), offset: wide(at + 8), address: wide(at + 16), bytes: wide(at + 32) };
  });
  const interpreter = segments.find(({ type }) => type === PT_INTERP);
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  const entries = dynamic === undefined
    ? []
    : Array.from({ length: Math.floor(dynamic.bytes / DYNAMIC_BYTES) }, (_, k) => {
      const at = dynamic.offset + k * DYNAMIC_BYTES;
      return { tag: view.getBigUint64(at, true), value: wide(at + 8) };
    });
  const names = entries.find(({ tag }) => tag === DT_STRTAB)?.value ?? 0;
  const load = segments.find(({ type, address, bytes }) => {
    return type === PT_LOAD && names >= address && names < address + bytes;
  });
  const start = load === undefined ? 0 : names - load.address + load.offset;
  return {
    machine: view.getUint16(18, true),
    loader: interpreter === undefined ? undefined : textAt(bytes, interpreter.offset),
    libraries: entries.filter(({ tag }) => tag === DT_NEEDED).map(({ value }) => textAt(bytes, start + value)),
  };
}

/** The text at an offset, up to its zero byte. */
function textAt(bytes: Uint8Array, at: number): string {
  const part = bytes.subarray(at, at + MAX_NAME);
  const end = part.indexOf(0);
  if (end < 0) throw new RangeError("a name in the executable has no end");
  return new TextDecoder().decode(part.subarray(0, end));
}
