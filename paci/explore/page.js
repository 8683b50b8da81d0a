"use strict";
const DEFAULTS = {
  schedule: "paci", other: "1f1b-flush", ranks: 4, window: 4, microbatches: 16, slack: 0,
  forward: 1, backward: 2, update: 0, transfer: 0, jitter: 0, seed: 0,
};
const GUTTER = 52, ROW = 26, GAP = 3, TITLE = 26, AXIS = 26, BETWEEN = 14;
const MEANING = {
  F: "forward", B: "backward", I: "gradient of the input", W: "gradient of the weights",
};
const byId = (id) => document.getElementById(id);
const form = byId("controls"), canvas = byId("canvas"), scroller = byId("scroller"), tip = byId("tip");
const paint = canvas.getContext("2d");
let settings, panels = [], scale = 10, fitted = true, chosen = null;

// ---------------------------------------------------------------- settings

function fill(name, choices, text = String) {
  for (const choice of choices) form[name].add(new Option(text(choice), choice));
}

function read() {
  const read = {};
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const given = form[name].value;
    read[name] = typeof value === "number" ? Number(given) : given;
  }
  return read;
}

function write(values) {
  for (const [name, value] of Object.entries(values)) {
    if (!(name in DEFAULTS)) continue;
    const before = form[name].value;
    form[name].value = value;
    if (form[name].value === "") form[name].value = before;
  }
}

function keepSizesPossible() {
  for (const option of form.microbatches.options)
    option.disabled = option.value % form.window.value !== 0;
  if (form.microbatches.selectedOptions[0].disabled)
    form.microbatches.value = [...form.microbatches.options].find((o) => !o.disabled).value;
  const isSlack = [form.schedule.value, form.other.value].some((name) => isAsynchronous(name));
  form.slack.disabled = !isSlack;
  form.slack.closest("label").classList.toggle("off", !isSlack);
  for (const range of form.querySelectorAll("input[type=range]")) {
    const { name, value } = range;
    range.closest("label").querySelector("output").value =
      name === "jitter" ? (value > 0 ? `± ${Math.round(100 * value)} %` : "none") : value;
  }
}

const isAsynchronous = (name) => name in DATA.schedules && !DATA.schedules[name].flushes;

// ---------------------------------------------------------------- simulation

/** One schedule with the settings: its rows and numbers, or why it refuses. */
function panel(name) {
  const { ranks, window: wanted, slack, microbatches, seed, ...cost } = settings;
  const { stages_per_rank: share, orders } = DATA.schedules[name];
  const a = name === "async-1f1b" ? 1 : wanted;
  const symbol = orders ? "m" : "a";
  const title = `${name}, ${symbol} = ${a}` + (!orders && slack ? `, slack = ${slack}` : "");
  const order = orders && orders[`${ranks}/${a}`];
  if (typeof order === "string") return { name, title, refused: order, ranks };
  const rule = order ? orderRule(order, a, microbatches) : paciRule(ranks, a, slack);
  const ownCost = { ...cost, forward: cost.forward / share, backward: cost.backward / share,
    update: cost.update / share };
  const rows = simulate(rule, microbatches, durations(ownCost, ranks * share, microbatches, seed));
  const bound = Array.from({ length: ranks }, (_, i) =>
    orders ? 0 : Math.ceil((ranks - 1 - i + (i < ranks - 1 ? slack : 0)) / a));
  const first = rule.placement.map((own) => own[0]);
  return { name, title, rows, ranks, share, first, bound, isSplit: rows.some((r) => r.kind === "W"),
    ...measured(rows, rule) };
}

function update() {
  keepSizesPossible();
  settings = read();
  const names = [...new Set([settings.schedule, settings.other])].filter((name) => name !== "none");
  panels = names.map(panel);
  let top = 0;
  for (const each of panels) {
    each.top = top + TITLE;
    top = each.top + (each.refused ? 1 : each.ranks) * ROW + BETWEEN;
  }
  chosen = null;
  tip.hidden = true;
  const changed = Object.entries(settings).filter(([name, value]) => value !== DEFAULTS[name]);
  history.replaceState(null, "", "#" + new URLSearchParams(changed));
  numbers();
  legend();
  resize();
}

// ---------------------------------------------------------------- numbers

