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
  // A long name in a table may wrap after a dot, an underscore or a slash.
  const breakNames = () => {
    const names = ".bd-article td :is(code .pre, span.doc)";
    for (const name of document.querySelectorAll(names)) {
      name.innerHTML = name.innerHTML.replace(/(?<=\w)[._/](?=\w)/g, "$&<wbr>");
    }
  };
  // A plot keeps a width at which its letters can be read; a phone scrolls it.
  const letPlotsScroll = () => {
    for (const plot of document.querySelectorAll(".cell_output figure > img")) {
      const frame = document.createElement("div");
      frame.className = "fl-scroll";
      frame.tabIndex = 0;
      plot.classList.add("fl-picture");
      plot.style.setProperty("--fl-width", `${plot.naturalWidth}px`);
      plot.replaceWith(frame);
      frame.append(plot);
    }
  };
  // What scrolls sideways is marked, and marked again while it goes on to the right.
  const mark = ({ target }) => {
    const hidden = target.scrollWidth - target.clientWidth;
    target.classList.toggle("fl-wide", hidden > 1);
    target.classList.toggle("fl-more", hidden - target.scrollLeft > 1);
  };
  // a mark changes a height, which an observer may not do in its own turn
  const sizes = new ResizeObserver((changes) =>
    requestAnimationFrame(() => changes.forEach(mark)),
  );
  const markScrolling = () => {
    const frames = ".fl-scroll, .pst-scrollable-table-container";
    for (const frame of document.querySelectorAll(frames)) {
      frame.addEventListener("scroll", mark, { passive: true });
      sizes.observe(frame); // twice is once, here and above
    }
  };
  document.addEventListener("DOMContentLoaded", breakNames);
  window.addEventListener("load", () => {
    letPlotsScroll();
    markScrolling();
  });
  window.addEventListener("load", () => {
    if (!document.querySelector('script[type$="widget-view+json"]')) return;
    const tidy = () => {
      nameAll();
      markScrolling();
    };
    new MutationObserver(tidy).observe(document.body, {
      childList: true,
      subtree: true,
    });
    tidy();
    // ipywidgets 8 typesets through MathJax 2's Hub (jupyter-widgets/ipywidgets#3829).
    const mathjax = window.MathJax;
    if (mathjax && !mathjax.Hub) {
      const typeset = (element) =>
        mathjax.startup.promise.then(() => mathjax.typesetPromise([element]));
      mathjax.Hub = { Queue: ([, , element]) => typeset(element) };
    }
  });
})();
