/**
 * Chooses the host interface by what the JavaScript runtime offers; one per realm, made on first use.
 */
import { denoHost } from "./deno.ts";
import type { Host } from "./host.ts";

let host: Host | undefined;

/** The host interface of this realm. Throws an Error that says what to do when the runtime offers no FFI. */
export function currentHost(): Host {
  return host ??= makeHost();
}

function makeHost(): Host {
  if (typeof (globalThis as { Deno?: unknown }).Deno !== "undefined") return denoHost();
  throw new Error("waft needs Deno with --allow-ffi here; this JavaScript runtime is not supported yet");
}
