// A study, as a participant sees it: consent and questions, games in an order that the server chooses, questions.
import {ask, complain, connect, enter, listen, make, send, show, state} from "/file/page.js";

const at = id => document.getElementById(id);
const LATER = ["not_stored", "quota", "full", "too_fast", "busy"];  // refusals of what may go through in a while
const AGAIN = 5000;
let about = null, ticket = sessionStorage.getItem("study"), playing = "", asks = false;

function form(title, texts, questions, button, done, consent = false) {
  const fields = questions.map(({id, ask, answers}) => answers.length
    ? make("fieldset", [make("legend", ask), ...answers.map(answer => make("label", [make("input", [], {type: "radio", name: id, value: answer, required: true}), ` ${answer}`], {class: "line"}))], {class: "question"})
    : make("label", [ask, make("textarea", [], {name: id, maxlength: 1000})], {class: "question"}));
  const agree = consent ? make("label", [make("input", [], {type: "checkbox", name: "consent", required: true}), " I have read this, and I agree"], {class: "line"}) : null;
  const made = make("form", [
    make("h1", title, {tabindex: -1}), ...texts.map(text => make("p", text)), ...fields, agree, make("p", make("button", button, {class: "main", type: "submit"})),
  ]);
  made.onsubmit = event => {
    event.preventDefault();
    complain();
    done(Object.fromEntries(questions.map(({id}) => [id, made.elements[id].value])));
  };
  at("study").replaceChildren(made);
  show("study");
  made.querySelector("h1").focus();
}

const paragraphs = text => text.trim().split(/\n\s*\n|\n/);
const invitation = location.hash?.slice(1) ?? "";  // a part of the address that no server and no proxy is sent

async function say(message) {  // the server may have been started anew meanwhile
  if (state.socket?.readyState !== WebSocket.OPEN) await connect();
  send(message);
}

const proceed = (answers = null) => say({type: "proceed", ticket, answers});

listen("study", message => {
  complain();
  at("go-on")?.remove();
  if (message.ticket) {
    ticket = message.ticket;
    sessionStorage.setItem("study", ticket);
    return proceed();
  }
  if (message.end) {
    sessionStorage.removeItem("study");
    at("study").replaceChildren(make("h1", about.title), ...paragraphs(about.thanks).map(text => make("p", text)));
    return show("study");
  }
  asks = message.asks;
  if (message.code) {
    playing = message.code;
    at("where").textContent = `game ${message.done + 1} of ${message.games}`;
    return enter(message.code);
  }
  form(about.title, ["The games are over."], about.after, "Finish", answers => say({type: "finish", ticket, answers}));
});

state.onJoined = () => { at("where").textContent = at("where").textContent.replace(/^\w+ ·/, `${about.title} ·`); };
state.onRefused = message => {
  if (LATER.includes(message.code) && ticket && at("study").hidden && at("game").hidden) return setTimeout(proceed, AGAIN);
  if (message.code === "no_game" && playing) {  // the game is gone, the ticket may be known: the server says what comes next
    playing = state.code = "";
    return proceed();
  }
  if (message.code === "no_game") {
    ticket = null;
    sessionStorage.removeItem("study");
    return consent();
  }
  if (message.code === "bad_answer" && at("study").hidden) {
    complain();
    between();
  }
};
state.onFinish = frame => {
  const next = make("button", "Go on", {class: "main", type: "button", id: "go-on", onclick: () => asks ? between() : proceed()});
  at("go-on")?.remove();
  at("actions").prepend(next);
  next.focus();
};

function consent() { form(about.title, paragraphs(about.consent), about.before, "Begin", answers => ticket ? proceed() : say({type: "enter", consent: true, answers, invitation}), true); }
function between() { form(about.title, ["About the games that you have just played:"], about.between, "Go on", proceed); }

export async function begin() {
  try { about = await ask("/study/about"); } catch (error) { return complain(error.message); }
  await connect();
  if (ticket) return proceed();
  consent();
}
