/**
 * The interface between the registry and a database: SQL in, rows out.
 *
 * In: statements of the subset that SQLite and PostgreSQL share, with `?` for each value. Out: rows as plain objects. A
 * write is a transaction: all of it happens or nothing. Everything else in store/ is written once against this
 * interface, and tests/registry/store_test.ts runs it on both.
 */

/** A value in a row or a parameter; integers are safe ones. */
export type SqlValue = string | number | null | Uint8Array;

/** One row. */
export interface Row {
  readonly [column: string]: SqlValue;
}

/** Statements, inside or outside of a transaction. */
export interface Queries {
  /** Rows of a query, or of a statement with RETURNING. */
  all(sql: string, ...values: readonly SqlValue[]): Promise<Row[]>;
  /** Runs a statement; the number of rows that it changed. */
  run(sql: string, ...values: readonly SqlValue[]): Promise<number>;
}

/** A database. */
export interface Database extends Queries {
  readonly dialect: "sqlite" | "postgres";
  /**
   * Runs work as one transaction. It may be run again if the database asks for it, so it must not have other effects.
   */
  write<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  /** Reads from one consistent state while others write. */
  snapshot<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** The transactions of a database. */
export type Writes = Pick<Database, "write">;

/** The database is temporarily unavailable; the request may be retried. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** The first row, if there is one. */
export async function first(queries: Queries, sql: string, ...values: readonly SqlValue[]): Promise<Row | undefined> {
  return (await queries.all(sql, ...values))[0];
}

/** A column that holds text. */
export function textOf(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== "string") throw new TypeError(`Column "${column}" holds no text`);
  return value;
}

/** A column that holds text or nothing. */
export function maybeText(row: Row, column: string): string | undefined {
  const value = row[column];
  return typeof value === "string" ? value : undefined;
}

/** A column that holds an integer. */
export function numberOf(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== "number") throw new TypeError(`Column "${column}" holds no number`);
  return value;
}

/** A column that holds an integer or nothing. */
export function maybeNumber(row: Row, column: string): number | undefined {
  const value = row[column];
  return typeof value === "number" ? value : undefined;
}

/** A column that holds bytes. */
export function bytesOf(row: Row, column: string): Uint8Array<ArrayBuffer> {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw new TypeError(`Column "${column}" holds no bytes`);
  // PostgreSQL's client returns a Buffer, whose methods differ from those of Uint8Array.
  return new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength);
}

/** A LIKE pattern, with `\` as escape, that matches strings containing `text`. */
export function containing(text: string): string {
  return `%${text.replace(/[\\%_]/g, (c) => `\\${c}`)}%`;
}
