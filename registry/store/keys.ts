/**
 * Signing keys, secrets of the server and documentation: the state that all processes on one database share.
 *
 * The first process creates a key or a secret, the others read it. Documentation of an official release is written
 * once.
 */
import { randomBytes } from "node:crypto";
import { endorseKey, makeSigningKey, type SigningKey } from "../signing.ts";
import { type Database, first, maybeNumber, numberOf, type Queries, textOf } from "./database.ts";

/** A public key as the registry shows it. */
interface PublicKey {
  readonly id: string;
  readonly publicKey: string;
  readonly createdAt: number;
  readonly retiredAt?: number;
  /** The endorsement by its predecessor: the name of that key, and its signature. */
  readonly endorsement?: { readonly keyId: string; readonly value: string };
}

/**
 * The key that signs now; made when there is none. `given` (from the environment) becomes that key, endorsed by the one
 * it replaces when that one's private half is here or among `earlier`.
 */
export function currentKey(
  database: Database,
  at: number,
  given?: SigningKey,
  earlier: readonly SigningKey[] = [],
): Promise<SigningKey> {
  return database.write(async (queries) => {
    await lock(queries);
    const row = await first(
      queries,
      "SELECT id, public_key, private_key FROM signing_keys WHERE retired_at IS NULL ORDER BY created_at DESC LIMIT 1",
    );
    const known = row && {
      id: textOf(row, "id"),
      publicKey: textOf(row, "public_key"),
      privateKey: textOf(row, "private_key"),
    };
    if (known !== undefined && (given === undefined || given.id === known.id)) return { ...known, ...given };
    const key = given ?? makeSigningKey();
    await queries.run("UPDATE signing_keys SET retired_at = ? WHERE retired_at IS NULL", at);
    const before = known === undefined
      ? undefined
      : known.privateKey === ""
      ? earlier.find((k) => k.id === known.id)
      : known;
    await queries.run(
      `INSERT INTO signing_keys (id, public_key, private_key, created_at, endorsed_by, endorsement)
       VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET retired_at = NULL`,
      key.id,
      key.publicKey,
      // A key from the environment stays there.
      given === undefined ? key.privateKey : "",
      at,
      before?.id ?? null,
      before === undefined ? null : endorseKey(key.publicKey, before),
    );
    return key;
  });
}

/** Every key that ever signed, newest first. */
export async function listKeys(queries: Queries): Promise<PublicKey[]> {
  const rows = await queries.all(
    `SELECT id, public_key, created_at, retired_at, endorsed_by, endorsement FROM signing_keys
     ORDER BY created_at DESC, id`,
  );
  return rows.map((row) => {
    const retiredAt = maybeNumber(row, "retired_at");
    return {
      id: textOf(row, "id"),
      publicKey: textOf(row, "public_key"),
      createdAt: numberOf(row, "created_at"),
      ...(retiredAt === undefined ? {} : { retiredAt }),
      ...(row.endorsement === null
        ? {}
        : { endorsement: { keyId: textOf(row, "endorsed_by"), value: textOf(row, "endorsement") } }),
    };
  });
}

/** A secret of the server: made once, then the same for all. */
export function sharedSecret(database: Database, name: string): Promise<string> {
  return database.write(async (queries) => {
    await queries.run(
      "INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
      name,
      randomBytes(32).toString("base64url"),
    );
    return textOf((await first(queries, "SELECT value FROM secrets WHERE name = ?", name))!, "value");
  });
}

/** One process at a time passes until the transaction ends. */
async function lock(queries: Queries): Promise<void> {
  await queries.run("INSERT INTO secrets (name, value) VALUES ('lock', '') ON CONFLICT (name) DO NOTHING");
  await queries.run("UPDATE secrets SET value = '' WHERE name = 'lock'");
}

/** A page of documentation as it is kept. */
export interface StoredDocument {
  readonly path: string;
  readonly source: string;
}

/** Replaces a channel's pages. The pages of an official release (`v…`) are written once; false when they exist. */
export function writeDocuments(
  database: Database,
  channel: string,
  documents: readonly StoredDocument[],
  at: number,
): Promise<boolean> {
  return database.write(async (queries) => {
    await lock(queries);
    const known = await first(queries, "SELECT path FROM documents WHERE channel = ? LIMIT 1", channel);
    if (known !== undefined && channel.startsWith("v")) return false;
    await queries.run("DELETE FROM documents WHERE channel = ?", channel);
    for (const { path, source } of documents) {
      await queries.run(
        "INSERT INTO documents (channel, path, source, published_at) VALUES (?, ?, ?, ?)",
        channel,
        path,
        source,
        at,
      );
    }
    return true;
  });
}

/** All stored pages of all channels. */
export async function readDocuments(queries: Queries): Promise<Map<string, StoredDocument[]>> {
  const channels = new Map<string, StoredDocument[]>();
  for (const row of await queries.all("SELECT channel, path, source FROM documents ORDER BY channel, path")) {
    const channel = textOf(row, "channel");
    const list = channels.get(channel) ?? [];
    list.push({ path: textOf(row, "path"), source: textOf(row, "source") });
    channels.set(channel, list);
  }
  return channels;
}
