/**
 * Sample definitions and a sample lockfile that use every part of the format. Test data only.
 *
 * Out: fresh objects at each call, so that a test can change them freely.
 */
import type { Definition } from "../../project/definitions/definition.ts";
import { digestBytes } from "../../project/base/integrity.ts";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import type { LockDraft } from "../../project/lockfile/lock_write.ts";

/** A definition with defaults for all that a test does not care about. */
export function definition(id: string, version: string, more: Partial<Definition> = {}): Definition {
  return {
    id,
    version,
    kind: "wasm",
    name: id.split("/").at(-1)!,
    description: `The plugin ${id}`,
    compatibility: { engines: {}, platforms: [] },
    provenance: { repository: `https://${id}`, license: "MIT" },
    requires: {},
    authorities: [],
    provides: [],
    consumes: [],
    configSchema: { type: "object", additionalProperties: false, properties: {} },
    limits: {},
    ...more,
  };
}

export const KV = "github.com/acme/kv";
export const CODEC = "github.com/acme/codec";

/** A provider of the codec's contract. */
export const CODEC_WASM = assemble(`(module
  (func (export "github.com/acme/contracts/codec@1#encode") (param i32 i32) (result i32) (i32.const 0))
  (func (export "github.com/acme/contracts/codec@1#decode") (param i32 i32) (result i32) (i32.const 0)))`);

/** A key-value store that needs a codec, with files, memory access and a legacy namespace. */
export function kvDefinition(version = "1.2.3"): Definition {
  return definition(KV, version, {
    stability: "stable",
    compatibility: { engines: { waft: ">=0.1.0" }, platforms: [] },
    requires: { [CODEC]: "^2.0.0" },
    authorities: [
      { name: "caller.memory.read", mode: "required", reason: "Reads keys passed by pointer." },
      { name: "import.define", mode: "required", reason: "Serves old guests.", scope: { namespaces: ["acme_kv"] } },
      { name: "fs.write", mode: "optional", reason: "Persists the store.", scope: { roots: ["/store"] } },
      { name: "clock.wall", mode: "optional", reason: "Dates entries.", scope: { resolutionNs: 1000 } },
    ],
    provides: [{
      id: "github.com/acme/contracts/kv",
      major: 1,
      namespaces: ["acme_kv"],
      functions: [{ name: "get", params: ["i32", "i32", "i32"], results: ["i32"] }],
    }],
    consumes: [{
      id: "github.com/acme/contracts/codec",
      major: 1,
      mode: "required",
      functions: [{ name: "encode", params: ["i32", "i32"], results: ["i32"] }],
    }],
    configSchema: {
      type: "object",
      additionalProperties: false,
      properties: { maxEntries: { type: "integer", minimum: 1, default: 10 } },
    },
    limits: { maxMemoryPages: 256 },
  });
}

/** A codec without authorities. */
export function codecDefinition(version = "2.0.1"): Definition {
  return definition(CODEC, version, {
    provides: [{
      id: "github.com/acme/contracts/codec",
      major: 1,
      functions: [
        { name: "encode", params: ["i32", "i32"], results: ["i32"] },
        { name: "decode", params: ["i32", "i32"], results: ["i32"] },
      ],
    }],
  });
}

const digestOf = (text: string) => digestBytes(new TextEncoder().encode(text));

/** A lockfile draft with a direct and a transitive plugin, a binding, grants, a denial and a guest binding. */
export function sampleDraft(): LockDraft {
  return {
    requirements: { [KV]: "^1.2.0" },
    packages: {
      [KV]: {
        version: "1.2.3",
        source: { kind: "registry", registry: "https://plugins.example" },
        artifact: { digest: digestOf("kv.tar.gz"), size: 48213 },
        publisher: "github.com/acme",
      },
      [CODEC]: {
        version: "2.0.1",
        source: { kind: "path", path: "./plugins/codec" },
        artifact: { digest: digestOf("codec.tar.gz"), size: 900 },
      },
    },
    plugins: {
      [KV]: {
        package: KV,
        definition: kvDefinition(),
        entry: { path: "dist/kv.wasm", digest: digestOf("kv.wasm"), size: 40120 },
        grants: {
          "caller.memory.read": {},
          "import.define": { namespaces: ["acme_kv"] },
          "fs.write": { roots: { "/store": "./data" } },
        },
        denied: ["clock.wall"],
        bindings: { "github.com/acme/contracts/codec@1": [CODEC] },
        config: { maxEntries: 1000 },
      },
      [CODEC]: {
        package: CODEC,
        definition: codecDefinition(),
        entry: { path: "codec.wasm", digest: digestOf("codec.wasm"), size: 100 },
        grants: {},
        denied: [],
        bindings: {},
        config: {},
      },
    },
    guest: { bindings: { "acme_kv": KV, "github.com/acme/contracts/kv@1": KV } },
  };
}
