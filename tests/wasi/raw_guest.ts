/**
 * A guest for testing WASI function by function: a module that exports every import of `wasi_snapshot_preview1` under
 * its own name, and its memory. In: WASI options. Out: calls that pass through compiled code, and helpers that write
 * strings and records to the memory.
 */
import { type Context, type Instance, type Module, NewEngine } from "../../engine/api/engine.ts";
import { OFLAG, RIGHT } from "../../engine/wasi/abi.ts";
import type { Memory } from "../../engine/runtime/memory/memory.ts";
import { Wasi, type WasiOptions } from "../../engine/wasi/mod.ts";

/** Parameters by function: i is i32, l is i64; all return an error number but proc_exit. */
export const PARAMS = {
  args_get: "ii",
  args_sizes_get: "ii",
  environ_get: "ii",
  environ_sizes_get: "ii",
  clock_res_get: "ii",
  clock_time_get: "ili",
  fd_advise: "illi",
  fd_allocate: "ill",
  fd_close: "i",
  fd_datasync: "i",
  fd_fdstat_get: "ii",
  fd_fdstat_set_flags: "ii",
  fd_fdstat_set_rights: "ill",
  fd_filestat_get: "ii",
  fd_filestat_set_size: "il",
  fd_filestat_set_times: "illi",
  fd_pread: "iiili",
  fd_prestat_get: "ii",
  fd_prestat_dir_name: "iii",
  fd_pwrite: "iiili",
  fd_read: "iiii",
  fd_readdir: "iiili",
  fd_renumber: "ii",
  fd_seek: "ilii",
  fd_sync: "i",
  fd_tell: "ii",
  fd_write: "iiii",
  path_create_directory: "iii",
  path_filestat_get: "iiiii",
  path_filestat_set_times: "iiiilli",
  path_link: "iiiiiii",
  path_open: "iiiiillii",
  path_readlink: "iiiiii",
  path_remove_directory: "iii",
  path_rename: "iiiiii",
  path_symlink: "iiiii",
  path_unlink_file: "iii",
  poll_oneoff: "iiii",
  proc_exit: "i",
  proc_raise: "i",
  sched_yield: "",
  random_get: "ii",
  sock_accept: "iii",
  sock_recv: "iiiiii",
  sock_send: "iiiii",
  sock_shutdown: "ii",
} as const;

/** The name of a WASI function. */
export type WasiName = keyof typeof PARAMS;

/** All names. */
export const WASI_NAMES: readonly WasiName[] = Object.keys(PARAMS) as WasiName[];

/** Arguments for a call of `name` whose first one is `first`; the others are zeros. */
export function argumentsFor(name: WasiName, first: number): (number | bigint)[] {
  return [...PARAMS[name]].map((kind, k) => k === 0 ? first : kind === "i" ? 0 : 0n);
}

function guestText(): string {
  const types = (name: WasiName) => [...PARAMS[name]].map((kind) => kind === "i" ? "i32" : "i64").join(" ");
  const result = (name: WasiName) => name === "proc_exit" ? "" : "(result i32)";
  const imports = WASI_NAMES.map((name) =>
    `(import "wasi_snapshot_preview1" "${name}" (func $${name} (param ${types(name)}) ${result(name)}))`
  );
  const funcs = WASI_NAMES.map((name) => {
    const args = [...PARAMS[name]].map((_, i) => `(local.get ${i})`).join(" ");
    return `(func (export "${name}") (param ${types(name)}) ${result(name)} (call $${name} ${args}))`;
  });
  return `(module ${imports.join("\n")} (memory (export "memory") 4) ${funcs.join("\n")})`;
}

let compiled: Module | undefined;
let limited: Module | undefined;

/** The guest's module, with code that keeps deadlines and fuel where that is wanted. */
function guestModule(isLimited: boolean): Module {
  if (isLimited) return limited ??= NewEngine({ interruptible: true, fuel: true }).compile(guestText());
  return compiled ??= NewEngine().compile(guestText());
}

/** Fixed layout of the guest's memory: scratch results at 0, vectors at 256, strings from 1024, buffers from 65536. */
export const RESULT = 0;
export const VECTOR = 256;
const FIRST_STRING = 1024;
export const BUFFER = 65536;

export class RawGuest {
  readonly wasi: Wasi;
  readonly instance: Instance;
  readonly memory: Memory;
  #nextString = FIRST_STRING;

  constructor(options: WasiOptions = {}, isLimited: boolean = false) {
    this.wasi = new Wasi(options);
    this.instance = guestModule(isLimited).instantiate({}, { wasi_snapshot_preview1: this.wasi.imports });
    this.wasi.attach(this.instance);
    this.memory = this.instance.exports["memory"] as Memory;
  }

