/**
 * Component → text (Explainer). In: a decoded component, valid or not. Out: text with indices in place of names, one
 * definition per line or form, which parses to the same definitions.
 *
 * Custom sections have no form in the text of components; a comment names each.
 */
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { printModule } from "@waft/engine/internal/text/print";
import type { ImportDesc } from "@waft/engine/internal/wasm/module";
import { type FieldType, I64, type Limits, type SubType, valTypeName } from "@waft/engine/internal/wasm/types";
import { type Canon, CANON_ROWS, type CanonImmediates, type CanonOption } from "../model/canon.ts";
import type {
  Alias,
  Component,
  CoreInstanceExpr,
  CoreTypeExpr,
  Declaration,
  Definition,
  ExternDeclaration,
  ExternDesc,
  InstanceExpr,
  ModuleDeclaration,
  NamedSortIndex,
  Sort,
  SortIndex,
  TypeExpr,
  ValTypeRef,
} from "../model/definitions.ts";
import { printable } from "../model/invalid.ts";
import type { ExternAttributes, FuncShape, ValueType } from "../model/types.ts";

/** Prints a component. Throws MalformedError for a malformed core module in it. */
export function printComponent(component: Component): string {
  const printer = new Printer();
  printer.component("(component", component);
  return printer.text;
}

/** The text of each definition of a component; of core modules and components in it, only their sizes. */
export function definitionTexts({ definitions }: Pick<Component, "definitions">): string[] {
  const printer = new Printer();
  return definitions.map((definition) => printer.outline(definition));
}

