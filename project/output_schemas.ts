/**
 * The JSON Schemas of `--json` output, one per command, as the site publishes them.
 *
 * Out: schemas by command. All documents share one envelope; `data` is null when the command failed. Objects are
 * closed, so a test that runs the commands finds every undeclared property. Within `schemaVersion` 1, properties are
 * only added.
 */
import { record, SHARED_DEFINITIONS } from "./definitions/definition.ts";
import type { Schema } from "./base/schema_walk.ts";
import { SCHEMA_BASE } from "./base/constants.ts";

const text: Schema = { type: "string" };
const flag: Schema = { type: "boolean" };
const count: Schema = { type: "integer", minimum: 0 };
const id: Schema = { $ref: "#/definitions/pluginID" };
const version: Schema = { $ref: "#/definitions/version" };
const digest: Schema = { $ref: "#/definitions/digest" };
const grants: Schema = { type: "object", additionalProperties: { type: "object" } };

function list(items: Schema): Schema {
  return { type: "array", items };
}
function oneOf(...words: string[]): Schema {
  return { type: "string", enum: words };
}
/** The draft has no other way that our own walker knows, too: a value, or null. */
function orNull(schema: Schema): object {
  return { anyOf: [{ type: "null" }, schema] };
}

const diagnostic = record({
  code: { type: "string", pattern: "^[a-z-]+\\.[a-z-]+$" },
  severity: oneOf("error", "warning", "note"),
  message: text,
  file: text,
  line: { type: "integer", minimum: 1 },
  column: { type: "integer", minimum: 1 },
  pointer: text,
  details: list(text),
  help: text,
}, ["file", "line", "column", "pointer", "details", "help"]);

/** The world of a component: the names of its imports and exports. */
const definedWorld = { imports: list(text), exports: list(text) };

const change = record({
  id,
  action: oneOf("add", "update", "remove", "keep"),
  from: version,
  to: version,
  reasons: list(text),
  skipped: list(record({ version, reason: text })),
  authority: record({ added: list(text), removed: list(text), widened: list(text) }),
  world: record({ ...definedWorld, added: list(text) }),
  needsReview: flag,
  grants,
  denied: list(text),
  notes: text,
}, ["from", "to", "world", "notes"]);

const changed = {
  root: text,
  changes: list(change),
  loadOrder: list(id),
  written: list(text),
  cancelled: flag,
  linksChecked: flag,
};

/** A value of a core dump; null if the dump does not have it. */
const dumpedValue = orNull(record({ type: text, value: text }));
const dumpedFrame = record({
  instance: count,
  func: count,
  name: text,
  offset: count,
  locals: list(dumpedValue),
  stack: list(dumpedValue),
}, ["name"]);

/** A count with its function and source line. */
function counted(counts: { readonly [name: string]: Schema }): Schema {
  return record({ name: text, funcIndex: count, offset: count, file: text, line: count, ...counts }, ["file", "line"]);
}

const switchState = record({
  name: text,
  value: flag,
  default: flag,
  from: oneOf("default", "manifest", "flag"),
  meaning: text,
  implemented: flag,
  state: oneOf("on", "off", "not yet"),
});
const source = oneOf("default", "manifest", "flag");

/** A setting by its group and name; the values of switches are true and false. */
const settingValue: object = { anyOf: [flag, text] };
const settingFacts = { key: text, value: settingValue, default: settingValue, from: source };

const signature = record({ params: list(text), results: list(text) });
const externKind = oneOf("function", "table", "memory", "global", "tag");
/** An import or export of a component plugin; `type` of a function is the one that core modules see. */
const pluginExtern = record({
  name: text,
  kind: oneOf("interface", "func", "type", "value", "module", "component"),
  functions: list(
    record({ name: text, signature: text, type: signature, fault: text, needsMemory: flag, needsRealloc: flag }, [
      "type",
      "fault",
      "needsMemory",
      "needsRealloc",
    ]),
  ),
});
const moduleShape = record({
  imports: list(record({ module: text, name: text, kind: externKind, type: signature }, ["type"])),
  exports: list(record({ name: text, kind: externKind, type: signature }, ["type"])),
  world: record({ imports: list(pluginExtern), exports: list(pluginExtern) }),
}, ["world"]);
const entry = record({ path: text, digest, size: count });

