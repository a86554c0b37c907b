/* Draws with Plotly what is on the screen, one chart a frame; the rest waits until it is scrolled to. */
(function () {
  "use strict";
  const G = window.G;
  const MARGIN = "60px"; // a little before they are seen; what is further costs the first sight its time
  const specs = new WeakMap(); // chart element -> {panel, make, click}, the newest
  const near = new WeakSet(); // chart elements on the screen, or nearly
  const queue = new Set();
  let frame = 0;
  let whenIdle = [];

  const NARROW = 420; // pixels: below, the legend begins left of the plot, to have room
  const LEFT_OF_PLOT = -0.19; // of the plot's width: at its axis title

  const CONFIG = { displayModeBar: false, displaylogo: false, responsive: false, scrollZoom: false, doubleClick: "reset+autosize" };
  const coarse = window.matchMedia("(pointer: coarse)");

  function axis(own, colours) {
    return {
      gridcolor: colours.faint, linecolor: colours.line, zerolinecolor: colours.line, tickcolor: colours.line,
      // Plotly enlarges powers of ten, so their ticks start smaller.
      tickfont: { color: colours.soft, size: own && own.type === "log" ? 9 : 11 }, automargin: true, fixedrange: coarse.matches,
      exponentformat: "power", minexponent: 5, separatethousands: true,
      ...own,
      title: own && own.title ? { text: own.title, font: { color: colours.soft, size: 11 }, standoff: 8 } : undefined,
    };
  }

  function styled(layout, node) {
    const colours = G.theme.colours();
    const { xaxis, yaxis, legend, ...rest } = layout;
    const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.ink };
    const axes = { xaxis: axis(xaxis, colours), yaxis: axis(yaxis, colours) };
    return {
      width: node.clientWidth, height: node.clientHeight,
      margin: { l: 52, r: 14, t: 10, b: 40 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font,
      hoverlabel: { bgcolor: colours.card, bordercolor: colours.line, font: { ...font, size: 12 }, align: "left" },
      legend: { orientation: "h", x: node.clientWidth < NARROW ? LEFT_OF_PLOT : 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { size: 11, color: colours.soft }, ...legend },
      dragmode: coarse.matches ? false : "zoom", uirevision: "kept", barcornerradius: 2,
      ...rest,
      ...axes,
    };
  }

  async function render(node) {
    const spec = specs.get(node);
    if (!spec || node.hidden || !node.clientWidth) return;
    const { traces, layout } = spec.make();
    const drawing = window.Plotly.react(node, traces, styled(layout, node), CONFIG);
    node.dataset.drawn = "1";
    if (!node.hasClick && spec.click) {
      node.hasClick = true;
      node.on("plotly_click", (event) => specs.get(node).click(event.points[0]));
    }
    await drawing;
  }

  /* One chart that cannot be drawn leaves the others as they are. */
  function failed(node, error) {
    console.error(error);
    specs.get(node).panel.say(`This chart cannot be drawn: ${error.message}`);
  }

  function next() {
    frame = 0;
    const [node] = queue;
    queue.delete(node);
    if (node && node.isConnected) render(node).catch((error) => failed(node, error));
    if (queue.size) schedule();
    else settle();
  }

  /* Plotly takes most of a second to start: it does so while the page waits for its first answers. A
     report has it at its end. */
  function startPlotly() {
    if (G.source.report) {
      window.addEventListener("load", schedule, { once: true });
      return;
    }
    const script = G.el("script", { src: "/plotly.js" });
    script.addEventListener("load", schedule);
    script.addEventListener("error", () => G.live.failed(new G.Gone("the chart script cannot be read")));
    document.head.append(script);
  }

  function schedule() {
    if (window.Plotly && !frame) frame = requestAnimationFrame(next);
  }

  function settle() {
    const waiting = whenIdle;
    whenIdle = [];
    for (const tell of waiting) tell();
  }

  function ask(node) {
    queue.add(node);
    schedule();
  }

  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) near.delete(entry.target);
        else if (!near.has(entry.target)) {
          near.add(entry.target);
          ask(entry.target);
        }
      }
    },
    { rootMargin: MARGIN },
  );
  const sizes = new ResizeObserver((entries) => {
    for (const entry of entries) if (near.has(entry.target)) ask(entry.target);
  });

  /* Shows these traces in a panel's chart, now or when it comes into sight.
     make: gives {traces, layout}, called only when drawn. click: called with the point. summary: words
     for those who do not see the chart. */
  G.draw = function (panel, make, options) {
    const { click, summary } = options || {};
    const node = panel.chart;
    panel.say(null);
    specs.set(node, { panel, make, click });
    node.setAttribute("aria-label", G.visible(summary || node.getAttribute("aria-label")));
    if (!node.isWatched) {
      node.isWatched = true;
      observer.observe(node);
      sizes.observe(node);
    } else if (near.has(node)) ask(node);
  };

  /* Hatching over a bar's colour, for those who cannot tell the colours apart. */
  G.hatch = (shape) => ({ shape, fillmode: "overlay", fgcolor: G.theme.colours().card, fgopacity: 0.55, size: 6, solidity: 0.25 });

  /* Everything anew, in other colours. */
  G.redraw = function () {
    for (const node of document.querySelectorAll(".chart")) if (near.has(node) && specs.has(node)) ask(node);
  };

  const frameLater = () => new Promise((resolve) => requestAnimationFrame(resolve));

  /* Resolves when what is on the screen is drawn. Two frames: what is new on the screen is told to
     the observer at the end of the first. */
  G.whenDrawn = async function () {
    await frameLater();
    await frameLater();
    await new Promise((resolve) => {
      whenIdle.push(resolve);
      schedule();
    });
  };

  startPlotly();
})();
