/**
 * Text of generated components → binary. In: text, whose first core modules or components are placeholders, and their
 * contents. Out: the binary form. Invariant: the result is valid; a component that is not names its fault.
 */
import { InvalidError } from "@waft/engine/internal/errors";
import { decodeComponent } from "../binary/decode.ts";
import { encodeComponent } from "../binary/encode.ts";
import type { Definition } from "../model/definitions.ts";
import { componentToBinary } from "../text/parse_component.ts";
import { validateComponent } from "../validate/validate_component.ts";

/** The contents of placeholders, in order. */
interface Contents {
  readonly modules?: readonly Uint8Array[];
  readonly components?: readonly Uint8Array[];
}

/** Translates `text`. Throws InvalidError if the component is not valid. */
export function translated(text: string, { modules = [], components = [] }: Contents): Uint8Array {
  const { definitions, customs } = decodeComponent(componentToBinary(text));
  const [moduleContents, componentContents] = [modules.values(), components.values()];
  const filled = definitions.map((definition): Definition => {
    if (definition.kind === "core module") {
      const { value } = moduleContents.next();
      return value === undefined ? definition : { ...definition, bytes: value };
    }
    if (definition.kind === "component") {
      const { value } = componentContents.next();
      return value === undefined ? definition : { ...definition, component: decodeComponent(value) };
    }
    return definition;
  });
  const bytes = encodeComponent({ definitions: filled, customs });
  try {
    validateComponent(decodeComponent(bytes));
  } catch (error) {
    if (!(error instanceof InvalidError)) throw error;
    throw new InvalidError(`the parts do not form a valid component: ${error.message}`);
  }
  return bytes;
}
