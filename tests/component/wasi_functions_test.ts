/**
 * The functions of WASI: the worlds of the specification's WIT find an implementation for every function that they
 * import. Each interface is imported by a component with the functions' names; their types do not matter here.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { httpInterfaces } from "../../component/http/mod.ts";
import { compileComponent } from "../../component/mod.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { funcId, interfaceId, type WitInterface } from "../../component/wit/document.ts";
import { loadProposal, WASI_RELEASES } from "../support/wasi_wit.ts";

const WORLDS = [["cli", "command"], ["http", "proxy"], ["http", "service"]] as const;

/** An import of an interface, in text form. */
function importText(item: WitInterface): string {
  const resources = [...item.types.values()].filter((def) => def.type.kind === "resource");
  const types = resources.map(({ name }) => `(export "${name}" (type $${name} (sub resource)))`);
  const functions = [...item.funcs.values()].map((func) => {
    const { kind, resource } = func;
    const type = kind === "constructor"
      ? `(result (own $${resource!.name}))`
      : kind === "method"
      ? `(param "self" (borrow $${resource!.name}))`
      : "";
    return `(export "${funcId(func)}" (func ${type}))`;
  });
  return `(import "${interfaceId(item)}" (instance ${[...types, ...functions].join(" ")}))`;
}

const WASI = new ComponentWasi();
const IMPORTS = { ...WASI.imports, ...httpInterfaces(WASI) };

for (const release of WASI_RELEASES) {
  for (const [proposal, name] of WORLDS) {
    const world = loadProposal(release, proposal).root.worlds.get(name);
    if (world === undefined) continue;
    Deno.test(`every function that ${proposal}/${name} ${release} imports is there`, () => {
      const interfaces = [...world.imports.values()].flatMap((item) =>
        item.kind === "interface" ? [item.interface] : []
      );
      assert.ok(interfaces.length > 8);
      const text = `(component ${interfaces.map(importText).join("\n")})`;
      compileComponent(NewEngine(), text).instantiate({}, IMPORTS);
      const first = interfaces.find(({ funcs }) => funcs.size > 0)!;
      const without = { ...IMPORTS, [interfaceId(first)]: {} };
      assert.throws(() => compileComponent(NewEngine(), text).instantiate({}, without), { name: "LinkError" });
    });
  }
}
