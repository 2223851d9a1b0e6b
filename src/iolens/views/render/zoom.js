// What a figure shows follows its zoom: an envelope from afar, the finer series where it can be seen.
const followZoom = (root) => {
  for (const plot of root.model.children ?? []) {
    const marks = plot.renderers.filter((mark) => mark.tags.length > 0);
    if (marks.length === 0) continue;
    const range = plot.x_range;
    const choose = () => {
      const width = Math.abs(range.end - range.start);
      for (const mark of marks) mark.visible = (mark.tags[0] === "in") === (width < mark.tags[1]);
    };
    range.connect(range.change, choose);
    choose();
  }
};
