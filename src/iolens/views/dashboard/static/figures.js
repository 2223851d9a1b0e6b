// Figures: drawn by Bokeh from their descriptions, in the colours of the page.
const DARK = new Map(Object.entries({
  "#111111": "#e6edf3", "#222222": "#e6edf3", "#666666": "#9da7b1", "#E6E6E6": "#2a313a", "#D9D9D9": "#2a313a",
  "#C4C4C4": "#565f69", "#868686": "#8b949e", "#DDDDDD": "#3a424c", "#BBBBBB": "#565f69", "#FAD9A6": "#5a4213",
  "#DCEBF5": "#1d3346", "#CFE3F3": "#1d3346", "#DDD6F0": "#352c50", "#7A4A00": "#ffd9a0", "#5F8787": "#7fa8a8",
  "#CC3311": "#ff8a66", "#0077BB": "#5ab4f0", "#E07A63": "#d96a50", "#5AA5D6": "#3f8fc4",
}));
const LIGHT = new Map([["#343b44", "#D9D9D9"], ...[...DARK].map(([light, dark]) => [dark, light]).reverse()]);
const coarse = matchMedia("(pointer: coarse)").matches;
const FEW_BARS = 16; // need no whole line of a wide page
const LARGEST_PX = 300; // height of a panel with few bars
let numbers = 0;

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

// Values of a description with other colours. What is little is near the colour of the page, what is much stands out: a
// palette from light to dark runs the other way on a dark page.
export const recoloured = (value) => {
  if (typeof value === "string") return DARK.get(value) ?? value;
  if (Array.isArray(value)) return value.length > 64 ? value : value.map(recoloured);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, recolouredAs(key, inner)]));
  return value;
};
const recolouredAs = (key, value) => {
  if (key === "data") return value;
  return key === "palette" ? [...value].reverse() : recoloured(value);
};

const onPage = (models, look) => {
  for (const { name, attributes } of models ?? []) look(name, attributes);
};

// Colours and sizes of a plot that do not stand in its description.
const adapt = (plot, figure) => {
  const style = getComputedStyle(document.documentElement);
  const [ink, quiet, line] = ["--ink", "--quiet", "--line"].map((name) => style.getPropertyValue(name).trim());
  Object.assign(plot, { background_fill_color: null, border_fill_color: null });
  Object.assign(plot.title.attributes, { text_color: ink });
  for (const side of ["left", "right", "below", "above"]) {
    onPage(plot[side], (name, look) => {
      if (name.endsWith("Axis")) {
        Object.assign(look, { axis_label_text_color: quiet, axis_line_color: line, major_tick_line_color: line, minor_tick_line_color: null });
        if (look.major_label_text_color !== null) look.major_label_text_color = quiet;
        const context = look.formatter?.attributes;
        if (context && narrow(figure)) look.ticker ??= name === "DatetimeAxis" ? { type: "object", name: "DatetimeTicker", id: `t${++numbers}`, attributes: { desired_num_ticks: 3 } } : undefined;
        if (look.ticker === undefined) delete look.ticker;
      } else if (name === "Legend") {
        Object.assign(look, { label_text_color: ink, background_fill_color: null });
        const columns = legendColumns(look.items.map(({ attributes }) => attributes.label.value), figure.clientWidth);
        Object.assign(look, { ncols: columns });
        plot.height += 20 * (Math.ceil(look.items.length / columns) - 1);
      } else if (name === "ColorBar") {
        Object.assign(look, { title_text_color: quiet, major_label_text_color: quiet, background_fill_color: null });
      }
    });
  }
  if (coarse) plot.toolbar.attributes.active_drag = null; // a finger scrolls the page until a tool is chosen
  else plot.toolbar.attributes.autohide = true;
  if (hasFewBars(plot)) plot.height = Math.min(plot.height, LARGEST_PX);
  if (narrow(figure)) {
    plot.toolbar_location = "below";
    const title = plot.title.attributes;
    title.text_font_size = "12px";
    if (typeof title.text === "string" && title.text.length > 38) {
      const space = title.text.lastIndexOf(" ", 38);
      title.text = `${title.text.slice(0, space)}\n${title.text.slice(space + 1)}`;
      plot.height += 18;
    }
  }
};

// How many entries of a legend stand in a row: all of them, or as many as there is space for.
const legendColumns = (labels, width) => {
  const widths = labels.map((label) => 7 * label.length + 46);
  const whole = widths.reduce((sum, own) => sum + own, 90);
  return whole <= width ? labels.length : Math.max(1, Math.floor((width - 90) / Math.max(...widths)));
};
const narrow = (figure) => figure.clientWidth < 520;
const hasFewBars = ({ below }) => below?.some(({ attributes: { ticker } }) => ticker?.name === "FixedTicker" && ticker.attributes.ticks.length < FEW_BARS);

