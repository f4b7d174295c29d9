/**
 * Makes V8 compile selected functions of a module eagerly. In: the text of a module and the selected functions. Out:
 * the text of an equivalent module.
 *
 * Deno caches a module's compiled code as of the end of loading; every process compiles lazily compiled functions
 * again. V8 compiles a parenthesized function expression eagerly, because such a function is likely to be called at
 * once. The rewriter therefore turns functions into such expressions, methods included: public methods are defined on
 * the prototype in a static block; private methods of classes outside of functions, and the bodies of constructors,
 * become functions with the object as first parameter (outlined_methods.ts). All other functions stay lazy, since code
 * in the cache has to be read even if it does not run.
 */
import { type AnyNode, type Class, type MethodDefinition, parse, type Property } from "acorn";
import { calledPrivately, childrenOf, type Outlines, outlinesOf, usesSuper } from "./outlined_methods.ts";

/** Whether the function, or the method including its name, at [start, end) of the text is to be compiled eagerly. */
type Chosen = (start: number, end: number) => boolean;

/** A replacement of [start, end). */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

type FunctionValue = MethodDefinition["value"];

/**
 * The methods that become functions, apart from private ones that can be outlined, which no program can see: all, with
 * private ones as fields, for which modules that create many objects pay in each; public ones; or none, because
 * programs can see that a function is not a method.
 */
export type MovedMethods = "all" | "public" | "none";

/** Prefix of the variables and the parameter of outlined functions. */
const OUTLINED = "$outlined_";

/**
 * Rewrites the module in `text` so that all chosen functions that can be moved are compiled eagerly. Functions keep
 * their names.
 */
export function compileEagerly(text: string, chosen: Chosen, moved: MovedMethods = "all"): string {
  if (text.includes(OUTLINED)) throw new Error(`the module has a name that begins with ${OUTLINED}`);
  const program = parse(text, { ecmaVersion: "latest", sourceType: "module" });
  return new Rewriter(text, chosen, moved).rewrittenModule(program);
}

class Rewriter {
  readonly #text: string;
  readonly #chosen: Chosen;
  readonly #moved: MovedMethods;
  /** Variables of outlined functions. */
  readonly #variables: string[] = [];
  /** The variables of outlined methods by private name, of the classes around the current node. */
  readonly #names: Outlines["names"][] = [];
  /** Number of functions around the current node. */
  #depth = 0;
  /** The name of `this` at the current node. */
  #self = "this";

  constructor(text: string, chosen: Chosen, moved: MovedMethods) {
    this.#text = text;
    this.#chosen = chosen;
    this.#moved = moved;
  }

  /** The text of the module, which declares the variables of outlined functions first. */
  rewrittenModule(program: AnyNode): string {
    const text = this.rewritten(program);
    return this.#variables.length === 0 ? text : `var ${this.#variables.join(",")};\n${text}`;
  }

  /** The text of a node with everything inside it rewritten. */
  rewritten(node: AnyNode): string {
    const edits: Edit[] = [];
    this.#inside(node, edits);
    return this.#edited(node, edits);
  }

  #edited(node: AnyNode, edits: Edit[]): string {
    let text = "";
    let at = node.start;
    for (const edit of edits.sort((a, b) => a.start - b.start || a.end - b.end)) {
      text += this.#text.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return text + this.#text.slice(at, node.end);
  }

