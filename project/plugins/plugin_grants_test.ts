/**
 * The link table: every host function is linked by its authority with exactly the granted scope, by nothing else, and
 * not at all without it; contracts are linked by bindings only. One test for each authority, from the tables.
 */
import assert from "node:assert/strict";
import {
  AUTHORITIES,
  findAuthority,
  fullGrant,
  HOST_FUNCTIONS,
  narrowGrant,
  scopeSchema,
  widerThan,
} from "../definitions/authorities.ts";
import type { Definition } from "../definitions/definition.ts";
import type { JsonObject } from "../base/json_read.ts";
import { checkLinks } from "../definitions/link_check.ts";
import type { FunctionType, InspectedModule, ModuleImport } from "../definitions/module_inspector.ts";
import { guestLinks, linkPlugin, missingAuthorities } from "./plugin_grants.ts";
import { walkSchema } from "../base/schema_walk.ts";
import { definition, KV, kvDefinition } from "../../tests/project/sample_plugins.ts";

/** A request scope for each kind, and grants that are equal, narrower and wider. */
const SCOPES: {
  readonly [kind: string]: {
    request: JsonObject;
    narrower: JsonObject[];
    wider: JsonObject[];
    malformed: JsonObject[];
  };
} = {
  none: { request: {}, narrower: [{}], wider: [], malformed: [{ all: true }] },
  namespaces: {
    request: { namespaces: ["a", "b"] },
    narrower: [{ namespaces: ["a"] }],
    wider: [{ namespaces: ["a", "c"] }],
    malformed: [{ namespaces: [] }, { namespaces: ["a", "a"] }, {}],
  },
  exports: {
    request: { exports: ["malloc"] },
    narrower: [{ exports: ["malloc"] }],
    wider: [{ exports: ["free"] }],
    malformed: [{ exports: "malloc" }],
  },
  names: {
    request: { names: ["HOME", "LANG"] },
    narrower: [{ names: ["LANG"] }],
    wider: [{ names: ["PATH"] }],
    malformed: [{ names: ["*"] }, { names: ["A=B"] }],
  },
  streams: {
    request: { streams: ["stdout"] },
    narrower: [{ streams: ["stdout"] }],
    wider: [{ streams: ["stdin"] }],
    malformed: [{ streams: ["tty"] }],
  },
  roots: {
    request: { roots: ["/a", "/b"] },
    narrower: [{ roots: { "/a": "./x" } }, { roots: { "/a": "./x", "/b": "/srv" } }],
    wider: [{ roots: { "/c": "./x" } }, { roots: { "/a/../etc": "./x" } }],
    malformed: [{ roots: ["/a"] }, { roots: { "/a": "" } }, { roots: { "/a": "a\u0000" } }],
  },
  hosts: {
    request: { hosts: ["a.example:443", "b.example:80"] },
    narrower: [{ hosts: ["a.example:443"] }],
    wider: [{ hosts: ["a.example:80"] }],
    malformed: [{ hosts: ["*"] }, { hosts: ["a.example"] }, { hosts: ["*:443"] }],
  },
  clock: {
    request: { resolutionNs: 1000 },
    narrower: [{ resolutionNs: 1000 }, { resolutionNs: 1e6 }],
    wider: [{}, { resolutionNs: 1 }],
    malformed: [{ resolutionNs: 0 }, { resolutionNs: "1" }],
  },
  instances: {
    request: { maxInstances: 2, maxMemoryBytes: 65536 },
    narrower: [{ maxInstances: 1, maxMemoryBytes: 65536 }],
    wider: [{ maxInstances: 3, maxMemoryBytes: 1 }],
    malformed: [{ maxInstances: 1 }, { maxInstances: -1, maxMemoryBytes: 1 }],
  },
};
const requestOf = (name: string): JsonObject => SCOPES[findAuthority(name)!.scope].request;

function plugin(
  authorities: readonly string[],
  granted: readonly string[],
  mode: "required" | "optional",
  denied: string[] = [],
) {
  const d: Definition = definition("a.b/p", "1.0.0", {
    authorities: authorities.map((name) => ({
      name,
      mode,
      reason: "test",
      ...(Object.keys(requestOf(name)).length === 0 ? {} : { scope: requestOf(name) }),
    })),
  });
  const grants = Object.fromEntries(
    granted.map((name) => [name, fullGrant(findAuthority(name)!.scope, requestOf(name))]),
  );
  return { definition: d, grants, denied, bindings: {} };
}
const importOf = (module: string, name: string, type: FunctionType): ModuleImport => ({
  module,
  name,
  kind: "function",
  type,
});

