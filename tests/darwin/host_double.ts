/**
 * A double of macOS on arm64 as the host sees it through an FFI. In: calls of functions of libSystem with their C
 * types. Out: a record of them, in order, and memory that is plain ArrayBuffers. It knows macOS's rules and throws when
 * one is broken: 16 KiB pages, flags of mmap, no page writable and executable at once, no advice that would have to
 * zero pages, nothing but fixed parameters of variadic functions, sizes of structures, caches maintained before code
 * runs.
 */
import type { Ffi, ForeignFunction, ForeignSignature } from "../../engine/host/runtimes/ffi.ts";
import type { NativeFunction } from "../../engine/host/host.ts";
import { SYSTEMS } from "../../engine/host/systems/systems.ts";

const PAGE = 0x4000;
const LIBRARY = "/usr/lib/libSystem.B.dylib";
const MAP = { PRIVATE: 0x2, FIXED: 0x10, ANON: 0x1000 };
const WRITE_AND_EXECUTE = 6;
/** The smallest signal stack that macOS takes. */
const MINSIGSTKSZ = 32768;

/** Number of parameters, by function. `open` is variadic, and this one has only its fixed parameters. */
const PARAMETERS: Readonly<Record<string, number>> = {
  _exit: 1,
  bsearch: 5,
  close: 1,
  dlsym: 2,
  getpagesize: 0,
  lseek: 3,
  madvise: 3,
  memcpy: 3,
  mkstemp: 1,
  mmap: 6,
  mprotect: 3,
  munmap: 2,
  open: 2,
  pthread_create: 4,
  pthread_detach: 1,
  pthread_join: 2,
  pthread_sigmask: 3,
  sigaction: 3,
  sigaltstack: 2,
  sys_icache_invalidate: 2,
  unlink: 1,
  write: 3,
};

/** The offset of the result in the block of a C call (c_calls.ts). */
const C_RESULT = 64;

type Argument = number | bigint | Uint8Array | BigUint64Array | null;

function broken(rule: string): never {
  throw new Error(`macOS was called wrongly: ${rule}`);
}

function text(bytes: Argument): string {
  const raw = bytes as Uint8Array;
  const end = raw.indexOf(0);
  return end < 0 ? broken("a path without a zero byte") : new TextDecoder().decode(raw.subarray(0, end));
}

/** The double. */
export class DarwinDouble implements Ffi {
  readonly name = "bun"; // one without an address of buffers or calls of its own
  readonly os = "darwin";
  readonly system = SYSTEMS.darwin;
  readonly arch = "arm64";
  readonly maxViewBytes = 2 ** 32;
  /** Calls in their order: the name, and the arguments that matter. */
  readonly calls: string[] = [];
  /** Protection of each page that is mapped. */
  readonly pages = new Map<number, number>();
  /** Results of the next C functions that machine code calls. */
  readonly answers: bigint[] = [];
  /** Functions that the system refuses. */
  readonly refused = new Set<string>();
  /** Contents of files by descriptor. */
  readonly files = new Map<number, Uint8Array[]>();
  readonly #memory: { at: number; buffer: ArrayBuffer }[] = [];
  /** Pages of new code whose caches have not been maintained. */
  readonly #stale = new Set<number>();
  #next = 0x100000000;
  #nextFile = 50;

  open<Name extends string>(path: string, signatures: Readonly<Record<Name, ForeignSignature>>) {
    if (path !== LIBRARY) broken(`the library ${path}`);
    const functions = {} as Record<Name, ForeignFunction & NativeFunction>;
    for (const name in signatures) {
      const count = PARAMETERS[name] ?? broken(`no function ${name}`);
      if (signatures[name].params.length !== count) broken(`${name} has ${count} parameters`);
      functions[name] = ((...args: Argument[]) => {
        if (args.length !== count) broken(`${name} has ${count} arguments`);
        return this.#call(name, signatures[name], args);
      }) as ForeignFunction & NativeFunction;
    }
    return functions;
  }

  view(address: number, bytes: number): ArrayBuffer {
    const found = this.#memory.find(({ at }) => at === address);
    if (found !== undefined && found.buffer.byteLength >= bytes) return found.buffer;
    const buffer = new ArrayBuffer(Math.max(bytes, PAGE));
    this.#memory.push({ at: address, buffer });
    return buffer;
  }

  lentViews(): never {
    throw new Error("not part of the double");
  }

