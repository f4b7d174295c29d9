/**
 * Packages: the register catalog, and the definitions that result from catalog and manifest.
 *
 * In: the files of a package (an archive or a directory). Out: its manifest and, for each catalog id, the
 * complete definition with its digest and the entry's bytes; or every finding. The manifest's metadata (name,
 * description, stability, license, repository, engines, platforms) is filled into definitions, which must not
 * contradict it. Catalog ids are exactly the package's module and its subpackages. The catalog is data: reading it runs
 * no code of the author.
 */
import {
  checkDefinition,
  type Definition,
  definitionDigest,
  normalizeDefinition,
  record,
  SHARED_DEFINITIONS,
} from "./definition.ts";
import { type Diagnostic, ProjectError, quote, readablePointer, stepInto } from "../base/diagnostic.ts";
import { type Digest, digestBytes, jcs } from "../base/integrity.ts";
import {
  emptyObject,
  isObject,
  type JsonDocument,
  type JsonObject,
  type JsonValue,
  readJson,
} from "../base/json_read.ts";
import {
  checkManifest,
  type Manifest,
  type PackageMetadata,
  type ReadManifest,
  toDiagnostic,
} from "../manifest/manifest.ts";
import { type Schema, walkSchema } from "../base/schema_walk.ts";
import { CATALOG_FILE, CATALOG_SCHEMA, MANIFEST_FILE } from "../base/constants.ts";

/** Largest catalog, in bytes. */
const MAX_CATALOG_BYTES = 1 << 20;

/** The catalog's schema, as published. */
export const CATALOG_JSON_SCHEMA: Schema = {
  ...record({
    $schema: { type: "string", const: CATALOG_SCHEMA },
    plugins: {
      type: "array",
      minItems: 1,
      maxItems: 128,
      items: record({
        entry: { type: "string", minLength: 1, maxLength: 200, pattern: "^[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*$" },
        // In a catalog everything but the id may be left to the manifest or to the default.
        definition: { ...SHARED_DEFINITIONS.definition, required: ["id"] },
      }),
    },
  }, ["$schema"]),
  definitions: SHARED_DEFINITIONS,
};

/** A plugin of an opened package. */
export interface PackagePlugin {
  readonly definition: Definition;
  readonly digest: Digest;
  readonly entry: { readonly path: string; readonly digest: Digest; readonly size: number };
  readonly bytes: Uint8Array;
}

/** An opened package. */
export interface OpenPackage {
  readonly id: string;
  readonly version: string;
  readonly manifest: Manifest;
  readonly metadata: PackageMetadata;
  readonly plugins: { readonly [id: string]: PackagePlugin };
}

/** Opens a package at a version or throws a ProjectError with all findings. */
export async function openPackage(files: ReadonlyMap<string, Uint8Array>, version: string): Promise<OpenPackage> {
  const { manifest: read, metadata } = await packageManifest(files);
  const bytes = files.get(CATALOG_FILE);
  if (bytes === undefined) {
    throw new ProjectError([{
      code: "catalog.missing",
      severity: "error",
      message: `the package has no ${CATALOG_FILE}`,
      help: "run `waft plugin catalog` to scaffold it",
    }]);
  }
  const document = readCatalogDocument(bytes);
  const found: Diagnostic[] = [];
  const plugins: { [id: string]: PackagePlugin } = Object.create(null);
  const catalog = document.value as JsonObject;
  (catalog.plugins as JsonObject[]).forEach((item, i) => {
    const at = `/plugins/${i}`;
    const add = (pointer: string, code: string, message: string, help?: string): void => {
      found.push({
        code: `catalog.${code}`,
        severity: "error",
        message,
        file: document.file,
        ...document.place(pointer),
        pointer,
        ...(help === undefined ? {} : { help }),
      });
    };
    const definition = completeDefinition(item.definition as JsonObject, metadata, version, `${at}/definition`, add);
    if (definition === undefined) return;
    const faults = checkDefinition(definition as unknown as JsonValue, `${at}/definition`);
    for (const v of faults) found.push(toDiagnostic(v, document, "catalog"));
    if (faults.length > 0) return;
    if (definition.id in plugins) {
      return add(`${at}/definition/id`, "value", `${quote(definition.id)} appears twice in the catalog`);
    }
    const path = item.entry as string;
    const entry = files.get(path);
    if (entry === undefined || path.split("/").includes("..")) {
      return add(
        `${at}/entry`,
        "entry",
        `the entry ${quote(path)} is not in the package`,
        "build the module first, or correct the path",
      );
    }
    if (entry.length === 0) return add(`${at}/entry`, "entry", `the entry ${quote(path)} is empty`);
    const full = normalizeDefinition(definition);
    plugins[full.id] = {
      definition: full,
      digest: definitionDigest(full),
      entry: { path, digest: digestBytes(entry), size: entry.length },
      bytes: entry,
    };
  });
  if (found.length === 0) {
    for (const id of [metadata.module, ...(metadata.subpackages ?? []).map((s) => s.module)]) {
      if (id in plugins) continue;
      found.push({
        code: "catalog.value",
        severity: "error",
        message: `${quote(id)} of ${MANIFEST_FILE} is not in the catalog`,
        file: document.file,
        ...document.place("/plugins"),
        pointer: "/plugins",
      });
    }
  }
  if (found.length > 0) throw new ProjectError(found);
  return { id: metadata.module, version, manifest: read.manifest, metadata, plugins };
}

