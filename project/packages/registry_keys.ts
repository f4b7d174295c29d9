/**
 * The signing keys of a registry: keys named in the machine's configuration, else keys trusted on first use.
 *
 * In: a registry's answers. Out: the public key of a name, or a ProjectError (exit 5). Keys trusted on first use
 * are pinned in `registry-keys.json` of the machine's configuration; afterwards a key is added only if a known key
 * endorsed it. Control of a registry's address without its key is therefore not enough to offer a new release.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { dirname, join } from "node:path";
import { record as closed } from "../definitions/definition.ts";
import { fail, ProjectError } from "../base/diagnostic.ts";
import { DISK, type Files } from "../base/files.ts";
import { type JsonValue, readJson } from "../base/json_read.ts";
import { requireOwnFile } from "../base/own_file.ts";
import type { MachineConfig } from "./machine.ts";
import { type MachinePaths, OWN_DIRECTORY_MODE } from "../base/paths.ts";
import { parsed } from "./registry_answer.ts";
import { replaceWhole } from "../base/replace_file.ts";
import { endorsementBytes, isSigned, keyIdOf } from "./release_record.ts";
import { type Schema, walkSchema } from "../base/schema_walk.ts";
import type { RegistrySource } from "./source_registry.ts";

/** Public keys (raw, base64) by name. */
type KeySet = { readonly [id: string]: string };

const MAX_KEYS_FILE = 1 << 20;
const PUBLIC_KEY: Schema = { type: "string", maxLength: 44, pattern: "^[A-Za-z0-9+/]{43}=$" };

const PINS_SCHEMA: Schema = {
  type: "object",
  additionalProperties: { type: "object", additionalProperties: PUBLIC_KEY },
};

/** Shape of `GET /api/keys`; unknown properties are allowed, so that registries can grow. */
const KEYS_SCHEMA: Schema = {
  type: "object",
  required: ["keys"],
  properties: {
    keys: {
      type: "array",
      maxItems: 64,
      items: {
        type: "object",
        required: ["id", "algorithm", "publicKey"],
        properties: {
          id: { type: "string", maxLength: 16, pattern: "^[0-9a-f]{16}$" },
          algorithm: { type: "string", enum: ["Ed25519"] },
          publicKey: PUBLIC_KEY,
        },
      },
    },
  },
};

const ENDORSEMENT_SCHEMA: Schema = closed({
  keyId: { type: "string", maxLength: 16 },
  value: { type: "string", maxLength: 88 },
});

interface ServedKey {
  readonly id: string;
  readonly publicKey: string;
  readonly endorsement?: { readonly keyId: string; readonly value: string };
}

/** The part of the context that key lookup needs. */
interface KeyContext {
  readonly files?: Files;
  readonly paths: MachinePaths;
  readonly machine: MachineConfig;
}

/** The public key of a name, for a registry; asks the registry when the name is not known yet. */
export async function registryKey(context: KeyContext, source: RegistrySource, id: string): Promise<string> {
  const registry = source.name;
  const configured = context.machine.keys[registry];
  if (configured !== undefined) {
    const key = configured.find((k) => keyIdOf(k) === id);
    if (key !== undefined) return key;
    throw fail("signature.key", `${registry} signs with the key ${id}, which is not one of those in config.json`, {
      help: 'add the key to "keys" there when the registry\'s operators confirm it',
    });
  }
  const file = join(context.paths.config, "registry-keys.json");
  const pins = await readPins(context.files ?? DISK, file);
  const pinned = pins[registry];
  if (pinned !== undefined && Object.hasOwn(pinned, id)) return pinned[id];
  const served = parseKeys(await source.keys(), registry);
  const known: { [id: string]: string } = pinned === undefined
    ? Object.fromEntries(served.map((k) => [k.id, k.publicKey]))
    : withEndorsed(pinned, served);
  if (!Object.hasOwn(known, id)) {
    if (pinned === undefined) {
      throw fail("signature.key", `${registry} signs with the key ${id}, which it does not publish`);
    }
    throw fail("signature.key-changed", `${registry} signs with the new key ${id}, which no key known here endorses`, {
      file,
      help: `known: ${Object.keys(pinned).join(", ") || "none"}. Ask the registry's operators; ` +
        'when they confirm the key, add it to "keys" in config.json of the machine',
    });
  }
  // Other commands may have pinned keys while this one asked the registry: theirs stay, and they decide.
  const latest = await readPins(context.files ?? DISK, file);
  if (JSON.stringify(latest[registry]) !== JSON.stringify(pinned)) return await registryKey(context, source, id);
  await writePins(context.files ?? DISK, file, { ...latest, [registry]: known });
  return known[id];
}

/** The known keys and those that they endorse, directly or over others. */
function withEndorsed(pinned: KeySet, served: readonly ServedKey[]): { [id: string]: string } {
  const known: { [id: string]: string } = { ...pinned };
  for (let grown = true; grown;) {
    grown = false;
    for (const { id, publicKey, endorsement } of served) {
      if (Object.hasOwn(known, id) || endorsement === undefined || !Object.hasOwn(known, endorsement.keyId)) continue;
      if (!isSigned(endorsementBytes(publicKey), endorsement.value, known[endorsement.keyId])) continue;
      known[id] = publicKey;
      grown = true;
    }
  }
  return known;
}

function parseKeys(bytes: Uint8Array | undefined, registry: string): ServedKey[] {
  if (bytes === undefined) throw fail("signature.missing", `${registry} publishes no signing keys`);
  const value = parsed(bytes, `${registry}/api/keys`, KEYS_SCHEMA);
  const { keys } = value as unknown as { readonly keys: readonly (ServedKey & { readonly endorsement?: JsonValue })[] };
  return keys.map(({ id, publicKey, endorsement }) => {
    if (keyIdOf(publicKey) !== id) throw fail("signature.key", `${registry} lists a key under the wrong name, ${id}`);
    const isEndorsed = endorsement !== undefined &&
      walkSchema(endorsement as JsonValue, ENDORSEMENT_SCHEMA).length === 0;
    return {
      id,
      publicKey,
      ...(isEndorsed ? { endorsement: endorsement as NonNullable<ServedKey["endorsement"]> } : {}),
    };
  });
}

async function readPins(files: Files, file: string): Promise<{ readonly [registry: string]: KeySet }> {
  const bytes = await files.read(file, MAX_KEYS_FILE);
  if (bytes === undefined) return {};
  requireOwnFile(file);
  const reading = readJson(bytes, { file, codes: "machine", maxBytes: MAX_KEYS_FILE });
  // Treating a damaged file as empty would trust the next answer, whatever its origin.
  if (!reading.ok) throw new ProjectError(reading.diagnostics);
  const wrong = reading.document.duplicates[0]?.message ??
    walkSchema(reading.document.value, PINS_SCHEMA, { limit: 1 })[0]?.message;
  if (wrong !== undefined) throw fail("machine.keys", `this is not a list of registry keys: ${wrong}`, { file });
  return reading.document.value as unknown as { readonly [registry: string]: KeySet };
}

async function writePins(files: Files, file: string, pins: { readonly [registry: string]: KeySet }): Promise<void> {
  try {
    await files.makeDirectory(dirname(file), OWN_DIRECTORY_MODE);
    await replaceWhole(files, file, new TextEncoder().encode(`${JSON.stringify(pins, null, 2)}\n`), 0o600);
  } catch (error) {
    // A machine with a read-only configuration pins keys in its config.json, or trusts the offered keys each time.
    if (!["EACCES", "EROFS", "EPERM"].includes(errorCode(error) ?? "")) throw error;
  }
}
