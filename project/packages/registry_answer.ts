/**
 * The form of a registry's answers.
 *
 * In: untrusted bytes and the schema of an answer. Out: the value, or a finding with the address. Repeated keys
 * are refused, because programs disagree about which one counts.
 */
import { fail } from "../base/diagnostic.ts";
import { type JsonValue, readJson } from "../base/json_read.ts";
import { type Schema, walkSchema } from "../base/schema_walk.ts";

/** A registry's answer of a shape, or a finding. `what` names the answer in the finding. */
export function parsed(bytes: Uint8Array, url: string, schema: Schema, what = "response"): JsonValue {
  const reading = readJson(bytes, { file: url, codes: "registry", maxBytes: bytes.length });
  const wrong = reading.ok
    ? reading.document.duplicates[0]?.message ?? walkSchema(reading.document.value, schema, { limit: 1 })[0]?.message
    : reading.diagnostics[0].message;
  if (!reading.ok || wrong !== undefined) {
    throw fail("registry.answer", `${url} returned an invalid ${what}: ${wrong}`);
  }
  return reading.document.value;
}
