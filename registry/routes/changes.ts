/**
 * `/api/changes`: releases, yanks, deprecations and transfers of all packages, newest first.
 */
import { jsonAnswer } from "../answer.ts";
import { readCursor } from "../cursor.ts";
import { type Call, knownQuery, numberQuery } from "../services.ts";
import { CHANGE_KEYS, type ChangePage, listChanges } from "../store/changes.ts";
import { cursorOf, nextLink } from "./packages.ts";

/** Cursors of packages do not belong to this list. */
const BOUND = "changes";

/** The page of the address, at most `max` changes, and the cursor of the next one. */
export async function changesOf(call: Call, max: number): Promise<ChangePage & { readonly nextCursor: string | null }> {
  knownQuery(call, ["limit", "cursor"]);
  const { database, cursorSecret } = call.services;
  const limit = Math.min(max, numberQuery(call, "limit", { min: 1, max: 200, fallback: 50 }));
  const cursor = call.url.searchParams.get("cursor");
  const after = cursor === null ? undefined : readCursor(cursor, BOUND, { secret: cursorSecret, types: CHANGE_KEYS });
  const page = await listChanges(database, { limit, ...(after === undefined ? {} : { after }) });
  return { ...page, nextCursor: cursorOf(page, BOUND, cursorSecret) };
}

/** `GET /api/changes` */
export async function getChanges(call: Call): Promise<Response> {
  const { changes, nextCursor } = await changesOf(call, 200);
  return jsonAnswer(call.request, { changes, nextCursor }, { cache: "short", headers: nextLink(call, nextCursor) });
}
