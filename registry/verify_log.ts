/**
 * `registry verify`: checks the whole transparency log of a registry, as a monitor of the log does.
 *
 * In: the address of a registry; heads that were seen before, here or elsewhere. Out: the verified head, or a
 * ProjectError (exit 5). All entries are read: each has a good signature and names a version once, their tree has the
 * signed root, the trees of the other heads are beginnings of it, and every release in the registry's list of changes
 * has its entry. If the registry has served two histories, the heads of both cannot verify.
 */
import { existsSync, readFileSync } from "node:fs";
import { fail } from "../project/base/diagnostic.ts";
import { replaceWhole } from "../project/base/replace_file.ts";
import type { Schema } from "../project/base/schema_walk.ts";
import { isCheckpointSigned, type LogHead, MAX_CHECKPOINT, readCheckpoint } from "../project/packages/checkpoint.ts";
import { makeContext, type OpsContext, SourceSet } from "../project/packages/context.ts";
import { emptyRoot, hashLeaf, hashNode } from "../project/packages/merkle_tree.ts";
import { parsed } from "../project/packages/registry_answer.ts";
import { registryKey } from "../project/packages/registry_keys.ts";
import { isSigned, recordBytes, type ReleaseRecord } from "../project/packages/release_record.ts";
import type { RegistrySource } from "../project/packages/source_registry.ts";
import { logHead } from "../project/packages/transparency_log.ts";
import { SIGNED_RECORD } from "../project/ops/project/verify_release.ts";

/** The registry to verify, and the files with heads. */
export interface VerifyRequest {
  readonly registry: string;
  /** A file with the head of the last verification; it gets the new one. */
  readonly head?: string;
  /** Files with heads that others have seen. */
  readonly compare?: readonly string[];
}

/** What was verified. */
export interface VerifiedLog {
  readonly size: number;
  readonly root: string;
  readonly checkpoint: string;
  readonly compared: number;
}

const ENTRIES_SCHEMA: Schema = {
  type: "object",
  required: ["entries"],
  properties: {
    entries: {
      type: "array",
      maxItems: 500,
      items: {
        ...SIGNED_RECORD,
        required: ["number", "record", "signature"],
        properties: { ...SIGNED_RECORD.properties, number: { type: "integer", minimum: 0 } },
      },
    },
  },
  ...(SIGNED_RECORD.definitions === undefined ? {} : { definitions: SIGNED_RECORD.definitions }),
};

const CHANGES_SCHEMA: Schema = {
  type: "object",
  required: ["changes", "nextCursor"],
  properties: {
    changes: {
      type: "array",
      maxItems: 200,
      items: {
        type: "object",
        required: ["change", "name"],
        properties: { change: { type: "string", maxLength: 40 }, name: { type: "string", maxLength: 300 } },
      },
    },
  },
};

interface Entry {
  readonly number: number;
  readonly record: ReleaseRecord;
  readonly signature: { readonly keyId: string; readonly value: string };
}

/** A tree that grows by leaves: the roots of its complete subtrees, from the left. */
class GrowingTree {
  #size = 0;
  readonly #peaks: { readonly width: number; readonly hash: Uint8Array }[] = [];

  get size(): number {
    return this.#size;
  }

