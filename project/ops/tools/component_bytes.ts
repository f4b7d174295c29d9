/**
 * Components among the files that commands read. In: a file's content. Out: the binary form of a component, or
 * undefined for anything else.
 */
import { isComponent } from "@waft/component/internal/binary/section_ids";
import { isComponentText } from "@waft/component/internal/text/is_component_text";

/** The binary form of a component in either form; undefined if the content is not a component. */
export async function componentBytes(content: Uint8Array): Promise<Uint8Array | undefined> {
  if (isComponent(content)) return content;
  if (!isComponentText(content)) return undefined;
  // Loaded only for the text of components, since start-up pays for it.
  const { componentToBinary } = await import("@waft/component/internal/text/parse_component");
  return componentToBinary(content);
}
