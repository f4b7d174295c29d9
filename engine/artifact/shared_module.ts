/**
 * One compiled module used by several Workers: they are threads of one process, so another realm can run the code where it is. In: a
 * CompiledModule. Out: plain data for `postMessage`, and from that, in another realm, a CompiledModule with the same image.
 *
 * What is shared by address: machine code. What is shared as memory: the tables that explain it, the metadata of the binary form. What each realm has of its own:
 * canonical type ids, contexts, instances. Code that polls for deadlines reads the poll page of its realm, whose distance is written into it,
 * so it is placed again, as a copy.
 *
 * Lifetime: `share` keeps the module until `unshare`, since data on its way holds nothing. Every realm that uses the image holds one of
 * the references that image_references.ts counts; who gives the last one back drops the pages. Only the realm that placed the image can use its place again.
 */
import type { CodeDescription } from "../link/code_description.ts";
import type { FeatureSet } from "../features.ts";
import { CodeImage, type CodeTables, placeImage } from "../link/image.ts";
import { metadataOf, readMetadata } from "./module_metadata.ts";
import { CompiledModule } from "../runtime/code/compiled_module.ts";
import { ImageReferences } from "../runtime/code/image_references.ts";
import { moduleHash, rememberModuleHash } from "../runtime/snapshot/snapshot.ts";
import type { Store } from "../runtime/instance/store.ts";

/** What of a module another realm needs: plain data for `postMessage`, of which only `waft` and `version` mean something to a program. */
export interface SharedModuleToken {
  /** What it is a token of. */
  readonly waft: "module";
  /** The engine's version: another one may mean other things by the same data. */
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
   * Where the code began in the binary form, of which `binary` is the metadata and `hash` the hash.
   *
   * @internal
   */
  readonly codeOffset: number;
  /** @internal */
  readonly hash: Uint8Array;
}

/** Changes whenever the meaning of a token does. */
const VERSION = 3;

const TOKENS = new WeakMap<CompiledModule, SharedModuleToken>();
/** Modules that other realms may ask for. */
const KEPT = new Set<CompiledModule>();

/** The token of a module, which lives until it is unshared. */
export function shareModule(module: CompiledModule, features: FeatureSet): SharedModuleToken {
  KEPT.add(module);
  const known = TOKENS.get(module);
  if (known !== undefined) return known;
  const { image, references, valid: { bytes } } = module;
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

/** No other realm will ask for the module any more. */
export function unshareModule(module: CompiledModule): void {
  KEPT.delete(module);
}

/** The module of a token in this realm. Throws TypeError for what is no token, an Error when the module is gone. */
export function adoptModule(store: Store, token: SharedModuleToken): CompiledModule {
  if (token?.waft !== "module" || !(token.count instanceof SharedArrayBuffer)) {
    throw new TypeError("This is not what Module.share() returned");
  }
  if (token.version !== VERSION) throw new TypeError("The shared module comes from another version of waft");
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
