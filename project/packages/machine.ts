/**
 * The machine's configuration and policy: the registry for each id prefix, the directories and variables of projects'
 * guests, and the authorities that are never granted here.
 *
 * In: `config.json` and `policy.json` in the machine's configuration directory, both optional and strict. Output:
 * one MachineConfig. Files that other users could have written or replaced are refused. A policy can only narrow: it
 * overrides the grants of every lockfile. A prefix mapped to a registry never consults another one, so the public
 * registry cannot answer for private ids.
 */
import { systemName } from "@waft/engine/internal/host/process";
import { join } from "node:path";
import { findAuthority } from "../definitions/authorities.ts";
import { type Diagnostic, fail, ProjectError } from "../base/diagnostic.ts";
import { DISK, type Files } from "../base/files.ts";
import { type JsonValue, readJson } from "../base/json_read.ts";
import { toDiagnostic } from "../manifest/manifest.ts";
import type { MachinePaths } from "../base/paths.ts";
import { record, SHARED_DEFINITIONS } from "../definitions/definition.ts";
import { requireOwnFile } from "../base/own_file.ts";
import { joinPaths } from "../base/system_path.ts";
import { describePattern, type Schema, walkSchema } from "../base/schema_walk.ts";
import { BASE_URL } from "../base/constants.ts";

/** Machine-wide limits on authority. */
interface Policy {
  /** Authorities that are never granted on this machine. */
  readonly deny: readonly string[];
  /** The only registries that may be used; absent allows any trusted one. */
  readonly registries?: readonly string[];
}

/** Host directories by guest path, and environment variables, of one project's guests on this machine. */
export interface ProjectWasi {
  readonly dirs: { readonly [guest: string]: string };
  readonly env: { readonly [name: string]: string };
}

/** The machine's configuration. */
export interface MachineConfig {
  /** The registry for ids that no prefix maps. */
  readonly registry: string;
  /** Longest id prefix wins. */
  readonly prefixes: { readonly [prefix: string]: string };
  /** Registries besides those that a lockfile may name. */
  readonly trusted: readonly string[];
  /** Signing keys (raw, base64) by registry: these and no others, instead of those seen first. */
  readonly keys: { readonly [registry: string]: readonly string[] };
  /** Releases younger than this are not chosen. */
  readonly minReleaseAgeMs: number;
  /** By the directory of a project, without symbolic links. */
  readonly projects: { readonly [root: string]: ProjectWasi };
  readonly policy: Policy;
  readonly policyFile?: string;
  /** Where plugins run. */
  readonly runtime: PluginRuntime;
}

/**
 * `process`: in the process of the program. `runner`: each in a process of its own; plugins that are modules are
 * refused, because they share the memory of their callers. `prefer-runner`: components in processes of their own,
 * modules not.
 */
type PluginRuntime = "process" | "runner" | "prefer-runner";

const URL_SCHEMA: Schema = { type: "string", minLength: 8, maxLength: 500, pattern: "^https?://[!-~]+$" };

/** Absolute paths of this system. */
const ABSOLUTE = systemName() === "win32" ? "^(?:[A-Za-z]:[/\\\\]|[/\\\\]{2})" : "^/";
describePattern(ABSOLUTE, "is not an absolute path");

const CONFIG_SCHEMA: Schema = {
  ...record({
    registry: URL_SCHEMA,
    registries: {
      type: "object",
      propertyNames: { type: "string", minLength: 1, maxLength: 300 },
      additionalProperties: URL_SCHEMA,
    },
    trust: { type: "array", maxItems: 64, items: URL_SCHEMA },
    keys: {
      type: "object",
      propertyNames: URL_SCHEMA,
      additionalProperties: {
        type: "array",
        minItems: 1,
        maxItems: 16,
        items: { type: "string", maxLength: 44, pattern: "^[A-Za-z0-9+/]{43}=$" },
      },
    },
    runtime: { type: "string", enum: ["process", "runner", "prefer-runner"] },
    minReleaseAge: { type: "string", maxLength: 16, pattern: "^[0-9]{1,6}(?:m|h|d)$" },
    projects: {
      type: "object",
      propertyNames: { type: "string", minLength: 1, maxLength: 4096, pattern: ABSOLUTE },
      additionalProperties: record({
        dirs: {
          type: "object",
          propertyNames: { type: "string", minLength: 1, maxLength: 4096 },
          additionalProperties: { type: "string", minLength: 1, maxLength: 4096 },
        },
        env: {
          type: "object",
          propertyNames: { type: "string", minLength: 1, maxLength: 300, pattern: "^[^=]+$" },
          additionalProperties: { type: "string", maxLength: 32768 },
        },
      }, ["dirs", "env"]),
    },
  }, ["registry", "registries", "trust", "keys", "runtime", "minReleaseAge", "projects"]),
  definitions: SHARED_DEFINITIONS,
};

const POLICY_SCHEMA: Schema = record({
  deny: { type: "array", maxItems: 64, items: { type: "string", maxLength: 64 } },
  registries: { type: "array", maxItems: 64, items: URL_SCHEMA },
}, ["deny", "registries"]);

