/**
 * The authorities that a plugin can hold: one row each with its imports and the form of its scope.
 *
 * In: names and scopes from definitions, lockfiles and command lines. Out: the import namespaces that a grant
 * opens, with signatures and the result of a denied call, and the rules of scopes: the permitted requests, the
 * permitted grants, and when one scope is within another. Only the rows of this table can be linked: `env` and every
 * other namespace are refused.
 */
import { describePattern, type Schema } from "../base/schema_walk.ts";
import type { JsonObject, JsonValue } from "../base/json_read.ts";
import { emptyObject, isObject } from "../base/json_read.ts";
import { oneWord, stepInto } from "../base/diagnostic.ts";
import type { FunctionType } from "./module_inspector.ts";

/**
 * A host function: its namespace and name, its type, and the result of its stub when an optional authority is denied.
 */
export interface HostFunction {
  readonly namespace: string;
  readonly name: string;
  readonly type: FunctionType;
  /** Any one of these authorities opens it; empty means that it is always linked. */
  readonly authorities: readonly string[];
  /** The result of the denied stub. */
  readonly denied: number;
}

/** The kind of an authority's scope. */
export type ScopeKind =
  | "none"
  | "namespaces"
  | "exports"
  | "names"
  | "streams"
  | "roots"
  | "hosts"
  | "clock"
  | "instances";

/** A row of the authority table. */
export interface Authority {
  readonly name: string;
  readonly scope: ScopeKind;
  readonly meaning: string;
  /** Exports of the plugin that the engine calls because of this authority. */
  readonly hooks: readonly string[];
}

/** All authorities, in the order in which reviews show them. */
export const AUTHORITIES: readonly Authority[] = [
  authority("import.define", "namespaces", "serve guests under these import namespaces"),
  authority("caller.memory.read", "none", "read the exported memory of the caller"),
  authority("caller.memory.write", "none", "write the exported memory of the caller"),
  authority("caller.call", "exports", "call these exported functions of the caller"),
  authority("caller.identity", "none", "read the caller's module digest and instance number"),
  authority("guest.args", "none", "read the guest's arguments"),
  authority("guest.env", "names", "read these environment variables"),
  authority("clock.wall", "clock", "read the time of day"),
  authority("clock.monotonic", "clock", "read a monotonic clock"),
  authority("random", "none", "get random bytes"),
  authority("stdio", "streams", "use these standard streams"),
  authority("fs.read", "roots", "read files below these roots"),
  authority("fs.write", "roots", "write files below these roots"),
  authority("net.connect", "hosts", "open connections to these hosts"),
  authority("net.listen", "hosts", "accept connections on these addresses"),
  authority("invoke.observe", "none", "see every call of a guest export", ["before-call", "after-call"]),
  authority("invoke.intercept", "none", "allow or refuse every call of a guest export", ["intercept-call"]),
  authority("module.observe", "none", "see every module that is compiled", ["module-compiled"]),
  authority("instance.manage", "instances", "create child instances"),
  authority("host.code", "none", "run JavaScript in the host process, outside any sandbox"),
];

function authority(name: string, scope: ScopeKind, meaning: string, hooks: readonly string[] = []): Authority {
  return { name, scope, meaning, hooks };
}

/** Status codes that host functions return; results that count bytes return the negated code instead. */
export const STATUS = {
  ok: 0,
  bounds: 1,
  noMemory: 2,
  denied: 3,
  missing: 4,
  exists: 5,
  invalid: 6,
  failed: 7,
  closed: 8,
} as const;

