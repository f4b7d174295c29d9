/**
 * Interfaces of WASI that are drafts: wasi:config, wasi:keyvalue (in memory) and wasi:logging. In: values that the
 * guest may read, a limit, a function that takes messages. Out: imports for `Component.instantiate`, by the names of
 * the interfaces without versions. Invariant: a guest gets an interface only if the options name it, and its store has
 * at most the permitted size.
 */
import { ComponentError } from "../abi/traps.ts";
import { type ComponentImports, SHAPES, type ShapesOf } from "../link/host_imports.ts";

/** The draft interfaces of a guest; it lacks those that are undefined. */
export interface DraftOptions {
  /** The values of wasi:config, by name. */
  readonly config?: Readonly<Record<string, string>>;
  /** The maximum number of bytes of keys and values in the store of wasi:keyvalue. */
  readonly keyvalueBytes?: number;
  /** Takes a message of wasi:logging. */
  readonly log?: (level: string, context: string, message: string) => void;
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
export function draftInterfaces({ config, keyvalueBytes, log }: DraftOptions): ComponentImports {
  return {
    ...(config === undefined ? {} : interfaceOf("wasi:config/store", configFunctions(config))),
    ...(keyvalueBytes === undefined ? {} : interfaceOf("wasi:keyvalue/store", new Store(keyvalueBytes).functions())),
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

/** A store in memory. */
class Store {
  readonly #maxBytes: number;
  readonly #entries = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  functions(): object {
    const entries = this.#entries;
    const set = (key: string, value: Uint8Array) => this.#set(key, value);
    const remove = (key: string) => this.#delete(key);
    class Bucket {
      get(key: string): Uint8Array | undefined {
        return entries.get(key);
      }

      set(key: string, value: Uint8Array): void {
        set(key, value);
      }

      delete(key: string): void {
        remove(key);
      }

      exists(key: string): boolean {
        return entries.has(key);
      }

      /** All keys at once, so there is no cursor. */
      listKeys(): { keys: string[]; cursor: undefined } {
        return { keys: [...entries.keys()], cursor: undefined };
      }
    }
    const open = (identifier: string) => {
      if (!STORES.includes(identifier)) throw new ComponentError({ tag: "no-such-store" });
      return new Bucket();
    };
    return { Bucket, open };
  }

  #set(key: string, value: Uint8Array): void {
    const old = this.#sizeOf(key);
    const size = sizeOf(key, value);
    if (this.#bytes - old + size > this.#maxBytes) {
      throw new ComponentError({ tag: "other", val: `the store has at most ${this.#maxBytes} bytes` });
    }
    this.#entries.set(key, value.slice());
    this.#bytes += size - old;
  }

  #delete(key: string): void {
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
