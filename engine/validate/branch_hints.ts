/**
 * The strict check of branch hints (wasm/branch_hints.ts), for tools that ask for it. In: a valid module. Out: nothing,
 * or an InvalidError for a hint that belongs to neither `if` nor `br_if`.
 */
import { InvalidError } from "../base/errors.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { idOf } from "../wasm/opcodes.ts";
import { validateBody } from "./code.ts";
import type { ValidModule } from "./valid_module.ts";
import { type CodeVisitor, FRAME } from "./visitor.ts";

const BR_IF = idOf("br_if");

/** Removes the offsets of `if` and `br_if` from those that have hints. */
class TargetChecker implements CodeVisitor {
  readonly left: Set<number>;

  constructor(offsets: Iterable<number>) {
    this.left = new Set(offsets);
  }

  begin(): void {}
  instruction(id: number, _imm: Immediates, at: number): void {
    if (id === BR_IF) this.left.delete(at);
  }
  enter(kind: number, _params: number, _results: number, _imm: Immediates, at: number): void {
    if (kind === FRAME.IF) this.left.delete(at);
  }
  otherwise(): void {}
  handler(): void {}
  end(): void {}
  finish(): void {}
}

/** Throws an InvalidError for the first hint of an instruction that is neither `if` nor `br_if`. */
export function validateBranchHints(valid: ValidModule): void {
  for (const [funcIndex, hints] of valid.branchHints) {
    const { offset: start } = valid.funcs[funcIndex - valid.importedFuncCount].body;
    const checker = new TargetChecker([...hints.keys()].map((offset) => start + offset));
    validateBody(valid, funcIndex, checker);
    const [offset] = checker.left;
    if (offset === undefined) continue;
    throw new InvalidError(`@metadata.code.branch_hint annotation: invalid target in function ${funcIndex}`, {
      offset,
    });
  }
}
