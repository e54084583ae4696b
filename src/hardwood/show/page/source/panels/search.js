// Search by feature: marks the splits that use it, and goes from one to the next.
"use strict";

const SUGGESTIONS = 8;

/** Whether a node has a weight for a feature. */
function usesFeature(tree, node, feature) {
  const weights = isLeaf(tree, node) ? tree.leafWeights : tree.weights;
  if (!weights) return false;
  const rows = isLeaf(tree, node) ? tree.nOutputs : 1;
  const start = isLeaf(tree, node) ? (node - tree.nSplits) * rows : node;
  const { first, levels, flag } = model.features[feature];
  const columns = (levels ? levels.length : 1) + Number(flag);
  for (let row = start; row < start + rows; row++) {
    for (let c = first; c < first + columns; c++)
      if (weights[row * tree.nColumns + c] !== 0) return true;
  }
  return false;
}

/** All nodes of the drawn tree that use the feature, from top to bottom. */
function foundNodes() {
  const tree = currentTree();
  const found = [];
  for (let node = 0; node < tree.nNodes; node++) {
    if (usesFeature(tree, node, state.feature)) found.push(node);
  }
  return found.sort((a, b) => tree.depth[a] - tree.depth[b] || goal.x[a] - goal.x[b]);
}

/** Whether a node below a closed split uses the feature. */
function findsBelow(tree, split) {
  return foundNodes().some((node) => node !== split && wayTo(tree, node).includes(split));
}

function searchFor(feature) {
  byId("search").value = model.features[feature].name;
  closeSuggestions();
  change({ feature });
}

function clearSearch() {
  byId("search").value = "";
  closeSuggestions();
  change({ feature: null });
}

function drawSearchResult() {
  const result = byId("search-result");
  byId("search-next").hidden = state.feature === null;
  if (state.feature === null) {
    result.textContent = "";
    return;
  }
  const tree = currentTree();
  const found = foundNodes();
  const splits = found.filter((node) => !isLeaf(tree, node)).length;
  const leaves = found.length - splits;
  result.textContent =
    `in ${countText(splits)} of ${plural(tree.nSplits, "split")}` +
    (leaves ? ` and ${plural(leaves, "leaf", "leaves")}` : "");
}

/** Go to the next match, or with -1 to the previous one. */
function visitFound(direction) {
  const found = foundNodes();
  if (found.length === 0) return;
  const at = found.indexOf(state.selected);
  const next = at < 0 ? 0 : (at + direction + found.length) % found.length;
  selectNode(found[next]);
}

// Suggestions: a combobox with a list below it.

function suggest() {
  const words = byId("search").value.trim().toLowerCase();
  if (!words) {
    clearSearch();
    return;
  }
  const matches = featuresByUse().filter((f) =>
    model.features[f].name.toLowerCase().includes(words),
  );
  const options = matches
    .slice(0, SUGGESTIONS)
    .map((f) =>
      element(
        "li",
        { role: "option", id: `option-${f}`, "data-feature": f },
        nameElement(model.features[f].name),
      ),
    );
  if (options.length === 0)
    options.push(element("li", { class: "quiet", text: "no matching feature" }));
  byId("suggestions").replaceChildren(...options);
  byId("suggestions").hidden = false;
  byId("search").setAttribute("aria-expanded", "true");
  highlightOption(options[0]);
}

function closeSuggestions() {
  byId("suggestions").hidden = true;
  byId("search").setAttribute("aria-expanded", "false");
  byId("search").removeAttribute("aria-activedescendant");
}

function highlightOption(option) {
  for (const other of byId("suggestions").children) other.removeAttribute("aria-selected");
  if (!option?.dataset.feature) return;
  option.setAttribute("aria-selected", "true");
  byId("search").setAttribute("aria-activedescendant", option.id);
}

function pressSearchKey(event) {
  const isOpen = !byId("suggestions").hidden;
  const selected = byId("suggestions").querySelector("[aria-selected]");
  if (event.key === "Enter") {
    if (isOpen && selected) searchFor(Number(selected.dataset.feature));
    else if (state.feature !== null) visitFound(event.shiftKey ? -1 : 1);
  } else if (isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    const next =
      event.key === "ArrowDown" ? selected?.nextElementSibling : selected?.previousElementSibling;
    if (next) highlightOption(next);
  } else {
    return;
  }
  event.preventDefault();
}

function startSearch() {
  byId("search").addEventListener("input", suggest);
  byId("search").addEventListener("keydown", pressSearchKey);
  byId("search").addEventListener("focusout", closeSuggestions);
  // On pointerdown, before the field loses the focus and closes the list.
  byId("suggestions").addEventListener("pointerdown", (event) => {
    const option = event.target.closest("[data-feature]");
    if (option) searchFor(Number(option.dataset.feature));
    event.preventDefault();
  });
  byId("search-next").addEventListener("click", () => visitFound(1));
  whenever(["feature", "tree"], drawSearchResult);
}
