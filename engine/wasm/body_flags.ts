/**
 * Flags of bodies, apart from the scan that finds them (summaries.ts), which loads the table of opcodes.
 */
/**
 * Properties of a body: bits of Summaries.flags (summaries.ts). RETURNING_CALL: a call that is not followed by
 * `unreachable`. CAST: a test or cast whose operand has a static type (frame_actions.ts).
 * MUTUAL_CALL: a call of another small function that calls this one.
 */
export const BODY = {
  LOOP: 1,
  CALL: 2,
  SELF_CALL: 4,
  EXCEPTIONS: 8,
  RETHROW: 16,
  RETURNING_CALL: 32,
  CAST: 64,
  MUTUAL_CALL: 128,
} as const;
