/**
 * The import graph of JavaScript modules that are to be bundled. In: syntax trees, and modules by path. Out: whether a
 * module awaits outside of functions, the modules that one reaches, and Rollup's handler of warnings.
 */
import type { AnyNode, Program } from "acorn";
import type { LogHandlerWithDefault } from "@rollup/wasm-node";

/** A module's place in the graph. */
interface LinkedModule {
  /** The paths of the modules that it imports statically. */
  readonly imports: readonly string[];
  readonly hasAwait: boolean;
}

export function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value;
}

/** Whether code outside of functions contains an `await`. */
export function awaits(node: AnyNode | Program): boolean {
  if (node.type.includes("Function")) return false;
  if (node.type === "AwaitExpression" || node.type === "ForOfStatement" && node.await) return true;
  return Object.values(node).flat().some((part) => isNode(part) && awaits(part));
}

/** The module at `path`. Throws an Error if it is not among `modules`. */
export function moduleAt<T>(modules: ReadonlyMap<string, T>, path: string): T {
  const module = modules.get(path);
  if (module === undefined) throw new Error(`"${path}" is imported, but not in the package`);
  return module;
}

/** The modules that `path` imports statically, directly or not, and itself. */
export function closureOf(modules: ReadonlyMap<string, LinkedModule>, path: string): Set<string> {
  const closure = new Set([path]);
  for (const member of closure) for (const imported of moduleAt(modules, member).imports) closure.add(imported);
  return closure;
}

/** Whether the module at `path` or one that it imports awaits, so that `require` cannot load it. */
export function reachesAwait(modules: ReadonlyMap<string, LinkedModule>, path: string): boolean {
  return [...closureOf(modules, path)].some((member) => moduleAt(modules, member).hasAwait);
}

/** Rollup's warnings about modules that import each other, which ranks limit, and about modules of types only. */
const ACCEPTED: ReadonlySet<string | undefined> = new Set(["CIRCULAR_DEPENDENCY", "EMPTY_BUNDLE"]);

/** Turns Rollup's other warnings into errors. */
export const refuseWarnings: LogHandlerWithDefault = (level, { code, message }) => {
  if (level === "warn" && !ACCEPTED.has(code)) throw new Error(`bundling: ${message}`);
};
