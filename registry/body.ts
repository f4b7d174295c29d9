/**
 * Reads request bodies: bounded in size and time, of the right media type, complete.
 *
 * In: an untrusted request. Out: bytes or JSON, or a Problem. At most `maxBytes` are held in memory, regardless of the
 * length that the request claims.
 */
import { isObject, type JsonObject, type JsonValue, readJson } from "../project/base/json_read.ts";
import { findingsOf, Problem } from "./problem.ts";

/** Reads a body. */
export async function readBody(request: Request, maxBytes: number, timeoutMs: number): Promise<Uint8Array> {
  const said = request.headers.get("content-length");
  if (said !== null && (!/^[0-9]{1,15}$/.test(said) || Number(said) > maxBytes)) throw tooLarge(maxBytes);
  const reader = request.body?.getReader();
  if (reader === undefined) return new Uint8Array(0);
  const parts: Uint8Array[] = [];
  let length = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Problem("request.timeout", `the body did not arrive within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
  });
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late]);
      if (done) break;
      length += value.length;
      if (length > maxBytes) throw tooLarge(maxBytes);
      parts.push(value);
    }
  } catch (error) {
    // The rest stays unread; the connection closes after the answer.
    reader.cancel().catch(() => {});
    if (error instanceof Problem) throw error;
    throw new Problem("request.malformed", "the connection closed before the body was complete");
  } finally {
    clearTimeout(timer);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function tooLarge(maxBytes: number): Problem {
  return new Problem("request.too-large", `at most ${maxBytes} bytes are accepted`, {
    headers: { connection: "close" },
  });
}

/** The media type of a request, without parameters. */
export function mediaType(request: Request): string {
  return (request.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
}

/** Reads a JSON object; an empty body is an empty object when `optional`. Keys outside of `known` are refused. */
export async function readJsonBody(
  request: Request,
  options: {
    readonly maxBytes: number;
    readonly timeoutMs: number;
    readonly known: readonly string[];
    readonly optional?: boolean;
  },
): Promise<JsonObject> {
  const bytes = await readBody(request, options.maxBytes, options.timeoutMs);
  if (bytes.length === 0 && options.optional === true) return {};
  if (mediaType(request) !== "application/json") {
    throw new Problem("request.type", "the body must be application/json");
  }
  const reading = readJson(bytes, { file: "body", codes: "request", maxBytes: options.maxBytes });
  const findings = reading.ok ? reading.document.duplicates : reading.diagnostics;
  if (!reading.ok || findings.length > 0) {
    throw new Problem("request.json", findings[0]?.message ?? "the body is not JSON", { errors: findingsOf(findings) });
  }
  const { value } = reading.document;
  if (!isObject(value)) throw new Problem("request.json", "the body must be a JSON object");
  for (const key of Object.keys(value)) {
    if (!options.known.includes(key)) {
      throw new Problem("request.json", `unknown key ${JSON.stringify(key.slice(0, 60))}`, {
        errors: [{ pointer: `/${key.slice(0, 60)}`, detail: `known keys: ${options.known.join(", ")}` }],
      });
    }
  }
  return value;
}

/** A text field of a body. */
export function textField(
  body: JsonObject,
  key: string,
  rule: { readonly min: number; readonly max: number; readonly pattern?: RegExp },
): string {
  const value: JsonValue | undefined = body[key];
  const length = typeof value === "string" ? [...value].length : 0;
  const fits = typeof value === "string" && length >= rule.min && length <= rule.max &&
    (rule.pattern === undefined || rule.pattern.test(value));
  if (fits) return value;
  throw new Problem("request.json", `"${key}" must be text of ${rule.min} to ${rule.max} characters`, {
    errors: [{ pointer: `/${key}`, detail: rule.pattern === undefined ? "text" : `text that matches ${rule.pattern}` }],
  });
}
