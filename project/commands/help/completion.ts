/**
 * `waft completion <shell>`: prints a script that completes commands, options, their values and files in bash, zsh,
 * fish or PowerShell. The scripts ask `waft completion exports -- WORDS…` for the functions that `--invoke` can call.
 */
import { environmentVariable, writeText } from "@waft/engine/internal/host/process";
import type { Command } from "commander";
import { UsageError } from "../../base/failure.ts";
import { type CommandNode, commandTree } from "../command_tree.ts";
import type { CommandRow } from "../command_row.ts";
import { argumentValues, optionValues, type ValueKind } from "./completion_values.ts";

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
    .usage("<shell>")
    .argument("[shell]", "bash, zsh, fish or powershell; with --install, the shell of $SHELL by default")
    .argument("[words...]")
    .option("--install", "Write the script to the place where the shell looks for completions of this user")
    .addHelpText("after", HELP)
    .action(async (given: string | undefined, words: string[], flags: { install?: boolean }) => {
      const shell = given ?? (flags.install === true ? loginShell() : undefined);
      if (shell === undefined) throw new UsageError("missing required argument 'shell'");
      if (shell === "exports") {
        const { exportedNames } = await import("../../ops/tools/exported_names.ts");
        // Other names cannot be one word of a shell without quotes.
        const names = (await exportedNames(words)).filter((name) => /^[\w.:/#@~+-]+$/.test(name));
        return writeText(1, names.map((name) => `${name}\n`).join(""));
      }
      if (words.length > 0) throw new UsageError(`completion takes a shell alone, not "${words[0]}"`);
      const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
      if (script === undefined) {
        throw new UsageError(`there are completions for ${Object.keys(SHELLS).join(", ")}, not "${shell}"`);
      }
      if (flags.install === true && shell === "powershell") {
        throw new UsageError("PowerShell has no place for completions: waft completion powershell >> $PROFILE");
      }
      const text = script(placesOf(await commandTree(rows)));
      if (flags.install !== true) return writeText(1, text);
      const { installCompletion } = await import("../../ops/tools/install_completion.ts");
      writeText(2, `${(await installCompletion(shell, text)).join("\n")}\n`);
    });
}

/** The name of the user's shell; undefined where the system does not say it. */
function loginShell(): string | undefined {
  const path = environmentVariable("SHELL") ?? "";
  return path === "" ? undefined : path.slice(path.lastIndexOf("/") + 1);
}

const HELP = `
Installation:
  bash, zsh, fish  waft completion --install
  powershell       waft completion powershell >> $PROFILE`;

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

/** The values of each option of a place, by all its words. */
function valuesOf({ path, options }: Place): { readonly words: readonly string[]; readonly values: ValueKind }[] {
  return options.filter(({ value }) => value !== undefined).map(({ words }) => {
    return { words, values: optionValues(path, words[words.length - 1]) };
  });
}

/** The values of all places in the words of the scripts: options as `run --tier`, first arguments as `run`. */
function valueWords(places: readonly Place[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const add = (subject: string, values: ValueKind): void => {
    const spec = specOf(values);
    found.set(spec, [...found.get(spec) ?? [], subject]);
  };
  for (const place of places) {
    for (const { words, values } of valuesOf(place)) for (const word of words) add(`${place.path} ${word}`, values);
    const first = argumentValues(place.path);
    if (first !== undefined) add(place.path, first);
  }
  return found;
}

/** Values as the scripts for bash and zsh read them: a kind, and its words or endings. */
function specOf(values: ValueKind): string {
  switch (values.kind) {
    case "words":
      return `words ${values.words.join(" ")}`;
    case "files":
      return `files ${values.endings.join(" ")}`.trim();
    default:
      return values.kind;
  }
}

function single(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The cases of a shell's `case` that choose the values of an option or argument. */
function valueCases(places: readonly Place[], indent: string, assign: (spec: string) => string): string {
  return [...valueWords(places)].map(([spec, subjects]) => {
    return `${indent}${subjects.map(single).join("|")}) ${assign(single(spec))} ;;`;
  }).join("\n");
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
_waft_values() {
  case "$1" in
${valueCases(places, "    ", (spec) => `echo ${spec}`)}
  esac
}
# Adds the files that begin with $1, and whose names end in one of the other words; all if none does.
_waft_files() {
  local current="$1" file ending found=; shift
  local -a all=()
  while IFS= read -r file; do
    all+=("$file")
    [ -d "$file" ] && { COMPREPLY+=("$file"); continue; }
    for ending in "$@"; do
      case "$file" in *".$ending") COMPREPLY+=("$file"); found=1 ;; esac
    done
  done < <(compgen -f -- "$current")
  [ -n "$found" ] || COMPREPLY+=("\${all[@]}")
}
# Adds the values of the option or argument $1 that begin with $2.
_waft_complete_values() {
  local -a spec
  read -r -a spec <<< "$(_waft_values "$1")"
  case "\${spec[0]}" in
    words) COMPREPLY+=($(compgen -W "\${spec[*]:1}" -- "$2")) ;;
    files) _waft_files "$2" "\${spec[@]:1}" ;;
    directories) COMPREPLY+=($(compgen -d -- "$2")) ;;
    exports) COMPREPLY+=($(compgen -W "$(waft completion exports -- "\${COMP_WORDS[@]:1}" 2>/dev/null)" -- "$2")) ;;
    *) return 1 ;;
  esac
}
_waft() {
  local path= word i skip= last= value= operands=0 current="\${COMP_WORDS[COMP_CWORD]}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    # bash makes a word of its own of an equals sign: --tier=auto is three words, and so is --feature simd=on
    if [ "$word" = = ]; then
      if [ -n "$last" ]; then skip="$last"; value="$value="; fi
      continue
    fi
    if [ -n "$skip" ]; then last="$skip"; skip=; value="$value$word"; continue; fi
    last= value=
    case " $(_waft_valued "$path") " in *" $word "*) skip="$word"; continue ;; esac
    case " $(_waft_commands "$path") " in *" $word "*) path="\${path:+$path }$word"; continue ;; esac
    case "$word" in -*) ;; *) operands=$((operands + 1)) ;; esac
  done
  if [ "$current" = = ]; then
    current=
    if [ -n "$last" ]; then skip="$last"; value="$value="; fi
  fi
  COMPREPLY=()
  if [ -n "$skip" ]; then
    _waft_complete_values "$path $skip" "$value$current"
    COMPREPLY=("\${COMPREPLY[@]#"$value"}")
    return 0
  fi
  COMPREPLY=($(compgen -W "$(_waft_words "$path")" -- "$current"))
  case "$current" in -*) return 0 ;; esac
  if [ "$operands" != 0 ] || ! _waft_complete_values "$path" "$current"; then
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
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
# Adds the values of the option or argument $1.
_waft_values() {
  local spec=''
  case "$1" in
${valueCases(places, "    ", (spec) => `spec=${spec}`)}
  esac
  case "$spec" in
    words*) compadd -- \${=spec#words} ;;
    'files '*) _files -g "*.(|\${\${spec#files }// /|})" || _files ;;
    files) _files ;;
    directories) _files -/ ;;
    exports) compadd -- \${(f)"$(waft completion exports -- "\${(@)words[2,-1]}" 2>/dev/null)"} ;;
    *) return 1 ;;
  esac
}
_waft() {
  local where='' word takes below skip='' i operands=0
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
    if [[ " $takes " == *" $word "* ]]; then skip="$word"; continue; fi
    if [[ " $below " == *" $word "* ]]; then where="\${where:+$where }$word"; continue; fi
    if [[ "$word" != -* ]]; then operands=$((operands + 1)); fi
  done
  if [[ -n "$skip" ]]; then _waft_values "$where $skip"; return 0; fi
  case "$where" in
${cases.join("\n")}
  esac
  _describe -t commands 'waft' words_here
  [[ "$PREFIX" == -* ]] && return
  if ((operands > 0)) || ! _waft_values "$where"; then _files; fi
}
if [[ "$funcstack[1]" == _waft ]]; then _waft "$@"; else compdef _waft waft; fi
`;
}

/** The flags of fish's `complete` for values. */
function fishValues(values: ValueKind): string {
  switch (values.kind) {
    case "words":
      return ` -x -a '${values.words.join(" ")}'`;
    case "files":
      return ` -r -F${fishFiles(values.endings)}`;
    case "directories":
      return " -x -a '(__fish_complete_directories)'";
    case "exports":
      return " -x -a '(waft completion exports -- (commandline -op)[2..-1] 2>/dev/null)'";
    case "nothing":
      return " -x";
  }
}

/** Files with these endings, which fish shows before others. */
function fishFiles(endings: readonly string[]): string {
  return endings.length === 0
    ? ""
    : ` -k -a '${endings.map((ending) => `(__fish_complete_suffix .${ending})`).join(" ")}'`;
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
    const first = argumentValues(path);
    if (first?.kind === "files") lines.push(`complete -c waft ${at}${fishFiles(first.endings)}`);
    if (first?.kind === "words") lines.push(`complete -c waft ${at}${fishValues(first)}`);
    for (const c of commands) lines.push(`complete -c waft ${at} -a ${c.name} -d ${quoted(c.summary)}`);
    for (const { words, value, description } of options) {
      const names = words.map((word) => word.startsWith("--") ? `-l ${word.slice(2)}` : `-s ${word.slice(1)}`).join(
        " ",
      );
      lines.push(
        `complete -c waft ${at} ${names}${
          value === undefined ? "" : fishValues(optionValues(path, words[words.length - 1]))
        } -d ${quoted(description)}`,
      );
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
  const values = [...valueWords(places)].flatMap(([spec, subjects]) => {
    return subjects.map((subject) => `  ${quoted(subject)} = @(${spec.split(" ").map(quoted).join(", ")})`);
  });
  return `# Completions of waft for PowerShell.
