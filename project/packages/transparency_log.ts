/**
 * The client of a registry's transparency log: verifies that releases are included, and that the log is append-only.
 *
 * In: the answers of a registry, and the head that this machine has seen last (`registry-logs.json` of the machine's
 * state). Out: a verified head, or a ProjectError (exit 5). A head must have the signature of a known key of the
 * registry, and its tree must begin with the one seen last. Invariant: a release that requireIncluded accepts is in the
 * tree of a head that this machine remembers, so the registry cannot take it back or replace it here, nor show it to
 * this machine alone without a second head that others can compare. A registry that has never shown a log needs none.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { dirname, join } from "node:path";
import { fail, ProjectError } from "../base/diagnostic.ts";
import { DISK, type Files } from "../base/files.ts";
import { readJson } from "../base/json_read.ts";
import { requireOwnFile } from "../base/own_file.ts";
import { type MachinePaths, OWN_DIRECTORY_MODE } from "../base/paths.ts";
import { replaceWhole } from "../base/replace_file.ts";
import { record as closed } from "../definitions/definition.ts";
import { type Schema, walkSchema } from "../base/schema_walk.ts";
import { isCheckpointSigned, MAX_CHECKPOINT, readCheckpoint, type SignedHead } from "./checkpoint.ts";
import type { MachineConfig } from "./machine.ts";
import { hashLeaf, isConsistent, isIncluded, MAX_PROOF } from "./merkle_tree.ts";
import { parsed } from "./registry_answer.ts";
import { registryKey } from "./registry_keys.ts";
import { recordBytes, type ReleaseRecord } from "./release_record.ts";
import type { RegistrySource } from "./source_registry.ts";

const MAX_HEADS_FILE = 1 << 20;
const KEY_ID: Schema = { type: "string", maxLength: 16, pattern: "^[0-9a-f]{16}$" };
const CHECKPOINT: Schema = { type: "string", maxLength: MAX_CHECKPOINT };
const SIZE: Schema = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const PROOF: Schema = {
  type: "array",
  maxItems: MAX_PROOF,
  items: { type: "string", maxLength: 64, pattern: "^[0-9a-f]{64}$" },
};

// Unknown properties are allowed, so that registries can grow.
const HEAD_SCHEMA: Schema = {
  type: "object",
  required: ["checkpoint", "keyId"],
  properties: { checkpoint: CHECKPOINT, keyId: KEY_ID },
};
const CONSISTENCY_SCHEMA: Schema = { type: "object", required: ["proof"], properties: { proof: PROOF } };
const INCLUSION_SCHEMA: Schema = {
  type: "object",
  required: ["number", "proof"],
  properties: { number: SIZE, proof: PROOF },
};

/** The shape of the file with the last heads. */
const HEADS_SCHEMA: Schema = {
  type: "object",
  additionalProperties: closed({ checkpoint: CHECKPOINT, keyId: KEY_ID }),
};

/** A head as it is stored. */
interface StoredHead {
  readonly checkpoint: string;
  readonly keyId: string;
}

/** The part of the context that the log needs. */
interface LogContext {
  readonly files?: Files;
  readonly paths: MachinePaths;
  readonly machine: MachineConfig;
}

/** The file with the last head of each registry. */
export function headsFile(paths: MachinePaths): string {
  return join(paths.state, "registry-logs.json");
}

/**
 * The verified head of a registry's log, at least as long as the one that this machine remembers; asked for once by a
 * command, unless `again` is set. Undefined for a registry that has never shown a log.
 */
export function logHead(context: LogContext, source: RegistrySource, again = false): Promise<SignedHead | undefined> {
  const { log } = source;
  if (log.head === undefined || again) log.head = currentHead(context, source);
  return log.head;
}

/** Throws unless the registry's log has a release's record; nothing to check for registries without a log. */
export async function requireIncluded(
  context: LogContext,
  source: RegistrySource,
  record: ReleaseRecord,
): Promise<void> {
  const { package: id, version } = record;
  let head = await logHead(context, source);
  if (head === undefined) return;
  let answer = await source.inclusion(id, version, head.size);
  if (answer === undefined) {
    // It may have been published since this command asked for the head.
    head = (await logHead(context, source, true))!;
    answer = await source.inclusion(id, version, head.size);
  }
  if (answer === undefined) {
    throw fail("log.excluded", `the log of ${source.name} does not have ${id} ${version}, which it offers`, {
      help: "the registry may show this release to you alone: ask its operators before you use it",
    });
  }
  const { number, proof } = parsed(
    answer,
    `${source.name}, the place of ${id} ${version} in its log`,
    INCLUSION_SCHEMA,
  ) as unknown as { readonly number: number; readonly proof: readonly string[] };
  if (!isIncluded(hashLeaf(recordBytes(record)), number, head.size, bytesOf(proof), head.root)) {
    throw fail("log.excluded", `${source.name} does not prove that its log has this record of ${id} ${version}`, {
      help: "the registry may have signed another record of this release: ask its operators before you use it",
    });
  }
}

