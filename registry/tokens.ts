/**
 * Tokens: `waft_` and 43 letters and digits, 32 bytes of randomness, kept only as SHA-256.
 *
 * In: an Authorization field. Out: who it is and what the token allows, or a Problem that does not say which of expired,
 * revoked and unknown it was.
 */
import { createHash, randomBytes } from "node:crypto";
import { isBelow } from "./names.ts";
import { Problem } from "./problem.ts";
import { type Scope, type Token, tokenByHash } from "./store/accounts.ts";
import type { Queries } from "./store/database.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const FORM = /^Bearer (waft_[0-9A-Za-z]{43})$/;

/** Who asks. */
export interface Identity {
  readonly token: Token;
  readonly account: string;
  readonly accountName: string;
}

/** A new secret. */
export function makeSecret(): string {
  let n = BigInt(`0x${randomBytes(32).toString("hex")}`);
  let text = "";
  for (let i = 0; i < 43; i++) {
    text = ALPHABET[Number(n % 62n)] + text;
    n /= 62n;
  }
  return `waft_${text}`;
}

/** What is kept of a secret. */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Who sent a request. */
export async function authenticate(queries: Queries, request: Request, now: number): Promise<Identity> {
  const field = request.headers.get("authorization");
  const headers = { "www-authenticate": "Bearer" };
  if (field === null) throw new Problem("auth.missing", "send a token: Authorization: Bearer waft_…", { headers });
  const secret = FORM.exec(field)?.[1];
  const found = secret === undefined ? undefined : await tokenByHash(queries, hashSecret(secret));
  if (found === undefined || found.token.revokedAt !== undefined || found.token.expiresAt <= now) {
    throw new Problem("auth.invalid", "the token is unknown, expired or revoked", { headers });
  }
  return { token: found.token, account: found.token.account, accountName: found.accountName };
}

/** Throws unless the token allows something, for an id if one is given. */
export function requireScope(identity: Identity, scope: Scope, id?: string): void {
  const { scopes, prefix } = identity.token;
  if (!scopes.includes(scope) && !scopes.includes("admin")) {
    throw new Problem("auth.scope", `the token lacks the scope "${scope}"`);
  }
  if (id !== undefined && !isBelow(id, prefix)) {
    throw new Problem("auth.scope", `the token is good for ${prefix} only, not for ${id}`);
  }
}
