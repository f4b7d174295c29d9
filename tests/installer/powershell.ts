/**
 * An interpreter for the part of PowerShell that install.ps1 uses. In: the source, the switches and values of its
 * parameters, and a machine: the cmdlets, .NET members, variables of the environment and programs that it may reach.
 * Out: the calls on that machine, in the script's order. The syntax tree comes from tree-sitter's grammar.
 *
 * Invariant: syntax, operators, cmdlets and members without a row here or in the machine throw, so a script cannot pass
 * by a construct that was ignored. Semantics follow "about_Pipelines", "about_Return", "about_Operators" and
 * "about_Scopes" of Microsoft's documentation: functions return all of their output, collections of one element
 * become that element, names are not case-sensitive.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type {} from "tree-sitter-powershell"; // makes its files resolvable
import { Language, type Node, Parser } from "web-tree-sitter";

/** The arguments of a cmdlet. Switches are true; names are in lower case. */
export interface CmdletCall {
  readonly named: ReadonlyMap<string, unknown>;
  readonly positional: readonly unknown[];
  /** All words in their order, as programs get them. */
  readonly words: readonly unknown[];
  /** The values that the pipeline passes. */
  readonly input: readonly unknown[];
}

/** The surroundings of a script. */
interface PowerShellMachine {
  /** By name, in lower case; results are the output. */
  readonly cmdlets: Readonly<Record<string, (call: CmdletCall) => readonly unknown[]>>;
  /** Members of .NET types by `type::member`, in lower case. */
  readonly statics: Readonly<Record<string, unknown>>;
  /** Automatic variables, in lower case. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** Variables of the environment; names in upper case. */
  readonly environment: Map<string, string>;
  /** Runs a program: its exit status. */
  readonly run: (program: string, args: readonly string[]) => number;
}

/** A terminating error of the script. */
export class ScriptError extends Error {}

/** Ends a function or the script. */
class Returned {}

interface ScriptBlock {
  readonly body: Node;
  readonly scope: Scope;
}

/** The variables of a function or of the script; names in lower case. */
interface Scope {
  readonly values: Map<string, unknown>;
  readonly parent: Scope | undefined;
}

/** Parameters of cmdlets that take no value. */
const SWITCHES = new Set(["force", "recurse", "raw", "usebasicparsing", "directory"]);

let parser: Promise<Parser> | undefined;

async function makeParser(): Promise<Parser> {
  await Parser.init();
  const grammar = createRequire(import.meta.url).resolve("tree-sitter-powershell/tree-sitter-powershell.wasm");
  return new Parser().setLanguage(await Language.load(new Uint8Array(readFileSync(grammar))));
}

/** Parses a script; throws if the grammar does not accept it. */
export async function parseScript(source: string): Promise<Node> {
  const tree = (await (parser ??= makeParser())).parse(source);
  if (tree === null || tree.rootNode.hasError) throw new Error("the script is not PowerShell");
  return tree.rootNode;
}

/** The children of a node without separators and comments. */
function parts(node: Node): Node[] {
  return node.children.filter((child): child is Node =>
    child !== null && child.type !== "comment" && child.type !== "command_argument_sep"
  );
}

/** The named children of a node. */
function named(node: Node): Node[] {
  return parts(node).filter((child) => child.isNamed);
}

function child(node: Node, type: string): Node | undefined {
  return parts(node).find((part) => part.type === type);
}

/** A collection of one element is that element, an empty one is null. */
function single(values: readonly unknown[]): unknown {
  return values.length === 0 ? null : values.length === 1 ? values[0] : [...values];
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(textOf).join(" ");
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "object") throw new Error("an object without a text");
  return String(value);
}

function isTrue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 1 || (value.length === 1 && isTrue(value[0]));
  return value !== null && value !== undefined && value !== "" && value !== 0 && value !== false;
}

function isEqual(a: unknown, b: unknown): boolean {
  return typeof a === "string" || typeof b === "string" ? textOf(a).toLowerCase() === textOf(b).toLowerCase() : a === b;
}

function matches(text: unknown, pattern: unknown, flags: string): boolean {
  return new RegExp(textOf(pattern), flags).test(textOf(text));
}