  /** Calls a WASI function with a guest's arguments; the error number. */
  call(name: WasiName, ...args: (number | bigint)[]): number {
    return this.callIn({}, name, ...args);
  }

  /** The same subject to `context`, for a guest that keeps limits. */
  callIn(context: Context, name: WasiName, ...args: (number | bigint)[]): number {
    return this.instance.call(context, name, ...args) as number;
  }

  get view(): DataView {
    return new DataView(this.memory.buffer);
  }

  bytes(at: number, length: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, at, length);
  }

  text(at: number, length: number): string {
    return new TextDecoder().decode(this.bytes(at, length));
  }

  /** Puts a string into the memory: its address and length, as WASI takes them. */
  string(text: string | Uint8Array): [number, number] {
    const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
    if (this.#nextString + bytes.length > BUFFER) this.#nextString = FIRST_STRING;
    const at = this.#nextString;
    this.bytes(at, bytes.length).set(bytes);
    this.#nextString += bytes.length;
    return [at, bytes.length];
  }

  u32(at: number = RESULT): number {
    return this.view.getUint32(at, true);
  }

  u64(at: number = RESULT): bigint {
    return this.view.getBigUint64(at, true);
  }

  /** path_open; the error number, and the descriptor when it is 0. */
  open(
    dir: number,
    path: string,
    {
      oflags = 0,
      rights = (oflags & OFLAG.directory) === 0 ? ALL : ALL & ~BigInt(RIGHT.fd_write),
      inheriting = ALL,
      fdflags = 0,
      follow = true,
    }: {
      oflags?: number;
      rights?: bigint;
      inheriting?: bigint;
      fdflags?: number;
      follow?: boolean;
    } = {},
  ): { errno: number; fd: number } {
    const [at, length] = this.string(path);
    const errno = this.call("path_open", dir, follow ? 1 : 0, at, length, oflags, rights, inheriting, fdflags, RESULT);
    return { errno, fd: errno === 0 ? this.u32() : -1 };
  }

  /** Calls a function that takes a descriptor and a path only. */
  onPath(
    name: "path_create_directory" | "path_remove_directory" | "path_unlink_file",
    dir: number,
    path: string,
  ): number {
    return this.call(name, dir, ...this.string(path));
  }

  /** path_filestat_get: the error number, with type and size when it is 0. */
  stat(
    dir: number,
    path: string,
    follow: boolean = true,
  ): { errno: number; type: number; size: bigint; links: bigint } {
    const errno = this.call("path_filestat_get", dir, follow ? 1 : 0, ...this.string(path), RESULT);
    const { view } = this;
    return { errno, type: view.getUint8(16), links: view.getBigUint64(24, true), size: view.getBigUint64(32, true) };
  }

  /** fd_read into one buffer: the error number and the text read. */
  read(fd: number, length: number = 1024): { errno: number; text: string } {
    this.#vector(BUFFER, length);
    const errno = this.call("fd_read", fd, VECTOR, 1, RESULT);
    return { errno, text: errno === 0 ? this.text(BUFFER, this.u32()) : "" };
  }

  /** fd_write of one string; returns the error number. */
  write(fd: number, text: string): number {
    this.#vector(...this.string(text));
    return this.call("fd_write", fd, VECTOR, 1, RESULT);
  }

  /**
   * fd_readdir from `cookie` with a buffer of `size` bytes: names and cookies of its complete entries, and the bytes
   * used.
   */
  entries(
    fd: number,
    cookie: bigint = 0n,
    size: number = 4096,
  ): { errno: number; used: number; names: string[]; cookies: bigint[] } {
    const errno = this.call("fd_readdir", fd, BUFFER, size, cookie, RESULT);
    const used = errno === 0 ? this.u32() : 0;
    const names: string[] = [];
    const cookies: bigint[] = [];
    for (let at = BUFFER; at + 24 <= BUFFER + used;) {
      const length = this.u32(at + 16);
      if (at + 24 + length > BUFFER + used) break;
      names.push(this.text(at + 24, length));
      cookies.push(this.u64(at));
      at += 24 + length;
    }
    return { errno, used, names, cookies };
  }

  /** Writes one vector to the address that `read` and `write` use; returns that address. */
  vector(pointer: number, length: number): number {
    this.#vector(pointer, length);
    return VECTOR;
  }

  #vector(pointer: number, length: number): void {
    this.view.setUint32(VECTOR, pointer, true);
    this.view.setUint32(VECTOR + 4, length, true);
  }

  /** Ends the guest and closes its descriptors. */
  close(): void {
    this.instance.close();
    this.wasi.close();
  }
}

/** Every right there is. */
export const ALL: bigint = (1n << 30n) - 1n;
