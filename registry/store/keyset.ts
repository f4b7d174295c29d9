/**
 * Keyset pages: a page starts after the sort values of the last row of the page before.
 *
 * In: an order, whose last columns make every row distinct, and those values. Out: SQL for WHERE and ORDER BY. Rows
 * that are inserted between two pages neither repeat nor hide others.
 */
import type { Row, SqlValue } from "./database.ts";

/** The columns by which rows are sorted; a leading minus means descending. */
export type Order = readonly string[];

/** The order as SQL. */
export function orderText(order: Order): string {
  return order.map((c) => c.startsWith("-") ? `${c.slice(1)} DESC` : c).join(", ");
}

/** The sort values of a row. */
export function sortValues(order: Order, row: Row): (string | number)[] {
  return order.map((c) => row[c.replace(/^-/, "")] as string | number);
}

/** The condition that selects the rows after a page; empty for the first page. */
export function keysetOf(
  order: Order,
  after: readonly (string | number)[] | undefined,
): { text: string; values: SqlValue[] } {
  if (after === undefined) return { text: "", values: [] };
  const values: SqlValue[] = [];
  const step = (i: number): string => {
    const column = order[i].replace(/^-/, "");
    const beyond = `${column} ${order[i].startsWith("-") ? "<" : ">"} ?`;
    values.push(after[i]);
    if (i === order.length - 1) return beyond;
    values.push(after[i]);
    return `(${beyond} OR (${column} = ? AND ${step(i + 1)}))`;
  };
  // By the bound of the first column alone a database finds the place in an index; by the alternatives it does not.
  const [column] = order;
  const bound = column.startsWith("-") ? `${column.slice(1)} <= ?` : `${column} >= ?`;
  const beyond = step(0);
  return { text: `WHERE ${bound} AND ${beyond}`, values: [after[0], ...values] };
}
