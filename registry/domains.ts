/**
 * Ownership of a host, proved by a DNS record: TXT `_waft.<host>` with `waft-account=<name>`.
 *
 * The record is looked up when a prefix is claimed and again at each publication and yank, so an account that loses a
 * domain loses its rights below it.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { Resolver } from "node:dns/promises";

/** Tells whether a host's record names an account. Throws when no name server answers. */
export type DomainProof = (host: string, account: string) => Promise<boolean>;

/** Asks the system's name servers. */
export const dnsProof: DomainProof = async (host, account) => {
  const resolver = new Resolver({ timeout: 3000, tries: 2 });
  try {
    const records = await resolver.resolveTxt(`_waft.${host}`);
    return records.some((parts) => parts.join("").trim() === `waft-account=${account}`);
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOTFOUND" || code === "ENODATA") return false;
    throw error;
  }
};
