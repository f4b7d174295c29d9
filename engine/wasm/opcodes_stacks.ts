/**
 * Opcode rows of the proposal "stack switching", in the notation of opcode_row.ts. They come after all other pages, so
 * that the ids of the standard's rows do not depend on them.
 */

/** Rows of continuations: computations that suspend, with a tag, and that other code resumes. */
export const STACK_ROWS = [
  "e0 cont.new type special stack-switching",
  "e1 cont.bind type,type special stack-switching",
  "e2 suspend tag special stack-switching",
  "e3 resume type,handlers special stack-switching",
  "e4 resume_throw type,tag,handlers special stack-switching",
  "e5 resume_throw_ref type,handlers special stack-switching",
  "e6 switch type,tag special stack-switching",
] as const;
