/**
 * A picture of a terminal. In: lines of text; those that begin with a prompt are input. Out: an SVG file as text,
 * without embedded styles or fonts. Invariant: every line is in the picture, cut at its right edge.
 */
const COLUMNS = 88;
const COLUMN = 8.43;
const ROW = 20;
const MARGIN = 16;
const BACKGROUND = "#1d1f27";
const OUTPUT = "#d7dae0";
const INPUT = "#8fd6a4";

/** The SVG picture of `lines`; lines that begin with one of `prompts` have the color of input. */
export function terminalPicture(lines: readonly string[], prompts: readonly string[]): string {
  const width = Math.ceil(COLUMNS * COLUMN) + 2 * MARGIN;
  const height = lines.length * ROW + 2 * MARGIN;
  const rows = lines.map((line, k) => {
    const color = prompts.some((prompt) => line.startsWith(prompt)) ? INPUT : OUTPUT;
    return `<text x="${MARGIN}" y="${MARGIN + k * ROW + 15}" fill="${color}" xml:space="preserve">${
      escaped(cut(line))
    }</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"` +
    ` font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">`,
    `<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>`,
    ...rows,
    "</svg>",
    "",
  ].join("\n");
}

function cut(line: string): string {
  return line.length <= COLUMNS ? line : `${line.slice(0, COLUMNS - 1)}…`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