/** A string of the text format. */
function quote(text: string): string {
  let quoted = "";
  for (const character of text) {
    if (/^[ !#-[\]-~]$|^[\p{L}\p{N}\p{P}\p{S}]$/u.test(character) && character !== '"' && character !== "\\") {
      quoted += character;
    } else for (const byte of new TextEncoder().encode(character)) quoted += `\\${byte.toString(16).padStart(2, "0")}`;
  }
  return `"${quoted}"`;
}

/** Counters of the index spaces of a scope, for the comments that number definitions. */
class Counters {
  readonly #counts = new Map<Sort, number>();

  next(sort: Sort): string {
    const index = this.#counts.get(sort) ?? 0;
    this.#counts.set(sort, index + 1);
    return `(;${index};)`;
  }
}

const EXTERN_SORTS: Readonly<Record<ExternDesc["kind"], Sort>> = {
  module: "core module",
  func: "func",
  value: "value",
  type: "type",
  component: "component",
  instance: "instance",
};

class Printer {
  text = "";
  #indent = "";
  #counters = new Counters();

  #line(text: string): void {
    this.text += `${this.#indent}${text}\n`;
  }

  /** A form with a body on lines of its own, in a scope with its own index spaces. */
  #scope(head: string, tail: string, body: () => void): void {
    this.#line(head);
    const outer = this.#counters;
    this.#counters = new Counters();
    this.#indent += "  ";
    body();
    this.#indent = this.#indent.slice(2);
    this.#counters = outer;
    this.#line(tail);
  }

  component(head: string, { definitions, customs }: Component): void {
    this.#scope(head, ")", () => {
      for (let at = 0; at <= definitions.length; at++) {
        for (const { name, bytes, after } of customs) {
          if (after === at) this.#line(`;; custom section ${printable(JSON.stringify(name))} of ${bytes.length} bytes`);
        }
        if (at < definitions.length) this.#definition(definitions[at]);
      }
    });
  }

  /** The text of a definition, without the contents of a core module or a component. */
  outline(definition: Definition): string {
    const { kind } = definition;
    if (kind === "core module" || kind === "component") {
      const { bytes } = kind === "component" ? definition.component : definition;
      return `(${kind} ${this.#counters.next(kind)}) of ${bytes.length} bytes`;
    }
    this.text = "";
    this.#definition(definition);
    return this.text.trimEnd();
  }

  #definition(definition: Definition): void {
    switch (definition.kind) {
      case "core module":
        return this.#coreModule(definition.bytes);
      case "core instance":
        return this.#line(
          `(core instance ${this.#counters.next("core instance")} ${coreInstanceText(definition.expr)})`,
        );
      case "core type":
        return this.#coreType(definition.type);
      case "component":
        return this.component(`(component ${this.#counters.next("component")}`, definition.component);
      case "instance":
        return this.#line(`(instance ${this.#counters.next("instance")} ${instanceText(definition.expr)})`);
      case "alias":
        return this.#alias(definition.alias);
      case "type":
        return this.#type(definition.type);
      case "canon":
        return this.#canon(definition.canon);
      case "import":
        return this.#extern("import", definition);
      case "export": {
        const type = definition.type === undefined ? "" : ` ${this.#externType(definition.type, false)}`;
        const number = this.#counters.next(definition.sort);
        return this.#line(`(export ${number} ${nameText(definition)} ${referenceText(definition)}${type})`);
      }
      case "start":
        return this.#line(`;; start function ${definition.func} has no form in this text`);
      case "value":
        return this.#line(`;; value ${this.#counters.next("value")} has no form in this text`);
    }
  }

  #coreModule(bytes: Uint8Array): void {
    const text = printModule(decodeModule(bytes)).trimEnd();
    const name = /^\(module(?:\s+\$(?:"(?:[^"\\]|\\.)*"|[^\s()]+))?/;
    const head = text.replace(name, `(core module ${this.#counters.next("core module")}`);
    // Strings have no line breaks, so lines can be indented.
    for (const line of head.split("\n")) this.#line(line);
  }

  #coreType(type: CoreTypeExpr): void {
    if (type.kind === "module") {
      const number = this.#counters.next("core type");
      const lines = moduleTypeLines(type.declarations);
      return this.#scope(`(core type ${number} (module`, "))", () => lines.forEach((line) => this.#line(line)));
    }
    const rows = type.types.map((sub) => ({ number: this.#counters.next("core type"), text: subTypeText(sub) }));
    if (rows.length === 1) return this.#line(`(core type ${rows[0].number} ${rows[0].text})`);
    const group = rows.map(({ number, text }) => `(type ${number} ${text})`).join(" ");
    this.#line(`(core rec ${group})`);
  }

  #alias(alias: Alias): void {
    const [, core, sort] = /^(core )?(.*)$/.exec(alias.sort) ?? [];
    const target = `(${core ?? ""}${sort} ${this.#counters.next(alias.sort)})`;
    switch (alias.kind) {
      case "outer":
        return this.#line(`(alias outer ${alias.count} ${alias.index} ${target})`);
      case "export":
        return this.#line(`(alias export ${alias.instance} ${quote(alias.name)} ${target})`);
      case "core export":
        return this.#line(`(alias core export ${alias.instance} ${quote(alias.name)} ${target})`);
    }
  }

  #type(type: TypeExpr): void {
    const number = this.#counters.next("type");
    if (type.kind !== "component" && type.kind !== "instance") return this.#line(`(type ${number} ${typeText(type)})`);
    this.#scope(
      `(type ${number} (${type.kind}`,
      "))",
      () => type.declarations.forEach((row) => this.#declaration(row)),
    );
  }

  #declaration(declaration: Declaration): void {
    switch (declaration.kind) {
      case "core type":
        return this.#coreType(declaration.type);
      case "type":
        return this.#type(declaration.type);
      case "alias":
        return this.#alias(declaration.alias);
      default:
        return this.#extern(declaration.kind, declaration);
    }
  }

  #extern(direction: "import" | "export", declaration: ExternDeclaration): void {
    this.#line(`(${direction} ${nameText(declaration)} ${this.#externType(declaration.type, true)})`);
  }

  #externType(desc: ExternDesc, numbered: boolean): string {
    const sort = EXTERN_SORTS[desc.kind];
    return `(${sort}${numbered ? ` ${this.#counters.next(sort)}` : ""} ${externDescText(desc)})`;
  }

  #canon(canon: Canon): void {
    if (canon.name === "lift") {
      const options = canon.options.map((option) => ` ${optionText(option)}`).join("");
      const func = `(func ${this.#counters.next("func")} (type ${canon.type}))`;
      return this.#line(`(canon lift (core func ${canon.func})${options} ${func})`);
    }
    const values = canon as unknown as CanonImmediates;
    const immediates = CANON_ROWS[canon.name][1].map((immediate) => immediateText(immediate, values)).filter((t) =>
      t !== ""
    );
    const func = `(core func ${this.#counters.next("core func")})`;
    this.#line(`(canon ${[canon.name, ...immediates, func].join(" ")})`);
  }
}

