/**
 * A compiled module shared by several workers. Workers are threads of one process, so another realm can run the code in
 * place. In: a CompiledModule. Out: plain data for `postMessage`; and from that data, in another realm, a
 * CompiledModule with the same code image.
 *
 * Machine code is shared by address; code tables and the metadata of the binary form are shared memory. Canonical type
 * ids, contexts and instances are per realm. Code that polls for deadlines addresses the poll page of its realm
 * relative to itself, so it is copied and placed again.
 *
 * Baseline code without addresses is in the token, as it is before the realm that made it replaces it: each realm
 * places a copy, and moves up by itself (tier_up.ts). Of other baseline code the token has the binary form alone: each
 * realm compiles a body when it is first called.
 *
 * Lifetime: `share` retains the module until `unshare`, because a token in transit holds no reference. Every realm that
 * uses the image holds one of the references counted by image_references.ts; the release of the last one discards the
 * pages. Only the realm that placed the image can reuse its address range. The retained modules belong to the realm,
 * because other realms may adopt them after the engine that shared them is gone.
 */
import { fromHex, toHex } from "../base/hex.ts";
import { Bug } from "../base/errors.ts";
import type { CodeDescription } from "../link/code_description.ts";
import type { FeatureSet } from "../settings/features.ts";
import { requireSeal, sealOf } from "../host/seal.ts";
import type { OptimizeJob } from "../background/optimize_job.ts";
import { CodeImage, type CodeTables, placeImage } from "../link/image.ts";
import { TABLES } from "./format.ts";
import { readInlined, writeInlined } from "./inlined_sites.ts";
import { metadataOf, readMetadata } from "./module_metadata.ts";
import { CompiledModule } from "../runtime/code/compiled_module.ts";
import { ImageReferences } from "../runtime/code/image_references.ts";
import { moduleHash, rememberModuleHash } from "../runtime/snapshot/snapshot.ts";
import type { Store } from "../runtime/instance/store.ts";

/**
 * A token by which another realm of this process can use a module: plain data for `postMessage`. Only `waft` and
 * `version` are meaningful to programs.
 */
export interface SharedModuleToken {
  /** The kind of token. */
  readonly waft: "module";
  /** The version of the token's layout; a realm accepts only its own version. */
  readonly version: number;
  /**
   * The place and the description of the code, as JSON.
   *
   * @internal
   */
  readonly description: string;
  /**
   * The reference count, the metadata of the binary form, the signature ids, the inlined calls and the code tables; for
   * baseline code also the code, the functions that may be replaced, and the buffers of the job.
   *
   * @internal
   */
  readonly buffers: readonly SharedArrayBuffer[];
  /**
   * The proof that waft made the token in this process.
   *
   * @internal
   */
  readonly seal: string;
}

/** The part of a token that is not shared memory. */
interface SharedDescription extends Omit<CodeDescription, "signatureIds" | "inlineSites"> {
  readonly base: number;
  readonly size: number;
  readonly features: FeatureSet;
  /** Offset of the code section's contents in the binary form. */
  readonly codeOffset: number;
  /** The hash of the binary form. */
  readonly hash: string;
  /** Present for baseline code. */
  readonly baseline?: BaselineText;
}

/** The same for a token without code. */
interface SourceDescription {
  readonly source: {
    /** A name that no other token has. */
    readonly id: string;
    readonly features: FeatureSet;
    readonly baseline: BaselineText;
  };
}

type BaselineText = Omit<BaselineSharing, "replaceable" | "job"> & { readonly job: JobText };

/** The means by which another realm replaces baseline code. */
export interface BaselineSharing {
  /**
   * For each defined function, 1 if a jump may overwrite its start; undefined if other realms compile the bodies again.
   */
  readonly replaceable: Uint8Array | undefined;
  /** The job that compiles the module for all realms. */
  readonly job: OptimizeJob;
  /** Number of calls after which each realm compiles the module itself: for tests. */
  readonly afterCalls: number | undefined;
}

/** The part of a job that is not shared memory. The poll page belongs to a realm. */
type JobText = Omit<OptimizeJob, "binary" | "output" | "pollPage">;

