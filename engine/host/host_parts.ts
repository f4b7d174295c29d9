/** The parts of a host that do not depend on the operating system. In: the FFI of a runtime. */
import type { Ffi, ForeignFunction, ForeignSignature } from "./ffi.ts";
import { type Host, PROT } from "./host.ts";

const ADDRESSES = {
  memcpy: { params: ["buffer", "buffer", "i64"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

/** Reports the address of a buffer's first byte, where the runtime does not: memcpy returns its first argument. */
export function bufferAddresses(ffi: Ffi): Host["addressOf"] {
  let library: Record<keyof typeof ADDRESSES, ForeignFunction> | undefined;
  const late = () => library ??= ffi.open(ffi.system.libc, ADDRESSES);
  return (bytes) => {
    const address = ffi.addressOf?.(bytes) ?? Number(late().memcpy(bytes, bytes, 0n));
    if (address === 0) throw new RangeError(`${ffi.name} returns no address for an empty buffer`);
    return address;
  };
}

/** A view of memory, also of none. Throws a RangeError for more bytes than the runtime can view. */
export function checkedView(ffi: Ffi, address: number, bytes: number): ArrayBuffer {
  if (bytes === 0) return new ArrayBuffer(0);
  if (bytes > ffi.maxViewBytes) {
    throw new RangeError(`A view of ${bytes} bytes is more than the ${ffi.maxViewBytes} that ${ffi.name} allows`);
  }
  return ffi.view(address, bytes);
}

/** Allocates a few words at a time, from a page reserved at the first request and whenever the last one is full. */
export function wordAllocator(reserve: Host["reserve"], pageSize: number): (bytes: number) => number {
  let next = 0;
  let end = 0;
  return (bytes) => {
    if (next + bytes > end) {
      next = reserve(pageSize, PROT.READ | PROT.WRITE);
      end = next + pageSize;
    }
    next += bytes;
    return next - bytes;
  };
}