  #isChosen(node: AnyNode): boolean {
    return this.#chosen(node.start, node.end);
  }

  #visit(node: AnyNode, edits: Edit[]): void {
    const { start, end } = node;
    if (node.type === "ThisExpression") {
      if (this.#self !== "this") edits.push({ start, end, text: this.#self });
    } else if (node.type === "CallExpression") this.#visitCall(node, edits);
    else if (node.type === "ArrowFunctionExpression" || node.type === "FunctionExpression") {
      if (this.#isChosen(node)) edits.push({ start, end, text: `(${this.rewritten(node)})` });
      else this.#inside(node, edits);
    } else if (node.type === "Property" && (node.method || node.kind !== "init")) this.#visitMethod(node, edits);
    else if (node.type === "MethodDefinition") this.#visitParts(node, edits);
    else this.#inside(node, edits);
  }

  #inside(node: AnyNode, edits: Edit[]): void {
    if (isFunction(node)) {
      this.#insideFunction(node, node.type === "ArrowFunctionExpression" ? this.#self : "this", edits);
    } else this.#insideScope(node, edits);
  }

  /** Rewrites the inside of a function in which `this` is called `self`. */
  #insideFunction(node: AnyNode, self: string, edits: Edit[]): void {
    const outer = this.#self;
    this.#self = self;
    this.#depth++;
    this.#insideScope(node, edits);
    this.#depth--;
    this.#self = outer;
  }

  #insideScope(node: AnyNode, edits: Edit[]): void {
    if (node.type === "Program") this.#visitBody(node.body, node.start, edits);
    else if (node.type === "ClassDeclaration" || node.type === "ClassExpression") this.#visitClass(node, edits);
    else {
      for (const child of childrenOf(node)) {
        if (isFunction(node) && child.type === "BlockStatement") this.#visitBody(child.body, child.start + 1, edits);
        else this.#visit(child, edits);
      }
    }
  }

  /** A call of an outlined method. */
  #visitCall(node: AnyNode, edits: Edit[]): void {
    const called = calledPrivately(node);
    const variable = called && this.#names.findLast((names) => names.has(called.name))?.get(called.name);
    if (called === undefined || variable === undefined) return this.#inside(node, edits);
    const { call, object } = called;
    edits.push({ start: call.start, end: object.start, text: `${variable}(` });
    this.#visit(object, edits);
    const open = this.#text.indexOf("(", call.callee.end) + 1;
    edits.push({ start: object.end, end: open, text: call.arguments.length > 0 ? "," : "" });
    for (const argument of call.arguments) this.#visit(argument, edits);
  }

  /** Turns function declarations into variables at `start`, the beginning of the body, to preserve hoisting. */
  #visitBody(statements: readonly AnyNode[], start: number, edits: Edit[]): void {
    const functions: string[] = [];
    for (const statement of statements) {
      if (statement.type !== "FunctionDeclaration" || !this.#isChosen(statement)) this.#visit(statement, edits);
      else {
        functions.push(`${statement.id!.name}=(${this.rewritten(statement)})`);
        edits.push({ start: statement.start, end: statement.end, text: "" });
      }
    }
    if (functions.length > 0) edits.push({ start, end: start, text: `var ${functions.join(",\n")};\n` });
  }

  /** A method becomes a property with a function value; an accessor stays. */
  #visitMethod(node: Property, edits: Edit[]): void {
    if (!node.method || node.computed || this.#moved === "none" || !this.#isChosen(node) || usesSuper(node)) {
      return this.#visitParts(node, edits);
    }
    const text = `${this.#keyOf(node)}:(${this.#functionOf(node.value as FunctionValue)})`;
    edits.push({ start: node.start, end: node.end, text });
  }

  /** Rewrites the inside of a method that stays a method: its function has no separate text to parenthesize. */
  #visitParts(node: MethodDefinition | Property, edits: Edit[]): void {
    if (node.computed) this.#visit(node.key, edits);
    this.#inside(node.value, edits);
  }

  #visitClass(node: Class, edits: Edit[]): void {
    if (node.superClass) this.#visit(node.superClass, edits);
    const outlines = outlinesOf(
      node,
      (member) => this.#depth === 0 && this.#isChosen(member),
      (name) => {
        const variable = `${OUTLINED}${name}${this.#variables.length}`;
        this.#variables.push(variable);
        return variable;
      },
    );
    this.#names.push(outlines.names);
    this.#visitMembers(node.body, outlines.variables, edits);
    this.#names.pop();
  }

  #visitMembers(body: Class["body"], outlined: Outlines["variables"], edits: Edit[]): void {
    const fields: string[] = [];
    const functions: string[] = [];
    /** Property descriptor parts by key. */
    const properties = new Map<string, string[]>();
    for (const member of body.body) {
      const variable = member.type === "MethodDefinition" ? outlined.get(member) : undefined;
      if (member.type === "MethodDefinition" && variable !== undefined) {
        functions.push(`${variable}=(${this.#outlinedFunction(member.value)});`);
        edits.push({ start: member.start, end: member.end, text: wrapperOf(member, variable) });
        continue;
      }
      if (member.type !== "MethodDefinition" || !this.#canMove(member)) {
        this.#visit(member, edits);
        continue;
      }
      const key = this.#keyOf(member);
      const text = `(${this.#functionOf(member.value)})`;
      if (member.key.type === "PrivateIdentifier") fields.push(`${key}=${text};`);
      else {
        const parts = properties.get(key) ?? [];
        const isMethod = member.kind === "method";
        const name = isMethod ? nameOf(member.key) : `${member.kind} ${nameOf(member.key)}`;
        parts.push(`${isMethod ? "value" : member.kind}:${named(name, text)}`, ...isMethod ? ["writable:true"] : []);
        properties.set(key, parts);
      }
      edits.push({ start: member.start, end: member.end, text: ";" });
    }
    const rows = [...properties].map(([key, parts]) => `${key}:{${parts.join(",")},configurable:true}`);
    if (rows.length > 0) functions.push(`Object.defineProperties(this.prototype,{${rows.join(",\n")}});`);
    const block = functions.length === 0 ? "" : `static{${functions.join("\n")}}`;
    if (fields.length + functions.length === 0) return;
    edits.push({ start: body.start + 1, end: body.start + 1, text: fields.join("\n") + block });
  }

  /** An outlined method's function as an expression. */
  #outlinedFunction(value: FunctionValue): string {
    const edits: Edit[] = [];
    const self = `${OUTLINED}this`;
    this.#insideFunction(value, self, edits);
    const parameters = value.params.length > 0 ? `${self},` : self;
    const text = this.#edited(value, edits);
    return `${keywordOf(value)}(${parameters}${text.slice(1)}`;
  }

  #canMove(member: MethodDefinition): boolean {
    const { kind, key } = member;
    if (this.#moved === "none" || kind === "constructor" || member.static || member.computed) return false;
    const isPrivate = key.type === "PrivateIdentifier";
    if (isPrivate && (kind !== "method" || this.#moved === "public")) return false;
    return this.#isChosen(member) && !usesSuper(member);
  }

  #keyOf({ key }: MethodDefinition | Property): string {
    return this.#text.slice(key.start, key.end);
  }

  /** A method's function as an expression. It stays anonymous, since a name could shadow another binding. */
  #functionOf(value: FunctionValue): string {
    return `${keywordOf(value)}${this.rewritten(value)}`;
  }
}

function keywordOf({ async, generator }: FunctionValue): string {
  return `${async ? "async " : ""}function${generator ? "*" : ""}`;
}

/** What is left of an outlined member: nothing of a method, whose calls are calls of the function. */
function wrapperOf({ kind, value: { params } }: MethodDefinition, variable: string): string {
  if (kind === "method") return ";";
  const names = params.map((_, k) => `${OUTLINED}${k}`);
  // The function has the parameters as they were written; the class keeps its `length`.
  const parameters = params.map(({ type }, k) => type === "AssignmentPattern" ? `${names[k]}=void 0` : names[k]);
  return `constructor(${parameters.join(",")}){${variable}(${["this", ...names].join(",")})}`;
}

/** The name of a property that is not computed. */
function nameOf(key: AnyNode): string {
  return key.type === "Identifier" ? key.name : String((key as { value?: unknown }).value);
}

/** The anonymous function expression `text` with a name that is visible, but no binding. */
function named(name: string, text: string): string {
  const key = JSON.stringify(name);
  return `{${key}:${text}}[${key}]`;
}

function isFunction({ type }: AnyNode): boolean {
  return type === "FunctionDeclaration" || type === "FunctionExpression" || type === "ArrowFunctionExpression";
}
