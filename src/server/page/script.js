"use strict";
// Finds as one types, and focuses the search with `/`. Everything works without it.
(() => {
  const form = document.querySelector("form[data-live]");
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    const isTyping = target.closest && target.closest("input, select, textarea");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (form) form.querySelector("input").focus();
    else location.href = "/search";
  });
  if (!form) return;
  let timer, last = new AbortController();
  const find = async (kind = "") => {
    last.abort();
    last = new AbortController();
    const address = form.getAttribute("action") + "?" + new URLSearchParams(new FormData(form));
    try {
      const response = await fetch(address + kind, { signal: last.signal, credentials: "same-origin" });
      if (!response.ok) return;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = page.getElementById(form.dataset.live);
      if (fresh) document.getElementById(form.dataset.live).replaceChildren(...fresh.childNodes);
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(find, 120, "&live=1");
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    find();
  });
})();