  append(leaf: Uint8Array): void {
    let peak = { width: 1, hash: leaf };
    while (this.#peaks.at(-1)?.width === peak.width) {
      peak = { width: peak.width * 2, hash: hashNode(this.#peaks.pop()!.hash, peak.hash) };
    }
    this.#peaks.push(peak);
    this.#size++;
  }

  root(): Uint8Array {
    const hashes = this.#peaks.map(({ hash }) => hash);
    return hashes.length === 0 ? emptyRoot() : hashes.reduceRight((right, left) => hashNode(left, right));
  }
}

/** Verifies a registry's log. */
export async function verifyLog(request: VerifyRequest, context?: OpsContext): Promise<VerifiedLog> {
  const used = context ?? await makeContext({ registry: request.registry });
  const source = new SourceSet(used, ".").registry(used.machine.registry);
  const own = request.head !== undefined && existsSync(request.head) ? [request.head] : [];
  const others: { readonly file: string; readonly head: LogHead }[] = [];
  for (const file of [...own, ...request.compare ?? []]) {
    others.push({ file, head: await readHead(used, source, file) });
  }
  const head = await logHead(used, source);
  if (head === undefined) throw fail("log.missing", `${source.name} shows no log of releases`);
  for (const other of others) {
    if (other.head.size <= head.size) continue;
    const sizes = `${head.size} releases; the head in ${other.file} has ${other.head.size}`;
    throw fail("log.rollback", `${source.name} shows a log of ${sizes}`);
  }
  const tree = new GrowingTree();
  const seen = new Set<string>();
  const compare = (): void => {
    for (const { file, head: other } of others) {
      if (other.size === tree.size && !isSame(other.root, tree.root())) {
        throw fail("log.inconsistent", `${source.name} shows another history of releases than the head in ${file}`, {
          file,
          help: "keep both heads: together they prove that the registry signed two histories",
        });
      }
    }
  };
  compare();
  while (tree.size < head.size) {
    for (const entry of await readEntries(source, tree.size, head.size)) {
      await requireEntry(used, source, entry, seen);
      tree.append(hashLeaf(recordBytes(entry.record)));
      compare();
    }
  }
  if (!isSame(tree.root(), head.root)) {
    throw fail("log.inconsistent", `the entries of ${source.name} are not those of the head that it signed`);
  }
  await requireLogged(used, source, seen);
  if (request.head !== undefined) {
    await replaceWhole(used.files, request.head, new TextEncoder().encode(head.checkpoint), 0o644);
  }
  const root = Buffer.from(head.root).toString("hex");
  return { size: head.size, root, checkpoint: head.checkpoint, compared: others.length };
}

/** The head in a file: a checkpoint of this registry. */
async function readHead(context: OpsContext, source: RegistrySource, file: string): Promise<LogHead> {
  const text = readFileSync(file, "utf8").slice(0, MAX_CHECKPOINT + 1);
  const head = readCheckpoint(text);
  if (head === undefined) throw fail("usage.head", "the file has no head of a log", { file });
  const keys = parsed(await source.keys() ?? new Uint8Array(), `${source.name}/api/keys`, {
    type: "object",
    required: ["keys"],
  }) as unknown as { readonly keys: readonly { readonly id: string }[] };
  for (const { id } of keys.keys) {
    if (isCheckpointSigned(text, await registryKey(context, source, id))) return head;
  }
  throw fail("log.signature", `no key of ${source.name} has signed this head`, { file });
}

/** The entries from `start` on, some of those before `end`. */
async function readEntries(source: RegistrySource, start: number, end: number): Promise<readonly Entry[]> {
  const path = `log/entries?start=${start}&limit=${Math.min(100, end - start)}`;
  const answer = await source.answerTo(path);
  const { entries } = parsed(answer ?? new Uint8Array(), `${source.name}/api/${path}`, ENTRIES_SCHEMA) as unknown as {
    readonly entries: readonly Entry[];
  };
  const isWhole = entries.length > 0 && entries.length <= end - start &&
    entries.every(({ number }, i) => number === start + i);
  if (!isWhole) throw fail("log.inconsistent", `${source.name} does not show the entries of its log from ${start} on`);
  return entries;
}

/** Throws unless an entry has a good signature and is the only one of its version. */
async function requireEntry(
  context: OpsContext,
  source: RegistrySource,
  { number, record, signature }: Entry,
  seen: Set<string>,
): Promise<void> {
  const name = `${record.package} ${record.version}`;
  if (!isSigned(recordBytes(record), signature.value, await registryKey(context, source, signature.keyId))) {
    throw fail("signature.wrong", `entry ${number} of the log of ${source.name}, ${name}, has a wrong signature`);
  }
  // Build metadata distinguishes no releases.
  const key = releaseKey(record.package, record.version);
  if (seen.has(key)) {
    throw fail("log.republished", `the log of ${source.name} has a second record of ${name}, its entry ${number}`);
  }
  seen.add(key);
}

/** Throws unless each release that the registry lists has an entry. */
async function requireLogged(context: OpsContext, source: RegistrySource, seen: ReadonlySet<string>): Promise<void> {
  let cursor: string | null = null;
  do {
    const path: string = `changes?limit=200${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
    const answer = await source.answerTo(path);
    const page = parsed(answer ?? new Uint8Array(), `${source.name}/api/${path}`, CHANGES_SCHEMA) as unknown as {
      readonly changes: readonly { readonly change: string; readonly name: string; readonly version: unknown }[];
      readonly nextCursor: unknown;
    };
    for (const { change, name, version } of page.changes) {
      if (change !== "published") continue;
      if (typeof version !== "string") {
        throw fail("registry.answer", `${source.name} lists ${name} without its version`);
      }
      if (seen.has(releaseKey(name, version))) continue;
      // It may have been published since the head was read.
      const now = await logHead(context, source, true);
      if (await source.inclusion(name, version, now!.size) === undefined) {
        throw fail("log.excluded", `the log of ${source.name} does not have ${name} ${version}, which it lists`);
      }
    }
    const next: string | null = typeof page.nextCursor === "string" ? page.nextCursor : null;
    if (next !== null && next === cursor) throw fail("registry.answer", `${source.name} repeats a page of its changes`);
    cursor = next;
  } while (cursor !== null);
}

function releaseKey(id: string, version: string): string {
  return `${id} ${version.replace(/\+.*$/, "")}`;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
