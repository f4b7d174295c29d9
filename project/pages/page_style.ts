/** The style that all self-contained pages share: colours of both schemes, type, controls. */

/** Style sheet. */
export const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#fff, #14161a);
  --panel: light-dark(#f5f6f8, #1c1f25);
  --text: light-dark(#1b1e24, #e4e7ec);
  --quiet: light-dark(#555c68, #a3abb8);
  --rule: light-dark(#c9ced6, #3a404b);
  --accent: light-dark(#0b57c2, #8ab8ff);
  --linked: light-dark(#fff1c4, #473c12);
  --active: light-dark(#d8e7ff, #1d3c66);
  --code: ui-monospace, "SFMono-Regular", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
* { box-sizing: border-box; }
html, body { margin: 0; height: 100%; }
body { background: var(--ground); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
h1, h2 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
a { color: var(--accent); }
button, input, select {
  font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--rule); border-radius: 4px;
  min-height: 30px; padding: 2px 8px; max-width: 100%;
}
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
kbd { font: 0.85em var(--code); border: 1px solid var(--rule); border-radius: 3px; padding: 0 4px; }
.quiet { color: var(--quiet); }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`;
