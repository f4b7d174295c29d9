/**
 * Cursors of lists: the position of the next page, authenticated so that clients cannot forge it.
 *
 * In: the sort values of a page's last row, and the query. Out: opaque text; reading it gives the values if it belongs
 * to this query, else a Problem.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { Problem } from "./problem.ts";

/** Makes a cursor for a query. */
export function makeCursor(after: readonly (string | number)[], query: string, secret: string): string {
  const body = Buffer.from(JSON.stringify(after)).toString("base64url");
  return `${body}.${seal(body, query, secret)}`;
}

/** Reads a cursor of this query; `types` are those of its values. */
export function readCursor(
  cursor: string,
  query: string,
  options: { readonly secret: string; readonly types: readonly ("string" | "number")[] },
): (string | number)[] {
  const parts = cursor.length <= 1000 ? cursor.split(".") : [];
  const [body, given] = parts;
  if (parts.length === 2 && body !== undefined && given !== undefined) {
    const right = Buffer.from(seal(body, query, options.secret));
    const said = Buffer.from(given);
    if (right.length === said.length && timingSafeEqual(right, said)) {
      const values = JSON.parse(Buffer.from(body, "base64url").toString()) as (string | number)[];
      if (values.length === options.types.length && values.every((v, i) => typeof v === options.types[i])) {
        return values;
      }
    }
  }
  throw new Problem("request.cursor", "the cursor does not belong to this query; start from the first page");
}

function seal(body: string, query: string, secret: string): string {
  return createHmac("sha256", secret).update(`${query}\n${body}`).digest("base64url").slice(0, 22);
}
