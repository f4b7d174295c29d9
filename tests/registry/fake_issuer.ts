/**
 * An issuer of identity tokens (OpenID Connect) on loopback: its description, its keys, and tokens that it signs; also
 * the service of a workflow's host that hands tokens out. Test data only.
 */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, type JWTPayload, SignJWT } from "jose";

/** A key pair of an issuer. */
export class IssuerKey {
  readonly pair: { readonly publicKey: KeyObject; readonly privateKey: KeyObject } = generateKeyPairSync("ec", {
    namedCurve: "P-256",
  });
  readonly id: string = crypto.randomUUID();
}

/** The issuer. */
export class FakeIssuer {
  /** Published keys; the last one signs. */
  keys: IssuerKey[] = [new IssuerKey()];
  readonly requests: string[] = [];
  /** Answers in place of the issuer; true when it did. */
  answer: ((path: string, response: ServerResponse) => boolean) | undefined;
  /** The claims of tokens that the service hands out. */
  claims: JWTPayload = {};
  readonly #server: Server;
  /** Seconds since 1970, for the times of tokens. */
  #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
    this.#server = createServer(async (request, response) => {
      const url = new URL(request.url ?? "/", this.url);
      this.requests.push(`${request.headers.authorization ?? "-"} ${url.pathname}${url.search}`);
      if (this.answer?.(url.pathname, response) === true) return;
      const json = (value: unknown): void => {
        response.setHeader("content-type", "application/json").end(JSON.stringify(value));
      };
      if (url.pathname === "/.well-known/openid-configuration") {
        json({ issuer: this.url, jwks_uri: `${this.url}/jwks` });
      } else if (url.pathname === "/jwks") {
        json({
          keys: await Promise.all(this.keys.map(async ({ pair, id }) => ({
            ...await exportJWK(pair.publicKey),
            kid: id,
            alg: "ES256",
            use: "sig",
          }))),
        });
      } else if (url.pathname === "/token" && request.headers.authorization === "Bearer workflow") {
        json({ value: await this.token(url.searchParams.get("audience") ?? "", this.claims) });
      } else response.writeHead(404).end();
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async listen(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** A token for an audience; `key` signs it, the last published one by default. */
  async token(audience: string, claims: JWTPayload, key: IssuerKey = this.keys.at(-1)!): Promise<string> {
    const now = this.#now();
    return await new SignJWT({
      iss: this.url,
      aud: audience,
      sub: "repo:acme/kv:ref:refs/heads/main",
      iat: now,
      exp: now + 300,
      jti: crypto.randomUUID(),
      ...claims,
    }).setProtectedHeader({ alg: "ES256", kid: key.id }).sign(key.pair.privateKey);
  }
}
