/**
 * Expressions of the debugger: conditions, watched expressions, log messages. In: a text in the syntax that C, Rust and
 * JavaScript share, and a function that finds variables. Out: a variable, or a value.
 *
 * Integers are exact, whatever their width; an operation with a float is one of floats. Nothing can be called or
 * assigned, so evaluation has no effects.
 */
import jsep from "jsep";
import type { Variable } from "./variable.ts";
import { type Value, valueText } from "./values.ts";

/** A fault in an expression, in words. */
export class ExpressionError extends Error {}

/** Finds a variable by name. */
type Lookup = (name: string) => Variable | undefined;

// Pointers are followed as in C.
jsep.addUnaryOp("*");

/** Evaluates `text`. Throws ExpressionError. */
export function evaluate(text: string, lookup: Lookup): Variable {
  let tree: jsep.Expression;
  try {
    tree = jsep(text);
  } catch (error) {
    throw new ExpressionError(`cannot read "${text}": ${(error as Error).message}`);
  }
  return new Evaluation(lookup).variable(tree as jsep.CoreExpression);
}

/** Whether a value counts as true: any number but zero. */
export function isTrue({ value, name }: Variable): boolean {
  if (value === undefined || typeof value === "string") throw new ExpressionError(`${name} is not a number`);
  return value !== 0n && value !== 0 && !Number.isNaN(value);
}

/** The text of a log message, whose `{expressions}` are replaced by their values. */
export function message(template: string, lookup: Lookup): string {
  return template.replace(/\{([^{}]*)\}/g, (_, expression: string) => {
    try {
      return evaluate(expression, lookup).text;
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      return `{${error.message}}`;
    }
  });
}

class Evaluation {
  readonly #lookup: Lookup;

  constructor(lookup: Lookup) {
    this.#lookup = lookup;
  }

  variable(tree: jsep.CoreExpression): Variable {
    switch (tree.type) {
      case "Identifier": {
        const found = this.#lookup(tree.name);
        if (found === undefined) throw new ExpressionError(`no variable is called ${tree.name}`);
        return found;
      }
      case "Literal":
        return computed(literal(tree));
      case "MemberExpression":
        return this.#member(tree);
      case "UnaryExpression":
        return this.#unary(tree);
      case "BinaryExpression":
        return this.#binary(tree);
      case "ConditionalExpression":
        return this.variable(
          (isTrue(this.variable(node(tree.test))) ? tree.consequent : tree.alternate) as jsep.CoreExpression,
        );
      default:
        throw new ExpressionError(`expressions of the debugger have no ${tree.type}`);
    }
  }

  #member({ object, property, computed: indexed }: jsep.MemberExpression): Variable {
    const owner = this.variable(node(object));
    if (indexed && owner.element !== undefined) return owner.element(Number(this.#number(node(property))));
    const name = indexed
      ? `[${this.#number(node(property))}]`
      : property.type === "Identifier"
      ? String(property.name)
      : "";
    const found = partNamed(owner, name);
    if (found === undefined) throw new ExpressionError(`${owner.name} has no ${name}`);
    return found;
  }

  #unary({ operator, argument }: jsep.UnaryExpression): Variable {
    const operand = this.variable(node(argument));
    if (operator === "*") {
      const target = operand.target?.();
      if (target === undefined) throw new ExpressionError(`${operand.name} is not a pointer`);
      return target;
    }
    if (operator === "!") return computed(isTrue(operand) ? 0n : 1n);
    const value = numeric(operand);
    switch (operator) {
      case "-":
        return computed(-value);
      case "+":
        return computed(value);
      case "~":
        if (typeof value === "bigint") return computed(~value);
    }
    throw new ExpressionError(`${operator} cannot be applied to ${operand.name}`);
  }

  #binary({ operator, left, right }: jsep.BinaryExpression): Variable {
    const first = this.variable(node(left));
    if (operator === "&&") return computed(truth(isTrue(first) && isTrue(this.variable(node(right)))));
    if (operator === "||") return computed(truth(isTrue(first) || isTrue(this.variable(node(right)))));
    const a = numeric(first);
    const b = this.#number(node(right));
    return computed(
      typeof a === "bigint" && typeof b === "bigint"
        ? ofIntegers(operator, a, b)
        : ofFloats(operator, Number(a), Number(b)),
    );
  }

  #number(tree: jsep.CoreExpression): bigint | number {
    return numeric(this.variable(tree));
  }
}

/** The node that a field of the library's general type holds. */
function node(tree: jsep.Expression): jsep.CoreExpression {
  return tree as jsep.CoreExpression;
}

function literal({ value, raw }: jsep.Literal): Value {
  if (typeof value === "number") return Number.isInteger(value) && /^[\dxa-f]+$/i.test(raw) ? BigInt(raw) : value;
  if (typeof value === "boolean") return truth(value);
  throw new ExpressionError(`${raw} is not a number`);
}

/** A part of a variable, or of the target of a pointer. */
function partNamed(owner: Variable, name: string): Variable | undefined {
  const parts = owner.parts?.() ?? [];
  const found = parts.find((part) => part.name === name);
  return found ?? (parts.length === 1 ? parts[0].parts?.().find((part) => part.name === name) : undefined);
}

function numeric({ name, value }: Variable): bigint | number {
  if (value === undefined || typeof value === "string") throw new ExpressionError(`${name} is not a number`);
  return value;
}

function truth(holds: boolean): bigint {
  return holds ? 1n : 0n;
}

function computed(value: Value): Variable {
  return { name: "the result", type: typeof value === "bigint" ? "integer" : "float", text: valueText(value), value };
}

function ofIntegers(operator: string, a: bigint, b: bigint): Value {
  switch (operator) {
    case "/":
    case "%":
      if (b === 0n) throw new ExpressionError("division by zero");
      return operator === "/" ? a / b : a % b;
    case "&":
      return a & b;
    case "|":
      return a | b;
    case "^":
      return a ^ b;
    case "<<":
    case ">>":
      if (b < 0n || b > 64n) throw new ExpressionError(`a shift by ${b}`);
      return operator === "<<" ? a << b : a >> b;
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
  }
  return comparison(operator, a, b);
}

function ofFloats(operator: string, a: number, b: number): Value {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "%":
      return a % b;
  }
  return comparison(operator, a, b);
}

function comparison<T extends bigint | number>(operator: string, a: T, b: T): bigint {
  switch (operator) {
    case "==":
    case "===":
      return truth(a === b);
    case "!=":
    case "!==":
      return truth(a !== b);
    case "<":
      return truth(a < b);
    case "<=":
      return truth(a <= b);
    case ">":
      return truth(a > b);
    case ">=":
      return truth(a >= b);
  }
  throw new ExpressionError(`the operator ${operator} is not known here`);
}
