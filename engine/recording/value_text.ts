/**
 * Values of recordings as text, for listings and messages. In: any value. Out: text of bounded length, in time that is
 * linear in the value's size.
 */

/** The greatest length of a text, in UTF-16 code units. */
const MOST_TEXT = 1000;
/** The largest bigint that is printed in full, in bits: printing takes more than linear time. */
const MOST_SHOWN_BITS = 1024;

/** The beginning of a text, with lone surrogates replaced. */
export function shortText(text: unknown): string {
  return String(text).slice(0, MOST_TEXT).toWellFormed();
}

/** A short text for a value. */
export function valueText(value: unknown): string {
  if (typeof value === "bigint") {
    const isShown = BigInt.asIntN(MOST_SHOWN_BITS, value) === value;
    return isShown ? String(value) : `a number of more than ${MOST_SHOWN_BITS} bits`;
  }
  if (typeof value !== "string") return String(value);
  return value.length <= MOST_TEXT ? JSON.stringify(value) : `${JSON.stringify(shortText(value))}…`;
}

/** The number of items that the text of a list shows. */
const MOST_LISTED = 16;

/** The text of a list: its first items, and the number of the others. `textOf` is called for shown items only. */
export function listText<Item>(items: readonly Item[], textOf: (item: Item) => string): string {
  const texts = items.slice(0, MOST_LISTED).map(textOf);
  const left = items.length - texts.length;
  return `${texts.join(", ")}${left > 0 ? `, and ${left} more` : ""}`;
}
