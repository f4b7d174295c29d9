/**
 * The visitor of bodies (validate/visitor.ts) as a class, in the subset that has no functions in interfaces. Whoever
 * reads a body makes its calls: validation as TypeScript, a reader of valid bodies in the compiled forms.
 */
import type { Immediates } from "../wasm/immediates.ts";

export abstract class BodyVisitor {
  abstract begin(funcIndex: number, params: number, results: number, locals: readonly number[]): void;
  abstract instruction(id: number, imm: Immediates, at: number): void;
  abstract enter(kind: number, params: number, results: number, imm: Immediates, at: number): void;
  abstract otherwise(at: number): void;
  abstract handler(tag: number, at: number): void;
  abstract end(at: number, delegate: number): void;
  abstract finish(): void;
}
