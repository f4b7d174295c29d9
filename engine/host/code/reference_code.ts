/**
 * The text of an addon of Node-API, which Deno and Bun offer, too: functions for weak references
 * (systems/native_references.ts). In: the addresses of the functions of Node-API that it calls, and the stored code
 * (generated_reference_code.ts). Out: the text of a shared object whose entry is at offset 0.
 */
import { fromBase64 } from "../../base/base64.ts";
import { REFERENCES } from "./generated_reference_code.ts";

/** The functions of Node-API that the code calls, in the order of their addresses. */
export const REFERENCE_CALLS = [
  "napi_create_function",
  "napi_set_named_property",
  "napi_get_cb_info",
  "napi_get_value_int64",
  "napi_create_reference",
  "napi_create_int64",
  "napi_get_reference_value",
  "napi_delete_reference",
  "napi_adjust_external_memory",
] as const;

/** The functions that the addon offers, by names of at most seven letters. */
export const ADDON_FUNCTIONS = ["make", "get", "remove", "adjust"] as const;

/** The bytes of an entry in the addon's list of functions: the name, and the distance of the code. */
const ENTRY_BYTES = 16;

/** The text of the addon. */
export function referenceCode(
  arch: "x64" | "arm64",
  addresses: Readonly<Record<(typeof REFERENCE_CALLS)[number], number>>,
): Uint8Array {
  const { code, labels } = REFERENCES[arch];
  const text = fromBase64(code);
  const view = new DataView(text.buffer);
  ADDON_FUNCTIONS.forEach((name, k) => {
    const at = labels.functions + k * ENTRY_BYTES;
    new TextEncoder().encodeInto(name, text.subarray(at, at + 8));
    view.setBigInt64(at + 8, BigInt(labels[name] - at), true);
  });
  REFERENCE_CALLS.forEach((name, k) => view.setBigUint64(labels.calls + k * 8, BigInt(addresses[name]), true));
  return text;
}
