/**
 * Logs: one JSON object on a line, escaped so that no request can forge a line or control a terminal.
 */
import process from "node:process";

/** A field of a line. */
type LogValue = string | number | boolean | null | undefined;

/** Writes a line. */
export type Log = (event: string, fields: { readonly [name: string]: LogValue }) => void;

/** Writes to stderr. */
export const logToStderr: Log = (event, fields) => {
  process.stderr.write(formatLine(event, fields) + "\n");
};

/** Writes nowhere. */
export const noLog: Log = () => {};

/** A line without its end. JSON escapes C0 controls; the others that terminals obey are escaped here. */
function formatLine(event: string, fields: { readonly [name: string]: LogValue }): string {
  return JSON.stringify({ at: new Date().toISOString(), event, ...fields }).replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
