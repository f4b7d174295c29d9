/**
 * Interfaces of WASI that are drafts: wasi:config, wasi:keyvalue (in memory, or a store of the host) and wasi:logging.
 * In: values that the guest may read, a limit or a store, a function that takes messages. Out: imports for
 * `Component.instantiate`, by the names of the interfaces without versions. Invariant: a guest gets an interface only
 * if the options name it, and its store in memory has at most the permitted size.
 */
import { ComponentError } from "../abi/traps.ts";
import { SHAPES, type ShapesOf } from "../link/host_imports.ts";
import type { ComponentImports } from "../link/host_names.ts";

/** The draft interfaces of a guest; it lacks those that are undefined. */
export interface DraftOptions {
  /** The values of wasi:config, by name. */
  readonly config?: Readonly<Record<string, string>>;
  /** The maximum number of bytes of keys and values in the store of wasi:keyvalue. */
  readonly keyvalueBytes?: number;
  /** A store of the host for wasi:keyvalue, in place of one in memory. Calls that use it must be able to wait. */
  readonly keyvalue?: KeyvalueStore;
  /** Takes a message of wasi:logging. */
  readonly log?: (level: string, context: string, message: string) => void;
}

/** A store of values by key. Its functions may throw ComponentErrors of wasi:keyvalue. */
export interface KeyvalueStore {
  get(key: string): MaybePromise<Uint8Array | undefined>;
  set(key: string, value: Uint8Array): MaybePromise<void>;
  delete(key: string): MaybePromise<void>;
  exists(key: string): MaybePromise<boolean>;
  /** All keys. */
  keys(): MaybePromise<string[]>;
}

type MaybePromise<T> = T | Promise<T>;

/** The error of a store that has failed. */
export function storeError(message: string): ComponentError {
  return new ComponentError({ tag: "other", val: message });
}

const CONFIG_ERROR = "variant { upstream(string), io(string) }";
const STORE_ERROR = "variant { no-such-store, access-denied, other(string) }";
const KEYS = (cursor: string) => `record { keys: list<string>, cursor: option<${cursor}> }`;

/** The shapes of the functions, by interface; the cursor of a list differs between drafts. */
const FUNCTIONS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  "wasi:config/store": {
    "get": [`func(string) -> result<option<string>, ${CONFIG_ERROR}>`],
    "get-all": [`func() -> result<list<tuple<string, string>>, ${CONFIG_ERROR}>`],
  },
  "wasi:keyvalue/store": {
    "open": [`func(string) -> result<own<bucket>, ${STORE_ERROR}>`],
    "[method]bucket.get": [`func(borrow<bucket>, string) -> result<option<list<u8>>, ${STORE_ERROR}>`],
    "[method]bucket.set": [`func(borrow<bucket>, string, list<u8>) -> result<_, ${STORE_ERROR}>`],
    "[method]bucket.delete": [`func(borrow<bucket>, string) -> result<_, ${STORE_ERROR}>`],
    "[method]bucket.exists": [`func(borrow<bucket>, string) -> result<bool, ${STORE_ERROR}>`],
    "[method]bucket.list-keys": ["string", "u64"].map((cursor) =>
      `func(borrow<bucket>, option<${cursor}>) -> result<${KEYS(cursor)}, ${STORE_ERROR}>`
    ),
  },
  "wasi:logging/logging": {
    "log": ["func(enum { trace, debug, info, warn, error, critical }, string, string)"],
  },
};

/** The imports. */
export function draftInterfaces({ config, keyvalueBytes, keyvalue, log }: DraftOptions): ComponentImports {
  const store = keyvalue ?? (keyvalueBytes === undefined ? undefined : new MemoryStore(keyvalueBytes));
  return {
    ...(config === undefined ? {} : interfaceOf("wasi:config/store", configFunctions(config))),
    ...(store === undefined ? {} : interfaceOf("wasi:keyvalue/store", storeFunctions(store))),
    ...(log === undefined ? {} : interfaceOf("wasi:logging/logging", { log })),
  };
}

function interfaceOf(name: string, functions: object): ComponentImports {
  const rows = FUNCTIONS[name];
  const shapesOf: ShapesOf = (fn) => Object.hasOwn(rows, fn) ? rows[fn] : [];
  return { [name]: { ...functions, [SHAPES]: shapesOf } };
}

function configFunctions(config: Readonly<Record<string, string>>): object {
  return {
    get: (key: string) => Object.hasOwn(config, key) ? config[key] : undefined,
    getAll: () => Object.entries(config),
  };
}

/** The identifiers of the only store. */
const STORES: readonly string[] = ["", "default"];
/** The size of an entry beside its key and its value. */
const ENTRY_BYTES = 64;

/** The functions of wasi:keyvalue/store. */
function storeFunctions(store: KeyvalueStore): object {
  class Bucket {
    get(key: string): MaybePromise<Uint8Array | undefined> {
      return store.get(key);
    }

    set(key: string, value: Uint8Array): MaybePromise<void> {
      return store.set(key, value);
    }

    delete(key: string): MaybePromise<void> {
      return store.delete(key);
    }

    exists(key: string): MaybePromise<boolean> {
      return store.exists(key);
    }

    /** All keys at once, so there is no cursor. */
    listKeys(): MaybePromise<{ keys: string[]; cursor: undefined }> {
      const keys = store.keys();
      const page = (all: string[]) => ({ keys: all, cursor: undefined });
      return keys instanceof Promise ? keys.then(page) : page(keys);
    }
  }
  const open = (identifier: string) => {
    if (!STORES.includes(identifier)) throw new ComponentError({ tag: "no-such-store" });
    return new Bucket();
  };
  return { Bucket, open };
}

/** A store in memory. */
class MemoryStore implements KeyvalueStore {
  readonly #maxBytes: number;
  readonly #entries = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(key: string): Uint8Array | undefined {
    return this.#entries.get(key);
  }

  exists(key: string): boolean {
    return this.#entries.has(key);
  }

  keys(): string[] {
    return [...this.#entries.keys()];
  }

  set(key: string, value: Uint8Array): void {
    const old = this.#sizeOf(key);
    const size = sizeOf(key, value);
    if (this.#bytes - old + size > this.#maxBytes) {
      throw storeError(`the store has at most ${this.#maxBytes} bytes`);
    }
    this.#entries.set(key, value.slice());
    this.#bytes += size - old;
  }

  delete(key: string): void {
    this.#bytes -= this.#sizeOf(key);
    this.#entries.delete(key);
  }

  #sizeOf(key: string): number {
    const value = this.#entries.get(key);
    return value === undefined ? 0 : sizeOf(key, value);
  }
}

/** The size of an entry; a character of a key has at most two bytes in memory. */
function sizeOf(key: string, value: Uint8Array): number {
  return ENTRY_BYTES + 2 * key.length + value.length;
}
