/**
 * ArrayBuffers of engine memory that programs receive. In: an address range and a callback for the time when no
 * ArrayBuffer has its pages any more. Out: an ArrayBuffer. A program may transfer the pages to another ArrayBuffer,
 * which outlives the first. The specification prevents transfers with a detach key, which V8 exposes as
 * `markAsUntransferable`; JavaScriptCore has none, but reports when it frees pages (bun.ts).
 *
 * Invariant: `gone` is called at most once, and never while an ArrayBuffer has the pages. Known gap: on a Node without
 * `node:ffi`, buffers cannot have a key (Node detaches them itself when a Worker ends, and would crash). There the
 * transfer methods of the buffer object throw, but a direct call of `ArrayBuffer.prototype.transfer` succeeds.
 */
import { Finalizers, type Registration } from "../finalizers.ts";
import { nodeModule } from "../process.ts";

/** A runtime's way of lending pages. */
export interface LentViews {
  /**
   * Returns an ArrayBuffer of the `bytes` (at least 1) at `address`; calls `gone` some time after the last buffer of
   * its pages is collected.
   */
  lend(address: number, bytes: number, gone: () => void): ArrayBuffer;
  /**
   * Prevents further transfers of the buffer's pages. If the program has already transferred them, `gone` is never
   * called.
   */
  seal(buffer: ArrayBuffer): void;
  /** Detaches an unsealed buffer. */
  detach(buffer: ArrayBuffer): void;
}

/** Methods of buffers that move pages. */
const METHODS = ["transfer", "transferToFixedLength", "transferToImmutable"];

function refuse(): never {
  throw new TypeError("The buffer of a memory cannot be transferred");
}

/**
 * Lends memory on V8. Finalizers report collected buffers. `keys` selects detach keys, which keep the pages in the
 * buffer until then; without them, the buffer's transfer methods throw.
 */
export function lendWithKeys(view: (address: number, bytes: number) => ArrayBuffer, keys: boolean): LentViews {
  const buffers = new Finalizers<() => void>((gone) => gone());
  const registrations = new WeakMap<ArrayBuffer, Registration<object>>();
  return {
    lend: (address, bytes, gone) => {
      const buffer = view(address, bytes);
      registrations.set(buffer, buffers.register(buffer, gone));
      return buffer;
    },
    seal: (buffer) => {
      if (isDetached(buffer)) {
        registrations.get(buffer)?.cancel(); // a program has taken the pages for an unknown time
      } else if (keys) nodeModule("node:worker_threads").markAsUntransferable(buffer);
      else for (const name of METHODS) if (name in buffer) Object.defineProperty(buffer, name, { value: refuse });
    },
    detach: (buffer) => {
      if (isDetached(buffer)) registrations.get(buffer)?.cancel();
      else if (typeof buffer.transfer === "function") buffer.transfer(0);
      else detachNatively(buffer);
    },
  };
}

/**
 * Node 20 has no `detached`. Programs cannot detach a lent buffer there, and detaching an empty buffer has no effect.
 */
function isDetached(buffer: ArrayBuffer): boolean {
  return buffer.detached ?? buffer.byteLength === 0;
}

/**
 * Detaches a buffer with a V8 test intrinsic, for Node 20, whose `structuredClone` copies FFI buffers. The function is
 * compiled on each use: V8 flushes unused code, and could not parse the intrinsic again without the flag.
 */
function detachNatively(buffer: ArrayBuffer): void {
  const { setFlagsFromString } = nodeModule("node:v8");
  setFlagsFromString("--allow-natives-syntax");
  try {
    new Function("buffer", "%ArrayBufferDetach(buffer)")(buffer);
  } finally {
    setFlagsFromString("--no-allow-natives-syntax");
  }
}
