// Tell require.js where the vendored widget manager lies, whatever the page's depth.
// The manager's modules are bundled; the two paths only say where its icon fonts are.
(() => {
  const manager = new URL("vendor/html-manager", document.currentScript.src).href;
  window.require.config({
    paths: {
      "@jupyter-widgets": manager,
      "@jupyter-widgets/html-manager/dist": manager,
    },
  });
})();