/** Operators on two values, in lower case. */
const OPERATORS: Readonly<Record<string, (a: unknown, b: unknown) => unknown>> = {
  "-eq": isEqual,
  "-ne": (a, b) => !isEqual(a, b),
  "-match": (a, b) => matches(a, b, "i"),
  "-notmatch": (a, b) => !matches(a, b, "i"),
  "-cmatch": (a, b) => matches(a, b, ""),
  "-split": (a, b) => textOf(a).split(new RegExp(textOf(b), "i")),
  "-join": (a, b) => listOf(a).map(textOf).join(textOf(b)),
  "-replace": (a, b) => textOf(a).replaceAll(new RegExp(textOf(listOf(b)[0]), "gi"), textOf(listOf(b)[1])),
  "-contains": (a, b) => listOf(a).some((item) => isEqual(item, b)),
  "+": (a, b) => Array.isArray(a) ? [...a, ...listOf(b)] : textOf(a) + textOf(b),
};

/** Methods of strings, in lower case. */
const STRING_METHODS: Readonly<Record<string, (text: string, ...args: string[]) => string>> = {
  trim: (text) => text.trim(),
  trimstart: (text, start) => text.startsWith(start) ? STRING_METHODS.trimstart(text.slice(start.length), start) : text,
  trimend: (text, end) => text.endsWith(end) ? STRING_METHODS.trimend(text.slice(0, -end.length), end) : text,
  tolowerinvariant: (text) => text.toLowerCase(),
};

class Interpreter {
  readonly #machine: PowerShellMachine;
  readonly #functions = new Map<string, Node>();
  readonly #global: Scope;

  constructor(machine: PowerShellMachine) {
    this.#machine = machine;
    this.#global = { values: new Map(Object.entries({ true: true, false: false, null: null })), parent: undefined };
    for (const [name, value] of Object.entries(machine.variables)) this.#global.values.set(name, value);
  }

  run(program: Node, given: Readonly<Record<string, unknown>>): unknown[] {
    const output: unknown[] = [];
    const scope = this.#global;
    this.#bind(scope, named(program).find(({ type }) => type === "param_block"), given, []);
    try {
      for (const list of named(program)) if (list.type === "statement_list") this.#statements(list, scope, output);
    } catch (error) {
      if (!(error instanceof Returned)) throw error;
    }
    return output;
  }

  // Statements.

