"use strict";
// The simulated clock of paci (paci/simulation/event_loop.py, paci/cost.py, paci/draws.py).
// Its times are those of paci.simulate to the last bit; tests/paci/explore compares them.

const KINDS = "FBIW";
const M32 = 0xffffffffn, M64 = (1n << 64n) - 1n, M128 = (1n << 128n) - 1n;

/** Uniform numbers from [-1, 1): numpy's default_rng(key).uniform(-1, 1, count). */
function uniform(key, count) {
  const words = seedWords(key, 8).map(BigInt);
  const join = (i) =>
    (((words[i + 1] << 32n) | words[i]) << 64n) | (words[i + 3] << 32n) | words[i + 2];
  const multiplier = 0x2360ed051fc65da44385df649fccf645n;
  const increment = ((join(4) << 1n) | 1n) & M128;
  let state = ((increment + join(0)) * multiplier + increment) & M128;
  const drawn = [];
  for (let n = 0; n < count; n++) {
    state = (state * multiplier + increment) & M128;
    const mixed = (state >> 64n) ^ (state & M64), turn = state >> 122n;
    const bits = ((mixed >> turn) | (mixed << (-turn & 63n))) & M64;
    drawn.push(-1 + 2 * (Number(bits >> 11n) * 2 ** -53));
  }
  return drawn;
}

/** Words of 32 bits from a key of such words: numpy's SeedSequence. */
function seedWords(key, count) {
  let constant = 0x43b0d7e5;
  const hashed = (value) => {
    value = (value ^ constant) >>> 0;
    constant = Math.imul(constant, 0x931e8875) >>> 0;
    value = Math.imul(value, constant) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  };
  const mixed = (x, y) => {
    const result = (Math.imul(x, 0xca01f9dd) - Math.imul(y, 0x4973f715)) >>> 0;
    return (result ^ (result >>> 16)) >>> 0;
  };
  const pool = [0, 1, 2, 3].map((i) => hashed(key[i] ?? 0));
  for (let from = 0; from < 4; from++)
    for (let to = 0; to < 4; to++)
      if (from !== to) pool[to] = mixed(pool[to], hashed(pool[from]));
  constant = 0x8b51f9dd;
  return Array.from({ length: count }, (_, i) => {
    let value = (pool[i % 4] ^ constant) >>> 0;
    constant = Math.imul(constant, 0x58f38ded) >>> 0;
    value = Math.imul(value, constant) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  });
}

/** Times of every action, on the binary grid of paci.cost.Durations. */
function durations(cost, stages, microbatches, seed) {
  const { forward, backward, update, transfer, jitter } = cost;
  const weight = cost.weight ?? backward / 2, input = backward - weight;
  const longest = Math.max(forward, backward, weight, input, update, transfer) * (1 + jitter);
  let exponent = Math.floor(Math.log2(longest)) + 1;
  while (2 ** exponent <= longest) exponent++;
  while (2 ** (exponent - 1) > longest) exponent--;
  const tick = 2 ** (exponent - 34), whole = 1.5 * 2 ** 52;
  const ticks = (time) => time / tick + whole - whole; // half to even
  const of = {};
  [forward, backward, input, weight].forEach((time, kind) => {
    of[KINDS[kind]] = Array.from({ length: stages }, (_, stage) =>
      jitter
        ? uniform([seed, stage, kind], microbatches).map(
            (u) => (ticks(time * (1 + jitter * u)) || 1) * tick)
        : Array(microbatches).fill(Math.max(1, ticks(time)) * tick));
  });
  return { of, update: ticks(update) * tick, transfer: ticks(transfer) * tick };
}

/** PACI's rule: a backward if its gradient is here, else a forward if few enough are in flight. */
function paciRule(stages, accumulation, slack) {
  return {
    stages, accumulation,
    placement: Array.from({ length: stages }, (_, i) => [i]),
    next([view]) {
      if (view.gradients > view.backwards) return [view, "B"];
      const limit = stages - view.index + (view.isLast ? 0 : slack);
      return view.inputs > view.forwards && view.forwards - view.weights < limit
        ? [view, "F"] : null;
    },
  };
}

/** A recorded order, without what is beyond `microbatches`. */
function orderRule({ placement, letters }, accumulation, microbatches) {
  const orders = letters.map(([text, times], rank) => {
    const views = placement[rank].map(() => ({ F: 0, backwards: 0, W: 0 }));
    return [...text.repeat(times)]
      .map((letter) => {
        const kind = letter.toUpperCase(), place = letter === kind ? 0 : 1, view = views[place];
        const counter = kind === "B" || kind === "I" ? "backwards" : kind;
        const microbatch = view[counter]++;
        if (kind === "B") view.W++;
        return { stage: placement[rank][place], kind, microbatch };
      })
      .filter((action) => action.microbatch < microbatches);
  });
  const done = orders.map(() => 0);
  return {
    stages: placement.flat().length, accumulation, placement,
    next(views, rank) {
      const action = orders[rank][done[rank]];
      const view = action && views.find((each) => each.index === action.stage);
      if (!view || !isReady(view, action.kind)) return null;
      done[rank]++;
      return [view, action.kind];
    },
  };
}