/** Rows: namespace, name, type, authorities separated by |, and the result of the denied stub. */
const HOST_ROWS: readonly (readonly [string, string, string, string, number])[] = [
  ["waft:self@1", "config-size", "->i32", "", 0],
  ["waft:self@1", "config-read", "i32,i32->i32", "", 0],
  ["waft:self@1", "log", "i32,i32,i32->", "", 0],
  ["waft:self@1", "abort", "i32,i32->", "", 0],
  ["waft:hooks@1", "subject-size", "->i32", "invoke.observe|invoke.intercept|module.observe", -3],
  ["waft:hooks@1", "subject-read", "i32,i32->i32", "invoke.observe|invoke.intercept|module.observe", -3],
  ["waft:caller@1", "memory-size", "->i64", "caller.memory.read|caller.memory.write", 0],
  ["waft:caller@1", "read", "i64,i32,i32->i32", "caller.memory.read", 3],
  ["waft:caller@1", "write", "i64,i32,i32->i32", "caller.memory.write", 3],
  ["waft:caller@1", "call", "i32,i32,i32,i32,i32,i32->i32", "caller.call", 3],
  ["waft:caller@1", "module-digest", "i32->i32", "caller.identity", 3],
  ["waft:caller@1", "instance-number", "->i64", "caller.identity", -3],
  ["waft:guest@1", "args-count", "->i32", "guest.args", -3],
  ["waft:guest@1", "arg-size", "i32->i32", "guest.args", -3],
  ["waft:guest@1", "arg-read", "i32,i32,i32->i32", "guest.args", -3],
  ["waft:guest@1", "env-size", "i32,i32->i32", "guest.env", -3],
  ["waft:guest@1", "env-read", "i32,i32,i32,i32->i32", "guest.env", -3],
  ["waft:clock-wall@1", "now", "->i64", "clock.wall", -3],
  ["waft:clock-wall@1", "resolution", "->i64", "clock.wall", -3],
  ["waft:clock-monotonic@1", "now", "->i64", "clock.monotonic", -3],
  ["waft:clock-monotonic@1", "resolution", "->i64", "clock.monotonic", -3],
  ["waft:random@1", "fill", "i32,i32->i32", "random", 3],
  ["waft:stdio@1", "read", "i32,i32->i32", "stdio", -3],
  ["waft:stdio@1", "write", "i32,i32,i32->i32", "stdio", -3],
  ["waft:fs@1", "stat", "i32,i32,i32->i32", "fs.read", 3],
  ["waft:fs@1", "read", "i32,i32,i64,i32,i32->i32", "fs.read", -3],
  ["waft:fs@1", "list", "i32,i32,i32,i32->i32", "fs.read", -3],
  ["waft:fs@1", "write", "i32,i32,i64,i32,i32->i32", "fs.write", -3],
  ["waft:fs@1", "truncate", "i32,i32,i64->i32", "fs.write", 3],
  ["waft:fs@1", "rename", "i32,i32,i32,i32->i32", "fs.write", 3],
  ["waft:fs@1", "remove", "i32,i32->i32", "fs.write", 3],
  ["waft:fs@1", "make-dir", "i32,i32->i32", "fs.write", 3],
  ["waft:fs@1", "sync", "i32,i32->i32", "fs.write", 3],
  ["waft:net@1", "connect", "i32,i32,i32->i32", "net.connect", -3],
  ["waft:net@1", "connect-tls", "i32,i32,i32->i32", "net.connect", -3],
  ["waft:net@1", "listen", "i32,i32,i32->i32", "net.listen", -3],
  ["waft:net@1", "accept", "i32->i32", "net.listen", -3],
  ["waft:net@1", "send", "i32,i32,i32->i32", "net.connect|net.listen", -3],
  ["waft:net@1", "receive", "i32,i32,i32->i32", "net.connect|net.listen", -3],
  ["waft:net@1", "close", "i32->i32", "net.connect|net.listen", 3],
  ["waft:instance@1", "create", "i32,i32->i32", "instance.manage", -3],
  ["waft:instance@1", "call", "i32,i32,i32,i32,i32,i32,i32->i32", "instance.manage", 3],
  ["waft:instance@1", "close", "i32->i32", "instance.manage", 3],
];

/** Every host function by `namespace#name`. */
export const HOST_FUNCTIONS: ReadonlyMap<string, HostFunction> = new Map(HOST_ROWS.map((row) => {
  const [params, results] = row[2].split("->") as [string, string];
  const types = (text: string): string[] => text === "" ? [] : text.split(",");
  return [`${row[0]}#${row[1]}`, {
    namespace: row[0],
    name: row[1],
    type: { params: types(params), results: types(results) },
    authorities: row[3] === "" ? [] : row[3].split("|"),
    denied: row[4],
  }];
}));

