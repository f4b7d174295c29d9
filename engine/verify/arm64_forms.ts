/**
 * The forms of arm64 instructions that code of functions may contain: rows only, read by arm64_decoder.ts. They are
 * written down from the manual (Arm Architecture Reference Manual for A-profile, C4.1), not derived from the backend's
 * rows, so that a mistake there does not repeat itself here. tests/verify/arm64_decoder_test.ts compares them with an
 * external assembler.
 *
 *     "SHAPE KIND BITS"
 *
 *     SHAPE   how the decoder fills its columns, a key of SHAPE
 *     KIND    a key of KIND, with the operation after a dot where a kind has several; -: the shape decides
 *     BITS    32 bits from left to right: 0 and 1 are fixed; z: 1 for 64 bits, w: 1 for 32; d n m a: registers; other
 *             letters are fields of the shape; ?: any bit, of instructions whose effects do not differ
 *
 * Vector instructions that touch neither general registers nor memory are listed by class.
 */
export const SHAPE = {
  /** rd, rn, rm with a shift. s: kind of shift, i: amount. */
  SHIFTED: 1,
  /** rd, rn, rm with an extension; rd and rn may be sp. e: extension, i: amount. */
  EXTENDED: 2,
  /** rd, rn, immediate i, shifted left by 12 if s; rd and rn may be sp. */
  ARITHMETIC: 3,
  /** rd, rn, immediate i as a pattern of bits. */
  LOGICAL: 4,
  /** rd, 16 bits i at the place s. */
  WIDE_MOVE: 5,
  /** rd, rn, bits i and s. */
  BIT_FIELD: 6,
  /** rd of rn and rm, or of rn alone. */
  COMPUTE: 7,
  /** rd, rn, rm, ra. */
  MULTIPLY: 8,
  /** rd, rn, rm, condition c. */
  SELECT: 9,
  /** rn, rm or i, flags s, condition c. */
  CHAIN: 10,
  /** A branch by i words. t: bits of i. */
  BRANCH: 11,
  /** The same on a condition c, a register, or a bit of it. */
  CONDITIONAL: 12,
  ZERO_BRANCH: 13,
  BIT_BRANCH: 14,
  /** A jump to the address in rn. */
  REGISTER: 15,
  /** rd becomes an address near the instruction. */
  ADDRESS: 16,
  /** No operands. */
  PLAIN: 17,
  /** Accesses of register d: at rn + i × size, at rn + signed i, at rn + rm. */
  SCALED: 18,
  UNSCALED: 19,
  INDEXED: 20,
  /** Accesses at rn. m: another register. */
  AT: 21,
  /** Accesses of registers d and a at rn + signed i × size; the same with a changed sp. */
  PAIR: 22,
  STACK_PAIR: 23,
  /** A load from a place near the instruction. */
  LITERAL: 24,
  /** Vector instructions: of vector registers alone; d is a general register; n is one. */
  VECTOR: 25,
  TO_GENERAL: 26,
  FROM_GENERAL: 27,
} as const;

/** Loads and stores: their kind, size and bits: size, V, opc. */
const ACCESSES: readonly (readonly [kind: string, size: string, vector: string, opcode: string])[] = [
  ["ZERO_EXTEND", "00", "0", "01"],
  ["SIGN_EXTEND", "00", "0", "1w"],
  ["ZERO_EXTEND", "01", "0", "01"],
  ["SIGN_EXTEND", "01", "0", "1w"],
  ["MOVE.1", "10", "0", "01"],
  ["SIGN_EXTEND", "10", "0", "10"],
  ["MOVE.1", "11", "0", "01"],
  ["MOVE.0", "00", "0", "00"],
  ["MOVE.0", "01", "0", "00"],
  ["MOVE.0", "10", "0", "00"],
  ["MOVE.0", "11", "0", "00"],
  ["VECTOR", "10", "1", "01"],
  ["VECTOR", "11", "1", "01"],
  ["VECTOR", "00", "1", "11"],
  ["VECTOR_STORE", "00", "1", "00"],
  ["VECTOR_STORE", "01", "1", "00"],
  ["VECTOR_STORE", "10", "1", "00"],
  ["VECTOR_STORE", "11", "1", "00"],
  ["VECTOR_STORE", "00", "1", "10"],
];