// Draws a figure of a block; `onZoom` hears when its reader begins to zoom, and is given a promise of what is zoomed into
// (see hearZoom); `marked` is a stretch of time that is marked in it.
export const draw = async (figure, onZoom, marked = null) => {
  const script = figure.querySelector('script[type="application/json"]');
  if (!script || typeof Bokeh === "undefined") return;
  forget(figure);
  const described = JSON.parse(script.textContent);
  const item = isDark() ? recoloured(described) : described;
  const plots = item.doc.roots.flatMap((root) => root.attributes.children ?? []).map(({ attributes }) => attributes);
  figure.classList.toggle("few", plots.length > 0 && plots.every(hasFewBars));
  for (const plot of plots) adapt(plot, figure);
  const place = figure.querySelector(".live");
  place.id = `live-${++numbers}`;
  place.replaceChildren();
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", figure.querySelector("figcaption").textContent);
  figure.classList.add("drawn");
  const views = await Bokeh.embed.embed_item(item, place.id);
  figure.roots = [...views.roots];
  const offset = described.offset_ms;
  for (const root of figure.roots) {
    followZoom(root);
    if (!root.model.children || offset === undefined) continue;
    if (onZoom) hearZoom(root.model.children, offset, onZoom);
    if (marked) markSpan(root.model.children, marked.map((end) => end + offset));
  }
  place.dataset.drawn = "yes";
};

// Lets go of what was drawn: Bokeh keeps every document, and a live page draws new ones for days.
export const forget = (figure) => {
  for (const root of figure.roots ?? []) {
    const { document } = root.model;
    root.remove();
    document?.clear();
    const at = Bokeh.documents.indexOf(document);
    if (at >= 0) Bokeh.documents.splice(at, 1);
  }
  figure.roots = [];
};

// A still picture of a figure for paper, in light colours and as wide as the page; made at once, because a browser waits
// for nothing when it prints.
export const drawForPaper = (figure, width) => {
  const place = figure.querySelector(".live");
  place.style.width = `${width}px`;
  for (const root of (figure.roots ?? []).filter(({ model }) => model.children)) {
    for (const plot of root.model.children) fitLegends(plot, width);
    if (isDark()) for (const model of root.model.document._all_models.values()) lighten(model);
    root.compute_layout();
    for (const view of root.child_views) {
      view.after_resize();
      for (const { glyph, model, all_indices } of view.renderer_views.values()) glyph?.set_visuals(model.data_source, all_indices);
      view.paint();
    }
    const still = root.export("png", true).canvas;
    still.className = "paper";
    place.after(still);
  }
};

const fitLegends = (plot, width) => {
  for (const legend of plot.above.filter(({ type }) => type === "Legend")) {
    const columns = legendColumns(legend.items.map(({ label }) => label.value), width);
    plot.setv({ height: plot.height + 20 * (Math.ceil(legend.items.length / columns) - 1) });
    legend.setv({ ncols: columns });
  }
};

export const lighten = (model) => {
  for (const property of [...model].filter(({ attr }) => attr === "palette" || attr.endsWith("color"))) {
    const value = property.get_value(); // of others it may be unset, which throws
    if (property.attr === "palette" && value[0] < value.at(-1)) model.setv({ palette: [...value].reverse() });
    if (LIGHT.has(value)) model.setv({ [property.attr]: LIGHT.get(value) });
    else if (LIGHT.has(value?.value)) model.setv({ [property.attr]: { ...value, value: LIGHT.get(value.value) } });
  }
};

// The promise is kept when the axis has been at rest for a while: the `stretch` in milliseconds UTC and on the axis
// (`span`), the plots, and the way `back`; or null where the axis is as it was.
const hearZoom = (plots, offset, onZoom) => {
  for (const range of new Set(plots.map((plot) => plot.x_range))) {
    const whole = [range.start, range.end];
    let [waiting, keep] = [0, null];
    range.connect(range.change, () => {
      clearTimeout(waiting);
      if (!keep) onZoom(new Promise((resolve) => { keep = resolve; }));
      waiting = setTimeout(() => {
        const span = [Math.min(range.start, range.end), Math.max(range.start, range.end)];
        const isWhole = Math.abs(span[0] - whole[0]) + Math.abs(span[1] - whole[1]) < (whole[1] - whole[0]) / 500;
        keep(isWhole ? null : {
          plots,
          span,
          stretch: span.map((end) => end - offset),
          back: () => range.setv({ start: whole[0], end: whole[1] }),
        });
        keep = null;
      }, 300);
    });
  }
};

// Marks a stretch of time in all plots of a figure.
export const markSpan = (plots, [from, to]) => {
  const Box = Bokeh.Models.get("BoxAnnotation");
  for (const plot of plots) {
    const before = plot.center.filter((model) => model.name === "who");
    before.forEach((model) => model.setv({ left: from, right: to }));
    if (before.length === 0) plot.add_layout(new Box({ left: from, right: to, name: "who", fill_color: "#EE7733", fill_alpha: 0.25, line_color: "#EE7733" }));
  }
};