for (const authority of AUTHORITIES) {
  const functions = [...HOST_FUNCTIONS.values()].filter((f) => f.authorities.includes(authority.name));
  Deno.test(`link table: ${authority.name} opens exactly its functions, with its scope, and nothing does without it`, () => {
    const others = AUTHORITIES.map((a) => a.name).filter((n) => n !== authority.name && n !== "host.code");
    for (const f of functions) {
      const item = importOf(f.namespace, f.name, f.type);
      const { links, diagnostics } = linkPlugin(plugin([authority.name], [authority.name], "required"), [item]);
      assert.deepEqual(diagnostics, []);
      assert.deepEqual(JSON.parse(JSON.stringify(links[0].target)), {
        kind: "host",
        grants: { [authority.name]: JSON.parse(JSON.stringify(fullGrant(authority.scope, requestOf(authority.name)))) },
      });
      // Everything else granted, this one not: no link.
      const rest = others.filter((n) => !f.authorities.includes(n));
      const without = linkPlugin(plugin(rest, rest, "required"), [item]);
      assert.deepEqual([without.links, without.diagnostics.map((d) => d.code)], [[], ["link.unlinked"]]);
      // Requested as required but not granted: no link. As optional: the stub with its documented status.
      assert.equal(linkPlugin(plugin([authority.name], [], "required"), [item]).diagnostics.length, 1);
      const stub = linkPlugin(plugin([authority.name], [], "optional", [authority.name]), [item]);
      assert.deepEqual([stub.links[0].target.kind, stub.diagnostics.length], ["denied", 0]);
      // Policy takes it away again.
      assert.equal(
        linkPlugin(plugin([authority.name], [authority.name], "required"), [item], [authority.name]).links.length,
        0,
      );
      // Another type is never linked.
      assert.equal(
        linkPlugin(plugin([authority.name], [authority.name], "required"), [
          importOf(f.namespace, f.name, { params: ["f32"], results: [] }),
        ]).links.length,
        0,
      );
    }
    const opened = [...HOST_FUNCTIONS.values()].filter((f) =>
      linkPlugin(plugin([authority.name], [authority.name], "required"), [importOf(f.namespace, f.name, f.type)])
        .links[0]?.target.kind === "host"
    );
    assert.deepEqual(opened, functions);
    const functionless = ["import.define", "host.code"];
    assert.equal(functions.length === 0, functionless.includes(authority.name));
  });

  Deno.test(`scope of ${authority.name}: a grant lies within its request`, () => {
    const { request, narrower, wider, malformed } = SCOPES[authority.scope];
    const kind = authority.scope;
    const shape = (grant: JsonObject): number => walkSchema(grant, scopeSchema(kind, "grant")).length;
    assert.deepEqual(walkSchema(request, scopeSchema(kind, "request")), []);
    for (const grant of [fullGrant(kind, request), ...narrower]) {
      assert.deepEqual([shape(grant), widerThan(kind, request, grant)], [0, []]);
    }
    for (const grant of wider) {
      assert.ok(shape(grant) > 0 || widerThan(kind, request, grant).length > 0, JSON.stringify(grant));
    }
    for (const grant of malformed) assert.ok(shape(grant) > 0, JSON.stringify(grant));
    for (const old of [...narrower, ...wider.filter((g) => shape(g) === 0)]) {
      const narrowed = narrowGrant(kind, request, old);
      if (narrowed !== undefined) {
        assert.deepEqual([shape(narrowed), widerThan(kind, request, narrowed)], [0, []], JSON.stringify(old));
      }
    }
  });
}

Deno.test("link table: the plugin's own namespace is always there; env, wasi and unknown names never", () => {
  const all = AUTHORITIES.map((a) => a.name).filter((n) => n !== "host.code");
  for (const f of HOST_FUNCTIONS.values()) {
    if (f.authorities.length > 0) continue;
    assert.deepEqual(linkPlugin(plugin([], [], "required"), [importOf(f.namespace, f.name, f.type)]).links[0].target, {
      kind: "self",
    });
  }
  for (
    const [module, name] of [
      ["env", "memory"],
      ["wasi_snapshot_preview1", "fd_write"],
      ["waft:self@1", "exit"],
      ["waft:self@2", "log"],
      ["", ""],
      ["waft:fs@1", "open"],
      ["__proto__", "x"],
      ["a.b/c@1", "f"],
    ] as const
  ) {
    assert.equal(
      linkPlugin(plugin(all, all, "required"), [importOf(module, name, { params: [], results: [] })]).links.length,
      0,
      module,
    );
  }
});

Deno.test("link table: the caller's memory needs both grants", () => {
  const item: ModuleImport = { module: "waft:caller@1", name: "memory", kind: "memory" };
  const both = ["caller.memory.read", "caller.memory.write"];
  assert.deepEqual(linkPlugin(plugin(both, both, "required"), [item]).links[0].target, { kind: "caller-memory" });
  for (const one of both) assert.equal(linkPlugin(plugin(both, [one], "required"), [item]).links.length, 0);
});

