/**
 * The traps that compiled code can raise, one row each: the index is the trap code in machine code and side tables, the
 * value is the specification's message. Codes are stable within an artifact version; 0 means "cannot trap".
 */
export const TRAP_MESSAGES = [
  "", // 0: no trap
  "unreachable",
  "integer divide by zero",
  "integer overflow",
  "invalid conversion to integer",
  "out of bounds memory access",
  "out of bounds table access",
  "undefined element",
  "uninitialized element",
  "indirect call type mismatch",
  "call stack exhausted",
  "null reference",
  "null function reference",
  "null structure reference",
  "null array reference",
  "null i31 reference",
  "null exception reference",
  "cast failure",
  "out of bounds array access",
  "unaligned atomic",
  "expected shared memory",
  "interrupted",
  "out of fuel",
  "allocation size too large",
  "null descriptor reference",
  "descriptor cast failure",
] as const;

/** Names of the {@linkcode TRAP_MESSAGES} indices. */
export const TRAP = {
  NONE: 0,
  UNREACHABLE: 1,
  INTEGER_DIVIDE_BY_ZERO: 2,
  INTEGER_OVERFLOW: 3,
  INVALID_CONVERSION: 4,
  MEMORY_OUT_OF_BOUNDS: 5,
  TABLE_OUT_OF_BOUNDS: 6,
  UNDEFINED_ELEMENT: 7,
  UNINITIALIZED_ELEMENT: 8,
  INDIRECT_CALL_TYPE: 9,
  STACK_EXHAUSTED: 10,
  NULL_REFERENCE: 11,
  NULL_FUNCTION: 12,
  NULL_STRUCTURE: 13,
  NULL_ARRAY: 14,
  NULL_I31: 15,
  NULL_EXCEPTION: 16,
  CAST_FAILURE: 17,
  ARRAY_OUT_OF_BOUNDS: 18,
  UNALIGNED_ATOMIC: 19,
  EXPECTED_SHARED_MEMORY: 20,
  INTERRUPTED: 21,
  OUT_OF_FUEL: 22,
  ALLOCATION_TOO_LARGE: 23,
  NULL_DESCRIPTOR: 24,
  DESCRIPTOR_CAST: 25,
} as const;

/** Whether only images of modules that may use custom descriptors have a stub for trap `code`. */
export function isDescriptorTrap(code: number): boolean {
  return code >= TRAP.NULL_DESCRIPTOR;
}

/** Messages of the traps of stack switching, which the runtime alone raises: machine code has no codes for them. */
export const STACK_TRAPS = {
  NULL: "null continuation reference",
  CONSUMED: "continuation already consumed",
  UNHANDLED: "unhandled tag",
} as const;

/** The code of a trap in `TrapError.code`: part of the API, so a code never changes its meaning. */
export const TRAP_NAMES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(TRAP).map(([name, code]) => [TRAP_MESSAGES[code], name.toLowerCase().replaceAll("_", "-")]),
);

/** The codes of the traps of stack switching. */
const STACK_NAMES: Readonly<Record<string, string>> = {
  [STACK_TRAPS.NULL]: "null-continuation",
  [STACK_TRAPS.CONSUMED]: "continuation-consumed",
  [STACK_TRAPS.UNHANDLED]: "unhandled-tag",
};

/** Traps whose message goes on after a colon. */
const OPEN_MESSAGES: Readonly<Record<string, string>> = { "out of memory": "out-of-memory" };

/** The code of the trap with `message`. */
export function trapName(message: string): string {
  return TRAP_NAMES[message] ?? STACK_NAMES[message] ?? OPEN_MESSAGES[message.split(":", 1)[0]] ?? "trap";
}
