"use strict";
// The page says everything without this; it only finds cases by name.
const find = document.getElementById("find");
if (find) {
  find.closest("label").hidden = false;
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    for (const it of document.querySelectorAll(".case")) {
      it.hidden = !it.dataset.name.toLowerCase().includes(wanted);
    }
  });
}
