/**
 * Transfers of packages between accounts: an offer by the owner, which the other account accepts.
 *
 * In: accounts and packages. Out: rows. Invariant: nothing changes before the offer is accepted; then the other account
 * owns the prefix that is the package's id, if the one who offered still owned the package. Releases, records and
 * lockfiles stay as they are: the next release names its new publisher.
 */
import { hostOf, isBelow } from "../names.ts";
import { audit, lockOwner, ownerOf } from "./accounts.ts";
import { first, numberOf, type Queries, type Row, textOf } from "./database.ts";

/** How long an offer lasts, in milliseconds. */
const LIFE_MS = 30 * 86_400_000;

/** An offer. Accounts are ids when it is stored, and names in lists. */
interface TransferOffer {
  readonly package: string;
  readonly from: string;
  readonly to: string;
  readonly offeredAt: number;
}

/** Stores an offer, in place of an earlier one. */
export async function offerTransfer(queries: Queries, offer: TransferOffer): Promise<void> {
  await queries.run(
    `INSERT INTO transfer_offers (package, from_account, to_account, offered_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (package) DO UPDATE SET from_account = excluded.from_account, to_account = excluded.to_account,
       offered_at = excluded.offered_at`,
    offer.package,
    offer.from,
    offer.to,
    offer.offeredAt,
  );
  await audit(queries, {
    at: offer.offeredAt,
    account: offer.from,
    action: "offer-transfer",
    subject: offer.package,
    detail: offer.to,
  });
}

/** Withdraws the offer of a package, or declines it; false when the account has no part in one. */
export async function dropOffer(queries: Queries, id: string, account: string, at: number): Promise<boolean> {
  const dropped = await queries.run(
    "DELETE FROM transfer_offers WHERE package = ? AND (from_account = ? OR to_account = ?)",
    id,
    account,
    account,
  );
  if (dropped === 1) await audit(queries, { at, account, action: "drop-transfer", subject: id });
  return dropped === 1;
}

/** Accepts the offer of a package; false if this account has no pending one. */
export async function acceptTransfer(queries: Queries, id: string, account: string, at: number): Promise<boolean> {
  // Locks the package against publications, and the prefix against other changes.
  await queries.run("UPDATE packages SET host = host WHERE id = ?", id);
  const owned = await lockOwner(queries, id);
  const row = await first(
    queries,
    "SELECT * FROM transfer_offers WHERE package = ? AND to_account = ? AND offered_at > ?",
    id,
    account,
    at - LIFE_MS,
  );
  if (row === undefined || owned?.proof !== "admin") return false;
  const { from } = offerOf(row);
  if (owned.account !== from) return false;
  const prefix = id.toLowerCase();
  if (owned.prefix === prefix) {
    await queries.run("UPDATE prefixes SET account = ?, created_at = ? WHERE prefix = ?", account, at, prefix);
  } else {
    await queries.run(
      "INSERT INTO prefixes (prefix, account, proof, created_at) VALUES (?, ?, 'admin', ?)",
      prefix,
      account,
      at,
    );
  }
  // Packages below the id, unless a longer prefix keeps them with their owner.
  for (const found of await queries.all("SELECT id FROM packages WHERE host = ?", hostOf(id))) {
    const below = textOf(found, "id");
    if (!isBelow(below, prefix) || (await ownerOf(queries, below))?.account !== account) continue;
    await queries.run("UPDATE packages SET owner = ? WHERE id = ?", account, below);
  }
  await queries.run("DELETE FROM transfer_offers WHERE package = ?", id);
  await queries.run(
    "INSERT INTO transfers (package, transferred_at, from_account, to_account) VALUES (?, ?, ?, ?)",
    id,
    at,
    from,
    account,
  );
  await audit(queries, { at, account, action: "accept-transfer", subject: id, detail: from });
  return true;
}

/** The offers that an account made or got, and that still hold, with names of accounts. */
export async function listOffers(queries: Queries, account: string, at: number): Promise<TransferOffer[]> {
  const rows = await queries.all(
    `SELECT o.package, f.name AS from_account, t.name AS to_account, o.offered_at FROM transfer_offers o
     JOIN accounts f ON f.id = o.from_account JOIN accounts t ON t.id = o.to_account
     WHERE (o.from_account = ? OR o.to_account = ?) AND o.offered_at > ? ORDER BY o.package`,
    account,
    account,
    at - LIFE_MS,
  );
  return rows.map(offerOf);
}

function offerOf(row: Row): TransferOffer {
  return {
    package: textOf(row, "package"),
    from: textOf(row, "from_account"),
    to: textOf(row, "to_account"),
    offeredAt: numberOf(row, "offered_at"),
  };
}
