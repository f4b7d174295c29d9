/**
 * The forms of x86-64 instructions that code of functions may contain: rows only, read by x64_decoder.ts. They are
 * written down from the manual (Intel SDM volume 2), not derived from the backend's rows, so that a mistake there does
 * not repeat itself here. tests/verify/x64_decoder_test.ts compares them with an external assembler.
 *
 *     "PREFIXES MAP OPCODES KIND OPERANDS SIZE [IMMEDIATE]"
 *
 *     PREFIXES   mandatory prefixes that the row exists with: - 66 f3 f2, separated by commas; a leading v adds the
 *                form with VEX.128, v! leaves only that
 *     MAP        1: one byte, 0f, 38, 3a
 *     OPCODES    hexadecimal, single or a-b, separated by commas; /n: ModRM.reg extends the opcode
 *     KIND       a key of KIND, with the operation after a dot where a kind has several
 *     OPERANDS   r,m: ModRM.reg is the destination and ModRM.rm the source; m,r: the opposite; m: ModRM.rm alone; R:
 *                ModRM.rm is a register only; M: memory only; o: the register is in the opcode; -: none
 *     SIZE       bytes that a memory operand has: a number, or w: 2 with 66, 8 with W, otherwise 4; d: 8 with W,
 *                otherwise 4
 *     IMMEDIATE  b: one byte, z: four bytes, two with 66; o: eight with W, otherwise four; c, C: a displacement of one
 *                byte, of four
 */

