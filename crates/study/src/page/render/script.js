// What a page cannot do by itself: copy a table, and take the other theme. Without it nothing is missing from the figures.
"use strict";

const said = document.getElementById("said");
const root = document.documentElement;

// The theme is the system's until the button is pressed.
const theme = document.getElementById("theme");
const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const label = () => { theme.textContent = dark() ? "Light theme" : "Dark theme"; };
theme.hidden = false;
theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
label();

// A table as rows of texts, without what is only drawn.
function rows(table) {
  const drawn = new Set();
  const body = table.querySelector("tbody tr:not(.group)");
  if (body) [...body.children].forEach((cell, i) => { if (cell.matches(".bar")) drawn.add(i); });
  const texts = row => [...row.children].filter((_, i) => !drawn.has(i)).map(cell => cell.textContent.replace(/\s+/g, " ").trim());
  return [...table.rows].map(texts);
}

// Every row as wide as the first: a heading over rows is one cell.
function even(rows) {
  const width = rows[0].length;
  return rows.map(row => row.concat(Array(Math.max(0, width - row.length)).fill("")));
}

const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
const escaped = text => text.replace(/[\\|*_`<[~]/g, "\\$&");
const forms = {
  TSV: rows => rows.map(row => row.join("\t")).join("\n"),
  CSV: rows => rows.map(row => row.map(quoted).join(",")).join("\n"),
  Markdown: rows => {
    const line = row => `| ${row.map(escaped).join(" | ")} |`;
    const rule = `|---|${"---:|".repeat(rows[0].length - 1)}`;
    return [line(rows[0]), rule, ...rows.slice(1).map(line)].join("\n");
  },
};

// By a selection of our own: this asks nobody for leave, also where the page was opened from a file.
function copied(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  let done = false;
  try { done = document.execCommand("copy"); } catch { done = false; }
  field.remove();
  return done;
}

function select(table) {
  const range = document.createRange();
  range.selectNodeContents(table);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}

for (const region of document.querySelectorAll(".table")) {
  const table = region.querySelector("table");
  const caption = region.getAttribute("aria-labelledby");
  const group = document.createElement("div");
  group.className = "copy";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "Copy the table above");
  for (const form of Object.keys(forms)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = form;
    button.setAttribute("aria-label", `Copy as ${form}`);
    button.setAttribute("aria-describedby", caption);
    button.addEventListener("click", () => {
      if (copied(forms[form](even(rows(table))))) {
        button.focus();
        said.textContent = `Copied as ${form}`;
      } else {
        select(table);
        said.textContent = "The table is selected: press Ctrl+C to copy it";
      }
      said.classList.add("shown");
      setTimeout(() => said.classList.remove("shown"), 2500);
    });
    group.append(button);
  }
  region.after(group);
}

// A link into something folded unfolds it.
function unfold() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
}
addEventListener("hashchange", unfold);
unfold();