$WaftPlaces = @{
${rows.join("\n")}
}
$WaftValues = @{
${values.join("\n")}
}
function Get-WaftValues($subject, $wordToComplete, $allWords) {
  $spec = $WaftValues[$subject]
  if ($null -eq $spec) { return }
  $rest = @($spec | Select-Object -Skip 1)
  if ($spec[0] -eq 'words') { $rest | Where-Object { $_ -like "$wordToComplete*" } }
  if ($spec[0] -eq 'exports') {
    waft completion exports '--' $allWords 2>$null | Where-Object { $_ -like "$wordToComplete*" }
  }
  if ($spec[0] -eq 'files' -and $rest.Count -eq 0) { return }
  if ($spec[0] -eq 'files' -or $spec[0] -eq 'directories') {
    Get-ChildItem -Path "$wordToComplete*" -ErrorAction SilentlyContinue | Where-Object {
      $_.PSIsContainer -or $rest -contains $_.Extension.TrimStart('.')
    } | ForEach-Object { Resolve-Path -Relative $_.FullName }
  }
}
Register-ArgumentCompleter -Native -CommandName waft -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $path = ''
  $skip = ''
  $operands = 0
  $allWords = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
  foreach ($element in @($commandAst.CommandElements | Select-Object -Skip 1)) {
    if ($element.Extent.EndOffset -ge $cursorPosition) { break }
    $word = $element.ToString()
    if ($skip) { $skip = ''; continue }
    if ($WaftPlaces[$path].takes -contains $word) { $skip = $word; continue }
    if ($WaftPlaces[$path].below -contains $word) { $path = "$path $word".Trim(); continue }
    if (-not $word.StartsWith('-')) { $operands++ }
  }
  $subject = if ($skip) { "$path $skip" } else { $path }
  if ($skip -or ($operands -eq 0 -and -not $wordToComplete.StartsWith('-'))) {
    Get-WaftValues $subject $wordToComplete $allWords | ForEach-Object {
      [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
  }
  if ($skip) { return }
  $WaftPlaces[$path].words | Where-Object { $_[0] -like "$wordToComplete*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])
  }
}
`;
}
