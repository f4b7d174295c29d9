/**
 * The host interface on Deno: libc through `Deno.dlopen`, machine code as an ELF object in a memfd (Linux) or through
 * `bsearch` as a trampoline (macOS; design: "The boundary").
 */
import { writeSharedObject } from "./elf.ts";
import type { Host, NativeFunction, NativeSymbol, NativeType } from "./host.ts";
import { OS_CALLS } from "./os_calls.ts";

const FFI_TYPES: Record<NativeType, Deno.NativeResultType> = {
  i32: "i32",
  i64: "i64",
  f32: "f32",
  f64: "f64",
  pointer: "pointer",
  void: "void",
};

const LIBC_SYMBOLS = {
  mmap: { parameters: ["u64", "u64", "i32", "i32", "i32", "i64"], result: "i64" },
  mprotect: { parameters: ["u64", "u64", "i32"], result: "i32" },
  munmap: { parameters: ["u64", "u64"], result: "i32" },
  sigaction: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  sigaltstack: { parameters: ["buffer", "buffer"], result: "i32" },
  getpagesize: { parameters: [], result: "i32" },
  bsearch: { parameters: ["pointer", "pointer", "usize", "usize", "pointer"], result: "pointer" },
} as const;

const THREAD_SYMBOLS = {
  pthread_create: { parameters: ["buffer", "pointer", "u64", "u64"], result: "i32" },
  pthread_detach: { parameters: ["u64"], result: "i32" },
} as const;

/**
 * A path to descriptor `fd` that no library was opened by before: the loader takes an equal path for the same library even
 * when the number now stands for another file, so random redundant "/" and "./" make the text unique.
 */
function uniqueFdPath(fd: number): string {
  const random = crypto.getRandomValues(new Uint8Array(6));
  let path = "/proc/self/fd/";
  for (const byte of random) for (let bit = 0; bit < 8; bit++) path += (byte >> bit) & 1 ? "./" : "/";
  return path + fd;
}

/**
 * `() => enter(handle)`, as a function of its own source: V8 makes a direct machine call of an FFI symbol only where one symbol is
 * all that a call site has ever seen, and closures of one literal share their call sites.
 */
function ownClosure(enter: (pointer: Deno.PointerObject) => number, handle: Deno.PointerObject): () => number {
  try {
    return new Function("enter", "handle", "return () => enter(handle);")(enter, handle) as () => number;
  } catch {
    return () => enter(handle); // code from strings is not allowed here
  }
}

/** Makes the host interface for Deno. */
export function denoHost(): Host {
  const os = Deno.build.os as "linux" | "darwin";
  const system = OS_CALLS[os];
  if (system === undefined) throw new Error(`waft runs on Linux and macOS, not on ${Deno.build.os}`);
  const arch = Deno.build.arch === "x86_64" ? "x64" : "arm64";
  const libc = Deno.dlopen(system.libc, LIBC_SYMBOLS).symbols;
  const memfdCreate = os === "linux"
    ? Deno.dlopen(system.libc, { memfd_create: { parameters: ["buffer", "u32"], result: "i32" } } as const).symbols
      .memfd_create
    : undefined;
  const pageSize = libc.getpagesize();

  function map(address: number, bytes: number, prot: number, flags: number): number {
    const at = Number(libc.mmap(BigInt(address), BigInt(bytes), prot, flags, -1, 0n));
    if (at < 0 || at >= 2 ** 63) throw new RangeError(`Out of address space: cannot map ${bytes} bytes`);
    return at;
  }

  function openText(text: Uint8Array, symbols: Record<string, NativeSymbol>): Record<string, NativeFunction> {
    const offsets = Object.fromEntries(Object.entries(symbols).map(([name, symbol]) => [name, symbol.offset]));
    const file = writeSharedObject(text, offsets, arch);
    const definitions = Object.fromEntries(
      Object.entries(symbols).map(([name, symbol]) => [
        name,
        {
          parameters: symbol.params.map((type) => FFI_TYPES[type] as Deno.NativeType),
          result: FFI_TYPES[symbol.result],
        },
      ]),
    );
    const fd = memfdCreate!(new TextEncoder().encode("waft\0"), 1 /* MFD_CLOEXEC */);
    if (fd < 0) throw new Error("Cannot create executable memory: memfd_create failed");
    const path = uniqueFdPath(fd);
    try {
      Deno.writeFileSync(path, file);
      return Deno.dlopen(path, definitions).symbols as unknown as Record<string, NativeFunction>;
    } finally {
      closeFd(fd);
    }
  }

  let closeSymbol: ((fd: number) => number) | undefined;
  function closeFd(fd: number): void {
    closeSymbol ??= Deno.dlopen(system.libc, { close: { parameters: ["i32"], result: "i32" } } as const).symbols.close;
    closeSymbol(fd);
  }

  function nativeLibrary<Name extends string>(
    text: Uint8Array,
    symbols: Record<Name, NativeSymbol>,
  ): Record<Name, NativeFunction> {
    if (memfdCreate === undefined) throw new Error("Typed native symbols need Linux");
    return openText(text, symbols) as Record<Name, NativeFunction>;
  }

  return {
    name: "deno",
    os,
    arch,
    pageSize,
    reserve: (bytes, prot) => map(0, bytes, prot, system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE),
    replace: (address, bytes, prot) => {
      map(address, bytes, prot, system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE | system.MAP_FIXED);
    },
    protect: (address, bytes, prot) => {
      if (libc.mprotect(BigInt(address), BigInt(bytes), prot) !== 0) {
        throw new RangeError(`Out of memory: cannot make ${bytes} bytes accessible`);
      }
    },
    release: (address, bytes) => {
      libc.munmap(BigInt(address), BigInt(bytes));
    },
    view: (address, bytes) => {
      if (bytes === 0) return new ArrayBuffer(0);
      return Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(BigInt(address))!, bytes);
    },
    nativeLibrary,
    boundCall: (text, offset, pointer) => {
      const handle = Deno.UnsafePointer.create(BigInt(pointer))!;
      const { entry } = openText(text, { entry: { offset, params: ["pointer"], result: "i32" } });
      const enter = entry as unknown as (pointer: Deno.PointerObject) => number;
      return ownClosure(enter, handle);
    },
    startThread: (code, argument) => {
      const threads = Deno.dlopen(system.libc, THREAD_SYMBOLS).symbols;
      const id = new BigUint64Array(1);
      if (threads.pthread_create(id, null, BigInt(code), BigInt(argument)) !== 0) {
        throw new Error("Cannot start a thread: the system refuses another one");
      }
      threads.pthread_detach(id[0]!);
    },
    installSignalHandler: (signal, handler) => {
      const action = system.sigactionBytes(handler);
      if (libc.sigaction(signal, action, null) !== 0) throw new Error(`Cannot install a handler for signal ${signal}`);
    },
    signalHandler: (signal) => {
      const old = new Uint8Array(system.SIGACTION_SIZE);
      libc.sigaction(signal, null, old);
      return Number(new DataView(old.buffer).getBigUint64(0, true));
    },
    ensureSignalStack: () => {
      const old = new Uint8Array(24);
      libc.sigaltstack(null, old);
      if (!system.isSignalStackDisabled(old)) return;
      const size = 1 << 16;
      const stack = map(0, size, 3, system.MAP_PRIVATE | system.MAP_ANONYMOUS);
      libc.sigaltstack(system.signalStackBytes(stack, size), null);
    },
  };
}