  #call(name: string, { params }: ForeignSignature, args: Argument[]): number | bigint {
    params.forEach((type, k) => {
      const value = args[k];
      const isRight = type === "i64" ? typeof value === "bigint" : type === "i32" ? typeof value === "number" : true;
      if (!isRight) broken(`argument ${k} of ${name} is not ${type}`);
    });
    const [a, b, c, d, e] = args;
    const [from, bytes] = [Number(a), Number(b)];
    const note = (...words: unknown[]) => void this.calls.push([name, ...words].join(" "));
    if (this.refused.has(name)) return -1;
    switch (name) {
      case "getpagesize":
        return PAGE;
      case "mmap":
        return BigInt(this.#map(from, bytes, Number(c), Number(d), Number(e)));
      case "mprotect":
        this.#protect(from, bytes, Number(c));
        note(c);
        return 0;
      case "munmap":
        note();
        return 0;
      case "madvise":
        return broken("no advice of macOS makes pages zero");
      case "memcpy":
        return 0x200000000n;
      case "mkstemp":
        if (!text(a!).endsWith("/waft-XXXXXX")) broken("the template of mkstemp");
        this.files.set(this.#nextFile, []);
        note();
        return this.#nextFile++;
      case "unlink":
        note();
        return 0;
      case "write":
        this.files.get(from)!.push((b as Uint8Array).slice(0, Number(c)));
        note(c);
        return c as bigint;
      case "close":
        note(a);
        return 0;
      case "open":
        if ((Number(b) & 0x200) !== 0) broken("open creates a file, whose mode is a variadic argument");
        note(text(a!), b);
        return this.#nextFile++;
      case "lseek":
        return 12345n;
      case "sigaction":
        for (const struct of [b, c] as (Uint8Array | null)[]) {
          if (struct !== null && struct.length !== 16) broken("struct sigaction has 16 bytes");
        }
        note(a, b === null ? "query" : "set");
        return 0;
      case "pthread_sigmask":
        for (const set of [b, c] as Uint8Array[]) if (set.length < 4) broken("sigset_t has 4 bytes");
        note(a);
        return 0;
      case "sigaltstack":
        return this.#signalStack(a as Uint8Array | null, b as Uint8Array | null, note);
      case "dlsym":
        if (a !== -2n) broken("RTLD_DEFAULT is -2");
        note(text(b!));
        return text(b!).startsWith("missing") ? 0n : 0x180000000n;
      case "sys_icache_invalidate":
        for (const page of this.#stale) if (page >= from - PAGE && page < from + bytes) this.#stale.delete(page);
        note(bytes);
        return 0;
      case "bsearch":
        return this.#search(args as bigint[], note);
      default:
        note();
        return 0;
    }
  }

  #map(address: number, bytes: number, prot: number, flags: number, fd: number): number {
    const known = MAP.PRIVATE | MAP.FIXED | MAP.ANON;
    if ((flags & ~known) !== 0) broken(`mmap has the flags 0x${flags.toString(16)}`);
    if ((flags & MAP.PRIVATE) === 0) broken("mmap is neither private nor shared");
    if (((flags & MAP.ANON) !== 0) !== (fd === -1)) broken("an anonymous mapping has the descriptor -1");
    const fixed = (flags & MAP.FIXED) !== 0;
    if (fixed && address % PAGE !== 0) broken("a fixed mapping is not aligned to 16 KiB");
    const at = fixed ? address : this.#next;
    this.calls.push(`mmap ${prot} 0x${flags.toString(16)}${fd < 0 ? "" : " file"}`);
    if (!fixed) this.#next += Math.ceil(bytes / PAGE) * PAGE + PAGE;
    this.#setPages(at, Math.min(bytes, 64 * PAGE), prot);
    return at;
  }

  #protect(at: number, bytes: number, prot: number): void {
    if (at % PAGE !== 0) broken("mprotect is not aligned to 16 KiB");
    if ((prot & WRITE_AND_EXECUTE) === WRITE_AND_EXECUTE) broken("a page is writable and executable");
    if ((prot & 4) !== 0) { for (let page = at; page < at + bytes; page += PAGE) this.#stale.add(page); }
    this.#setPages(at, Math.min(bytes, 64 * PAGE), prot);
  }

  #setPages(at: number, bytes: number, prot: number): void {
    for (let page = at; page < at + bytes; page += PAGE) this.pages.set(page, prot);
  }

  #signalStack(stack: Uint8Array | null, old: Uint8Array | null, note: (...words: unknown[]) => void): number {
    if (stack !== null) {
      const view = new DataView(stack.buffer, stack.byteOffset);
      if (stack.length !== 24 || view.getBigUint64(8, true) < MINSIGSTKSZ) broken("the signal stack is too small");
    }
    if (old !== null) new DataView(old.buffer, old.byteOffset).setInt32(16, 4, true); // SS_DISABLE
    note(stack === null ? "query" : "set");
    return 0;
  }

  /** One element, and a comparison in executable pages whose caches are maintained. */
  #search([key, base, count, width, code]: bigint[], note: (...words: unknown[]) => void): bigint {
    if (count !== 1n || width !== 1n) broken("bsearch calls its comparison more than once");
    const page = Number(code) - Number(code! % BigInt(PAGE));
    if (this.pages.get(page) !== 5) broken("bsearch calls code that is not readable and executable");
    if (this.#stale.has(page)) broken("bsearch calls code whose caches are stale");
    note(key === base ? "block" : "bound");
    const answer = key === base ? undefined : this.answers.shift();
    if (answer !== undefined) new DataView(this.view(Number(key), PAGE)).setBigInt64(C_RESULT, answer, true);
    return base!;
  }
}