/** Reads the machine's configuration; `registry` (a flag) and `WAFT_REGISTRY` come before the file. */
export async function readMachine(
  paths: MachinePaths,
  options: {
    readonly registry?: string;
    readonly env?: { readonly [name: string]: string | undefined };
    readonly files?: Files;
  } = {},
): Promise<MachineConfig> {
  const files = options.files ?? DISK;
  const config = await readOptional(files, join(paths.config, "config.json"), "machine", CONFIG_SCHEMA);
  const policyFile = join(paths.config, "policy.json");
  const policy = await readOptional(files, policyFile, "policy", POLICY_SCHEMA);
  const deny = (policy?.deny ?? []) as string[];
  for (const name of deny) {
    if (findAuthority(name) === undefined) {
      throw fail("policy.value", `"${name}" in deny is not an authority`, { file: policyFile });
    }
  }
  const env = options.env ?? process.env;
  const registry = options.registry ?? (env.WAFT_REGISTRY || undefined) ?? (config?.registry as string | undefined) ??
    BASE_URL;
  const prefixes: { [prefix: string]: string } = Object.create(null);
  for (const [prefix, url] of Object.entries((config?.registries ?? {}) as { [prefix: string]: string })) {
    prefixes[prefix.replace(/\/+$/, "")] = checkRegistryUrl(url);
  }
  const keys: { [registry: string]: readonly string[] } = Object.create(null);
  for (const [url, list] of Object.entries((config?.keys ?? {}) as { [url: string]: string[] })) {
    keys[checkRegistryUrl(url)] = list;
  }
  const projects: { [root: string]: ProjectWasi } = Object.create(null);
  for (const [root, entry] of Object.entries((config?.projects ?? {}) as { [root: string]: Partial<ProjectWasi> })) {
    projects[joinPaths(root)] = { dirs: entry.dirs ?? {}, env: entry.env ?? {} };
  }
  return {
    registry: checkRegistryUrl(registry),
    prefixes,
    keys,
    trusted: ((config?.trust ?? []) as string[]).map(checkRegistryUrl),
    projects,
    runtime: (config?.runtime as PluginRuntime | undefined) ?? "process",
    minReleaseAgeMs: ageOf(config?.minReleaseAge as string | undefined),
    policy: {
      deny,
      ...(policy?.registries === undefined
        ? {}
        : { registries: (policy.registries as string[]).map(checkRegistryUrl) }),
    },
    ...(policy === undefined ? {} : { policyFile }),
  };
}

async function readOptional(
  files: Files,
  file: string,
  codes: string,
  schema: Schema,
): Promise<{ readonly [key: string]: JsonValue } | undefined> {
  const bytes = await files.read(file, 1 << 20);
  if (bytes === undefined) return undefined;
  requireOwnFile(file);
  const reading = readJson(bytes, { file, codes, maxBytes: 1 << 20 });
  if (!reading.ok) throw new ProjectError(reading.diagnostics);
  const found: Diagnostic[] = [
    ...reading.document.duplicates,
    ...walkSchema(reading.document.value, schema).map((v) => toDiagnostic(v, reading.document, codes)),
  ];
  if (found.length > 0) throw new ProjectError(found);
  return reading.document.value as { [key: string]: JsonValue };
}

function trimUrl(url: string): string {
  return url.replace(/\/+$/, "");
}

/** A registry address in canonical form; plain http is for loopback only. */
export function checkRegistryUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw fail("usage.registry", `${JSON.stringify(text.slice(0, 200))} is not a registry address`, {
      help: "give an https:// address",
    });
  }
  const loopback = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && loopback)) {
    throw fail("usage.registry", `the registry ${url.origin} must use https`, {
      help: "http is allowed for localhost only",
    });
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw fail("usage.registry", "a registry address holds no user name, query or fragment");
  }
  return trimUrl(url.href);
}

function ageOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const unit = { m: 60_000, h: 3_600_000, d: 86_400_000 }[text.at(-1)!] ?? 0;
  return Number.parseInt(text, 10) * unit;
}

/** The registry that serves an id: the longest mapped prefix, else the default. */
export function registryFor(id: string, config: MachineConfig): string {
  let best = "";
  for (const prefix of Object.keys(config.prefixes)) {
    if ((id === prefix || id.startsWith(`${prefix}/`)) && prefix.length > best.length) best = prefix;
  }
  return best === "" ? config.registry : config.prefixes[best];
}

/** Throws unless this machine trusts the registry that a lockfile names. */
export function requireTrusted(registry: string, config: MachineConfig): void {
  const known = [config.registry, BASE_URL, ...Object.values(config.prefixes), ...config.trusted];
  if (!known.includes(registry)) {
    throw fail("registry.untrusted", `the lockfile names the registry ${registry}, which this machine does not trust`, {
      help: 'add it to "trust" in config.json of the machine, pass --registry, or set WAFT_REGISTRY',
    });
  }
  requireAllowed(registry, config);
}

/** Throws unless this machine's policy allows the registry at an address. */
export function requireAllowed(registry: string, config: MachineConfig): void {
  const allowed = config.policy.registries;
  if (allowed !== undefined && !allowed.includes(registry)) {
    throw fail("policy.registry", `the machine's policy does not allow the registry ${registry}`, {
      ...(config.policyFile === undefined ? {} : { file: config.policyFile }),
    });
  }
}
