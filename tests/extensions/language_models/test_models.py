"""Options of language models, and the file that names them."""

import pytest

from magrounding.errors import ConfigurationError
from magrounding.extensions.language_models.models import LanguageModel, read_models
from magrounding.extensions.language_models.player import LanguageModels

URL = "http://127.0.0.1:8080/v1"
KEY = "sk-very-secret"


def file_of(folder, text):
    path = folder / "models.toml"
    path.write_text(text)
    return path


def test_a_file_names_models(tmp_path):
    found = read_models(file_of(tmp_path, f'[one]\nmodel = "m"\nbase_url = "{URL}"\nhistory = 2\n'))
    assert found == {"one": LanguageModel("m", URL, history=2)}
    assert read_models("example:language_models.toml")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1",
        "[a",
        "[a]\nmodel = 'm'",
        f"[a]\nmodel = 'm'\nbase_url = '{URL}'\napi_key = '{KEY}'",
        f"[a]\nmodel = 'm'\nbase_url = '{URL}'\napi_key_env = '{KEY}'",
        f"[a]\nmodel = 'm'\nbase_url = 'http://me:{KEY}@host/v1'",
        f"[a]\nmodel = 'm'\nbase_url = 'http://host/v1?key={KEY}'",
        "[a]\nmodel = 'm'\nbase_url = 'file:///etc/passwd'",
        f"[a]\nmodel = 'm'\nbase_url = '{URL}'\ntemperature = -1",
        f"[a]\nmodel = 'm'\nbase_url = '{URL}'\nprice = {{ whole = 1 }}",
        f"[a]\nmodel = 'm'\nbase_url = '{URL}'\nbody = {{ messages = [] }}",
        f"[a]\nmodel = 'm'\nbase_url = '{URL}'\ntimeout = 1e12",
        "[a]\nmodel = 'm'\nbase_url = 'http://1.2.3/v1'",
    ],
)
def test_what_is_no_file_of_models(tmp_path, text):
    with pytest.raises(ConfigurationError) as raised:
        LanguageModels(read_models(file_of(tmp_path, text))).player("a")
    assert KEY not in str(raised.value)


def test_a_key_that_is_not_set(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    model = LanguageModel("m", URL, api_key_env="NO_SUCH_KEY")
    with pytest.raises(ConfigurationError):
        model.find_key()
    monkeypatch.setenv("NO_SUCH_KEY", f"{KEY}\nX-More: 1")  # a header of its own
    with pytest.raises(ConfigurationError):
        model.find_key()
    monkeypatch.setenv("NO_SUCH_KEY", f"{KEY}\n")
    assert model.find_key() == KEY


def test_what_replies_depend_on():
    one = LanguageModel("m", URL)
    elsewhere = LanguageModel("m", "http://other/v1", api_key_env="KEY", timeout=1.0, retries=0, price={"in": 1.0})
    assert one.settings_hash == elsewhere.settings_hash
    for other in ({"temperature": 1.0}, {"history": 0}, {"prompt": "chain_of_thought"}, {"body": {"top_p": 0.5}}):
        assert LanguageModel("m", URL, **other).settings_hash != one.settings_hash


def test_prices():
    assert LanguageModel("m", URL).cost(100, 0, 10) is None
    priced = LanguageModel("m", URL, price={"in": 2.0, "cached": 0.5, "out": 10.0})
    assert priced.cost(1_000_000, 400_000, 100_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10)
    assert LanguageModel("m", URL, price={"in": 2.0}).cost(1_000_000, 400_000, 100_000) == pytest.approx(2.0)
