/**
 * Decides which private methods and constructors of a class can become functions outside of the class's objects. In:
 * the syntax tree of a class. Out: the variables of their functions. A private method can if it is only ever called,
 * since nothing else tells a method from a function; of a constructor, the body can, in a class without a superclass.
 */
import type { AnyNode, CallExpression, Class, Function as FunctionNode, MethodDefinition } from "acorn";

/** Minimum length of a constructor's text: the constructor that calls the function has to be compiled as well. */
const MIN_CONSTRUCTOR = 200;

/** The outlined members of a class body. */
export interface Outlines {
  /** The functions' variables by method. */
  readonly variables: ReadonlyMap<MethodDefinition, string>;
  /** The variables by the private names that the class declares; undefined for names that keep their meaning. */
  readonly names: ReadonlyMap<string, string | undefined>;
}

/** The child nodes of `node`. */
export function childrenOf(node: AnyNode): AnyNode[] {
  return Object.values(node).flat().filter((child): child is AnyNode =>
    typeof child === "object" && child !== null && typeof child.type === "string"
  );
}

/** Whether the node or one inside it has the property. */
function some(node: AnyNode, has: (node: AnyNode) => boolean): boolean {
  return has(node) || childrenOf(node).some((child) => some(child, has));
}

/** Whether the node contains `super`, which is valid only in methods. */
export function usesSuper(node: AnyNode): boolean {
  return some(node, ({ type }) => type === "Super");
}

/** The private name that a call calls a method by: `object.#name(…)`, outside of optional chains. */
export function calledPrivately(node: AnyNode): { call: CallExpression; object: AnyNode; name: string } | undefined {
  if (node.type !== "CallExpression" || node.optional || node.callee.type !== "MemberExpression") return undefined;
  const { object, property, optional } = node.callee;
  if (property.type !== "PrivateIdentifier" || optional || object.type === "Super") return undefined;
  return object.type === "SequenceExpression" ? undefined : { call: node, object, name: property.name };
}

/** Adds the private names that are used in `node` in another way than to call a method. */
function addOtherUses(node: AnyNode, names: Set<string>): void {
  const called = calledPrivately(node);
  if (called !== undefined) {
    addOtherUses(called.object, names);
    for (const argument of called.call.arguments) addOtherUses(argument, names);
  } else if (node.type === "PrivateIdentifier") names.add(node.name);
  else if (node.type === "MethodDefinition" && node.key.type === "PrivateIdentifier") addOtherUses(node.value, names);
  else if (node.type === "ChainExpression") addAll(node, names);
  else for (const child of childrenOf(node)) addOtherUses(child, names);
}

function addAll(node: AnyNode, names: Set<string>): void {
  if (node.type === "PrivateIdentifier") names.add(node.name);
  for (const child of childrenOf(node)) addAll(child, names);
}

/** Whether a function does nothing that a function with its object as first parameter cannot do. */
function isPlain({ params, body }: FunctionNode): boolean {
  const isOdd = ({ type, ...rest }: AnyNode) =>
    type === "Super" || type === "MetaProperty" || type === "ClassExpression" || type === "ClassDeclaration" ||
    (type === "Identifier" && (rest as { name?: unknown }).name === "arguments");
  return ![...params, body].some((node) => some(node, isOdd));
}

/** Whether a function, nested ones excluded, returns a value. */
function returnsValue(node: AnyNode): boolean {
  if (node.type === "ReturnStatement") return node.argument !== null && node.argument !== undefined;
  return childrenOf(node).some((child) => !/Function/.test(child.type) && returnsValue(child));
}

/** The chosen members of a class that can be outlined; `variable` returns a new variable for a name. */
export function outlinesOf(
  { body, superClass }: Class,
  isChosen: (member: MethodDefinition) => boolean,
  variable: (name: string) => string,
): Outlines {
  const otherUses = new Set<string>();
  addOtherUses(body, otherUses);
  const variables = new Map<MethodDefinition, string>();
  const names = new Map<string, string | undefined>();
  for (const member of body.body) {
    if (member.type === "StaticBlock" || member.type === "PropertyDefinition" || member.type === "MethodDefinition") {
      if (member.type !== "StaticBlock" && member.key.type === "PrivateIdentifier") {
        names.set(member.key.name, undefined);
      }
    }
    if (member.type !== "MethodDefinition" || member.static || !isChosen(member) || !isPlain(member.value)) continue;
    const { kind, key, value } = member;
    if (kind === "constructor") {
      const canMove = !superClass && !value.params.some(({ type }) => type === "RestElement") &&
        !returnsValue(value.body);
      if (canMove && member.end - member.start >= MIN_CONSTRUCTOR) variables.set(member, variable("constructor"));
    } else if (kind === "method" && key.type === "PrivateIdentifier" && !otherUses.has(key.name)) {
      variables.set(member, variable(key.name));
    }
  }
  for (const [{ key }, name] of variables) if (key.type === "PrivateIdentifier") names.set(key.name, name);
  return { variables, names };
}
