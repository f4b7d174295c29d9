/**
 * The lowering context of arm64: codegen/lowering_context.ts, plus the sums of memory base and address that are in
 * registers already.
 */
import type { CodegenOptions } from "../codegen/codegen_options.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import { FOLDING, LoweringContext } from "../codegen/lowering_context.ts";
import type { VCode } from "../codegen/vcode.ts";
import type { IrFunction } from "../ir/function.ts";
import { TY_BANK } from "../ir/types.ts";
import { ConstantHoister } from "../regalloc/hoist_constants.ts";

/** The form in which a value is folded. */
export const FOLD = {
  ...FOLDING,
  /** An AND or OR of comparisons, of which the second is made only if the first does not decide (compare_chain.ts). */
  CHAIN: FOLDING.OWN,
  /** The first comparison of a chain. */
  FIRST: FOLDING.OWN + 1,
  /** The second one, unless it is compared with zero as a value. */
  CHAINED: FOLDING.OWN + 2,
} as const;

/** A compare; `third` and `fourth` are the operands of a chain's second comparison. */
class ResolvedCompare {
  row = 0;
  imm = 0;
  disp = 0;
  cc = 0;
  first = 0;
  second = 0;
  third = 0;
  fourth = 0;
}

/** The second comparison of a chain. */
class ChainedCompare {
  row = 0;
  imm = 0;
  cc = 0;
  first = 0;
  second = 0;
}

/** Condition and width of a vector test. */
class VectorTest {
  cc = 0;
  wide = 0;
}

class ResolvedAddress {
  mode = 0;
  base = 0;
  disp = 0;
  trap = 0;
}

export abstract class Arm64Lowering extends LoweringContext {
  /** The compare that `resolveCondition` chose last. */
  readonly compare: ResolvedCompare = new ResolvedCompare();
  /** The second comparison of a chain. */
  readonly chained: ChainedCompare = new ChainedCompare();
  /** The vector test that `testedRegister` resolved last. */
  readonly tested: VectorTest = new VectorTest();
  /** The address that `resolveAddress` resolved last. */
  readonly address: ResolvedAddress = new ResolvedAddress();
  /** The lanes of the shuffle being matched, as bytes and as lanes of one width. */
  readonly shuffleBytes: Uint8Array = new Uint8Array(16);
  readonly shuffleLanes: Uint8Array = new Uint8Array(16);
  readonly hoister: ConstantHoister = new ConstantHoister();
  /** Whether single instructions do atomic read-modify-write (feature LSE). */
  lse = false;
  /** Keys three-op-sink, olddest-rhs-sink, uxtw-add. */
  threeOperands = true;
  overRight = true;
  foldsExtensions = true;
  /** For an address: the register of memory base + address, and the region of code for which it holds. */
  sumVreg: Int32Array = new Int32Array(0);
  sumRegion: Int32Array = new Int32Array(0);

  begin(f: IrFunction, v: VCode, options: CodegenOptions, code: MachineCode): void {
    this.beginFunction(f, v, options, code);
    this.lse = options.lse;
    this.threeOperands = options.threeOperands;
    this.overRight = options.overRight;
    this.foldsExtensions = options.foldsExtensions;
    if (this.sumVreg.length < this.uses.length) {
      this.sumVreg = new Int32Array(this.uses.length);
      this.sumRegion = new Int32Array(this.uses.length);
    } else this.sumRegion.fill(0, 0, f.count);
  }

  /** def(id) = row of one register; imm and disp are the fields i and s. */
  unary(row: number, id: number, x: number, imm = 0, disp = 0): void {
    this.plain(row, imm, disp, 0);
    this.def(id);
    this.use(x);
    this.end();
  }

  /** def(id) = row of two registers. */
  binary(row: number, id: number, x: number, y: number, imm = 0, disp = 0): void {
    this.plain(row, imm, disp, 0);
    if (TY_BANK[this.ty[id]] === 1) this.#integerOperands(id, x, y);
    else {
      this.def(id);
      this.use(x);
      this.use(y);
    }
    this.end();
  }

  /** Result and operands of integer arithmetic, constrained as the optimization keys require. */
  #integerOperands(id: number, x: number, y: number): void {
    if (this.threeOperands) {
      this.options.counts.threeOperands++;
      this.def(id);
    } else this.defReuse(id, 1);
    this.use(x);
    if (x === y) this.use(y);
    else if (this.overRight) {
      this.options.counts.overRight++;
      this.use(y);
    } else this.lateUse(y);
  }
}
