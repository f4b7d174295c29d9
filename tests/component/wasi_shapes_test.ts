/**
 * The types of imported functions. WASI's functions are passed only to components that declare them with the types of
 * the specification; no component reaches functions of its host's objects that the host did not write.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import process from "node:process";
import { LinkError, NewEngine } from "@waft/engine";
import { allLive, Identifiers, itemsInOrder, itemText, TypeNames } from "../../component/build/type_text.ts";
import { checkStatus } from "../../component/http/messages.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import { compileComponent } from "../../component/mod.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { endpointOf } from "../../component/wasi/socket_address.ts";
import type { WitWorld } from "../../component/wit/document.ts";
import { FUNCTIONS, TYPES } from "../../component/wasi/wasi_functions.ts";
import { wasiFunctions, wasiFunctionsText } from "../support/wasi_functions.ts";
import { loadProposal, WASI_RELEASES } from "../support/wasi_wit.ts";

const TABLE = new URL("../../component/wasi/wasi_functions.ts", import.meta.url);

Deno.test({
  name: "the table of WASI's functions is that of the specification's WIT (WAFT_BLESS=1 writes it)",
  ignore: WASI_RELEASES.length === 0,
  fn: () => {
    if (process.env["WAFT_BLESS"] === "1") writeFileSync(TABLE, wasiFunctionsText());
    else assert.deepEqual({ types: TYPES, functions: FUNCTIONS }, wasiFunctions());
  },
});

const engine = NewEngine();
const wasi = new ComponentWasi({ network: { connect: ["example.com"] } });
const IMPORTS = { ...wasi.imports, ...httpInterfaces(wasi) };

/** A component that imports everything that a world imports. */
function importingWorld(world: WitWorld): string {
  const ids = new Identifiers();
  const names = new TypeNames();
  const live = allLive(world);
  const items = itemsInOrder(world.imports);
  return `(component ${items.map(([key, item]) => itemText(key, item, "import", live, names, ids).text).join("\n")})`;
}

const WORLDS = [["cli", "command"], ["http", "proxy"], ["http", "service"]] as const;

for (const release of WASI_RELEASES) {
  for (const [proposal, name] of WORLDS) {
    const world = loadProposal(release, proposal).root.worlds.get(name);
    if (world === undefined) continue;
    Deno.test(`a component gets the functions of ${proposal}/${name} ${release} with their types`, () => {
      const component = compileComponent(engine, importingWorld(world));
      for (const _ of [1, 2]) component.instantiate({}, IMPORTS);
    });
  }
}

/** A component that imports an interface with these declarations. */
function importing(name: string, declarations: string): string {
  return `(component (import "${name}" (instance ${declarations})))`;
}

const SOCKET = `(export "tcp-socket" (type $s (sub resource))) (export "network" (type $n (sub resource)))`;
const FIELDS = `(export "fields" (type $f (sub resource)))`;

// interface, declarations: names in place of numbers, methods of the implementation, other results
const REFUSED: readonly (readonly [name: string, declarations: string])[] = [
  [
    "wasi:sockets/tcp@0.2.0",
    `${SOCKET} (type $a' (record (field "port" u16) (field "address" (list string)))) (export "a" (type $a (eq $a')))
     (type $v' (variant (case "ipv4" $a))) (export "v" (type $v (eq $v')))
     (export "[method]tcp-socket.start-connect"
       (func (param "self" (borrow $s)) (param "network" (borrow $n)) (param "remote-address" $v)))`,
  ],
  [
    "wasi:http/types@0.2.0",
    `(export "outgoing-response" (type $r (sub resource)))
     (export "[method]outgoing-response.set-status-code"
       (func (param "self" (borrow $r)) (param "status-code" f64) (result (result))))`,
  ],
  [
    "wasi:http/types@0.2.0",
    `(export "outgoing-response" (type $r (sub resource)))
     (export "[method]outgoing-response.take-sink" (func (param "self" (borrow $r)) (param "bodiless" bool)))`,
  ],
  [
    "wasi:http/types@0.2.0",
    `${FIELDS} (export "[static]fields.arrived" (func (param "raw" (list string)) (result (own $f))))`,
  ],
  [
    "wasi:http/types@0.2.0",
    `${FIELDS} (export "[static]fields.constructor" (func (param "code" string) (result (own $f))))`,
  ],
  [
    "wasi:http/types@0.2.0",
    `${FIELDS} (export "[method]fields.view" (func (param "self" (borrow $f)) (result (own $f))))`,
  ],
  [
    "wasi:http/types@0.3.0",
    `${FIELDS} (export "[method]fields.entries" (func (param "self" (borrow $f)) (result u32)))`,
  ],
  [
    "wasi:filesystem/types@0.2.0",
    `(export "descriptor" (type $d (sub resource)))
     (export "[constructor]descriptor" (func (param "p" u32) (param "fd" u32) (result (own $d))))`,
  ],
  ["wasi:random/random@0.2.0", `(export "get-random-bytes" (func (param "len" f64) (result (list u8))))`],
  ["wasi:random/random@0.2.0", `(export "value-of" (func (result u32)))`],
  [
    "wasi:random/random@0.2.0",
    `(export "u64" (type $r (sub resource))) (export "get-random-u64" (func (result (own $r))))`,
  ],
  ["wasi:cli/environment@0.3.0", `(export "get-arguments" (func (result u32)))`],
];

