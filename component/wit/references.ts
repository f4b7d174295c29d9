/**
 * The packages that a package of WIT refers to. In: its syntax. Out: names, before any of them is resolved.
 */
import type {
  ExternItem,
  IncludeItem,
  InterfaceItem,
  PackageName,
  PackageSyntax,
  TypeItem,
  UseItem,
} from "./syntax.ts";

/** The packages in the paths of a package, each as often as it occurs. */
export function referencedPackages({ items }: PackageSyntax): PackageName[] {
  return items.flatMap((item) => item.kind === "use" ? ofPath(item) : item.items.flatMap(ofItem));
}

function ofItem(item: InterfaceItem | ExternItem | TypeItem | UseItem | IncludeItem): PackageName[] {
  if (item.kind === "use" || item.kind === "include") return ofPath(item);
  if (item.kind !== "import" && item.kind !== "export") return [];
  if (item.type.kind === "path") return ofPath(item.type);
  return item.type.kind === "inline" ? item.type.items.flatMap(ofItem) : [];
}

function ofPath({ path }: Pick<UseItem, "path">): PackageName[] {
  return path.package === undefined ? [] : [path.package];
}