async function currentHead(context: LogContext, source: RegistrySource): Promise<SignedHead | undefined> {
  const files = context.files ?? DISK;
  const file = headsFile(context.paths);
  // Read first: another command may store a later head while this one waits for the answer.
  const last = (await readHeads(files, file))[source.name];
  const answer = await source.answerTo("log/checkpoint");
  if (answer === undefined) {
    if (last === undefined) return undefined;
    throw fail("log.missing", `${source.name} shows no log of releases, which it showed before`, {
      help: `it may be another server: ask the registry's operators; if they gave the log up, remove it from ${file}`,
    });
  }
  const head = await verifiedHead(
    context,
    source,
    parsed(answer, `${source.name}/api/log/checkpoint`, HEAD_SCHEMA) as unknown as StoredHead,
  );
  if (last !== undefined) await requireGrown(source, last, head, file);
  await writeHead(files, file, source.name, head);
  return head;
}

/** A head whose signature is that of a known key of the registry. */
async function verifiedHead(context: LogContext, source: RegistrySource, stored: StoredHead): Promise<SignedHead> {
  const { checkpoint, keyId } = stored;
  const head = readCheckpoint(checkpoint);
  if (head === undefined) throw fail("registry.answer", `${source.name} shows a head of its log in an unknown form`);
  if (!isCheckpointSigned(checkpoint, await registryKey(context, source, keyId))) {
    throw fail("log.signature", `the head of the log of ${source.name} has no signature of its key ${keyId}`, {
      help: "it was changed on its way, or this is not the registry that signed it",
    });
  }
  return { ...head, checkpoint, keyId };
}

/** Throws unless the tree of `head` begins with that of the head seen last. */
async function requireGrown(source: RegistrySource, stored: StoredHead, head: SignedHead, file: string): Promise<void> {
  const last = readCheckpoint(stored.checkpoint);
  if (last === undefined) throw fail("machine.logs", `the last head of ${source.name} is damaged`, { file });
  const evidence = {
    details: [`seen before: ${oneLine(stored.checkpoint)}`, `seen now: ${oneLine(head.checkpoint)}`],
    help: "releases may have been replaced, or shown to you alone: send both heads to the registry's operators; " +
      `if they restored it from a backup, remove it from ${file}`,
  };
  if (head.size < last.size) {
    const sizes = `${head.size} releases, which had ${last.size} before`;
    throw fail("log.rollback", `${source.name} shows a log of ${sizes}`, evidence);
  }
  let proof: readonly string[] = [];
  if (head.size > last.size && last.size > 0) {
    const answer = await source.answerTo(`log/consistency?from=${last.size}&to=${head.size}`);
    if (answer !== undefined) {
      const url = `${source.name}/api/log/consistency`;
      proof = (parsed(answer, url, CONSISTENCY_SCHEMA) as unknown as { readonly proof: readonly string[] }).proof;
    }
  }
  if (!isConsistent(last.size, head.size, bytesOf(proof), last.root, head.root)) {
    throw fail(
      "log.inconsistent",
      `${source.name} shows another history of releases than before: its log does not begin with the one seen last`,
      evidence,
    );
  }
}

function oneLine(checkpoint: string): string {
  return checkpoint.trimEnd().split("\n").filter((line) => line !== "").join(" ");
}

function bytesOf(proof: readonly string[]): Uint8Array[] {
  return proof.map((hex) => new Uint8Array(Buffer.from(hex, "hex")));
}

async function readHeads(files: Files, file: string): Promise<{ readonly [registry: string]: StoredHead }> {
  const bytes = await files.read(file, MAX_HEADS_FILE);
  if (bytes === undefined) return {};
  requireOwnFile(file);
  const reading = readJson(bytes, { file, codes: "machine", maxBytes: MAX_HEADS_FILE });
  // Treating a damaged file as empty would accept any history.
  if (!reading.ok) throw new ProjectError(reading.diagnostics);
  const wrong = reading.document.duplicates[0]?.message ??
    walkSchema(reading.document.value, HEADS_SCHEMA, { limit: 1 })[0]?.message;
  if (wrong !== undefined) throw fail("machine.logs", `this is not a list of heads of logs: ${wrong}`, { file });
  return reading.document.value as unknown as { readonly [registry: string]: StoredHead };
}

/** Stores a head, unless another command has stored a later one meanwhile. */
async function writeHead(files: Files, file: string, registry: string, head: SignedHead): Promise<void> {
  const heads = await readHeads(files, file);
  const stored = heads[registry] === undefined ? undefined : readCheckpoint(heads[registry].checkpoint);
  if (stored !== undefined && stored.size >= head.size) return;
  const { checkpoint, keyId } = head;
  const text = `${JSON.stringify({ ...heads, [registry]: { checkpoint, keyId } }, null, 2)}\n`;
  try {
    await files.makeDirectory(dirname(file), OWN_DIRECTORY_MODE);
    await replaceWhole(files, file, new TextEncoder().encode(text), 0o600);
  } catch (error) {
    // A machine whose state is read-only compares with the head that it has, or with none.
    if (!["EACCES", "EROFS", "EPERM"].includes(errorCode(error) ?? "")) throw error;
  }
}
