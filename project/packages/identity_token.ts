/**
 * Identity tokens of workflows (OpenID Connect), with which `waft plugin publish` publishes without a stored token.
 *
 * In: the environment of a workflow, a registry. Out: a token of the registry for one package, which lives for minutes.
 * An identity token is made for one registry (its audience) and sent to that registry alone, never across a redirect.
 */
import { fail } from "../base/diagnostic.ts";
import type { Schema } from "../base/schema_walk.ts";
import type { IdentitySource } from "./identity_source.ts";
import { isSafeAddress } from "./oidc_issuers.ts";
import { parsed } from "./registry_answer.ts";
import type { RegistrySource } from "./source_registry.ts";

const MAX_ANSWER_BYTES = 1 << 16;
const TIMEOUT_MS = 30_000;

const OIDC_SCHEMA: Schema = {
  type: "object",
  required: ["audience", "issuers"],
  properties: {
    audience: { type: "string", minLength: 1, maxLength: 500 },
    issuers: { type: "array", maxItems: 100, items: { type: "string", maxLength: 500 } },
  },
};
const SERVICE_SCHEMA: Schema = {
  type: "object",
  required: ["value"],
  properties: { value: { type: "string", minLength: 1, maxLength: 16_384 } },
};
const TOKEN_SCHEMA: Schema = {
  type: "object",
  required: ["secret"],
  properties: { secret: { type: "string", maxLength: 500, pattern: "^[!-~]{8,}$" } },
};

/** A token for a package of a registry. */
export async function workflowToken(
  registry: RegistrySource,
  packageId: string,
  identity: IdentitySource,
  send: typeof globalThis.fetch = fetch,
): Promise<string> {
  const token = identity.kind === "given" ? identity.token : await askService(registry, identity, send);
  const answer = await registry.exchangeIdentity(token, packageId);
  const url = `${registry.name}/api/oidc/token`;
  return (parsed(answer, url, TOKEN_SCHEMA) as unknown as { readonly secret: string }).secret;
}

/** Asks the host of the workflow for an identity token for this registry. */
async function askService(
  registry: RegistrySource,
  { url, bearer }: IdentitySource & { readonly kind: "service" },
  send: typeof globalThis.fetch,
): Promise<string> {
  const description = await registry.oidc();
  if (description === undefined) {
    throw fail("auth.identity", `${registry.name} accepts no identity tokens`, { help: "set WAFT_TOKEN to a token" });
  }
  const { audience } = parsed(description, `${registry.name}/api/oidc`, OIDC_SCHEMA) as unknown as {
    readonly audience: string;
  };
  // A registry that names another one's audience would get a token that works there.
  if (audience !== registry.name) {
    throw fail("auth.identity", `${registry.name} asks for identity tokens of ${JSON.stringify(audience)}`, {
      help: "use the public address of the registry",
    });
  }
  if (!isSafeAddress(url)) throw fail("auth.identity", "ACTIONS_ID_TOKEN_REQUEST_URL is not an https address");
  const place = new URL(url);
  place.searchParams.set("audience", audience);
  let bytes: Uint8Array;
  try {
    const response = await send(place.href, {
      headers: { accept: "application/json", authorization: `Bearer ${bearer}` },
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    bytes = new Uint8Array(await response.arrayBuffer());
    if (!response.ok || bytes.length > MAX_ANSWER_BYTES) throw new Error(`status ${response.status}`);
  } catch (error) {
    throw fail("auth.identity", `${place.origin} gives no identity token: ${(error as Error).message}`, {
      help: "the workflow needs the permission `id-token: write`",
    });
  }
  return (parsed(bytes, place.origin, SERVICE_SCHEMA) as unknown as { readonly value: string }).value;
}