export const ARM64_FORMS: readonly string[] = [
  // Arithmetic. ALU.0 adds, ALU.5 subtracts; o: sets the flags.
  "SHIFTED ALU.0 z0o01011ss0mmmmmiiiiiinnnnnddddd",
  "SHIFTED ALU.5 z1o01011ss0mmmmmiiiiiinnnnnddddd",
  "EXTENDED ALU.0 z0001011001mmmmmeeeiiinnnnnddddd",
  "EXTENDED ALU.5 z1o01011001mmmmmeeeiiinnnnnddddd",
  "ARITHMETIC ALU.0 z0o100010siiiiiiiiiiiinnnnnddddd",
  "ARITHMETIC ALU.5 z1o100010siiiiiiiiiiiinnnnnddddd",
  "COMPUTE COMPUTE z?011010000mmmmm000000nnnnnddddd", // adc sbc
  "MULTIPLY MULTIPLY z0011011000mmmmm0aaaaannnnnddddd",
  "COMPUTE COMPUTE z0011011000mmmmm1?????nnnnnddddd", // msub
  "COMPUTE COMPUTE 10011011?10mmmmm011111nnnnnddddd", // smulh umulh
  "COMPUTE COMPUTE z0011010110mmmmm00001?nnnnnddddd", // udiv sdiv
  // Logic. ALU.4 and, ALU.1 or, ALU.6 exclusive or; N: of the inverted rm.
  "SHIFTED ALU.4 z0001010ssNmmmmmiiiiiinnnnnddddd",
  "SHIFTED ALU.1 z0101010ssNmmmmmiiiiiinnnnnddddd",
  "SHIFTED ALU.6 z1001010ssNmmmmmiiiiiinnnnnddddd",
  "SHIFTED TEST z1101010ss0mmmmmiiiiiinnnnnddddd",
  "LOGICAL ALU.4 z00100100iiiiiiiiiiiiinnnnnddddd",
  "LOGICAL ALU.1 z01100100iiiiiiiiiiiiinnnnnddddd",
  "LOGICAL ALU.6 z10100100iiiiiiiiiiiiinnnnnddddd",
  "LOGICAL TEST z11100100iiiiiiiiiiiiinnnnnddddd",
  // Constants.
  "WIDE_MOVE NOT z00100101ssiiiiiiiiiiiiiiiiddddd",
  "WIDE_MOVE CONSTANT z10100101ssiiiiiiiiiiiiiiiiddddd",
  "WIDE_MOVE KEEP z11100101ssiiiiiiiiiiiiiiiiddddd",
  // Bit fields and shifts. 0: signed, 1: into the old value, 2: unsigned.
  "BIT_FIELD BIT_FIELD.0 z00100110Niiiiiissssssnnnnnddddd",
  "BIT_FIELD BIT_FIELD.1 z01100110Niiiiiissssssnnnnnddddd",
  "BIT_FIELD BIT_FIELD.2 z10100110Niiiiiissssssnnnnnddddd",
  "COMPUTE COMPUTE z00100111?0mmmmm??????nnnnnddddd", // extr
  "COMPUTE COMPUTE z0011010110mmmmm0010??nnnnnddddd", // lslv lsrv asrv rorv
  "COMPUTE COMPUTE z101101011000000000000nnnnnddddd", // rbit
  "COMPUTE COUNT_BITS z101101011000000000100nnnnnddddd",
  // Conditions.
  "SELECT CONDITIONAL_MOVE z0011010100mmmmmcccc00nnnnnddddd",
  "SELECT SET_CONDITION z0011010100mmmmmcccc01nnnnnddddd",
  "CHAIN CHAIN.0 z1111010010mmmmmcccc00nnnnn0ssss",
  "CHAIN CHAIN.1 z1111010010iiiiicccc10nnnnn0ssss",
  "CHAIN CHAIN.2 z0111010010iiiiicccc10nnnnn0ssss",
  // Control.
  "BRANCH JUMP 000101iiiiiiiiiiiiiiiiiiiiiiiiii",
  "BRANCH CALL 100101iiiiiiiiiiiiiiiiiiiiiiiiii",
  "CONDITIONAL BRANCH.0 01010100iiiiiiiiiiiiiiiiiii0cccc",
  "ZERO_BRANCH BRANCH.1 z011010oiiiiiiiiiiiiiiiiiiiddddd",
  "BIT_BRANCH BRANCH.2 z011011osssssiiiiiiiiiiiiiiddddd",
  "REGISTER JUMP_INDIRECT 1101011000011111000000nnnnn00000",
  "REGISTER CALL_INDIRECT 1101011000111111000000nnnnn00000",
  "REGISTER RETURN 1101011001011111000000nnnnn00000",
  "ADDRESS LEA 0ss10000iiiiiiiiiiiiiiiiiiiddddd",
  "PLAIN NOP 11010101000000110010000000011111",
  "PLAIN NOP 11010101000000110010000000111111", // yield
  "PLAIN NOP 11010101000000110010001010011111", // csdb
  "PLAIN NOP 11010101000000110011101110111111", // dmb ish
  // Loads and stores.
  ...ACCESSES.flatMap(([kind, size, vector, opcode]) => [
    `SCALED ${kind} ${size}111${vector}01${opcode}iiiiiiiiiiiinnnnnddddd`,
    `UNSCALED ${kind} ${size}111${vector}00${opcode}0iiiiiiiii00nnnnnddddd`,
    `INDEXED ${kind} ${size}111${vector}00${opcode}1mmmmmeees10nnnnnddddd`,
  ]),
  ...["00", "10"].flatMap((size) => [
    `PAIR PAIR.1 ${size}10100101iiiiiiiaaaaannnnnddddd`,
    `PAIR PAIR.0 ${size}10100100iiiiiiiaaaaannnnnddddd`,
  ]),
  ...["00", "01", "10"].flatMap((size) => [
    `PAIR VECTOR ${size}10110101iiiiiiiaaaaannnnnddddd`,
    `PAIR VECTOR_STORE ${size}10110100iiiiiiiaaaaannnnnddddd`,
  ]),
  "STACK_PAIR PUSH 1010100110iiiiiiiaaaaa11111ddddd",
  "STACK_PAIR POP 1010100011iiiiiiiaaaaa11111ddddd",
  ...["00", "01", "10"].map((size) => `LITERAL VECTOR ${size}011100iiiiiiiiiiiiiiiiiiiddddd`),
  // Atomic accesses, with the order of acquire and release. sz: the size.
  "AT EXCHANGE_ADD ss111000111mmmmm0???00nnnnnddddd", // ldadd ldclr ldeor ldset and others
  "AT EXCHANGE ss111000111mmmmm100000nnnnnddddd",
  "AT COMPARE_EXCHANGE ss001000111mmmmm111111nnnnnddddd",
  "AT MOVE.1 ss00100011011111111111nnnnnddddd", // ldar
  "AT MOVE.1 ss00100001011111111111nnnnnddddd", // ldaxr
  "AT MOVE.0 ss00100010011111111111nnnnnddddd", // stlr
  "AT STORE_EXCLUSIVE ss001000000mmmmm111111nnnnnddddd",
  // Scalar floating point: of one and two operands, selection, constants, compares, conversions.
  "VECTOR VECTOR 000111100?1??????10000nnnnnddddd",
  "VECTOR VECTOR 000111100?1mmmmm????10nnnnnddddd",
  "VECTOR VECTOR 000111100?1mmmmmcccc11nnnnnddddd",
  "VECTOR VECTOR 000111100?1iiiiiiii10000000ddddd",
  "PLAIN COMPARE_FLOATS 000111100?1mmmmm001000nnnnn0?000",
  "PLAIN COMPARE_FLOATS 000111100?1mmmmmcccc01nnnnn0ssss",
  "TO_GENERAL GENERAL_FROM_VECTOR z00111100?11100?000000nnnnnddddd", // fcvtzs fcvtzu
  "FROM_GENERAL VECTOR_FROM_GENERAL z00111100?10001?000000nnnnnddddd", // scvtf ucvtf
  "TO_GENERAL GENERAL_FROM_VECTOR 0001111000100110000000nnnnnddddd", // fmov wd, sn
  "TO_GENERAL GENERAL_FROM_VECTOR 1001111001100110000000nnnnnddddd", // fmov xd, dn
  "FROM_GENERAL VECTOR_MOVE 0001111000100111000000nnnnnddddd", // fmov sd, wn
  "FROM_GENERAL VECTOR_MOVE 1001111001100111000000nnnnnddddd", // fmov dd, xn
  // Vectors by class: three registers, two, across lanes, of different width, shifts and constants, permutations.
  "VECTOR VECTOR 0??01110??1mmmmm?????1nnnnnddddd",
  "VECTOR VECTOR 0??01110??10000?????10nnnnnddddd",
  "VECTOR VECTOR 0??01110??11000?????10nnnnnddddd",
  "VECTOR VECTOR 0??01110??1mmmmm????00nnnnnddddd",
  "VECTOR VECTOR 0??011110iiiiiii?????1nnnnnddddd",
  "VECTOR VECTOR 0?001110??0mmmmm0???10nnnnnddddd",
  "VECTOR VECTOR 0?101110000mmmmm0iiii0nnnnnddddd",
  "VECTOR VECTOR 0?001110000mmmmm0???00nnnnnddddd",
  // Lanes.
  "VECTOR VECTOR 01001110000iiiii000001nnnnnddddd",
  "VECTOR VECTOR 01011110000iiiii000001nnnnnddddd",
  "VECTOR VECTOR 01101110000iiiii0ssss1nnnnnddddd",
  "FROM_GENERAL VECTOR_FROM_GENERAL 01001110000iiiii000011nnnnnddddd",
  "FROM_GENERAL VECTOR_FROM_GENERAL 01001110000iiiii000111nnnnnddddd",
  "TO_GENERAL GENERAL_FROM_VECTOR 00001110000iiiii001011nnnnnddddd", // smov
  "TO_GENERAL GENERAL_FROM_VECTOR 0z001110000iiiii001111nnnnnddddd", // umov
];
