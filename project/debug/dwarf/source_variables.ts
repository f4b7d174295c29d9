/**
 * The variables of the source at an instruction. In: the debugging sections of a module, and frames. Out: parameters
 * and variables of the function and of the blocks around the instruction, innermost first, and the unit's static
 * variables.
 */
import type { CustomSection } from "@waft/engine/internal/wasm/module";
import type { Variable } from "../variable.ts";
import { AT, TAG } from "./constants.ts";
import { type Entry, readUnits, type Unit } from "./entries.ts";
import { type FrameAccess, locate } from "./locations.ts";
import { covers } from "./ranges.ts";
import { type MemoryOf, nameOf, TypedValues } from "./typed_values.ts";

/** The entries inside of a function that may declare variables. */
const BLOCKS: ReadonlySet<number> = new Set([TAG.LEXICAL_BLOCK, TAG.INLINED_SUBROUTINE]);
const VARIABLES: ReadonlySet<number> = new Set([TAG.VARIABLE, TAG.FORMAL_PARAMETER]);

/** The most variables of a frame, or of a unit, that are shown. */
const MAX_VARIABLES = 10_000;

/** A function at an instruction, and the unit that has it. */
interface Found {
  readonly unit: Unit;
  readonly func: Entry;
}

/** The source variables of one module. */
export class SourceVariables {
  readonly #units: readonly Unit[];

  private constructor(units: readonly Unit[]) {
    this.#units = units;
  }

  /** Reads the sections; undefined if the module has none that can be read. */
  static of(customs: readonly CustomSection[]): SourceVariables | undefined {
    const units = readUnits(new Map(customs.map(({ name, bytes }) => [name, bytes])));
    return units.length === 0 ? undefined : new SourceVariables(units);
  }

  /** The variables that are visible in a frame, or undefined if the function is unknown. */
  locals(frame: FrameAccess, memory: MemoryOf): Variable[] | undefined {
    const found = this.#functionAt(frame.pc);
    if (found === undefined) return undefined;
    const { unit, func } = found;
    const values = new TypedValues(this.#units, memory);
    const variables: Variable[] = [];
    const names = new Set<string>();
    for (const block of blocksAt(unit, func, frame.pc)) {
      for (const entry of block.children.filter(({ tag }) => VARIABLES.has(tag))) {
        if (variables.length === MAX_VARIABLES) return variables;
        const variable = this.#variable(unit, entry, func, frame, values);
        // A variable hides those of the same name in outer blocks.
        if (variable === undefined || names.has(variable.name)) continue;
        names.add(variable.name);
        variables.push(variable);
      }
    }
    return variables;
  }

  /** The static variables of the unit that a frame's function is in. */
  statics(frame: FrameAccess, memory: MemoryOf): Variable[] {
    const found = this.#functionAt(frame.pc);
    if (found === undefined) return [];
    const values = new TypedValues(this.#units, memory);
    return staticEntries(found.unit.tree).slice(0, MAX_VARIABLES).flatMap((entry) =>
      this.#variable(found.unit, entry, undefined, frame, values) ?? []
    );
  }

  /** Begins the evaluation of a frame: resets the limit of steps, and finds its function. */
  #functionAt(pc: number): Found | undefined {
    this.#units[0]?.limits.beginSteps();
    for (const unit of this.#units) {
      const { attributes } = unit.root;
      const hasBounds = attributes.has(AT.RANGES) || attributes.has(AT.HIGH_PC);
      if (hasBounds && !covers(unit, unit.root, pc)) continue;
      const func = functionIn(unit, unit.tree, pc);
      if (func !== undefined) return { unit, func };
    }
    return undefined;
  }

  #variable(
    unit: Unit,
    entry: Entry,
    owner: Entry | undefined,
    frame: FrameAccess,
    values: TypedValues,
  ): Variable | undefined {
    // The parts of an inlined or separately declared variable are with its origin.
    const origin = values.referred(unit, entry, AT.ABSTRACT_ORIGIN) ?? values.referred(unit, entry, AT.SPECIFICATION);
    const name = nameOf(entry) ?? nameOf(origin);
    if (name === undefined) return undefined;
    const type = values.referred(unit, entry, AT.TYPE) ?? values.referred(unit, origin, AT.TYPE);
    const constant = entry.attributes.get(AT.CONST_VALUE);
    if (typeof constant === "number" || typeof constant === "bigint") {
      return values.variable(name, { unit, type, bits: BigInt(constant) });
    }
    const location = locate(unit, entry, owner, frame);
    if (location === undefined) return { name, type: values.typeName(unit, type), text: "(optimized out)" };
    if (location.kind === "address") return values.variable(name, { unit, type, address: location.address });
    const { value, set } = location;
    return values.variable(name, { unit, type, bits: value, ...(set === undefined ? {} : { set }) });
  }
}

function functionIn(unit: Unit, entry: Entry, pc: number): Entry | undefined {
  for (const child of entry.children) {
    if (child.tag === TAG.SUBPROGRAM && covers(unit, child, pc)) return child;
    if (child.tag !== TAG.NAMESPACE && child.tag !== TAG.STRUCTURE_TYPE && child.tag !== TAG.CLASS_TYPE) continue;
    const found = functionIn(unit, child, pc);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The blocks around an address, innermost first, the function last. */
function blocksAt(unit: Unit, entry: Entry, pc: number): Entry[] {
  const inner = entry.children.find((child) => BLOCKS.has(child.tag) && covers(unit, child, pc));
  return [...(inner === undefined ? [] : blocksAt(unit, inner, pc)), entry];
}

/** The variables of a unit that are outside of functions. */
function staticEntries(entry: Entry): Entry[] {
  return entry.children.flatMap((child) =>
    child.tag === TAG.VARIABLE ? [child] : child.tag === TAG.NAMESPACE ? staticEntries(child) : []
  );
}
