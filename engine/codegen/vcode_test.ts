/** Limits of VCode: functions that operand words cannot express are rejected. */
import { equal, throws } from "node:assert/strict";
import { UnsupportedError } from "../base/errors.ts";
import { TY } from "../ir/types.ts";
import { CONSTRAINT, MAX_VREGS, operandRole, operandVreg, operandWord, ROLE, VCode } from "./vcode.ts";

Deno.test("a virtual register that an operand word cannot name is refused", () => {
  const v = new VCode();
  for (let k = 1; k < MAX_VREGS; k++) v.newVreg(TY.I64);
  const last = v.newVreg(TY.I64);
  const word = operandWord(last, ROLE.DEF, CONSTRAINT.REG);
  equal(operandVreg(word), last);
  equal(operandRole(word), ROLE.DEF);
  throws(() => v.newVreg(TY.I64), UnsupportedError);
});

Deno.test("a set of clobbers that an instruction cannot name is refused", () => {
  const v = new VCode();
  v.clobberCount = 0x10000;
  throws(() => v.addClobbers(1, 1), UnsupportedError);
});