Deno.test("link table: contracts are linked by bindings, by mode", () => {
  const functions = [{ name: "f", params: ["i32"], results: ["i64"] }];
  const make = (mode: "required" | "optional" | "many", providers: string[]) => ({
    definition: definition("a.b/p", "1.0.0", { consumes: [{ id: "a.b/c", major: 2, mode, functions }] }),
    grants: {},
    denied: [],
    bindings: { "a.b/c@2": providers },
  });
  const f = importOf("a.b/c@2", "f", functions[0]);
  const many = importOf("a.b/c@2", "f", { params: ["i32", "i32"], results: ["i64"] });
  const count = importOf("a.b/c@2", "#count", { params: [], results: ["i32"] });
  assert.deepEqual(linkPlugin(make("required", ["a.b/x"]), [f]).links[0].target, {
    kind: "provider",
    provider: "a.b/x",
    export: "a.b/c@2#f",
  });
  assert.equal(linkPlugin(make("required", []), [f]).links.length, 0);
  assert.equal(linkPlugin(make("optional", []), [f]).links[0].target.kind, "denied");
  assert.deepEqual(linkPlugin(make("many", ["a.b/z", "a.b/x"]), [many, count]).links.map((l) => l.target), [
    { kind: "providers", ordinals: ["a.b/x", "a.b/z"], export: "a.b/c@2#f" },
    { kind: "count", value: 2 },
  ]);
  assert.equal(linkPlugin(make("many", ["a.b/x"]), [f]).links.length, 0);
  assert.equal(linkPlugin(make("required", ["a.b/x"]), [importOf("a.b/c@2", "g", functions[0])]).links.length, 0);
});

Deno.test("guest links: contract namespaces, and legacy ones only with import.define", () => {
  const grants = { "import.define": { namespaces: ["acme_kv"] }, "caller.memory.read": {} };
  const kv = { definition: kvDefinition(), grants, denied: [], bindings: {} };
  const bindings = { "acme_kv": KV, "github.com/acme/contracts/kv@1": KV, "other": KV };
  assert.deepEqual(guestLinks(bindings, { [KV]: kv }).map((l) => `${l.module} ${l.name} -> ${l.export}`), [
    "acme_kv get -> github.com/acme/contracts/kv@1#get",
    "github.com/acme/contracts/kv@1 get -> github.com/acme/contracts/kv@1#get",
  ]);
  assert.equal(guestLinks(bindings, { [KV]: { ...kv, grants: { "caller.memory.read": {} } } }).length, 1);
  assert.equal(guestLinks(bindings, { [KV]: kv }, ["import.define"]).length, 1);
  assert.deepEqual(missingAuthorities(kv, ["caller.memory.read"]), ["caller.memory.read"]);
});

Deno.test("link check: imports within requests, requests within imports, exports as provided", () => {
  const codesOf = (d: Definition, module: Partial<InspectedModule>): string[] =>
    checkLinks(d, { imports: [], exports: [], ...module }, "x.wasm").map((f) => f.code);
  const random = HOST_FUNCTIONS.get("waft:random@1#fill")!;
  const fill = importOf(random.namespace, random.name, random.type);
  const asks = definition("a.b/p", "1.0.0", { authorities: [{ name: "random", mode: "required", reason: "x" }] });
  assert.deepEqual(codesOf(asks, { imports: [fill] }), []);
  assert.deepEqual(codesOf(asks, {}), ["link.unused"]);
  assert.deepEqual(codesOf(definition("a.b/p", "1.0.0"), { imports: [fill] }), ["link.unrequested"]);
  assert.deepEqual(codesOf(definition("a.b/p", "1.0.0"), { imports: [importOf("env", "f", random.type)] }), [
    "link.import",
  ]);
  assert.deepEqual(codesOf(asks, { imports: [{ ...fill, type: { params: ["i64"], results: [] } }] }), ["link.type"]);
  const hooks = definition("a.b/p", "1.0.0", {
    authorities: [{ name: "invoke.observe", mode: "required", reason: "x" }],
  });
  assert.deepEqual(codesOf(hooks, {}), ["link.unused"]);
  assert.deepEqual(
    codesOf(hooks, {
      exports: [{ name: "waft:hooks@1#before-call", kind: "function", type: { params: [], results: [] } }],
    }),
    [],
  );
  const provides = definition("a.b/p", "1.0.0", {
    provides: [{ id: "a.b/c", major: 1, functions: [{ name: "f", params: [], results: ["i32"] }] }],
  });
  assert.deepEqual(codesOf(provides, {}), ["link.export"]);
  assert.deepEqual(
    codesOf(provides, { exports: [{ name: "a.b/c@1#f", kind: "function", type: { params: [], results: [] } }] }),
    ["link.type"],
  );
  assert.deepEqual(
    codesOf(provides, { exports: [{ name: "a.b/c@1#f", kind: "function", type: { params: [], results: ["i32"] } }] }),
    [],
  );
  assert.deepEqual(
    codesOf(definition("a.b/p", "1.0.0"), {
      exports: [{ name: "waft:self@1#init", kind: "function", type: { params: ["i32"], results: [] } }],
    }),
    ["link.type"],
  );
});