function numbers() {
  const text = (value) => (value >= 100 ? value.toFixed(0) : value.toFixed(1));
  byId("numbers").innerHTML = panels.map((p) => {
    if (p.refused) return `<article><h2>${p.title}</h2><p class="refused">${p.refused}</p></article>`;
    const bound = p.bound[0] ? ` <small>bound ${Math.max(...p.bound)}</small>` : "";
    const cells = [
      ["Busy", `${(100 * p.utilization).toFixed(0)} <small>%</small>`],
      ["Time", text(p.makespan)],
      ["Largest drift", `${Math.max(...p.drift)}${bound}`],
      ["Most in flight", Math.max(...p.peak)],
    ];
    const list = cells.map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`);
    return `<article><h2>${p.title}</h2><dl>${list.join("")}</dl></article>`;
  }).join("");
  const [one, other] = panels;
  const notes = [];
  if (other && !one.refused && !other.refused) {
    const ratio = other.makespan / one.makespan;
    const speed = ratio >= 1 ? `is done ${ratio.toFixed(2)} times as fast as`
      : `takes ${(1 / ratio).toFixed(2)} times as long as`;
    notes.push(`${one.title} ${speed} ${other.title}, over ${settings.microbatches} micro-batches.`);
  }
  if (panels.some((p) => !p.refused && DATA.schedules[p.name].orders))
    notes.push("A schedule that flushes keeps the order that it takes at forward 1, backward 2.");
  if (panels.some((p) => p.share > 1))
    notes.push("Two stages on a rank take half of its times each, and count as two in flight.");
  byId("note").textContent = notes.join(" ");
  canvas.setAttribute("aria-label", panels.map((p) => p.title).join("; ") + ": timelines");
}

function legend() {
  const most = Math.max(0, ...panels.flatMap((p) => p.drift ?? []));
  const items = [["forward", "var(--forward)"]];
  for (let d = 0; d <= Math.min(most, 4); d++)
    items.push([d ? `drift ${d}${d === 4 && most > 4 ? "+" : ""}` : "backward", `var(--d${d})`]);
  if (panels.some((p) => p.isSplit)) items.push(["weight gradient", "var(--weight)"]);
  if (panels.some((p) => p.share > 1))
    items.push(["second stage", "linear-gradient(var(--forward) 75%, var(--soft) 75%)"]);
  byId("legend").innerHTML = items
    .map(([name, colour]) => `<li><i style="background:${colour}"></i>${name}</li>`).join("")
    + `<li><i class="update" style="background:var(--update)"></i>update</li>`;
}

// ---------------------------------------------------------------- drawing

const longest = () => Math.max(1, ...panels.map((p) => p.makespan ?? 0));
const height = () => {
  const last = panels.at(-1);
  return last.top + (last.refused ? 1 : last.ranks) * ROW + AXIS;
};

function resize() {
  const width = scroller.clientWidth;
  const fit = (width - GUTTER - 10) / longest();
  // A phone begins where numbers can be read, and scrolls.
  const share = Math.max(1, ...panels.map((p) => p.share ?? 1));
  const shortest = Math.min(settings.forward, settings.backward / 2) / share;
  if (fitted) scale = Math.max(fit, width < 600 ? 13 / shortest : 0);
  byId("space").style.width = `${Math.max(width, GUTTER + 10 + longest() * scale)}px`;
  const density = window.devicePixelRatio || 1;
  canvas.width = width * density;
  canvas.height = height() * density;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height()}px`;
  draw();
}

function draw() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const density = window.devicePixelRatio || 1, width = canvas.width / density;
  const left = scroller.scrollLeft;
  const x = (time) => GUTTER + time * scale - left;
  paint.setTransform(density, 0, 0, density, 0, 0);
  paint.clearRect(0, 0, width, height());
  paint.textBaseline = "middle";
  const family = style.fontFamily;
  for (const p of panels) {
    if (p.refused) {
      paint.font = `13px ${family}`;
      paint.fillStyle = colour("soft");
      paint.fillText("not for these sizes: see below", 0, p.top + ROW / 2);
    } else drawRows(p, x, width, colour, family);
    paint.font = `600 14px ${family}`;
    paint.fillStyle = colour("ink");
    paint.fillText(p.title, 0, p.top - TITLE / 2);
  }
  drawAxis(x, width, colour, family);
}

function drawRows(p, x, width, colour, family) {
  paint.save();
  paint.beginPath();
  paint.rect(GUTTER, p.top, width - GUTTER, p.ranks * ROW);
  paint.clip();
  paint.fillStyle = colour("idle");
  for (let rank = 0; rank < p.ranks; rank++) {
    const from = x(0), to = x(p.makespan);
    paint.fillRect(from, p.top + rank * ROW, to - from, ROW - GAP);
  }
  const follows = chosen && chosen.row;
  for (const row of p.rows) {
    const from = x(row.start), to = x(row.end);
    if (to < GUTTER || from > width) continue;
    const y = p.top + row.rank * ROW, h = ROW - GAP, w = Math.max(1, to - from - 1);
    const isChosen = follows && chosen.panel === p && row.microbatch === follows.microbatch;
    paint.globalAlpha = follows && !isChosen ? 0.32 : 1;
    const shade = Math.min(row.drift, 4);
    paint.fillStyle = colour(row.kind === "F" ? "forward" : row.kind === "W" ? "weight" : `d${shade}`);
    paint.beginPath();
    paint.roundRect(from, y, w, h, Math.min(3, w / 4));
    paint.fill();
    if (row.stage !== p.first[row.rank]) {
      paint.fillStyle = colour("soft");
      paint.fillRect(from, y + h - 3, w, 3);
    }
    // A number says what no colour does; where there is no room it is left out.
    paint.font = `10.5px ${family}`;
    const label = String(row.microbatch), long = `${label} Δ${row.drift}`;
    const fits = (text) => paint.measureText(text).width + 2 <= w;
    const text = row.drift && row.kind !== "W" && fits(long) ? long : fits(label) ? label : "";
    if (text) {
      paint.fillStyle = colour(row.kind !== "F" && row.kind !== "W" && shade > 1 ? "on-dark" : "on-light");
      paint.textAlign = "center";
      paint.fillText(text, from + w / 2, y + h / 2 + 0.5);
    }
    if (row.updates) {
      paint.fillStyle = colour("update");
      paint.fillRect(to - 2.5, y - 1, 2.5, h + 2);
    }
    if (isChosen) {
      paint.strokeStyle = colour("mark");
      paint.lineWidth = row === follows ? 3 : 1.5;
      paint.strokeRect(from + 1, y + 1, Math.max(1, w - 2), h - 2);
    }
    paint.globalAlpha = 1;
  }
  paint.restore();
  paint.textAlign = "left";
  paint.font = `12px ${family}`;
  paint.fillStyle = colour("soft");
  for (let rank = 0; rank < p.ranks; rank++)
    paint.fillText(`rank ${rank}`, 0, p.top + rank * ROW + (ROW - GAP) / 2);
}

function drawAxis(x, width, colour, family) {
  const y = height() - AXIS + 4;
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((each) => each * scale >= 56) ?? 1000;
  paint.font = `12px ${family}`;
  paint.fillStyle = paint.strokeStyle = colour("soft");
  paint.lineWidth = 1;
  paint.textAlign = "center";
  paint.textBaseline = "middle";
  for (let time = 0; time <= longest() + step; time += step) {
    const at = Math.round(x(time)) + 0.5;
    if (at < GUTTER || at > width - 6) continue;
    paint.beginPath();
    paint.moveTo(at, y - 2);
    paint.lineTo(at, y + 3);
    paint.stroke();
    paint.fillText(time, at, y + 12);
  }
  paint.textAlign = "left";
  paint.fillText("time", 0, y + 12);
}

// ---------------------------------------------------------------- pointing

function at(clientX, clientY) {
  const box = canvas.getBoundingClientRect();
  const time = (clientX - box.left - GUTTER + scroller.scrollLeft) / scale;
  const y = clientY - box.top;
  const p = panels.find((each) => !each.refused && y >= each.top && y < each.top + each.ranks * ROW);
  if (!p || clientX - box.left < GUTTER) return null;
  const rank = Math.floor((y - p.top) / ROW);
  const row = p.rows.find((each) => each.rank === rank && each.start <= time && time < each.end);
  return row ? { panel: p, row } : null;
}

function choose(found) {
  chosen = found;
  draw();
  if (!found) return void (tip.hidden = true);
  const { row, panel: p } = found;
  const number = (value) => Number(value.toFixed(2));
  const lines = [
    `rank ${row.rank}` + (p.share > 1 ? `, stage ${row.stage}` : "")
      + `, time ${number(row.start)} to ${number(row.end)}`,
    row.kind === "F" ? `weights of version ${row.version}`
      : `weights of version ${row.version}, in its forward ${row.seen}`,
  ];
  if (row.kind !== "F" && row.kind !== "W") lines.push(`drift ${row.drift}`
    + (p.bound[0] ? `, at most ${p.bound[row.rank]} at this rank` : ""));
  if (row.updates) lines.push("then the stage updates");
  tip.innerHTML = `<b>${row.stage}${row.kind}${row.microbatch}: ${MEANING[row.kind]} of micro-batch `
    + `${row.microbatch}</b>` + lines.join("<br>");
  tip.hidden = false;
  const box = canvas.getBoundingClientRect();
  const middle = box.left + GUTTER + ((row.start + row.end) / 2) * scale - scroller.scrollLeft;
  const top = box.top + p.top + row.rank * ROW;
  const left = Math.min(Math.max(8, middle - tip.offsetWidth / 2), innerWidth - tip.offsetWidth - 8);
  const above = top - tip.offsetHeight - 10;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : top + ROW + 8}px`;
}

function step(key) {
  const { panel: p, row } = chosen ?? { panel: panels.find((each) => each.rows) };
  if (!p) return;
  const of = (rank) => p.rows.filter((each) => each.rank === rank);
  if (!row) return choose({ panel: p, row: of(0)[0] });
  const own = of(row.rank), place = own.indexOf(row);
  const sideways = { ArrowLeft: -1, ArrowRight: 1 }[key];
  const rank = row.rank + ({ ArrowUp: -1, ArrowDown: 1 }[key] ?? 0);
  const next = sideways ? own[place + sideways]
    : of(rank).find((each) => each.microbatch === row.microbatch && each.kind === row.kind);
  if (!next) return;
  const x = GUTTER + next.start * scale - scroller.scrollLeft;
  if (x < GUTTER || x > scroller.clientWidth - 40)
    scroller.scrollLeft = next.start * scale - scroller.clientWidth / 3;
  choose({ panel: p, row: next });
}

function zoom(way) {
  const middle = (scroller.scrollLeft + (scroller.clientWidth - GUTTER) / 2) / scale;
  fitted = false;
  if (way === "fit") scale = (scroller.clientWidth - GUTTER - 10) / longest();
  else scale = Math.min(200, Math.max(1, scale * (way === "in" ? 1.5 : 1 / 1.5)));
  choose(null);
  resize();
  scroller.scrollLeft = middle * scale - (scroller.clientWidth - GUTTER) / 2;
}

// ---------------------------------------------------------------- start

const names = Object.keys(DATA.schedules);
const ordered = [...names.filter(isAsynchronous), ...names.filter((n) => !isAsynchronous(n))];
fill("schedule", ordered);
fill("other", [...ordered, "none"]);
fill("ranks", DATA.ranks);
fill("window", DATA.windows);
fill("microbatches", DATA.windows.filter((n) => n >= 4 && n <= DATA.microbatches));
write(DEFAULTS);
write(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
byId("times").open = innerWidth > 900;

form.addEventListener("input", update);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", (event) => {
  event.preventDefault();
  fitted = true;
  write(DEFAULTS);
  update();
});
canvas.addEventListener("pointermove", (event) => {
  if (event.pointerType !== "touch") choose(at(event.clientX, event.clientY));
});
canvas.addEventListener("pointerleave", (event) => {
  if (event.pointerType !== "touch") choose(null);
});
canvas.addEventListener("click", (event) => choose(at(event.clientX, event.clientY)));
canvas.addEventListener("keydown", (event) => {
  if (event.key === "Escape") choose(null);
  else if (event.key.startsWith("Arrow")) {
    event.preventDefault();
    step(event.key);
  }
});
byId("zoom").addEventListener("click", (event) => {
  if (event.target.dataset.zoom) zoom(event.target.dataset.zoom);
});
scroller.addEventListener("scroll", () => {
  tip.hidden = true;
  draw();
});
window.addEventListener("resize", resize);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
update();
