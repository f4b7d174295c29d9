/**
 * The configuration file of `waft serve --config`: several components by host and path. In: a strict JSON file. Out:
 * its values, with paths that begin at the file's folder. Invariant: a mistake is reported with its line and column,
 * before anything is compiled.
 */
import { dirname, isAbsolute, join } from "node:path";
import { OCI_SCHEME } from "../../base/constants.ts";
import { type Diagnostic, ProjectError, stepInto } from "../../base/diagnostic.ts";
import { FileFailure } from "../../base/failure.ts";
import { readJson } from "../../base/json_read.ts";
import { describePattern, type Schema, walkSchema } from "../../base/schema_walk.ts";
import { record } from "../../definitions/definition.ts";
import { toDiagnostic } from "../../manifest/manifest.ts";
import { readInput } from "../tools/read_input.ts";

/** A component, the requests that it answers, and its limits and grants, in the words of the command's options. */
export interface ConfiguredRoute {
  /** Name in logs and metrics; that of the component without it. */
  readonly name?: string;
  readonly host?: string;
  /** `/` without it. */
  readonly path?: string;
  /** Path of a file, or a reference to a registry. */
  readonly component: string;
  /** File of the public key by which a program from a registry must be signed. */
  readonly signedBy?: string;
  readonly concurrent?: number;
  readonly maxReuse?: number;
  readonly timeout?: string;
  readonly processorTime?: string;
  readonly fuel?: number;
  readonly maxMemory?: string;
  readonly net?: readonly string[];
  /** Directories of the host by those of the guest. */
  readonly dirs?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly configVars?: Readonly<Record<string, string>>;
  readonly keyvalue?: boolean;
  readonly keyvalueRedis?: string;
  readonly logging?: boolean;
  readonly tlsClient?: boolean;
}

/** The contents of the file. */
export interface ServeConfig {
  readonly addr?: string;
  readonly admin?: string;
  readonly workers?: string;
  readonly gracefulTimeout?: string;
  readonly tls?: { readonly cert: string; readonly key?: string };
  readonly routes: readonly ConfiguredRoute[];
}

const MAX_FILE_BYTES = 1 << 20;
const MAX_ROUTES = 1000;
const MAX_TEXT = 4096;

const HOST = "^(?:\\*\\.)?[A-Za-z0-9_-]+(?:\\.[A-Za-z0-9_-]+)*$|^\\[[0-9A-Fa-f:.]+\\]$";
describePattern(HOST, "is not a host: a name, an address, or *.NAME, without a port");
const PATH = '^/[!"$-;=@-~]*$';
describePattern(PATH, "is not a path: it begins with / and has no spaces, # or ?");
const TIME = "^\\d+$|^\\d+(?:\\.\\d+)?(?:ms|s|m|h)$";
describePattern(TIME, "is not a time: milliseconds, or a number with ms, s, m or h, such as 5s");
const SIZE = "^\\d+$|^\\d+(?:\\.\\d+)?(?:KiB|MiB|GiB|TiB)$";
describePattern(SIZE, "is not a size: pages of 64 KiB, or such as 256MiB");
const ADDRESS = "^(?:\\[[0-9A-Fa-f:.]+\\]|[^:[\\]]+):\\d{1,5}$";
describePattern(ADDRESS, "is not ADDRESS:PORT");
const VARIABLE = "^[^=]+$";
describePattern(VARIABLE, "is not a name: it is not empty and has no =");
const WORKERS = "^(?:auto|[1-9]\\d{0,3})$";
describePattern(WORKERS, 'is neither "auto" nor a number from 1 to 1024');
/** Options of the command separate the two directories by `::`. */
const DIRECTORY = "^(?!.*::).+$";
describePattern(DIRECTORY, "is not a directory: it is not empty and has no ::");

const text = (pattern?: string): Schema => ({
  type: "string",
  minLength: 1,
  maxLength: MAX_TEXT,
  ...(pattern === undefined ? {} : { pattern }),
});
const count = (maximum: number): Schema => ({ type: "integer", minimum: 1, maximum });
const map = (keys: Schema, values: Schema): Schema => ({
  type: "object",
  propertyNames: keys,
  additionalProperties: values,
});
const variables = map(text(VARIABLE), { type: "string", maxLength: 32_768 });

