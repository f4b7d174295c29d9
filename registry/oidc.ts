/**
 * Identity tokens of OpenID Connect: who asks to publish without a stored token.
 *
 * In: an untrusted JWT, the issuers that the operator accepts. Out: its claims, or a Problem. The signature is checked
 * by `jose` with the issuer's published keys, and with asymmetric algorithms only; issuer, audience and times are
 * checked, too. Keys are fetched from issuers of the list alone, at an address that the issuer itself publishes, so a
 * token cannot make the registry ask anybody else.
 */
import { createHash } from "node:crypto";
import { createRemoteJWKSet, decodeJwt, errors, type JWTPayload, jwtVerify, type JWTVerifyGetKey } from "jose";
import { isObject, type JsonValue, readJson } from "../project/base/json_read.ts";
import { isSafeAddress } from "../project/packages/oidc_issuers.ts";
import { Problem } from "./problem.ts";

/** The largest description of an issuer that is read. */
const MAX_DESCRIPTION_BYTES = 1 << 16;
const TIMEOUT_MS = 10_000;
/** The maximum age of a token, and the difference of clocks that is allowed. */
const MAX_AGE = "15 minutes";
const CLOCK_SECONDS = 10;
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** A token with a good signature. */
export interface VerifiedIdentity {
  readonly issuer: string;
  readonly claims: { readonly [name: string]: unknown };
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** Names the token, whatever the form of its signature. */
  readonly digest: string;
}

/** Verifies tokens; keeps the keys of issuers as long as `jose` does. */
export class IdentityVerifier {
  readonly #issuers: readonly string[];
  readonly #audience: string;
  readonly #keys = new Map<string, Promise<JWTVerifyGetKey>>();

  constructor(issuers: readonly string[], audience: string) {
    this.#issuers = issuers;
    this.#audience = audience;
  }

  /** Verifies a token at a time in milliseconds since 1970. */
  async verify(token: string, now: number): Promise<VerifiedIdentity> {
    const issuer = this.#issuerOf(token);
    const keys = await this.#keysOf(issuer);
    let payload: JWTPayload;
    try {
      ({ payload } = await jwtVerify(token, keys, {
        issuer,
        audience: this.#audience,
        algorithms: ALGORITHMS,
        currentDate: new Date(now),
        clockTolerance: CLOCK_SECONDS,
        maxTokenAge: MAX_AGE,
        requiredClaims: ["sub", "exp", "iat"],
      }));
    } catch (error) {
      throw this.#refusal(issuer, error);
    }
    return {
      issuer,
      claims: payload,
      expiresAt: payload.exp! * 1000,
      digest: createHash("sha256").update(token.slice(0, token.lastIndexOf("."))).digest("hex"),
    };
  }

  /** The issuer that a token names, if the operator accepts it. */
  #issuerOf(token: string): string {
    let named: unknown;
    try {
      named = decodeJwt(token).iss;
    } catch {
      throw refused("it is not a JWT");
    }
    const issuer = this.#issuers.find((known) => known === named);
    if (issuer !== undefined) return issuer;
    throw refused(`its issuer is not one of ${this.#issuers.join(", ") || "any"}`);
  }

  #keysOf(issuer: string): Promise<JWTVerifyGetKey> {
    let keys = this.#keys.get(issuer);
    if (keys === undefined) {
      this.#keys.set(issuer, keys = remoteKeys(issuer));
      // The next token tries again.
      keys.catch(() => this.#keys.delete(issuer));
    }
    return keys;
  }

  #refusal(issuer: string, error: unknown): Problem {
    const isOfToken = error instanceof errors.JWTInvalid || error instanceof errors.JWSInvalid ||
      error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired ||
      error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey ||
      error instanceof errors.JWKSMultipleMatchingKeys || error instanceof errors.JOSEAlgNotAllowed ||
      error instanceof errors.JOSENotSupported;
    return isOfToken ? refused(error.message) : unavailable(issuer);
  }
}

/** The keys of an issuer, from the address in its description (OpenID Connect Discovery 1.0). */
async function remoteKeys(issuer: string): Promise<JWTVerifyGetKey> {
  const description = await describe(issuer);
  const address = isObject(description) ? description.jwks_uri : undefined;
  if (!isObject(description) || description.issuer !== issuer || typeof address !== "string") throw unavailable(issuer);
  if (!isSafeAddress(address)) throw unavailable(issuer);
  return createRemoteJWKSet(new URL(address), { timeoutDuration: TIMEOUT_MS });
}

async function describe(issuer: string): Promise<JsonValue | undefined> {
  try {
    const response = await fetch(`${issuer}/.well-known/openid-configuration`, {
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const reading = readJson(bytes, { file: issuer, codes: "oidc", maxBytes: MAX_DESCRIPTION_BYTES });
    return response.ok && reading.ok ? reading.document.value : undefined;
  } catch {
    return undefined;
  }
}

function refused(reason: string): Problem {
  return new Problem("auth.identity", `the identity token is refused: ${reason.slice(0, 300)}`);
}

function unavailable(issuer: string): Problem {
  return new Problem("server.unavailable", `the keys of ${issuer} cannot be read`);
}
