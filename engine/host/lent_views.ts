/**
 * ArrayBuffers that programs get of memory which is not the JavaScript engine's. In: a range, and whom to tell when no ArrayBuffer has its pages
 * any more. A program may transfer pages to another ArrayBuffer, which outlives the first. The specification forbids it by a detach key, which
 * programs can set in V8 by `markAsUntransferable`; JavaScriptCore has no such thing, but says when it lets go of pages (bun.ts).
 *
 * Invariant: `gone` is called at most once, and never while an ArrayBuffer has the pages. One way around it is left: where Node has no FFI of
 * its own, buffers have no key (Node detaches them itself when a Worker ends, and would crash), so the methods that a program finds
 * on the buffer refuse, but not `ArrayBuffer.prototype.transfer` when it is called itself.
 */
import type { Ffi } from "./ffi.ts";
import { nodeModule } from "./process.ts";

/** How a runtime lends pages. */
export interface LentViews {
  /** An ArrayBuffer of the `bytes` (at least 1) at `address`; `gone` is called some time after the last one of its pages is collected. */
  lend(address: number, bytes: number, gone: () => void): ArrayBuffer;
  /** The buffer's pages cannot be transferred from now on; where a program has done so already, `gone` is never called. */
  seal(buffer: ArrayBuffer): void;
  /** Detaches a buffer that is not sealed. */
  detach(buffer: ArrayBuffer): void;
}

/** Methods of buffers that move pages. */
const METHODS = ["transfer", "transferToFixedLength", "transferToImmutable"];

function refuse(): never {
  throw new TypeError("The buffer of a memory cannot be transferred");
}

/** Lending where V8 is: finalizers tell when a buffer is gone, and a detach key keeps its pages there until then, unless there are to be no `keys`. */
export function lendWithKeys(view: Ffi["view"], keys: boolean): LentViews {
  const buffers = new FinalizationRegistry<() => void>((gone) => gone());
  return {
    lend: (address, bytes, gone) => {
      const buffer = view(address, bytes);
      buffers.register(buffer, gone, buffer);
      return buffer;
    },
    seal: (buffer) => {
      if (isDetached(buffer)) {
        buffers.unregister(buffer); // a program has taken the pages for an unknown time
      } else if (keys) nodeModule("node:worker_threads").markAsUntransferable(buffer);
      else for (const name of METHODS) if (name in buffer) Object.defineProperty(buffer, name, { value: refuse });
    },
    detach: (buffer) => {
      if (isDetached(buffer)) buffers.unregister(buffer);
      else if (typeof buffer.transfer === "function") buffer.transfer(0);
      else detachNatively(buffer);
    },
  };
}

/** Node 20 cannot tell; there no program detaches a lent buffer, and detaching an empty one has no effect. */
function isDetached(buffer: ArrayBuffer): boolean {
  return buffer.detached ?? buffer.byteLength === 0;
}

/**
 * Detaches by a function that V8 has for its own tests: in Node 20, whose `structuredClone` copies what comes from an FFI. It is compiled for
 * each use, since V8 forgets code that is not used for long, and would not understand it any more.
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
