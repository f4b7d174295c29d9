/**
 * `plugin publishers`: the workflows that may publish below a prefix without a stored token.
 *
 * In: a prefix with an issuer and claims to add one, an id to remove one, nothing to list them. Out: the account's
 * trusted publishers, as the registry has them afterwards.
 */
import { fail } from "../../base/diagnostic.ts";
import type { Schema } from "../../base/schema_walk.ts";
import { OIDC_ISSUERS } from "../../packages/oidc_issuers.ts";
import { parsed } from "../../packages/registry_answer.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";

/** What to change. */
export interface PublishersRequest {
  readonly prefix?: string;
  /** The name of an issuer, or its address. */
  readonly issuer?: string;
  /** `NAME=VALUE`. */
  readonly claims: readonly string[];
  readonly remove?: string;
}

/** A trusted publisher. */
interface Publisher {
  readonly id: string;
  readonly prefix: string;
  readonly issuer: string;
  readonly claims: { readonly [name: string]: string };
  readonly createdAt: string;
}

/** The state afterwards. */
export interface PublishersResult {
  readonly registry: string;
  readonly publishers: readonly Publisher[];
  /** The id of the one that was added or removed. */
  readonly changed: string | null;
}

const text: Schema = { type: "string", maxLength: 500 };
const PUBLISHER: Schema = {
  type: "object",
  required: ["id", "prefix", "issuer", "claims", "createdAt"],
  properties: {
    id: text,
    prefix: text,
    issuer: text,
    claims: { type: "object", additionalProperties: text },
    createdAt: text,
  },
};
const PUBLISHERS: Schema = {
  type: "object",
  required: ["publishers"],
  properties: { publishers: { type: "array", maxItems: 1000, items: PUBLISHER } },
};

/** Changes and lists the trusted publishers of the token's account. */
export async function changePublishers(
  context: OpsContext,
  root: string,
  request: PublishersRequest,
): Promise<PublishersResult> {
  const { prefix, issuer, claims, remove } = request;
  const sources = new SourceSet(context, root);
  const source = prefix === undefined ? sources.registry(context.machine.registry) : sources.forId(prefix);
  let changed: string | null = null;
  if (remove !== undefined) {
    if (prefix !== undefined) throw fail("usage.publisher", "--remove takes the id of a publisher, and no prefix");
    await source.removePublisher(remove);
    changed = remove;
  } else if (prefix !== undefined) {
    if (issuer === undefined || claims.length === 0) {
      throw fail("usage.publisher", "a trusted publisher has an issuer and claims", {
        help: `waft plugin publishers ${prefix} --issuer github --claim repository=OWNER/NAME`,
      });
    }
    const url = OIDC_ISSUERS.find(({ name }) => name === issuer)?.url ?? issuer;
    const answer = await source.addPublisher({ prefix, issuer: url, claims: Object.fromEntries(claims.map(claimOf)) });
    changed = (parsed(answer, `${source.name}/api/trusted-publishers`, PUBLISHER) as unknown as Publisher).id;
  } else if (issuer !== undefined || claims.length > 0) {
    throw fail("usage.publisher", "--issuer and --claim need the prefix of the ids that are published");
  }
  const listed = parsed(await source.publishers(), `${source.name}/api/trusted-publishers`, PUBLISHERS);
  const { publishers } = listed as unknown as { readonly publishers: readonly Publisher[] };
  return {
    registry: source.name,
    publishers: publishers.map(({ id, prefix, issuer, claims, createdAt }) => ({
      id,
      prefix,
      issuer,
      claims: { ...claims },
      createdAt,
    })),
    changed,
  };
}

function claimOf(text: string): [string, string] {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) {
    throw fail("usage.publisher", `"${text.slice(0, 100)}" is not a claim: NAME=VALUE, such as repository=acme/kv`);
  }
  return [text.slice(0, at), text.slice(at + 1)];
}
