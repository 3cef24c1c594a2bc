"""The page of a study, in Node with a document of stubs: what it shows and says when the server refuses."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import magrounding.play.web

NODE = shutil.which("node")
PAGE = Path(magrounding.play.web.__file__).parent / "page"
STUBS = """
const elements = {};
const stub = () => {
  const own = {hidden: true, children: []};
  const any = new Proxy(function () {}, {
    get: (_, name) => {
      if (name in own) return own[name];
      if (name === "replaceChildren") return (...all) => { own.children = all; };
      if (name === "append") return (...all) => own.children.push(...all);
      if (name === Symbol.toPrimitive) return () => "";
      if (name === Symbol.iterator) return [][Symbol.iterator];
      return own[name] = stub();
    },
    set: (_, name, value) => { own[name] = value; return true; },
    apply: () => stub(),
  });
  return any;
};
globalThis.document = stub();
document.getElementById = id => elements[id] ??= stub();
document.createElement = () => stub();
globalThis.window = globalThis.addEventListener = stub();
globalThis.matchMedia = globalThis.setInterval = globalThis.requestAnimationFrame = stub();
globalThis.location = {pathname: "/study", origin: "", host: "", protocol: "http:"};
const kept = {study: "a ticket"}, sent = [], sockets = [];
globalThis.localStorage = {getItem: () => null, setItem() {}};
globalThis.sessionStorage = {
  getItem: name => kept[name] ?? null,
  setItem: (name, value) => { kept[name] = value; },
  removeItem: name => { delete kept[name]; },
};
globalThis.WebSocket = class {
  static OPEN = 1;
  readyState = 1;
  constructor() { sockets.push(this); setTimeout(() => this.onopen()); }
  send(text) { sent.push(JSON.parse(text)); }
};
const about = {title: "t", consent: "c", thanks: "", before: [], between: [], after: []};
globalThis.fetch = async () => ({ok: true, json: async () => about});
const text = each => typeof each === "string" ? each : (each.children ?? []).map(text).join(" ");
await import("./page.mjs");
while (!sent.length) await new Promise(resolve => setTimeout(resolve, 5));
for (const data of JSON.parse(process.argv[2])) sockets[0].onmessage({data: JSON.stringify(data)});
await new Promise(resolve => setTimeout(resolve, 50));
const sections = ["lobby", "game", "study"].filter(id => !document.getElementById(id).hidden);
const error = document.getElementById("error").textContent;
const study = document.getElementById("study").children.map(text).join(" ");
console.log(JSON.stringify({sent, kept, sections, error, study}));
process.exit();
"""


def opened(folder, *messages):
    """What a page that is opened again has sent, kept and shown after some messages of the server."""
    for name in ("board", "page", "study"):
        code = (PAGE / f"{name}.js").read_text(encoding="utf-8")
        for other in ("board", "page", "study"):
            code = code.replace(f'"/file/{other}.js"', f'"./{other}.mjs"')
        (folder / f"{name}.mjs").write_text(code, encoding="utf-8")
    (folder / "stubs.mjs").write_text(STUBS, encoding="utf-8")
    done = subprocess.run(
        [NODE, folder / "stubs.mjs", json.dumps(messages)], capture_output=True, text=True, timeout=600, check=False
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def refused(code):
    return {"type": "refused", "code": code, "sentence": f"refused: {code}"}


pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node.js")


def test_a_page_opened_again_between_line_ups_asks_the_questions(tmp_path):
    page = opened(tmp_path, refused("bad_answer"))
    assert page["sent"] == [{"type": "proceed", "ticket": "a ticket", "answers": None}]
    assert page["sections"] == ["study"]
    assert "About the games" in page["study"]
    assert not page["error"]
    again = opened(tmp_path, {"type": "study", "code": "", "asks": False}, refused("bad_answer"))
    assert "The games are over." in again["study"]  # a form on show stays, with what is wrong
    assert again["error"] == "refused: bad_answer"


def test_a_ticket_that_is_not_known_leads_back_to_consent(tmp_path):
    page = opened(tmp_path, refused("no_game"))
    assert page["sections"] == ["study"]
    assert "I have read this" in page["study"]
    assert "study" not in page["kept"]


def test_a_game_that_is_gone_is_followed_by_what_the_server_says(tmp_path):
    step = {"type": "study", "code": "x", "asks": False, "done": 0, "games": 2}
    page = opened(tmp_path, step, refused("no_game"))
    assert [message["type"] for message in page["sent"]] == ["proceed", "join", "proceed"]
    assert page["kept"]["study"] == "a ticket"