const witType = record({ name: text, type: text });
/** An import or export of a world; types and signatures are in the notation of WIT. */
const worldItem = record({
  name: text,
  kind: oneOf("func", "type", "interface"),
  type: text,
  interface: text,
  types: list(witType),
  functions: list(witType),
}, ["type", "interface", "types", "functions"]);

const worlds = {
  worlds: list(record({ package: text, name: text, imports: list(worldItem), exports: list(worldItem) })),
  omitted: list(text),
};

/** A component that has been written. */
const builtComponent = record({ file: text, bytes: count, ...worlds });

/** A plugin with authority, as `trust` shows it. */
const holder = record({
  id,
  version,
  source: { type: "object", required: ["kind"] },
  publisher: text,
  grants,
  reach: { type: "object", additionalProperties: grants },
  guest: list(text),
  world: list(text),
  digest,
}, ["publisher", "world"]);

const installed: { readonly [name: string]: Schema } = { version, already: flag, activated: flag };
const pathEdits = list(record({ file: text, created: flag, block: text }));

/** `data` by command, as the `command` of the document says it. */
const DATA: { readonly [command: string]: object } = {
  "init": {
    anyOf: [
      record({ kind: oneOf("quick", "application", "plugin", "template"), root: text, created: list(text) }),
      record({ changes: list(text), written: list(text) }),
    ],
  },
  "add": record({ ...changed, reported: list(id) }),
  "rm": record(changed),
  "plugin.update": record(changed),
  "plugin.grant": record(changed),
  "plugin.list": record({
    plugins: list(record({
      id,
      version,
      kind: oneOf("wasm", "host"),
      direct: flag,
      requiredBy: list(id),
      grants,
      denied: list(text),
      state: oneOf("ok", "yanked", "deprecated", "denied", "missing blob"),
      yanked: { type: "object", required: ["reason", "severity"] },
    }, ["yanked"])),
  }),
  "plugin.check": record({
    checks: list(record({ name: text, status: oneOf("ok", "warning", "failed", "skipped"), detail: text })),
  }),
  "plugin.plan": record({
    changes: list(change),
    loadOrder: list(id),
    links: list(record({ importer: text, module: text, name: text, by: text })),
    pending: flag,
  }),
  "plugin.inspect": record({
    plugins: list(record({
      definition: { $ref: "#/definitions/definition" },
      definitionDigest: digest,
      package: id,
      entry,
      from: oneOf("lockfile", "registry", "directory"),
      publisher: text,
      publishedAt: text,
      grants,
      denied: list(text),
      module: moduleShape,
    }, ["publisher", "publishedAt", "grants", "denied", "module"])),
  }),
  "plugin.catalog": record({ file: text, text, written: flag, todo: list(text) }),
  "plugin.publish": record({
    package: id,
    version,
    versionSource: oneOf("package.version", "git tag"),
    files: list(record({ path: text, size: count, digest })),
    artifact: record({ digest, size: count }),
    plugins: list(record({ id, definitionDigest: digest, entry: text, authorities: list(text) })),
    dirty: list(text),
    linksChecked: flag,
    dryRun: flag,
    registry: text,
    created: flag,
    url: text,
    page: text,
    notes: orNull(text),
  }, ["created", "url", "page"]),
  "plugin.yank": record({
    package: id,
    version,
    yanked: orNull(record({ reason: text, severity: oneOf("broken", "security", "other") })),
    registry: text,
  }),
  "plugin.publishers": record({
    registry: text,
    publishers: list(record({
      id: text,
      prefix: text,
      issuer: text,
      claims: { type: "object", additionalProperties: text },
      createdAt: text,
    })),
    changed: orNull(text),
  }),
  "plugin.transfer": record({
    registry: text,
    done: orNull(oneOf("offered", "accepted", "cancelled")),
    offers: list(record({ name: text, from: text, to: text, offeredAt: text })),
  }),
  "plugin.deprecate": record({
    package: id,
    version: orNull(version),
    deprecated: orNull(text),
    registry: text,
  }),
  "inspect": {
    anyOf: [
      record({ kind: oneOf("wit"), ...worlds }),
      record({
        kind: oneOf("component"),
        bytes: count,
        modules: list(record({ path: list(count), offset: count, bytes: count })),
        ...worlds,
      }),
      record({
        kind: oneOf("core module"),
        bytes: count,
        name: text,
        sections: list(record({ name: text, offset: count, bytes: count })),
        imports: list(record({ module: text, name: text, kind: text, type: text })),
        exports: list(record({ name: text, kind: text, type: text })),
        memories: list(text),
        tables: list(text),
        features: list(text),
        producers: list(record({ field: text, name: text, version: text })),
        functions: list(record({ index: count, name: text, bytes: count }, ["name"])),
        data: record({ count, bytes: count }),
        start: count,
        ...worlds,
      }, ["name", "start"]),
      record({
        kind: oneOf("core dump"),
        bytes: count,
        program: text,
        modules: list(text),
        threads: list(record({ name: text, frames: list(dumpedFrame) })),
        memories: list(record({ pages: text, bytes: count })),
        globals: list(dumpedValue),
      }),
      record({
        kind: oneOf("recording"),
        bytes: count,
        module: record({ bytes: count, sha256: text }),
        metered: flag,
        nans: text,
        stack: text,
        events: count,
        calls: count,
        hostCalls: list(record({ module: text, name: text, calls: count, bytesWritten: count })),
        fuel: text,
        hash: text,
        first: list(text),
      }),
      record({
        kind: oneOf("artifact"),
        bytes: count,
        engine: text,
        machine: text,
        cpu: list(text),
        options: list(text),
        codeBytes: count,
        functions: list(record({ index: count, bytes: count })),
      }),
    ],
  },
  "objdump": record({
    parts: list(record({
      kind: oneOf("core module", "component"),
      path: list(count),
      offset: count,
      bytes: count,
      version: count,
      sections: list(record({
        id: count,
        name: text,
        customName: text,
        offset: count,
        bytes: count,
        count,
        entries: list(text),
        contents: text,
      }, ["customName", "count", "entries", "contents"])),
      functions: list(record({
        index: count,
        name: text,
        offset: count,
        bytes: count,
        locals: list(text),
        instructions: list(record({ offset: count, bytes: text, text })),
      }, ["name"])),
    }, ["functions"])),
  }),
  "verify": record({
    kind: oneOf("core module", "component", "artifact"),
    codes: list(record({
      module: count,
      tier: oneOf("baseline", "optimizing"),
      bounds: oneOf("guard", "explicit"),
      functions: count,
      bytes: count,
      // Absent for artifacts. The functions that an engine with `verify: "code"` compiles once more are counted.
      provable: flag,
      recompiled: count,
      // The index of the stubs that all functions share is −1.
      unproven: list(record({ index: { type: "integer", minimum: -1 }, name: text, offset: count, reason: text }, [
        "name",
      ])),
    }, ["module", "provable", "recompiled"])),
  }),
  "component.new": builtComponent,
  "compose": builtComponent,
  "replay": record({
    outcome: oneOf("returned", "trapped", "exited", "failed"),
    results: list(text),
    message: text,
    status: count,
    calls: count,
    hostCalls: count,
    fuel: text,
    hash: text,
  }, ["message", "status"]),
  "profile": {
    anyOf: [
      record({
        kind: oneOf("samples"),
        interval: { type: "number", minimum: 0 },
        samples: count,
        dropped: count,
        functions: list(record({
          kind: oneOf("wasm", "host", "engine"),
          name: text,
          module: text,
          funcIndex: count,
          self: count,
          total: count,
        }, ["module", "funcIndex"])),
      }),
      record({
        kind: oneOf("counts"),
        functions: list(counted({ calls: count })),
        loops: list(counted({ iterations: count })),
        allocations: list(counted({ instruction: text, type: count, objects: count, elements: count })),
        growth: list(counted({ memory: count, calls: count, pages: count })),
        hostCalls: list(record({ module: text, name: text, calls: count, ms: { type: "number", minimum: 0 } })),
      }),
    ],
  },
  "trust": {
    anyOf: [
      record({ forgotten: flag }),
      record({
        state: oneOf("none", "covered", "accepted", "refused", "pending"),
        holders: list(holder),
        wasi: list(text),
        digest,
        asked: flag,
      }, ["digest", "wasi"]),
    ],
  },
  "search": record({
    registry: text,
    packages: list(record({ name: text, version: text, description: text })),
    total: count,
  }),
  "login": record({ registry: text }),
  "logout": record({ registry: text, forgotten: flag }),
  "outdated": record({
    plugins: list(
      record({ id, current: version, wanted: version, latest: version, requiredBy: list(text), notes: text }, [
        "notes",
      ]),
    ),
  }),
  "version.install": record(installed),
  "version.list": record({
    versions: list(record({
      version,
      channel: oneOf("official", "nightly", "canary", "source"),
      active: flag,
      previous: flag,
      receipt: record({
        schemaVersion: { const: 1 },
        version,
        kind: oneOf("bundle", "source"),
        platform: text,
        commit: text,
        sha256: text,
        installedAt: text,
      }),
    })),
  }),
  "version.use": record({ version, previous: version }, ["previous"]),
  "version.which": record({ version, directory: text }),
  "version.update": record({ ...installed, from: version }, ["from"]),
  "version.rollback": record({ version, previous: version }, ["previous"]),
  "version.uninstall": record({ version, active: version }, ["active"]),
  "version.prune": record({ removed: list(version) }),
  "self.install": record({ version, bin: text, edits: pathEdits }),
  "self.uninstall": record(
    { isInstalled: flag, remove: list(text), edits: pathEdits, keep: list(text), left: list(text) },
    ["left"],
  ),
  "tree": record({ plugins: list({ type: "object", required: ["id", "version", "range", "repeated", "requires"] }) }),
  "status": {
    type: "object",
    additionalProperties: false,
    required: ["runtime", "machine", "project", "manifest", "lockfile", "plugins", "registry", "policy", "wasi"],
    properties: {
      runtime: record({ version: text, channel: oneOf("official", "nightly", "canary", "source"), path: text }),
      machine: record({ platform: text, state: oneOf("supported", "untested", "unsupported"), detail: text }),
      project: orNull(record({ root: text })),
      manifest: orNull(record({ state: oneOf("ok", "broken"), requirements: count })),
      lockfile: orNull(record({
        state: oneOf("up to date", "missing", "none", "stale", "conflict", "needs review", "broken", "unknown"),
        code: text,
      }, ["code"])),
      plugins: record({ total: count, direct: count, needsReview: count }),
      registry: orNull(text),
      policy: orNull(record({ file: text, deny: list(text) })),
      wasi: orNull(record({ dirs: list(text), env: list(text) })),
    },
  },
  "commands": record({
    commands: list(record({
      command: text,
      summary: text,
      options: list(record({ words: list(text), value: text, description: text }, ["value"])),
      args: list(record({ term: text, description: text })),
    })),
  }),
  "config.list": record({ file: orNull(text), keys: list(record(settingFacts)) }),
  "config.diff": record({ file: orNull(text), keys: list(record(settingFacts)) }),
  "config.get": record(settingFacts),
  "config.set": record({ ...settingFacts, changed: flag }),
  "config.unset": record({ ...settingFacts, changed: flag }),
  "features": {
    type: "object",
    additionalProperties: false,
    required: ["file", "keys"],
    properties: { file: orNull(text), keys: list(switchState) },
  },
  "opts": {
    type: "object",
    additionalProperties: false,
    required: ["file", "keys", "runtime"],
    properties: {
      file: orNull(text),
      keys: list(switchState),
      runtime: {
        type: "object",
        additionalProperties: false,
        required: ["parallel", "deferredBoundsChecking"],
        properties: {
          parallel: {
            type: "object",
            required: ["value", "from"],
            properties: { value: { anyOf: [{ const: "auto" }, count] }, from: source },
          },
          deferredBoundsChecking: record({ value: flag, from: source }),
        },
      },
    },
  },
};

/** The schemas, by command. */
export const OUTPUT_SCHEMAS: { readonly [command: string]: object } = Object.fromEntries(
  Object.entries(DATA).map(([command, data]) => [command, {
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: `${SCHEMA_BASE}/v1/output/${command}.schema.json`,
    title: `waft ${command.replace(".", " ")} --json`,
    type: "object",
    additionalProperties: false,
    required: ["schemaVersion", "command", "ok", "data", "diagnostics"],
    properties: {
      schemaVersion: { const: 1 },
      command: { const: command },
      ok: flag,
      data: { anyOf: [{ type: "null" }, data] },
      diagnostics: list(diagnostic),
    },
    definitions: SHARED_DEFINITIONS,
  }]),
);
