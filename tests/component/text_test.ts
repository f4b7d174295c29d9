/**
 * The text form of components: text and binaries of the component model's scripts have the same definitions, and
 * printed components parse again. spec_test.ts runs the scripts themselves.
 */
import assert from "node:assert/strict";
import { decodeComponent } from "../../component/binary/decode.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { printComponent } from "../../component/text/print_component.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import type { ScriptCommand } from "../../component/script/commands.ts";
import { binaryCommands, binaryName, textCommands, textScripts } from "../support/component_commands.ts";
import {
  commandBytes,
  commandsOf,
  componentScripts,
  HAS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_BINARIES,
} from "../support/component_suite.ts";

/** The definitions of a component, without offsets and core modules, which may differ in their names. */
function definitionsOf(bytes: Uint8Array): string {
  return JSON.stringify(decodeComponent(bytes).definitions, (key, value) => {
    if (key === "offset" || key === "bytes" || key === "customs") return undefined;
    return typeof value === "bigint" ? String(value) : value;
  });
}

/** A command whose component is valid. */
function accepts(command: ScriptCommand): command is ScriptCommand & { readonly kind: "component" } {
  return ["component", "definition", "assert_uninstantiable"].includes(command.kind);
}

/** Components with a module type whose types follow imports or exports: the text form has types first. */
const OTHER_MODULE_TYPES = 5;

/** Components whose types are in another order than in the suite's binaries. */
const OTHER_ORDER = 11;

Deno.test({
  name: `text gives the definitions of the suite's binaries${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => {
    let same = 0;
    const other: string[] = [];
    const present = new Set(componentScripts());
    for (const script of textScripts().filter((name) => present.has(binaryName(name)))) {
      const binaries = binaryCommands(binaryName(script));
      for (const [i, command] of textCommands(script).entries()) {
        const binary = binaries[i];
        assert.equal(command.kind, binary.kind, `${script}:${command.line}`);
        if (!accepts(command) || !accepts(binary)) continue;
        if (definitionsOf(command.component.encode()) === definitionsOf(binary.component.encode())) same++;
        else other.push(`${script}:${command.line}`);
      }
    }
    assert.ok(other.length <= OTHER_ORDER, other.join("\n"));
    assert.equal(same + other.length, 286);
  },
});

Deno.test({
  name: `valid components print to text with the same definitions${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => {
    let printed = 0;
    const other: string[] = [];
    for (const script of componentScripts()) {
      for (const { type, filename } of commandsOf(script)) {
        if (filename === undefined || (type !== "module" && type !== "module_definition")) continue;
        const bytes = commandBytes(script, filename);
        const again = componentToBinary(printComponent(decodeComponent(bytes)));
        validateComponent(decodeComponent(again));
        if (definitionsOf(again) !== definitionsOf(bytes)) other.push(filename);
        printed++;
      }
    }
    assert.equal(printed, 284);
    assert.ok(other.length <= OTHER_MODULE_TYPES, other.join("\n"));
  },
});

Deno.test("text of an older form is refused with the form to write", () => {
  const module = `(core module $m (memory (export "m") 1) (func (export "f") (param i32 i32) (result i32) unreachable)
    (func (export "r") (param i32 i32 i32 i32) (result i32) unreachable)) (core instance $i (instantiate $m))`;
  const lift = (options: string) =>
    `${module} (func (export "f") (param "s" string) (result u32) (canon lift (core func $i "f") ${options}))`;
  const memory = '(memory (core memory $i "m"))';
  for (
    const [fields, message] of [
      [lift('(memory $i "m") (realloc (core func $i "r"))'), /write `\(core memory \$instance "name"\)`/],
      [lift('(memory 0 "m") (realloc (core func $i "r"))'), /write `\(core memory \$instance "name"\)`/],
      [lift(`${memory} (realloc (func $i "r"))`), /write `\(core func \$instance "name"\)`/],
      [
        lift(`${memory} (realloc (core func $i "r")) (post-return (func $i "f"))`),
        /write `\(core func \$instance "name"\)`/,
      ],
      [`${module} (core func (canon waitable-set.wait (memory $i "m")))`, /write `\(core memory \$instance "name"\)`/],
      ["(core func (canon context.get 0))", /write its type first, `i32 0`/],
      ["(core func (canon yield))", /unexpected token yield, an older form: write `thread\.yield`/],
      ["(core func (canon backpressure.set))", /write `backpressure\.inc` and `backpressure\.dec`/],
      ["(type (stream u8)) (core func (canon stream.close-readable 0))", /write `stream\.drop-readable`/],
      ["(type (list float32))", /unexpected token float32, an older form: write `f32`/],
      ["(type (union u32 string))", /write `variant`/],
      ["(type (toString u32))", /unexpected token toString$/m],
    ] as const
  ) assert.throws(() => componentToBinary(`(component ${fields})`), { message }, fields);
  assert.ok(componentToBinary(`(component ${lift(`${memory} (realloc (core func $i "r"))`)})`).length > 0);
});
