/**
 * `waft-lock.json` v1: the strict parse. This header defines the format.
 *
 * In: the file's bytes and, if present, the manifest. Out: a Lockfile in which every reference holds, every
 * digest, seal and review is correct, and every grant is within its request; or all findings of the first class that
 * fails, in this order: reading (too-large, encoding, conflict-markers, syntax) · duplicate-key, unknown-key · version
 * · type, value · reference · digest · grant · config · stale · review. White space and key order carry no meaning. The
 * lockfile is the only authority at run time: no fault is reduced to a warning. A test changes every byte of lockfiles
 * in turn: each change is rejected or leaves the meaning unchanged.
 */
import { findAuthority, scopeSchema, widerThan } from "../definitions/authorities.ts";
import { checkConfig } from "../definitions/config_schema.ts";
import { checkDefinition, definitionDigest, scopeOf } from "../definitions/definition.ts";
import { type Diagnostic, ProjectError, quote, readablePointer, stepInto } from "../base/diagnostic.ts";
import { isObject, type JsonDocument, type JsonValue, readJson } from "../base/json_read.ts";
import { type LockedSource, type Lockfile, LOCKFILE_SCHEMA } from "./lock_schema.ts";
import { checkReferences } from "./lock_references.ts";
import { LockReport, packageAt, pluginAt } from "./lock_report.ts";
import { toDiagnostic } from "../manifest/manifest.ts";
import { reviewDigest, sealPackage, sealPlugin } from "./review.ts";
import { type Violation, walkSchema } from "../base/schema_walk.ts";
import { LOCK_FILE, MANIFEST_FILE } from "../base/constants.ts";
import { isCanonicalVersion } from "../base/version.ts";

/** Largest lockfile that is read. */
export const MAX_LOCK_BYTES = 4 << 20;

/** The data that the parse compares the lockfile with. */
interface LockContext {
  readonly file?: string;
  /** `plugins` of the manifest; without it staleness is not judged. */
  readonly requirements?: { readonly [id: string]: string };
}

/** The outcome of a parse; `lockfile` is there exactly when there is no finding. */
export interface LockResult {
  readonly lockfile?: Lockfile;
  readonly document?: JsonDocument;
  readonly diagnostics: readonly Diagnostic[];
  /** The file's text when it holds conflict markers, for merging. */
  readonly conflict?: string;
}

/** Reads a lockfile or throws a ProjectError with every finding of the first class that failed. */
export function readLockfile(bytes: Uint8Array, context: LockContext = {}): Lockfile {
  const result = checkLockfile(bytes, context);
  if (result.lockfile === undefined) throw new ProjectError(result.diagnostics);
  return result.lockfile;
}

/** Reads a lockfile; returns it, or the findings. */
export function checkLockfile(bytes: Uint8Array, context: LockContext = {}): LockResult {
  const file = context.file ?? LOCK_FILE;
  const reading = readJson(bytes, { file, codes: "lock", maxBytes: MAX_LOCK_BYTES });
  if (!reading.ok) {
    return { diagnostics: reading.diagnostics, ...(reading.text === undefined ? {} : { conflict: reading.text }) };
  }
  const { document } = reading;
  const { value } = document;
  const found: Diagnostic[] = [...document.duplicates];
  const walked = walkSchema(value, LOCKFILE_SCHEMA).map((v) => toLockDiagnostic(v, document));
  const version = isObject(value) ? value.lockVersion : undefined;
  const other = typeof version === "number" && Number.isInteger(version) && version !== 1;
  // The keys of another version are not ours to judge.
  if (!other) found.push(...walked.filter((d) => d.code === "lock.unknown-key"));
  if (found.length > 0) return { document, diagnostics: found };
  if (other) return { document, diagnostics: [versionFinding(document, version)] };
  if (walked.length > 0) return { document, diagnostics: walked };

  const lock = value as unknown as Lockfile;
  const report = new LockReport(document);
  for (const stage of STAGES) {
    stage(lock, report, context);
    if (report.found.length > 0) return { document, diagnostics: report.found };
  }
  return { document, lockfile: lock, diagnostics: [] };
}

function toLockDiagnostic(v: Violation, document: JsonDocument): Diagnostic {
  const d = toDiagnostic(v, document, "lock");
  return d.code === "lock.missing" ? { ...d, code: "lock.value" } : d;
}