/** Namespaces of the host; a plugin cannot define or bind them. */
export const HOST_NAMESPACES: ReadonlySet<string> = new Set(HOST_ROWS.map((row) => row[0]));

/** Types of the functions that the engine calls: `waft:self@1#init`, `#stop` and the hooks of `waft:hooks@1#…`. */
export const ENGINE_CALLS: { readonly [name: string]: FunctionType } = {
  "waft:self@1#init": { params: [], results: [] },
  "waft:self@1#stop": { params: [], results: [] },
  "waft:hooks@1#before-call": { params: [], results: [] },
  // The outcome of the call: 0 if it returned, 1 if it trapped or threw.
  "waft:hooks@1#after-call": { params: ["i32"], results: [] },
  // 0: permits the call; any other result refuses it.
  "waft:hooks@1#intercept-call": { params: [], results: ["i32"] },
  "waft:hooks@1#module-compiled": { params: [], results: [] },
};

const BY_NAME: ReadonlyMap<string, Authority> = new Map(AUTHORITIES.map((a) => [a.name, a]));

/** The row of the named authority, if it exists. */
export function findAuthority(name: string): Authority | undefined {
  return BY_NAME.get(name);
}

/** The key of the list in a scope, such as `roots` for `fs.read`; undefined for scopes that are not lists. */
export function listKeyOf(kind: ScopeKind): string | undefined {
  return kind === "none" || kind === "clock" || kind === "instances" ? undefined : kind;
}

const NAME = "^[!-~]{1,200}$";

/**
 * `name:port`, `1.2.3.4:port` or `[IPv6]:port`. The last label of a name is no number: resolvers read such a name as an
 * address (`127.1`, `0x7f000001`).
 */
const HOST_PORT =
  "^(?:(?:[0-9]{1,3}\\.){3}[0-9]{1,3}|(?:[A-Za-z0-9-]+\\.)*(?!0[xX][0-9A-Fa-f]*\\.?:)(?=[0-9-]*[A-Za-z])" +
  "[A-Za-z0-9-]+\\.?|\\[[0-9A-Fa-f:.]+\\]):[0-9]{1,5}$";
describePattern(HOST_PORT, "is not a host with a port, such as api.example:443, 192.0.2.1:443 or [2001:db8::1]:443");

const LISTS: { readonly [kind in ScopeKind]?: Schema } = {
  namespaces: { type: "string", maxLength: 200, pattern: NAME },
  exports: { type: "string", minLength: 1, maxLength: 200 },
  names: { type: "string", maxLength: 200, pattern: "^[A-Za-z_][A-Za-z0-9_]*$" },
  streams: { type: "string", enum: ["stdin", "stdout", "stderr"] },
  roots: { type: "string", maxLength: 200, pattern: "^/(?:[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*)?$" },
  hosts: { type: "string", maxLength: 270, pattern: HOST_PORT },
};

/** The schema of a scope: as requested in a definition, or as granted (roots are then bound to host directories). */
export function scopeSchema(kind: ScopeKind, form: "request" | "grant"): Schema {
  const closed = (properties: { [name: string]: Schema }, required: string[]): Schema => ({
    type: "object",
    additionalProperties: false,
    properties,
    required,
  });
  const integer: Schema = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER };
  if (kind === "none") return closed({}, []);
  if (kind === "clock") return closed({ resolutionNs: integer }, []);
  if (kind === "instances") {
    return closed({ maxInstances: integer, maxMemoryBytes: integer }, ["maxInstances", "maxMemoryBytes"]);
  }
  const item = LISTS[kind];
  if (kind === "roots" && form === "grant") {
    // A host directory: no control characters, not empty; reviews show it unchanged.
    const directory: Schema = { type: "string", minLength: 1, maxLength: 1000, pattern: "^[^\\p{Cc}]+$" };
    return closed({ roots: { type: "object", propertyNames: item, additionalProperties: directory } }, ["roots"]);
  }
  const list: Schema = { type: "array", items: item, minItems: 1, maxItems: 64, uniqueItems: true };
  return closed({ [kind]: list }, [kind]);
}

/** A fault in a scope: its JSON pointer within the scope, and the reason. */
export interface ScopeFault {
  readonly pointer: string;
  readonly reason: string;
}