function immediateText(immediate: keyof CanonImmediates, values: CanonImmediates): string {
  switch (immediate) {
    case "type":
      return `${values.type}`;
    case "func":
      return `(func ${values.func})`;
    case "options":
      return values.options.map(optionText).join(" ");
    case "result":
      return values.result === undefined ? "" : `(result ${values.result})`;
    case "async":
    case "cancellable":
    case "shared":
      return values[immediate] ? immediate : "";
    case "memory":
      return `(memory ${values.memory})`;
    case "slotType":
      return valTypeName(values.slotType);
    case "slot":
    case "coreType":
    case "table":
      return `${values[immediate]}`;
  }
}

function optionText(option: CanonOption): string {
  if (option.kind === "string-encoding") return `string-encoding=${option.encoding}`;
  return option.kind === "async" ? "async" : `(${option.kind} ${option.index})`;
}

function attributesText(attributes: ExternAttributes | undefined): string {
  const { implements: name, versionSuffix, externalId } = attributes ?? {};
  const text = (word: string, value: string | undefined) => value === undefined ? "" : ` (${word} ${quote(value)})`;
  return text("implements", name) + text("versionsuffix", versionSuffix) + text("external-id", externalId);
}

function nameText({ name, attributes }: { readonly name: string; readonly attributes?: ExternAttributes }): string {
  return quote(name) + attributesText(attributes);
}

function referenceText({ sort, index }: SortIndex): string {
  return `(${sort} ${index})`;
}

function coreInstanceText(expr: CoreInstanceExpr): string {
  if (expr.kind === "exports") {
    return expr.exports.map(({ name, sort, index }) => `(export ${quote(name)} (${sort} ${index}))`).join(" ");
  }
  const args = expr.args.map(({ name, instance }) => ` (with ${quote(name)} (instance ${instance}))`).join("");
  return `(instantiate ${expr.module}${args})`;
}

function instanceText(expr: InstanceExpr): string {
  const list = (word: string, rows: readonly NamedSortIndex[]) =>
    rows.map((row) => `(${word} ${nameText(row)} ${referenceText(row)})`).join(" ");
  if (expr.kind === "exports") return list("export", expr.exports);
  return `(instantiate ${expr.component}${expr.args.length === 0 ? "" : " "}${list("with", expr.args)})`;
}

