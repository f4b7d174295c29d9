/**
 * Rows of scalar floating-point instructions and of the few vector instructions that scalar code needs. As
 * insts_integer.ts; `y` is the precision bit: such a row is two, KEY_S and KEY_D, whose registers `f` are s and d.
 *
 * Arm Architecture Reference Manual for A-profile, part C7.
 */
export const FLOAT_ROWS = [
  "FADD|fadd fd, fn, fm|000111100y1mmmmm001010nnnnnddddd",
  "FSUB|fsub fd, fn, fm|000111100y1mmmmm001110nnnnnddddd",
  "FMUL|fmul fd, fn, fm|000111100y1mmmmm000010nnnnnddddd",
  "FDIV|fdiv fd, fn, fm|000111100y1mmmmm000110nnnnnddddd",
  "FMAX|fmax fd, fn, fm|000111100y1mmmmm010010nnnnnddddd",
  "FMIN|fmin fd, fn, fm|000111100y1mmmmm010110nnnnnddddd",
  "FMOV|fmov fd, fn|000111100y100000010000nnnnnddddd",
  "FABS|fabs fd, fn|000111100y100000110000nnnnnddddd",
  "FNEG|fneg fd, fn|000111100y100001010000nnnnnddddd",
  "FSQRT|fsqrt fd, fn|000111100y100001110000nnnnnddddd",
  "FRINTN|frintn fd, fn|000111100y100100010000nnnnnddddd",
  "FRINTP|frintp fd, fn|000111100y100100110000nnnnnddddd",
  "FRINTM|frintm fd, fn|000111100y100101010000nnnnnddddd",
  "FRINTZ|frintz fd, fn|000111100y100101110000nnnnnddddd",
  "FCVT_DS|fcvt dd, sn|0001111000100010110000nnnnnddddd",
  "FCVT_SD|fcvt sd, dn|0001111001100010010000nnnnnddddd",
  "FCMP|fcmp fn, fm|000111100y1mmmmm001000nnnnn00000",
  "FCMP0|fcmp fn, #0.0|000111100y100000001000nnnnn01000",
  "FCCMP|fccmp fn, fm, #s, c|000111100y1mmmmmcccc01nnnnn0ssss",
  "FCSEL|fcsel fd, fn, fm, c|000111100y1mmmmmcccc11nnnnnddddd",
  "FMOV_I|fmov fd, #F|000111100y1iiiiiiii10000000ddddd",
  "FCVTZS|fcvtzs rd, fn|z00111100y111000000000nnnnnddddd",
  "FCVTZU|fcvtzu rd, fn|z00111100y111001000000nnnnnddddd",
  "SCVTF|scvtf fd, rn|z00111100y100010000000nnnnnddddd",
  "UCVTF|ucvtf fd, rn|z00111100y100011000000nnnnnddddd",
  "FMOV_SW|fmov sd, wn|0001111000100111000000nnnnnddddd",
  "FMOV_WS|fmov wd, sn|0001111000100110000000nnnnnddddd",
  "FMOV_DX|fmov dd, xn|1001111001100111000000nnnnnddddd",
  "FMOV_XD|fmov xd, dn|1001111001100110000000nnnnnddddd",
  // vectors
  "MOVI_ZERO|movi dd, #0000000000000000|001011110000000011100100000ddddd",
  "BIT_8B|bit vd.8b, vn.8b, vm.8b|00101110101mmmmm000111nnnnnddddd",
  "CNT_8B|cnt vd.8b, vn.8b|0000111000100000010110nnnnnddddd",
  "ADDV_8B|addv bd, vn.8b|0000111000110001101110nnnnnddddd",
] as const;
