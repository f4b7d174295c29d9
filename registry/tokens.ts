/**
 * Tokens: `waft_` and 43 letters and digits, 32 bytes of randomness, kept only as SHA-256.
 *
 * In: an Authorization field. Out: the account and the token's rights, or a Problem that does not distinguish expired,
 * revoked and unknown tokens. A token's prefix bounds every action that concerns an id or a prefix, also an
 * administrator's.
 */
import { createHash, randomBytes } from "node:crypto";
import { isBelow } from "./names.ts";
import { Problem } from "./problem.ts";
import { lockLiveToken, type Scope, type Token, tokenByHash } from "./store/accounts.ts";
import type { Queries, Writes } from "./store/database.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const FORM = /^Bearer (waft_[0-9A-Za-z]{43})$/;

/** An authenticated client. */
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

/** The stored hash of a secret. */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

const CHALLENGE = { "www-authenticate": "Bearer" };

/** The answer to a token that does not work. */
function badToken(): Problem {
  return new Problem("auth.invalid", "the token is unknown, expired or revoked", { headers: CHALLENGE });
}

/** Authenticates a request. */
export async function authenticate(queries: Queries, request: Request, now: number): Promise<Identity> {
  const field = request.headers.get("authorization");
  if (field === null) {
    throw new Problem("auth.missing", "send a token: Authorization: Bearer waft_…", { headers: CHALLENGE });
  }
  const secret = FORM.exec(field)?.[1];
  const found = secret === undefined ? undefined : await tokenByHash(queries, hashSecret(secret));
  if (found === undefined || found.token.revokedAt !== undefined || found.token.expiresAt <= now) {
    throw badToken();
  }
  return { token: found.token, account: found.token.account, accountName: found.accountName };
}

/**
 * The transactions of a token: each one begins with a check that the token still works, because the token may have been
 * revoked since the request was authenticated, while its body arrived. `check` adds conditions of the request.
 */
export function writesOf(
  database: Writes,
  token: Token,
  now: () => number,
  check: (queries: Queries) => Promise<void> = async () => {},
): Writes {
  return {
    write: (work) =>
      database.write(async (queries) => {
        if (!await lockLiveToken(queries, token.id, now())) throw badToken();
        await check(queries);
        return await work(queries);
      }),
  };
}

/** Throws unless the token has a scope and, if an id or a prefix is given, covers it. `*` asks for every id. */
export function requireScope(identity: Identity, scope: Scope, id?: string): void {
  const { scopes, prefix } = identity.token;
  if (!scopes.includes(scope) && !scopes.includes("admin")) {
    throw new Problem("auth.scope", `the token lacks the scope "${scope}"`);
  }
  if (id !== undefined && !isBelow(id, prefix)) {
    throw new Problem("auth.scope", `the token is valid for ${prefix} only, not for ${id === "*" ? "all ids" : id}`);
  }
}

/** True when a token has every right of another: its scopes, its prefix. */
export function outranks(token: Token, other: Token): boolean {
  const isAdmin = token.scopes.includes("admin");
  return isBelow(other.prefix, token.prefix) && (isAdmin || other.scopes.every((s) => token.scopes.includes(s)));
}
