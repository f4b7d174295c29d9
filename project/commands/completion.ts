/**
 * `waft completion <shell>`: prints a script that completes commands, options and files in bash, zsh, fish or
 * PowerShell.
 */
import { writeText } from "@waft/engine/internal/host/process";
import type { Command } from "commander";
import { UsageError } from "../base/failure.ts";
import { type CommandNode, commandTree } from "./command_tree.ts";
import type { CommandRow } from "./command_row.ts";

/** The words that can follow a command. */
interface Place {
  /** The words before, without `waft`: `""`, `"run"`, `"plugin list"`. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: CommandNode["options"];
}

const SHELLS: { readonly [shell: string]: (places: readonly Place[]) => string } = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
  powershell: powershellScript,
};

/** Adds `completion`. */
export function addCommand(program: Command, rows: readonly CommandRow[] = []): void {
  program.command("completion")
    .description("Print a script that completes waft's commands and options.")
    .argument("<shell>", "bash, zsh, fish or powershell")
    .addHelpText("after", HELP)
    .action(async (shell: string) => {
      const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
      if (script === undefined) {
        throw new UsageError(`there are completions for ${Object.keys(SHELLS).join(", ")}, not "${shell}"`);
      }
      writeText(1, script(placesOf(await commandTree(rows))));
    });
}

const HELP = `
Installation:
  bash        waft completion bash > ~/.local/share/bash-completion/completions/waft
  zsh         waft completion zsh > a directory of $fpath, as _waft
  fish        waft completion fish > ~/.config/fish/completions/waft.fish
  powershell  waft completion powershell >> $PROFILE`;

function placesOf(nodes: readonly CommandNode[]): Place[] {
  const places: Place[] = [{
    path: "",
    commands: [...nodes, { name: "help", summary: "Show help for a command" }],
    options: [
      { words: ["-v", "--version"], description: "Print the version" },
      { words: ["-h", "--help"], description: "Show this help" },
    ],
  }];
  const walk = (node: CommandNode, before: string): void => {
    const path = before === "" ? node.name : `${before} ${node.name}`;
    places.push({ path, commands: node.children, options: node.options });
    for (const child of node.children) walk(child, path);
  };
  for (const node of nodes) walk(node, "");
  return places;
}

/** Options that take a value, so that the word after them is not a command. */
function valued({ options }: Place): string[] {
  return options.filter(({ value }) => value !== undefined).flatMap(({ words }) => words);
}

function single(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function bashScript(places: readonly Place[]): string {
  const cases = (of: (place: Place) => string[]): string =>
    places.map((place) => `    ${single(place.path)}) echo ${single(of(place).join(" "))} ;;`).join("\n");
  return `# Completions of waft for bash.
_waft_words() {
  case "$1" in
${cases(({ commands, options }) => [...commands.map((c) => c.name), ...options.flatMap(({ words }) => words)])}
  esac
}
_waft_commands() {
  case "$1" in
${cases(({ commands }) => commands.map((c) => c.name))}
  esac
}
_waft_valued() {
  case "$1" in
${cases(valued)}
  esac
}
_waft() {
  local path= word i skip= current="\${COMP_WORDS[COMP_CWORD]}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if [ -n "$skip" ]; then skip=; continue; fi
    case " $(_waft_valued "$path") " in *" $word "*) skip=1; continue ;; esac
    case " $(_waft_commands "$path") " in *" $word "*) path="\${path:+$path }$word" ;; esac
  done
  COMPREPLY=()
  if [ -z "$skip" ]; then COMPREPLY=($(compgen -W "$(_waft_words "$path")" -- "$current")); fi
  case "$current" in -*) ;; *) COMPREPLY+=($(compgen -f -- "$current")) ;; esac
}
complete -o filenames -F _waft waft
`;
}

function zshScript(places: readonly Place[]): string {
  const described = (word: string, text: string): string =>
    single(`${word.replaceAll(":", "\\:")}:${text.replaceAll("\n", " ")}`);
  const cases = places.map(({ path, commands, options }) => {
    const words = [
      ...commands.map((c) => described(c.name, c.summary)),
      ...options.flatMap(({ words, description }) => words.map((word) => described(word, description))),
    ];
    return `    ${single(path)}) words_here=(${words.join(" ")}) ;;`;
  });
  const valuedCases = places.map((place) => `      ${single(place.path)}) takes=${single(valued(place).join(" "))} ;;`);
  const commandCases = places.map(({ path, commands }) =>
    `      ${single(path)}) below=${single(commands.map((c) => c.name).join(" "))} ;;`
  );
  return `#compdef waft
# Completions of waft for zsh.
_waft() {
  local where='' word takes below skip='' i
  local -a words_here
  for ((i = 2; i < CURRENT; i++)); do
    word="$words[i]"
    if [[ -n "$skip" ]]; then skip=''; continue; fi
    takes=''; below=''
    case "$where" in
${valuedCases.join("\n")}
    esac
    case "$where" in
${commandCases.join("\n")}
    esac
    if [[ " $takes " == *" $word "* ]]; then skip=1; continue; fi
    if [[ " $below " == *" $word "* ]]; then where="\${where:+$where }$word"; fi
  done
  if [[ -n "$skip" ]]; then _files; return; fi
  case "$where" in
${cases.join("\n")}
  esac
  _describe -t commands 'waft' words_here
  [[ "$PREFIX" == -* ]] || _files
}
if [[ "$funcstack[1]" == _waft ]]; then _waft "$@"; else compdef _waft waft; fi
`;
}

function fishScript(places: readonly Place[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = ["# Completions of waft for fish.", "function __waft_at", "  set -l path", "  set -l skip 0"];
  lines.push("  for word in (commandline -opc)[2..-1]");
  lines.push("    if test $skip = 1; set skip 0; continue; end");
  lines.push('    switch "$path"');
  for (const place of places) {
    lines.push(`      case ${quoted(place.path)}`);
    if (valued(place).length > 0) lines.push(`        contains -- $word ${valued(place).join(" ")}; and set skip 1`);
    const below = place.commands.map((c) => c.name);
    if (below.length > 0) {
      lines.push(`        contains -- $word ${below.join(" ")}; and set path (string trim \"$path $word\")`);
    }
  }
  lines.push("    end", "  end", '  test "$path" = "$argv[1]"', "end");
  for (const { path, commands, options } of places) {
    const at = `-n "__waft_at ${quoted(path)}"`;
    for (const c of commands) lines.push(`complete -c waft ${at} -a ${c.name} -d ${quoted(c.summary)}`);
    for (const { words, value, description } of options) {
      const names = words.map((word) => word.startsWith("--") ? `-l ${word.slice(2)}` : `-s ${word.slice(1)}`).join(
        " ",
      );
      lines.push(`complete -c waft ${at} ${names}${value === undefined ? "" : " -r"} -d ${quoted(description)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function powershellScript(places: readonly Place[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
  const rows = places.map((place) => {
    const words = [
      ...place.commands.map((c) => [c.name, c.summary] as const),
      ...place.options.flatMap(({ words, description }) => words.map((word) => [word, description] as const)),
    ];
    const list = words.map(([word, text]) => `@(${quoted(word)}, ${quoted(text === "" ? word : text)})`).join(", ");
    const below = place.commands.map((c) => quoted(c.name)).join(", ");
    const takes = valued(place).map(quoted).join(", ");
    return `  ${quoted(place.path)} = @{ words = @(${list}); below = @(${below}); takes = @(${takes}) }`;
  });
  return `# Completions of waft for PowerShell.
$WaftPlaces = @{
${rows.join("\n")}
}
Register-ArgumentCompleter -Native -CommandName waft -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $path = ''
  $skip = $false
  foreach ($element in @($commandAst.CommandElements | Select-Object -Skip 1)) {
    if ($element.Extent.EndOffset -ge $cursorPosition) { break }
    $word = $element.ToString()
    if ($skip) { $skip = $false; continue }
    if ($WaftPlaces[$path].takes -contains $word) { $skip = $true; continue }
    if ($WaftPlaces[$path].below -contains $word) { $path = "$path $word".Trim() }
  }
  if ($skip) { return }
  $WaftPlaces[$path].words | Where-Object { $_[0] -like "$wordToComplete*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])
  }
}
`;
}
