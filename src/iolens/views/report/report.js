"use strict";
// Figures become live when they come near the window; the still picture stays wherever that fails.
(() => {
  const coarse = matchMedia("(pointer: coarse)").matches;
  const narrow = matchMedia("(max-width: 34rem)").matches;

  const draw = async (figure) => {
    const item = JSON.parse(figure.querySelector("script").textContent);
    for (const root of item.doc.roots) (root.attributes.children ?? []).forEach(({ attributes }) => adapt(attributes));
    figure.classList.add("drawn");
    try {
      const views = await Bokeh.embed.embed_item(item, figure.querySelector(".live").id);
      views.roots.forEach(followZoom);
    } catch (error) {
      figure.classList.remove("drawn");
      console.error(error);
    }
  };

  // The description of a plot, before it is drawn: what changes afterwards leaves traces of the first drawing.
  const adapt = (plot) => {
    // A finger that moves over a figure scrolls the page until a tool is chosen.
    if (coarse) plot.toolbar.attributes.active_drag = null;
    if (!narrow) return;
    plot.toolbar_location = "below";
    const title = plot.title.attributes;
    title.text_font_size = "12px";
    if (typeof title.text === "string" && title.text.length > 38) {
      const space = title.text.lastIndexOf(" ", 38);
      title.text = `${title.text.slice(0, space)}\n${title.text.slice(space + 1)}`;
      plot.height += 18;
    }
    for (const { name, attributes } of plot.above ?? []) {
      if (name !== "Legend") continue;
      attributes.orientation = "vertical";
      attributes.spacing = 0;
      plot.height += 20 * (attributes.items.length - 1);
    }
    for (const { name, attributes } of plot.below) {
      if (name === "DatetimeAxis") attributes.ticker = { type: "object", name: "DatetimeTicker", id: `${plot.title.id}t`, attributes: { desired_num_ticks: 3 } };
      else if (attributes.ticker?.attributes.ticks?.length > 6) attributes.major_label_orientation = 0.9;
    }
  };

  const figures = document.querySelectorAll("figure");
  if (typeof Bokeh === "undefined") return;
  const near = new IntersectionObserver((seen) => {
    for (const { target } of seen.filter((entry) => entry.isIntersecting)) {
      near.unobserve(target);
      draw(target);
    }
  }, { rootMargin: "800px 0px" });
  figures.forEach((figure) => near.observe(figure));

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const mark = (id) => {
    if (!links.has(id)) return;
    links.forEach((link) => link.removeAttribute("aria-current"));
    links.get(id).setAttribute("aria-current", "true");
  };
  const reading = new IntersectionObserver((seen) => {
    for (const { target } of seen.filter((entry) => entry.isIntersecting)) mark(target.id);
  }, { rootMargin: "0px 0px -75% 0px" });
  document.querySelectorAll("section[id]").forEach((section) => reading.observe(section));
})();