/** Incremented whenever the meaning of a token changes. */
const VERSION = 5;

/** Tokens of the modules that were shared. */
const TOKENS = new WeakMap<CompiledModule, SharedModuleToken>();
/** Of those with baseline code, the references to the code in the token. */
const BASELINES = new WeakMap<CompiledModule, ImageReferences>();
/** Modules retained for other realms. */
const RETAINED = new Map<CompiledModule, Set<object>>();

/**
 * Returns the token of a module, which is valid until `unshareModule` of every `owner` that shared it. `baseline`: its
 * code is the baseline tier's, which nothing has replaced yet.
 */
export function shareModule(
  module: CompiledModule,
  owner: object,
  features: FeatureSet,
  baseline?: BaselineSharing,
): SharedModuleToken {
  const owners = RETAINED.get(module);
  if (owners === undefined) RETAINED.set(module, new Set([owner]));
  else owners.add(owner);
  const known = TOKENS.get(module);
  if (known !== undefined) return known;
  if (baseline !== undefined && baseline.replaceable === undefined) return shareSource(module, features, baseline);
  const { image, references, valid: { bytes } } = module;
  if (!image.isComplete) throw new Bug("The code of the module has been replaced");
  const metadata = module.codeOffset === undefined ? metadataOf(bytes) : { bytes, codeOffset: module.codeOffset };
  const { signatureIds, inlineSites, ...code } = module.description;
  const description = JSON.stringify(
    {
      ...code,
      base: image.base,
      size: image.size,
      features,
      codeOffset: metadata.codeOffset,
      hash: toHex(moduleHash(module)),
      ...(baseline && { baseline: { job: textOf(baseline.job), afterCalls: baseline.afterCalls } }),
    } satisfies SharedDescription,
  );
  const columns = [
    metadata.bytes,
    signatureIds,
    writeInlined(inlineSites),
    ...TABLES.map((name) => image.tables[name]),
  ];
  // The image of baseline code remains this realm's own.
  const held = baseline === undefined ? references : new ImageReferences(true);
  const buffers = [held.share(), ...columns.map(sharedCopy)];
  if (baseline !== undefined) {
    const { replaceable, job: { binary, output } } = baseline;
    buffers.push(sharedCopy(codeOf(module)), sharedCopy(replaceable!), binary, output);
    BASELINES.set(module, held);
  }
  return sealedToken(module, description, buffers);
}

/** The token of a module whose bodies other realms compile when they are called. */
function shareSource(module: CompiledModule, features: FeatureSet, baseline: BaselineSharing): SharedModuleToken {
  const { job, afterCalls } = baseline;
  const id = crypto.randomUUID();
  const description = JSON.stringify(
    { source: { id, features, baseline: { job: textOf(job), afterCalls } } } satisfies SourceDescription,
  );
  const held = new ImageReferences(true);
  BASELINES.set(module, held);
  const token = sealedToken(module, description, [held.share(), job.binary, job.output]);
  SOURCES.set(id, new WeakRef(module));
  return token;
}

function sealedToken(
  module: CompiledModule,
  description: string,
  buffers: readonly SharedArrayBuffer[],
): SharedModuleToken {
  const seal = sealOf(module.thread.host, "Module", description, buffers);
  const token: SharedModuleToken = { waft: "module", version: VERSION, description, buffers, seal };
  TOKENS.set(module, token);
  return token;
}

/** The modules of this realm by the names of their tokens without code. */
const SOURCES = new Map<string, WeakRef<CompiledModule>>();
const GONE = new FinalizationRegistry<string>((id) => SOURCES.delete(id));

/** Compiles the module of a token without code in this realm. */
type CompileSource = (binary: Uint8Array<ArrayBuffer>, baseline: BaselineSharing) => CompiledModule;

function textOf({ binary: _, output: __, pollPage: ___, ...text }: OptimizeJob): JobText {
  return text;
}

function codeOf({ thread, image: { base, size } }: CompiledModule): Uint8Array {
  return new Uint8Array(thread.host.view(base, size));
}

