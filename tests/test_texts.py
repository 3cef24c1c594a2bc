"""Texts: equal ones have equal keys whatever shows them, and a recorder keeps each once, in an order of its own."""

from dataclasses import replace

import numpy as np

from magrounding.spec import CHOICES, EPISODE, EnvSpec, Field, FixedActions, Text
from magrounding.texts import TextRecorder, content_keys, flat_choices, text_keys

SPEC = EnvSpec(
    (
        Field("position", (2,), 0, 9),
        Text("manual", (2, 3), 0, 9, shared=True, lifetime=EPISODE),
        Text("goal", (3,), 0, 9, shared=True, lifetime=EPISODE),
        Text("note", (3,), 0, 9, lifetime=EPISODE),
        Text("message", (3,), 0, 9),
        Text(CHOICES, (2, 3), 0, 9),
    ),
    num_agents=1,
    actions=FixedActions(("wait",)),
    words=(),
    max_cycles=5,
)


def some_texts(seed, rows, *shape, low=0, high=10):
    return np.random.default_rng(seed).integers(low, high, (rows, *shape)).astype(np.int16)


def test_keys_tell_contents_apart():
    texts = np.unique(some_texts(0, 3000, 2, 3), axis=0)
    keys = content_keys({"manual": texts})
    assert keys.dtype == np.int64
    assert (keys >= 0).all()
    assert len(np.unique(keys)) == len(texts) > 2900


def test_what_is_read_together_has_one_key():
    one, two, nothing = some_texts(2, 1, 3), some_texts(3, 1, 3), np.zeros((1, 0), np.int16)
    together = [
        {"manual": one, "goal": two},
        {"manual": two, "goal": one},
        {"manual": np.concatenate([one, two], 1), "goal": nothing},
        {"manual": one, "goal": nothing},
    ]
    assert len({int(content_keys(texts)[0]) for texts in together}) == 4


def test_each_text_is_kept_once_and_the_order_does_not_depend_on_what_was_shown_first():
    texts = {"manual": some_texts(7, 30, 2, 3), "goal": some_texts(8, 30, 3)}
    rng, orders = np.random.default_rng(0), []
    for parts in (1, 3, 30):
        order = rng.permutation(30)
        steps = [*order.reshape(parts, -1), *order.reshape(parts, -1)]
        recorder = TextRecorder(("manual", "goal"), SPEC, len(steps), 30 // parts)
        for t, rows in enumerate(steps):
            recorder.add(t, {name: array[rows] for name, array in texts.items()}, None)
        ids, index, last = recorder.texts([recorder.last(0, np.array([0]), {})])
        assert len(ids["goal"]) == 30
        assert last == index[0, 0]
        for name, array in texts.items():
            assert (ids[name][index] == array[np.stack(steps)]).all()
        orders.append((ids["manual"].tobytes(), ids["goal"].tobytes()))
    assert len(set(orders)) == 1


def test_the_worlds_key_serves_shared_texts_of_an_episode_only():
    texts = {field.name: some_texts(10, 4, *field.shape) for field in SPEC.texts}
    document = np.array([7, 7, 8, 9])

    def keys_of(*names, key=document, spec=SPEC):
        return text_keys({name: texts[name] for name in names}, names, spec, key)

    assert (keys_of("manual", "goal") == document).all()
    assert (keys_of("goal") == document).all()
    for names in (("note",), ("message",), ("goal", "message")):  # an agent's own, or one that changes
        assert (keys_of(*names) == content_keys({name: texts[name] for name in names})).all()
    assert (keys_of("manual", "goal", key=None) == content_keys({k: texts[k] for k in ("manual", "goal")})).all()
    own = replace(SPEC, fields=tuple(replace(f, shared=False) for f in SPEC.fields))
    assert (keys_of("goal", spec=own) == content_keys({"goal": texts["goal"]})).all()


def test_each_choice_is_a_text_of_its_own():
    texts = {CHOICES: some_texts(11, 3, 2, 3)}
    texts[CHOICES][2, 0] = texts[CHOICES][0, 1]
    flat = flat_choices(texts)[CHOICES]
    assert flat.shape == (6, 3)
    keys = text_keys(texts, (CHOICES,), SPEC, np.arange(3))
    assert keys.shape == (3, 2)
    assert (keys.ravel() == content_keys({CHOICES: flat})).all()
    assert keys[2, 0] == keys[0, 1]
    assert len(np.unique(keys)) == 5
    assert flat_choices({"goal": texts[CHOICES]})["goal"] is texts[CHOICES]  # only choices are taken apart