function versionFinding(document: JsonDocument, version: number): Diagnostic {
  const newer = version > 1;
  return {
    code: "lock.version",
    severity: "error",
    message: newer
      ? `lockVersion ${version} was written by a newer waft; this one reads version 1`
      : `lockVersion ${version} does not exist; this waft reads version 1`,
    file: document.file,
    ...document.place("/lockVersion"),
    pointer: "/lockVersion",
    help: newer ? "install a newer runtime: waft version install nightly" : "restore the file from version control",
  };
}

type Stage = (lock: Lockfile, report: LockReport, context: LockContext) => void;

/** The stages after shape and version, in the order above. */
const STAGES: readonly Stage[] = [
  checkValues,
  checkReferences,
  checkDigests,
  checkGrants,
  checkConfigs,
  checkStale,
  checkReviews,
];

/** The keys of each kind of source, besides `kind`. */
const KEYS_OF_SOURCE: {
  readonly [kind in LockedSource["kind"]]: { readonly needed: readonly string[]; readonly allowed: readonly string[] };
} = {
  registry: { needed: ["registry"], allowed: [] },
  path: { needed: ["path"], allowed: [] },
  oci: { needed: ["reference", "manifest"], allowed: ["signedBy"] },
};

function checkValues(lock: Lockfile, report: LockReport): void {
  for (const [id, entry] of Object.entries(lock.packages)) {
    const at = packageAt(id);
    if (!isCanonicalVersion(entry.version)) {
      report.add(
        "value",
        `${at}/version`,
        `${readablePointer(at)}.version ${quote(entry.version, 60)} is not a canonical semantic version`,
      );
    }
    const { source } = entry;
    const { needed, allowed } = KEYS_OF_SOURCE[source.kind];
    for (const key of needed) {
      if (!Object.hasOwn(source, key)) {
        report.add("value", `${at}/source`, `${readablePointer(at)}.source needs "${key}"`);
      }
    }
    for (const key of Object.keys(source)) {
      if (key === "kind" || needed.includes(key) || allowed.includes(key)) continue;
      report.add(
        "unknown-key",
        `${at}/source/${key}`,
        `"${key}" is not allowed in a source of kind "${source.kind}"`,
        undefined,
        "key",
      );
    }
    if (source.kind === "oci" && source.reference?.includes("@") && !source.reference.endsWith(`@${source.manifest}`)) {
      report.add(
        "value",
        `${at}/source/manifest`,
        `${readablePointer(at)}.source.manifest is not that of its reference`,
      );
    }
    if (source.kind === "registry" && entry.publisher === undefined) {
      report.add("value", at, `${readablePointer(at)} needs "publisher"`);
    }
    if (source.kind !== "registry" && entry.publisher !== undefined) {
      report.add(
        "unknown-key",
        `${at}/publisher`,
        `"publisher" is not allowed for a package from ${source.kind === "path" ? "a path" : "an OCI registry"}`,
        undefined,
        "key",
      );
    }
    if (source.kind === "path" && source.path?.split("/").includes("..") === true) {
      report.add("value", `${at}/source/path`, `${readablePointer(at)}.source.path leaves the project`);
    }
  }
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const at = pluginAt(id);
    for (const v of checkDefinition(plugin.definition as unknown as JsonValue, `${at}/definition`, false)) {
      if (v.rule === "authority") continue; // Class "grant".
      const unknown = v.rule === "additionalProperties" && !v.pointer.startsWith(`${at}/definition/configSchema`);
      report.add(unknown ? "unknown-key" : "value", v.pointer, v.message, v.help, v.part);
    }
    if (plugin.entry.path.split("/").includes("..")) {
      report.add("value", `${at}/entry/path`, `${readablePointer(at)}.entry.path leaves the package`);
    }
  }
}

function checkDigests(lock: Lockfile, report: LockReport): void {
  for (const [id, entry] of Object.entries(lock.packages)) {
    if (sealPackage(id, entry) !== entry.seal) {
      report.add(
        "digest",
        `${packageAt(id)}/seal`,
        `the entry of package ${id} does not match its seal`,
        EDITED,
      );
    }
  }
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const at = pluginAt(id);
    const { definition } = plugin;
    if (definition.id !== id) {
      report.add("digest", `${at}/definition/id`, `the definition of ${id} is that of ${definition.id}`, EDITED);
    }
    const locked = lock.packages[plugin.package].version;
    if (definition.version !== locked) {
      report.add(
        "digest",
        `${at}/definition/version`,
        `the definition of ${id} is of ${definition.version}, the package is ${locked}`,
        EDITED,
      );
    }
    if (definitionDigest(definition) !== plugin.definitionDigest) {
      report.add("digest", `${at}/definitionDigest`, `the definition of ${id} does not have its digest`, EDITED);
    }
    if (sealPlugin(id, plugin) !== plugin.seal) {
      report.add("digest", `${at}/seal`, `the entry of ${id} does not match its seal`, EDITED);
    }
  }
}

