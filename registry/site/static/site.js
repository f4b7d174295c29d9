/**
 * Gives every block of code a button that copies it. Pages are complete without this script.
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