/** Faults of a granted scope that is wider than the requested one. Both conform to scopeSchema. */
export function widerThan(kind: ScopeKind, requested: JsonObject, granted: JsonObject): ScopeFault[] {
  const key = listKeyOf(kind);
  if (key !== undefined) {
    const asked = new Set(requested[key] as string[] | undefined ?? []);
    const given = granted[key];
    const items = Array.isArray(given) ? given : isObject(given) ? Object.keys(given) : [];
    return items.flatMap((item, i) =>
      asked.has(String(item)) ? [] : [{
        pointer: stepInto(`/${key}`, Array.isArray(given) ? i : String(item)),
        reason: `${String(item)} was not requested`,
      }]
    );
  }
  if (kind === "clock") {
    // A coarser clock is the narrower grant.
    const asked = (requested.resolutionNs as number | undefined) ?? 1;
    const given = (granted.resolutionNs as number | undefined) ?? 1;
    return given >= asked ? [] : [{ pointer: "/resolutionNs", reason: `finer than the ${asked} ns requested` }];
  }
  if (kind === "instances") {
    return ["maxInstances", "maxMemoryBytes"].flatMap((limit) =>
      (granted[limit] as number) <= (requested[limit] as number)
        ? []
        : [{ pointer: `/${limit}`, reason: `more than the ${String(requested[limit])} requested` }]
    );
  }
  return [];
}

/** The widest grant that a request allows, with roots bound to project directories of the same name. */
export function fullGrant(kind: ScopeKind, requested: JsonObject): JsonObject {
  const grant = emptyObject();
  if (kind === "roots") {
    const roots = emptyObject();
    for (const root of requested.roots as string[]) roots[root] = root === "/" ? "." : `.${root}`;
    grant.roots = roots;
    return grant;
  }
  for (const key of Object.keys(requested)) {
    const value = requested[key];
    grant[key] = Array.isArray(value) ? [...value] : value;
  }
  return grant;
}

/** A copy of an old grant narrowed to a new request; undefined when nothing of it is left. */
export function narrowGrant(kind: ScopeKind, requested: JsonObject, old: JsonObject): JsonObject | undefined {
  const key = listKeyOf(kind);
  const grant = emptyObject();
  if (key !== undefined) {
    const asked = new Set(requested[key] as string[] | undefined ?? []);
    const given = old[key];
    if (Array.isArray(given)) {
      const left = given.filter((item) => asked.has(String(item)));
      if (left.length === 0) return undefined;
      grant[key] = left;
    } else if (isObject(given)) {
      const left = emptyObject();
      for (const item of Object.keys(given)) if (asked.has(item)) left[item] = given[item];
      if (Object.keys(left).length === 0) return undefined;
      grant[key] = left;
    }
    return grant;
  }
  for (const name of Object.keys(old)) {
    const value = old[name] as number;
    const limit = requested[name] as number | undefined;
    if (kind === "clock") grant[name] = Math.max(value, limit ?? 1);
    else grant[name] = limit === undefined ? value : Math.min(value, limit);
  }
  if (kind === "clock" && requested.resolutionNs !== undefined && old.resolutionNs === undefined) {
    grant.resolutionNs = requested.resolutionNs;
  }
  return grant;
}

/** True when the request asks for more than the old one did. */
export function requestWidened(kind: ScopeKind, before: JsonObject, now: JsonObject): boolean {
  return widerThan(kind, before, now).length > 0;
}

/** A complete scope as text: `/store=./data`, `api.example:443`; empty for authorities without scope. */
export function describeScope(scope: JsonObject): string {
  const words: string[] = [];
  for (const key of Object.keys(scope).sort()) {
    const value: JsonValue = scope[key];
    if (Array.isArray(value)) words.push(...value.map((item) => oneWord(String(item))));
    else if (isObject(value)) {
      words.push(
        ...Object.keys(value).sort().map((k) =>
          value[k] === undefined ? oneWord(k) : `${oneWord(k)}=${oneWord(String(value[k]))}`
        ),
      );
    } else words.push(`${key}=${String(value)}`);
  }
  return words.join(" ");
}
