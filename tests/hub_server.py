"""A model hub on the loopback that speaks as much of the protocol as uploads and downloads of small files take."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class Repository:
    """Files by path at every commit, the last one being `main`; the hub itself makes the first."""

    def __init__(self):
        self.commits = {}
        self.commit({".gitattributes": b"*.safetensors filter=lfs\n"})

    @property
    def head(self):
        return next(reversed(self.commits))

    def commit(self, files):
        sha = hashlib.sha1(json.dumps([len(self.commits), sorted(files)]).encode()).hexdigest()
        self.commits[sha] = dict(files)
        return sha

    def at(self, revision):
        """(commit, files) of a revision; KeyError where there is none."""
        sha = self.head if revision == "main" else revision
        return sha, self.commits[sha]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, content, status=200, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def missing(self, code):
        self.answer({"error": "not found"}, 404, X_Error_Code=code)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        repositories, path = self.server.repositories, unquote(urlsplit(self.path).path)
        if self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return self.answer({"error": "Invalid credentials"}, 401)
        if path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            status = 409 if name in repositories else 200
            repositories.setdefault(name, Repository())
            return self.answer({"url": f"{self.server.address}/{name}"}, status)
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/main", path)
        if found is None or found[1] not in repositories:
            return self.missing("RepoNotFound")
        if found[2] == "preupload":
            files = [
                {"path": each["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                for each in json.loads(body)["files"]
            ]
            return self.answer({"files": files})
        repository = repositories[found[1]]
        files = dict(repository.at("main")[1])
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        sha = repository.commit(files)
        return self.answer({"commitUrl": f"{self.server.address}/{found[1]}/commit/{sha}", "commitOid": sha})

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(f"{self.command} {path}")
        found = re.fullmatch(r"(/api/models)?/([^/]+/[^/]+)(?:/(revision|tree|resolve)/([^/]+)(?:/(.*))?)?", path)
        if found is None or found[2] not in self.server.repositories:
            return self.missing("RepoNotFound")
        api, name, kind, revision, file = found.groups()
        try:
            sha, files = self.server.repositories[name].at(revision or "main")
        except KeyError:
            return self.missing("RevisionNotFound")
        if api and kind == "tree":
            tree = [{"type": "file", "path": key, "size": len(data), "oid": _sha(data)} for key, data in files.items()]
            return self.answer(tree)
        if api:
            siblings = [{"rfilename": key, "size": len(data), "blobId": _sha(data)} for key, data in files.items()]
            return self.answer({"id": name, "modelId": name, "sha": sha, "siblings": siblings, "private": False})
        if file not in files:
            return self.missing("EntryNotFound")
        data = files[file]
        return self.answer(data, ETag=f'"{_sha(data)}"', X_Repo_Commit=sha, X_Linked_Size=str(len(data)))

    do_HEAD = do_GET


def _sha(data):
    return hashlib.sha1(data).hexdigest()


@contextmanager
def hub_server():
    """Serve an empty hub: `address`, `token`, `repositories` (name → Repository), and what was `asked` for."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.address, server.token = f"http://127.0.0.1:{server.server_port}", "hf_nothing_secret"
    server.repositories, server.asked = {}, []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
