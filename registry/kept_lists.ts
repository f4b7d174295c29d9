/**
 * Indexes of plugins and lists of versions. In: ids. Out: the index of a plugin in JSON, its releases, the versions of
 * a package. Those of thousands of releases take up to most of a second, in which a registry answers nothing else, so
 * they are kept until they change.
 *
 * Invariant: a list is returned only if the database is in the state in which it was made, whichever process changed
 * it.
 */
import type { Release } from "../project/packages/source.ts";
import type { Database } from "./store/database.ts";
import {
  indexState,
  listVersions,
  type PluginIndex,
  pluginIndex,
  type VersionLine,
  versionsState,
} from "./store/packages.ts";

/** The maximum length of all kept indexes, and of all kept lists of versions. */
const MAX_TEXT = 32 << 20;
const MAX_LINES = 100_000;

/** Values by key, each with the state of the database in which it was made; the oldest ones leave first. */
class StateCache<T> {
  readonly #kept = new Map<string, { readonly state: string; readonly value: T; readonly size: number }>();
  /** The values that are being made: many requests may ask for one at once, after a change. */
  readonly #making = new Map<string, { readonly state: string; readonly value: Promise<T> }>();
  readonly #maxSize: number;
  readonly #sizeOf: (value: T) => number;
  #size = 0;

  constructor(maxSize: number, sizeOf: (value: T) => number) {
    this.#maxSize = maxSize;
    this.#sizeOf = sizeOf;
  }

  /** The value of `key` in this state, made if it is not kept. */
  async get(key: string, state: string, make: () => Promise<T>): Promise<T> {
    const kept = this.#kept.get(key);
    if (kept?.state === state) return kept.value;
    const making = this.#making.get(key);
    if (making?.state === state) return await making.value;
    const made = { state, value: make().then((value) => this.#keep(key, state, value)) };
    this.#making.set(key, made);
    try {
      return await made.value;
    } finally {
      if (this.#making.get(key) === made) this.#making.delete(key);
    }
  }

  #keep(key: string, state: string, value: T): T {
    const size = this.#sizeOf(value);
    this.#drop(key);
    if (size <= this.#maxSize) {
      this.#kept.set(key, { state, value, size });
      this.#size += size;
    }
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= this.#maxSize) break;
      this.#drop(oldest);
    }
    return value;
  }

  #drop(key: string): void {
    this.#size -= this.#kept.get(key)?.size ?? 0;
    this.#kept.delete(key);
  }
}

/** The lists of one registry. */
export class KeptLists {
  readonly #database: Database;
  readonly #indexes = new StateCache<string | undefined>(MAX_TEXT, (text) => text?.length ?? 0);
  readonly #versions = new StateCache<readonly VersionLine[]>(MAX_LINES, (lines) => lines.length);

  constructor(database: Database) {
    this.#database = database;
  }

  /** The index of a plugin; undefined if there is none, or if its package is held. */
  async index(id: string): Promise<string | undefined> {
    const now = await indexState(this.#database, id);
    return now === undefined || now.held ? undefined : await this.#text(id, now.state);
  }

  /** The releases of plugins as the resolver takes them, those of held packages included; unknown ids are absent. */
  async releases(ids: readonly string[]): Promise<ReadonlyMap<string, readonly Release[]>> {
    const found = new Map<string, readonly Release[]>();
    for (const id of ids) {
      const now = await indexState(this.#database, id);
      const text = now && await this.#text(id, now.state);
      if (text === undefined) continue;
      const { package: of, releases } = JSON.parse(text) as PluginIndex;
      found.set(id, releases.map((release) => ({ ...release, id, package: of }) as Release));
    }
    return found;
  }

  /** The versions of a package, newest first. */
  async versions(id: string): Promise<readonly VersionLine[]> {
    const state = await versionsState(this.#database, id);
    return await this.#versions.get(id, state, () => listVersions(this.#database, id));
  }

  async #text(id: string, state: string): Promise<string | undefined> {
    return await this.#indexes.get(id, state, async () => {
      const index = await pluginIndex(this.#database, id);
      return index && JSON.stringify(index);
    });
  }
}
