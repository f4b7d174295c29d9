/**
 * Values of recordings as text, for listings and messages. In: any value. Out: text of bounded length, in time that is
 * linear in the value's size.
 */

/** The greatest length of a text, in UTF-16 code units. */
const MOST_TEXT = 1000;
/** The greatest bigint that is shown in full; the digits of larger ones take time that grows faster than they do. */
const MOST_SHOWN_BITS = 1024;

/** The well-formed beginning of a text. */
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

/** The values of a list that its text has. */
const MOST_LISTED = 16;

/** A list of texts, of which only the first ones are made. */
export function listText<Item>(items: readonly Item[], textOf: (item: Item) => string): string {
  const texts = items.slice(0, MOST_LISTED).map(textOf);
  const left = items.length - texts.length;
  return `${texts.join(", ")}${left > 0 ? `, and ${left} more` : ""}`;
}
