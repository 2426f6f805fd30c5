// What the tools leave out on a static page.
(() => {
  // A page on disk may not read others, so its search shows titles without excerpts.
  if (window.location.protocol === "file:") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  }
  // Slider handles and play buttons come without an accessible name.
  const name = (element, text) => {
    if (text && !element.hasAttribute("aria-label")) {
      element.setAttribute("aria-label", text);
    }
  };
  const nameAll = () => {
    for (const handle of document.querySelectorAll(".noUi-handle")) {
      const slider = handle.closest(".jupyter-widgets");
      name(handle, slider?.querySelector(".widget-label")?.textContent.trim());
    }
    for (const player of document.querySelectorAll(".widget-play")) {
      const words = ["Play or pause", "Stop", "Repeat"];
      player.querySelectorAll("button").forEach((b, i) => name(b, words[i]));
    }
  };
  window.addEventListener("load", () => {
    if (!document.querySelector('script[type$="widget-view+json"]')) return;
    new MutationObserver(nameAll).observe(document.body, {
      childList: true,
      subtree: true,
    });
    nameAll();
    // ipywidgets 8 typesets through MathJax 2's Hub (jupyter-widgets/ipywidgets#3829).
    const mathjax = window.MathJax;
    if (mathjax && !mathjax.Hub) {
      const typeset = (element) =>
        mathjax.startup.promise.then(() => mathjax.typesetPromise([element]));
      mathjax.Hub = { Queue: ([, , element]) => typeset(element) };
    }
  });
})();
