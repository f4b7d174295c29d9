/**
 * Rows of loads and stores. ACCESS_ROWS are kinds of access, `KEY|text|size opc vector bits|log2 of the bytes`: each
 * becomes three instructions that follow one another (instructions.ts): KEY_U base + scaled unsigned immediate, KEY_N
 * base + signed 9-bit immediate, KEY_X base + index. The others are rows as in insts_integer.ts.
 *
 * Arm Architecture Reference Manual for A-profile, C4.1.94 "Loads and Stores".
 */
export const ACCESS_ROWS = [
  "LDRB|ldrb wd|00 01 0|0",
  "LDRSB_W|ldrsb wd|00 11 0|0",
  "LDRSB_X|ldrsb xd|00 10 0|0",
  "LDRH|ldrh wd|01 01 0|1",
  "LDRSH_W|ldrsh wd|01 11 0|1",
  "LDRSH_X|ldrsh xd|01 10 0|1",
  "LDR_W|ldr wd|10 01 0|2",
  "LDRSW|ldrsw xd|10 10 0|2",
  "LDR_X|ldr xd|11 01 0|3",
  "LDR_S|ldr sd|10 01 1|2",
  "LDR_D|ldr dd|11 01 1|3",
  "LDR_Q|ldr qd|00 11 1|4",
  "STRB|strb wd|00 00 0|0",
  "STRH|strh wd|01 00 0|1",
  "STR_W|str wd|10 00 0|2",
  "STR_X|str xd|11 00 0|3",
  "STR_B|str bd|00 00 1|0",
  "STR_H|str hd|01 00 1|1",
  "STR_S|str sd|10 00 1|2",
  "STR_D|str dd|11 00 1|3",
  "STR_Q|str qd|00 10 1|4",
] as const;

export const MEMORY_ROWS = [
  "STP_PRE|stp xd, xa, [Xn, #~i*8]!|1010100110iiiiiiiaaaaannnnnddddd",
  "LDP_POST|ldp xd, xa, [Xn], #~i*8|1010100011iiiiiiiaaaaannnnnddddd",
  "STP_W|stp wd, wa, [Xn, #~i*4]|0010100100iiiiiiiaaaaannnnnddddd",
  "LDP_W|ldp wd, wa, [Xn, #~i*4]|0010100101iiiiiiiaaaaannnnnddddd",
  "STP_X|stp xd, xa, [Xn, #~i*8]|1010100100iiiiiiiaaaaannnnnddddd",
  "LDP_X|ldp xd, xa, [Xn, #~i*8]|1010100101iiiiiiiaaaaannnnnddddd",
  "STP_S|stp sd, sa, [Xn, #~i*4]|0010110100iiiiiiiaaaaannnnnddddd",
  "LDP_S|ldp sd, sa, [Xn, #~i*4]|0010110101iiiiiiiaaaaannnnnddddd",
  "STP_D|stp dd, da, [Xn, #~i*8]|0110110100iiiiiiiaaaaannnnnddddd",
  "LDP_D|ldp dd, da, [Xn, #~i*8]|0110110101iiiiiiiaaaaannnnnddddd",
  "STP_Q|stp qd, qa, [Xn, #~i*16]|1010110100iiiiiiiaaaaannnnnddddd",
  "LDP_Q|ldp qd, qa, [Xn, #~i*16]|1010110101iiiiiiiaaaaannnnnddddd",
  "LDR_LS|ldr sd, #~i*4|00011100iiiiiiiiiiiiiiiiiiiddddd",
  "LDR_LD|ldr dd, #~i*4|01011100iiiiiiiiiiiiiiiiiiiddddd",
  "LDR_LQ|ldr qd, #~i*4|10011100iiiiiiiiiiiiiiiiiiiddddd",
] as const;
