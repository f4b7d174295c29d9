/**
 * Components among the files that commands read. In: a file's content. Out: the binary form of a component, or
 * undefined for anything else.
 */
import { isComponent } from "../../../component/binary/section_ids.ts";
import { isComponentText } from "../../../component/text/is_component_text.ts";

/** The binary form of a component in either form; undefined if the content is not a component. */
export async function componentBytes(content: Uint8Array): Promise<Uint8Array | undefined> {
  if (isComponent(content)) return content;
  if (!isComponentText(content)) return undefined;
  // Loaded only for the text of components, since start-up pays for it.
  const { componentToBinary } = await import("../../../component/text/parse_component.ts");
  return componentToBinary(content);
}
