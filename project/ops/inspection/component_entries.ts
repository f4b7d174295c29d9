/**
 * The definitions in the sections of a component as lines. In: a component that may be damaged. Out: for each section
 * the text of its definitions, numbered by their index spaces.
 */
import type { ComponentPrefix } from "@waft/component/internal/binary/decode";
import { definitionTexts } from "@waft/component/internal/text/print_component";
import type { Frame } from "./section_frames.ts";

/** Returns the function that lists the definitions of a section. */
export function componentEntries(prefix: ComponentPrefix): (section: Frame) => string[] {
  let texts: string[] | undefined;
  return ({ offset, bytes }) => {
    texts ??= definitionTexts(prefix);
    const { definitions } = prefix;
    const lines: string[] = [];
    // Definitions are in the order of the file.
    for (let k = firstFrom(definitions, offset); k < definitions.length; k++) {
      if (definitions[k].offset >= offset + bytes) break;
      lines.push(...texts[k].split("\n").map((line, n) => n === 0 ? ` - ${line}` : `   ${line}`));
    }
    return lines;
  };
}

/** The index of the first definition at `offset` or after it. */
function firstFrom(definitions: ComponentPrefix["definitions"], offset: number): number {
  let [low, high] = [0, definitions.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (definitions[middle].offset < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
