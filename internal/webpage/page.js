"use strict";

// A click on the head of a column sorts the rows of its table: numbers by value, other cells by their
// text, and empty cells last. A second click reverses the order.
function textOf(cell) {
  for (const node of cell.childNodes) {
    if (node.nodeType === Node.TEXT_NODE && node.textContent.trim()) return node.textContent.trim();
  }
  return "";
}

function numberOf(text) {
  const found = /^[-−+]?[0-9.]+(e[-+]?[0-9]+)?/i.exec(text.replace(/[\s,]/g, ""));
  return found ? Number(found[0].replace("−", "-")) : NaN;
}

function sort(body, column, ascending) {
  const rows = [...body.rows].map(row => ({row, text: textOf(row.cells[column])}));
  const empty = item => item.text === "" || item.text === "–";
  const numeric = rows.every(item => empty(item) || !Number.isNaN(numberOf(item.text)));
  rows.sort((a, b) => {
    if (empty(a) || empty(b)) return empty(a) - empty(b);
    const order = numeric ? numberOf(a.text) - numberOf(b.text) : a.text.localeCompare(b.text, undefined, {numeric: true});
    return ascending ? order : -order;
  });
  body.append(...rows.map(item => item.row));
}

for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sort(body, column, ascending);
    });
  });
}

// The title of the nearest point appears at the pointer. Without this script the browser shows it over
// the point.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
for (const svg of document.querySelectorAll("figure > svg")) {
  const hints = [...svg.querySelectorAll(".hint")].map(point => {
    const title = point.querySelector("title"), text = title.textContent;
    title.remove();
    return {point, text, x: Number(point.getAttribute("cx")), y: Number(point.getAttribute("cy"))};
  });
  let last = null;
  const show = hint => {
    if (last) last.point.classList.remove("at");
    last = hint;
    tip.hidden = !hint;
    if (hint) hint.point.classList.add("at");
  };
  svg.addEventListener("pointerleave", () => show(null));
  svg.addEventListener("pointermove", event => {
    const to = svg.getScreenCTM(), reach = 24;
    let nearest = null, least = reach * reach;
    for (const hint of hints) {
      if (hint.point.classList.contains("off")) continue;
      const dx = to.a * hint.x + to.e - event.clientX, dy = to.d * hint.y + to.f - event.clientY;
      if (dx * dx + dy * dy < least) {
        nearest = hint;
        least = dx * dx + dy * dy;
      }
    }
    show(nearest);
    if (!nearest) return;
    tip.textContent = nearest.text;
    const right = event.clientX + 14 + tip.offsetWidth < document.documentElement.clientWidth;
    tip.style.left = (right ? event.clientX + 14 : event.clientX - 14 - tip.offsetWidth) + "px";
    tip.style.top = Math.max(0, event.clientY - tip.offsetHeight - 10) + "px";
  });
}

// If the pictures have several series, such as classes, a list selects the series that is shown alone.
const parts = [...document.querySelectorAll("[data-series]")];
const names = [...new Set(parts.map(part => part.dataset.series))];
if (names.length > 1) {
  const label = document.createElement("label"), select = document.createElement("select");
  label.className = "switch";
  for (const name of ["", ...names]) select.append(new Option(name || "all", name));
  select.addEventListener("change", () => {
    for (const part of parts) {
      const off = select.value !== "" && part.dataset.series !== select.value;
      if (part.localName === "figure") part.hidden = off;
      else part.classList.toggle("off", off);
    }
  });
  label.append("Show ", select);
  document.querySelector(".cards").before(label);
}
