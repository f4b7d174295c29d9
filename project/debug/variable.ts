/** A variable as the debugger shows it, whether it is one of the source or of the module. Types only. */
import type { Value } from "./values.ts";

/** A named value. */
export interface Variable {
  readonly name: string;
  readonly type: string;
  readonly text: string;
  /** Its value in expressions; absent for references and aggregates. */
  readonly value?: Value;
  /** Its parts: fields, elements, the target of a pointer. */
  readonly parts?: () => readonly Variable[];
  /** An element that a pointer points at, by index. */
  readonly element?: (index: number) => Variable;
  /** What a pointer points at. */
  readonly target?: () => Variable;
  /** The address of its bytes in the first memory, if it is there. */
  readonly address?: number;
  /** Changes it to the value that a text names. Throws an Error if that is not possible. */
  readonly set?: (text: string) => void;
}
