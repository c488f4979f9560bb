// Live pages: htmx streams the region #live. This script keeps the indicator truthful, lets
// the reader pause, and polls if streams do not get through.
(() => {
  "use strict";

  const pollEvery = 5000;
  const tryStreamEvery = 30000;
  const failuresBeforePolling = 3;
  // The server sends at least a sign of life every 15 seconds.
  const lookForSilenceEvery = 5000;
  const silentFor = 40000;
  const words = {
    connecting: "Connecting", live: "Live", reconnecting: "Reconnecting",
    polling: "Polling", paused: "Paused", ended: "Signed out", away: "Not connected",
  };

  let state = "connecting";
  let failures = 0;
  let connection = null;
  let heardAt = 0;
  let pollTimer = 0;
  let streamTimer = 0;
  // The time of the last contact with the server, while there is none.
  let lostAt = 0;

  const region = () => document.getElementById("live");

  function word(next) {
    if (next !== "away") return words[next];
    return `Not connected since ${new Date(lostAt).toLocaleTimeString([], { hourCycle: "h23", timeZone: window.consoleZone })}`;
  }

  function show(next) {
    state = next;
    for (const button of document.querySelectorAll("live-status button")) {
      button.dataset.state = next;
      button.querySelector(".live-word").textContent = word(next);
    }
  }

  // After a failed poll, show since when there was no contact: the page is that old.
  function lost() {
    if (state === "paused" || state === "ended") return;
    startPolling();
    if (!lostAt) {
      lostAt = heardAt || Date.now();
      window.consoleToast("Not connected: this page is not up to date");
    }
    show("away");
  }

  function found() {
    lostAt = 0;
    heardAt = Date.now();
    if (state === "away") show("polling");
  }

  function stream() {
    const element = region();
    const address = element?.getAttribute("hx-sse:connect");
    if (address && window.htmx) window.htmx.ajax("GET", address, { source: element });
  }

  function stopPolling() {
    clearInterval(pollTimer);
    clearInterval(streamTimer);
    pollTimer = streamTimer = 0;
  }

  function startPolling() {
    if (pollTimer || state === "paused" || state === "ended") return;
    show("polling");
    pollTimer = setInterval(() => {
      const element = region();
      if (document.hidden || !element?.dataset.poll) return;
      window.htmx.ajax("GET", element.dataset.poll, {
        source: element, target: element, swap: "innerMorph",
        headers: { "X-Poll": "true" }, // not a user action: the session keeps idling
      });
    }, pollEvery);
    streamTimer = setInterval(stream, tryStreamEvery);
  }

  function pause() {
    show("paused");
    stopPolling();
    connection?.reader?.cancel();
    connection?.delayCanceller?.();
  }

  function toggle() {
    if (state === "ended") return window.location.reload();
    if (state !== "paused") return pause();
    show("connecting");
    failures = 0;
    stream();
  }

  const own = (event) => event.target === region();

  document.addEventListener("htmx:sse:before:connection", (event) => {
    if (own(event) && state === "paused") event.preventDefault();
  });
  document.addEventListener("htmx:sse:after:connection", (event) => {
    if (!own(event)) return;
    connection = event.detail.connection;
    heardAt = Date.now();
    failures = lostAt = 0;
    stopPolling();
    if (state !== "paused") show("live");
  });
  document.addEventListener("htmx:sse:before:message", (event) => {
    if (own(event)) heardAt = Date.now();
  });
  // A connection that died silently never reports an error.
  setInterval(() => {
    if (state !== "live" || document.hidden || Date.now() - heardAt < silentFor) return;
    show("reconnecting");
    connection.reader?.cancel();
  }, lookForSilenceEvery);
  // If htmx gives up a connection for good, it will not reconnect: poll.
  document.addEventListener("htmx:sse:close", (event) => {
    if (own(event) && event.detail.connection === connection && event.detail.reason !== "removed") startPolling();
  });
  document.addEventListener("htmx:sse:error", (event) => {
    if (!own(event) || state === "paused") return;
    if (event.detail.status === 401) return ended();
    failures += 1;
    if (failures >= failuresBeforePolling) lost();
    else if (!pollTimer) show("reconnecting");
  });
  // The first request of a stream fails like any other request.
  document.addEventListener("htmx:response:error", (event) => {
    if (!own(event)) return;
    if (event.detail.ctx.response.status === 401) ended();
    else lost();
  });
  document.addEventListener("htmx:error", (event) => {
    if (own(event)) lost();
  });
  document.addEventListener("htmx:after:swap", (event) => {
    if (own(event)) {
      if (pollTimer) found();
    } else if (state === "live" && region()?.contains(event.detail.ctx.target)) {
      // The answer to an action may be older than the latest stream message, and the stream
      // does not repeat itself. A new stream starts with the current state.
      connection.reader?.cancel();
    }
  });

  function ended() {
    stopPolling();
    connection?.reader?.cancel();
    show("ended");
  }

  class LiveStatus extends HTMLElement {
    connectedCallback() {
      this.querySelector("button").addEventListener("click", toggle);
      show(window.htmx ? state : "paused");
    }
  }
  customElements.define("live-status", LiveStatus);
  window.consoleLive = { toggle };

  // Rows that arrive while the page is open are highlighted for a moment.
  const arrivals = new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) {
        if (node.matches?.("tr[id]")) node.classList.add("is-new");
      }
    }
  });
  document.addEventListener("DOMContentLoaded", () => {
    const element = region();
    if (element) arrivals.observe(element, { childList: true, subtree: true });
  });
})();
