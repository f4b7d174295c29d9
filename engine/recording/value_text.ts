/**
 * Values of recordings as text, for listings and messages. In: any value. Out: text of bounded length, in time that is
 * linear in the value's size.
 */

/** The greatest length of a text, in UTF-16 code units. */
const MAX_TEXT = 1000;
/** The largest bigint that is printed in full, in bits: printing takes more than linear time. */
const MAX_SHOWN_BITS = 1024;

/** The beginning of a text, with lone surrogates replaced. */
export function shortText(text: unknown): string {
  return String(text).slice(0, MAX_TEXT).toWellFormed();
}

/** A short text for a value. */
export function valueText(value: unknown): string {
  if (typeof value === "bigint") {
    const isShown = BigInt.asIntN(MAX_SHOWN_BITS, value) === value;
    return isShown ? String(value) : `a number of more than ${MAX_SHOWN_BITS} bits`;
  }
  if (typeof value !== "string") return String(value);
  return value.length <= MAX_TEXT ? JSON.stringify(value) : `${JSON.stringify(shortText(value))}…`;
}

/** The number of items that the text of a list shows. */
const MAX_LISTED = 16;

/** The text of a list: its first items, and the number of the others. `textOf` is called for shown items only. */
export function listText<Item>(items: readonly Item[], textOf: (item: Item) => string): string {
  const texts = items.slice(0, MAX_LISTED).map(textOf);
  const left = items.length - texts.length;
  return `${texts.join(", ")}${left > 0 ? `, and ${left} more` : ""}`;
}
