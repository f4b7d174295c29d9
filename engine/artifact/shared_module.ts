/**
 * A compiled module shared by several workers. Workers are threads of one process, so another realm can run the code in
 * place. In: a CompiledModule. Out: plain data for `postMessage`; and from that data, in another realm, a
 * CompiledModule with the same code image.
 *
 * Machine code is shared by address; code tables and the metadata of the binary form are shared memory. Canonical type
 * ids, contexts and instances are per realm. Code that polls for deadlines addresses the poll page of its realm
 * relative to itself, so it is copied and placed again.
 *
 * Lifetime: `share` retains the module until `unshare`, because a token in transit holds no reference. Every realm that
 * uses the image holds one of the references counted by image_references.ts; the release of the last one discards the
 * pages. Only the realm that placed the image can reuse its address range. The retained modules belong to the realm,
 * because other realms may adopt them after the engine that shared them is gone.
 */
import { Bug } from "../errors.ts";
import type { CodeDescription } from "../link/code_description.ts";
import type { FeatureSet } from "../features.ts";
import { CodeImage, type CodeTables, placeImage } from "../link/image.ts";
import { metadataOf, readMetadata } from "./module_metadata.ts";
import { CompiledModule } from "../runtime/code/compiled_module.ts";
import { ImageReferences } from "../runtime/code/image_references.ts";
import { moduleHash, rememberModuleHash } from "../runtime/snapshot/snapshot.ts";
import type { Store } from "../runtime/instance/store.ts";

/**
 * A token by which another realm can use a module: plain data for `postMessage`. Only `waft` and `version` are
 * meaningful to programs.
 */
export interface SharedModuleToken {
  /** The kind of token. */
  readonly waft: "module";
  /** The version of the token's layout; a realm accepts only its own version. */
  readonly version: number;
  /** @internal */
  readonly base: number;
  /** @internal */
  readonly size: number;
  /** @internal */
  readonly count: SharedArrayBuffer;
  /** @internal */
  readonly binary: SharedArrayBuffer;
  /** @internal */
  readonly tables: CodeTables;
  /** @internal */
  readonly code: CodeDescription;
  /** @internal */
  readonly features: FeatureSet;
  /**
   * Offset of the code section's contents in the binary form; `binary` holds its metadata and `hash` its hash.
   *
   * @internal
   */
  readonly codeOffset: number;
  /** @internal */
  readonly hash: Uint8Array;
}

/** Incremented whenever the meaning of a token changes. */
const VERSION = 3;

/** Tokens of the modules that were shared. */
const TOKENS = new WeakMap<CompiledModule, SharedModuleToken>();
/** Modules retained for other realms. */
const RETAINED = new Map<CompiledModule, Set<object>>();

/** Returns the token of a module, which is valid until `unshareModule` of every `owner` that shared it. */
export function shareModule(module: CompiledModule, owner: object, features: FeatureSet): SharedModuleToken {
  const owners = RETAINED.get(module);
  if (owners === undefined) RETAINED.set(module, new Set([owner]));
  else owners.add(owner);
  const known = TOKENS.get(module);
  if (known !== undefined) return known;
  const { image, references, valid: { bytes } } = module;
  if (!image.isComplete) throw new Bug("The code of the module has been replaced");
  const metadata = module.codeOffset === undefined ? metadataOf(bytes) : { bytes, codeOffset: module.codeOffset };
  const tables = Object.fromEntries(Object.entries(image.tables).map(([name, column]) => [name, sharedColumn(column)]));
  const token: SharedModuleToken = {
    waft: "module",
    version: VERSION,
    base: image.base,
    size: image.size,
    count: references.share(),
    binary: sharedBytes(metadata.bytes).buffer,
    tables: tables as unknown as CodeTables,
    code: { ...module.description, signatureIds: sharedWords(module.signatureIds) },
    features,
    codeOffset: metadata.codeOffset,
    hash: moduleHash(module),
  };
  TOKENS.set(module, token);
  return token;
}

/** Ends the retention by `owner`. After the last one, adoption of the module in another realm may fail. */
export function unshareModule(module: CompiledModule, owner: object): void {
  const owners = RETAINED.get(module);
  if (owners?.delete(owner) && owners.size === 0) RETAINED.delete(module);
}

/**
 * Returns the module of a token in this realm. Throws TypeError if `token` is not a token, and Error if the module has
 * been released.
 */
export function adoptModule(store: Store, token: SharedModuleToken): CompiledModule {
  if (token?.waft !== "module" || !(token.count instanceof SharedArrayBuffer)) {
    throw new TypeError("The value is not a token from Module.share()");
  }
  if (token.version !== VERSION) throw new TypeError("The shared module was made by another version of waft");
  const known = store.moduleAt(token.base);
  if (known !== undefined) return known;
  const references = ImageReferences.hold(token.count);
  const valid = readMetadata(new Uint8Array(token.binary).slice(), token.features);
  const { thread } = store;
  let image = new CodeImage(token.base, token.size, token.tables);
  if (token.tables.pollAt.length > 0) {
    const bytes = new Uint8Array(thread.host.view(token.base, token.size)).slice();
    image = placeImage(thread.arena, bytes, token.tables);
    references.drop();
  }
  const copied = image.base !== token.base;
  const module = new CompiledModule(thread, valid, {
    ...token.code,
    codeOffset: token.codeOffset,
    image,
    ...(copied ? {} : { references }),
  });
  rememberModuleHash(module, token.hash);
  store.addModule(module);
  return module;
}

function sharedBytes(bytes: Uint8Array): Uint8Array<SharedArrayBuffer> {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

function sharedWords(words: Int32Array): Int32Array<SharedArrayBuffer> {
  const copy = new Int32Array(new SharedArrayBuffer(words.byteLength));
  copy.set(words);
  return copy;
}

function sharedColumn(column: Int32Array | Uint8Array): Int32Array | Uint8Array {
  return column instanceof Int32Array ? sharedWords(column) : sharedBytes(column);
}
