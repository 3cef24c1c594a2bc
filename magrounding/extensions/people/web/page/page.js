// The page: lobby, game and replay. It talks to the server by one websocket; see docs/server.md for the messages.
import {drawBoard, label} from "/file/board.js";

const at = id => document.getElementById(id);
const FEW = 12;  // moves that each have a key; more are chosen from a list
const LISTED = 80;  // of them, how many are shown at once
const FIRST = 3;  // options that are shown without being asked for
const QUICK = {env: "ma_rtfm", options: {stage: "s5", agents: 2}, players: ["human", "pretrained:ma_rtfm-s5-2agents"], seed: null, pace: 0};
const WORLDS = {  // names of worlds, beside their ids
  rtfm: "RTFM: monsters, weapons, a manual", ma_rtfm: "RTFM for several agents", rock_paper_scissors: "Rock, paper, scissors",
  messenger: "Messenger: carry a message", ma_messenger: "Messenger for several agents", babyai: "BabyAI: follow an instruction", alfworld: "ALFWorld: housework in words",
  scienceworld: "ScienceWorld: experiments in words", nethack: "NetHack: a dungeon", touchdown: "Touchdown: walk through a city",
};
const PLAYERS = {human: "a person", random: "random moves", oracle: "the oracle: a script that knows all"};
const playerName = name => PLAYERS[name] ?? name.replace("pretrained:", "trained team ");
const worldName = env => WORLDS[env] ? `${WORLDS[env]} (${env})` : env;
const OPTIONS = {max_cycles: "steps at most", split: "set of games"};
const ARROWS = {ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right"};
const SIGNS = {up: "↑", down: "↓", left: "←", right: "→"};

export const state = {
  code: "", game: null, frames: [], shown: 0, mine: [], token: null, status: {}, chosen: {}, keys: {}, live: true, over: false,
  socket: null, tries: 0, timer: 0, ref: 0, gone: false, clockEnd: 0, onFinish: null, onJoined: null, onRefused: null,
};

export function make(name, content, attributes = {}) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made[key] = value;
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...[content].flat().filter(each => each !== null && each !== undefined));
  return made;
}

export function say(text) { if (at("status").textContent !== text) at("status").textContent = text; }
export function complain(text) { at("error").textContent = text ?? ""; }

export function show(section) {
  for (const id of ["lobby", "game", "study"]) at(id).hidden = id !== section;
}

export async function ask(path, options) {
  const response = await fetch(path, options), answer = await response.json();
  if (!response.ok) throw new Error(answer.sentence ?? answer.code);
  return answer;
}

// ---------------------------------------------------------------- the websocket

