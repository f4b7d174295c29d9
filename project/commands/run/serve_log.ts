/**
 * The log of `waft serve`, in three forms: lines for people on standard error, which tell failures and changes of
 * state; a line of JSON for every event on standard output; and the Common Log Format, a line for every request on
 * standard output, beside the lines for people. Invariant: a line is written with one call, so lines of several
 * processes do not mix, and text of clients cannot begin a line.
 */
import { writeText } from "@waft/engine/internal/host/process";
import type { RequestReport } from "@waft/component/internal/http/server";
import { jsonLine } from "../../base/diagnostic.ts";
import { oneLine } from "../../base/failure.ts";
import type { WorkerEnd } from "../../ops/run/serve_workers.ts";

/** The events and their data. */
type ServeEvents = {
  listening: { readonly url: string; readonly admin?: string; readonly debug?: number };
  request: RequestReport;
  "worker-started": { readonly pid: number };
  "worker-ended": WorkerEnd;
  reloading: { readonly reason: "SIGHUP" | "file" };
  reloaded: { readonly ok: boolean };
  certificate: { readonly ok: boolean; readonly error?: unknown };
  stopping: { readonly active: number };
  stopped: Record<never, never>;
};

export type ServeLog = <Name extends keyof ServeEvents>(event: Name, data: ServeEvents[Name]) => void;

/** The text of an error, on one line. */
function errorText(error: unknown): string {
  const { message, detail } = error as { message?: unknown; detail?: unknown };
  const text = error instanceof Error ? String(message) : String(error);
  return oneLine(typeof detail === "string" && !text.includes(detail) ? `${text}: ${detail}` : text);
}

/** Writes lines of JSON. */
export const jsonLog: ServeLog = (event, data) => {
  const error = "error" in data && data.error !== undefined ? { error: errorText(data.error) } : {};
  const milliseconds = "milliseconds" in data ? { milliseconds: Math.round(data.milliseconds * 1000) / 1000 } : {};
  writeText(1, `${jsonLine({ time: new Date().toISOString(), event, ...data, ...milliseconds, ...error })}\n`);
};

/** The lines for people, by event; undefined: none. */
const TEXTS: { readonly [Name in keyof ServeEvents]: (data: ServeEvents[Name]) => string | undefined } = {
  listening: ({ url, admin, debug }) =>
    `Listening on ${url}${admin === undefined ? "" : `, for operators on ${admin}`}${
      debug === undefined ? "" : `, for editors on port ${debug}`
    }`,
  request: ({ method, path, status, error }) =>
    error === undefined
      ? undefined
      : `waft: request ${oneLine(`${method} ${path}`)}: status ${status}: ${errorText(error)}`,
  "worker-started": () => undefined,
  "worker-ended": ({ pid, status, signal, delay }) =>
    `waft: worker ${pid} ended with ${signal ?? `status ${status}`}; another one starts in ${delay} ms`,
  reloading: ({ reason }) => `Replacing the workers: ${reason === "file" ? "the component has changed" : reason}`,
  reloaded: ({ ok }) => ok ? "All workers are replaced" : "waft: the new worker did not start; the old ones continue",
  certificate: ({ ok, error }) =>
    ok ? "The certificate is replaced" : `waft: the certificate is not replaced: ${errorText(error)}`,
  stopping: ({ active }) => `Stopping; requests in progress: ${active}`,
  stopped: () => undefined,
};

/** Writes lines for people. */
export const textLog: ServeLog = (event, data) => {
  const text = TEXTS[event](data);
  if (text !== undefined) writeText(2, `${text}\n`);
};

/** Writes the Common Log Format, and lines for people. */
export const commonLog: ServeLog = (event, data) => {
  if ("path" in data) writeText(1, `${commonLine(data, new Date())}\n`);
  textLog(event, data);
};

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** A line of the Common Log Format: client, identity, user, time, request, status, bytes of the body. */
export function commonLine({ client, method, path, version, status, bytes }: RequestReport, time: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${two(time.getUTCDate())}/${MONTHS[time.getUTCMonth()]}/${time.getUTCFullYear()}`;
  const clock = [time.getUTCHours(), time.getUTCMinutes(), time.getUTCSeconds()].map(two).join(":");
  const request = quotable(`${method} ${path} HTTP/${version}`);
  return `${client === "" ? "-" : client} - - [${day}:${clock} +0000] "${request}" ${status} ${bytes || "-"}`;
}

/** Escapes quotation marks, backslashes, and everything but printable ASCII. */
function quotable(text: string): string {
  return text.replace(/["\\]|[^\x20-\x7e]/g, (char) => {
    if (char === '"' || char === "\\") return `\\${char}`;
    return [...new TextEncoder().encode(char)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  });
}
