/**
 * Seals: authentication codes by which a realm recognizes the tokens of other realms of its process. A token has the
 * power of native code (addresses, tables of machine code), and Workers without any permission can send messages.
 *
 * In: the text of a token and its buffers of shared memory. Out: a code that depends on the text, on the addresses of
 * the buffers, which are the same in every realm, and on the secret of the process. Invariant: without that secret,
 * nothing but a copy of an existing token is accepted. The contents of the buffers are not authenticated: a Worker that
 * holds a token can change them.
 */
import type { Host } from "./host.ts";
import { nodeModule } from "./process.ts";

/** Where a buffer is. The length of a buffer that grows is not constant. */
function placeOf(host: Host, buffer: SharedArrayBuffer): string {
  const bytes = buffer.maxByteLength;
  return bytes === 0 ? "" : `${host.addressOf(new Uint8Array(buffer))}+${bytes}`;
}

/** The seal of a token of the given kind. */
export function sealOf(host: Host, kind: string, text: string, buffers: readonly SharedArrayBuffer[]): string {
  const places = buffers.map((buffer) => placeOf(host, buffer));
  return nodeModule("node:crypto").createHmac("sha256", host.processSecret())
    .update(JSON.stringify([kind, text, places])).digest("base64url");
}

/**
 * Throws TypeError unless `seal` is the seal of a token of this process. A caller reads each field of a token once,
 * and uses the values that it passed to this function.
 */
export function requireSeal(
  host: Host,
  seal: unknown,
  kind: string,
  text: unknown,
  buffers: readonly unknown[],
): asserts text is string {
  const isToken = typeof seal === "string" && typeof text === "string" &&
    buffers.every((buffer) => buffer instanceof SharedArrayBuffer) &&
    seal === sealOf(host, kind, text, buffers as SharedArrayBuffer[]);
  if (!isToken) throw new TypeError(`The value is not a token that ${kind}.share() made in this process`);
}
