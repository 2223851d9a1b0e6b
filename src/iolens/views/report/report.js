"use strict";
// Figures become live when they come near the window; the still picture stays wherever that fails.
(() => {
  const coarse = matchMedia("(pointer: coarse)").matches;
  const narrow = matchMedia("(max-width: 34rem)").matches;

  const draw = async (figure) => {
    const item = JSON.parse(figure.querySelector("script").textContent);
    figure.classList.add("drawn");
    try {
      const views = await Bokeh.embed.embed_item(item, figure.querySelector(".live").id);
      for (const view of views.roots) {
        (view.model.children ?? []).forEach(adapt);
        followZoom(view);
      }
    } catch (error) {
      figure.classList.remove("drawn");
      console.error(error);
    }
  };

  const adapt = (plot) => {
    // A finger that moves over a figure scrolls the page until a tool is chosen.
    if (coarse) for (const tool of plot.toolbar.tools) if (tool.type === "BoxZoomTool") tool.active = false;
    if (!narrow) return;
    plot.toolbar_location = "below";
    const title = plot.title?.text;
    if (plot.title) plot.title.text_font_size = "12px";
    if (typeof title === "string" && title.length > 38) {
      const space = title.lastIndexOf(" ", 38);
      plot.title.text = `${title.slice(0, space)}\n${title.slice(space + 1)}`;
      plot.height += 18;
    }
    for (const above of plot.above) {
      if (above.type !== "Legend") continue;
      above.orientation = "vertical";
      above.spacing = 0;
      plot.height += 20 * (above.items.length - 1);
    }
    for (const axis of plot.below) {
      if (axis.type === "DatetimeAxis") axis.ticker.desired_num_ticks = 3;
      else if (axis.ticker.type === "FixedTicker" && axis.ticker.ticks.length > 6) axis.major_label_orientation = 0.9;
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
