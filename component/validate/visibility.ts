/**
 * External visibility of types (Explainer, "External Visibility of Types"): every resource, record, variant, enum and
 * flags type in an import or export must itself have a name that is visible there.
 *
 * A name belongs to the node that an import or export of the type introduces. The sets only grow, so the answer
 * "visible" is remembered.
 */
import { type AnyType, type Extern, isValType, type ValType, valueOperands } from "../model/types.ts";
import type { Scope, Side } from "./scope.ts";

const NAMED_KINDS: ReadonlySet<string> = new Set(["record", "variant", "enum", "flags"]);

/** Whether all parts of the operand `type` are named. */
function operandVisible(type: ValType, side: Side): boolean {
  if (type.kind === "own" || type.kind === "borrow") return side.named.has(type.resource);
  if (NAMED_KINDS.has(type.kind)) return side.named.has(type);
  return partsVisible(type, side);
}

function remembered(type: AnyType, side: Side, check: () => boolean): boolean {
  if (side.visible.has(type)) return true;
  const answer = check();
  if (answer) side.visible.add(type);
  return answer;
}

/** Whether all parts of `type` are named; the type itself need not be. */
function partsVisible(type: AnyType, side: Side): boolean {
  return remembered(type, side, () => {
    if (isValType(type)) {
      if (type.kind === "own" || type.kind === "borrow") return side.named.has(type.resource);
      return valueOperands<ValType, unknown>(type).every((part) => operandVisible(part, side));
    }
    switch (type.kind) {
      case "func":
        return type.params.every((param) => operandVisible(param.type, side)) &&
          (type.result === undefined || operandVisible(type.result, side));
      case "instance":
        return [...type.exports.values()].every((extern) =>
          extern.kind === "module" || partsVisible(extern.type, side)
        );
      default: // Component types are checked when they are formed; a resource type has no parts.
        return true;
    }
  });
}

/**
 * Whether an item of this type may be imported or exported by `scope`; registers the names that the item gives to
 * types. Instance types are not checked when they are formed, but when they become the type of an import or export.
 */
export function registerVisible(scope: Scope, direction: Side["direction"], extern: Extern): boolean {
  return scope.kind === "instance type" || register(scope, scope.side(direction), extern);
}

function register(scope: Scope, side: Side, extern: Extern): boolean {
  switch (extern.kind) {
    case "type":
      if (!partsVisible(extern.referenced, side)) return false;
      scope.exports.named.add(extern.type);
      if (side.direction === "import") scope.imports.named.add(extern.type);
      return true;
    case "instance":
      for (const inner of extern.type.exports.values()) if (!register(scope, side, inner)) return false;
      return true;
    case "func":
      return partsVisible(extern.type, side);
    case "value":
      return operandVisible(extern.type, side);
    default:
      return true;
  }
}
