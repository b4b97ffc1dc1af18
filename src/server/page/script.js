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
    const signal = last.signal;
    let fresh;
    try {
      const response = await fetch(address + kind, { signal, credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      // The page of an error has no list.
      fresh = page.getElementById(form.dataset.live) || page.getElementById("main");
    } catch { /* There is no answer. */ }
    if (signal.aborted) return;
    const lines = fresh ? fresh.childNodes : ["No answer: check that annalist serve is running, and reload this page."];
    document.getElementById(form.dataset.live).replaceChildren(...lines);
    history.replaceState(null, "", address);
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
