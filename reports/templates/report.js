"use strict";
(() => {
  const themes = JSON.parse(document.getElementById("themes").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const shown = new Map();

  // The same sizes as the files have, see Figure.spec.
  function sized(spec, width) {
    const { height, square, panels, most_width: most, least_panel: least, margin } = spec.usermeta;
    if (panels) {
      const columns = Math.max(1, Math.min(panels, Math.floor(width / least)));
      const inner = { ...spec.spec, width: Math.max(120, Math.floor((width - margin) / columns) - 20), height: 110 };
      return { ...spec, columns, spec: inner };
    }
    const own = Math.min(width, most);
    const tall = square ? Math.round((height * own) / most) : height;
    return { ...spec, width: own, height: tall, autosize: { type: "fit", contains: "padding" } };
  }

  async function draw(figure) {
    const place = figure.querySelector(".chart");
    const width = Math.max(280, figure.clientWidth);
    const source = document.querySelector(`script.spec[data-for="${CSS.escape(figure.dataset.name)}"]`);
    const before = shown.get(figure);
    const options = {
      config: themes[dark.matches ? "dark" : "light"],
      renderer: "heavy" in figure.dataset ? "canvas" : "svg",
      tooltip: { theme: dark.matches ? "dark" : "light" },
      downloadFileName: figure.dataset.name,
      actions: false,
      ast: false,
    };
    if (before) before.finalize();
    figure.classList.add("live");
    const result = await vegaEmbed(place, sized(JSON.parse(source.textContent), width), options);
    shown.set(figure, result);
    figure.view = result.view;
  }

  async function drawAll() {
    const drawnFor = window.innerWidth;
    document.documentElement.removeAttribute("data-ready");
    for (const figure of document.querySelectorAll("figure[data-name]")) {
      try {
        await draw(figure);
      } catch (error) {
        figure.classList.remove("live"); // the still stays
        console.error(error);
      }
    }
    document.documentElement.setAttribute("data-ready", drawnFor);
  }

  function key(row, column) {
    const cell = row.cells[column];
    const number = cell.querySelector("data");
    return number ? Number(number.value) : cell.textContent;
  }

  function sort(head) {
    const table = head.closest("table");
    const column = head.cellIndex;
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const unknown = (value) => value === "–" || value === "";
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [key(a, column), key(b, column)];
      if (unknown(x) || unknown(y)) return unknown(x) - unknown(y); // unknown stays last either way
      const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
      return up ? order : -order;
    });
    body.append(...rows);
  }

  for (const button of document.querySelectorAll("table.sortable th button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }
  let running = drawAll();
  const again = () => { running = running.then(drawAll); };
  dark.addEventListener("change", again);
  let width = window.innerWidth;
  let timer = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(again, 200);
  });
})();
