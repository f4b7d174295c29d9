/**
 * Layout of commander's help: columns in narrow terminals too, descriptions below their terms when no column fits, and
 * no empty defaults for repeatable options.
 */
import { Help, type HelpConfiguration } from "commander";

/** Columns of a description beside its term, at least. */
const LEAST = 24;
const INDENT = 6;
const plain = new Help();

/** Options of `configureHelp`. */
export const HELP_LAYOUT: HelpConfiguration = {
  minWidthToWrap: LEAST / 2,
  optionDescription: (option) =>
    Array.isArray(option.defaultValue) ? option.description : plain.optionDescription(option),
  formatItem(term, termWidth, description, helper) {
    const width = helper.helpWidth ?? 80;
    if (description === "" || width - termWidth - 4 >= LEAST) {
      return Help.prototype.formatItem.call(helper, term, termWidth, description, helper);
    }
    const lines = helper.boxWrap(description, width - INDENT).split("\n");
    return [`  ${term}`, ...lines.map((line) => " ".repeat(INDENT) + line)].join("\n");
  },
};
