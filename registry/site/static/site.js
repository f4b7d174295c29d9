/**
 * Gives every block of code a button that copies it, and the search a key. Pages are complete without this script.
 */
const SHOWN_MS = 1500;

/** Copies text; outside of secure contexts there is only the older interface. */
async function copy(text, block) {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  getSelection().selectAllChildren(block);
  if (!document.execCommand("copy")) throw new Error("The browser does not copy");
  getSelection().removeAllRanges();
}

for (const block of document.querySelectorAll(".code")) {
  const pre = block.querySelector("pre");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await copy(pre.textContent.trimEnd(), pre);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => button.textContent = "Copy", SHOWN_MS);
  });
  block.append(button);
}

// "/" goes to the search, as on other sites of documentation, except where it is typed.
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  const field = document.querySelector(".bar input[type=search]");
  field.focus();
  field.select();
});
