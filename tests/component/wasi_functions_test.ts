/**
 * The functions of WASI: the worlds of the specification's WIT find an implementation for every function that they
 * import, and every function of a release is implemented, exported by guests, or listed here as absent with a reason.
 * Each interface is imported by a component with the functions' names; wasi_shapes_test.ts has their types.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { httpInterfaces } from "../../component/http/mod.ts";
import { compileComponent } from "../../component/mod.ts";
import { SHAPES } from "../../component/link/host_imports.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { funcId, interfaceId, type WitInterface } from "../../component/wit/document.ts";
import { loadProposal, proposalsOf, WASI_RELEASES } from "../support/wasi_wit.ts";

const WORLDS = [["cli", "command"], ["http", "proxy"], ["http", "service"], ["http", "middleware"]] as const;

/** Interfaces that guests export, and no world imports. */
const EXPORTED = ["wasi:cli/run", "wasi:http/incoming-handler"];

/** Functions that have no implementation, with the reason. The list only shrinks. */
const ABSENT: Readonly<Record<string, string>> = {
  "wasi:clocks/timezone@0.2.12 display": "unstable: clocks-timezone",
  "wasi:clocks/timezone@0.2.12 utc-offset": "unstable: clocks-timezone",
  "wasi:clocks/timezone@0.3.0 iana-id": "unstable: clocks-timezone",
  "wasi:clocks/timezone@0.3.0 utc-offset": "unstable: clocks-timezone",
  "wasi:clocks/timezone@0.3.0 to-debug-string": "unstable: clocks-timezone",
};

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
/** The interfaces, for functions of any type. */
const IMPORTS = Object.fromEntries(
  Object.entries({ ...WASI.imports, ...httpInterfaces(WASI) }).map(([name, functions]) => {
    return [name, { ...functions as object, [SHAPES]: undefined }];
  }),
);

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

/** Whether the host implements the functions of `names` of an interface. */
function isImplemented(item: WitInterface, names: readonly string[]): boolean {
  const funcs = new Map([...item.funcs].filter(([name]) => names.includes(name)));
  try {
    compileComponent(NewEngine(), `(component ${importText({ ...item, funcs })})`).instantiate({}, IMPORTS);
    return true;
  } catch (error) {
    if ((error as Error).name === "LinkError") return false;
    throw error;
  }
}

/** The functions of an interface without an implementation. */
function absentOf(item: WitInterface): string[] {
  const names = [...item.funcs.keys()];
  if (isImplemented(item, names)) return [];
  return names.filter((name) => !isImplemented(item, [name])).map((name) => `${interfaceId(item)} ${name}`);
}

Deno.test({
  name: "every function of a WASI release, unstable ones included, is implemented or listed with a reason",
  ignore: WASI_RELEASES.length === 0,
  fn: () => {
    const items = WASI_RELEASES.flatMap((release) =>
      proposalsOf(release).flatMap((proposal) => {
        const { interfaces } = loadProposal(release, proposal, { allFeatures: true }).root;
        return [...interfaces.values()].filter((item) => !EXPORTED.includes(interfaceId(item).split("@")[0]));
      })
    );
    assert.ok(items.length > 50, String(items.length));
    assert.deepEqual(items.flatMap(absentOf).sort(), Object.keys(ABSENT).sort());
  },
});
