/**
 * Ownership of a host, shown by a DNS record: TXT `_waft.<host>` with `waft-account=<name>`.
 *
 * Asked when a prefix is claimed and again at each publish, so that who loses a domain loses the right to publish below it.
 */
import { Resolver } from "node:dns/promises";

/** Says whether a host's owner names an account. Throws when nobody could be asked. */
export type DomainProof = (host: string, account: string) => Promise<boolean>;

/** Asks the system's name servers. */
export const dnsProof: DomainProof = async (host, account) => {
  const resolver = new Resolver({ timeout: 3000, tries: 2 });
  try {
    const records = await resolver.resolveTxt(`_waft.${host}`);
    return records.some((parts) => parts.join("").trim() === `waft-account=${account}`);
  } catch (error) {
    const { code } = error as { readonly code?: string };
    if (code === "ENOTFOUND" || code === "ENODATA") return false;
    throw error;
  }
};
