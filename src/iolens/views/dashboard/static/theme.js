"use strict";
// Colours: as the system wants them, or as the reader chose. Runs before the page is drawn, so that it does not flash.
(() => {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