/** Ends the retention by `owner`. After the last one, adoption of the module in another realm may fail. */
export function unshareModule(module: CompiledModule, owner: object): void {
  const owners = RETAINED.get(module);
  if (!owners?.delete(owner) || owners.size > 0) return;
  RETAINED.delete(module);
  if (BASELINES.get(module)?.drop()) TOKENS.delete(module);
}

/** A module of another realm. */
interface AdoptedModule {
  readonly module: CompiledModule;
  readonly features: FeatureSet;
  /** Present for baseline code. */
  readonly baseline?: BaselineSharing;
}

/**
 * Returns the module of a token in this realm. Throws TypeError if `token` is not a token that a realm of this process
 * made, and Error if the module has been released.
 */
export function adoptModule(store: Store, token: SharedModuleToken, compile: CompileSource): AdoptedModule {
  const { waft, version, description, buffers, seal } = token ?? {} as Partial<SharedModuleToken>;
  if (waft !== "module" || !Array.isArray(buffers)) {
    throw new TypeError("The value is not a token from Module.share()");
  }
  if (version !== VERSION) throw new TypeError("The shared module was made by another version of waft");
  const { thread } = store;
  const own: readonly SharedArrayBuffer[] = [...buffers];
  requireSeal(thread.host, seal, "Module", description, own);
  const parsed = JSON.parse(description) as SharedDescription | SourceDescription;
  if ("source" in parsed) return adoptSource(store, parsed, own, compile);
  const { base, size, features, codeOffset, hash, baseline, ...code } = parsed;
  const known = baseline === undefined ? store.moduleAt(base) : undefined;
  if (known !== undefined) return { module: known, features };
  const [count, metadata, signatureIds, inlined, ...columns] = own;
  const [copy, replaceable, binary, output] = columns.splice(TABLES.length);
  const references = ImageReferences.hold(count);
  const valid = readMetadata(new Uint8Array(metadata).slice(), features);
  const tables = tablesOf(columns);
  let image = new CodeImage(base, size, tables);
  if (copy !== undefined || tables.pollAt.length > 0) {
    const bytes = copy === undefined ? new Uint8Array(thread.host.view(base, size)).slice() : new Uint8Array(copy);
    image = placeImage(thread.arena, bytes, tables);
    references.drop();
  }
  const copied = image.base !== base;
  const module = new CompiledModule(thread, valid, {
    ...code,
    signatureIds: new Int32Array(signatureIds),
    inlineSites: () => readInlined(new Int32Array(inlined)),
    codeOffset,
    image,
    ...(copied ? {} : { references }),
  });
  rememberModuleHash(module, fromHex(hash));
  store.addModule(module);
  if (baseline === undefined) return { module, features };
  const { pollPage } = thread.arena;
  const sharing = {
    ...baseline,
    replaceable: new Uint8Array(replaceable),
    job: { ...baseline.job, binary, output, pollPage },
  };
  return { module, features, baseline: sharing };
}

/** Compiles a module of which the token has no code, unless this realm has it already. */
function adoptSource(
  { thread }: Store,
  { source: { id, features, baseline } }: SourceDescription,
  [count, binary, output]: readonly SharedArrayBuffer[],
  compile: CompileSource,
): AdoptedModule {
  const { pollPage } = thread.arena;
  const sharing = { ...baseline, replaceable: undefined, job: { ...baseline.job, binary, output, pollPage } };
  const known = SOURCES.get(id)?.deref();
  if (known !== undefined) return { module: known, features, baseline: sharing };
  const references = ImageReferences.hold(count);
  const module = compile(new Uint8Array(binary).slice(), sharing);
  references.drop();
  SOURCES.set(id, new WeakRef(module));
  GONE.register(module, id);
  return { module, features, baseline: sharing };
}

/** A copy in shared memory. */
function sharedCopy(column: Int32Array | Uint8Array): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(column.byteLength);
  new Uint8Array(buffer).set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
  return buffer;
}

/** The code tables in the order of TABLES. */
function tablesOf(columns: readonly SharedArrayBuffer[]): CodeTables {
  const named = TABLES.map((name, k) => {
    const column = name === "callCross" ? new Uint8Array(columns[k]) : new Int32Array(columns[k]);
    return [name, column] as const;
  });
  return Object.fromEntries(named) as unknown as CodeTables;
}
