/**
 * Deprecating releases and packages.
 *
 * In: a message, for one version or for all. Out: the new state. The rights are those of a yank.
 */
import { jsonAnswer } from "../answer.ts";
import { readJsonBody, textField } from "../body.ts";
import { Problem } from "../problem.ts";
import { type Call, knownQuery } from "../services.ts";
import { deprecate, undeprecate } from "../store/deprecations.ts";
import { findRelease } from "../store/packages.ts";
import { requireSteward } from "./publish.ts";

/** `POST /api/packages/{name}/deprecation` */
export async function postDeprecation(call: Call): Promise<Response> {
  knownQuery(call, []);
  const { id, identity, writes } = await requireSteward(call);
  const { settings, now, log } = call.services;
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["message", "version"],
  });
  const message = textField(body, "message", { min: 1, max: 300 });
  const version = body["version"] === undefined ? undefined : textField(body, "version", { min: 1, max: 256 });
  await requireRelease(call, id, version);
  await deprecate(writes, { package: id, version, message, account: identity.account, at: now() });
  log("deprecate", { package: id, version: version ?? "", account: identity.accountName });
  return answer(call, id, version, message);
}

/** `DELETE /api/packages/{name}/deprecation`, of one version with `?version=`. */
export async function deleteDeprecation(call: Call): Promise<Response> {
  knownQuery(call, ["version"]);
  const version = call.url.searchParams.get("version") ?? undefined;
  const { id, identity, writes } = await requireSteward(call);
  const { now, log } = call.services;
  await requireRelease(call, id, version);
  await undeprecate(writes, { package: id, version, account: identity.account, at: now() });
  log("undeprecate", { package: id, version: version ?? "", account: identity.accountName });
  return answer(call, id, version, null);
}

async function requireRelease(call: Call, id: string, version: string | undefined): Promise<void> {
  if (version === undefined || await findRelease(call.services.database, id, version) !== undefined) return;
  throw new Problem("version.unknown", `${id} has no version ${version.slice(0, 60)}`);
}

function answer(call: Call, name: string, version: string | undefined, message: string | null): Response {
  return jsonAnswer(call.request, { name, version: version ?? null, deprecated: message }, { cache: "never" });
}