const ROUTE_PROPERTIES: { readonly [Key in keyof Required<ConfiguredRoute>]: Schema } = {
  name: text(),
  host: text(HOST),
  path: text(PATH),
  component: text(),
  signedBy: text(),
  concurrent: count(99_999),
  maxReuse: count(99_999),
  timeout: text(TIME),
  processorTime: text(TIME),
  fuel: count(Number.MAX_SAFE_INTEGER),
  maxMemory: text(SIZE),
  net: { type: "array", maxItems: 1000, items: text() },
  dirs: map(text(DIRECTORY), text(DIRECTORY)),
  env: variables,
  configVars: variables,
  keyvalue: { type: "boolean" },
  keyvalueRedis: text(),
  logging: { type: "boolean" },
  tlsClient: { type: "boolean" },
};

const CONFIG_PROPERTIES: { readonly [Key in keyof Required<ServeConfig>]: Schema } = {
  addr: text(ADDRESS),
  admin: text(ADDRESS),
  workers: text(WORKERS),
  gracefulTimeout: text(TIME),
  tls: record({ cert: text(), key: text() }, ["key"]),
  routes: {
    type: "array",
    minItems: 1,
    maxItems: MAX_ROUTES,
    items: record(ROUTE_PROPERTIES, Object.keys(ROUTE_PROPERTIES).filter((key) => key !== "component")),
  },
};

const CONFIG_SCHEMA: Schema = record(
  { $schema: text(), ...CONFIG_PROPERTIES },
  ["$schema", "addr", "admin", "workers", "gracefulTimeout", "tls"],
);

/** Reads the file. Throws a ProjectError for its mistakes, and FileFailure if it cannot be read. */
export function readServeConfig(file: string): ServeConfig {
  const reading = readJson(bytesOf(file), { file, codes: "serve", maxBytes: MAX_FILE_BYTES });
  if (!reading.ok) throw new ProjectError(reading.diagnostics);
  const { document } = reading;
  const found = [
    ...document.duplicates,
    ...walkSchema(document.value, CONFIG_SCHEMA).map((violation) => toDiagnostic(violation, document, "serve")),
  ];
  if (found.length > 0) throw new ProjectError(found);
  const config = document.value as unknown as ServeConfig;
  const taken = new Map<string, number>();
  config.routes.forEach(({ host = "", path = "/" }, index) => {
    const key = `${host.toLowerCase()}${path.replace(/\/+$/, "")}/`;
    const first = taken.get(key);
    taken.set(key, first ?? index);
    if (first === undefined) return;
    const pointer = stepInto(stepInto("", "routes"), index);
    const message = `routes[${index}] answers the same requests as routes[${first}]`;
    const place = { file, pointer, ...document.place(pointer, "value") };
    found.push({ code: "serve.value", severity: "error", message, ...place } satisfies Diagnostic);
  });
  if (found.length > 0) throw new ProjectError(found);
  return withPaths(config, dirname(file));
}

function bytesOf(file: string): Uint8Array {
  try {
    return readInput(file);
  } catch (error) {
    throw new FileFailure(file, error);
  }
}

/** Lets relative paths begin at `folder`. */
function withPaths(config: ServeConfig, folder: string): ServeConfig {
  const from = (path: string) => path.startsWith(OCI_SCHEME) || isAbsolute(path) ? path : join(folder, path);
  const { tls } = config;
  return {
    ...config,
    ...(tls === undefined
      ? {}
      : { tls: { cert: from(tls.cert), ...(tls.key === undefined ? {} : { key: from(tls.key) }) } }),
    routes: config.routes.map((route) => ({
      ...route,
      name: route.name ?? route.component,
      component: from(route.component),
      ...(route.signedBy === undefined ? {} : { signedBy: from(route.signedBy) }),
      dirs: Object.fromEntries(Object.entries(route.dirs ?? {}).map(([guest, host]) => [guest, from(host)])),
    })),
  };
}
