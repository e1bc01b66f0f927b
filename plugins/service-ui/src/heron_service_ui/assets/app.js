// The entry of the pages: which view a URL shows, and the frame around it.

import { render, useEffect, useErrorBoundary, useState } from "./vendor/htm-preact.js";
import { html, plain } from "./html.js";
import { TopologiesPage } from "./topologies_page.js";
import { TopologyPage } from "./topology_page.js";
import { viewPath } from "./pieces.js";
import { NEEDS_TOKEN, TOKEN_REFUSED, forgetToken, hasToken, setToken } from "./tracker_api.js";

const ROOT = "/ui/";
const THEME_KEY = "heron-theme";
const THEMES = ["auto", "light", "dark"];

// The parts of the path and the choices of the query; null for a path that is malformed.
function currentView() {
  const parts = location.pathname.slice(ROOT.length).split("/").filter(Boolean);
  try {
    return { parts: parts.map(decodeURIComponent), query: new URLSearchParams(location.search) };
  } catch {
    return { parts: null, query: new URLSearchParams() };
  }
}

// Shows another view without loading the page again; the browser's own keys for new tabs keep their meaning.
function followed(event, go) {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest("a[href]");
  if (!link) return;
  const url = new URL(link.getAttribute("href"), location.href);
  if (url.origin !== location.origin || !url.pathname.startsWith(ROOT)) return;
  event.preventDefault();
  go(url.pathname + url.search);
}

function App() {
  const [view, setView] = useState(currentView);
  const [error, resetError] = useErrorBoundary();
  const [refused, setRefused] = useState(false);
  function show() {
    resetError();
    setView(currentView());
  }
  function go(path, { replace = false } = {}) {
    history[replace ? "replaceState" : "pushState"](null, "", path);
    show();
    if (!replace) {
      scrollTo(0, 0);
      document.querySelector("main").focus({ preventScroll: true }); // a screen reader begins there
    }
  }
  useEffect(() => {
    addEventListener("popstate", show);
    return () => removeEventListener("popstate", show);
  }, []);
  useEffect(() => {
    const ask = () => setRefused(true); // the views go away, so nothing is asked until there is another token
    addEventListener(TOKEN_REFUSED, ask);
    return () => removeEventListener(TOKEN_REFUSED, ask);
  }, []);
  const title = titleOf(view.parts || []);
  useEffect(() => {
    document.title = plain(title);
  }, [title]);
  return html`<div class="frame" onClick=${(event) => followed(event, go)}>
    <a class="skip" href="#main">Skip to the content</a>
    <header>
      <nav aria-label="Place">
        <a class="home" href=${ROOT}>Heron</a>
        ${view.parts && view.parts.length > 1 && html`<span aria-hidden="true"> / </span><span>${view.parts[0]}</span><span aria-hidden="true"> / </span><a href=${viewPath(view.parts[0], view.parts[1])}>${view.parts[1]}</a>`}
      </nav>
      <${Theme} />
    </header>
    <main id="main" tabindex="-1">${error ? html`<${Broken} error=${error} />` : content(view, go, refused)}</main>
  </div>`;
}

// What tells the tabs of a browser apart: the view first, such as "task 3 – words – Heron".
function titleOf([, topology, view = "graph", ...rest]) {
  return topology ? [[view, ...rest].join(" "), topology, "Heron"].join(" – ") : "Topologies – Heron";
}

function content({ parts, query }, go, refused) {
  if (!hasToken()) return html`<${TokenForm} refused=${refused} />`;
  if (parts && parts.length === 0) return html`<${TopologiesPage} />`;
  if (parts && parts.length > 1) {
    const [cluster, topology, view = "graph", ...rest] = parts;
    return html`<${TopologyPage} key=${`${cluster}/${topology}`} ...${{ cluster, topology, view, rest, query, go }} />`;
  }
  return html`<h1>There is no such page</h1><p><a href=${ROOT}>All topologies</a></p>`;
}

function TokenForm({ refused }) {
  const [text, setText] = useState("");
  return html`<h1>This address needs its token</h1>
    ${refused && html`<p class="notice bad" role="alert">The server does not accept the token that you gave.</p>`}
    <form
      onSubmit=${(event) => {
        event.preventDefault();
        setToken(text.trim());
        location.reload();
      }}
    >
      <label class="choice">Token
        <input type="password" autocomplete="off" required value=${text} onInput=${(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="submit">Show the pages</button>
      <p>It is the token of <code>--token-file</code> or <code>--token-env</code>. It stays in this tab.</p>
    </form>`;
}

function Broken({ error }) {
  return html`<h1>This view has failed</h1>
    <p class="notice bad" role="alert">${String(error)}</p>
    <p><a href=${ROOT}>All topologies</a></p>`;
}

function Theme() {
  const [theme, setTheme] = useState(localStorage.getItem(THEME_KEY) || "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME_KEY, theme);
  }, [theme]);
  return html`<div class="tools">
    ${NEEDS_TOKEN && hasToken() && html`<button type="button" onClick=${() => { forgetToken(); location.reload(); }}>Forget the token</button>`}
    <label class="choice">Colours
      <select value=${theme} onChange=${(event) => setTheme(event.currentTarget.value)}>
        ${THEMES.map((each) => html`<option key=${each} value=${each} selected=${each === theme}>${each}</option>`)}
      </select>
    </label>
  </div>`;
}

const place = document.getElementById("app");
place.textContent = "";
render(html`<${App} />`, place);