/** The package's manifest, with `package` in it and consistent subpackages. */
export async function packageManifest(
  files: ReadonlyMap<string, Uint8Array>,
): Promise<{ manifest: ReadManifest; metadata: PackageMetadata }> {
  const bytes = files.get(MANIFEST_FILE);
  if (bytes === undefined) {
    throw new ProjectError([{
      code: "manifest.missing",
      severity: "error",
      message: `the package has no ${MANIFEST_FILE}`,
    }]);
  }
  const { read, diagnostics } = await checkManifest(bytes);
  if (read === undefined) throw new ProjectError(diagnostics);
  const metadata = read.manifest.package;
  if (metadata === undefined) {
    throw new ProjectError([{
      code: "manifest.no-package",
      severity: "error",
      message: `${MANIFEST_FILE} has no "package"`,
      file: MANIFEST_FILE,
      help: "applications are not published; `waft init --full --kind plugin` shows what a plugin needs",
    }]);
  }
  const found: Diagnostic[] = [];
  const ids = new Set([metadata.module]);
  (metadata.subpackages ?? []).forEach((s, i) => {
    const pointer = `/package/subpackages/${i}/module`;
    const wrong = !s.module.startsWith(`${metadata.module}/`)
      ? `${quote(s.module)} must be a path below ${quote(metadata.module)}`
      : ids.has(s.module)
      ? `${quote(s.module)} appears twice`
      : undefined;
    ids.add(s.module);
    if (wrong !== undefined) {
      found.push({
        code: "manifest.subpackage",
        severity: "error",
        message: wrong,
        file: MANIFEST_FILE,
        ...read.document.place(pointer),
        pointer,
      });
    }
  });
  if (found.length > 0) throw new ProjectError(found);
  return { manifest: read, metadata };
}

function readCatalogDocument(bytes: Uint8Array): JsonDocument {
  const reading = readJson(bytes, { file: CATALOG_FILE, codes: "catalog", maxBytes: MAX_CATALOG_BYTES });
  if (!reading.ok) throw new ProjectError(reading.diagnostics);
  const { document } = reading;
  const found = [
    ...document.duplicates,
    ...walkSchema(document.value, CATALOG_JSON_SCHEMA).map((v) => toDiagnostic(v, document, "catalog")),
  ];
  if (found.length > 0) throw new ProjectError(found);
  return document;
}

type Add = (pointer: string, code: string, message: string, help?: string) => void;

/** Fills a catalog's definition from the manifest and the defaults; contradictions are findings. */
function completeDefinition(
  given: JsonObject,
  metadata: PackageMetadata,
  version: string,
  at: string,
  add: Add,
): Definition | undefined {
  const id = given.id as string;
  const sub = (metadata.subpackages ?? []).find((s) => s.module === id);
  if (sub === undefined && id !== metadata.module) {
    add(`${at}/id`, "value", `${quote(id)} is neither package.module nor a subpackage of ${MANIFEST_FILE}`);
    return undefined;
  }
  const own = sub ?? metadata;
  const stability = own.stability ?? metadata.stability;
  const fromManifest: { readonly [key: string]: JsonValue } = {
    version,
    name: own.name,
    description: own.description,
    ...(stability === undefined ? {} : { stability }),
    compatibility: {
      engines: own.engines ?? metadata.engines ?? {},
      platforms: [...(own.platforms ?? metadata.platforms ?? [])].sort(),
    },
    provenance: { repository: metadata.repository, license: metadata.license },
  };
  const full = emptyObject();
  Object.assign(full, DEFAULTS());
  for (const key of Object.keys(given)) full[key] = given[key];
  let wrong = false;
  if (given.stability !== undefined && stability === undefined) {
    add(
      `${at}/stability`,
      "mismatch",
      `${readablePointer(`${at}/stability`)} differs from ${MANIFEST_FILE}, where it is absent`,
    );
    wrong = true;
  }
  for (const [key, value] of Object.entries(fromManifest)) {
    const said = given[key];
    if (said !== undefined && comparable(key, said) !== comparable(key, value)) {
      add(
        stepInto(at, key),
        "mismatch",
        `${readablePointer(stepInto(at, key))} differs from ${MANIFEST_FILE}: ${JSON.stringify(value).slice(0, 200)}`,
        "omit it: it is filled in from the manifest",
      );
      wrong = true;
    }
    full[key] = value;
  }
  return wrong ? undefined : full as unknown as Definition;
}

function comparable(key: string, value: JsonValue): string {
  if (key === "compatibility" && isObject(value) && Array.isArray(value.platforms)) {
    return jcs({ ...value, platforms: [...value.platforms].sort() });
  }
  return jcs(value);
}

function DEFAULTS(): { readonly [key: string]: JsonValue } {
  return {
    kind: "wasm",
    requires: {},
    authorities: [],
    provides: [],
    consumes: [],
    configSchema: { type: "object", additionalProperties: false, properties: {} },
    limits: {},
  };
}