function isReady(view, kind) {
  if (kind === "F") return view.inputs > view.forwards;
  return kind === "W" ? view.backwards > view.weights : view.gradients > view.backwards;
}

/** All actions of a rule: {rank, stage, kind, microbatch, start, end, version, drift, seen}. */
function simulate(rule, microbatches, times) {
  const { stages: N, accumulation: a, placement } = rule;
  const views = Array.from({ length: N }, (_, index) => ({
    index, isLast: index === N - 1,
    inputs: 0, gradients: 0, forwards: 0, backwards: 0, weights: 0,
  }));
  const viewsOf = placement.map((own) => own.map((stage) => views[stage]));
  const rankOf = [];
  placement.forEach((own, rank) => own.forEach((stage) => (rankOf[stage] = rank)));
  const idle = placement.map(() => true), rows = [], agenda = new Agenda();
  const seen = Array.from({ length: N }, () => []);
  views[0].inputs = microbatches;
  let now = 0, toDecide = placement.map((_, rank) => rank);
  for (;;) {
    for (const rank of toDecide) {
      const choice = idle[rank] && rule.next(viewsOf[rank], rank);
      if (!choice) continue;
      const [view, kind] = choice, stage = view.index;
      const microbatch =
        kind === "F" ? view.forwards : kind === "W" ? view.weights : view.backwards;
      const receiver = kind === "F" ? stage + 1 : stage - 1;
      const sends = kind !== "W" && receiver >= 0 && receiver < N;
      const done = now + times.of[kind][stage][microbatch];
      const updates = (kind === "B" || kind === "W") && (view.weights + 1) % a === 0;
      const end = updates ? done + times.update : done;
      idle[rank] = false;
      const version = Math.floor(view.weights / a);
      if (kind === "F") seen[stage][microbatch] = version;
      rows.push({
        rank, stage, kind, microbatch, start: now, end, version, updates,
        seen: seen[stage][microbatch],
        drift: kind === "F" ? 0 : version - seen[stage][microbatch],
      });
      agenda.push(end, () => {
        if (kind === "F") {
          view.forwards++;
          if (view.isLast) view.gradients++;
        } else {
          if (kind !== "W") view.backwards++;
          if (kind !== "I") view.weights++;
        }
        idle[rank] = true;
        return rank;
      });
      if (sends) {
        const away = rankOf[receiver] !== rank;
        agenda.push(away ? done + times.transfer : done, () => {
          if (kind === "F") views[receiver].inputs++;
          else views[receiver].gradients++;
          return rankOf[receiver];
        });
      }
    }
    if (!agenda.size) return rows;
    now = agenda.first;
    toDecide = [];
    while (agenda.size && agenda.first === now) toDecide.push(agenda.pop()());
  }
}

/** A heap of events by time. */
class Agenda {
  #heap = [];
  get size() { return this.#heap.length; }
  get first() { return this.#heap[0][0]; }
  push(time, event) {
    const heap = this.#heap;
    let i = heap.push([time, event]) - 1;
    for (let up; i && heap[(up = (i - 1) >> 1)][0] > time; i = up)
      [heap[i], heap[up]] = [heap[up], heap[i]];
  }
  pop() {
    const heap = this.#heap, [, event] = heap[0], last = heap.pop();
    if (heap.length) {
      heap[0] = last;
      for (let i = 0, down; (down = 2 * i + 1) < heap.length; i = down) {
        if (down + 1 < heap.length && heap[down + 1][0] < heap[down][0]) down++;
        if (heap[down][0] >= heap[i][0]) break;
        [heap[i], heap[down]] = [heap[down], heap[i]];
      }
    }
    return event;
  }
}

/** What follows from the rows, by rank and in all. */
function measured(rows, rule) {
  const ranks = rule.placement.length;
  const busy = Array(ranks).fill(0), inFlight = Array(ranks).fill(0);
  const peak = Array(ranks).fill(0), drift = Array(ranks).fill(0);
  for (const row of rows) { // in the order of their starts
    busy[row.rank] += row.end - row.start;
    if (row.kind === "F") peak[row.rank] = Math.max(peak[row.rank], ++inFlight[row.rank]);
    if (row.kind === "B" || row.kind === "W") inFlight[row.rank]--;
    drift[row.rank] = Math.max(drift[row.rank], row.kind === "W" ? 0 : row.drift);
  }
  const makespan = Math.max(...rows.map((row) => row.end));
  return { makespan, busy, peak, drift, utilization: Math.max(...busy) / makespan };
}