function typeText(
  type: FuncShape<ValTypeRef> | ValueType<ValTypeRef, number> | Extract<TypeExpr, { kind: "resource" }>,
): string {
  switch (type.kind) {
    case "func":
      return funcText(type);
    case "resource":
      return `(resource (rep ${valTypeName(type.rep)})${type.dtor === undefined ? "" : ` (dtor ${type.dtor})`})`;
    case "record":
      return `(record${type.fields.map((field) => ` (field ${quote(field.name)} ${field.type})`).join("")})`;
    case "variant":
      return `(variant${
        type.cases.map((row) => ` (case ${quote(row.name)}${row.type === undefined ? "" : ` ${row.type}`})`).join("")
      })`;
    case "list":
      return `(list ${type.element}${type.length === undefined ? "" : ` ${type.length}`})`;
    case "tuple":
      return `(tuple${type.types.map((part) => ` ${part}`).join("")})`;
    case "flags":
    case "enum":
      return `(${type.kind}${type.names.map((name) => ` ${quote(name)}`).join("")})`;
    case "option":
      return `(option ${type.type})`;
    case "result":
      return `(result${type.ok === undefined ? "" : ` ${type.ok}`}${
        type.err === undefined ? "" : ` (error ${type.err})`
      })`;
    case "map":
      return `(map ${type.key} ${type.value})`;
    case "own":
    case "borrow":
      return `(${type.kind} ${type.resource})`;
    case "stream":
    case "future":
      return `(${type.kind}${type.element === undefined ? "" : ` ${type.element}`})`;
    default:
      return type.kind;
  }
}

function funcText({ async, params, result }: FuncShape<ValTypeRef>): string {
  const list = params.map(({ name, type }) => ` (param ${quote(name)} ${type})`).join("");
  return `(func${async ? " async" : ""}${list}${result === undefined ? "" : ` (result ${result})`})`;
}

function externDescText(desc: ExternDesc): string {
  if (desc.kind === "value") return "eq" in desc.bound ? `(eq ${desc.bound.eq})` : `${desc.bound.type}`;
  if (desc.kind !== "type") return `(type ${desc.type})`;
  return desc.eq === undefined ? "(sub resource)" : `(eq ${desc.eq})`;
}

function fieldText({ storage, mutable }: FieldType): string {
  return mutable ? `(mut ${valTypeName(storage)})` : valTypeName(storage);
}

function subTypeText({ final, supertypes, composite }: SubType): string {
  const list = (word: string, types: readonly number[]) =>
    types.length === 0 ? "" : ` (${word} ${types.map(valTypeName).join(" ")})`;
  const text = composite.kind === "func"
    ? `(func${list("param", composite.params)}${list("result", composite.results)})`
    : composite.kind === "array"
    ? `(array ${fieldText(composite.field)})`
    : composite.kind === "cont"
    ? `(cont ${composite.func})`
    : `(struct${composite.fields.map((field) => ` (field ${fieldText(field)})`).join("")})`;
  if (final && supertypes.length === 0) return text;
  return `(sub${final ? " final" : ""}${supertypes.map((index) => ` ${index}`).join("")} ${text})`;
}

function limitsText({ address, min, max }: Limits): string {
  return `${address === I64 ? "i64 " : ""}${min}${max === undefined ? "" : ` ${max}`}`;
}

function coreExternText(desc: ImportDesc): string {
  switch (desc.kind) {
    case "func":
      return `(func (type ${desc.typeIndex}))`;
    case "tag":
      return `(tag (type ${desc.type.typeIndex}))`;
    case "table":
      return `(table ${limitsText(desc.type.limits)} ${valTypeName(desc.type.element)})`;
    case "memory":
      return `(memory ${limitsText(desc.type.limits)}${desc.type.shared ? " shared" : ""})`;
    case "global":
      return `(global ${desc.type.mutable ? `(mut ${valTypeName(desc.type.type)})` : valTypeName(desc.type.type)})`;
  }
}

function moduleTypeLines(declarations: readonly ModuleDeclaration[]): string[] {
  return declarations.map((row) => {
    switch (row.kind) {
      case "import":
        return `(import ${quote(row.module)} ${quote(row.name)} ${coreExternText(row.desc)})`;
      case "export":
        return `(export ${quote(row.name)} ${coreExternText(row.desc)})`;
      case "alias":
        return `(alias outer ${row.count} ${row.index} (type))`;
      case "type":
        return row.type.kind === "module"
          ? "(type (module))"
          : row.type.types.map((sub) => `(type ${subTypeText(sub)})`).join(" ");
    }
  });
}