Deno.test("a component gets functions of WASI only with their own types", () => {
  for (const [name, declarations] of REFUSED) {
    const component = compileComponent(engine, importing(name, declarations));
    assert.throws(() => component.instantiate({}, IMPORTS), (error: unknown) => {
      return error instanceof LinkError &&
        /; the interface has (?:no such function|(?:async )?func\()/.test(error.message);
    }, declarations);
  }
});

Deno.test("parameters may have other names, and versions of one track are alike", () => {
  for (const version of ["0.2.0", "0.2.6", "0.2.12"]) {
    const text = importing(
      `wasi:random/random@${version}`,
      `(export "get-random-bytes" (func (param "other" u64) (result (list u8))))`,
    );
    compileComponent(engine, text).instantiate({}, IMPORTS);
  }
});

Deno.test("values of other types than the specification's are refused by the implementations, too", () => {
  for (const status of [NaN, 200.5, "200", 99, 600, undefined]) {
    assert.throws(() => checkStatus(status as number), { name: "ComponentError" });
  }
  for (const address of [["example", "com"], ["localhost"], ["1", "2", "3"], ["::1"], []]) {
    const given = { tag: "ipv4", val: { port: 80, address } } as unknown as Parameters<typeof endpointOf>[0];
    assert.throws(() => endpointOf(given, "ipv4"), { message: "invalid-argument" });
  }
});

class Base {
  inherited(): number {
    return 3;
  }
}

class File extends Base {
  static open(): number {
    return 1;
  }
  read(): number {
    return 2;
  }
  override toString(): string {
    return "a file";
  }
}

Deno.test("a component reaches functions that the host wrote, and none that all objects of JavaScript have", () => {
  const file = `(export "file" (type $f (sub resource)))`;
  const self = `(param "self" (borrow $f))`;
  const namespace = { File, length: () => 1 };
  const declared = (name: string, type: string) => importing("host", `${file} (export "${name}" (func ${type}))`);
  for (const name of ["[method]file.read", "[method]file.inherited", "[method]file.to-string", "[constructor]file"]) {
    const type = name.startsWith("[c") ? "(result (own $f))" : self;
    compileComponent(engine, declared(name, type)).instantiate({}, { host: namespace });
  }
  compileComponent(engine, declared("[static]file.open", "")).instantiate({}, { host: namespace });
  compileComponent(engine, declared("length", "")).instantiate({}, { host: namespace });
  const builtIn: readonly (readonly [name: string, type: string])[] = [
    ["[static]file.constructor", `(param "code" string)`],
    ["[static]file.call", ""],
    ["[static]file.bind", ""],
    ["[static]file.to-string", ""],
    ["[method]file.constructor", self],
    ["[method]file.value-of", self],
    ["[method]file.has-own-property", `${self} (param "name" string)`],
    ["constructor", ""],
    ["value-of", "(result u32)"],
    ["to-string", "(result string)"],
    ["is-prototype-of", ""],
  ];
  for (const [name, type] of builtIn) {
    const component = compileComponent(engine, declared(name, type));
    assert.throws(() => component.instantiate({}, { host: namespace }), { name: "LinkError" }, name);
  }
  for (const name of ["constructor", "value-of", "to-string"]) {
    const component = compileComponent(engine, `(component (import "${name}" (func)))`);
    assert.throws(() => component.instantiate({}, {}), { name: "LinkError" }, name);
  }
});
