/**
 * Rows of integer and branch instructions: `KEY|assembler text|32 bits, high to low`. In the bits, 0 and 1 are fixed
 * and a run of a letter is a field: d n m a registers, i immediate, s second immediate, c condition, k a single high
 * bit, j low bits of an address. `z` is the width bit: such a row is two, KEY32 and KEY64, whose registers `r` are w
 * and x. In the text, a capital register letter means that number 31 is the stack pointer; `#S` is a shift, `#E` an
 * extension, `#L` a logical immediate, `#A` an arithmetic one (all printed by disassemble.ts).
 *
 * Arm Architecture Reference Manual for A-profile, part C6.
 */
export const INTEGER_ROWS = [
  // arithmetic
  "ADD|add rd, rn, rm#S|z0001011ss0mmmmmiiiiiinnnnnddddd",
  "ADDS|adds rd, rn, rm#S|z0101011ss0mmmmmiiiiiinnnnnddddd",
  "SUB|sub rd, rn, rm#S|z1001011ss0mmmmmiiiiiinnnnnddddd",
  "SUBS|subs rd, rn, rm#S|z1101011ss0mmmmmiiiiiinnnnnddddd",
  "ADD_E|add Rd, Rn, #E|z0001011001mmmmmsssiiinnnnnddddd",
  "SUB_E|sub Rd, Rn, #E|z1001011001mmmmmsssiiinnnnnddddd",
  "SUBS_E|subs rd, Rn, #E|z1101011001mmmmmsssiiinnnnnddddd",
  "ADD_I|add Rd, Rn, #A|z00100010siiiiiiiiiiiinnnnnddddd",
  "ADDS_I|adds rd, Rn, #A|z01100010siiiiiiiiiiiinnnnnddddd",
  "SUB_I|sub Rd, Rn, #A|z10100010siiiiiiiiiiiinnnnnddddd",
  "SUBS_I|subs rd, Rn, #A|z11100010siiiiiiiiiiiinnnnnddddd",
  "ADC|adc rd, rn, rm|z0011010000mmmmm000000nnnnnddddd",
  "SBC|sbc rd, rn, rm|z1011010000mmmmm000000nnnnnddddd",
  "MADD|madd rd, rn, rm, ra|z0011011000mmmmm0aaaaannnnnddddd",
  "MSUB|msub rd, rn, rm, ra|z0011011000mmmmm1aaaaannnnnddddd",
  "SMULH|smulh xd, xn, xm|10011011010mmmmm011111nnnnnddddd",
  "UMULH|umulh xd, xn, xm|10011011110mmmmm011111nnnnnddddd",
  "UDIV|udiv rd, rn, rm|z0011010110mmmmm000010nnnnnddddd",
  "SDIV|sdiv rd, rn, rm|z0011010110mmmmm000011nnnnnddddd",
  // logic
  "AND|and rd, rn, rm#S|z0001010ss0mmmmmiiiiiinnnnnddddd",
  "BIC|bic rd, rn, rm#S|z0001010ss1mmmmmiiiiiinnnnnddddd",
  "ORR|orr rd, rn, rm#S|z0101010ss0mmmmmiiiiiinnnnnddddd",
  "ORN|orn rd, rn, rm#S|z0101010ss1mmmmmiiiiiinnnnnddddd",
  "EOR|eor rd, rn, rm#S|z1001010ss0mmmmmiiiiiinnnnnddddd",
  "EON|eon rd, rn, rm#S|z1001010ss1mmmmmiiiiiinnnnnddddd",
  "ANDS|ands rd, rn, rm#S|z1101010ss0mmmmmiiiiiinnnnnddddd",
  "AND_I|and Rd, rn, #L|z00100100iiiiiiiiiiiiinnnnnddddd",
  "ORR_I|orr Rd, rn, #L|z01100100iiiiiiiiiiiiinnnnnddddd",
  "EOR_I|eor Rd, rn, #L|z10100100iiiiiiiiiiiiinnnnnddddd",
  "ANDS_I|ands rd, rn, #L|z11100100iiiiiiiiiiiiinnnnnddddd",
  // constants
  "MOVN|movn rd, #H|z00100101ssiiiiiiiiiiiiiiiiddddd",
  "MOVZ|movz rd, #H|z10100101ssiiiiiiiiiiiiiiiiddddd",
  "MOVK|movk rd, #H|z11100101ssiiiiiiiiiiiiiiiiddddd",
  // bit fields and shifts
  "SBFM|sbfm rd, rn, #i, #s|z00100110ziiiiiissssssnnnnnddddd",
  "BFM|bfm rd, rn, #i, #s|z01100110ziiiiiissssssnnnnnddddd",
  "UBFM|ubfm rd, rn, #i, #s|z10100110ziiiiiissssssnnnnnddddd",
  "EXTR|extr rd, rn, rm, #i|z00100111z0mmmmmiiiiiinnnnnddddd",
  "LSLV|lslv rd, rn, rm|z0011010110mmmmm001000nnnnnddddd",
  "LSRV|lsrv rd, rn, rm|z0011010110mmmmm001001nnnnnddddd",
  "ASRV|asrv rd, rn, rm|z0011010110mmmmm001010nnnnnddddd",
  "RORV|rorv rd, rn, rm|z0011010110mmmmm001011nnnnnddddd",
  "RBIT|rbit rd, rn|z101101011000000000000nnnnnddddd",
  "CLZ|clz rd, rn|z101101011000000000100nnnnnddddd",
  // conditions
  "CSEL|csel rd, rn, rm, c|z0011010100mmmmmcccc00nnnnnddddd",
  "CSINC|csinc rd, rn, rm, c|z0011010100mmmmmcccc01nnnnnddddd",
  "CCMP|ccmp rn, rm, #s, c|z1111010010mmmmmcccc00nnnnn0ssss",
  "CCMN_I|ccmn rn, #i, #s, c|z0111010010iiiiicccc10nnnnn0ssss",
  "CCMP_I|ccmp rn, #i, #s, c|z1111010010iiiiicccc10nnnnn0ssss",
  // branches
  "B|b #~i*4|000101iiiiiiiiiiiiiiiiiiiiiiiiii",
  "BL|bl #~i*4|100101iiiiiiiiiiiiiiiiiiiiiiiiii",
  "BCOND|b.c #~i*4|01010100iiiiiiiiiiiiiiiiiii0cccc",
  "CBZ|cbz rd, #~i*4|z0110100iiiiiiiiiiiiiiiiiiiddddd",
  "CBNZ|cbnz rd, #~i*4|z0110101iiiiiiiiiiiiiiiiiiiddddd",
  "TBZ|tbz #T, #~i*4|k0110110sssssiiiiiiiiiiiiiiddddd",
  "TBNZ|tbnz #T, #~i*4|k0110111sssssiiiiiiiiiiiiiiddddd",
  "BR|br xn|1101011000011111000000nnnnn00000",
  "BLR|blr xn|1101011000111111000000nnnnn00000",
  "RET|ret xn|1101011001011111000000nnnnn00000",
  "ADR|adr xd, #~J|0jj10000iiiiiiiiiiiiiiiiiiiddddd",
  // system
  "NOP|nop|11010101000000110010000000011111",
  "YIELD|yield|11010101000000110010000000111111",
  "CSDB|csdb|11010101000000110010001010011111", // consumption of speculative data barrier
  "BRK|brk #i|11010100001iiiiiiiiiiiiiiii00000",
  "SVC|svc #i|11010100000iiiiiiiiiiiiiiii00001",
  "DMB_ISH|dmb ish|11010101000000110011101110111111",
  "DSB_ISH|dsb ish|11010101000000110011101110011111",
  "ISB|isb|11010101000000110011111111011111",
  "DC_CVAU|dc cvau, xd|110101010000101101111011001ddddd",
  "IC_IVAU|ic ivau, xd|110101010000101101110101001ddddd",
  "MRS_CTR|mrs xd, CTR_EL0|110101010011101100000000001ddddd",
] as const;