const EDITED = "it was edited by hand or damaged; restore it, or run `waft add` to resolve, check and seal it again";

function checkGrants(lock: Lockfile, report: LockReport): void {
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const at = pluginAt(id);
    plugin.definition.authorities.forEach((request, i) => {
      if (findAuthority(request.name) !== undefined) return;
      report.add(
        "grant",
        `${at}/definition/authorities/${i}/name`,
        `${id} asks for ${quote(request.name)}, an authority unknown to this version of waft`,
      );
    });
    for (const [name, scope] of Object.entries(plugin.grants)) {
      const here = stepInto(`${at}/grants`, name);
      const known = findAuthority(name);
      const request = plugin.definition.authorities.find((a) => a.name === name);
      if (known === undefined) report.add("grant", here, `${quote(name)} is not an authority`, undefined, "key");
      else if (request === undefined) report.add("grant", here, `${id} did not ask for ${name}`, undefined, "key");
      else {
        const shape = walkSchema(scope, scopeSchema(known.scope, "grant"), { pointer: here });
        for (const v of shape) report.add("grant", v.pointer, v.message, v.help, v.part);
        if (shape.length === 0) {
          for (const fault of widerThan(known.scope, scopeOf(request), scope)) {
            report.add("grant", here + fault.pointer, `${name} of ${id} is wider than its request: ${fault.reason}`);
          }
        }
      }
      if (plugin.denied.includes(name)) {
        report.add("grant", here, `${name} of ${id} is both granted and denied`, undefined, "key");
      }
    }
    plugin.denied.forEach((name, i) => {
      const asked = plugin.definition.authorities.some((a) => a.name === name);
      if (!asked) {
        report.add("grant", `${at}/denied/${i}`, `${id} did not ask for ${quote(name)}, so it cannot be denied`);
      }
    });
  }
}

function checkConfigs(lock: Lockfile, report: LockReport): void {
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    for (const v of checkConfig(plugin.config, plugin.definition.configSchema, `${pluginAt(id)}/config`)) {
      report.add("config", v.pointer, `${v.message} (rule: ${v.rule})`, v.help, v.part);
    }
  }
}

function checkStale(lock: Lockfile, report: LockReport, context: LockContext): void {
  const wanted = context.requirements;
  if (wanted === undefined) return;
  for (const id of [...new Set([...Object.keys(wanted), ...Object.keys(lock.requirements)])].sort()) {
    const inManifest = Object.hasOwn(wanted, id) || id in wanted ? wanted[id] : undefined;
    const inLock = lock.requirements[id];
    if (inManifest === inLock) continue;
    const said = (range: string | undefined): string =>
      range === undefined ? "does not list it" : `has ${quote(range, 60)}`;
    report.add(
      "stale",
      inLock === undefined ? "/requirements" : stepInto("/requirements", id),
      `${id}: ${MANIFEST_FILE} ${said(inManifest)}, the lockfile ${said(inLock)}`,
      "run `waft add` to update the lockfile",
    );
  }
}

function checkReviews(lock: Lockfile, report: LockReport): void {
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const at = pluginAt(id);
    for (const request of plugin.definition.authorities) {
      if (request.mode !== "required" || plugin.denied.includes(request.name) || request.name in plugin.grants) {
        continue;
      }
      report.add(
        "review",
        `${at}/grants`,
        `${id} requires ${request.name}, which is neither granted nor denied`,
        `run \`waft plugin grant ${id}\``,
      );
    }
    const expected = reviewDigest(id, plugin, lock.packages[plugin.package].publisher, lock.plugins);
    if (expected !== plugin.review) {
      report.add(
        "review",
        `${at}/review`,
        `the grants of ${id} differ from the reviewed ones`,
        `run \`waft plugin grant ${id}\` to review them`,
      );
    }
  }
}
