/**
 * A function cannot be compiled yet: the code of defined function `callee` is needed first (MachineCode.missing).
 * Caught within the compiler.
 */
export class CalleeUnknown extends Error {
  readonly callee: number;

  constructor(callee: number) {
    super(`The code of function ${callee} is needed first`);
    this.callee = callee;
  }
}
