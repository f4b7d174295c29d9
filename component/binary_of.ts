/** The binary form of a component. In: bytes or text. Out: bytes of its own. Invariant: loads no part of the engine. */
import { isComponent } from "./binary/section_ids.ts";
import { isComponentText } from "./text/is_component_text.ts";
import { componentToBinary } from "./text/parse_component.ts";

/**
 * The component in binary form. Throws MalformedError for bad text, and TypeError for a source that is neither bytes
 * nor text.
 */
export function binaryOf(source: Uint8Array | ArrayBuffer | string): Uint8Array {
  if (typeof source === "string") return componentToBinary(source);
  if (!(source instanceof Uint8Array) && !(source instanceof ArrayBuffer)) {
    throw new TypeError("A component is given as bytes or as text");
  }
  // A copy: its core modules are instantiated and optimized later, and the caller may change the buffer.
  const bytes = new Uint8Array(source);
  return !isComponent(bytes) && isComponentText(bytes) ? componentToBinary(bytes) : bytes;
}
