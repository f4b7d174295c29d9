/**
 * Transfers of packages: offered by the owner, accepted or declined by another account.
 *
 * In: tokens of both accounts, with the scope `owners`. Out: the offer, or the new owner. Packages below a host that is
 * proved by DNS follow the host's record and cannot be transferred.
 */
import { jsonAnswer } from "../answer.ts";
import { readJsonBody, textField } from "../body.ts";
import { Problem } from "../problem.ts";
import { type Call, knownQuery } from "../services.ts";
import { accountByName, lockOwner } from "../store/accounts.ts";
import { isoTime } from "../store/packages.ts";
import { acceptTransfer, dropOffer, listOffers, offerTransfer } from "../store/transfers.ts";
import { type Identity, requireScope, writesOf } from "../tokens.ts";
import { requirePackage } from "./packages.ts";
import { identify } from "./publish.ts";

/** `GET /api/transfers`: the offers that the account made or got. */
export async function getTransfers(call: Call): Promise<Response> {
  knownQuery(call, []);
  const identity = await identify(call);
  requireScope(identity, "owners");
  const { database, now } = call.services;
  const offers = await listOffers(database, identity.account, now());
  const shown = offers.map(({ package: name, from, to, offeredAt }) => ({
    name,
    from,
    to,
    offeredAt: isoTime(offeredAt),
  }));
  return jsonAnswer(call.request, { offers: shown }, { cache: "never" });
}

/** `POST /api/packages/{name}/transfer` */
export async function postTransfer(call: Call): Promise<Response> {
  const { id, identity } = await requireOwnersToken(call);
  const { database, settings, now } = call.services;
  const body = await readJsonBody(call.request, {
    maxBytes: settings.jsonBytes,
    timeoutMs: settings.bodyTimeoutMs,
    known: ["account"],
  });
  const name = textField(body, "account", { min: 1, max: 39 });
  const to = await accountByName(database, name);
  if (to === undefined) throw new Problem("account.unknown", `unknown account ${name}`);
  if (to.suspendedAt !== undefined) throw new Problem("account.suspended", `the account ${name} is suspended`);
  const at = now();
  await writesOf(database, identity.token, now).write(async (queries) => {
    const owned = await lockOwner(queries, id);
    if (owned?.account !== identity.account) {
      throw new Problem("owner.prefix", `${owned?.prefix ?? id} belongs to another account`);
    }
    if (owned.proof === "dns") {
      throw new Problem("owner.prefix", `${id} belongs to whom the DNS record of ${owned.prefix} names; change that`);
    }
    if (to.id === identity.account) throw new Problem("owner.taken", `${name} owns ${id} already`);
    await offerTransfer(queries, { package: id, from: identity.account, to: to.id, offeredAt: at });
  });
  return jsonAnswer(call.request, { name: id, from: identity.accountName, to: name, offeredAt: isoTime(at) }, {
    cache: "never",
    status: 201,
  });
}

/** `DELETE /api/packages/{name}/transfer`: the owner withdraws the offer, or the other account declines it. */
export async function deleteTransfer(call: Call): Promise<Response> {
  const { id, identity } = await requireOwnersToken(call);
  const { database, now } = call.services;
  const writes = writesOf(database, identity.token, now);
  if (!await writes.write((queries) => dropOffer(queries, id, identity.account, now()))) throw noOffer(id);
  return new Response(null, { status: 204, headers: { "cache-control": "no-store" } });
}

/** `POST /api/packages/{name}/transfer/accept` */
export async function postAccept(call: Call): Promise<Response> {
  const { id, identity } = await requireOwnersToken(call);
  const { database, now, log } = call.services;
  const writes = writesOf(database, identity.token, now);
  if (!await writes.write((queries) => acceptTransfer(queries, id, identity.account, now()))) throw noOffer(id);
  log("transfer", { package: id, account: identity.accountName });
  return jsonAnswer(call.request, { name: id, owner: identity.accountName }, { cache: "never" });
}

async function requireOwnersToken(call: Call): Promise<{ readonly id: string; readonly identity: Identity }> {
  knownQuery(call, []);
  const identity = await identify(call);
  const { id } = await requirePackage(call);
  requireScope(identity, "owners", id);
  return { id, identity };
}

function noOffer(id: string): Problem {
  return new Problem("transfer.unknown", `this account has no pending offer of ${id}, neither sent nor received`);
}
