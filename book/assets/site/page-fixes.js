// What the tools leave out on a static page.
(() => {
  // A page on disk may not read others, so its search shows titles without excerpts.
  if (window.location.protocol === "file:") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  }
  // Slider handles and play buttons come without an accessible name.
  const say = (element, attribute, text) => {
    if (text && element.getAttribute(attribute) !== text) {
      element.setAttribute(attribute, text);
    }
  };
  const nameAll = () => {
    for (const slider of document.querySelectorAll(".widget-slider")) {
      const handle = slider.querySelector(".noUi-handle");
      const part = (name) => slider.querySelector(name)?.textContent.trim();
      if (!handle) continue;
      say(handle, "aria-label", part(".widget-label"));
      // the slider itself would say the index of the value
      say(handle, "aria-valuetext", part(".widget-readout"));
    }
    for (const player of document.querySelectorAll(".widget-play")) {
      const words = ["Play or pause", "Stop", "Repeat"];
      player.querySelectorAll("button").forEach((b, i) => say(b, "aria-label", words[i]));
    }
  };
  // A long name in a table may wrap after a dot, an underscore or a slash.
  const LONG = 20;
  const breakNames = () => {
    const names = ".bd-article td :is(code .pre, span.doc)";
    for (const name of document.querySelectorAll(names)) {
      if (name.textContent.length <= LONG) continue;
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
  // A slider puts a new picture into the place of the old one; it keeps how far the
  // reader has scrolled.
  const scrolled = new WeakMap();
  const figureOf = (frame) => frame.closest(".widget-subarea") ?? frame;
  // What scrolls sideways is marked, and marked again while it goes on to the right.
  const mark = ({ target }) => {
    const hidden = target.scrollWidth - target.clientWidth;
    target.classList.toggle("fl-wide", hidden > 1);
    target.classList.toggle("fl-more", hidden - target.scrollLeft > 1);
  };
  const note = (event) => {
    scrolled.set(figureOf(event.target), event.target.scrollLeft);
    mark(event);
  };
  const sizes = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      target.scrollLeft = scrolled.get(figureOf(target)) ?? target.scrollLeft;
    }
    // a mark changes a height, which an observer may not do in its own turn
    requestAnimationFrame(() => changes.forEach(mark));
  });
  const SCROLLING = [
    ".fl-scroll",
    ".pst-scrollable-table-container",
    ".bd-article pre",
    '.bd-article mjx-container[display="true"]',
  ].join();
  const markScrolling = () => {
    for (const frame of document.querySelectorAll(SCROLLING)) {
      frame.addEventListener("scroll", note, { passive: true });
      sizes.observe(frame); // twice is once, here and above
    }
  };
  document.addEventListener("DOMContentLoaded", breakNames);
  window.addEventListener("load", () => {
    letPlotsScroll();
    markScrolling();
    window.MathJax?.startup?.promise.then(markScrolling);
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
      attributeFilter: ["aria-valuetext"],
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
