// Looks at a page from inside and leaves what it found in an element of its own, as JSON.
"use strict";

addEventListener("load", () => {
  const found = {};
  const visible = element => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const where = element => `${element.tagName.toLowerCase()}.${element.getAttribute("class") || ""} "${element.textContent.trim().slice(0, 40)}"`;

  // What opened folded is seen too.
  document.querySelectorAll("details").forEach(details => { details.open = true; });

  found.errors = window.probed.errors;
  found.fetched = performance.getEntriesByType("resource").map(entry => entry.name);
  found.width = innerWidth;
  found.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;

  // Contrast (WCAG 2.1): text against what is behind it, lines of charts against the page.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = colour => {
    const [r, g, b] = rgba(colour).map(c => c / 255).map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (rgba(colour)[3] > 0) return colour;
    }
    return "white";
  };
  const known = new Map();
  const contrast = (front, element) => {
    const back = behind(element);
    const key = `${front} on ${back}`;
    if (!known.has(key)) known.set(key, ratio(front, back));
    return known.get(key);
  };
  const contrasts = () => {
    const low = new Set();
    let least = 99, lines = 99;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || element.closest("script, style, title, desc, .unseen, .skip") || !visible(element)) continue;
      const style = getComputedStyle(element);
      const is = contrast(element.closest("svg") ? style.fill : style.color, element);
      least = Math.min(least, is);
      if (is < 4.5) low.add(`${is.toFixed(2)} ${where(element)}`);
    }
    for (const line of document.querySelectorAll(".chart g path:first-child, circle")) {
      const style = getComputedStyle(line);
      lines = Math.min(lines, contrast(line.tagName === "circle" ? style.fill : style.stroke, line));
    }
    return { low: [...low].slice(0, 10), least, lines, paper: getComputedStyle(document.body).backgroundColor };
  };
  found.first = contrasts();
  document.getElementById("theme").click();
  found.second = contrasts();

  // Names, headings, tables, charts.
  const name = element => element.getAttribute("aria-label")
    || (element.getAttribute("aria-labelledby") || "").split(" ").map(id => document.getElementById(id)?.textContent || "").join(" ").trim()
    || element.textContent.trim();
  const reach = [...document.querySelectorAll("a[href], button, summary, [tabindex='0']")].filter(e => visible(e));
  found.reach = reach.length;
  found.unnamed = reach.concat([...document.querySelectorAll("svg[role=img], [role=region], section, nav")]).filter(e => !name(e)).map(where);
  found.unreached = reach.filter(element => {
    element.focus({ preventScroll: true });
    const style = getComputedStyle(element);
    return document.activeElement !== element || style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2;
  }).map(where);
  // A region that scrolls must be reached by keyboard, or its figures are not.
  found.stuck = [...document.querySelectorAll("div, pre, ul")]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(e).overflowX) && e.tabIndex < 0).map(where);
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map(heading => Number(heading.tagName[1]));
  found.headings = levels.length;
  found.leaps = levels.filter((level, i) => level > (i ? levels[i - 1] : 0) + 1).length;
  found.landmarks = ["header", "nav", "main", "footer"].filter(tag => document.querySelectorAll(tag).length === 1);
  const tables = [...document.querySelectorAll("table")];
  found.tables = tables.length;
  found.bare = tables.filter(t => !t.caption?.textContent || t.querySelector("th:not([scope])") || t.querySelector("tbody tr > td:first-child")).length;
  found.charts = document.querySelectorAll("svg[role=img]").length;
  found.mute = [...document.querySelectorAll("svg:not([aria-hidden])")].filter(s => !s.querySelector("title")?.textContent || !s.querySelector("desc")?.textContent).length;
  const ids = [...document.querySelectorAll("[id]")].map(element => element.id);
  found.twice = ids.filter((id, i) => ids.indexOf(id) !== i);
  found.dead = [...document.querySelectorAll("a[href^='#']")].filter(a => !document.getElementById(a.hash.slice(1))).map(where);
  found.sections = [...document.querySelectorAll("main > section")].map(section => section.id);

  // Copying, where it is allowed and where it is not.
  const press = form => document.querySelector(`#overhead .copy button[aria-label='Copy as ${form}']`).click();
  press("TSV");
  found.selected = getSelection().toString().length;
  found.told = document.getElementById("said").textContent;
  getSelection().removeAllRanges();
  document.execCommand = () => { found.copied.push(document.activeElement.value); return true; };
  found.copied = [];
  ["TSV", "CSV", "Markdown"].forEach(press);

  const verdict = document.createElement("pre");
  verdict.id = "verdict";
  verdict.textContent = JSON.stringify(found);
  document.body.append(verdict);
});
