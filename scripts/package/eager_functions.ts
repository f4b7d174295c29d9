/**
 * Makes V8 compile selected functions of a module eagerly. In: the text of a module and the selected functions. Out:
 * the text of an equivalent module.
 *
 * Deno caches a module's compiled code as of the end of loading; every process compiles lazily compiled functions
 * again. V8 compiles a parenthesized function expression eagerly, because such a function is likely to be called at
 * once. The rewriter therefore turns functions into such expressions, methods included: public methods are defined on
 * the prototype in a static block, private methods become fields, where each object may have functions of its own. All
 * other functions stay lazy, since code in the cache has to be read even if it does not run.
 */
import { type AnyNode, type Class, type MethodDefinition, parse, type Property } from "acorn";

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
 * The methods that become functions: all, with private ones as fields, for which modules that create many objects pay
 * in each; public ones; or none, because programs can see that a function is not a method.
 */
export type MovedMethods = "all" | "public" | "none";

/**
 * Rewrites the module in `text` so that all chosen functions that can be moved are compiled eagerly. Functions keep
 * their names.
 */
export function compileEagerly(text: string, chosen: Chosen, moved: MovedMethods = "all"): string {
  const program = parse(text, { ecmaVersion: "latest", sourceType: "module" });
  return new Rewriter(text, chosen, moved).rewritten(program);
}

class Rewriter {
  readonly #text: string;
  readonly #chosen: Chosen;
  readonly #moved: MovedMethods;

  constructor(text: string, chosen: Chosen, moved: MovedMethods) {
    this.#text = text;
    this.#chosen = chosen;
    this.#moved = moved;
  }

  /** The text of a node with everything inside it rewritten. */
  rewritten(node: AnyNode): string {
    const edits: Edit[] = [];
    this.#inside(node, edits);
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
    if (node.type === "ArrowFunctionExpression" || node.type === "FunctionExpression") {
      if (this.#isChosen(node)) edits.push({ start, end, text: `(${this.rewritten(node)})` });
      else this.#inside(node, edits);
    } else if (node.type === "Property" && (node.method || node.kind !== "init")) this.#visitMethod(node, edits);
    else if (node.type === "MethodDefinition") this.#visitParts(node, edits);
    else this.#inside(node, edits);
  }

  #inside(node: AnyNode, edits: Edit[]): void {
    if (node.type === "Program") this.#visitBody(node.body, node.start, edits);
    else if (node.type === "ClassBody") this.#visitClass(node, edits);
    else {
      for (const child of childrenOf(node)) {
        if (isFunction(node) && child.type === "BlockStatement") this.#visitBody(child.body, child.start + 1, edits);
        else this.#visit(child, edits);
      }
    }
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

  #visitClass(body: Class["body"], edits: Edit[]): void {
    const fields: string[] = [];
    /** Property descriptor parts by key. */
    const properties = new Map<string, string[]>();
    for (const member of body.body) {
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
    const block = rows.length === 0 ? "" : `static{Object.defineProperties(this.prototype,{${rows.join(",\n")}})}`;
    if (fields.length + rows.length === 0) return;
    edits.push({ start: body.start + 1, end: body.start + 1, text: fields.join("\n") + block });
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
    return `${value.async ? "async " : ""}function${value.generator ? "*" : ""}${this.rewritten(value)}`;
  }
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

function childrenOf(node: AnyNode): AnyNode[] {
  return Object.values(node).flat().filter((child): child is AnyNode =>
    typeof child === "object" && child !== null && typeof child.type === "string"
  );
}

/** Whether the node contains `super`, which is valid only in methods. */
function usesSuper(node: AnyNode): boolean {
  return node.type === "Super" || childrenOf(node).some(usesSuper);
}
