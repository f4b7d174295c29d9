/**
 * Extism's manifests. In: a manifest in either spelling of its names, or only a module. Out: modules as bytes with
 * their names, and settings. Invariant: a module whose digest is not the one of the manifest is refused.
 */
import { bytesIn, inWords, isRecord, requireKnownNames, requireRecord, wholeNumber } from "../base/arguments.ts";
import { readFile } from "../host/files.ts";

/** A module of a manifest: its bytes, or the place from which they are read. */
export interface ManifestWasm {
  /** The bytes of the module. */
  data?: Uint8Array | ArrayBuffer;
  /** The path of a file. */
  path?: string;
  /** An address, which the function `fetch` of the options fetches. */
  url?: string | URL;
  /** The name by which other modules import its exports. The module that is called is `main`, or the last one. */
  name?: string;
  /** The SHA-256 of the bytes in hexadecimal digits. */
  hash?: string;
}

/** Limits of memory in a manifest. */
export interface ManifestMemory {
  /** The maximum length of each memory in pages of 64 KiB. */
  maxPages?: number;
  /** The maximum number of bytes of an HTTP response. Default: 50 MiB. */
  maxHttpResponseBytes?: number;
  /** The maximum number of bytes of all variables. Default: 1 MiB. */
  maxVarBytes?: number;
}

/** A manifest. Names may also be spelled as in JSON files: `allowed_hosts`, `max_pages`. */
export interface Manifest {
  /** The modules. */
  wasm: readonly ManifestWasm[];
  /** Values that plugins read. */
  config?: Readonly<Record<string, string>>;
  /** Hosts that plugins may request, with `*` for any characters. */
  allowedHosts?: readonly string[];
  /** Directories of the machine by the names under which WASI shows them: `{ "/data": "./data" }`. */
  allowedPaths?: Readonly<Record<string, string>>;
  /** Limits of memory. */
  memory?: ManifestMemory;
  /** The deadline of each call in milliseconds. */
  timeoutMs?: number;
}

/** A module whose bytes have been read. */
export interface LoadedWasm {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The settings of a manifest. */
export type ManifestSettings = Omit<Manifest, "wasm">;

const MANIFEST_NAMES: Readonly<Record<keyof Manifest, true>> = {
  wasm: true,
  config: true,
  allowedHosts: true,
  allowedPaths: true,
  memory: true,
  timeoutMs: true,
};

const MEMORY_NAMES: Readonly<Record<keyof ManifestMemory, true>> = {
  maxPages: true,
  maxHttpResponseBytes: true,
  maxVarBytes: true,
};

const WASM_NAMES: Readonly<Record<keyof ManifestWasm, true>> = {
  data: true,
  path: true,
  url: true,
  name: true,
  hash: true,
};

/** The fields of an object under their names in JavaScript. */
function fieldsOf(value: unknown, what: string, known: object): Record<string, unknown> {
  requireRecord(value, what);
  const fields: Record<string, unknown> = Object.create(null);
  for (const [name, field] of Object.entries(value)) {
    if (field !== undefined && field !== null) {
      fields[name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())] = field;
    }
  }
  requireKnownNames(`field of ${what}`, fields, known);
  return fields;
}

/**
 * Reads a manifest. Rejects with TypeError for one of another shape, and with Error for modules that cannot be read.
 */
export async function readManifest(
  given: unknown,
  fetchFile: typeof fetch,
): Promise<{ modules: readonly LoadedWasm[]; settings: ManifestSettings }> {
  if (given instanceof Uint8Array || given instanceof ArrayBuffer) {
    return { modules: [{ name: "main", bytes: new Uint8Array(given) }], settings: {} };
  }
  if (typeof given === "string" || given instanceof URL) return await readFrom(given, fetchFile);
  const { wasm, ...settings } = fieldsOf(given, "the manifest", MANIFEST_NAMES);
  if (!Array.isArray(wasm) || wasm.length === 0) throw new TypeError("The manifest has no modules: add the field wasm");
  const modules: LoadedWasm[] = [];
  for (const [k, entry] of wasm.entries()) modules.push(await loadWasm(entry, k === wasm.length - 1, fetchFile));
  return { modules, settings: checkSettings(settings) };
}

/** A manifest or module at an address. */
async function readFrom(address: string | URL, fetchFile: typeof fetch) {
  const bytes = await fetched(address, fetchFile);
  if (bytes[0] !== 0x7b) return { modules: [{ name: "main", bytes }], settings: {} };
  return await readManifest(JSON.parse(new TextDecoder().decode(bytes)), fetchFile);
}

async function fetched(address: string | URL, fetchFile: typeof fetch): Promise<Uint8Array> {
  const response = await fetchFile(address);
  if (!response.ok) throw new Error(`Cannot fetch ${address}: status ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function loadWasm(entry: unknown, isLast: boolean, fetchFile: typeof fetch): Promise<LoadedWasm> {
  const { data, path, url, name, hash } = fieldsOf(entry, "a module of the manifest", WASM_NAMES) as ManifestWasm;
  const bytes = data !== undefined
    ? bytesIn(data, "The field data")
    : path !== undefined
    ? readFile(path)
    : url !== undefined
    ? await fetched(url, fetchFile)
    : undefined;
  if (bytes === undefined) throw new TypeError("A module of the manifest has none of the fields data, path and url");
  if (hash !== undefined) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(bytes)));
    const found = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (found !== hash.toLowerCase()) {
      throw new Error(`The module has the digest ${found}, not ${hash} of the manifest`);
    }
  }
  return { name: name ?? (isLast ? "main" : ""), bytes };
}

function checkSettings(fields: Record<string, unknown>): ManifestSettings {
  const { config = {}, allowedHosts = [], allowedPaths = {}, memory = {}, timeoutMs } = fields;
  for (const [name, record] of Object.entries({ config, allowedPaths })) {
    if (!isRecord(record) || Object.values(record).some((value) => typeof value !== "string")) {
      throw new TypeError(`The field ${name} must be an object of strings, not ${inWords(record)}`);
    }
  }
  if (!Array.isArray(allowedHosts) || allowedHosts.some((host) => typeof host !== "string")) {
    throw new TypeError(`The field allowedHosts must be an array of strings, not ${inWords(allowedHosts)}`);
  }
  const limits = fieldsOf(memory, "the limits of memory", MEMORY_NAMES);
  for (const [name, limit] of Object.entries(limits)) wholeNumber(limit, `The field ${name}`);
  if (timeoutMs !== undefined) wholeNumber(timeoutMs, "The field timeoutMs");
  return {
    config: config as Record<string, string>,
    allowedHosts,
    allowedPaths: allowedPaths as Record<string, string>,
    memory: limits,
    ...(timeoutMs === undefined ? {} : { timeoutMs: timeoutMs as number }),
  };
}