export function connect() {
  return new Promise(resolve => {
    const socket = state.socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket`);
    socket.onopen = () => { state.tries = 0; complain(); resolve(); };
    socket.onmessage = event => hear(JSON.parse(event.data));
    socket.onerror = () => complain("The server takes no connection now. Wait a minute, and try again.");
    socket.onclose = () => { if (state.socket === socket && state.code && !state.gone) again(); };
  });
}

function again() {
  say("The connection is lost; trying again …");
  setTimeout(async () => {
    await connect();
    if (state.code) send({type: "join", code: state.code, agent: state.token ? state.mine[0] : state.watch ? -1 : null, token: state.token});
  }, Math.min(8000, 400 * 2 ** state.tries++));
}

export function send(message) {
  if (state.socket?.readyState === WebSocket.OPEN) state.socket.send(JSON.stringify(message));
}

const HEARD = {
  created(message) {
    history.pushState(null, "", `/game/${message.code}`);
    enter(message.code);
  },
  joined(message) {
    const fresh = state.code !== message.code || !state.game;
    Object.assign(state, {code: message.code, game: message.game, mine: message.mine, token: message.token ?? state.token, pace: message.pace, standin: message.standin});
    if (message.token) {
      sessionStorage.setItem(`token:${state.code}`, message.token);
      localStorage.setItem(`token:${state.code}`, message.token);
    }
    if (fresh) state.frames = [];
    state.keys = keysOf(message.game.actions);
    at("where").textContent = `${worldName(message.game.env)} · ${state.mine.length ? `you are agent ${state.mine.join(" and ")}` : "you are watching"}`;
    at("link").value = `${location.origin}/game/${state.code}`;
    at("saved").href = `/game/${state.code}/saved`;
    show("game");
    at("making").textContent = "";
    complain();
    state.onJoined?.();
  },
  frame(message) {
    if (message.step === 0) state.frames = [];
    const last = state.frames.length - 1, live = state.shown >= last;
    if (state.frames[last]?.step === message.step) state.frames[last] = message;
    else state.frames.push(message);
    state.chosen = {};
    if (message.step >= state.frames.length) fill();
    if (live || state.shown > state.frames.length - 1) state.shown = state.frames.length - 1;
    state.over = message.over;
    state.pictured = performance.now();
    refresh();
    if (message.over) state.onFinish?.(message);
  },
  status(message) {
    state.status = message;
    state.clockEnd = message.clock === null ? 0 : performance.now() + 1000 * message.clock;
    refreshStatus();
  },
  saved() { if (!state.onFinish) { at("saved").hidden = false; fill(); } },
  refused(message) {
    if (message.code === "no_game" && !state.onRefused) { state.gone = true; return lobby(message.sentence); }
    if (message.ref !== undefined) delete state.chosen[message.ref];
    at("making").textContent = "";
    complain(message.sentence);
    state.onRefused?.(message);
    refreshMoves();
  },
  displaced() { state.mine = []; complain("Your agent is played in another page of yours now."); refresh(); },
  closed(message) { state.gone = true; complain(message.sentence); },
};

function hear(message) { HEARD[message.type]?.(message); }
export function listen(kind, what) { HEARD[kind] = what; }

// Earlier frames of a game that was joined late, and what is known only afterwards.
async function fill() {
  const live = state.shown >= state.frames.length - 1;
  const {frames} = await ask(`/game/${state.code}/frames`).catch(() => ({frames: []}));
  const known = state.frames;
  state.frames = frames.map(frame => ({...frame, moves: known.find(each => each.step === frame.step)?.moves}));
  state.frames.push(...known.filter(each => each.step >= frames.length));
  state.shown = live ? state.frames.length - 1 : Math.min(state.shown, state.frames.length - 1);
  refresh();
}

// ---------------------------------------------------------------- the lobby

let offers = null;

export async function lobby(sentence = "") {
  state.code = "";
  show("lobby");
  at("where").textContent = "";
  complain(sentence);
  offers ??= await ask("/offers");
  at("env").replaceChildren(...offers.worlds.map(each => make("option", worldName(each.env), {value: each.env})));
  at("env").onchange = showOptions;
  const quick = offers.worlds.find(each => each.env === QUICK.env && QUICK.players.every(name => each.players.some(player => player.name === name))
    && Object.keys(QUICK.options).every(name => each.options.some(option => option.name === name)));
  at("now-part").hidden = !quick;
  if (quick) at("env").value = QUICK.env;
  showOptions();
  if (!quick) return;
  at("option-stage").value = JSON.stringify(QUICK.options.stage);
  at("player-1").value = QUICK.players[1];
}

const world = () => offers.worlds.find(each => each.env === at("env").value);

function showOptions() {
  const fields = world().options.map(option => {
    const id = `option-${option.name}`, name = OPTIONS[option.name] ?? option.name.replaceAll("_", " ");
    const field = option.values
      ? make("select", option.values.map(value => make("option", String(value), {value: JSON.stringify(value), selected: value === option.default})), {id})
      : make("input", [], {id, type: "number", min: option.least, max: option.most, value: option.default, placeholder: "its own"});
    if (option.name === "agents") field.onchange = showPlayers;
    return make("label", [name, " ", field]);
  });
  at("options").replaceChildren(...fields.slice(0, FIRST));
  at("more").replaceChildren(...fields.slice(FIRST));
  at("more-part").hidden = fields.length <= FIRST;
  showPlayers();
}

function showPlayers() {
  const agents = +(at("option-agents")?.value ?? 1) || 1, players = world().players;
  const fits = players.filter(each => each.agents === null || each.agents === agents);
  const ally = fits.find(each => each.name === "oracle") ?? fits.find(each => each.name === "random");
  at("players").replaceChildren(...Array.from({length: Math.min(agents, 16)}, (_, agent) => make("label", [
    `Agent ${agent} `,
    make("select", fits.map(each => make("option", playerName(each.name), {value: each.name, selected: each.name === (agent ? ally.name : "human")})), {id: `player-${agent}`}),
  ])));
}

async function create(event) {
  event.preventDefault();
  const options = {};
  for (const option of world().options) {
    const value = at(`option-${option.name}`).value;
    if (value !== "") options[option.name] = option.values ? JSON.parse(value) : +value;
  }
  const players = [...at("players").querySelectorAll("select")].map(each => each.value);
  const clock = at("new").elements.pace.value === "clock", seed = at("seed").value;
  begin({env: at("env").value, options, players, seed: seed === "" ? null : +seed, pace: clock ? +at("seconds").value : 0});
}

async function begin(game) {
  complain();
  at("making").textContent = "The game is being made. The first one takes some seconds.";
  if (state.socket?.readyState !== WebSocket.OPEN) await connect();
  send({type: "create", ...game});
}

export async function enter(code, agent = null) {
  Object.assign(state, {code, game: null, frames: [], shown: 0, mine: [], chosen: {}, gone: false, over: false, replay: false});
  state.token = sessionStorage.getItem(`token:${code}`);
  if (state.socket?.readyState !== WebSocket.OPEN) await connect();
  send({type: "join", code, agent, token: state.token ?? localStorage.getItem(`token:${code}`)});
}

// ---------------------------------------------------------------- moves

// A key for each move: the arrow of a direction, and the first letter of its name that none before has.
function keysOf(actions) {
  const keys = {};
  if (actions === null || actions.length > FEW) return keys;
  actions.forEach((name, action) => {
    const letter = (name.match(/[0-9]/g) ?? [...name.toLowerCase()]).find(each => /[a-z0-9]/.test(each) && !(each in keys));
    if (letter) keys[letter] = action;
    for (const [arrow, direction] of Object.entries(ARROWS)) if (name === direction) keys[arrow] = action;
  });
  if (!actions.includes("up") && actions.includes("forward"))
    Object.assign(keys, {ArrowUp: actions.indexOf("forward"), ArrowLeft: actions.indexOf("left"), ArrowRight: actions.indexOf("right")});
  return keys;
}

const now = () => state.frames[state.frames.length - 1];
const waitingFor = () => state.mine.filter(agent => now()?.moves?.[agent] && !(agent in state.chosen));
const turn = () => waitingFor()[0] ?? state.mine.find(agent => now()?.moves?.[agent]);
const firstTell = () => state.game.actions.length - state.game.tells;
const offered = agent => (now()?.moves?.[agent] ?? []).map(each => Array.isArray(each) ? each : [each, state.game.actions[each]]);

export function move(agent, action) {
  if (agent === undefined || state.over) return;
  complain();
  if (!state.status.begun) return complain("The game has not begun: not everybody is here yet.");
  if (state.status.thinking) return complain("The agents are thinking.");
  state.chosen[agent] = action;
  state.shown = state.frames.length - 1;
  send({type: "move", agent, step: now().step, action, ref: agent});
  refresh();
}

function onKey(event) {
  if (at("game").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.matches?.("input:not([type=checkbox]), select, textarea");
  const look = {PageUp: -1, PageDown: 1}[event.key];
  if (look) { event.preventDefault(); return lookAt(state.shown + look); }
  if (field) return;
  const action = state.keys[event.key.length === 1 ? event.key.toLowerCase() : event.key], agent = turn();
  if (action !== undefined && agent !== undefined && !state.over) {
    event.preventDefault();
    if (offered(agent).some(([each]) => each === action)) move(agent, action);
    else complain(`agent ${agent} cannot do this now: ${state.game.actions[action]}`);
  } else if (state.replay && event.key === " " && !event.target.matches?.("button, summary")) {
    event.preventDefault();
    toggle();
  } else if (state.replay && event.key in ARROWS) {
    event.preventDefault();
    lookAt(state.shown + (event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1));
  }
}

function onBoard(event) {
  const agent = turn(), box = at("board").getBoundingClientRect(), frame = now();
  const me = frame?.figures?.find(each => each.agent === agent);
  if (!me || !state.mine.length || state.over) return;
  const view = at("board").viewBox.baseVal, cell = 100 * Math.min(box.width / view.width, box.height / view.height);
  const x = (event.clientX - box.left - box.width / 2) / cell + (view.x + view.width / 2) / 100 - me.at[1] - .5;
  const y = (event.clientY - box.top - box.height / 2) / cell + (view.y + view.height / 2) / 100 - me.at[0] - .5;
  const name = Math.max(Math.abs(x), Math.abs(y)) < .5 ? "stay" : Math.abs(x) > Math.abs(y) ? (x > 0 ? "right" : "left") : (y > 0 ? "down" : "up");
  const found = offered(agent).find(each => each[1] === name);
  if (found) move(agent, found[0]);
}

function refreshMoves() {
  const playing = state.mine.length && !state.over && now()?.moves;
  const listed = state.game?.actions === null || (state.game?.actions.length ?? 0) > FEW;
  at("choices").hidden = !(playing && listed);
  at("moves").hidden = !(playing && !listed);
  if (playing && listed) return refreshList();
  const focused = document.activeElement?.dataset?.move, parts = [];
  for (const agent of playing ? state.mine.filter(each => now().moves[each]) : []) {
    if (state.mine.length > 1) parts.push(make("h2", `agent ${agent}`));
    const legal = new Set(offered(agent).map(([action]) => action));
    state.game.actions.slice(0, firstTell()).forEach((name, action) => {  // statements to tell stand in the manual
      const key = Object.keys(state.keys).find(each => state.keys[each] === action && !(each in ARROWS));
      parts.push(make("button", [key && agent === turn() ? make("kbd", key) : null, `${SIGNS[name] ? SIGNS[name] + " " : ""}${name}`], {
        type: "button", disabled: !legal.has(action), class: state.chosen[agent] === action ? "chosen" : null,
        "data-move": `${agent}:${action}`, "aria-label": state.mine.length > 1 ? `agent ${agent}: ${name}` : name, onclick: () => move(agent, action),
      }));
    });
  }
  at("moves").replaceChildren(...parts);
  if (focused) at("moves").querySelector(`[data-move="${focused}"]:not(:disabled)`)?.focus();
}

function refreshList() {
  const agent = turn(), typed = at("filter").value.trim().toLowerCase();
  const found = offered(agent).filter(([, name]) => name.toLowerCase().includes(typed));
  const items = found.slice(0, LISTED).map(([action, name]) => make("li", make("button", name, {
    type: "button", class: state.chosen[agent] === action ? "chosen" : null, onclick: () => take(agent, action),
  })));
  if (found.length > LISTED) items.push(make("li", `… and ${found.length - LISTED} more`));
  if (!found.length) items.push(make("li", "nothing like that can be done now"));
  at("list").replaceChildren(...items);
  at("found").textContent = typed ? `${found.length} of ${offered(agent).length}` : `${found.length}`;
}

function take(agent, action) { at("filter").value = ""; move(agent, action); at("filter").focus(); }

function onFilter(event) {
  const buttons = [...at("list").querySelectorAll("button")];
  if (event.key === "Enter" && buttons.length) { event.preventDefault(); buttons[0].click(); }
  if (event.key === "ArrowDown" && buttons.length) { event.preventDefault(); buttons[0].focus(); }
}

function onList(event) {
  const step = {ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling"}[event.key];
  if (!step) return;
  event.preventDefault();
  (event.target.closest("li")?.[step]?.querySelector("button") ?? at("filter")).focus();
}

// ---------------------------------------------------------------- what is shown

export function refreshStatus() {
  const {game, status} = state, frame = now();
  if (!game || !frame) return;
  const missing = game.people.length - (status.present?.length ?? 0);
  at("start").hidden = state.replay || status.begun !== false || !state.mine.length;
  at("join").hidden = state.replay || Boolean(state.onFinish) || !missing || state.over;
  at("again").hidden = at("next").hidden = state.replay || Boolean(state.onFinish) || !state.mine.length || !(state.over || (status.present?.length ?? 0) === state.mine.length);
  at("saved").hidden = state.replay || !state.over || Boolean(state.onFinish);
  at("leave").hidden = state.replay || !state.mine.length || Boolean(state.onFinish);
  at("link-part").hidden = state.replay || Boolean(state.onFinish);
  const outcome = frame.won ? "won" : game.scored ? `over, score ${frame.score}` : "lost";
  if (state.replay) return say(`${game.env}, seed ${game.seed}: ${outcome} after ${frame.step} ${frame.step === 1 ? "step" : "steps"}`);
  if (state.over) return say(`The game is ${outcome}.`);
  if (status.begun === false) return say(`Waiting for ${missing} more ${missing === 1 ? "person" : "people"}: give them the link.`);
  const parts = [`Step ${frame.step} of ${game.max_cycles}.`], waiting = waitingFor();
  if (status.thinking) parts.push("The agents are thinking …");
  else if (waiting.length) parts.push(`It is your move${state.mine.length > 1 ? `, agent ${waiting[0]}` : ""}.`);
  else if (state.mine.some(agent => frame.moves?.[agent])) parts.push("Waiting for the others.");
  else if (state.mine.length) parts.push("Your agent is out; the others play on.");
  if (missing && status.begun) parts.push(`${state.standin} plays for ${missing === 1 ? "who is" : "those who are"} away.`);
  say(parts.join(" "));
}

function showClock() {
  const left = state.clockEnd ? Math.max(0, Math.ceil((state.clockEnd - performance.now()) / 1000)) : 0;
  document.title = state.clockEnd && !state.over ? `${left} s · magrounding` : "magrounding";
  if (state.game && !state.replay) at("at").textContent = `step ${state.frames[state.shown]?.step ?? 0}${state.clockEnd && !state.over ? `, ${left} s` : ""}`;
}

// A line of an agent's manual; of one that is split, with who told it, or to be told by a click.
function statement(frame, reader, [row, text, teller], k) {
  const {split} = frame, action = split ? firstTell() + row : -1;
  const readers = at("show-reads").checked ? Object.entries(frame.reads ?? {}).filter(([agent]) => !split || agent === reader) : [];
  const most = Math.max(0, ...readers.map(([, weights]) => weights[k]));
  const bars = readers.map(([agent, weights]) => make("span", [
    `agent ${agent}`, make("progress", [], {max: 1, value: weights[k], "aria-label": `agent ${agent} relies on this by`}), `${Math.round(100 * weights[k])} %`,
  ], {class: "bar"}));
  const told = state.mine.includes(+reader) && !state.over && offered(+reader).some(([each]) => each === action);
  const words = told ? make("button", [make("kbd", `${row + 1}`), tidy(text)], {
    type: "button", class: state.chosen[reader] === action ? "chosen" : null, title: "tell the others", onclick: () => move(+reader, action),
  }) : make("span", tidy(text));
  const mark = teller > 0 ? make("span", `agent ${teller - 1}: `, {class: "teller"}) : null;
  const item = make("li", [mark, words, bars.length ? make("span", bars, {class: "bars"}) : null], {class: most >= .1 ? "read" : null});
  item.style.setProperty("--teller", state.game.colours[(teller - 1) % state.game.colours.length]);
  item.style.setProperty("--much", `${Math.round(60 * most)}%`);
  return item;
}

const tidy = text => text.replace(/ ([,.;:!?])/g, "$1");
const picture = (sprite, alt = "") => make("img", [], {src: `/sprite/${sprite}`, alt, width: 27, height: 27});

export function refresh() {
  const frame = state.frames[state.shown], {game} = state;
  if (!frame || !game) return;
  const drawn = Boolean(frame.figures);
  at("board").toggleAttribute("hidden", !drawn);
  at("text").hidden = drawn;
  for (const id of ["things-part", "goal-part", "manual-part"]) at(id).hidden = !drawn;
  const overlays = {claims: at("show-claims").checked, pursues: at("show-pursues").checked};
  if (drawn) {
    drawBoard(at("board"), frame, game, overlays);
    at("goal-part").hidden = !frame.goal;
    at("goal").textContent = tidy(frame.goal);
    const {split} = frame, readers = split && state.mine.length ? state.mine.map(String) : Object.keys(frame.manual);
    at("manual-part").hidden = !split && !frame.manual[0].length;
    at("manual").replaceChildren(...readers.flatMap(agent => [
      readers.length > 1 ? make("li", `agent ${agent} reads`, {class: "reader"}) : null,
      ...frame.manual[agent].map((line, k) => statement(frame, agent, line, k)),
    ]).filter(Boolean));
    at("things").replaceChildren(...frame.figures.filter(each => !("agent" in each)).map(each => make("li", [picture(each.sprite), label(each)])));
    at("things-part").hidden = !frame.figures.some(each => !("agent" in each));
  } else at("text").textContent = frame.text;
  const known = Object.keys(frame.claims ?? {}).length || Object.keys(frame.reads ?? {}).length || Object.keys(frame.pursues ?? {}).length;
  at("overlays").hidden = !(known || (state.replay && drawn));
  at("agents").replaceChildren(...game.players.map((player, agent) => {
    const held = frame.holds?.[agent], figure = frame.figures?.find(each => each.agent === agent);
    const who = player.startsWith("human") ? (state.mine.includes(agent) ? "you" : player.replace("human", "a person")) : playerName(player);
    return make("li", [figure ? picture(figure.sprite) : null, `agent ${agent}, ${who}${held === null ? "" : held ? `: holds ${held}` : ""}`],
      {class: [held === null ? "dead" : "", state.mine.includes(agent) ? "you" : ""].join(" ").trim() || null});
  }));
  at("last").replaceChildren(...(frame.last.length ? frame.last : ["nothing yet"]).map(each => make("li", tidy(each))));
  at("slider").hidden = state.frames.length < 2;
  at("play").hidden = !(state.replay || state.over);
  Object.assign(at("step"), {max: state.frames.length - 1, value: state.shown});
  at("at").textContent = `step ${frame.step}${state.replay ? ` of ${state.frames.length - 1}` : ""}`;
  refreshStatus();
  refreshMoves();
}

function lookAt(step) {
  state.shown = Math.max(0, Math.min(state.frames.length - 1, step));
  refresh();
}

function toggle() {
  clearInterval(state.timer);
  const next = () => state.shown >= state.frames.length - 1 ? toggle() : lookAt(state.shown + 1);
  state.timer = state.timer ? 0 : setInterval(next, 600);
  at("play").textContent = state.timer ? "pause" : "play";
  if (state.timer && state.shown >= state.frames.length - 1) lookAt(0);
}

// ---------------------------------------------------------------- saved games

async function open(event) {
  const file = event.target.files[0];
  if (!file) return;
  complain();
  try {
    if (file.size > 2 ** 20) throw new Error("the file is too large: a saved game has less than 1 MiB");
    const text = await file.text();
    const {game, frames} = await ask("/replay", {method: "POST", body: text, headers: {"Content-Type": "application/x-ndjson"}});
    Object.assign(state, {code: "", game, frames, shown: 0, mine: [], replay: true, over: true, status: {}});
    at("where").textContent = `${game.env}, a saved game`;
    show("game");
    refresh();
    at("step").focus();
  } catch (error) { complain(error.message); }
  event.target.value = "";
}

// ---------------------------------------------------------------- all begins here

at("new").onsubmit = create;
at("now").onclick = () => begin(QUICK);
at("file").onchange = open;
at("step").oninput = () => lookAt(+at("step").value);
at("back").onclick = () => lookAt(state.shown - 1);
at("forth").onclick = () => lookAt(state.shown + 1);
at("play").onclick = toggle;
at("start").onclick = () => send({type: "start"});
at("join").onclick = () => send({type: "join", code: state.code, agent: null, token: null});
at("again").onclick = () => send({type: "restart", seed: "same"});
at("next").onclick = () => send({type: "restart", seed: "next"});
at("leave").onclick = () => {
  sessionStorage.removeItem(`token:${state.code}`);
  localStorage.removeItem(`token:${state.code}`);
  send({type: "leave"});
  state.gone = true;
  history.pushState(null, "", "/");
  lobby();
};
at("link").onfocus = () => at("link").select();
at("filter").oninput = refreshList;
at("filter").onkeydown = onFilter;
at("list").onkeydown = onList;
at("board").addEventListener("click", onBoard);
for (const id of ["show-claims", "show-reads", "show-pursues"]) at(id).onchange = refresh;
document.addEventListener("keydown", onKey);
window.addEventListener("popstate", () => location.reload());
window.addEventListener("resize", () => { if (!at("game").hidden) refresh(); });
setInterval(showClock, 250);

const path = location.pathname.match(/^\/game\/([\w-]+)$/);
if (location.pathname === "/study") import("/file/study.js").then(study => study.begin());
else if (path) enter(path[1], new URLSearchParams(location.search).has("watch") ? -1 : null);
else lobby();