export const X64_FORMS: readonly string[] = [
  // Arithmetic in its five encodings.
  ...[["ALU.0", 0], ["ALU.1", 1], ["ALU.4", 4], ["ALU.5", 5], ["ALU.6", 6], ["COMPARE", 7]].flatMap(([kind, k]) => [
    `- 1 ${hex(Number(k) * 8)} ${kind} m,r 1`,
    `-,66 1 ${hex(Number(k) * 8 + 1)} ${kind} m,r w`,
    `- 1 ${hex(Number(k) * 8 + 2)} ${kind} r,m 1`,
    `-,66 1 ${hex(Number(k) * 8 + 3)} ${kind} r,m w`,
    `- 1 80/${k} ${kind} m 1 b`,
    `-,66 1 81/${k} ${kind} m w z`,
    `-,66 1 83/${k} ${kind} m w b`,
  ]),
  "- 1 13 ALU.2 r,m d",
  "- 1 1b ALU.3 r,m d",
  "- 1 84 TEST m,r 1",
  "-,66 1 85 TEST m,r w",
  "- 1 f6/0 TEST m 1 b",
  "-,66 1 f7/0 TEST m w z",
  "- 1 f7/2 NOT m d",
  "- 1 f7/3 NEGATE m d",
  "- 1 f7/4,f7/5,f7/6,f7/7 WIDE_ARITHMETIC m d",
  "- 1 99 SIGN_OF_RAX - d",
  "- 0f af MULTIPLY r,m d",
  "- 1 69 MULTIPLY_CONSTANT r,m d z",
  "- 1 6b MULTIPLY_CONSTANT r,m d b",
  ...[0, 1, 4, 5, 7].flatMap((k) => [
    `-,66 1 c1/${k} SHIFT.${k} m w b`,
    `- 1 d1/${k},d3/${k} SHIFT.${k} m d`,
  ]),
  "v!66,f3,f2 38 f7 SHIFT_TO r,m d",
  "v!f2 3a f0 SHIFT_TO r,m d b",
  "-,f3 0f bc-bd COUNT_BITS r,m d",
  "f3 0f b8 COUNT_BITS r,m d",
  "- 0f ba/5 SET_BIT m d b",
  // Moves.
  "- 1 88 MOVE m,r 1",
  "-,66 1 89 MOVE m,r w",
  "- 1 8b MOVE r,m d",
  "- 1 c6/0 MOVE m 1 b",
  "-,66 1 c7/0 MOVE m w z",
  "- 1 b8-bf CONSTANT o d o",
  "- 0f b6 ZERO_EXTEND r,m 1",
  "- 0f b7 ZERO_EXTEND r,m 2",
  "- 0f be SIGN_EXTEND r,m 1",
  "- 0f bf SIGN_EXTEND r,m 2",
  "- 1 63 SIGN_EXTEND r,m 4",
  "- 1 8d LEA r,M d",
  "- 1 86 EXCHANGE m,r 1",
  "-,66 1 87 EXCHANGE m,r w",
  "- 0f c0 EXCHANGE_ADD m,r 1",
  "-,66 0f c1 EXCHANGE_ADD m,r w",
  "- 0f b0 COMPARE_EXCHANGE m,r 1",
  "-,66 0f b1 COMPARE_EXCHANGE m,r w",
  "f3 1 ab FILL - d",
  "- 0f 90-9f SET_CONDITION m 1",
  "- 0f 40-4f CONDITIONAL_MOVE r,m d",
  // Control and stack.
  "- 1 70-7f BRANCH - 0 c",
  "- 0f 80-8f BRANCH - 0 C",
  "- 1 eb JUMP - 0 c",
  "- 1 e9 JUMP - 0 C",
  "- 1 e8 CALL - 0 C",
  "- 1 ff/4 JUMP_INDIRECT m 8",
  "- 1 ff/2 CALL_INDIRECT m 8",
  "- 1 c3 RETURN - 0",
  "- 1 50-57 PUSH o 8",
  "- 1 ff/6 PUSH_MEMORY M 8",
  "- 1 58-5f POP o 8",
  "- 0f 0b UNDEFINED - 0",
  "-,66 1 90 NOP - 0",
  "f3 1 90 NOP - 0", // pause
  "-,66 0f 1f/0 NOP m 0",
  // Scalar floating point.
  "vf3 0f 10 VECTOR r,m 4",
  "vf2 0f 10 VECTOR r,m 8",
  "vf3 0f 11 VECTOR_STORE M,r 4",
  "vf2 0f 11 VECTOR_STORE M,r 8",
  "vf3 0f 51,58-5a,5c-5f VECTOR r,m 4",
  "vf2 0f 51,58-5a,5c-5f VECTOR r,m 8",
  "v66 3a 0a VECTOR r,m 4 b",
  "v66 3a 0b VECTOR r,m 8 b",
  "v- 0f 2e VECTOR r,m 4",
  "v66 0f 2e VECTOR r,m 8",
  "vf3,f2 0f 2a VECTOR_FROM_GENERAL r,m d",
  "vf3 0f 2c GENERAL_FROM_VECTOR r,m 4",
  "vf2 0f 2c GENERAL_FROM_VECTOR r,m 8",
  // Moves of vectors, and between banks.
  "v-,66 0f 28 VECTOR r,m 16",
  "v-,66 0f 10 VECTOR r,m 16",
  "v-,66 0f 11 VECTOR_STORE m,r 16",
  "vf3,66 0f 6f VECTOR r,m 16",
  "vf3,66 0f 7f VECTOR_STORE m,r 16",
  "v66 0f 6e VECTOR_MOVE r,m d",
  "v66 0f 7e VECTOR_TO_GENERAL m,r d",
  "vf3 0f 7e VECTOR r,m 8",
  "v66 0f d6 VECTOR_STORE m,r 8",
  "v- 0f 16,12 VECTOR r,m 8",
  "v- 0f 17 VECTOR_STORE M,r 8",
  "vf2 0f 12 VECTOR r,m 8",
  "v-,66 0f 50 GENERAL_FROM_VECTOR r,R 0",
  "v66 0f d7 GENERAL_FROM_VECTOR r,R 0",
  "v66 0f c5 GENERAL_FROM_VECTOR r,R 0 b",
  "v66 0f c4 VECTOR_FROM_GENERAL r,m 2 b",
  "v66 3a 20 VECTOR_FROM_GENERAL r,m 1 b",
  "v66 3a 21 VECTOR r,m 4 b",
  "v66 3a 22 VECTOR_FROM_GENERAL r,m d b",
  "v66 3a 14 VECTOR_TO_GENERAL m,r 1 b",
  "v66 3a 15 VECTOR_TO_GENERAL m,r 2 b",
  "v66 3a 16 VECTOR_TO_GENERAL m,r d b",
  // Vectors of 16 bytes.
  "v-,66 0f 14-15,51,54-59,5b-5f VECTOR r,m 16",
  "v- 0f 5a VECTOR r,m 8",
  "v66 0f 5a VECTOR r,m 16",
  "vf3 0f 5b VECTOR r,m 16",
  "v66 0f 60-6d,74-76 VECTOR r,m 16",
  "v66 0f d1-d5,d8-df,e0-e6,e8-ef,f1-f6,f8-fe VECTOR r,m 16",
  "vf3 0f e6 VECTOR r,m 8",
  "v66,f2,f3 0f 70 VECTOR r,m 16 b",
  "v66 0f 71/2,71/4,71/6,72/2,72/4,72/6,73/2,73/3,73/6,73/7 VECTOR R 0 b",
  "v-,66 0f c2,c6 VECTOR r,m 16 b",
  "v66 38 00-0b,17,1c-1e,28-2b,37-41 VECTOR r,m 16",
  "v66 38 20,23,25,30,33,35 VECTOR r,m 8",
  "v66 38 21,24,31,34 VECTOR r,m 4",
  "v66 3a 08-09,0e-0f VECTOR r,m 16 b",
  "v!66 38 18,58 VECTOR r,m 4",
  "v!66 38 59 VECTOR r,m 8",
  "v!66 38 78 VECTOR r,m 1",
  "v!66 38 79 VECTOR r,m 2",
];

function hex(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}
