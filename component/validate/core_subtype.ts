/**
 * Matching of the types of core imports, exports and modules (specification of core WebAssembly, 3.3; Explainer, "Type
 * Checking"). In: closed types. Out: the reason of a mismatch, or undefined.
 */
import { isSubtypeId, matchesGlobalType } from "@waft/engine/internal/wasm/subtype";
import { type Limits, pageBytes, valTypeName } from "@waft/engine/internal/wasm/types";
import type { CoreExternType, CoreFuncType, ModuleType } from "../model/types.ts";

/** `(func (param i32) (result i32))`, for messages. */
function funcText({ params, results }: CoreFuncType): string {
  const list = (keyword: string, types: readonly number[]) =>
    types.length === 0 ? "" : ` (${keyword} ${types.map(valTypeName).join(" ")})`;
  return `(func${list("param", params)}${list("result", results)})`;
}

function limitsMatch(a: Limits, b: Limits): boolean {
  if (a.address !== b.address || a.min < b.min) return false;
  return b.max === undefined || (a.max !== undefined && a.max <= b.max);
}

/** The reason why `actual` cannot be used where `expected` is imported; undefined if it can. */
export function coreMismatch(actual: CoreExternType, expected: CoreExternType): string | undefined {
  if (actual.kind === "func" && expected.kind === "func") {
    const matches = isSubtypeId(actual.id, expected.id);
    return matches ? undefined : `expected: ${funcText(expected.type)}, found: ${funcText(actual.type)}`;
  }
  if (actual.kind === "tag" && expected.kind === "tag") {
    const matches = actual.id === expected.id;
    return matches ? undefined : `expected tag: ${funcText(expected.type)}, found: ${funcText(actual.type)}`;
  }
  if (actual.kind === "table" && expected.kind === "table") {
    const [a, b] = [actual.type, expected.type];
    if (a.element !== b.element) {
      return `expected table element type ${valTypeName(b.element)}, found ${valTypeName(a.element)}`;
    }
    return limitsMatch(a.limits, b.limits) ? undefined : "mismatch in table limits";
  }
  if (actual.kind === "memory" && expected.kind === "memory") {
    const [a, b] = [actual.type, expected.type];
    if (a.shared !== b.shared) return "mismatch in the shared flag for memories";
    if (pageBytes(a) !== pageBytes(b)) return "mismatch in page size for memories";
    return limitsMatch(a.limits, b.limits) ? undefined : "mismatch in memory limits";
  }
  if (actual.kind === "global" && expected.kind === "global") {
    const [a, b] = [actual.type, expected.type];
    if (matchesGlobalType(a, b)) return undefined;
    if (a.mutable !== b.mutable) return "mismatch in the mutability of globals";
    return `expected global type ${valTypeName(b.type)}, found ${valTypeName(a.type)}`;
  }
  return `expected ${expected.kind}, found ${actual.kind}`;
}

/**
 * The reason why a module of type `actual` cannot be used as one of type `expected`: it may import less and export
 * more.
 */
export function moduleMismatch(actual: ModuleType, expected: ModuleType): string | undefined {
  const offered = new Map(expected.imports.map((row) => [JSON.stringify([row.module, row.name]), row.type]));
  for (const { module, name, type } of actual.imports) {
    const found = offered.get(JSON.stringify([module, name]));
    if (found === undefined) return `missing expected import \`${module}::${name}\``;
    const mismatch = coreMismatch(found, type);
    if (mismatch !== undefined) return `type mismatch in import \`${module}::${name}\`: ${mismatch}`;
  }
  for (const [name, type] of expected.exports) {
    const found = actual.exports.get(name);
    if (found === undefined) return `missing expected export \`${name}\``;
    const mismatch = coreMismatch(found, type);
    if (mismatch !== undefined) return `type mismatch in export \`${name}\`: ${mismatch}`;
  }
  return undefined;
}