  #statements(list: Node | undefined, scope: Scope, output: unknown[]): void {
    if (list === undefined) return;
    for (const statement of named(list)) this.#statement(statement, scope, output);
  }

  #block(node: Node, scope: Scope, output: unknown[]): void {
    this.#statements(child(node, "statement_list"), scope, output);
  }

  #statement(node: Node, scope: Scope, output: unknown[]): void {
    switch (node.type) {
      case "pipeline":
        if (child(node, "assignment_expression") === undefined) output.push(...this.#pipeline(node, scope));
        else this.#assign(child(node, "assignment_expression")!, scope);
        return;
      case "function_statement":
        this.#functions.set(child(node, "function_name")!.text.toLowerCase(), node);
        return;
      case "if_statement":
        return this.#if(node, scope, output);
      case "foreach_statement":
        return this.#foreach(node, scope, output);
      case "switch_statement":
        return this.#switch(node, scope, output);
      case "try_statement":
        try {
          return this.#block(child(node, "statement_block")!, scope, output);
        } finally {
          this.#block(child(child(node, "finally_clause")!, "statement_block")!, scope, output);
        }
      case "flow_control_statement":
        return this.#leave(node, scope, output);
      case "empty_statement":
        return;
      default:
        throw new Error(`no statement ${node.type}: ${node.text}`);
    }
  }

  #leave(node: Node, scope: Scope, output: unknown[]): void {
    const pipeline = child(node, "pipeline");
    const values = pipeline === undefined ? [] : this.#pipeline(pipeline, scope);
    if (parts(node)[0].type === "throw") throw new ScriptError(textOf(single(values)));
    output.push(...values);
    throw new Returned();
  }

  #if(node: Node, scope: Scope, output: unknown[]): void {
    if (isTrue(this.#valueOf(child(node, "pipeline")!, scope))) {
      return this.#block(child(node, "statement_block")!, scope, output);
    }
    const other = child(node, "else_clause");
    if (other !== undefined) this.#block(child(other, "statement_block")!, scope, output);
  }

  #foreach(node: Node, scope: Scope, output: unknown[]): void {
    const name = variableName(child(node, "variable")!.text);
    for (const value of listOf(this.#valueOf(child(node, "pipeline")!, scope))) {
      scope.values.set(name, value);
      this.#block(child(node, "statement_block")!, scope, output);
    }
  }

  #switch(node: Node, scope: Scope, output: unknown[]): void {
    const value = this.#valueOf(child(child(node, "switch_condition")!, "pipeline")!, scope);
    const clauses = named(child(child(node, "switch_body")!, "switch_clauses")!);
    const isDefault = (clause: Node) => child(clause, "switch_clause_condition")!.text === "default";
    const hits = clauses.filter((clause) =>
      !isDefault(clause) && isEqual(this.#expression(named(child(clause, "switch_clause_condition")!)[0], scope), value)
    );
    for (const clause of hits.length > 0 ? hits : clauses.filter(isDefault)) {
      this.#block(child(clause, "statement_block")!, scope, output);
    }
  }

  #assign(node: Node, scope: Scope): void {
    const [target, operator, pipeline] = named(node);
    let value = this.#valueOf(pipeline, scope);
    const left = inner(named(target)[0]);
    if (operator.text === "+=") value = OPERATORS["+"](this.#expression(left, scope), value);
    else if (operator.text !== "=") throw new Error(`no operator ${operator.text}`);
    if (left.type === "variable") this.#set(left.text, value, scope);
    else if (left.type === "array_literal_expression") {
      named(left).forEach((variable, k) => this.#set(variable.text, listOf(value)[k] ?? null, scope));
    } else if (left.type === "element_access") {
      const [table, key] = named(left).map((part) => this.#expression(part, scope));
      (table as Map<string, unknown>).set(textOf(key), value);
    } else throw new Error(`no assignment to ${left.type}`);
  }

  #set(name: string, value: unknown, scope: Scope): void {
    const key = variableName(name);
    if (!key.startsWith("env:")) scope.values.set(key, value);
    else if (value === null) this.#machine.environment.delete(key.slice(4).toUpperCase());
    else this.#machine.environment.set(key.slice(4).toUpperCase(), textOf(value));
  }

  // Pipelines.

  /** The value of a pipeline: that of a lone expression, or its output as one value. */
  #valueOf(pipeline: Node, scope: Scope): unknown {
    const chain = named(child(pipeline, "pipeline_chain")!);
    if (chain.length === 1 && chain[0].type !== "command") return this.#expression(chain[0], scope);
    return single(this.#pipeline(pipeline, scope));
  }

  /** The output of a pipeline: the elements of collections, one by one. */
  #pipeline(pipeline: Node, scope: Scope): unknown[] {
    let values: unknown[] = [];
    for (const [k, stage] of named(child(pipeline, "pipeline_chain")!).entries()) {
      if (stage.type === "command") values = this.#command(stage, scope, values);
      else if (k > 0) throw new Error(`an expression in a pipeline: ${stage.text}`);
      else {
        const value = this.#expression(stage, scope);
        values = value === null && stage.type === "variable" ? [] : listOf(value);
      }
    }
    return values;
  }

  #command(node: Node, scope: Scope, input: unknown[]): unknown[] {
    const called = child(node, "command_name_expr");
    const name = called === undefined ? child(node, "command_name")!.text : this.#called(called, scope);
    const words = child(node, "command_elements");
    const call = this.#arguments(words === undefined ? [] : named(words), scope, input);
    const body = this.#functions.get(name.toLowerCase());
    if (body !== undefined) return this.#call(body, scope, call);
    const key = name.toLowerCase();
    if (key === "where-object" || key === "foreach-object") return this.#each(key, call);
    const cmdlet = this.#machine.cmdlets[key];
    if (cmdlet !== undefined) return [...cmdlet(call)];
    if (called === undefined) throw new Error(`no command ${name}`);
    this.#global.values.set("lastexitcode", this.#machine.run(name, call.words.map(textOf)));
    return [];
  }

  /** The program that `&` calls. */
  #called(node: Node, scope: Scope): string {
    const [target] = named(node);
    return textOf(
      target.type === "path_command_name" ? this.#variable(target.text, scope) : this.#expression(target, scope),
    );
  }

  #arguments(words: readonly Node[], scope: Scope, input: unknown[]): CmdletCall {
    const found = new Map<string, unknown>();
    const [positional, all]: [unknown[], unknown[]] = [[], []];
    for (let k = 0; k < words.length; k++) {
      const word = words[k];
      if (word.type === "command_parameter") {
        const name = word.text.slice(1).toLowerCase();
        found.set(name, SWITCHES.has(name) ? true : this.#argument(words[++k], scope));
        all.push(word.text, ...(SWITCHES.has(name) ? [] : [found.get(name)]));
        continue;
      }
      const isSplat = word.type === "variable" && word.text.startsWith("@");
      const values = isSplat ? listOf(this.#variable(word.text, scope)) : [this.#argument(word, scope)];
      positional.push(...values);
      all.push(...values);
    }
    return { named: found, positional, words: all, input };
  }

  #argument(word: Node, scope: Scope): unknown {
    return word.type === "generic_token" ? word.text : this.#expression(word, scope);
  }

  #each(key: string, { positional, input }: CmdletCall): unknown[] {
    const { body, scope } = positional[0] as ScriptBlock;
    return input.flatMap((item) => {
      const output: unknown[] = [];
      this.#statements(body, { values: new Map([["_", item]]), parent: scope }, output);
      return key === "foreach-object" ? output : isTrue(single(output)) ? [item] : [];
    });
  }

  #call(node: Node, caller: Scope, { named: found, positional }: CmdletCall): unknown[] {
    const scope: Scope = { values: new Map(), parent: caller };
    this.#bind(scope, child(node, "function_parameter_declaration"), Object.fromEntries(found), positional);
    const output: unknown[] = [];
    const block = child(node, "script_block");
    try {
      if (block !== undefined) this.#statements(bodyOf(block), scope, output);
    } catch (error) {
      if (!(error instanceof Returned)) throw error;
    }
    return output;
  }

  /** Gives parameters their values, converted to their types; `found` is by name in lower case. */
  #bind(
    scope: Scope,
    declaration: Node | undefined,
    found: Readonly<Record<string, unknown>>,
    positional: readonly unknown[],
  ): void {
    const rest = [...positional];
    const list = declaration === undefined ? [] : named(child(declaration, "parameter_list")!);
    for (const parameter of list) {
      const name = variableName(child(parameter, "variable")!.text);
      const type = child(parameter, "attribute_list")?.text.toLowerCase();
      const start = child(parameter, "script_parameter_default");
      const missing = () => start === undefined ? null : this.#expression(named(start)[0], scope);
      const value = name in found ? found[name] : type !== "[switch]" && rest.length > 0 ? rest.shift() : missing();
      scope.values.set(name, converted(value, type));
    }
    if (rest.length > 0) throw new Error("more arguments than parameters");
  }

  // Expressions.

  #expression(given: Node, scope: Scope): unknown {
    const node = inner(given);
    switch (node.type) {
      case "variable":
        return this.#variable(node.text, scope);
      case "string_literal":
        return this.#string(node, scope);
      case "integer_literal":
        return Number(node.text);
      case "parenthesized_expression":
        return this.#valueOf(child(node, "pipeline")!, scope);
      case "array_expression":
        return this.#outputOf(node, scope);
      case "array_literal_expression":
        return named(node).map((item) => this.#expression(item, scope));
      case "hash_literal_expression":
        return this.#table(node, scope);
      case "script_block_expression":
        return { body: bodyOf(child(node, "script_block")!)!, scope } satisfies ScriptBlock;
      case "expression_with_unary_operator":
        if (parts(node)[0].type !== "-not") throw new Error(`no operator ${parts(node)[0].type}`);
        return !isTrue(this.#expression(named(node)[0], scope));
      case "logical_expression":
      case "comparison_expression":
      case "additive_expression":
        return this.#operation(node, scope);
      case "element_access": {
        const [table, key] = named(node).map((part) => this.#expression(part, scope));
        return (table as Map<string, unknown>).get(textOf(key)) ?? null;
      }
      case "member_access":
      case "invokation_expression":
        return this.#member(node, scope);
      default:
        throw new Error(`no expression ${node.type}: ${node.text}`);
    }
  }

  /** The output of the statements between brackets. */
  #outputOf(node: Node, scope: Scope): unknown[] {
    const output: unknown[] = [];
    this.#statements(child(node, "statement_list"), scope, output);
    return output;
  }

  #variable(text: string, scope: Scope): unknown {
    const key = variableName(text);
    if (key.startsWith("env:")) return this.#machine.environment.get(key.slice(4).toUpperCase()) ?? null;
    for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
      if (at.values.has(key)) return at.values.get(key);
    }
    throw new Error(`no variable ${text}`);
  }

  #string(node: Node, scope: Scope): string {
    const literal = named(node)[0];
    if (literal.type === "verbatim_string_characters") return literal.text.slice(1, -1).replaceAll("''", "'");
    if (literal.type !== "expandable_string_literal") throw new Error(`no string ${literal.type}`);
    const escaped = (text: string) => text.replaceAll("`n", "\n");
    let [text, at] = ["", literal.startIndex + 1];
    const source = (from: number, to: number) =>
      escaped(literal.text.slice(from - literal.startIndex, to - literal.startIndex));
    for (const part of named(literal)) {
      text += source(at, part.startIndex);
      text += textOf(
        part.type === "sub_expression" ? single(this.#outputOf(part, scope)) : this.#expression(part, scope),
      );
      at = part.endIndex;
    }
    return text + source(at, literal.endIndex - 1);
  }

  #table(node: Node, scope: Scope): Map<string, unknown> {
    const entries = named(child(node, "hash_literal_body") ?? node);
    return new Map(
      entries.map((entry) => [child(entry, "key_expression")!.text, this.#valueOf(child(entry, "pipeline")!, scope)]),
    );
  }

  #operation(node: Node, scope: Scope): unknown {
    const [first, operator, second] = parts(node);
    const name = operator.text.toLowerCase();
    const a = this.#expression(first, scope);
    if (name === "-and") return isTrue(a) && isTrue(this.#expression(second, scope));
    if (name === "-or") return isTrue(a) || isTrue(this.#expression(second, scope));
    const operate = OPERATORS[name];
    if (operate === undefined || parts(node).length !== 3) throw new Error(`no operation ${node.text}`);
    return operate(a, this.#expression(second, scope));
  }

  #member(node: Node, scope: Scope): unknown {
    const [target, , member] = parts(node);
    const name = member.text.toLowerCase();
    const list = child(node, "argument_list");
    const given = list === undefined ? [] : named(list).flatMap(named).map((part) => this.#expression(part, scope));
    let value: unknown;
    let self: unknown;
    if (target.type === "type_literal") {
      const key = `${target.text.slice(1, -1)}::${name}`.toLowerCase();
      if (!(key in this.#machine.statics)) throw new Error(`no member ${key}`);
      value = this.#machine.statics[key];
    } else {
      self = this.#expression(target, scope);
      if (typeof self === "string") {
        if (STRING_METHODS[name] === undefined) throw new Error(`no method ${name} of strings`);
        return STRING_METHODS[name](self, ...given.map(textOf));
      }
      if (self instanceof Map && name === "keys") return [...self.keys()];
      const key = Object.keys(self as object).find((known) => known.toLowerCase() === name);
      if (key === undefined) throw new Error(`no member ${name}: ${node.text}`);
      value = (self as Record<string, unknown>)[key];
    }
    return node.type === "invokation_expression" ? (value as (...args: unknown[]) => unknown)(...given) ?? null : value;
  }
}

/** The node that a chain of expressions without operators wraps. */
function inner(node: Node): Node {
  let at = node;
  while (/_expression$/.test(at.type) && at.childCount === 1) at = at.child(0)!;
  return at;
}

function variableName(text: string): string {
  return text.slice(1).toLowerCase();
}

/** The statements of a script block. */
function bodyOf(block: Node): Node | undefined {
  const body = child(block, "script_block_body");
  return body === undefined ? undefined : child(body, "statement_list");
}

/** A value converted to the type of a parameter. */
function converted(value: unknown, type: string | undefined): unknown {
  if (type === "[string]") return textOf(value);
  if (type === "[string[]]") return listOf(value).map(textOf);
  if (type === "[switch]") return isTrue(value);
  if (type === undefined || type === "[hashtable]") return value;
  throw new Error(`no conversion to ${type}`);
}

/**
 * Runs a script on a machine. `given` has the script's parameters by name in lower case. Throws the script's errors.
 */
export function runScript(
  program: Node,
  machine: PowerShellMachine,
  given: Readonly<Record<string, unknown>> = {},
): unknown[] {
  return new Interpreter(machine).run(program, given);
}

/** The nodes of one type below a node, in the order of the source. */
export function nodesOf(program: Node, type: string): Node[] {
  return program.descendantsOfType(type).filter((node) => node !== null);
}
