/**
 * The layer that lifts and lowers: generated code, or closures where the host forbids code from text. Everything else
 * uses it through {@linkcode ABI}, so that another ABI replaces it here.
 */
import { type AbiLayer, GENERATED } from "./generated.ts";
import { INTERPRETED } from "./interpreted.ts";

/** Whether the host allows code from text. */
function allowsSource(): boolean {
  try {
    new Function("");
    return true;
  } catch (error) {
    if (error instanceof EvalError) return false;
    throw error;
  }
}

/** The layer that lifts and lowers. */
export const ABI: AbiLayer = allowsSource() ? GENERATED : INTERPRETED;
