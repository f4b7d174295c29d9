/**
 * Copies of a tree. In: the root of a checkout. Out: a folder with its sources. Packaging writes beside the sources and
 * changes some (literal_imports.ts), while tests and other programs may run from the checkout.
 */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

/** Folders at the root that are not sources. */
const LEFT = [".git", ".cache", "node_modules", "dist"];

/** Copies the tree at `root`; returns the copy's path and a function that removes it. */
export function copyTree(root: string): { readonly tree: string; readonly remove: () => void } {
  const tree = mkdtempSync(join(tmpdir(), "waft-tree-"));
  const remove = () => rmSync(tree, { recursive: true, force: true });
  try {
    cpSync(root, tree, { recursive: true, filter: (path) => !LEFT.includes(relative(root, path)) });
  } catch (error) {
    remove();
    throw error;
  }
  return { tree, remove };
}

/** Runs `action` on a copy of the tree at `root`. */
export function onCopy<T>(root: string, action: (tree: string) => T): T {
  const { tree, remove } = copyTree(root);
  try {
    return action(tree);
  } finally {
    remove();
  }
}
